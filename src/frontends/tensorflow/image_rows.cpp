// TensorFlow's ops on images and boxes: resizing, patches, blocks of pixels, suppression of overlapping boxes.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

Value* float_scalar(OpContext& c, float value) { return c.b.constant(Tensor::scalar_f32(value)); }

Attributes resize_attributes(OpContext& c, const std::string& mode) {
  const bool corners = c.boolean("align_corners", false), half = c.boolean("half_pixel_centers", false);
  if (corners && half) fail(ErrorKind::invalid_model, "", "aligns corners and shifts by half a pixel");
  Attributes attributes{{"mode", mode},
                        {"coordinates", std::string(corners ? "align_corners"
                                                    : half  ? "half_pixel"
                                                            : "asymmetric")}};
  if (mode == "nearest" && corners) attributes.set("rounding", std::string("half_up"));
  if (mode == "bicubic") {
    attributes.set("cubic", half ? -0.5 : -0.75);
    attributes.set("exclude_outside", half);
    attributes.set("steps", true);
  }
  return attributes;
}

void resize(OpContext& c) {
  c.expect_inputs(2);
  const std::string mode = c.target;
  Value* x = mode == "nearest" ? c.in[0] : cast_to(c.in[0], kF32, c.b);
  Value* y = c.b.add("resize2d", {x, c.in[1]}, resize_attributes(c, mode));
  if (auto sizes = sizes_in(c.in[1]); sizes && sizes->size() == 2 && y->type.shape.ranked) {
    for (size_t i : {0, 1})
      if ((*sizes)[i].symbol != nullptr) y->type.shape.dims[1 + i] = (*sizes)[i];
  }
  c.out = {y};
}

/// The second input is the original image, or (nearest) its height and width, which may be known in a run alone.
void resize_gradient(OpContext& c) {
  c.expect_inputs(2);
  const std::string mode = c.target;
  const bool whole = mode != "nearest";
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the gradient has {} dims, expected 4", c.rank(0));
  if (whole && c.rank(1) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(1));
  Value *dy = c.in[0], *image = c.in[1];
  Value* shape = whole ? c.b.add("shape_of", {image}) : joined({dim_of(dy, 0, c.b), image, dim_of(dy, 3, c.b)}, c.b);
  Value* dx = c.b.add("resize2d_gradient", {cast_to(dy, kF32, c.b), folded(shape, c.b)}, resize_attributes(c, mode));
  c.out = {cast_to(dx, whole ? image->type.dtype : dy->type.dtype, c.b)};
}

void crop_and_resize(OpContext& c) {
  c.expect_inputs(4);
  c.out = {c.b.add("crop_and_resize", {c.in[0], cast_to(c.in[1], kF32, c.b), c.in[2], c.in[3]},
                   {{"mode", c.text("method", "bilinear")}, {"outside", c.real("extrapolation_value", 0)}})};
}

/// gradient, boxes, index, dims of the image.
void crop_gradient_by_image(OpContext& c) {
  c.expect_inputs(4);
  Value* dx = c.b.add("crop_and_resize_gradient", c.in, {{"mode", c.text("method", "bilinear")}});
  c.out = {cast_to(dx, c.dtype("T", kDtFloat), c.b)};
}

/// gradient, image, boxes, index.
void crop_gradient_by_boxes(OpContext& c) {
  c.expect_inputs(4);
  c.out = {c.b.add("crop_and_resize_box_gradient", c.in, {{"mode", c.text("method", "bilinear")}})};
}

/// Versions differ in what is an input: 1 has iou as attribute, 2 as input, 3 and 4 a least score, 5 sigma.
void non_max_suppression(OpContext& c) {
  const std::string_view op = c.node().op;
  const char version = op.back() == 'n' ? '1' : op.back();
  c.expect_inputs(version == '1' ? 3 : version == '2' ? 4 : version == '5' ? 6 : 5);
  std::vector<Value*> in{cast_to(c.in[0], kF32, c.b), cast_to(c.in[1], kF32, c.b), c.in[2]};
  in.push_back(version == '1' ? float_scalar(c, static_cast<float>(c.real("iou_threshold", 0.5)))
                              : cast_to(c.in[3], kF32, c.b));
  in.push_back(version >= '3' ? cast_to(c.in[4], kF32, c.b) : float_scalar(c, -std::numeric_limits<float>::infinity()));
  in.push_back(version == '5' ? cast_to(c.in[5], kF32, c.b) : float_scalar(c, 0));
  bool pad = version >= '4' && c.boolean("pad_to_max_output_size", false);
  auto* made = c.b.add_node(op_named("non_max_suppression"), in, {{"pad", pad}});
  c.out = {cast_to(made->result(0), kI32, c.b)};
  if (version == '5') c.out.push_back(cast_to(made->result(1), c.in[1]->type.dtype, c.b));
  if (version >= '4') c.out.push_back(cast_to(made->result(2), kI32, c.b));
}

void combined_non_max_suppression(OpContext& c) {
  c.expect_inputs(6);
  auto* made = c.b.add_node(
      op_named("combined_non_max_suppression"), c.in,
      {{"pad_per_class", c.boolean("pad_per_class", false)}, {"clip_boxes", c.boolean("clip_boxes", true)}});
  c.out = results_of(*made);
}

/// A dim of a result: dim `from` of the input (none: 1) so many times, cut into so many parts.
struct Scaled {
  int from = -1;
  int64_t times = 1, over = 1;
};

/// Reshapes x. Sizes known only at run time are computed then; a size that is not divisible is an error at run time.
Value* reshape_scaled(OpContext& c, Value* x, const std::vector<Scaled>& dims) {
  std::vector<NewDim> plain;
  std::vector<Dim> known;
  size_t open = 0;
  for (const Scaled& dim : dims) {
    const Dim own = dim.from < 0 ? Dim(1) : x->type.shape.dims[static_cast<size_t>(dim.from)];
    int64_t size = -1;
    if (own.known() && (__builtin_mul_overflow(own.size, dim.times, &size) || size % dim.over != 0))
      fail(ErrorKind::invalid_model, "", "{} elements do not divide into {} parts", size, dim.over);
    const bool whole = dim.times == 1 && dim.over == 1;
    open += !own.known() && !whole;
    plain.push_back(own.known() ? NewDim{size / dim.over} : whole ? NewDim{-1, dim.from} : NewDim{});
    known.push_back(own.known() ? Dim(size / dim.over) : whole ? own : Dim());
  }
  if (open <= 1) return reshape_to(x, plain, c.b);
  std::vector<Value*> parts;
  for (const Scaled& dim : dims) {
    Value* part = dim.from < 0 ? c.b.ints({1}) : cast_to(dim_of(x, static_cast<size_t>(dim.from), c.b), kI64, c.b);
    if (dim.times != 1) part = folded(c.b.add("mul", {part, c.b.ints({dim.times})}), c.b);
    if (dim.over != 1) part = folded(c.b.add("floor_div", {part, c.b.ints({dim.over})}), c.b);
    parts.push_back(part);
  }
  std::vector<Type> type{Type::tensor(x->type.dtype, Shape(known))};
  return c.b.add_node(op_named("reshape"), {x, joined(parts, c.b)}, {}, {}, type)->result();
}

bool is_channels_first(OpContext& c) {
  std::string format = c.text("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") c.refuse("data_format {} is not supported", printable(format));
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(0));
  return format == "NCHW";
}

int64_t block_size(OpContext& c, int64_t least = 2) {
  int64_t block = c.integer("block_size");
  if (block < least || block > 65536) fail(ErrorKind::invalid_model, "", "block_size is {}", block);
  return block;
}

void space_to_depth(OpContext& c) {
  c.expect_inputs(1);
  const int64_t block = block_size(c);
  const bool first = is_channels_first(c);
  Value* x = first ? transposed(c.in[0], {0, 2, 3, 1}, c.b) : c.in[0];
  x = reshape_scaled(c, x, {{0}, {1, 1, block}, {-1, block}, {2, 1, block}, {-1, block}, {3}});
  x = transposed(x, {0, 1, 3, 2, 4, 5}, c.b);
  x = reshape_scaled(c, x, {{0}, {1}, {2}, {5, block * block}});
  c.out = {first ? transposed(x, {0, 3, 1, 2}, c.b) : x};
}

void depth_to_space(OpContext& c) {
  c.expect_inputs(1);
  const int64_t block = block_size(c);
  const bool first = is_channels_first(c);
  Value* x = first ? transposed(c.in[0], {0, 2, 3, 1}, c.b) : c.in[0];
  x = reshape_scaled(c, x, {{0}, {1}, {2}, {-1, block}, {-1, block}, {3, 1, block * block}});
  x = transposed(x, {0, 1, 3, 2, 4, 5}, c.b);
  x = reshape_scaled(c, x, {{0}, {1, block}, {3, block}, {5}});
  c.out = {first ? transposed(x, {0, 3, 1, 2}, c.b) : x};
}

/// Block sizes of the dims behind the batch, and their pads or crops, which may be known in the run only.
struct Blocks {
  std::vector<int64_t> sizes;
  int64_t count = 1;
  Value* borders = nullptr;  // [dims, 2]
};
Blocks blocks(OpContext& c) {
  Blocks result;
  if (c.node().op.ends_with("ND")) {
    c.expect_inputs(3);
    result.sizes = c.constant_integers(1, "the block shape");
  } else {
    c.expect_inputs(2);
    result.sizes = {block_size(c), block_size(c)};
  }
  result.borders = cast_to(c.in.back(), kI64, c.b);
  const auto count = static_cast<int64_t>(result.sizes.size());
  if (result.sizes.size() + 1 > c.rank(0) || result.borders->type.shape != Shape{Dim(count), Dim(2)})
    fail(ErrorKind::invalid_model, "", "has {} block sizes and borders of {} for {} dims", count,
         to_string(result.borders->type), c.rank(0));
  if (const Tensor* known = constant_of(result.borders))
    for (int64_t border : known->as_i64())
      if (border < 0 || border > (int64_t{1} << 31)) fail(ErrorKind::invalid_model, "", "a border is {}", border);
  for (int64_t size : result.sizes)
    if (size < 1 || __builtin_mul_overflow(result.count, size, &result.count) || result.count > (1 << 24))
      fail(ErrorKind::invalid_model, "", "a block has size {}", size);
  return result;
}

/// A column of the borders as a vector for all dims, with 0 for those without one.
Value* column(OpContext& c, const Blocks& blocks, int64_t number) {
  Value* all = c.b.add("slice", {blocks.borders, c.b.ints({0, number}), c.b.ints({kToTheEnd, number + 1})});
  const std::vector<int64_t> rest(c.rank(0) - blocks.sizes.size() - 1, 0);
  std::vector<Value*> parts{c.b.ints({0}), folded(c.b.add("reshape", {folded(all, c.b), c.b.ints({-1})}), c.b)};
  if (!rest.empty()) parts.push_back(c.b.ints(rest));
  return joined(parts, c.b);
}

/// [n, s1 b1, .., rest] becomes [b1 .. n, s1, .., rest], after padding.
void space_to_batch(OpContext& c) {
  const Blocks blocks = tensorflow::blocks(c);
  const int count = static_cast<int>(blocks.sizes.size()), rank = static_cast<int>(c.rank(0));
  std::vector<Value*> columns;
  for (int64_t side : {0, 1}) columns.push_back(expand_dims(column(c, blocks, side), {1}, c.b));
  Value* table = folded(c.b.add("concat", columns, {{"axis", int64_t{1}}}), c.b);
  Value* x = c.b.add("pad", {c.in[0], table});
  if (!x->type.shape.ranked) c.refuse("the rank of the padded value is not known");
  std::vector<Scaled> apart{{0}}, together{{count, blocks.count}};
  std::vector<int64_t> permutation;
  for (int i = 0; i < count; ++i) {
    const int64_t block = blocks.sizes[static_cast<size_t>(i)];
    apart.push_back({1 + i, 1, block}), apart.push_back({-1, block});
    together.push_back({count + 1 + i});
    permutation.push_back(2 + 2 * i);
  }
  permutation.push_back(0);
  for (int i = 0; i < count; ++i) permutation.push_back(1 + 2 * i);
  for (int i = 1 + count; i < rank; ++i) {
    permutation.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back({i}), together.push_back({count + i});
  }
  c.out = {reshape_scaled(c, transposed(reshape_scaled(c, x, apart), permutation, c.b), together)};
}

void batch_to_space(OpContext& c) {
  const Blocks blocks = tensorflow::blocks(c);
  const int count = static_cast<int>(blocks.sizes.size()), rank = static_cast<int>(c.rank(0));
  std::vector<Scaled> apart, together{{0}};
  for (int64_t block : blocks.sizes) apart.push_back({-1, block});
  apart.push_back({0, 1, blocks.count});
  std::vector<int64_t> permutation{count};
  for (int i = 0; i < count; ++i) {
    permutation.push_back(static_cast<int64_t>(apart.size()));
    permutation.push_back(i);
    apart.push_back({1 + i}), together.push_back({1 + 2 * i, blocks.sizes[static_cast<size_t>(i)]});
  }
  for (int i = 1 + count; i < rank; ++i) {
    permutation.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back({i}), together.push_back({count + i});
  }
  Value* x = reshape_scaled(c, transposed(reshape_scaled(c, c.in[0], apart), permutation, c.b), together);
  Value *begin = column(c, blocks, 0), *after = column(c, blocks, 1);
  if (constant_of(begin) != nullptr && constant_of(after) != nullptr) {
    const std::vector<int64_t> begins = constant_of(begin)->as_i64();
    std::vector<int64_t> ends = constant_of(after)->as_i64();
    for (size_t i = 0; i < ends.size(); ++i) {
      const Dim& dim = x->type.shape.dims[i];
      if (dim.known() && begins[i] + ends[i] > dim.size)
        fail(ErrorKind::invalid_model, "", "crops more than the {} elements", dim.size);
      ends[i] = ends[i] == 0 ? kToTheEnd : -ends[i];
    }
    c.out = {c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)})};
    return;
  }
  Value* sizes = cast_to(c.b.add("shape_of", {x}), kI64, c.b);
  std::vector<Dim> dims = x->type.shape.dims;  // those that are not cropped stay
  std::fill(dims.begin() + 1, dims.begin() + 1 + count, Dim());
  std::vector<Type> type{Type::tensor(x->type.dtype, Shape(dims))};
  Value* end = c.b.add("sub", {sizes, after});
  c.out = {c.b.add_node(op_named("slice"), {x, begin, end}, {}, {}, type)->result()};
}

/// The windows of the image, or of the volume, flattened to channels.
template <size_t kDims>
void extract_patches(OpContext& c) {
  constexpr int64_t kMostPixels = 4096;
  c.expect_inputs(1);
  if (c.rank(0) != kDims + 2)
    fail(ErrorKind::invalid_model, "", "the image has {} dims, expected {}", c.rank(0), kDims + 2);
  const auto spatial = [&](const char* attr) {
    const std::vector<int64_t> list = c.integers(attr);
    if (list.size() != kDims + 2 || list.front() != 1 || list.back() != 1 ||
        *std::min_element(list.begin(), list.end()) < 1)
      fail(ErrorKind::invalid_model, "", "attribute {} is no window over the pixels", attr);
    return std::vector<int64_t>(list.begin() + 1, list.end() - 1);
  };
  const std::vector<int64_t> window = spatial("ksizes"), strides = spatial("strides"),
                             rates = kDims == 2 ? spatial("rates") : std::vector<int64_t>(kDims, 1);
  const std::optional<int64_t> pixels = element_count(window);
  if (!pixels || *pixels > kMostPixels) c.refuse("patches of more than {} pixels are not supported", kMostPixels);
  const std::string padding = c.text("padding", "");
  if (padding != "SAME" && padding != "VALID")
    fail(ErrorKind::invalid_model, "", "padding '{}' is unknown", printable(padding));
  std::vector<int64_t> pads(2 * kDims + 4, 0), counts, steps{1};
  for (size_t i = 0; i < kDims; ++i) {
    const Dim dim = c.in[0]->type.shape.dims[1 + i];
    if (!dim.known()) c.refuse("dim {} of the image is not known; declare the shapes of the model's inputs", 1 + i);
    const int64_t in = dim.size, reach = (window[i] - 1) * rates[i] + 1;
    const int64_t out = padding == "SAME" ? (in + strides[i] - 1) / strides[i] : (in - reach + strides[i]) / strides[i];
    const int64_t missing = padding == "SAME" ? std::max<int64_t>(0, (out - 1) * strides[i] + reach - in) : 0;
    if (out < 0) fail(ErrorKind::invalid_model, "", "a window of {} is larger than the image", reach);
    pads[2 + 2 * i] = missing / 2;
    pads[3 + 2 * i] = missing - missing / 2;
    counts.push_back(out);
    steps.push_back(strides[i]);
  }
  steps.push_back(1);
  Value* x = c.b.add("pad", {c.in[0], c.b.constant(Tensor::of<int64_t>(kI64, {kDims + 2, 2}, pads))});
  std::vector<Value*> parts;
  for (int64_t n = 0; n < *pixels; ++n) {
    std::vector<int64_t> begin(kDims + 2, 0), end(kDims + 2, kToTheEnd);
    for (size_t i = kDims, rest = static_cast<size_t>(n); i-- > 0; rest /= static_cast<size_t>(window[i])) {
      begin[1 + i] = static_cast<int64_t>(rest) % window[i] * rates[i];
      end[1 + i] = begin[1 + i] + (counts[i] - 1) * strides[i] + 1;
    }
    parts.push_back(c.b.add("slice", {x, c.b.ints(begin), c.b.ints(end)}, {{"steps", steps}}));
  }
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", static_cast<int64_t>(kDims) + 1}})};
}

constexpr Row kImageRows[] = {
    {"BatchToSpace", batch_to_space},
    {"BatchToSpaceND", batch_to_space},
    {"CombinedNonMaxSuppression", combined_non_max_suppression},
    {"CropAndResize", crop_and_resize},
    {"CropAndResizeGradBoxes", crop_gradient_by_boxes},
    {"CropAndResizeGradImage", crop_gradient_by_image},
    {"DepthToSpace", depth_to_space},
    {"ExtractImagePatches", extract_patches<2>},
    {"ExtractVolumePatches", extract_patches<3>},
    {"NonMaxSuppression", non_max_suppression},
    {"NonMaxSuppressionV2", non_max_suppression},
    {"NonMaxSuppressionV3", non_max_suppression},
    {"NonMaxSuppressionV4", non_max_suppression},
    {"NonMaxSuppressionV5", non_max_suppression},
    {"ResizeBicubic", resize, "bicubic"},
    {"ResizeBicubicGrad", resize_gradient, "bicubic"},
    {"ResizeBilinear", resize, "bilinear"},
    {"ResizeBilinearGrad", resize_gradient, "bilinear"},
    {"ResizeNearestNeighbor", resize, "nearest"},
    {"ResizeNearestNeighborGrad", resize_gradient, "nearest"},
    {"SpaceToBatch", space_to_batch},
    {"SpaceToBatchND", space_to_batch},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const Row> image_rows() { return kImageRows; }

}  // namespace cairn::tensorflow
