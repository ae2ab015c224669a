// TensorFlow's pooling that also returns positions, and greyscale dilation, with their gradients.
#include "frontends/reshape.h"
#include "frontends/tensorflow/image.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

Value* as_vector(OpContext& c, Value* x) { return c.b.add("reshape", {x, c.b.ints({-1})}); }

/// The number of elements of one image of x, as a scalar.
Var elements_of_image(OpContext& c, Value* x) {
  Value* sizes = folded(c.b.add("shape_of", {x}), c.b);
  Value* product = c.b.add("reduce_prod", {part_of(sizes, 1, 4, c.b)}, {{"axes", std::vector<int64_t>{0}}});
  return Var(c.b, folded(product, c.b));
}

void max_pool_with_places(OpContext& c) {
  c.expect_inputs(1);
  const Image image(c);
  if (image.channels_first()) c.refuse("data_format NCHW is not supported");
  Value* x = c.in[0];
  Value* at = c.b.add("max_pool2d_indices", {x}, image.pooling());
  Value* y = c.b.add("gather", {as_vector(c, x), at}, {{"axis", int64_t{0}}});
  const DType dtype = c.dtype("Targmax", kDtInt64);
  if (!c.boolean("include_batch_in_index", false)) at = Var(c.b, at).apply("mod", {elements_of_image(c, x)}).value;
  c.out = {y, cast_to(at, dtype, c.b)};
}

/// image, dy, places: each element of dy is added at its place.
void max_pool_gradient_by_places(OpContext& c) {
  c.expect_inputs(3);
  for (size_t i : {0, 1, 2})
    if (c.rank(i) != 4) fail(ErrorKind::invalid_model, "", "input {} has {} dims, expected 4", i, c.rank(i));
  Value *x = c.in[0], *at = cast_to(c.in[2], kI64, c.b);
  if (!c.boolean("include_batch_in_index", false)) {
    Value* number = expand_dims(counted(scalar_dim(x, 0, c.b), c.b), {1, 2, 3}, c.b);
    at = (Var(c.b, at) + Var(c.b, number) * elements_of_image(c, x)).value;
  }
  Value* count = folded(c.b.add("size_of", {x}), c.b);
  Value* sums = c.b.add("segment_reduce", {as_vector(c, c.in[1]), as_vector(c, at), count},
                        {{"mode", std::string("sum")}, {"empty_is_zero", true}});
  std::vector<NewDim> dims;
  for (const Dim& dim : x->type.shape.dims) dims.push_back({dim.known() ? dim.size : -1, -1});
  const bool known = x->type.is_static();
  c.out = {known ? reshape_to(sums, dims, c.b) : reshape_by(sums, folded(c.b.add("shape_of", {x}), c.b), c.b)};
}

/// image, its pooled form, a tensor like the image: that tensor where each window's largest element is. What the gradient of
/// a pooling's gradient is made of. The second version has window and strides as inputs.
void max_pool_second_gradient(OpContext& c) {
  const bool inputs = c.node().op == "MaxPoolGradGradV2";
  c.expect_inputs(inputs ? 5 : 3);
  const Image image(c);
  const Attributes attributes = inputs ? image.pooling_by_inputs(3) : image.pooling();
  Value* at = c.b.add("max_pool2d_indices", {image.in(c.in[0])}, attributes);
  c.out = {image.out(c.b.add("gather", {as_vector(c, image.in(c.in[2])), at}, {{"axis", int64_t{0}}}))};
}

/// Window and strides are inputs.
void max_pool_by_inputs(OpContext& c) {
  c.expect_inputs(3);
  const Image image(c);
  c.out = {image.out(c.b.add("max_pool2d", {image.in(c.in[0])}, image.pooling_by_inputs(1)))};
}

void dilation(OpContext& c) {
  c.expect_inputs(op_named(c.target).inputs.size());
  const Image image(c);
  Attributes attributes{{"strides", image.spatial("strides")}, {"dilations", image.spatial("rates")}};
  image.set_padding(attributes);
  c.out = {c.b.add(c.target, c.in, attributes)};
}

constexpr Row kWindowRows[] = {
    {"Dilation2D", dilation, "dilation2d"},
    {"Dilation2DBackpropFilter", dilation, "dilation2d_kernel_gradient"},
    {"Dilation2DBackpropInput", dilation, "dilation2d_input_gradient"},
    {"MaxPoolGradGrad", max_pool_second_gradient},
    {"MaxPoolGradGradV2", max_pool_second_gradient},
    {"MaxPoolGradWithArgmax", max_pool_gradient_by_places},
    {"MaxPoolV2", max_pool_by_inputs},
    {"MaxPoolWithArgmax", max_pool_with_places},
};

}  // namespace

std::span<const Row> window_rows() { return kWindowRows; }

}  // namespace cairn::tensorflow
