// ONNX's boxes and scattered elements: NonMaxSuppression, ScatterElements and Scatter.
#include <numeric>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

/// Where each element of a tensor lies in one of `whole` dims: offsets along all axes but one.
Tensor offsets_beside(const std::vector<int64_t>& dims, const std::vector<int64_t>& whole, size_t left_out) {
  Tensor offsets = Tensor::zeros(kI64, dims);
  auto values = offsets.mutable_values<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), step = 1;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis], step *= whole[axis])
      if (axis != left_out) values[i] += rest % dims[axis] * step;
  }
  return offsets;
}

void scatter_elements(OpContext& c) {
  c.expect_inputs(3, 3);
  constexpr int64_t kMost = int64_t{1} << 26;
  const size_t rank = c.rank(0);
  if (c.rank(1) != rank || rank == 0) fail(ErrorKind::invalid_model, "", "indices and data differ in rank");
  if (!c.in[0]->type.is_static() || !c.in[1]->type.is_static()) c.refuse("the dims of data and indices must be known");
  const std::vector<int64_t> whole = c.in[0]->type.shape.sizes(), dims = c.in[1]->type.shape.sizes();
  const auto axis = static_cast<size_t>(normal_axis(c.integer("axis", 0), rank));
  for (size_t i = 0; i < rank; ++i)
    if (i != axis && dims[i] > whole[i]) fail(ErrorKind::invalid_model, "", "dim {} of the indices is too large", i);
  const auto count = element_count(dims);
  if (!count || *count > kMost) c.refuse("has more than {} indices", kMost);
  const int64_t step =
      std::accumulate(whole.begin() + static_cast<int64_t>(axis) + 1, whole.end(), int64_t{1}, std::multiplies<>());
  Value* at = cast_to(c.in[1], kI64, c.b);
  Value* size = scalar_like(at, static_cast<double>(whole[axis]), c.b);
  at = c.b.add("select", {c.b.add("less", {at, scalar_like(at, 0, c.b)}), c.b.add("add", {at, size}), at});
  at = c.b.add("add", {c.b.add("mul", {at, scalar_like(at, static_cast<double>(step), c.b)}),
                       c.b.constant(offsets_beside(dims, whole, axis))});
  Value* x = c.b.add("reshape", {c.in[0], c.b.ints({-1})});
  Value* updates = c.b.add("reshape", {c.in[2], c.b.ints({-1})});
  const std::string mode = c.text("reduction", "none");
  if (mode == "none")
    x = c.b.add("scatter_update", {x, c.b.add("reshape", {at, c.b.ints({*count, 1})}), updates});
  else if (mode == "add" || mode == "mul" || mode == "min" || mode == "max")
    x = c.b.add("scatter_reduce", {x, c.b.add("reshape", {at, c.b.ints({*count})}), updates}, {{"mode", mode}});
  else
    c.refuse("reduction '{}' is not supported", printable(mode));
  c.out = {c.b.add("reshape", {x, c.b.ints(whole)})};
}

/// Corners of boxes [n, 4] that are given by centre and size: x, y, width, height.
Value* corners(Value* boxes, Builder& b) {
  auto columns = [&](int64_t first) {
    return b.add("slice", {boxes, b.ints({0, first}), b.ints({kToTheEnd, first + 2})});
  };
  Value* half = b.add("mul", {columns(2), scalar_like(boxes, 0.5, b)});
  return b.add("concat", {b.add("sub", {columns(0), half}), b.add("add", {columns(0), half})}, {{"axis", int64_t{1}}});
}

/// Rows [image, class, box] of what is kept for each image and class of boxes [images, n, 4], scores [images, classes, n].
void non_max_suppression(OpContext& c) {
  c.expect_inputs(2, 5);
  constexpr int64_t kMost = 4096;
  if (c.rank(0) != 3 || c.rank(1) != 3)
    fail(ErrorKind::invalid_model, "", "boxes and scores have other dims than three");
  const Dim images = c.in[1]->type.shape.dims[0], classes = c.in[1]->type.shape.dims[1];
  if (!images.known() || !classes.known()) c.refuse("images and classes must be known");
  if (images.size * classes.size > kMost) c.refuse("has more than {} classes", kMost);
  auto scalar = [&](size_t input, double fallback) {
    if (!c.given(input)) return scalar_like(c.in[0], fallback, c.b);
    return cast_to(c.b.add("reshape", {c.in[input], c.b.ints({})}), c.in[0]->type.dtype, c.b);
  };
  Value* most = c.given(2) ? c.b.add("reshape", {c.in[2], c.b.ints({})}) : c.b.constant(Tensor::scalar_i64(0));
  most = cast_to(most, kI32, c.b);
  Value *iou = scalar(3, 0), *least = scalar(4, -std::numeric_limits<double>::infinity()), *sigma = scalar(SIZE_MAX, 0);
  auto part = [&](Value* x, const std::vector<int64_t>& at) {  // x[at...], without these dims
    std::vector<int64_t> begin(3, 0), end(3, kToTheEnd), axes(at.size());
    for (size_t i = 0; i < at.size(); ++i) begin[i] = at[i], end[i] = at[i] + 1;
    std::iota(axes.begin(), axes.end(), 0);
    return squeeze(c.b.add("slice", {x, c.b.ints(begin), c.b.ints(end)}), axes, c.b);
  };
  std::vector<Value*> kept;
  for (int64_t image = 0; image < images.size; ++image) {
    Value* boxes = part(c.in[0], {image});
    if (c.integer("center_point_box", 0) != 0) boxes = corners(boxes, c.b);
    for (int64_t k = 0; k < classes.size; ++k) {
      cairn::Node* node =
          c.b.add_node(op_named("non_max_suppression"), {boxes, part(c.in[1], {image, k}), most, iou, least, sigma});
      Value* rows = expand_dims(cast_to(node->results[0].get(), kI64, c.b), {1}, c.b);
      Value* place = c.b.constant(Tensor::of<int64_t>(kI64, {1, 2}, {image, k}));
      Value* sizes = joined({dim_of(rows, 0, c.b), c.b.ints({2})}, c.b);
      kept.push_back(c.b.add("concat", {c.b.add("broadcast_to", {place, sizes}), rows}, {{"axis", int64_t{1}}}));
    }
  }
  if (kept.empty()) c.refuse("has no classes");
  c.out = {kept.size() == 1 ? kept[0] : c.b.add("concat", kept, {{"axis", int64_t{0}}})};
}

constexpr Row kDetectionRows[] = {
    {"NonMaxSuppression", non_max_suppression},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
};

}  // namespace

std::span<const Row> detection_rows() { return kDetectionRows; }

}  // namespace cairn::onnx
