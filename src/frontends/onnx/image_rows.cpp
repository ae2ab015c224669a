// ONNX's ops on images beyond plain convolution and pooling: transposed convolution and resampling.
#include <algorithm>
#include <cmath>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/resample.h"
#include "frontends/reshape.h"
#include "frontends/values.h"

namespace cairn::onnx {
namespace {

/// A list attribute of the right length with numbers in range; one number for each spatial dim.
std::vector<int64_t> numbers(const OpContext& c, std::string_view name, size_t count, int64_t fallback, int64_t least) {
  std::vector<int64_t> list = c.integers(name, count, fallback);
  for (int64_t number : list)
    if (number < least || number > (int64_t{1} << 31))
      fail(ErrorKind::invalid_model, "", "attribute {} has {}", name, number);
  return list;
}

/// One spatial dim of a transposed convolution: out = stride * (in - 1) + extra + reach - before - after.
struct Stretch {
  int64_t stride, extra, reach, before = 0, after = 0;
  void take_off(int64_t missing, bool more_behind) {
    if (missing < 0) {  // what no window reaches is 0
      extra -= missing;
      if (extra >= stride) fail(ErrorKind::unsupported, "", "an output larger than the windows reach is not supported");
      return;
    }
    before = more_behind ? missing / 2 : missing - missing / 2;
    after = missing - before;
  }
  int64_t added() const { return extra + reach - before - after - stride; }
};

std::vector<Stretch> stretches(const OpContext& c, size_t count) {
  const std::vector<int64_t> strides = numbers(c, "strides", count, 1, 1),
                             extra = numbers(c, "output_padding", count, 0, 0),
                             dilations = numbers(c, "dilations", count, 1, 1),
                             pads = numbers(c, "pads", 2 * count, 0, 0);
  const std::string mode = c.text("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    fail(ErrorKind::invalid_model, "", "auto_pad '{}' is unknown", printable(mode));
  std::vector<Stretch> all;
  for (size_t i = 0; i < count; ++i) {
    const Dim kernel = c.in[1]->type.shape.dims[2 + i];
    if (!kernel.known()) c.refuse("the kernel must have a known shape");
    Stretch one{strides[i], extra[i], (kernel.size - 1) * dilations[i] + 1};
    if (one.extra >= std::max(one.stride, dilations[i]))
      fail(ErrorKind::invalid_model, "", "output_padding is {}, the stride {}", one.extra, one.stride);
    if (c.has("output_shape")) {
      const std::vector<int64_t> wanted = c.integers("output_shape");
      const Dim in = c.in[0]->type.shape.dims[2 + i];
      if (!in.known()) c.refuse("output_shape needs an image of known size");
      if (wanted.size() < count) fail(ErrorKind::invalid_model, "", "output_shape has {} numbers", wanted.size());
      const int64_t out = wanted[wanted.size() - count + i];
      one.take_off(one.stride * (in.size - 1) + one.extra + one.reach - out, mode == "SAME_UPPER");
    } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      one.take_off(one.extra + one.reach - one.stride, mode == "SAME_UPPER");
    } else if (mode == "NOTSET") {
      one.before = pads[i], one.after = pads[count + i];
    }
    all.push_back(one);
  }
  return all;
}

/// The gradient of a convolution by its image is the transposed convolution.
void conv_transpose(OpContext& c) {
  c.expect_inputs(2, 3);
  const bool flat = c.rank(0) == 3, deep = c.rank(0) == 5;
  if (c.rank(0) < 3 || c.rank(0) > 5) c.refuse("images of {} dims are not supported, only 3 to 5", c.rank(0));
  if (c.rank(1) != c.rank(0)) fail(ErrorKind::invalid_model, "", "kernel has {} dims, image {}", c.rank(1), c.rank(0));
  const int64_t groups = c.integer("group", 1);
  const Dim each = c.in[1]->type.shape.dims[1];
  if (!each.known() || groups < 1 || groups > (1 << 24)) c.refuse("the kernel must have a known shape");
  std::vector<Stretch> spatial = stretches(c, c.rank(0) - 2);
  std::vector<int64_t> dilations = numbers(c, "dilations", spatial.size(), 1, 1);
  Value *x = c.in[0], *kernel = c.in[1];
  if (flat) {
    spatial.insert(spatial.begin(), Stretch{1, 0, 1});
    dilations.insert(dilations.begin(), 1);
    kernel = expand_dims(kernel, {2}, c.b);
  }
  using Order = std::vector<int64_t>;
  x = transposed(x, flat ? Order{0, 2, 1} : deep ? Order{0, 2, 3, 4, 1} : Order{0, 2, 3, 1}, c.b);
  if (flat) x = expand_dims(x, {1}, c.b);
  kernel = transposed(kernel, deep ? Order{2, 3, 4, 1, 0} : Order{2, 3, 1, 0}, c.b);
  std::vector<Value*> sizes{dim_of(x, 0, c.b)};
  std::vector<Dim> dims{x->type.shape.dims[0]};
  std::vector<int64_t> strides, pads;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const Stretch& one = spatial[i];
    Value* scaled = c.b.add("mul", {dim_of(x, 1 + i, c.b), c.b.ints({one.stride})});
    sizes.push_back(folded(c.b.add("add", {folded(scaled, c.b), c.b.ints({one.added()})}), c.b));
    const Dim in = x->type.shape.dims[1 + i];
    dims.push_back(in.known() ? Dim(in.size * one.stride + one.added()) : Dim());
    if (dims.back().known() && dims.back().size < 0)
      fail(ErrorKind::invalid_model, "", "the result has a negative size");
    strides.push_back(one.stride), pads.insert(pads.end(), {one.before, one.after});
  }
  dims.emplace_back(each.size * groups);
  sizes.push_back(c.b.ints({each.size * groups}));
  const Attributes attributes{{"strides", strides},
                              {"dilations", dilations},
                              {"groups", groups},
                              {"padding", std::string("explicit")},
                              {"pads", pads}};
  const OpDef& op = op_named(deep ? "conv3d_input_gradient" : "conv2d_input_gradient");
  Value* y =
      c.b.add_node(op, {x, kernel, joined(sizes, c.b)}, attributes, {}, {Type::tensor(x->type.dtype, Shape(dims))})
          ->result();
  if (c.given(2)) y = c.b.add("add", {y, c.in[2]});
  if (flat) y = squeeze(y, {1}, c.b);
  c.out = {transposed(y, flat ? Order{0, 2, 1} : deep ? Order{0, 4, 1, 2, 3} : Order{0, 3, 1, 2}, c.b)};
}

/// The scale or size that Resize gives for each dim of its input, as far as known during import.
struct Resampling {
  std::vector<double> scales;  // empty: sizes are given
  std::vector<int64_t> sizes;  // empty: scales are given, or the sizes are known only in a run
  Value* wanted = nullptr;     // sizes of all dims, later of height and width, known only in a run
  bool changes(const Value* x, size_t axis) const {
    const Dim in = x->type.shape.dims[axis];
    if (!scales.empty()) return scales[axis] != 1;
    return !sizes.empty() && sizes[axis] >= 0 && !(in.known() && in.size == sizes[axis]);
  }
  /// The same of a transposed tensor.
  void transpose(const std::vector<size_t>& permutation) {
    const auto move = [&](auto& list) {
      if (list.empty()) return;
      const auto old = list;
      for (size_t i = 0; i < list.size(); ++i) list[i] = old[permutation[i]];
    };
    move(scales), move(sizes);
  }
};

/// Upsample and the first version of Resize have (x, scales), later ones (x, roi, scales, sizes). Nothing where more is known only
/// in a run.
std::optional<Resampling> resampling(const OpContext& c) {
  const bool old = c.node().op == "Upsample" || c.opset < 11;
  c.expect_inputs(1, old ? 2 : 4);
  const size_t rank = c.rank(0);
  std::vector<int64_t> axes = c.integers("axes");
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : axes) axis = normal_axis(axis, rank);
  auto check = [&](size_t count) {
    if (count != axes.size())
      fail(ErrorKind::invalid_model, "", "has scales or sizes of {} dims, expected {}", count, axes.size());
  };
  Resampling result;
  const size_t at = old ? 1 : 2;
  std::optional<Tensor> scales = c.constant(at);
  if (c.given(at) && (!scales || scales->count() > 0)) {
    if (!scales) return std::nullopt;
    check(static_cast<size_t>(scales->count()));
    result.scales.assign(rank, 1);
    for (size_t i = 0; i < axes.size(); ++i) result.scales[static_cast<size_t>(axes[i])] = real_numbers(*scales)[i];
  } else if (!old && c.given(3)) {
    if (!c.constant(3)) {
      if (axes.size() != rank) return std::nullopt;
      result.wanted = c.in[3];
      return result;
    }
    const std::vector<int64_t> sizes = c.constant_integers(3, "the sizes");
    check(sizes.size());
    result.sizes.assign(rank, -1);
    for (size_t i = 0; i < axes.size(); ++i) result.sizes[static_cast<size_t>(axes[i])] = sizes[i];
  } else if (c.has("scales")) {
    const std::vector<float> list = c.reals("scales");
    check(list.size());
    result.scales.assign(list.begin(), list.end());
  } else {
    fail(ErrorKind::invalid_model, "", "has neither scales nor sizes");
  }
  return result;
}

/// The attributes of resize2d; nothing for a definition of a pixel's position that it lacks.
std::optional<Attributes> sampling(const OpContext& c) {
  const bool old = c.node().op == "Upsample" || c.opset < 11;
  const std::string mode = c.text("mode", "nearest");
  std::string coordinates = c.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  std::string rounding = c.text("nearest_mode", old ? "floor" : "round_prefer_floor");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") return std::nullopt;
  if (coordinates == "pytorch_half_pixel") coordinates = "half_pixel";  // apart from results of one pixel: see resize
  const bool middles = coordinates == "tf_half_pixel_for_nn" && mode == "nearest" && rounding == "floor";
  if (!middles && coordinates != "half_pixel" && coordinates != "asymmetric" && coordinates != "align_corners")
    return std::nullopt;
  if (c.integer("antialias", 0) != 0 || c.text("keep_aspect_ratio_policy", "stretch") != "stretch") return std::nullopt;
  if (middles) return Attributes{{"mode", mode}, {"coordinates", std::string("half_pixel")}, {"rounding", rounding}};
  Attributes attributes{{"mode", std::string(mode == "linear"  ? "bilinear"
                                             : mode == "cubic" ? "bicubic"
                                                               : "nearest")},
                        {"coordinates", coordinates}};
  if (mode == "cubic") {
    attributes.set("cubic", c.real("cubic_coeff_a", -0.75));
    attributes.set("exclude_outside", c.integer("exclude_outside", 0) != 0);
  }
  if (mode != "nearest") return attributes;
  const bool halves = coordinates == "half_pixel";  // there resize2d's floor rounds halves up
  if (halves && rounding == "floor") return std::nullopt;
  if (rounding == "round_prefer_floor")
    rounding = "half_down";
  else if (rounding == "round_prefer_ceil")
    rounding = halves ? "floor" : "half_up";
  else if (rounding != "floor" && rounding != "ceil")
    fail(ErrorKind::invalid_model, "", "nearest_mode '{}' is unknown", printable(rounding));
  attributes.set("rounding", rounding);
  return attributes;
}

/// Height and width of the result; null where resize2d would place the pixels otherwise.
Value* new_size(OpContext& c, Value* x, const Resampling& how) {
  if (how.wanted != nullptr) return how.wanted;
  std::vector<Value*> parts;
  for (size_t axis : {1, 2}) {
    const Dim in = x->type.shape.dims[axis];
    if (!how.sizes.empty()) {
      parts.push_back(how.sizes[axis] >= 0 ? c.b.ints({how.sizes[axis]}) : dim_of(x, axis, c.b));
      continue;
    }
    const double scale = how.scales[axis];
    if (!(scale > 0) || scale > 65536) fail(ErrorKind::invalid_model, "", "a scale is {}", scale);
    if (!in.known()) {
      if (scale != std::floor(scale)) return nullptr;
      Value* times = c.b.ints({static_cast<int64_t>(scale)});
      parts.push_back(c.b.add("mul", {dim_of(x, axis, c.b), times}));
      continue;
    }
    // The model positions the pixels by its scale; resize2d uses the ratio of the sizes instead.
    const double out = std::floor(static_cast<double>(in.size) * scale);
    if (out != static_cast<double>(in.size) * scale) return nullptr;
    parts.push_back(c.b.ints({static_cast<int64_t>(out)}));
  }
  return joined(parts, c.b);
}

/// Adds dims of 1 to images with fewer dims: before their last two, or next to their last one. Null for other images.
Value* as_image(OpContext& c, Value* x, Resampling& how, std::vector<int64_t>& added) {
  const size_t rank = c.rank(0);
  if (rank < 2 || rank > 4) return nullptr;
  if (rank == 2) added = {0, 1};
  if (rank == 3) added = {2};
  if (!added.empty() && how.wanted != nullptr) return nullptr;
  for (int64_t axis : added) {
    if (!how.scales.empty()) how.scales.insert(how.scales.begin() + axis, 1);
    if (!how.sizes.empty()) how.sizes.insert(how.sizes.begin() + axis, 1);
  }
  return added.empty() ? x : expand_dims(x, added, c.b);
}

/// Images with the channels last; null where resize2d does not apply.
Value* resized(OpContext& c, Value* x, const Resampling& how, const Attributes& attributes) {
  Value* size = new_size(c, x, how);
  if (size == nullptr) return nullptr;
  Value* y = c.b.add("resize2d", {x, size}, attributes);
  if (c.text("coordinate_transformation_mode", "") != "pytorch_half_pixel") return y;
  for (size_t i : {1, 2}) {
    const Dim in = x->type.shape.dims[i], out = y->type.shape.dims[i];
    const bool grows = !how.scales.empty() && how.scales[i] > 1;
    if (!grows && !(out.known() && out.size > 1) && !out.surely_equals(in)) return nullptr;
  }
  return y;
}

Value* resized_image(OpContext& c, Value* x, Resampling how, const Attributes& attributes) {
  std::vector<int64_t> added;
  x = as_image(c, x, how, added);
  if (x == nullptr) return nullptr;
  const bool channels_last = how.changes(x, 1) && !how.changes(x, 3);
  for (size_t axis : {size_t{0}, channels_last ? size_t{3} : size_t{1}})
    if (how.changes(x, axis)) return nullptr;
  if (!channels_last) {
    x = transposed(x, {0, 2, 3, 1}, c.b);
    how.transpose({0, 2, 3, 1});
    if (how.wanted) how.wanted = part_of(how.wanted, 2, 4, c.b);
  }
  Value* y = resized(c, x, how, attributes);
  if (y == nullptr) return nullptr;
  if (!channels_last) y = transposed(y, {0, 3, 1, 2}, c.b);
  return added.empty() ? y : squeeze(y, added, c.b);
}

/// Volumes of known dims: as images of one column along the depth, then slice by slice.
Value* resized_volume(OpContext& c, Value* x, Resampling how, const Attributes& attributes) {
  if (how.wanted || !x->type.is_static() || how.changes(x, 0) || how.changes(x, 1)) return nullptr;
  how.transpose({0, 2, 3, 4, 1});
  x = transposed(x, {0, 2, 3, 4, 1}, c.b);
  const auto dims = x->type.shape.sizes();
  Resampling depth, slices;
  if (!how.scales.empty())
    depth.scales = {1, how.scales[1], 1, 1}, slices.scales = {1, how.scales[2], how.scales[3], 1};
  if (!how.sizes.empty()) depth.sizes = {-1, how.sizes[1], -1, -1}, slices.sizes = {-1, how.sizes[2], how.sizes[3], -1};
  Value* y = c.b.add("reshape", {x, c.b.ints({dims[0], dims[1], 1, dims[2] * dims[3] * dims[4]})});
  if (how.changes(x, 1)) y = resized(c, y, depth, attributes);
  if (y == nullptr) return nullptr;
  const int64_t deep = y->type.shape.dims[1].size;
  y = c.b.add("reshape", {y, c.b.ints({dims[0] * deep, dims[2], dims[3], dims[4]})});
  y = resized(c, y, slices, attributes);
  if (y == nullptr) return nullptr;
  const auto& made = y->type.shape.dims;
  y = c.b.add("reshape", {y, c.b.ints({dims[0], deep, made[1].size, made[2].size, dims[4]})});
  return transposed(y, {0, 4, 1, 2, 3}, c.b);
}

void resize(OpContext& c) {
  const std::optional<Resampling> how = resampling(c);
  const std::optional<Attributes> attributes = sampling(c);
  const DType dtype = c.in[0]->type.dtype;
  const bool integers = dtype.is_integer() && c.text("mode", "nearest") != "nearest";
  Value *x = integers ? cast_to(c.in[0], kF32, c.b) : c.in[0], *y = nullptr;
  if (how && attributes)
    y = c.rank(0) == 5 ? resized_volume(c, x, *how, *attributes) : resized_image(c, x, *how, *attributes);
  if (y && integers) y = cast_to(whole_numbers(y, dtype, false, c.b), dtype, c.b);
  c.out = {y ? y : resampled(c)};
}

constexpr Row kImageRows[] = {
    {"ConvTranspose", conv_transpose},
    {"Resize", resize},
    {"Upsample", resize},
};

}  // namespace

std::span<const Row> image_rows() { return kImageRows; }

}  // namespace cairn::onnx
