#include "passes/aipp.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/builder.h"
#include "ops/aipp.h"
#include "support/nearest.h"

namespace cairn {

namespace {

constexpr double kExactF32 = 1 << 24;  // whole numbers below it are exact in f32
constexpr int64_t kToEnd = INT64_MAX;

/// Numbers of the conversion when none are given: YUV to BGR, and RGB to YUV (BT.601).
constexpr double kYuvToBgr[9] = {298, 516, 0, 298, -100, -208, 298, 0, 409};
constexpr double kRgbToYuv[9] = {66, 129, 25, -38, -74, 112, 112, -94, -18};
constexpr double kBias[3] = {16, 128, 128};

struct AippSize {
  int64_t height = 0, width = 0, channels = 0;
};

struct Size {
  int64_t height = 0, width = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

/// Builds the nodes of one block, all of them f32 images of order NHWC until the end.
class Preprocess {
 public:
  Preprocess(Builder& builder, const AippOp& op, std::string where) : b_(builder), op_(op), where_(std::move(where)) {}

  /// Checks all sizes and returns the type of the source image; `wanted` is the size of the model's own image.
  Type source_type(Dim batch, Size wanted, int64_t channels) {
    check_kind();
    source_ = {op_.integer("src_image_size_h"), op_.integer("src_image_size_w")};
    bool crop = op_.is_on("crop"), pad = op_.is_on("padding");
    if (source_.height == 0) source_.height = wanted.height;
    if (source_.width == 0) source_.width = wanted.width;
    if (source_.width < 2 || source_.width > 4096 || source_.height < 1 || source_.height > 4096)
      refuse("the source image is {} high and {} wide, expected 1..4096 and 2..4096", source_.height, source_.width);
    image_ = source_;
    if (crop) {
      image_ = {op_.integer("crop_size_h"), op_.integer("crop_size_w")};
      if ((image_.height == 0 || image_.width == 0) && pad) refuse("crop_size 0 cannot stand together with padding");
      if (image_.height == 0) image_.height = wanted.height;
      if (image_.width == 0) image_.width = wanted.width;
      check_crop();
    }
    Size result = image_;
    if (pad) {
      result.height += op_.integer("top_padding_size") + op_.integer("bottom_padding_size");
      result.width += op_.integer("left_padding_size") + op_.integer("right_padding_size");
    }
    if (result != wanted)
      refuse("it makes images of {} x {}, the model takes {} x {}", result.height, result.width, wanted.height,
             wanted.width);
    check_even();
    set_channels(channels);
    return Type::tensor(kU8, source_shape(batch));
  }

  /// The same for a model with open height or width, whose images have the size of the source.
  Type open_source_type(const Dim& batch, const Dim& height, const Dim& width, int64_t channels) {
    check_kind();
    for (const char* field : {"crop", "padding", "src_image_size_h", "src_image_size_w"})
      if (op_.is_on(field)) refuse("{} needs a model of known height and width", field);
    if (format_ == kYuv420 || format_ == kYuyv || format_ == kYuv422)
      refuse("images whose pixels share colours need a model of known height and width");
    set_channels(channels);
    return Type::tensor(kU8, {batch, height, width, source_channels()});
  }

  Value* image(Value* source) {
    Value* x = planes(b_.add("cast", {source}, {{"dtype", kF32}}));
    if (op_.is_on("crop")) {
      int64_t top = op_.integer("load_start_pos_h"), left = op_.integer("load_start_pos_w");
      x = part(x, {0, top, left, 0}, {kToEnd, top + image_.height, left + image_.width, kToEnd});
    }
    x = swapped(x);
    if (op_.is_on("csc_switch")) x = converted(x);
    if (channels_ < width_) x = part(x, {0, 0, 0, 0}, {kToEnd, kToEnd, kToEnd, channels_});
    x = scaled(x);
    if (!op_.is_on("padding")) return x;
    std::vector<int64_t> pads = {0,
                                 0,
                                 op_.integer("top_padding_size"),
                                 op_.integer("bottom_padding_size"),
                                 op_.integer("left_padding_size"),
                                 op_.integer("right_padding_size"),
                                 0,
                                 0};
    Value* sizes = b_.constant(Tensor::of(kI64, {4, 2}, pads));
    return b_.add("pad", {x, sizes}, {{"value", op_.number("padding_value")}});
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    op_.refuse(where_, text, std::forward<Args>(args)...);
  }

  void check_kind() {
    format_ = op_.integer("input_format");
    if (op_.integer("aipp_mode") != 1) refuse("aipp_mode is neither static nor dynamic");
    if (!op_.has("input_format")) refuse("input_format is missing");
    if (op_.is_on("resize"))
      refuse("resize is not supported: the platform has it on camera chips alone; resize before");
    for (int64_t known : {kYuv420, kXrgb, kRgb, kYuv400, kArgb, kYuyv, kYuv422, kAyuv})
      if (format_ == known) return;
    refuse("this input_format is not supported; images of 8 bits a channel are");
  }

  void set_channels(int64_t channels) {
    channels_ = channels;
    const int64_t have = source_channels();
    const bool fits =
        channels == have || (channels == 3 && have == 4) || (channels == 1 && have >= 3 && op_.is_on("csc_switch"));
    if (!fits) refuse("images have {} channels, the model takes {}", have, channels);
  }

  void check_crop() const {
    int64_t top = op_.integer("load_start_pos_h"), left = op_.integer("load_start_pos_w");
    if (top + image_.height > source_.height || left + image_.width > source_.width)
      refuse("the crop window of {} x {} at {}, {} leaves the source image of {} x {}", image_.height, image_.width,
             top, left, source_.height, source_.width);
    if (format_ == kYuv420 && (top % 2 || left % 2)) refuse("load_start_pos of YUV420SP_U8 must be even");
    if ((format_ == kYuyv || format_ == kYuv422) && left % 2) refuse("load_start_pos_w of YUV422 images must be even");
  }

  void check_even() const {
    if (format_ == kYuv420 && (source_.width % 2 || source_.height % 2))
      refuse("width and height of YUV420SP_U8 must be even, found {} x {}", source_.height, source_.width);
    if ((format_ == kYuyv || format_ == kYuv422) && source_.width % 2)
      refuse("the width of YUV422 images must be even");
  }

  int64_t source_channels() const { return aipp_channels(format_); }

  /// The shape of the bytes in memory: the planes of YUV420 stacked vertically, the pixel pairs of YUV422 adjacent.
  Shape source_shape(Dim batch) const {
    int64_t height = source_.height, width = source_.width;
    if (format_ == kYuv420) return {batch, height * 3 / 2, width, 1};
    if (format_ == kYuv422) return {batch, height * 2, width, 1};
    if (format_ == kYuyv) return {batch, height, width, 2};
    return {batch, height, width, source_channels()};
  }

  Value* part(Value* x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end) {
    return b_.add("slice", {x, b_.ints(begin), b_.ints(end)});
  }
  Value* channel(Value* x, int64_t index) { return part(x, {0, 0, 0, index}, {kToEnd, kToEnd, kToEnd, index + 1}); }

  /// Repeats each pixel `rows` x `columns` times.
  Value* enlarged(Value* x, int64_t height, int64_t width, int64_t rows, int64_t columns, int64_t channels) {
    Value* split = b_.add("reshape", {x, b_.ints({-1, height, 1, width, 1, channels})});
    Value* more = b_.add("tile", {split, b_.ints({1, 1, rows, 1, columns, 1})});
    return b_.add("reshape", {more, b_.ints({-1, height * rows, width * columns, channels})});
  }

  /// The image with three or four channels last, from bytes in any of the formats.
  Value* planes(Value* x) {
    int64_t height = source_.height, width = source_.width;
    width_ = source_channels();
    if (format_ == kYuv420 || format_ == kYuv422) {
      int64_t rows = format_ == kYuv420 ? 2 : 1;
      Value* y = part(x, {0, 0, 0, 0}, {kToEnd, height, kToEnd, kToEnd});
      Value* uv = part(x, {0, height, 0, 0}, {kToEnd, kToEnd, kToEnd, kToEnd});
      uv = enlarged(uv, height / rows, width / 2, rows, 2, 2);
      return b_.add("concat", {y, uv}, {{"axis", int64_t{3}}});
    }
    if (format_ == kYuyv) {  // Y U Y V for two pixels
      Value* quads = b_.add("reshape", {x, b_.ints({-1, height, width / 2, 4})});
      Value* u = enlarged(channel(quads, 1), height, width / 2, 1, 2, 1);
      Value* v = enlarged(channel(quads, 3), height, width / 2, 1, 2, 1);
      return b_.add("concat", {channel(x, 0), u, v}, {{"axis", int64_t{3}}});
    }
    return x;
  }

  Value* reordered(Value* x, const std::vector<int64_t>& order) {
    return b_.add("gather", {x, b_.ints(order)}, {{"axis", int64_t{3}}});
  }

  /// Swaps red and blue (or U and V), and moves alpha from the front to the end.
  Value* swapped(Value* x) {
    std::vector<int64_t> order(static_cast<size_t>(width_));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    if (op_.is_on("ax_swap_switch") && width_ == 4) std::rotate(order.begin(), order.begin() + 1, order.end());
    if (op_.is_on("rbuv_swap_switch") && width_ >= 3) {
      size_t first = aipp_is_yuv(format_) ? 1 : 0;
      if (width_ == 4 && !op_.is_on("ax_swap_switch")) ++first;
      std::swap(order[first], order[aipp_is_yuv(format_) ? first + 1 : first + 2]);
    }
    return std::is_sorted(order.begin(), order.end()) ? x : reordered(x, order);
  }

  /// ((M * (pixel - input_bias)) >> 8) + output_bias, clamped to 0..255; only YUV input has the input bias, only RGB
  /// input the output bias.
  Value* converted(Value* x) {
    if (width_ == 1) refuse("csc_switch needs an image of three channels");
    if (width_ == 4)
      x = part(x, {0, 0, 0, op_.is_on("ax_swap_switch") ? 0 : 1},
               {kToEnd, kToEnd, kToEnd, op_.is_on("ax_swap_switch") ? 3 : 4});
    width_ = 3;
    bool from_yuv = aipp_is_yuv(format_);
    const AippColours colours = colours_of(op_);
    std::vector<float> matrix(9), before(3), after(3);
    double most = 0;
    for (size_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (size_t column = 0; column < 3; ++column) {
        double value = colours.matrix[row * 3 + column];
        matrix[column * 3 + row] = static_cast<float>(value);
        sum += std::abs(value) * 255;
      }
      most = std::max(most, sum);
      before[row] = from_yuv ? static_cast<float>(colours.input_bias[row]) : 0.f;
      after[row] = from_yuv ? 0.f : static_cast<float>(colours.output_bias[row]);
    }
    if (most >= kExactF32) refuse("the numbers of the matrix are too large to be exact");
    if (from_yuv) x = b_.add("sub", {x, vector(before)});
    x = b_.add("matmul", {x, b_.constant(Tensor::of(kF32, {3, 3}, matrix))});
    x = b_.add("floor", {b_.add("mul", {x, b_.scalar(1.f / 256)})});
    if (!from_yuv) x = b_.add("add", {x, vector(after)});
    return b_.add("clip", {x}, {{"low", 0.0}, {"high", 255.0}});
  }

  Value* vector(const std::vector<float>& values) {
    return b_.constant(Tensor::of(kF32, {static_cast<int64_t>(values.size())}, values));
  }

  /// The numbers of a field of the channels that the model takes.
  std::vector<float> of_channels(const char* field, double missing) const {
    std::vector<float> values;
    for (int64_t i = 0; i < channels_; ++i)
      values.push_back(static_cast<float>(op_.number(fmt::format("{}{}", field, i), missing)));
    return values;
  }

  Value* scaled(Value* x) {
    std::vector<float> mean = of_channels("mean_chn_", 0), least = of_channels("min_chn_", 0);
    std::vector<float> factor = of_channels("var_reci_chn_", 1);
    auto all = [](const std::vector<float>& values, float value) {
      return std::all_of(values.begin(), values.end(), [&](float each) { return each == value; });
    };
    if (!all(mean, 0)) x = b_.add("sub", {x, vector(mean)});
    if (!all(least, 0)) x = b_.add("sub", {x, vector(least)});
    return all(factor, 1) ? x : b_.add("mul", {x, vector(factor)});
  }

  Builder& b_;
  const AippOp& op_;
  std::string where_;
  Size source_, image_;
  int64_t format_ = 0, channels_ = 0, width_ = 0;
};

Value* input_of(const Function& main, const AippOp& op) {
  const auto& params = main.body.params;
  if (op.input_name.empty()) {
    auto rank = static_cast<size_t>(op.integer("related_input_rank"));
    if (rank >= params.size())
      op.refuse("", "related_input_rank is {}, the model has {}; the first is 0", rank,
                params.size() == 1 ? "1 input" : fmt::format("{} inputs", params.size()));
    return params[rank].get();
  }
  for (const auto& param : params)
    if (param->name == op.input_name || param->name == op.input_name + ":0") return param.get();
  std::vector<std::string_view> names;
  for (const auto& param : params) names.push_back(param->name);
  op.refuse(op.input_name, "is no input of the model, which has {}{}", fmt::join(names, ", "),
            did_you_mean(op.input_name, names));
}

/// The image from the bytes and the parameters that each run passes; settings not given here are taken from the
/// parameters.
Value* dynamic_image(Builder& b, Function& main, Value* param, const AippOp& op, const AippSize& size,
                     const std::string& parameters) {
  auto refuse = [&](const std::string& text) { op.refuse(param->name, "{}", text); };
  constexpr std::string_view kKnown[] = {"aipp_mode", "related_input_rank", "input_edge_idx", "max_src_image_size",
                                         "support_rotation"};
  for (const auto& [name, value] : op.numbers)
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      refuse(fmt::format("{} is given with each run, in the input {}", name, parameters));
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t bytes = op.integer("max_src_image_size");
  if (bytes < 1 || bytes > kMost) refuse(fmt::format("max_src_image_size is {}, expected 1 to {}", bytes, kMost));
  if (op.is_on("support_rotation")) refuse("rotation is not supported");
  constexpr int64_t kHeader = AippHeader::kBytes, kImage = AippImage::kBytes;
  const Dim images = param->type.shape.dims[0];
  param->type = Type::tensor(kU8, {bytes});
  const Dim block = images.known() ? Dim(kHeader + kImage * images.size) : Dim(intern_symbol(parameters));
  Value* block_param = main.body.add_param(Type::tensor(kU8, Shape{block}), parameters);
  return b.add("aipp", {param, block_param},
               {{"height", size.height}, {"width", size.width}, {"channels", size.channels}});
}

/// `parameters`: the name of the input that dynamic preprocessing adds.
void insert(Function& main, Value* param, const AippOp& op, bool channels_first, const std::string& parameters) {
  const Type wanted = param->type;
  auto refuse = [&](const std::string& text) { op.refuse(param->name, "{}", text); };
  if (!wanted.is_tensor() || !wanted.shape.ranked || wanted.shape.rank() != 4)
    refuse(fmt::format("the input is {}, expected an image of 4 dimensions", to_string(wanted)));
  const auto& dims = wanted.shape.dims;
  size_t row = channels_first ? 2 : 1, channel = channels_first ? 1 : 3;
  const bool open = !dims[row].known() || !dims[row + 1].known();
  if (!dims[channel].known()) refuse(fmt::format("the channels of {} must be a number", to_string(wanted)));
  if (open && !parameters.empty())
    refuse(fmt::format("height and width of {} must be numbers for dynamic preprocessing", to_string(wanted)));
  size_t before = main.body.nodes.size();
  Builder builder(main.body);
  Value* image = nullptr;
  if (!parameters.empty()) {
    image =
        dynamic_image(builder, main, param, op, {dims[row].size, dims[row + 1].size, dims[channel].size}, parameters);
  } else {
    Preprocess preprocess(builder, op, param->name);
    param->type = open ? preprocess.open_source_type(dims[0], dims[row], dims[row + 1], dims[channel].size)
                       : preprocess.source_type(dims[0], {dims[row].size, dims[row + 1].size}, dims[channel].size);
    image = preprocess.image(param);
  }
  if (channels_first) image = builder.add("transpose", {image}, {{"permutation", std::vector<int64_t>{0, 3, 1, 2}}});
  if (wanted.dtype != kF32) image = builder.add("cast", {image}, {{"dtype", wanted.dtype}});
  image->type = meet(image->type, wanted);
  auto& nodes = main.body.nodes;
  for (size_t i = 0; i < before; ++i) std::replace(nodes[i]->inputs.begin(), nodes[i]->inputs.end(), param, image);
  std::replace(main.body.results.begin(), main.body.results.end(), param, image);
  std::rotate(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(before), nodes.end());
}

}  // namespace

AippColours colours_of(const AippOp& op) {
  const double* missing = aipp_is_yuv(op.integer("input_format")) ? kYuvToBgr : kRgbToYuv;
  AippColours colours;
  for (size_t i = 0; i < 9; ++i) colours.matrix[i] = op.number(fmt::format("matrix_r{}c{}", i / 3, i % 3), missing[i]);
  for (size_t i = 0; i < 3; ++i) {
    colours.input_bias[i] = op.number(fmt::format("input_bias_{}", i), kBias[i]);
    colours.output_bias[i] = op.number(fmt::format("output_bias_{}", i), kBias[i]);
  }
  return colours;
}

std::vector<AippInput> insert_aipp(Module& module, const std::vector<AippOp>& ops, bool channels_first) {
  Function& main = module.main();
  std::vector<AippInput> inputs;
  std::set<const Value*> done;
  size_t dynamic = 0;
  for (const AippOp& op : ops) {
    if (op.input_name.empty() != ops[0].input_name.empty())
      op.refuse("", "all blocks must have related_input_rank, or all related_input_name");
    Value* param = input_of(main, op);
    if (!done.insert(param).second) op.refuse(param->name, "two blocks name this input");
    constexpr int64_t kDynamic = 2;
    std::string parameters;
    if (op.integer("aipp_mode") == kDynamic) {
      parameters = "ascend_dynamic_aipp_data";  // the platform's name
      if (dynamic > 0) parameters += fmt::format("_{}", dynamic);
      ++dynamic;
    }
    insert(main, param, op, channels_first, parameters);
    inputs.push_back({param->name, parameters});
  }
  return inputs;
}

}  // namespace cairn
