// ONNX's attention, what exporters put around it, and its recurrent forms.
#include <array>
#include <cmath>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/onnx/subgraph.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {

namespace {
constexpr int64_t kMostHeads = 1 << 20;
}

int64_t known_dim(OpContext& c, const Value* x, size_t axis, const char* what) {
  if (!x->type.shape.ranked || x->type.shape.rank() <= axis || !x->type.shape.dims[axis].known())
    c.refuse("{} must be known", what);
  return x->type.shape.dims[axis].size;
}

Value* in_heads(OpContext& c, Value* x, int64_t heads) {
  const int64_t hidden = known_dim(c, x, 2, "the size of the heads");
  if (heads < 1 || heads > kMostHeads || hidden % heads != 0)
    fail(ErrorKind::invalid_model, "", "{} numbers do not divide into {} heads", hidden, heads);
  return transposed(reshape_to(x, {{-1, 0}, {-1, 1}, {heads}, {hidden / heads}}, c.b), {0, 2, 1, 3}, c.b);
}
Value* out_of_heads(OpContext& c, Value* x) {
  const int64_t heads = known_dim(c, x, 1, "the heads"), size = known_dim(c, x, 3, "the size of the heads");
  return reshape_to(transposed(x, {0, 2, 1, 3}, c.b), {{-1, 0}, {-1, 1}, {heads * size}}, c.b);
}
Value* repeated_heads(OpContext& c, Value* x, int64_t heads) {
  const int64_t own = known_dim(c, x, 1, "the heads");
  if (own == heads) return x;
  if (own < 1 || heads < 1 || heads > kMostHeads || heads % own != 0)
    fail(ErrorKind::invalid_model, "", "{} heads do not divide into {}", heads, own);
  std::vector<int64_t> from;
  for (int64_t i = 0; i < heads; ++i) from.push_back(i / (heads / own));
  return c.b.add("gather", {x, c.b.ints(from)}, {{"axis", int64_t{1}}});
}

Value* turned(Value* x, Value* cosines, Value* sines, int64_t count, bool interleaved, Builder& b) {
  const auto part = [&](Value* from, int64_t begin, int64_t end, int64_t step = 1) {
    const size_t rank = from->type.shape.rank();
    std::vector<int64_t> begins(rank, 0), ends(rank, kToTheEnd), steps(rank, 1);
    begins.back() = begin, ends.back() = end, steps.back() = step;
    return b.add("slice", {from, b.ints(begins), b.ints(ends)}, {{"steps", steps}});
  };
  const Dim size = x->type.shape.dims.back();
  if (!size.known() || count < 2 || count > size.size || count % 2 != 0)
    fail(ErrorKind::invalid_model, "", "turns {} of {} numbers", count, to_string(size));
  const auto angles = [&](Value* cache) { return expand_dims(part(cache, 0, count / 2), {1}, b); };
  const Var cosine(b, angles(cosines)), sine(b, angles(sines));
  Value* whole = part(x, 0, count);
  const Var first(b, interleaved ? part(whole, 0, kToTheEnd, 2) : part(whole, 0, count / 2));
  const Var second(b, interleaved ? part(whole, 1, kToTheEnd, 2) : part(whole, count / 2, count));
  Value *real = (cosine * first - sine * second).value, *imaginary = (sine * first + cosine * second).value;
  Value* y;
  if (interleaved) {
    y = b.add("concat", {expand_dims(real, {4}, b), expand_dims(imaginary, {4}, b)}, {{"axis", int64_t{4}}});
    y = reshape_to(y, {{-1, 0}, {-1, 1}, {-1, 2}, {count}}, b);
  } else {
    y = b.add("concat", {real, imaginary}, {{"axis", int64_t{3}}});
  }
  if (count == size.size) return y;
  return b.add("concat", {y, part(x, count, size.size)}, {{"axis", int64_t{3}}});
}

namespace {

Value* both(Value* a, Value* with, const char* op, Builder& b) { return a == nullptr ? with : b.add(op, {a, with}); }

/// What the mask, causality, windows and lengths forbid: `added` to the scores, and the places that are `allowed`; both may be
/// null.
struct Bias {
  Value* added = nullptr;
  Value* allowed = nullptr;
};

class Attention {
 public:
  explicit Attention(OpContext& c) : c_(c), b_(c.b), flat_(c.rank(0) == 3) {
    c.expect_inputs(3, 7);
    for (size_t i = 0; i < 3; ++i)
      if (c.rank(i) != c.rank(0) || c.rank(0) < 3 || c.rank(0) > 4)
        fail(ErrorKind::invalid_model, "", "query, key and value have {} dims, expected 3 or 4", c.rank(i));
    q_ = c.in[0], k_ = c.in[1], v_ = c.in[2];
    if (flat_) {
      q_ = in_heads(c, q_, c.integer("q_num_heads"));
      k_ = in_heads(c, k_, c.integer("kv_num_heads"));
      v_ = in_heads(c, v_, c.integer("kv_num_heads"));
    }
    if (c.given(4) != c.given(5)) fail(ErrorKind::invalid_model, "", "has one of past key and past value");
    if (c.given(4)) {
      k_ = b_.add("concat", {c.in[4], k_}, {{"axis", int64_t{2}}});
      v_ = b_.add("concat", {c.in[5], v_}, {{"axis", int64_t{2}}});
    }
  }

  std::vector<Value*> run() {
    const DType dtype = q_->type.dtype;
    const int64_t heads = known_dim(c_, q_, 1, "the heads"), size = known_dim(c_, q_, 3, "the size of the heads");
    const double scale = std::sqrt(c_.has("scale") ? c_.real("scale", 1) : 1 / std::sqrt(static_cast<double>(size)));
    Value *keys = repeated_heads(c_, k_, heads), *values = repeated_heads(c_, v_, heads);
    const auto scaled = [&](Value* x) { return b_.add("mul", {x, b_.scalar_like(x, scale)}); };
    Value* scores = b_.add("matmul", {scaled(q_), scaled(keys)}, {{"transpose_b", true}});
    std::array<Value*, 4> stages{};
    stages[0] = scores;
    const double cap = c_.real("softcap", 0);
    if (cap > 0)
      scores = b_.add(
          "mul", {b_.add("tanh", {b_.add("div", {scores, b_.scalar_like(scores, cap)})}), b_.scalar_like(scores, cap)});
    stages[1] = scores;
    const Bias bias = this->bias();
    Value* nothing = nullptr;  // where a query may look nowhere
    if (bias.added || bias.allowed) {
      const double lowest = -std::numeric_limits<double>::infinity();
      Value* sum = bias.added;
      if (bias.allowed) {
        Value* forbidden = b_.add("select", {bias.allowed, b_.number(0, dtype), b_.number(lowest, dtype)});
        sum = both(sum, forbidden, "add", b_);
      }
      scores = b_.add("add", {scores, sum});
      Value* most = b_.add("reduce_max", {sum}, {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}});
      nothing = b_.add("equal", {most, b_.number(lowest, dtype)});
    }
    stages[2] = scores;
    if (c_.has("softmax_precision")) {
      const auto precise = dtype_of(static_cast<int32_t>(c_.integer("softmax_precision")));
      if (!precise || !precise->is_float()) c_.refuse("softmax_precision is no type of numbers");
      scores = cast_to(scores, *precise, b_);
    }
    Value* shares = b_.add("softmax", {scores}, {{"axis", int64_t{-1}}});
    if (nothing) shares = b_.add("select", {nothing, b_.scalar_like(shares, 0), shares});
    shares = stages[3] = cast_to(shares, dtype, b_);
    Value* y = b_.add("matmul", {shares, values});
    const int64_t mode = c_.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) fail(ErrorKind::invalid_model, "", "qk_matmul_output_mode is {}", mode);
    return {flat_ ? out_of_heads(c_, y) : y, k_, v_, stages[static_cast<size_t>(mode)]};
  }

 private:
  /// The mask, as long as the keys are: what it lacks is forbidden.
  Value* mask() {
    Value* mask = c_.in[3];
    const size_t rank = c_.rank(3);
    if (rank < 1 || rank > 4) fail(ErrorKind::invalid_model, "", "the mask has {} dims", rank);
    const Dim own = mask->type.shape.dims[rank - 1], wanted = k_->type.shape.dims[2];
    if (own.surely_equals(wanted) || own == Dim(1)) return mask;
    if (own.known() && wanted.known() && own.size > wanted.size)
      fail(ErrorKind::invalid_model, "", "the mask is for {} keys and there are {}", own.size, wanted.size);
    std::vector<Value*> pads(2 * rank, b_.ints({0}));
    pads.back() = folded(b_.add("sub", {dim_of(k_, 2, b_), dim_of(mask, rank - 1, b_)}), b_);
    Value* table = reshape_to(joined(pads, b_), {{static_cast<int64_t>(rank)}, {2}}, b_);
    const double outside = mask->type.dtype == kBool ? 0 : -std::numeric_limits<double>::infinity();
    return b_.add("pad", {mask, table}, {{"value", outside}});
  }

  /// How many keys stand before the first query: one number, or [batch, 1, 1, 1].
  Value* offset() {
    if (c_.given(4)) return scalar_dim(c_.in[4], 2, b_);
    if (!c_.given(6)) return b_.constant(Tensor::scalar_i64(0));
    return b_.add("sub", {reshape_to(cast_to(c_.in[6], kI64, b_), {{-1}, {1}, {1}, {1}}, b_), scalar_dim(q_, 2, b_)});
  }

  Bias bias() {
    Bias bias;
    if (c_.given(3)) {
      Value* given = mask();
      (given->type.dtype == kBool ? bias.allowed : bias.added) = given;
      if (bias.added) bias.added = cast_to(bias.added, q_->type.dtype, b_);
    }
    Value *keys = counted(scalar_dim(k_, 2, b_), b_),
          *queries = expand_dims(counted(scalar_dim(q_, 2, b_), b_), {1}, b_);
    const int64_t left = c_.integer("left_window_size", -1), right = c_.integer("right_window_size", -1);
    if (c_.integer("is_causal", 0) != 0 || left >= 0 || right >= 0) {
      Value* ahead = b_.add("sub", {keys, b_.add("add", {queries, offset()})});  // of the query's own place
      const auto at_most = [&](Value* x, int64_t limit) {
        bias.allowed = both(bias.allowed, b_.add("less_equal", {x, b_.constant(Tensor::scalar_i64(limit))}), "and", b_);
      };
      if (c_.integer("is_causal", 0) != 0) at_most(ahead, 0);
      if (right >= 0) at_most(ahead, right);
      if (left >= 0) at_most(b_.add("neg", {ahead}), left);
    }
    if (c_.given(6)) {
      Value* lengths = reshape_to(cast_to(c_.in[6], kI64, b_), {{-1}, {1}, {1}, {1}}, b_);
      bias.allowed = both(bias.allowed, b_.add("less", {keys, lengths}), "and", b_);
    }
    return bias;
  }

  OpContext& c_;
  Builder& b_;
  bool flat_;
  Value *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
};

void attention(OpContext& c) { c.out = Attention(c).run(); }

/// Attention whose scores and shares are changed by subgraphs of one input and one result.
void flex_attention(OpContext& c) {
  c.expect_inputs(3, 3);
  for (size_t i = 0; i < 3; ++i)
    if (c.rank(i) != 4) fail(ErrorKind::invalid_model, "", "input {} has {} dims, expected 4", i, c.rank(i));
  Builder& b = c.b;
  const DType dtype = c.in[0]->type.dtype;
  DType precise = dtype == kF64 ? kF64 : kF32;
  if (c.has("softmax_precision")) {
    const auto told = dtype_of(static_cast<int32_t>(c.integer("softmax_precision")));
    if (!told || !told->is_float()) c.refuse("softmax_precision is no type of numbers");
    precise = *told;
  }
  const int64_t heads = known_dim(c, c.in[0], 1, "the heads"), size = known_dim(c, c.in[0], 3, "the size of the heads");
  const double scale = c.has("scale") ? c.real("scale", 1) : 1 / std::sqrt(static_cast<double>(size));
  const auto in = [&](size_t i) { return cast_to(repeated_heads(c, c.in[i], heads), precise, b); };
  const auto changed = [&](Value* x, const char* by) {
    if (!c.has(by)) return x;
    const Graph& graph = c.graph(by);
    Outer outer(c, {&graph});
    const std::vector<Value*> made = outer.run(graph, b.block(), outer.values(), {x});
    if (made.size() != 1) fail(ErrorKind::invalid_model, "", "{} has {} results, expected 1", by, made.size());
    return made[0];
  };
  Value* scores = b.add("matmul", {in(0), in(1)}, {{"transpose_b", true}});
  scores = changed(b.add("mul", {scores, b.scalar_like(scores, scale)}), "score_mod");
  Value* shares = changed(b.add("softmax", {scores}, {{"axis", int64_t{-1}}}), "prob_mod");
  c.out = {cast_to(b.add("matmul", {shares, in(2)}), dtype, b)};
}

void rotary_embedding(OpContext& c) {
  c.expect_inputs(3, 4);
  const bool flat = c.rank(0) == 3;
  if (!flat && c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3 or 4", c.rank(0));
  Value* x = flat ? in_heads(c, c.in[0], c.integer("num_heads")) : c.in[0];
  const int64_t count = c.integer("rotary_embedding_dim", 0);
  const auto angles = [&](size_t input) {
    Value* cache = c.given(3) ? c.b.add("gather", {c.in[input], c.in[3]}) : c.in[input];
    if (cache->type.shape.rank() != 3) fail(ErrorKind::invalid_model, "", "input {} has other dims", input);
    return cache;
  };
  Value* y = turned(x, angles(1), angles(2), count == 0 ? known_dim(c, x, 3, "the size of the heads") : count,
                    c.integer("interleaved", 0) != 0, c.b);
  c.out = {flat ? out_of_heads(c, y) : y};
}

/// A state of keys by values that each step decays, corrects and adds to, and each query reads.
void linear_attention(OpContext& c) {
  c.expect_inputs(3, 6);
  Builder& b = c.b;
  const std::string rule = c.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    fail(ErrorKind::invalid_model, "", "update_rule '{}' is unknown", printable(rule));
  if (gated != c.given(4) || delta != c.given(5))
    fail(ErrorKind::invalid_model, "", "update_rule {} takes other inputs", printable(rule));
  const int64_t heads = c.integer("q_num_heads"), own = c.integer("kv_num_heads");
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.given(i) && i != 3 && c.rank(i) != 3)
      fail(ErrorKind::invalid_model, "", "input {} has {} dims, expected 3", i, c.rank(i));
  // The steps go first: [length, batch, heads, size].
  const auto steps = [&](Value* x, int64_t count) {
    return cast_to(transposed(in_heads(c, x, count), {2, 0, 1, 3}, b), kF32, b);
  };
  Value *q = steps(c.in[0], heads), *k = steps(c.in[1], own), *v = steps(c.in[2], own);
  const int64_t keys = known_dim(c, k, 3, "the keys"), values = known_dim(c, v, 3, "the values");
  std::vector<Value*> taken{q, k, v};
  if (gated) taken.push_back(steps(c.in[4], own));
  if (delta) taken.push_back(steps(c.in[5], known_dim(c, c.in[5], 2, "the size of beta")));
  taken.push_back(scalar_dim(q, 0, b));
  Value* state = c.given(3)
                     ? cast_to(c.in[3], kF32, b)
                     : b.add("broadcast_to", {b.scalar(0), joined({dim_of(q, 1, b), b.ints({own, keys, values})}, b)});
  const double told = c.real("scale", 0), scale = told == 0 ? 1 / std::sqrt(static_cast<double>(keys)) : told;
  const Type read = Type::tensor(kF32, Shape({q->type.shape.dims[1], Dim(heads), Dim(values)}));
  Value* zero = b.constant(Tensor::scalar_i64(0));
  const std::vector<Value*> start{zero, state, b.add("list_make", {zero}, {{"element", read}})};
  const std::vector<Value*> end = b.make_while(
      start, taken,
      [&](Builder& in, const std::vector<Value*>& now) {
        return std::vector<Value*>{in.add("less", {now[0], now.back()})};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        const auto at = [&](size_t i) { return Var(in, in.add("gather", {now[3 + i], now[0]})); };
        const auto lifted = [&](Var x, int64_t axis) { return Var(in, expand_dims(x.value, {axis}, in)); };
        Var next(in, now[1]), value = at(2);
        if (gated) next = next * lifted(exp(at(3)), 3);
        const Var key = lifted(at(1), 3);
        if (delta) value = at(gated ? 4 : 3) * (value - reduce_sum(next * key, {2}));
        next = next + key * lifted(value, 2);
        Value* all = next.value;
        if (own != heads) {
          std::vector<int64_t> from;
          for (int64_t i = 0; i < heads; ++i) from.push_back(i / (heads / own));
          all = in.add("gather", {all, in.ints(from)}, {{"axis", int64_t{1}}});
        }
        Var y(in, in.add("matmul", {lifted(at(0), 2).value, all}));
        y = Var(in, squeeze(y.value, {2}, in)) * scale;
        Value* after = in.add("add", {now[0], in.constant(Tensor::scalar_i64(1))});
        return std::vector<Value*>{after, next.value, in.add("list_push", {now[2], y.value})};
      });
  Value* y = transposed(b.add("list_stack", {end[2]}), {1, 0, 2, 3}, b);
  const DType dtype = c.in[0]->type.dtype;
  c.out = {cast_to(reshape_to(y, {{-1, 0}, {-1, 1}, {heads * values}}, b), dtype, b),
           cast_to(end[1], c.given(3) ? c.in[3]->type.dtype : dtype, b)};
}

/// A convolution of each channel by its own kernel, over what came before too; the state is its last places.
void causal_convolution(OpContext& c) {
  c.expect_inputs(2, 4);
  Builder& b = c.b;
  const std::string activation = c.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    fail(ErrorKind::invalid_model, "", "activation '{}' is unknown", printable(activation));
  if (c.rank(0) != 3 || c.rank(1) != 3) fail(ErrorKind::invalid_model, "", "input or weight has other dims than three");
  const int64_t channels = known_dim(c, c.in[1], 0, "the channels"), k = known_dim(c, c.in[1], 2, "the kernel");
  if (k < 1 || channels < 1) fail(ErrorKind::invalid_model, "", "the kernel is empty");
  Value* x = c.in[0];
  Value* pads = b.constant(Tensor::of<int64_t>(kI64, {3, 2}, {0, 0, 0, 0, k - 1, 0}));
  if (c.given(3))
    x = b.add("concat", {c.in[3], x}, {{"axis", int64_t{2}}});
  else if (k > 1)
    x = b.add("pad", {x, pads});
  Value* image = expand_dims(transposed(x, {0, 2, 1}, b), {1}, b);
  Value* kernel = expand_dims(transposed(c.in[1], {2, 1, 0}, b), {0}, b);
  Value* y = b.add("conv2d", {image, kernel}, {{"groups", channels}});
  if (c.given(2)) y = b.add("add", {y, c.in[2]});
  y = transposed(squeeze(y, {1}, b), {0, 2, 1}, b);
  if (activation != "none") {
    const Var wide(b, cast_to(y, kF32, b));
    y = cast_to((wide * wide.apply("sigmoid")).value, x->type.dtype, b);
  }
  Value* begin = joined({b.ints({0, 0}), b.add("sub", {dim_of(x, 2, b), b.ints({k - 1})})}, b);
  c.out = {y, b.add("slice", {x, begin, b.ints({kToTheEnd, kToTheEnd, kToTheEnd})})};
}

void swiglu(OpContext& c) {
  c.expect_inputs(2, 2);
  const Var a(c.b, c.in[0]), by(c.b, c.in[1]);
  c.out = {(a * (a * c.real("alpha", 1)).apply("sigmoid") * by).value};
}

/// `update` written into the cache from a place of each sample on.
void tensor_scatter(OpContext& c) {
  c.expect_inputs(2, 3);
  Builder& b = c.b;
  const std::string mode = c.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  const int64_t axis = normal_axis(c.integer("axis", -2), c.rank(0));
  if (c.rank(1) != c.rank(0) || axis == 0) fail(ErrorKind::invalid_model, "", "cache and update do not fit");
  const auto at = static_cast<size_t>(axis);
  Value* places = counted(scalar_dim(c.in[1], at, b), b);
  std::vector<NewDim> along(c.rank(0), NewDim{1, -1}), by_sample(c.rank(0), NewDim{1, -1});
  along[at] = by_sample[0] = {-1, 0};
  places = reshape_to(places, along, b);
  if (c.given(2)) places = b.add("add", {places, reshape_to(cast_to(c.in[2], kI64, b), by_sample, b)});
  if (mode == "circular") places = b.add("mod", {places, scalar_dim(c.in[0], at, b)});
  places = b.add("broadcast_to", {places, b.add("shape_of", {c.in[1]})});
  c.out = {b.add("scatter_elements", {c.in[0], places, c.in[1]}, {{"axis", axis}})};
}

constexpr Row kAttentionRows[] = {
    {"Attention", attention},
    {"CausalConvWithState", causal_convolution},
    {"FlexAttention", flex_attention, nullptr, "ai.onnx.preview"},
    {"LinearAttention", linear_attention},
    {"RotaryEmbedding", rotary_embedding},
    {"SwiGLU", swiglu},
    {"TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const Row> attention_rows() { return kAttentionRows; }

}  // namespace cairn::onnx
