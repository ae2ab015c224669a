// Encodes the fields of a configuration as the parameter block that a model with dynamic preprocessing takes in each
// run.
#include <bit>

#include "ops/aipp.h"
#include "passes/aipp.h"

namespace cairn {

static_assert(std::endian::native == std::endian::little, "the block is written as it lies in memory");

namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::invalid_argument, "", "aipp_op: " + fmt::format(text, std::forward<Args>(args)...));
}

template <class T>
void put(T& field, double value) {
  field = static_cast<T>(value);
}

AippHeader header_of(const AippOp& op, int64_t images) {
  AippHeader header{};
  if (!op.has("input_format")) op.refuse("", "input_format is missing");
  put(header.format, op.number("input_format"));
  put(header.images, static_cast<double>(images));
  header.convert = op.is_on("csc_switch");
  header.swap_rb = op.is_on("rbuv_swap_switch");
  header.swap_alpha = op.is_on("ax_swap_switch");
  put(header.width, op.number("src_image_size_w"));
  put(header.height, op.number("src_image_size_h"));
  if (!header.convert) return header;
  const AippColours colours = colours_of(op);
  for (size_t i = 0; i < 9; ++i) put(header.matrix[i], colours.matrix[i]);
  for (size_t i = 0; i < 3; ++i) {
    put(header.input_bias[i], colours.input_bias[i]);
    put(header.output_bias[i], colours.output_bias[i]);
  }
  return header;
}

AippImage image_of(const AippOp& op) {
  AippImage image{};
  if (op.is_on("resize"))
    op.refuse("", "resize is not supported: the platform has it on camera chips alone; resize before");
  if (op.number("padding_value") != 0) op.refuse("", "padding_value has no place in the parameters of a run; it is 0");
  if ((image.crop = op.is_on("crop")) != 0) {
    put(image.crop_left, op.number("load_start_pos_w"));
    put(image.crop_top, op.number("load_start_pos_h"));
    put(image.crop_width, op.number("crop_size_w"));
    put(image.crop_height, op.number("crop_size_h"));
  }
  if ((image.pad = op.is_on("padding")) != 0) {
    put(image.pad_top, op.number("top_padding_size"));
    put(image.pad_bottom, op.number("bottom_padding_size"));
    put(image.pad_left, op.number("left_padding_size"));
    put(image.pad_right, op.number("right_padding_size"));
  }
  for (size_t i = 0; i < 4; ++i) {
    put(image.mean[i], op.number(fmt::format("mean_chn_{}", i)));
    image.least[i] = float_to_half(static_cast<float>(op.number(fmt::format("min_chn_{}", i))));
    image.factor[i] = float_to_half(static_cast<float>(op.number(fmt::format("var_reci_chn_{}", i), 1)));
  }
  return image;
}

}  // namespace

std::string aipp_parameters(const std::vector<AippOp>& ops, int64_t images) {
  constexpr int64_t kMost = 127;  // the block counts them in a signed byte
  if (images < 1 || images > kMost) refuse("parameters are for 1 to {} images, not {}", kMost, images);
  if (ops.size() != 1 && static_cast<int64_t>(ops.size()) != images)
    refuse("{} blocks are given for {} images, expected one for all or one for each", ops.size(), images);
  std::string bytes;
  auto append = [&](const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); };
  append(header_of(ops[0], images));
  for (int64_t i = 0; i < images; ++i) append(image_of(ops[ops.size() == 1 ? 0 : static_cast<size_t>(i)]));
  return bytes;
}

}  // namespace cairn
