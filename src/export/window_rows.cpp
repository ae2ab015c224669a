// Convolutions, pooling and resizing: images and volumes, in ONNX with their channels behind the batch.
#include "export/rows.h"

#include "ir/evaluate.h"

namespace cairn::onnx_export {

namespace {

/// Pads of (before, after) pairs as ONNX has them: all before, then all after.
std::vector<int64_t> onnx_pads(const std::vector<int64_t>& pairs) {
  std::vector<int64_t> pads;
  for (const size_t side : {0, 1})
    for (size_t i = side; i < pairs.size(); i += 2) pads.push_back(pairs[i]);
  return pads;
}

Settings window_settings(const Context& c) {
  Settings settings = {{"strides", c.attr().integers("strides")}};
  if (c.node.op->find_attribute("dilations")) settings.emplace_back("dilations", c.attr().integers("dilations"));
  const std::string& padding = c.attr().text("padding");
  if (padding == "same") settings.emplace_back("auto_pad", std::string("SAME_UPPER"));
  if (padding == "same_lower") settings.emplace_back("auto_pad", std::string("SAME_LOWER"));
  if (padding == "explicit") settings.emplace_back("pads", onnx_pads(c.attr().integers("pads")));
  return settings;
}

/// The kernel with its last dims first: outputs, inputs, window; or inputs and outputs as they are told.
Name turned_kernel(const Context& c) {
  const size_t rank = c.rank(1);
  std::vector<int64_t> order = {static_cast<int64_t>(rank) - 1, static_cast<int64_t>(rank) - 2};
  for (size_t i = 0; i + 2 < rank; ++i) order.push_back(static_cast<int64_t>(i));
  if (const Tensor* kernel = constant_of(c.value(1)))
    return c.graph.constant(evaluate("transpose", {*kernel}, {{"permutation", order}}));
  return c.one("Transpose", {c.in(1)}, {{"perm", order}});
}

void set(const Context& c, Name name) { c.graph.set_channels_first(c.node.result(), std::move(name)); }

void conv(const Context& c) {
  Settings settings = window_settings(c);
  settings.emplace_back("group", c.attr().integer("groups"));
  set(c, c.one("Conv", {c.graph.channels_first(c.value(0)), turned_kernel(c)}, settings));
}

bool all_static(const Node& node) {
  const auto known = [](const Value* value) {
    const Shape& shape = value->type.shape;
    return shape.ranked &&
           std::all_of(shape.dims.begin() + 1, shape.dims.end(), [](const Dim& dim) { return dim.known(); });
  };
  return known(node.inputs[0]) && node.inputs[1]->type.shape.known() && known(node.result());
}

bool of_known_window(const Node& node) {
  const Shape& kernel = node.inputs[1]->type.shape;
  return kernel.ranked &&
         std::all_of(kernel.dims.begin(), kernel.dims.end() - 2, [](const Dim& dim) { return dim.known(); });
}

/// What all windows cover, with all that may be left behind the last one; then the image in it.
void open_transposed_conv(const Context& c) {
  const auto& strides = c.attr().integers("strides");
  const std::string& padding = c.attr().text("padding");
  const auto dims = static_cast<int64_t>(strides.size());
  std::vector<int64_t> before(strides.size()), rest, axes;
  for (size_t i = 0; i < strides.size(); ++i) {
    rest.push_back(strides[i] - 1), axes.push_back(static_cast<int64_t>(i) + 2);
    if (padding == "explicit") before[i] = c.attr().integers("pads")[2 * i];
  }
  const Name whole = c.one("ConvTranspose", {c.graph.channels_first(c.value(0)), turned_kernel(c)},
                           {{"strides", strides},
                            {"dilations", c.attr().integers("dilations")},
                            {"output_padding", rest},
                            {"group", c.attr().integer("groups")}});
  const Name image = c.one("Slice", {c.i64(2), c.graph.ints({1}), c.graph.ints({dims + 1})});
  Name start;
  if (!padding.starts_with("same")) {
    start = c.graph.ints(before);
  } else {
    const Name covered = c.one("Sub", {c.one("Shape", {whole}, {{"start", int64_t{2}}}), c.graph.ints(rest)});
    const Name total = c.one("Max", {c.one("Sub", {covered, image}), c.graph.ints({0})});
    start = c.one("Div", {total, c.graph.ints({2})});
    if (padding == "same_lower") start = c.one("Sub", {total, start});
  }
  set(c, c.one("Slice", {whole, start, c.one("Add", {start, image}), c.graph.ints(axes)}));
}

/// Pads of the convolution whose gradient it is, and what is left of the image behind the last window.
void transposed_conv(const Context& c) {
  if (!all_static(c.node)) return open_transposed_conv(c);
  const auto &strides = c.attr().integers("strides"), &dilations = c.attr().integers("dilations");
  const std::string& padding = c.attr().text("padding");
  const size_t dims = strides.size();
  std::vector<int64_t> before(dims), after(dims), rest(dims);
  for (size_t i = 0; i < dims; ++i) {
    const int64_t window = (c.value(1)->type.shape.dims[i].size - 1) * dilations[i] + 1;
    const int64_t image = c.type().shape.dims[i + 1].size, steps = c.value(0)->type.shape.dims[i + 1].size;
    const int64_t covered = (steps - 1) * strides[i] + window;
    if (padding == "explicit") {
      before[i] = c.attr().integers("pads")[2 * i], after[i] = c.attr().integers("pads")[2 * i + 1];
    } else if (padding != "valid") {
      const int64_t total = std::max<int64_t>(covered - image, 0);
      before[i] = padding == "same" ? total / 2 : total - total / 2, after[i] = total - before[i];
    }
    rest[i] = image - (covered - before[i] - after[i]);
    if (rest[i] < 0) after[i] -= rest[i], rest[i] = 0;
  }
  std::vector<int64_t> pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  set(c, c.one("ConvTranspose", {c.graph.channels_first(c.value(0)), turned_kernel(c)},
               {{"strides", strides},
                {"dilations", dilations},
                {"pads", pads},
                {"output_padding", rest},
                {"group", c.attr().integer("groups")}}));
}

template <const char* const& kOp>
void pool(const Context& c) {
  Settings settings = window_settings(c);
  settings.emplace_back("kernel_shape", c.attr().integers("window"));
  settings.emplace_back("ceil_mode", int64_t{c.attr().boolean("ceil_mode")});
  if (c.node.op->find_attribute("count_padding"))
    settings.emplace_back("count_include_pad", int64_t{c.attr().boolean("count_padding")});
  set(c, c.one(kOp, {c.graph.channels_first(c.value(0))}, settings));
}
/// ONNX counts the places with channels first: the same of images with one channel.
void pool_places(const Context& c) {
  Settings settings = window_settings(c);
  settings.emplace_back("kernel_shape", c.attr().integers("window"));
  settings.emplace_back("ceil_mode", int64_t{c.attr().boolean("ceil_mode")});
  set(c, c.graph.add("MaxPool", {c.graph.channels_first(c.value(0))}, settings, 2)[1]);
}
bool is_pooled(const Node& node) {
  const DType dtype = node.inputs[0]->type.dtype;
  return dtype.is_float() || dtype.bits == 8;
}
bool is_pooled_of_one_channel(const Node& node) {
  const Shape& x = node.inputs[0]->type.shape;
  return is_pooled(node) && x.ranked && x.dims.back() == Dim(1);
}
constexpr const char *kMaxPool = "MaxPool", *kAveragePool = "AveragePool";

void resize(const Context& c) {
  const std::string &mode = c.attr().text("mode"), &rounding = c.attr().text("rounding");
  Settings settings = {{"mode", std::string(mode == "nearest"    ? "nearest"
                                            : mode == "bilinear" ? "linear"
                                                                 : "cubic")},
                       {"coordinate_transformation_mode", c.attr().text("coordinates")}};
  if (mode == "nearest") {
    const bool halves = c.attr().text("coordinates") == "half_pixel";  // there resize2d's floor rounds halves up
    settings.emplace_back("nearest_mode",
                          std::string(rounding == "half_down"                                    ? "round_prefer_floor"
                                      : rounding == "half_up" || (halves && rounding == "floor") ? "round_prefer_ceil"
                                                                                                 : rounding));
  }
  if (mode == "bicubic") {
    settings.emplace_back("cubic_coeff_a", static_cast<float>(c.attr().number("cubic")));
    settings.emplace_back("exclude_outside", int64_t{c.attr().boolean("exclude_outside")});
  }
  // Sizes of all dims: ONNX Runtime loses those of some axes where it moves transposes.
  const Name x = c.graph.channels_first(c.value(0));
  const Name batch = c.one("Shape", {x}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
  const Name sizes = c.one("Concat", {batch, c.i64(1)}, {{"axis", int64_t{0}}});
  set(c, c.one("Resize", {x, "", "", sizes}, settings));
}
bool without_steps(const Node& node) { return !node.attr().boolean("steps"); }

/// The zero points are numbers; ONNX Runtime's convolution of bytes is of u8 alone, to which i8 moves with its zero point.
void conv_integer(const Context& c) {
  Settings settings = window_settings(c);
  settings.emplace_back("group", c.attr().integer("groups"));
  const auto zero = [&](size_t i) { return c.one("Reshape", {c.in(i), c.graph.constant(Tensor::zeros(kI64, {0}))}); };
  Name x = c.graph.channels_first(c.value(0)), x_zero = zero(2);
  if (c.value(0)->type.dtype == kI8)
    for (Name* bytes : {&x, &x_zero}) {
      const Name words = c.one("Add", {c.cast(*bytes, kI32), c.graph.number(128, kI32)});
      *bytes = c.cast(words, kU8);
    }
  set(c, c.one("ConvInteger", {x, turned_kernel(c), x_zero, zero(3)}, settings));
}
bool of_single_zeros(const Node& node) {
  const auto one = [](const Value* zero) {
    return zero->type.is_static() &&
           std::ranges::all_of(zero->type.shape.dims, [](const Dim& dim) { return dim == Dim(1); });
  };
  return one(node.inputs[2]) && one(node.inputs[3]);
}

void roi_align(const Context& c) {
  const auto& size = c.attr().integers("size");
  const bool half = c.attr().boolean("half_pixel");
  set(c, c.one("RoiAlign", {c.graph.channels_first(c.value(0)), c.in(1), c.i64(2)},
               {{"output_height", size[0]},
                {"output_width", size[1]},
                {"sampling_ratio", c.attr().integer("samples")},
                {"spatial_scale", static_cast<float>(c.attr().number("scale"))},
                {"mode", c.attr().text("mode")},
                {"coordinate_transformation_mode", std::string(half ? "half_pixel" : "output_half_pixel")}}));
}
bool averages(const Node& node) { return node.attr().text("mode") == "avg"; }

constexpr Row kWindowRows[] = {{"conv2d", conv},
                               {"conv2d_integer", conv_integer, nullptr, of_single_zeros},
                               {"roi_align", roi_align, nullptr, averages},
                               {"conv3d", conv},
                               {"conv2d_input_gradient", transposed_conv, nullptr, of_known_window},
                               {"conv3d_input_gradient", transposed_conv, nullptr, of_known_window},
                               {"max_pool2d", pool<kMaxPool>, nullptr, is_pooled},
                               {"max_pool3d", pool<kMaxPool>, nullptr, is_pooled},
                               {"max_pool2d_indices", pool_places, nullptr, is_pooled_of_one_channel},
                               {"max_pool3d_indices", pool_places, nullptr, is_pooled_of_one_channel},
                               {"avg_pool2d", pool<kAveragePool>},
                               {"avg_pool3d", pool<kAveragePool>},
                               {"resize2d", resize, nullptr, without_steps}};

}  // namespace

std::span<const Row> window_rows() { return kWindowRows; }

}  // namespace cairn::onnx_export
