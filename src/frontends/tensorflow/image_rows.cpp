// TensorFlow's ops on images and boxes: resizing, patches, blocks of pixels, suppression of overlapping boxes.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

Value* float_scalar(OpContext& c, float value) { return c.b.constant(Tensor::scalar_f32(value)); }

void resize(OpContext& c) {
  c.expect_inputs(2);
  std::string mode = c.target;
  bool corners = c.boolean("align_corners", false), half = c.boolean("half_pixel_centers", false);
  if (corners && half) fail(ErrorKind::invalid_model, "", "aligns corners and shifts by half a pixel");
  Value* x = mode == "nearest" ? c.in[0] : cast_to(c.in[0], kF32, c.b);
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
  Value* y = c.b.add("resize2d", {x, c.in[1]}, attributes);
  if (auto sizes = sizes_in(c.in[1]); sizes && sizes->size() == 2 && y->type.shape.ranked) {
    for (size_t i : {0, 1})
      if ((*sizes)[i].symbol != nullptr) y->type.shape.dims[1 + i] = (*sizes)[i];
  }
  c.out = {y};
}

void crop_and_resize(OpContext& c) {
  c.expect_inputs(4);
  c.out = {c.b.add("crop_and_resize", {c.in[0], cast_to(c.in[1], kF32, c.b), c.in[2], c.in[3]},
                   {{"mode", c.text("method", "bilinear")}, {"outside", c.real("extrapolation_value", 0)}})};
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
  for (const auto& result : made->results) c.out.push_back(result.get());
}

Value* transposed(OpContext& c, Value* x, std::vector<int64_t> permutation) {
  return c.b.add("transpose", {x}, {{"permutation", std::move(permutation)}});
}

/// Sizes of an image of four dims in its format; height and width must be known.
struct Pixels {
  bool channels_first;
  int64_t height, width, channels;
};
Pixels pixels(OpContext& c) {
  std::string format = c.text("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") c.refuse("data_format {} is not supported", printable(format));
  if (c.rank(0) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(0));
  const auto& dims = c.in[0]->type.shape.dims;
  bool first = format == "NCHW";
  for (size_t i = 1; i < 4; ++i)
    if (!dims[i].known()) c.refuse("dim {} of the image is not known; declare the shapes of the model's inputs", i);
  return {first, dims[first ? 2 : 1].size, dims[first ? 3 : 2].size, dims[first ? 1 : 3].size};
}

int64_t block_size(OpContext& c, int64_t least = 2) {
  int64_t block = c.integer("block_size");
  if (block < least || block > 65536) fail(ErrorKind::invalid_model, "", "block_size is {}", block);
  return block;
}

void space_to_depth(OpContext& c) {
  c.expect_inputs(1);
  const int64_t block = block_size(c);
  const Pixels p = pixels(c);
  if (p.height % block != 0 || p.width % block != 0)
    fail(ErrorKind::invalid_model, "", "{} x {} pixels do not divide into blocks of {}", p.height, p.width, block);
  Value* x = p.channels_first ? transposed(c, c.in[0], {0, 2, 3, 1}) : c.in[0];
  int64_t rows = p.height / block, columns = p.width / block;
  x = reshape_to(x, {{-1, 0}, {rows}, {block}, {columns}, {block}, {p.channels}}, c.b);
  x = transposed(c, x, {0, 1, 3, 2, 4, 5});
  x = reshape_to(x, {{-1, 0}, {rows}, {columns}, {block * block * p.channels}}, c.b);
  c.out = {p.channels_first ? transposed(c, x, {0, 3, 1, 2}) : x};
}

void depth_to_space(OpContext& c) {
  c.expect_inputs(1);
  const int64_t block = block_size(c);
  const Pixels p = pixels(c);
  if (p.channels % (block * block) != 0)
    fail(ErrorKind::invalid_model, "", "{} channels do not divide into blocks of {}", p.channels, block);
  Value* x = p.channels_first ? transposed(c, c.in[0], {0, 2, 3, 1}) : c.in[0];
  const int64_t channels = p.channels / block / block;
  x = reshape_to(x, {{-1, 0}, {p.height}, {p.width}, {block}, {block}, {channels}}, c.b);
  x = transposed(c, x, {0, 1, 3, 2, 4, 5});
  x = reshape_to(x, {{-1, 0}, {p.height * block}, {p.width * block}, {channels}}, c.b);
  c.out = {p.channels_first ? transposed(c, x, {0, 3, 1, 2}) : x};
}

/// Block sizes and (pads or crops) of the dims behind the batch.
struct Blocks {
  std::vector<int64_t> sizes, borders;
  int64_t count = 1;
};
Blocks blocks(OpContext& c) {
  Blocks result;
  if (c.node().op.ends_with("ND")) {
    c.expect_inputs(3);
    result.sizes = c.constant_integers(1, "the block shape");
    result.borders = c.constant_integers(2, "pads and crops");
  } else {
    c.expect_inputs(2);
    result.sizes = {block_size(c), block_size(c)};
    result.borders = c.constant_integers(1, "pads and crops");
  }
  if (result.sizes.size() + 1 > c.rank(0) || result.borders.size() != 2 * result.sizes.size())
    fail(ErrorKind::invalid_model, "", "has {} block sizes and {} borders for {} dims", result.sizes.size(),
         result.borders.size(), c.rank(0));
  for (int64_t border : result.borders)
    if (border < 0 || border > (int64_t{1} << 31)) fail(ErrorKind::invalid_model, "", "a border is {}", border);
  for (int64_t size : result.sizes)
    if (size < 1 || __builtin_mul_overflow(result.count, size, &result.count) || result.count > (1 << 24))
      fail(ErrorKind::invalid_model, "", "a block has size {}", size);
  return result;
}

int64_t known_dim(OpContext& c, const Value* x, size_t axis) {
  const Dim& dim = x->type.shape.dims[axis];
  if (!dim.known()) c.refuse("dim {} is not known; declare the shapes of the model's inputs", axis);
  return dim.size;
}

/// [n, s1 b1, .., rest] becomes [b1 .. n, s1, .., rest], after padding.
void space_to_batch(OpContext& c) {
  const Blocks blocks = tensorflow::blocks(c);
  const size_t count = blocks.sizes.size(), rank = c.rank(0);
  std::vector<int64_t> pads(2 * rank, 0);
  std::copy(blocks.borders.begin(), blocks.borders.end(), pads.begin() + 2);
  Value* table = c.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads));
  Value* x = c.b.add("pad", {c.in[0], table});
  std::vector<NewDim> apart{{-1, 0}}, together{{-1, -1}};
  std::vector<int64_t> permutation;
  for (size_t i = 0; i < count; ++i) {
    int64_t size = known_dim(c, x, 1 + i), block = blocks.sizes[i];
    if (size % block != 0)
      fail(ErrorKind::invalid_model, "", "{} elements do not divide into blocks of {}", size, block);
    apart.push_back({size / block});
    apart.push_back({block});
    together.push_back({size / block});
    permutation.push_back(static_cast<int64_t>(2 + 2 * i));
  }
  permutation.push_back(0);
  for (size_t i = 0; i < count; ++i) permutation.push_back(static_cast<int64_t>(1 + 2 * i));
  for (size_t i = 1 + count; i < rank; ++i) {
    permutation.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back({known_dim(c, x, i)});
    together.push_back(apart.back());
  }
  const Dim batch = x->type.shape.dims[0];
  if (batch.known()) together[0] = {batch.size * blocks.count};
  c.out = {reshape_to(transposed(c, reshape_to(x, apart, c.b), permutation), together, c.b)};
}

void batch_to_space(OpContext& c) {
  const Blocks blocks = tensorflow::blocks(c);
  const size_t count = blocks.sizes.size(), rank = c.rank(0);
  Value* x = c.in[0];
  std::vector<NewDim> apart, together;
  for (int64_t block : blocks.sizes) apart.push_back({block});
  const Dim batch = x->type.shape.dims[0];
  if (batch.known() && batch.size % blocks.count != 0)
    fail(ErrorKind::invalid_model, "", "a batch of {} does not divide into {} blocks", batch.size, blocks.count);
  apart.push_back(batch.known() ? NewDim{batch.size / blocks.count} : NewDim{-1, -1});
  together.push_back(apart.back());
  std::vector<int64_t> permutation{static_cast<int64_t>(count)}, begins{0}, ends{kToTheEnd};
  for (size_t i = 0; i < count; ++i) {
    int64_t size = known_dim(c, x, 1 + i), block = blocks.sizes[i];
    permutation.push_back(static_cast<int64_t>(apart.size()));
    permutation.push_back(static_cast<int64_t>(i));
    apart.push_back({size});
    together.push_back({size * block});
    begins.push_back(blocks.borders[2 * i]);
    ends.push_back(size * block - blocks.borders[2 * i + 1]);
    if (begins.back() > ends.back())
      fail(ErrorKind::invalid_model, "", "crops more than the {} elements", size * block);
  }
  for (size_t i = 1 + count; i < rank; ++i) {
    permutation.push_back(static_cast<int64_t>(apart.size()));
    apart.push_back({known_dim(c, x, i)});
    together.push_back(apart.back());
    begins.push_back(0);
    ends.push_back(kToTheEnd);
  }
  x = reshape_to(transposed(c, reshape_to(x, apart, c.b), permutation), together, c.b);
  c.out = {c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)})};
}

/// Windows of the image side by side as channels.
void extract_patches(OpContext& c) {
  constexpr int64_t kMostPixels = 4096;
  c.expect_inputs(1);
  const Pixels p = pixels(c);
  auto two = [&](const char* attr) {
    std::vector<int64_t> list = c.integers(attr);
    if (list.size() != 4 || list[0] != 1 || list[3] != 1 || list[1] < 1 || list[2] < 1)
      fail(ErrorKind::invalid_model, "", "attribute {} is no window over height and width", attr);
    return std::vector<int64_t>{list[1], list[2]};
  };
  const std::vector<int64_t> window = two("ksizes"), strides = two("strides"), rates = two("rates");
  if (window[0] > kMostPixels || window[1] > kMostPixels || window[0] * window[1] > kMostPixels)
    c.refuse("patches of {} x {} pixels are not supported", window[0], window[1]);
  std::string padding = c.text("padding", "");
  if (padding != "SAME" && padding != "VALID")
    fail(ErrorKind::invalid_model, "", "padding '{}' is unknown", printable(padding));
  std::vector<int64_t> pads(8, 0), counts;
  for (size_t i : {0, 1}) {
    const int64_t in = i == 0 ? p.height : p.width, reach = (window[i] - 1) * rates[i] + 1;
    const int64_t out = padding == "SAME" ? (in + strides[i] - 1) / strides[i] : (in - reach + strides[i]) / strides[i];
    const int64_t missing = padding == "SAME" ? std::max<int64_t>(0, (out - 1) * strides[i] + reach - in) : 0;
    if (out < 0) fail(ErrorKind::invalid_model, "", "a window of {} is larger than the image", reach);
    pads[2 + 2 * i] = missing / 2;
    pads[3 + 2 * i] = missing - missing / 2;
    counts.push_back(out);
  }
  Value* x = c.b.add("pad", {c.in[0], c.b.constant(Tensor::of<int64_t>(kI64, {4, 2}, pads))});
  std::vector<Value*> parts;
  for (int64_t h = 0; h < window[0]; ++h)
    for (int64_t w = 0; w < window[1]; ++w) {
      const int64_t top = h * rates[0], left = w * rates[1];
      const int64_t bottom = top + (counts[0] - 1) * strides[0] + 1, right = left + (counts[1] - 1) * strides[1] + 1;
      parts.push_back(c.b.add("slice",
                              {x, c.b.ints({0, top, left, 0}), c.b.ints({kToTheEnd, bottom, right, kToTheEnd})},
                              {{"steps", std::vector<int64_t>{1, strides[0], strides[1], 1}}}));
    }
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", int64_t{3}}})};
}

constexpr Row kImageRows[] = {
    {"BatchToSpace", batch_to_space},
    {"BatchToSpaceND", batch_to_space},
    {"CombinedNonMaxSuppression", combined_non_max_suppression},
    {"CropAndResize", crop_and_resize},
    {"DepthToSpace", depth_to_space},
    {"ExtractImagePatches", extract_patches},
    {"NonMaxSuppression", non_max_suppression},
    {"NonMaxSuppressionV2", non_max_suppression},
    {"NonMaxSuppressionV3", non_max_suppression},
    {"NonMaxSuppressionV4", non_max_suppression},
    {"NonMaxSuppressionV5", non_max_suppression},
    {"ResizeBicubic", resize, "bicubic"},
    {"ResizeBilinear", resize, "bilinear"},
    {"ResizeNearestNeighbor", resize, "nearest"},
    {"SpaceToBatch", space_to_batch},
    {"SpaceToBatchND", space_to_batch},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const Row> image_rows() { return kImageRows; }

}  // namespace cairn::tensorflow
