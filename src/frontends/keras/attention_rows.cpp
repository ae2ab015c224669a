// Keras' attention layers: products of queries and keys, softmax over the steps that count, products with the values.
#include <cmath>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

/// An argument that the call passes by name or by position; null if it passes none.
Given::Value given(const LayerContext& c, const char* name, size_t place) {
  if (place < c.in.size()) {
    if (c.literals[place] != nullptr && !c.literals[place]->is_null()) c.refuse("{} is a constant", name);
    return {c.in.given(place) ? c.in[place] : nullptr, c.masks[place], nullptr};
  }
  auto found = c.named.find(name);
  if (found == c.named.end()) return {};
  if (found->second.value == nullptr) c.refuse("{} is a constant", name);
  return found->second;
}

bool flag(const LayerContext& c, const char* name) {
  auto found = c.named.find(name);
  return found != c.named.end() && found->second.literal != nullptr && *found->second.literal == true;
}

Value* both(Value* x, Value* y, Builder& b) { return x == nullptr ? y : y == nullptr ? x : b.add("and", {x, y}); }

/// The causal mask [steps, others]: step t attends to steps up to t.
Value* causal(Value* query, Value* value, Builder& b) {
  auto count = [&](Value* x) { return counted(scalar_dim(x, 1, b), b); };
  return b.add("greater_equal", {expand_dims(count(query), {1}, b), count(value)});
}

/// Softmax of the scores over the valid steps; the mask may be null.
Value* shares(Value* scores, Value* mask, Builder& b) {
  if (mask != nullptr) {
    constexpr double kFarBelow = -1e9;  // Keras adds this to the scores of masked steps
    Value* left_out = b.add("sub", {b.scalar_like(scores, 1), cast_to(mask, scores->type.dtype, b)});
    scores = b.add("add", {scores, b.add("mul", {left_out, b.scalar_like(scores, kFarBelow)})});
  }
  return b.add("softmax", {scores}, {{"axis", int64_t{-1}}});
}

class MultiHeadAttention {
 public:
  explicit MultiHeadAttention(LayerContext& c)
      : c_(c), b(c.b), heads_(c.integer("num_heads", -1)), depth_(c.integer("key_dim", -1)) {
    const std::vector<int64_t> axes = c.integers("attention_axes");
    if (c.rank() != 3 || (!axes.empty() && axes != std::vector<int64_t>{1}))
      c.refuse("attention over other dims than the second of three is not supported");
    constexpr int64_t kMost = 1 << 20;
    width_ = c.integer("value_dim", depth_);
    for (int64_t number : {heads_, depth_, width_})
      if (number < 1 || number > kMost) fail(ErrorKind::invalid_model, "", "has heads or sizes of {}", number);
    if (c.integers("output_shape").size() > 1) c.refuse("an output_shape of several dims is not supported");
  }

  void run() {
    const Given::Value query = masked("query", 0), value = masked("value", 1);
    Given::Value key = masked("key", 2);
    if (query.value == nullptr || value.value == nullptr) fail(ErrorKind::invalid_model, "", "has no value");
    if (key.value == nullptr) key = value;
    Value* q = projected(query.value, "query", depth_);
    Value* k = projected(key.value, "key", depth_);
    Value* v = projected(value.value, "value", width_);
    q = b.add("mul", {q, b.scalar_like(q, 1 / std::sqrt(static_cast<double>(depth_)))});
    Value* scores = b.add("matmul", {q, k}, {{"transpose_b", true}});
    scores = shares(scores, whole_mask(query, key, value), b);
    Value* y = transposed(b.add("matmul", {scores, v}), kHeadsLast, b);
    c_.out = {joined_heads(y, query.value)};
    if (flag(c_, "return_attention_scores")) c_.out.push_back(scores);
    c_.mask = query.mask;
  }

 private:
  inline static const std::vector<int64_t> kHeadsLast{0, 2, 1, 3};

  /// The argument with its mask, which Keras 3 passes as an argument of its own.
  Given::Value masked(const std::string& name, size_t place) const {
    Given::Value found = given(c_, name.c_str(), place);
    if (Value* mask = given(c_, (name + "_mask").c_str(), SIZE_MAX).value) found.mask = mask;
    return found;
  }

  /// Archives of Keras 2 have the names of members, which start with an underscore.
  Weights part(const char* name, const std::string& place) {
    const std::string member = "_" + place;
    return c_.weights.part(name, c_.weights.has(member) ? member : place);
  }

  /// x [batch, steps, n] times a kernel [n, heads, size], as [batch, heads, steps, size].
  Value* projected(Value* x, const char* name, int64_t size) {
    if (!x->type.shape.ranked || x->type.shape.rank() != 3) c_.refuse("the {} has other dims than three", name);
    Weights weights = part(name, fmt::format("{}_dense", name));
    const Dim last = x->type.shape.dims[2];
    const Tensor kernel = weights.take("kernel", {last.known() ? last.size : -1, heads_, size});
    Value* y = b.add("matmul", {x, b.constant(kernel.reshaped({kernel.dims()[0], heads_ * size}))});
    if (c_.boolean("use_bias", true))
      y = b.add("add", {y, b.constant(weights.take("bias", {heads_, size}).reshaped({heads_ * size}))});
    y = reshape_to(y, {{-1, 0}, {-1, 1}, {heads_}, {size}}, b);
    return transposed(y, kHeadsLast, b);
  }

  /// y [batch, steps, heads, width] times a kernel [heads, width, n].
  Value* joined_heads(Value* y, const Value* query) {
    Weights weights = part("attention_output", "output_dense");
    const std::vector<int64_t> wanted = c_.integers("output_shape");
    const Dim last = query->type.shape.dims[2];
    const int64_t size = wanted.empty() ? (last.known() ? last.size : -1) : wanted[0];
    const Tensor kernel = weights.take("kernel", {heads_, width_, size});
    const int64_t found = kernel.dims()[2];
    y = reshape_to(y, {{-1, 0}, {-1, 1}, {heads_ * width_}}, b);
    y = b.add("matmul", {y, b.constant(kernel.reshaped({heads_ * width_, found}))});
    return c_.boolean("use_bias", true) ? b.add("add", {y, b.constant(weights.take("bias", {found}))}) : y;
  }

  /// [batch or 1, heads or 1, steps, others], or null.
  Value* whole_mask(const Given::Value& query, const Given::Value& key, const Given::Value& value) {
    Value* mask = nullptr;  // [batch, steps, others]
    if (query.mask != nullptr) mask = expand_dims(query.mask, {2}, b);
    for (Value* others : {value.mask, key.mask == value.mask ? nullptr : key.mask})
      if (others != nullptr) mask = both(mask, expand_dims(others, {1}, b), b);
    if (flag(c_, "use_causal_mask")) mask = both(mask, expand_dims(causal(query.value, value.value, b), {0}, b), b);
    Given::Value given_mask = given(c_, "attention_mask", 3);
    if (mask != nullptr) mask = expand_dims(mask, {1}, b);
    if (given_mask.value == nullptr) return mask;
    Value* own = cast_to(given_mask.value, kBool, b);
    if (!own->type.shape.ranked || own->type.shape.rank() < 2 || own->type.shape.rank() > 4)
      c_.refuse("the attention_mask has other dims than two to four");
    if (own->type.shape.rank() == 3) own = expand_dims(own, {1}, b);
    return both(mask, own, b);
  }

  LayerContext& c_;
  Builder& b;
  int64_t heads_, depth_, width_ = 0;
};

void multi_head_attention(LayerContext& c) { MultiHeadAttention(c).run(); }

/// Sums over the last dim of tanh(query + key) for each pair of steps, [batch, steps, others].
Value* pair_sums(Value* query, Value* key, Value* scale, Builder& b) {
  Value* pairs = b.add("tanh", {b.add("add", {expand_dims(query, {2}, b), expand_dims(key, {1}, b)})});
  if (scale != nullptr) pairs = b.add("mul", {pairs, scale});
  return b.add("reduce_sum", {pairs}, {{"axes", std::vector<int64_t>{3}}, {"keep_dims", false}});
}

/// Attention of query, value and, if it differs from the value, key: [batch, steps, n].
void attention(LayerContext& c, Value* (*score)(LayerContext& c, Value* query, Value* key)) {
  if (c.in.size() < 2 || c.in.size() > 3)
    fail(ErrorKind::invalid_model, "", "has {} inputs, expected 2 or 3", c.in.size());
  for (const Value* x : c.in)
    if (x == nullptr || !x->type.shape.ranked || x->type.shape.rank() != 3)
      c.refuse("an input has other dims than three");
  Value *query = c.in[0], *value = c.in[1];
  Value* mask = c.masks[1] == nullptr ? nullptr : expand_dims(c.masks[1], {1}, c.b);
  if (flag(c, "use_causal_mask")) mask = both(mask, expand_dims(causal(query, value, c.b), {0}, c.b), c.b);
  Value* weights = shares(score(c, query, c.in.back()), mask, c.b);
  Value* y = c.b.add("matmul", {weights, value});
  if ((c.mask = c.masks[0]) != nullptr)
    y = c.b.add("mul", {y, cast_to(expand_dims(c.mask, {2}, c.b), y->type.dtype, c.b)});
  c.out = {y};
  if (flag(c, "return_attention_scores")) c.out.push_back(weights);
}

void dot_attention(LayerContext& c) {
  attention(c, [](LayerContext& c, Value* query, Value* key) {
    const std::string mode = c.text("score_mode", "dot");
    Value* scale = c.boolean("use_scale", false) ? c.weight("scale", {}) : nullptr;
    if (mode == "dot") {
      Value* scores = c.b.add("matmul", {query, key}, {{"transpose_b", true}});
      return scale == nullptr ? scores : c.b.add("mul", {scores, scale});
    }
    if (mode != "concat") c.refuse("score_mode '{}' is not supported", printable(mode));
    if (scale != nullptr) query = c.b.add("mul", {query, scale}), key = c.b.add("mul", {key, scale});
    return c.b.add("mul", {pair_sums(query, key, nullptr, c.b), c.weight("concat_score_weight", {})});
  });
}

void additive_attention(LayerContext& c) {
  attention(c, [](LayerContext& c, Value* query, Value* key) {
    Value* scale = c.boolean("use_scale", true) ? c.weight("scale", {c.last_dim()}) : nullptr;
    return pair_sums(query, key, scale, c.b);
  });
}

constexpr Row kAttentionRows[] = {
    {"AdditiveAttention", additive_attention, nullptr, Row::Masks::own, true},
    {"Attention", dot_attention, nullptr, Row::Masks::own, true},
    {"MultiHeadAttention", multi_head_attention, nullptr, Row::Masks::own, true},
};

}  // namespace

std::span<const Row> attention_rows() { return kAttentionRows; }

}  // namespace cairn::keras
