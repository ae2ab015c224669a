#include "frontends/caffe/boxes.h"

#include <limits>

#include "ops/gradients.h"

namespace cairn::caffe {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

int64_t known(LayerContext& c, Var x, size_t axis) {
  const Dim& dim = x.shape().dims[axis];
  if (!dim.known()) c.refuse("the number of boxes and classes must be known");
  return dim.size;
}

Var never_like(Var x) { return x.number(kNever).apply("broadcast_to", {x.apply("shape_of")}); }

struct Top {
  Var values, places;
};
Top top(Var x, int64_t k) {
  Builder& b = *x.builder;
  const Node* node = b.add_node(op_named("top_k"), {x.value, b.constant(Tensor::scalar_i64(k))});
  return {{b, node->result(0)}, cast({b, node->result(1)}, kI64)};
}

Var minus_one_behind(Var x, std::vector<int64_t> dims) {
  return x.apply("reshape", {{*x.builder, x.builder->ints(dims)}});
}

}  // namespace

Var column(Var x, int64_t at) {
  std::vector<int64_t> begin(x.shape().rank(), 0), end(x.shape().rank(), kToTheEnd);
  begin.back() = at, end.back() = at + 1;
  return x.apply("slice", {{*x.builder, x.builder->ints(begin)}, {*x.builder, x.builder->ints(end)}});
}

Var picked(Var x, Var places) {
  return x.apply("gather", {places}, {{"axis", int64_t{1}}, {"batch_dims", int64_t{1}}});
}

Var beside(const std::vector<Var>& parts, int64_t axis) { return cairn::concat(parts, axis); }

Var numbers(Builder& b, std::vector<int64_t> dims, const std::vector<float>& values) {
  return {b, b.constant(Tensor::of<float>(kF32, std::move(dims), values))};
}

Var surviving(LayerContext& c, Var boxes, Var scores, int64_t most, double iou, double least) {
  Builder& b = c.b;
  const int64_t classes = known(c, scores, 1), n = known(c, scores, 2), k = std::min(most, n);
  if (most < 1 || n < 1) c.invalid("{} of {} boxes cannot be chosen", most, n);
  const Var all = scores;
  if (k < n) {
    const Top best = top(scores, k);
    scores = never_like(scores).apply("scatter_elements", {best.places, best.values}, {{"axis", int64_t{2}}});
  }
  // A box whose right side lies left of its left one has no area, and does not stand for one with both swapped.
  const auto last = static_cast<int64_t>(boxes.shape().rank()) - 1;
  const Var left = column(boxes, 0), top_side = column(boxes, 1);
  boxes = beside({left, top_side, maximum(left, column(boxes, 2)), maximum(top_side, column(boxes, 3))}, last);
  const bool own = last == 3;
  const Var each = own ? minus_one_behind(scores, {-1, 1, n}) : scores;
  if (own) boxes = minus_one_behind(boxes, {-1, n, 4});
  const Var rows = boxes.apply("class_non_max_suppression",
                               {each, {b, b.constant(Tensor::scalar_i64(k))}, each.number(iou), each.number(least)});
  const Var weights{b, b.ints({(own ? 1 : classes) * n, n, 1})};
  const Var place = reduce_sum(rows * weights, {1}), flat = minus_one_behind(scores, {-1});
  const Var kept = never_like(flat).apply("scatter_elements", {place, flat.apply("gather", {place})});
  return reshape_like(kept, all);
}

Best best_of(LayerContext& c, Var scores, int64_t most) {
  Builder& b = c.b;
  const int64_t classes = known(c, scores, 1), n = known(c, scores, 2), k = std::min(most, classes * n);
  constexpr int64_t kExact = 1 << 24;  // whole numbers that f32 holds
  if (k < 1 || k >= kExact / (classes + 2)) c.invalid("{} of {} boxes cannot be chosen", most, classes * n);
  const Top best = top(minus_one_behind(scores, {-1, classes * n}), k);
  const Var is_box = best.values > kNever;
  const Var kind = cast(best.places.apply("floor_div", {best.places.number(static_cast<double>(n))}), kF32);
  const Var order = cast(counting(Size(b, k)), kF32) +
                    select(is_box, kind, kind.number(static_cast<double>(classes))) * static_cast<double>(k);
  const Var at = top(-order, k).places;
  return {picked(best.values, at), picked(best.places, at), cast(reduce_sum(cast(is_box, kI32), {1}, true), kI64)};
}

Var padded_rows(LayerContext& c, Var x, const Best& best, int64_t rows) {
  const Var is_box{c.b, expand_dims((best.score > kNever).value, {2}, c.b)};
  x = select(is_box, x, x.number(0));
  const int64_t missing = rows - known(c, x, 1);
  if (missing <= 0) return x;
  return x.apply("pad", {{c.b, c.b.constant(Tensor::of<int64_t>(kI64, {3, 2}, {0, 0, 0, missing, 0, 0}))}});
}

Value* counts(const Best& best) {
  Builder& b = *best.count.builder;
  const Var pairs{b, b.constant(Tensor::of<int64_t>(kI64, {2, 2}, {0, 0, 0, 7}))};
  return cast(best.count, kI32).apply("pad", {pairs}).value;
}

}  // namespace cairn::caffe
