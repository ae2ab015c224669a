// Operators of com.microsoft that exporters and optimisers put into files, composed of the core's.
#include <cmath>
#include <limits>

#include "frontends/fold.h"
#include "frontends/onnx/attention.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

Value* plus(OpContext& c, Value* x, size_t input) { return c.given(input) ? c.b.add("add", {x, c.in[input]}) : x; }

void bias_add_gelu(OpContext& c) {
  c.expect_inputs(1, 2);
  c.out = {c.b.add("gelu", {plus(c, c.in[0], 1)}, {{"approximate", c.target != nullptr}})};
}

void quick_gelu(OpContext& c) {
  c.expect_inputs(1, 1);
  const Var x(c.b, c.in[0]);
  c.out = {(x * (x * c.real("alpha", 1.702)).apply("sigmoid")).value};
}

/// Half of the channels, through GELU, gates the other.
void bias_split_gelu(OpContext& c) {
  c.expect_inputs(2, 2);
  Value* x = plus(c, c.in[0], 1);
  const int64_t half = known_dim(c, x, 2, "the channels") / 2;
  const auto part = [&](int64_t begin, int64_t end) {
    return c.b.add("slice", {x, c.b.ints({0, 0, begin}), c.b.ints({kToTheEnd, kToTheEnd, end})});
  };
  c.out = {c.b.add("mul", {part(0, half), c.b.add("gelu", {part(half, kToTheEnd)})})};
}

void bias_add(OpContext& c) {
  c.expect_inputs(3, 3);
  c.out = {plus(c, plus(c, c.in[0], 1), 2)};
}

void fused_matmul(OpContext& c) {
  c.expect_inputs(2, 2);
  const auto operand = [&](size_t input, const char* attribute) {
    if (c.integer(attribute, 0) == 0) return c.in[input];
    std::vector<int64_t> order;  // the first dim goes behind those of the batch
    for (size_t i = 1; i + 1 < c.rank(input); ++i) order.push_back(static_cast<int64_t>(i));
    if (order.empty()) fail(ErrorKind::invalid_model, "", "input {} has {} dims and no batch", input, c.rank(input));
    order.insert(order.end(), {0, static_cast<int64_t>(c.rank(input)) - 1});
    return transposed(c.in[input], order, c.b);
  };
  Value* y = c.b.add("matmul", {operand(0, "transBatchA"), operand(1, "transBatchB")},
                     {{"transpose_a", c.integer("transA", 0) != 0}, {"transpose_b", c.integer("transB", 0) != 0}});
  const double alpha = c.real("alpha", 1);
  c.out = {alpha == 1 ? y : c.b.add("mul", {y, c.b.scalar_like(y, alpha)})};
}

/// layer_norm over the last axis, or its root mean square alone; a missing scale or offset is 1 or 0.
Value* normalised(OpContext& c, Value* x, Value* scale, Value* offset, bool centred) {
  const double epsilon = c.real("epsilon", centred ? 1e-12 : 1e-6);
  if (centred) {
    const auto like_scale = [&](double to) {
      return c.b.add("broadcast_to", {c.b.scalar_like(scale, to), c.b.add("shape_of", {scale})});
    };
    return c.b.add("layer_norm", {x, scale, offset ? offset : like_scale(0)},
                   {{"epsilon", epsilon}, {"axis", int64_t{-1}}});
  }
  const Var wide(c.b, cast_to(x, x->type.dtype == kF64 ? kF64 : kF32, c.b));
  const Var mean = square(wide).apply("reduce_mean", {}, {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}});
  return c.b.add("mul", {cast_to((wide * rsqrt(mean + epsilon)).value, x->type.dtype, c.b), scale});
}

/// x + skip (+ bias), normalised; mean and deviation, then the sum. The target is null for the root mean square alone.
void skip_layer_norm(OpContext& c) {
  const bool centred = c.target != nullptr;
  c.expect_inputs(3, 5);
  Value* sum = plus(c, plus(c, c.in[0], 1), centred ? 4 : 3);
  const Attributes rows{{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}};
  const Var wide(c.b, cast_to(sum, kF32, c.b)), mean = wide.apply("reduce_mean", {}, rows);
  const Var deviation = square(wide - mean).apply("reduce_mean", {}, rows) + c.real("epsilon", 1e-12);
  c.out = {normalised(c, sum, c.in[2], centred && c.given(3) ? c.in[3] : nullptr, centred), mean.value,
           rsqrt(deviation).value, sum};
}

void simplified_layer_norm(OpContext& c) {
  c.expect_inputs(2, 2);
  c.out = {normalised(c, c.in[0], c.in[1], nullptr, false)};
}

/// Words, places and kinds of tokens, summed and normalised.
void embed_layer_norm(OpContext& c) {
  c.expect_inputs(1, 9);
  Builder& b = c.b;
  if (c.rank(0) != 2) fail(ErrorKind::invalid_model, "", "the ids have {} dims, expected 2", c.rank(0));
  Value* places = c.given(8) ? c.in[8] : counted(scalar_dim(c.in[0], 1, b), b);
  Value* sum = b.add("add", {b.add("gather", {c.in[2], c.in[0]}), b.add("gather", {c.in[3], places})});
  if (c.given(1) && c.given(4)) sum = b.add("add", {sum, b.add("gather", {c.in[4], c.in[1]})});
  Value* lengths = b.add("broadcast_to", {b.constant(Tensor::scalar_i64(0)), dim_of(c.in[0], 0, b)});
  if (c.given(7)) lengths = b.add("reduce_sum", {cast_to(c.in[7], kI64, b)}, {{"axes", std::vector<int64_t>{1}}});
  c.out = {normalised(c, sum, c.in[5], c.in[6], true), cast_to(lengths, kI32, b), sum};
}

/// Heads [batch, heads, length, size] of one attention, and what its scores get.
struct Heads {
  Value *query, *key, *value;
  Value *added = nullptr, *allowed = nullptr;
  Value* sink = nullptr;  // a score beside those of the keys, which takes its share and gives nothing: [heads, 1, 1]
};

void require(OpContext& c, Heads& heads, Value* condition) {
  heads.allowed = heads.allowed ? c.b.add("and", {heads.allowed, condition}) : condition;
}

Value* attend(OpContext& c, const Heads& heads, double filter) {
  Builder& b = c.b;
  const int64_t count = known_dim(c, heads.query, 1, "the heads"),
                size = known_dim(c, heads.query, 3, "the size of the heads");
  double scale = c.real("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(size));
  Value *keys = repeated_heads(c, heads.key, count), *values = repeated_heads(c, heads.value, count);
  Var scores = Var(b, b.add("matmul", {heads.query, keys}, {{"transpose_b", true}})) * scale;
  if (const double cap = c.real("softcap", 0); cap > 0) scores = (scores / cap).apply("tanh") * cap;
  if (heads.added) scores = scores + Var(b, heads.added);
  if (heads.allowed) scores = scores + select(Var(b, heads.allowed), scores.number(0), scores.number(filter));
  const Attributes last{{"axis", int64_t{-1}}};
  if (!heads.sink) return out_of_heads(c, b.add("matmul", {b.add("softmax", {scores.value}, last), values}));
  const auto cut = [&](Value* x, int64_t begin, Value* end) {
    return b.add("slice", {x, b.ints({0, 0, 0, begin}), joined({b.ints({kToTheEnd, kToTheEnd, kToTheEnd}), end}, b)});
  };
  Value* column = b.add("shape_of", {cut(scores.value, 0, b.ints({1}))});
  Value* with = b.add("concat", {scores.value, b.add("broadcast_to", {heads.sink, column})}, {{"axis", int64_t{3}}});
  Value* shares = cut(b.add("softmax", {with}, last), 0, dim_of(scores.value, 3, b));
  return out_of_heads(c, b.add("matmul", {shares, values}));
}

/// Numbers of the queries [queries, 1] and keys [keys], where `past` keys stand before the first query.
std::pair<Value*, Value*> places(const Heads& heads, Value* past, Builder& b) {
  Value* queries = expand_dims(counted(scalar_dim(heads.query, 2, b), b), {1}, b);
  return {past ? b.add("add", {queries, past}) : queries, counted(scalar_dim(heads.key, 2, b), b)};
}

/// A mask by keys: 1 where they count, [batch, keys] or [batch, queries, keys], or how many count, [batch].
void mask_keys(OpContext& c, Heads& heads, size_t input) {
  Builder& b = c.b;
  if (!c.given(input)) return;
  const size_t rank = c.rank(input);
  Value* mask = cast_to(c.in[input], kI64, b);
  if (rank == 2 || rank == 3) {
    mask = rank == 2 ? expand_dims(mask, {1, 2}, b) : expand_dims(mask, {1}, b);
    return require(c, heads, b.add("greater", {mask, b.constant(Tensor::scalar_i64(0))}));
  }
  if (rank != 1) c.refuse("a mask of {} dims is not supported", rank);
  const Dim own = mask->type.shape.dims[0], batch = heads.query->type.shape.dims[0];
  if (own.known() && batch.known() && own != batch) c.refuse("a mask of {} sequences for {}", own.size, batch.size);
  require(c, heads, b.add("less", {places(heads, nullptr, b).second, reshape_to(mask, {{-1, 0}, {1}, {1}, {1}}, b)}));
}

Value* before(OpContext& c, Value* past, Value* now) { return c.b.add("concat", {past, now}, {{"axis", int64_t{2}}}); }

void packed_attention(OpContext& c) {
  c.expect_inputs(2, 7);
  Builder& b = c.b;
  const int64_t count = c.integer("num_heads"), width = known_dim(c, c.in[1], 1, "the width of the weights");
  if (c.given(6) || c.integer("past_present_share_buffer", 0) != 0 || c.integer("do_rotary", 0) != 0)
    c.refuse("a shared cache and rotation inside Attention are not supported");
  const std::vector<int64_t> sizes = c.integers("qkv_hidden_sizes", {width / 3, width / 3, width / 3});
  if (sizes.size() != 3)
    fail(ErrorKind::invalid_model, "", "qkv_hidden_sizes has {} numbers, expected 3", sizes.size());
  Value* all = plus(c, b.add("matmul", {c.in[0], c.in[1]}), 2);
  int64_t begin = 0;
  const auto part = [&](size_t i) {
    const int64_t end = begin + std::clamp<int64_t>(sizes[i], 0, width);
    Value* made = b.add("slice", {all, b.ints({0, 0, begin}), b.ints({kToTheEnd, kToTheEnd, end})});
    begin = end;
    return in_heads(c, made, count);
  };
  Heads heads{part(0), part(1), part(2)};
  Value* past = nullptr;
  if (c.given(4)) {
    const auto kept = [&](int64_t i) { return b.add("gather", {c.in[4], b.constant(Tensor::scalar_i64(i))}); };
    past = scalar_dim(kept(0), 2, b);
    heads.key = before(c, kept(0), heads.key), heads.value = before(c, kept(1), heads.value);
  }
  mask_keys(c, heads, 3);
  if (c.given(5)) heads.added = c.in[5];
  if (c.integer("unidirectional", 0) != 0) {
    const auto [queries, keys] = places(heads, past, b);
    require(c, heads, b.add("less_equal", {keys, queries}));
  }
  c.out = {attend(c, heads, c.real("mask_filter_value", -10000))};
  if (c.node().outputs.size() > 1)
    c.out.push_back(
        b.add("concat", {expand_dims(heads.key, {0}, b), expand_dims(heads.value, {0}, b)}, {{"axis", int64_t{0}}}));
}

void multi_head_attention(OpContext& c) {
  c.expect_inputs(1, 8);
  Builder& b = c.b;
  const int64_t count = c.integer("num_heads");
  const bool all_packed = c.rank(0) == 5,
             packed = c.given(1) && c.rank(1) == 5;  // [batch, length, heads, 3 or 2, size]
  if (!all_packed && (c.rank(0) != 3 || (!packed && (!c.given(1) || !c.given(2)))))
    c.refuse("a query of {} dims without keys and values is not supported", c.rank(0));
  int64_t begin = 0;
  const auto unpacked = [&](size_t input, int64_t at) {
    Value* x = b.add("gather", {c.in[input], b.constant(Tensor::scalar_i64(at))}, {{"axis", int64_t{3}}});
    if (c.given(3)) {
      const int64_t size = known_dim(c, x, 3, "the size of the heads"), end = begin + count * size;
      x = b.add("add", {x, b.add("reshape", {part_of(c.in[3], begin, end, b), b.ints({count, size})})});
      begin = end;
    }
    return transposed(x, {0, 2, 1, 3}, b);
  };
  const auto part = [&](size_t i) {
    if (all_packed) return unpacked(0, static_cast<int64_t>(i));
    if (packed && i > 0) return unpacked(1, static_cast<int64_t>(i) - 1);
    if (c.rank(i) == 4) return c.in[i];
    if (c.rank(i) != 3) c.refuse("input {} has {} dims", i, c.rank(i));
    const int64_t end = begin + known_dim(c, c.in[i], 2, "the hidden size");
    Value* x = c.in[i];
    if (c.given(3)) x = b.add("add", {x, part_of(c.in[3], begin, end, b)});
    begin = end;
    return in_heads(c, x, count);
  };
  Value *query = part(0), *key = part(1);
  Heads heads{query, key, part(2)};
  Value* past = nullptr;
  if (c.given(6) != c.given(7)) fail(ErrorKind::invalid_model, "", "has one of past key and past value");
  if (c.given(6)) {
    past = scalar_dim(c.in[6], 2, b);
    heads.key = before(c, c.in[6], heads.key), heads.value = before(c, c.in[7], heads.value);
  }
  mask_keys(c, heads, 4);
  if (c.given(5)) heads.added = c.in[5];
  if (c.integer("unidirectional", 0) != 0) {
    const auto [queries, keys] = places(heads, past, b);
    require(c, heads, b.add("less_equal", {keys, queries}));
  }
  c.out = {attend(c, heads, c.real("mask_filter_value", -10000)), heads.key, heads.value};
}

void contrib_rotary_embedding(OpContext& c) {
  c.expect_inputs(4, 4);
  Builder& b = c.b;
  const bool flat = c.rank(0) == 3;
  if (!flat && c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the input has {} dims, expected 3 or 4", c.rank(0));
  if (c.integer("is_packed_batching", 0) != 0) c.refuse("packed batches are not supported");
  const int64_t half = known_dim(c, c.in[2], 1, "the size of the cache"), told = c.integer("rotary_embedding_dim", 0);
  const int64_t count = c.integer("num_heads", 0);
  Value* x = c.in[0];
  if (flat)
    x = in_heads(c, x, count > 0 ? count : known_dim(c, x, 2, "the hidden size") / std::max<int64_t>(1, 2 * half));
  Value* at = cast_to(c.in[1], kI64, b);
  if (c.rank(1) == 1) {  // the first place, for all rows of the batch
    Value* each = b.add("add", {counted(scalar_dim(x, 2, b), b), at});
    at = b.add("broadcast_to", {each, joined({dim_of(x, 0, b), dim_of(x, 2, b)}, b)});
  }
  const auto angles = [&](size_t input) { return b.add("gather", {c.in[input], at}); };
  Value* y = turned(x, angles(2), angles(3), told > 0 ? told : 2 * half, c.integer("interleaved", 0) != 0, b);
  c.out = {flat ? out_of_heads(c, y) : y};
}

/// Attention over a cache: row by row of the batch, so many keys of the past are valid, and the new ones come behind them.
void group_query_attention(OpContext& c) {
  c.expect_inputs(1, 12);
  Builder& b = c.b;
  const int64_t count = c.integer("num_heads"), own = c.integer("kv_num_heads");
  Value *q = c.in[0], *k, *v;
  if (c.given(1)) {
    q = in_heads(c, q, count), k = in_heads(c, c.in[1], own), v = in_heads(c, c.in[2], own);
  } else {
    if (count < 1 || own < 1) fail(ErrorKind::invalid_model, "", "has {} and {} heads", count, own);
    const int64_t size = known_dim(c, q, 2, "the hidden size") / (count + 2 * own);
    const auto part = [&](int64_t begin, int64_t heads) {
      Value* x = b.add("slice",
                       {c.in[0], b.ints({0, 0, begin * size}), b.ints({kToTheEnd, kToTheEnd, (begin + heads) * size})});
      return in_heads(c, x, heads);
    };
    q = part(0, count), k = part(count, own), v = part(count + own, own);
  }
  Value *fresh = scalar_dim(q, 2, b), *zero = b.constant(Tensor::scalar_i64(0)),
        *one = b.constant(Tensor::scalar_i64(1));
  Value* totals = reshape_to(b.add("add", {cast_to(c.in[5], kI64, b), one}), {{-1}, {1}}, b);  // keys of each row
  Value* past = b.add("maximum", {b.add("sub", {totals, fresh}), zero});
  if (c.integer("do_rotary", 0) != 0) {
    Value* at = b.add("add", {counted(fresh, b), past});
    if (c.given(9)) at = cast_to(c.in[9], kI64, b);
    const auto spun = [&](Value* x) {
      return turned(x, b.add("gather", {c.in[7], at}), b.add("gather", {c.in[8], at}),
                    2 * known_dim(c, c.in[7], 1, "the size of the cache"), c.integer("rotary_interleaved", 0) != 0, b);
    };
    q = spun(q), k = spun(k);
  }
  Value* room = c.given(3) ? scalar_dim(c.in[3], 2, b) : zero;
  Value* length = b.add("maximum", {room, reshape_to(cast_to(c.in[6], kI64, b), {}, b)});
  Value* keys = counted(length, b);
  Value* behind = b.add("sub", {keys, past});  // [batch, keys]: below 0 in the past
  Value* from = b.add(
      "select", {b.add("less", {behind, zero}), keys,
                 b.add("minimum", {b.add("add", {behind, room}), b.add("sub", {b.add("add", {room, fresh}), one})})});
  from = b.add("broadcast_to", {from, joined({dim_of(q, 0, b), length}, b)});
  const auto present = [&](size_t input, Value* now) {
    Value* all = transposed(c.given(input) ? before(c, c.in[input], now) : now, {0, 2, 1, 3}, b);
    all = b.add("gather", {all, from}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}});
    return transposed(all, {0, 2, 1, 3}, b);
  };
  Heads heads{q, present(3, k), present(4, v)};
  if (c.given(11))
    heads.sink = cast_to(reshape_to(c.in[11], {{count}, {1}, {1}}, b), q->type.dtype, b);
  else if (c.integer("smooth_softmax", 0) > 0)
    heads.sink = b.scalar_like(q, 0);
  Value* ahead = b.add("sub", {expand_dims(behind, {1, 2}, b), expand_dims(counted(fresh, b), {1}, b)});
  require(c, heads, b.add("less_equal", {ahead, zero}));
  if (const int64_t window = c.integer("local_window_size", -1); window > 0)
    require(c, heads, b.add("greater", {ahead, b.constant(Tensor::scalar_i64(-window))}));
  if (c.given(10)) heads.added = c.in[10];
  c.out = {attend(c, heads, -std::numeric_limits<double>::infinity()), heads.key, heads.value};
}

constexpr Row kContribRows[] = {
    {"Attention", packed_attention, nullptr, kMicrosoft},
    {"BiasAdd", bias_add, nullptr, kMicrosoft},
    {"BiasGelu", bias_add_gelu, nullptr, kMicrosoft},
    {"BiasSplitGelu", bias_split_gelu, nullptr, kMicrosoft},
    {"EmbedLayerNormalization", embed_layer_norm, nullptr, kMicrosoft},
    {"FastGelu", bias_add_gelu, "approximate", kMicrosoft},
    {"FusedMatMul", fused_matmul, nullptr, kMicrosoft},
    {"GroupQueryAttention", group_query_attention, nullptr, kMicrosoft},
    {"MultiHeadAttention", multi_head_attention, nullptr, kMicrosoft},
    {"QuickGelu", quick_gelu, nullptr, kMicrosoft},
    {"RotaryEmbedding", contrib_rotary_embedding, nullptr, kMicrosoft},
    {"SimplifiedLayerNormalization", simplified_layer_norm},
    {"SimplifiedLayerNormalization", simplified_layer_norm, nullptr, kMicrosoft},
    {"SkipLayerNormalization", skip_layer_norm, "centred", kMicrosoft},
    {"SkipSimplifiedLayerNormalization", skip_layer_norm, nullptr, kMicrosoft},
    {"TransposeMatMul", fused_matmul, nullptr, kMicrosoft},
};

}  // namespace

std::span<const Row> contrib_rows() { return kContribRows; }

}  // namespace cairn::onnx
