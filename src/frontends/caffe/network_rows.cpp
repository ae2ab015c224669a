// Caffe's convolutions, pooling, normalisation and inner products. Caffe's images are NCHW and the module's NHWC: each layer
// transposes its bottom and its top; the layout pass removes these transposes.
#include <algorithm>
#include <cmath>

#include "frontends/caffe/importer.h"
#include "frontends/fold.h"
#include "frontends/neighbours.h"

namespace cairn::caffe {
namespace {

Value* channels_last(Value* x, Builder& b) {
  return x->type.shape.rank() == 5 ? transposed(x, {0, 2, 3, 4, 1}, b) : transposed(x, {0, 2, 3, 1}, b);
}

Value* channels_first(Value* y, Builder& b) {
  return y->type.shape.rank() == 5 ? transposed(y, {0, 4, 1, 2, 3}, b) : transposed(y, {0, 3, 1, 2}, b);
}

/// A size for each spatial dim: by the names "x_h" and "x_w", as one number for all, or as a number for each.
std::vector<int64_t> spatial(const LayerContext& c, const Message& params, const std::string& name,
                             const std::string& stem, std::optional<int64_t> fallback, int64_t least) {
  constexpr int64_t kMost = 1 << 24;
  const size_t count = c.rank() - 2;
  std::vector<int64_t> sizes = params.integers(name);
  if (count == 2 && (params.has(stem + "_h") || params.has(stem + "_w")))
    sizes = {params.integer(stem + "_h", fallback.value_or(0)), params.integer(stem + "_w", fallback.value_or(0))};
  if (sizes.empty() && fallback) sizes = {*fallback};
  if (sizes.size() == 1) sizes.resize(count, sizes[0]);
  if (sizes.size() != count) c.invalid("{} has {} numbers, expected 1 or {}", name, sizes.size(), count);
  for (int64_t size : sizes)
    if (size < least || size > kMost) c.invalid("{} must be at least {}, found {}", name, least, size);
  return sizes;
}

struct Windows {
  std::vector<int64_t> kernel, strides, pads, dilations;
  int64_t outputs, groups;

  Attributes attributes() const {
    std::vector<int64_t> pairs;
    for (int64_t pad : pads) pairs.insert(pairs.end(), {pad, pad});
    return {{"strides", strides},
            {"dilations", dilations},
            {"groups", groups},
            {"padding", std::string("explicit")},
            {"pads", pairs}};
  }
};

Windows windows_of(const LayerContext& c, const Message& params) {
  if (c.rank() != 4 && c.rank() != 5) c.refuse("images of {} dims are not supported, only 4 and 5", c.rank());
  if (normal_axis(params.integer("axis", 1), c.rank()) != 1) c.refuse("only axis 1 is supported");
  const bool each = c.target != nullptr;  // each channel is a group
  Windows windows{spatial(c, params, "kernel_size", "kernel", {}, 1),
                  spatial(c, params, "stride", "stride", 1, 1),
                  spatial(c, params, "pad", "pad", 0, 0),
                  spatial(c, params, "dilation", "dilation", 1, 1),
                  params.integer("num_output", 0),
                  each ? c.size(1) : params.integer("group", 1)};
  if (each && windows.outputs == 0) windows.outputs = c.size(1);
  if (windows.groups < 1 || windows.outputs < 1 || windows.outputs % windows.groups != 0 ||
      c.size(1) % windows.groups != 0)
    c.invalid("{} channels and {} outputs do not divide into {} groups", c.size(1), windows.outputs, windows.groups);
  return windows;
}

Value* with_bias(LayerContext& c, const Message& params, Value* y, int64_t outputs) {
  return params.flag("bias_term", true) ? c.b.add("add", {y, c.blob(1, {outputs})}) : y;
}

/// The weights [first, second, spatial ...] with the spatial dims in front.
Value* kernel_of(LayerContext& c, const Windows& windows, int64_t first, int64_t second) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), windows.kernel.begin(), windows.kernel.end());
  Value* kernel = c.blob(0, dims);
  return dims.size() == 5 ? transposed(kernel, {2, 3, 4, 1, 0}, c.b) : transposed(kernel, {2, 3, 1, 0}, c.b);
}

void convolution(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("convolution_param");
  const Windows windows = windows_of(c, params);
  Value* y = c.b.add(c.rank() == 5 ? "conv3d" : "conv2d",
                     {channels_last(c.in[0], c.b), kernel_of(c, windows, windows.outputs, c.size(1) / windows.groups)},
                     windows.attributes());
  c.out = {channels_first(with_bias(c, params, y, windows.outputs), c.b)};
}

/// The gradient of a convolution by its image; out = stride * (in - 1) + dilation * (kernel - 1) + 1 - 2 * pad.
void deconvolution(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("convolution_param");
  const Windows windows = windows_of(c, params);
  Value* x = channels_last(c.in[0], c.b);
  Value* kernel = kernel_of(c, windows, c.size(1), windows.outputs / windows.groups);
  std::vector<Value*> sizes{dim_of(x, 0, c.b)};
  std::vector<Dim> dims{x->type.shape.dims[0]};
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t added = windows.dilations[i] * (windows.kernel[i] - 1) + 1 - 2 * windows.pads[i] - windows.strides[i];
    const Dim in = x->type.shape.dims[1 + i];
    dims.push_back(in.known() ? Dim(std::max<int64_t>(in.size * windows.strides[i] + added, -1)) : Dim());
    if (in.known() && in.size * windows.strides[i] + added < 0) c.invalid("the top has a negative size");
    Value* scaled = folded(c.b.add("mul", {dim_of(x, 1 + i, c.b), c.b.ints({windows.strides[i]})}), c.b);
    sizes.push_back(folded(c.b.add("add", {scaled, c.b.ints({added})}), c.b));
  }
  dims.emplace_back(windows.outputs);
  sizes.push_back(c.b.ints({windows.outputs}));
  const OpDef& op = op_named(c.rank() == 5 ? "conv3d_input_gradient" : "conv2d_input_gradient");
  Value* y = c.b.add_node(op, {x, kernel, joined(sizes, c.b)}, windows.attributes(), {},
                          {Type::tensor(x->type.dtype, Shape(dims))})
                 ->result();
  c.out = {channels_first(with_bias(c, params, y, windows.outputs), c.b)};
}

enum Pool : int64_t { kMax, kMean };

struct Window {
  std::vector<int64_t> kernel, strides, pads;
};

/// Pooling of NCHW images. The mean counts the padding, but not what the last windows have beyond it.
Value* pooled(LayerContext& c, Value* x, int64_t how, const Window& window, bool ceil) {
  if (how != kMax && how != kMean) c.refuse("only the largest and the mean can be taken");
  std::vector<int64_t> pairs;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t kernel = window.kernel[i], stride = window.strides[i], pad = window.pads[i];
    if (pad >= kernel) c.invalid("the padding {} is not below the kernel {}", pad, kernel);
    pairs.insert(pairs.end(), {pad, pad});
    // Without padding Caffe keeps a last window that begins behind the image and has no elements.
    const Dim in = x->type.shape.dims[2 + i];
    if (ceil && pad == 0 && stride > kernel && in.known() && in.size >= kernel &&
        (in.size - kernel + stride - 1) / stride * stride >= in.size)
      c.refuse("the last window has no elements: kernel {}, stride {}, {} elements", kernel, stride, in.size);
  }
  Attributes attributes{{"window", window.kernel},
                        {"strides", window.strides},
                        {"ceil_mode", ceil},
                        {"padding", std::string("explicit")},
                        {"pads", pairs}};
  if (how == kMean) attributes.set("count_padding", true);
  return channels_first(c.b.add(how == kMax ? "max_pool2d" : "avg_pool2d", {channels_last(x, c.b)}, attributes), c.b);
}

void pooling(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("pooling_param");
  const int64_t how = params.integer("pool", kMax);
  if (c.rank() != 4) c.refuse("images of {} dims are not supported, only 4", c.rank());
  if (c.tops() > 1) c.refuse("the places of the largest elements as a second top are not supported");
  if (params.flag("global_pooling", false)) {
    if (how != kMax && how != kMean) c.refuse("only the largest and the mean can be taken");
    c.out = {c.b.add(how == kMax ? "reduce_max" : "reduce_mean", {c.in[0]},
                     {{"axes", std::vector<int64_t>{2, 3}}, {"keep_dims", true}})};
    return;
  }
  const Window window{spatial(c, params, "kernel_size", "kernel", {}, 1), spatial(c, params, "stride", "stride", 1, 1),
                      spatial(c, params, "pad", "pad", 0, 0)};
  const bool ceil = params.flag("ceil_mode", true) && params.integer("round_mode", 0) == 0;
  c.out = {pooled(c, c.in[0], how, window, ceil)};
}

/// Pooling to 1 x 1, 2 x 2, 4 x 4 ... windows, one behind the other as a vector.
void pyramid(LayerContext& c) {
  c.expect(1);
  constexpr int64_t kMost = 10;
  const Message params = c.params("spp_param");
  const int64_t height = params.integer("pyramid_height", 0);
  if (height < 1 || height > kMost) c.invalid("pyramid_height must be 1 to {}, found {}", kMost, height);
  if (c.rank() != 4) c.refuse("images of {} dims are not supported, only 4", c.rank());
  std::vector<Value*> parts;
  for (int64_t level = 0; level < height; ++level) {
    const int64_t bins = int64_t{1} << level;
    Window window;
    for (size_t axis : {2, 3}) {
      const int64_t kernel = (c.size(axis) + bins - 1) / bins;
      window.kernel.push_back(kernel);
      window.pads.push_back((kernel * bins - c.size(axis) + 1) / 2);
    }
    window.strides = window.kernel;
    Value* level_top = pooled(c, c.in[0], params.integer("pool", kMax), window, true);
    parts.push_back(c.reshape(level_top, {{-1, 0}, {}}));
  }
  c.out = {parts.size() == 1 ? parts[0] : c.b.add("concat", parts, {{"axis", int64_t{1}}})};
}

void inner_product(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("inner_product_param");
  const size_t axis = c.axis(params, "axis", 1);
  const int64_t outputs = params.integer("num_output", 0);
  const bool turned = params.flag("transpose", false);
  if (outputs < 1) c.invalid("num_output must be above 0, found {}", outputs);
  int64_t inputs = 1;
  for (size_t i = axis; i < c.rank(); ++i)
    if (__builtin_mul_overflow(inputs, c.size(i), &inputs)) c.invalid("has too many elements");
  std::vector<NewDim> dims;
  for (size_t i = 0; i < axis; ++i) dims.push_back({-1, static_cast<int>(i)});
  if (axis == 0) dims.push_back({1});
  dims.push_back({inputs});
  Value* weights = c.blob(0, turned ? std::vector{inputs, outputs} : std::vector{outputs, inputs});
  Value* y = c.b.add("matmul", {reshape_to(c.in[0], dims, c.b), weights}, {{"transpose_b", !turned}});
  y = with_bias(c, params, y, outputs);
  c.out = {axis == 0 ? squeeze(y, {0}, c.b) : y};
}

/// x * (k + alpha / n * sum) ^ -beta, the sum over the squares of n neighbours: channels, or pixels of the same channel.
void local_response(LayerContext& c) {
  c.expect(1);
  enum { across, within };
  constexpr int64_t kMost = 1024;
  const Message params = c.params("lrn_param");
  const int64_t size = params.integer("local_size", 5), region = params.integer("norm_region", across);
  if (size < 1 || size > kMost || size % 2 == 0)
    c.invalid("local_size must be odd and at most {}, found {}", kMost, size);
  if (c.rank() != 4) c.refuse("images of {} dims are not supported, only 4", c.rank());
  double alpha = params.real("alpha", 1), k = 1;
  Value* sum = c.b.add("square", {c.in[0]});
  if (region == within) {
    const int64_t pad = (size - 1) / 2;
    sum = pooled(c, sum, kMean, {{size, size}, {1, 1}, {pad, pad}}, true);
  } else {
    k = params.real("k", 1), alpha /= static_cast<double>(size);
    sum = sum_of_neighbours(sum, 1, size / 2, size / 2, c.b);
  }
  Value* level = c.b.add("add", {c.b.add("mul", {sum, c.b.scalar_like(sum, alpha)}), c.b.scalar_like(sum, k)});
  Value* factor = c.b.add("pow", {level, c.b.scalar_like(sum, -params.real("beta", 0.75f))});
  c.out = {c.b.add("mul", {c.in[0], factor})};
}

/// By kept statistics, both divided by the third of the weights; or by those of the batch.
void batch_norm(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("batch_norm_param");
  const double epsilon = params.real("eps", 1e-5f);
  const int64_t channels = c.rank() == 1 ? 1 : c.size(1);
  const Attributes attributes{{"epsilon", epsilon}, {"axis", int64_t{c.rank() > 1 ? 1 : 0}}};
  const auto filled = [&](float number) {
    return c.b.constant(Tensor::of<float>(kF32, {channels}, std::vector<float>(static_cast<size_t>(channels), number)));
  };
  if (!params.flag("use_global_stats", true)) {
    c.out = {c.b.add("batch_norm_training", {c.in[0], filled(1), filled(0)}, attributes)};
    return;
  }
  const float count = c.weights(2, {1}).values<float>()[0];
  const auto statistic = [&](size_t i) {
    const Tensor stored = c.weights(i, {channels});
    Tensor divided = Tensor::zeros(kF32, {channels});
    const auto from = stored.values<float>();
    std::transform(from.begin(), from.end(), divided.mutable_values<float>().begin(),
                   [&](float x) { return count == 0 ? 0 : x * (1 / count); });
    return c.b.constant(std::move(divided), fmt::format("{}/blob{}", clean(c.layer().name), i));
  };
  c.out = {c.b.add("batch_norm", {c.in[0], filled(1), filled(0), statistic(0), statistic(1)}, attributes)};
}

/// (x - mean) / (standard deviation + eps), of each channel or of all together.
void mean_variance(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("mvn_param");
  std::vector<int64_t> axes;
  for (size_t i = params.flag("across_channels", false) ? 1 : 2; i < c.rank(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  const Attributes over{{"axes", axes}, {"keep_dims", true}};
  Value* x = c.b.add("sub", {c.in[0], c.b.add("reduce_mean", {c.in[0]}, over)});
  if (params.flag("normalize_variance", true)) {
    Value* deviation = c.b.add("sqrt", {c.b.add("reduce_mean", {c.b.add("square", {x})}, over)});
    x = c.b.add("div", {x, c.b.add("add", {deviation, c.b.scalar_like(x, params.real("eps", 1e-9f))})});
  }
  c.out = {x};
}

/// x / sqrt(sum of squares + eps) * scale, the sum over channels, or over channels and pixels.
void normalize(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("norm_param");
  std::vector<int64_t> axes{1};
  if (params.flag("across_spatial", true))
    for (size_t i = 2; i < c.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  Value* sum = c.b.add("reduce_sum", {c.b.add("square", {c.in[0]})}, {{"axes", axes}, {"keep_dims", true}});
  Value* length = c.b.add("sqrt", {c.b.add("add", {sum, c.b.scalar_like(sum, params.real("eps", 1e-10f))})});
  const bool shared = params.flag("channel_shared", true);
  Value* scale = c.blob(0, shared ? std::vector<int64_t>() : std::vector{c.size(1)});
  if (!shared) {
    std::vector<int64_t> dims(c.rank() - 1, 1);
    dims[0] = -1;
    scale = c.b.add("reshape", {scale, c.b.ints(dims)});
  }
  c.out = {c.b.add("mul", {c.b.add("div", {c.in[0], length}), scale})};
}

constexpr Row kNetworkRows[] = {
    {"BatchNorm", batch_norm},
    {"Convolution", convolution},
    {"ConvolutionDepthwise", convolution, "each"},
    {"Deconvolution", deconvolution},
    {"DepthwiseConvolution", convolution, "each"},
    {"InnerProduct", inner_product},
    {"LRN", local_response},
    {"MVN", mean_variance},
    {"Normalize", normalize},
    {"Pooling", pooling},
    {"SPP", pyramid},
};

}  // namespace

std::span<const Row> network_rows() { return kNetworkRows; }

}  // namespace cairn::caffe
