// Parser of AIPP configurations, with the fields and their limits.
#include <array>
#include <protozero/pbf_reader.hpp>

#include "frontends/text_proto.h"
#include "passes/aipp.h"

namespace cairn {

namespace {

constexpr TextEnum kModes[] = {{"undefined", 0}, {"static", 1}, {"dynamic", 2}};
// clang-format off
constexpr TextEnum kFormats[] = {
    {"YUV420SP_U8", 1}, {"XRGB8888_U8", 2}, {"RGB888_U8", 3}, {"YUV400_U8", 4}, {"NC1HWC0DI_FP16", 5},
    {"NC1HWC0DI_S8", 6}, {"ARGB8888_U8", 7}, {"YUYV_U8", 8},  {"YUV422SP_U8", 9}, {"AYUV444_U8", 10},
    {"RAW10", 11},      {"RAW12", 12},      {"RAW16", 13},    {"RAW24", 14},    {"RGB16", 15},
    {"RGB20", 16},      {"RGB24", 17},      {"RGB8_IR", 18},  {"RGB16_IR", 19}, {"RGB24_IR", 20}};

constexpr TextField whole(std::string_view name, uint32_t number) { return {name, number, TextKind::integer}; }
constexpr TextField real(std::string_view name, uint32_t number) { return {name, number, TextKind::real32}; }
constexpr TextField truth(std::string_view name, uint32_t number) { return {name, number, TextKind::boolean}; }

constexpr TextField kOpFields[] = {
    {"aipp_mode", 1, TextKind::enumeration, nullptr, kModes},
    whole("related_input_rank", 2), whole("input_edge_idx", 3), whole("max_src_image_size", 4),
    truth("support_rotation", 5), {"related_input_name", 6, TextKind::text},
    whole("mean_chn_0", 10), whole("mean_chn_1", 11), whole("mean_chn_2", 12), whole("mean_chn_3", 19),
    real("min_chn_0", 13), real("min_chn_1", 14), real("min_chn_2", 15), real("min_chn_3", 20),
    real("var_reci_chn_0", 16), real("var_reci_chn_1", 17), real("var_reci_chn_2", 18), real("var_reci_chn_3", 21),
    whole("matrix_r0c0", 30), whole("matrix_r0c1", 31), whole("matrix_r0c2", 32),
    whole("matrix_r1c0", 33), whole("matrix_r1c1", 34), whole("matrix_r1c2", 35),
    whole("matrix_r2c0", 36), whole("matrix_r2c1", 37), whole("matrix_r2c2", 38),
    whole("output_bias_0", 39), whole("output_bias_1", 40), whole("output_bias_2", 41),
    whole("input_bias_0", 42), whole("input_bias_1", 43), whole("input_bias_2", 44),
    whole("raw_rgbir_to_f16_n", 45),
    {"input_format", 51, TextKind::enumeration, nullptr, kFormats},
    truth("csc_switch", 52), real("cpadding_value", 53), truth("rbuv_swap_switch", 54), truth("ax_swap_switch", 55),
    truth("single_line_mode", 56), whole("src_image_size_w", 57), whole("src_image_size_h", 58),
    truth("crop", 59), whole("load_start_pos_w", 60), whole("load_start_pos_h", 61), whole("crop_size_w", 62),
    whole("crop_size_h", 63), truth("resize", 64), whole("resize_output_w", 65), whole("resize_output_h", 66),
    truth("padding", 67), whole("left_padding_size", 68), whole("right_padding_size", 69),
    whole("top_padding_size", 70), whole("bottom_padding_size", 71), real("padding_value", 72)};
constexpr uint32_t kPlace = 1000;
constexpr TextMessage kOpMessage = {"aipp_op", kOpFields, kPlace};
constexpr TextField kFileFields[] = {{"aipp_op", 1, TextKind::message, &kOpMessage}};
constexpr TextMessage kFileMessage = {"AIPP configuration", kFileFields, kPlace};

struct Limit {
  const char* fields;  // prefix of their names
  double low, high;
};
// clang-format on
constexpr Limit kLimits[] = {
    {"mean_chn_", 0, 255},        {"min_chn_", 0, 255},          {"var_reci_chn_", -65504, 65504},
    {"matrix_r", -32768, 32767},  {"output_bias_", 0, 255},      {"input_bias_", 0, 255},
    {"src_image_size_", 0, 4096}, {"crop_size_", 0, 4096},       {"load_start_pos_", 0, 4095},
    {"left_padding_", 0, 32},     {"right_padding_", 0, 32},     {"top_padding_", 0, 32},
    {"bottom_padding_", 0, 32},   {"related_input_rank", 0, 1e6}};

/// The fault of the number; empty when it is valid.
std::string out_of_limits(std::string_view name, double value) {
  for (const Limit& limit : kLimits)
    if (name.starts_with(limit.fields) && !(value >= limit.low && value <= limit.high))
      return fmt::format("{} is {}, expected {} to {}", name, value, limit.low, limit.high);
  return "";
}

double number_of(protozero::pbf_reader& reader, const TextField& field) {
  if (field.kind == TextKind::real32) return static_cast<double>(reader.get_float());
  return static_cast<double>(reader.get_int64());
}

AippOp read_op(protozero::pbf_reader reader, const std::string& place, const std::string& file) {
  AippOp op;
  op.place = place;
  std::string here = place;
  auto refuse = [&](const std::string& text) { fail(ErrorKind::invalid_argument, file, "{}: {}", here, text); };
  while (reader.next()) {
    if (reader.tag() == kPlace) {
      here = text_place(reader.get_int64());
      continue;
    }
    const TextField* field = nullptr;
    for (const TextField& each : kOpFields)
      if (each.number == reader.tag()) field = &each;
    CHECK(field, "field {}", reader.tag());
    if (field->kind == TextKind::text) {
      op.input_name = reader.get_string();
      continue;
    }
    double value = number_of(reader, *field);
    if (!op.numbers.emplace(field->name, value).second)
      refuse(fmt::format("{} is given twice in one aipp_op", field->name));
    if (const std::string fault = out_of_limits(field->name, value); !fault.empty()) refuse(fault);
  }
  here = place;
  if (!op.has("aipp_mode")) refuse("aipp_mode is missing; write aipp_mode: static");
  return op;
}

}  // namespace

std::vector<AippOp> parse_aipp(std::string_view text, const std::string& file) {
  std::string wire = text_to_wire(text, kFileMessage, file);
  protozero::pbf_reader reader(wire);
  std::vector<AippOp> ops;
  std::string place;
  while (reader.next()) {
    if (reader.tag() == kPlace)
      place = text_place(reader.get_int64());
    else
      ops.push_back(read_op(reader.get_message(), place, file));
  }
  if (ops.empty()) fail(ErrorKind::invalid_argument, file, "has no aipp_op block");
  return ops;
}

}  // namespace cairn
