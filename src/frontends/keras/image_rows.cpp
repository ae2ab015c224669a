// Layers of Keras on images and rows of pixels, channels last.
#include <algorithm>
#include <numeric>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

/// Images [n, h, w, c]; those of one dim [n, w, c] get a height of 1.
class Image {
 public:
  explicit Image(LayerContext& c) : c_(c), flat_(c.rank() == 3) {
    c.expect_inputs(1);
    if (c.rank() != 3 && c.rank() != 4) c.refuse("images of {} dims are not supported, only 3 and 4", c.rank());
  }
  size_t dims() const { return flat_ ? 1 : 2; }
  Value* in(Value* x) const { return flat_ ? expand_dims(x, {1}, c_.b) : x; }
  Value* out(Value* y) const { return flat_ ? squeeze(y, {1}, c_.b) : y; }
  Value* kernel(Value* w) const { return flat_ ? expand_dims(w, {0}, c_.b) : w; }
  std::vector<int64_t> sizes(const char* key, int64_t fallback) const {
    std::vector<int64_t> list = c_.sizes(key, dims(), fallback);
    if (flat_) list.insert(list.begin(), 1);
    return list;
  }
  /// A kernel's dims in the file: sizes of the window, then these.
  std::vector<int64_t> kernel_dims(int64_t in, int64_t out) const {
    std::vector<int64_t> list = c_.sizes("kernel_size", dims(), 1);
    list.insert(list.end(), {in, out});
    return list;
  }
  Attributes windows() const {
    const std::string padding = c_.text("padding", "valid");
    if (padding != "same" && padding != "valid" && !(padding == "causal" && flat_))
      c_.refuse("padding '{}' is not supported", printable(padding));
    return {{"strides", sizes("strides", 1)}, {"padding", std::string(padding == "same" ? "same" : "valid")}};
  }
  Attributes convolution(int64_t groups) const {
    Attributes attributes = windows();
    attributes.set("dilations", sizes("dilation_rate", 1));
    attributes.set("groups", groups);
    if (c_.text("padding", "valid") == "causal") {
      const int64_t before = (sizes("kernel_size", 1)[1] - 1) * sizes("dilation_rate", 1)[1];
      attributes.set("padding", std::string("explicit"));
      attributes.set("pads", std::vector<int64_t>{0, 0, before, 0});
    }
    return attributes;
  }

 private:
  LayerContext& c_;
  bool flat_;
};

void finish(LayerContext& c, const Image& image, Value* y, int64_t channels) {
  if (c.boolean("use_bias", true)) y = c.b.add("add", {y, c.weight("bias", {channels})});
  c.out = {c.activated(image.out(y))};
}

void conv(LayerContext& c) {
  Image image(c);
  const int64_t groups = c.integer("groups", 1), filters = c.integer("filters", -1);
  if (groups < 1 || c.last_dim() < 0) c.refuse("groups and channels must be known");
  Value* kernel = c.weight("kernel", image.kernel_dims(c.last_dim() / groups, filters));
  Value* y = c.b.add("conv2d", {image.in(c.in[0]), image.kernel(kernel)}, image.convolution(groups));
  finish(c, image, y, filters);
}

/// The kernel [h, w, channels, multiplier] as that of a convolution with one group for each channel.
Value* depthwise(LayerContext& c, const Image& image) {
  const int64_t channels = c.last_dim(), times = c.integer("depth_multiplier", 1);
  if (channels < 0 || times < 1 || times > (1 << 20) || channels > (1 << 20)) c.refuse("channels must be known");
  Value* kernel = image.kernel(c.weight("depthwise_kernel", image.kernel_dims(channels, times)));
  const std::vector<int64_t> sizes = kernel->type.shape.sizes();
  kernel = reshape_to(kernel, {{sizes[0]}, {sizes[1]}, {1}, {channels * times}}, c.b);
  return c.b.add("conv2d", {image.in(c.in[0]), kernel}, image.convolution(channels));
}

void depthwise_conv(LayerContext& c) {
  Image image(c);
  finish(c, image, depthwise(c, image), c.last_dim() * c.integer("depth_multiplier", 1));
}

void separable_conv(LayerContext& c) {
  Image image(c);
  const int64_t filters = c.integer("filters", -1);
  Value* y = depthwise(c, image);
  std::vector<int64_t> dims(image.dims(), 1);
  dims.insert(dims.end(), {c.last_dim() * c.integer("depth_multiplier", 1), filters});
  y = c.b.add("conv2d", {y, image.kernel(c.weight("pointwise_kernel", dims))});
  finish(c, image, y, filters);
}

}  // namespace

std::vector<Value*> channels_moved(std::vector<Value*> values, size_t channels, size_t rank, bool to_last, Builder& b) {
  for (Value*& value : values) {
    if (value == nullptr || !value->type.is_tensor() || !value->type.shape.ranked) continue;
    const size_t dims = value->type.shape.rank(), gone = rank - std::min(rank, dims);
    if (dims < 3 || gone >= channels || channels - gone >= dims) continue;
    std::vector<int64_t> order(dims);
    std::iota(order.begin(), order.end(), 0);
    const auto at = order.begin() + static_cast<int64_t>(channels - gone);
    to_last ? std::rotate(at, at + 1, order.end()) : std::rotate(at, order.end() - 1, order.end());
    value = transposed(value, order, b);
  }
  return values;
}

int64_t transposed_extra(const LayerContext& c, size_t i, size_t dims, int64_t kernel, int64_t stride,
                         int64_t dilation) {
  const std::string padding = c.text("padding", "valid");
  if (padding != "same" && padding != "valid") c.refuse("padding '{}' is not supported", printable(padding));
  const int64_t reach = (kernel - 1) * dilation + 1;
  if (c.find("output_padding") == nullptr) return padding == "same" ? 0 : std::max<int64_t>(reach - stride, 0);
  std::vector<int64_t> added = c.integers("output_padding");
  if (added.size() == 1) added.assign(dims, added[0]);
  if (added.size() != dims || added[i] < 0 || added[i] >= stride)
    fail(ErrorKind::invalid_model, "", "output_padding does not fit the strides");
  return (padding == "same" ? reach % 2 : reach) - stride + added[i];
}

namespace {

void conv_transpose(LayerContext& c) {
  Image image(c);
  const int64_t filters = c.integer("filters", -1);
  Value* x = image.in(c.in[0]);
  Value* kernel = image.kernel(c.weight("kernel", image.kernel_dims(filters, c.last_dim())));
  const Attributes attributes = image.convolution(1);
  const std::vector<int64_t> strides = image.sizes("strides", 1), dilations = image.sizes("dilation_rate", 1);
  std::vector<Value*> sizes{dim_of(x, 0, c.b)};
  std::vector<Dim> dims{x->type.shape.dims[0]};
  for (size_t i : {0, 1}) {
    const bool made = image.dims() == 1 && i == 0;  // the height of rows
    const int64_t added = made ? 0
                               : transposed_extra(c, i + image.dims() - 2, image.dims(), kernel->type.shape.sizes()[i],
                                                  strides[i], dilations[i]);
    Value* scaled = folded(c.b.add("mul", {dim_of(x, 1 + i, c.b), c.b.ints({strides[i]})}), c.b);
    sizes.push_back(folded(c.b.add("add", {scaled, c.b.ints({added})}), c.b));
    const Dim in = x->type.shape.dims[1 + i];
    dims.push_back(in.known() ? Dim(in.size * strides[i] + added) : Dim());
  }
  sizes.push_back(c.b.ints({filters}));
  dims.emplace_back(filters);
  Value* y = c.b.add_node(op_named("conv2d_input_gradient"), {x, kernel, joined(sizes, c.b)}, attributes, {},
                          {Type::tensor(x->type.dtype, Shape(dims))})
                 ->result();
  finish(c, image, y, filters);
}

void pool(LayerContext& c) {
  Image image(c);
  Attributes attributes = image.windows();
  attributes.set("window", image.sizes("pool_size", 2));
  if (c.find("strides") == nullptr) attributes.set("strides", image.sizes("pool_size", 2));
  c.out = {image.out(c.b.add(c.target, {image.in(c.in[0])}, attributes))};
}

/// The mean of the steps that count.
void masked_mean(LayerContext& c) {
  Value* weights = expand_dims(cast_to(c.masks[0], c.in[0]->type.dtype, c.b), {2}, c.b);
  const Attributes over{{"axes", std::vector<int64_t>{1}}, {"keep_dims", c.boolean("keepdims", false)}};
  Value* sum = c.b.add("reduce_sum", {c.b.add("mul", {c.in[0], weights})}, over);
  c.out = {c.b.add("div", {sum, c.b.add("reduce_sum", {weights}, over)})};
}

void global_pool(LayerContext& c) {
  Image image(c);
  if (c.masks[0] != nullptr && image.dims() == 1 && std::string_view(c.target) == "reduce_mean") return masked_mean(c);
  std::vector<int64_t> axes{1};
  if (image.dims() == 2) axes.push_back(2);
  c.out = {c.b.add(c.target, {c.in[0]}, {{"axes", axes}, {"keep_dims", c.boolean("keepdims", false)}})};
}

/// Before and after, for each dim of the image: a number, two of them, or pairs.
std::vector<int64_t> borders(LayerContext& c, const char* key, size_t dims) {
  const Json* given = c.find(key);
  if (given == nullptr) fail(ErrorKind::invalid_model, "", "has no {}", key);
  std::vector<int64_t> result;
  auto add = [&](const Json& number, size_t times) {
    const bool good = number.is_number_integer() && number >= 0 && number <= (1 << 24);
    if (!good) fail(ErrorKind::invalid_model, "", "{} is no number of pixels", key);
    result.insert(result.end(), times, number.get<int64_t>());
  };
  if (!given->is_array()) {
    add(*given, 2 * dims);
  } else if (dims == 1) {
    for (const Json& one : *given) add(one, 1);
  } else {
    for (const Json& one : *given)
      if (one.is_array())
        for (const Json& number : one) add(number, 1);
      else
        add(one, 2);
  }
  if (result.size() != 2 * dims)
    fail(ErrorKind::invalid_model, "", "{} has {} numbers, expected {}", key, result.size(), 2 * dims);
  return result;
}

/// Dims between the batch and the channels.
size_t inner_dims(LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() < 3 || c.rank() > 5) c.refuse("an input of {} dims is not supported", c.rank());
  return c.rank() - 2;
}

void zero_padding(LayerContext& c) {
  std::vector<int64_t> pads{0, 0};
  for (int64_t border : borders(c, "padding", inner_dims(c))) pads.push_back(border);
  pads.insert(pads.end(), {0, 0});
  c.out = {c.b.add("pad", {c.in[0], c.b.constant(Tensor::of<int64_t>(kI64, {int64_t(pads.size()) / 2, 2}, pads))})};
}

void cropping(LayerContext& c) {
  const size_t dims = inner_dims(c);
  const std::vector<int64_t> list = borders(c, "cropping", dims);
  std::vector<int64_t> begins{0}, ends{kAll};
  for (size_t i = 0; i < dims; ++i) {
    begins.push_back(list[2 * i]);
    ends.push_back(list[2 * i + 1] == 0 ? kAll : -list[2 * i + 1]);
  }
  begins.push_back(0), ends.push_back(kAll);
  c.out = {c.b.add("slice", {c.in[0], c.b.ints(begins), c.b.ints(ends)})};
}

void up_sampling(LayerContext& c) {
  Image image(c);
  const std::vector<int64_t> factors = image.sizes("size", 2);
  const std::string mode = c.text("interpolation", "nearest");
  if (mode != "nearest" && mode != "bilinear") c.refuse("interpolation '{}' is not supported", printable(mode));
  Value* x = image.in(c.in[0]);
  std::vector<Value*> sizes;
  for (size_t i : {0, 1})
    sizes.push_back(
        folded(c.b.add("mul", {dim_of(x, 1 + i, c.b), c.b.ints({image.dims() == 1 && i == 0 ? 1 : factors[i]})}), c.b));
  c.out = {image.out(
      c.b.add("resize2d", {x, joined(sizes, c.b)}, {{"mode", mode}, {"coordinates", std::string("half_pixel")}}))};
}

constexpr auto kImageMasks = Row::Masks::end;

constexpr Row kImageRows[] = {
    {"AveragePooling1D", pool, "avg_pool2d", kImageMasks, false, 1},
    {"AveragePooling2D", pool, "avg_pool2d", kImageMasks, false, 1},
    {"Conv1D", conv, nullptr, kImageMasks, false, 1},
    {"Conv1DTranspose", conv_transpose, nullptr, kImageMasks, false, 1},
    {"Conv2D", conv, nullptr, kImageMasks, false, 1},
    {"Conv2DTranspose", conv_transpose, nullptr, kImageMasks, false, 1},
    {"Cropping1D", cropping, nullptr, kImageMasks, false, 1},
    {"Cropping2D", cropping, nullptr, kImageMasks, false, 1},
    {"Cropping3D", cropping, nullptr, kImageMasks, false, 1},
    {"DepthwiseConv1D", depthwise_conv, nullptr, kImageMasks, false, 1},
    {"DepthwiseConv2D", depthwise_conv, nullptr, kImageMasks, false, 1},
    {"GlobalAveragePooling1D", global_pool, "reduce_mean", kImageMasks, false, 1},
    {"GlobalAveragePooling2D", global_pool, "reduce_mean", kImageMasks, false, 1},
    {"GlobalMaxPooling1D", global_pool, "reduce_max", kImageMasks, false, 1},
    {"GlobalMaxPooling2D", global_pool, "reduce_max", kImageMasks, false, 1},
    {"MaxPooling1D", pool, "max_pool2d", kImageMasks, false, 1},
    {"MaxPooling2D", pool, "max_pool2d", kImageMasks, false, 1},
    {"SeparableConv1D", separable_conv, nullptr, kImageMasks, false, 1},
    {"SeparableConv2D", separable_conv, nullptr, kImageMasks, false, 1},
    {"UpSampling1D", up_sampling, nullptr, kImageMasks, false, 1},
    {"UpSampling2D", up_sampling, nullptr, kImageMasks, false, 1},
    {"ZeroPadding1D", zero_padding, nullptr, kImageMasks, false, 1},
    {"ZeroPadding2D", zero_padding, nullptr, kImageMasks, false, 1},
    {"ZeroPadding3D", zero_padding, nullptr, kImageMasks, false, 1},
};

}  // namespace

std::span<const Row> image_rows() { return kImageRows; }

}  // namespace cairn::keras
