#include "engines/cpu/quantised_elements.h"

#include <algorithm>
#include <cmath>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/narrow.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/window_row.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

/// Bounds of a type less the zero point.
struct Range {
  float low, high;
  int32_t zero;
};

// Scales are one for each column, or one that is neither huge nor tiny: then the quotient is the product with the reciprocal,
// corrected by the rest, which rounds as a division does (Markstein). Adding 1.5 * 2^23 rounds what is within the bounds to an
// integer. NaN gives 0.
#define CAIRN_QUANTISE(name, T)                                                                                        \
  CAIRN_INLINE T name##_of(float x, float quotient, const Range& range) {                                              \
    constexpr float kRound = 12582912;                                                                                 \
    float y = quotient > range.low ? quotient : range.low;                                                             \
    y = y < range.high ? y : range.high;                                                                               \
    const int32_t steps = static_cast<int32_t>((y + kRound) - kRound) + range.zero;                                    \
    return static_cast<T>(steps & (x == x ? -1 : 0));                                                                  \
  }                                                                                                                    \
  CAIRN_VECTORISED(void, name##_columns, (int64_t count, const float* from, const float* scale, Range range, T* to)) { \
    for (int64_t i = 0; i < count; ++i) to[i] = name##_of(from[i] / scale[i], from[i] / scale[i], range);              \
  }                                                                                                                    \
  CAIRN_VECTORISED(void, name##_by, (int64_t count, const float* from, float scale, Range range, T* to)) {             \
    const float low = (range.low - 1) * scale, high = (range.high + 1) * scale, reciprocal = 1 / scale;                \
    for (int64_t i = 0; i < count; ++i) {                                                                              \
      float x = from[i] > low ? from[i] : low;                                                                         \
      x = x < high ? x : high;                                                                                         \
      const float near = x * reciprocal;                                                                               \
      to[i] = name##_of(from[i], __builtin_fmaf(__builtin_fmaf(-near, scale, x), reciprocal, near), range);            \
    }                                                                                                                  \
  }                                                                                                                    \
  void name(int64_t count, const float* from, const float* scale, int64_t step, Range range, T* to) {                  \
    if (step == 1) return name##_columns(count, from, scale, range, to);                                               \
    if (*scale > 1e-25f && *scale < 1e25f) return name##_by(count, from, *scale, range, to);                           \
    for (int64_t i = 0; i < count; ++i) to[i] = name##_of(from[i] / *scale, from[i] / *scale, range);                  \
  }
CAIRN_QUANTISE(quantise_unsigned, uint8_t)
CAIRN_QUANTISE(quantise_signed, int8_t)
#undef CAIRN_QUANTISE

#define CAIRN_DEQUANTISE(name, T)                                                                                     \
  CAIRN_VECTORISED(                                                                                                   \
      void, name##_columns,                                                                                           \
      (int64_t count, const T* __restrict from, const float* __restrict scale, int32_t zero, float* __restrict to)) { \
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<int32_t>(from[i]) - zero) * scale[i];  \
  }                                                                                                                   \
  CAIRN_VECTORISED(void, name##_by,                                                                                   \
                   (int64_t count, const T* __restrict from, float scale, int32_t zero, float* __restrict to)) {      \
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<int32_t>(from[i]) - zero) * scale;     \
  }                                                                                                                   \
  void name(int64_t count, const T* from, const float* scale, int64_t step, int32_t zero, float* to) {                \
    step ? name##_columns(count, from, scale, zero, to) : name##_by(count, from, *scale, zero, to);                   \
  }
CAIRN_DEQUANTISE(dequantise_unsigned, uint8_t)
CAIRN_DEQUANTISE(dequantise_signed, int8_t)
CAIRN_DEQUANTISE(dequantise_sums, int32_t)
#undef CAIRN_DEQUANTISE

CAIRN_VECTORISED(void, larger_unsigned, (int64_t count, const uint8_t* from, uint8_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::max(to[i], from[i]);
}
CAIRN_VECTORISED(void, larger_signed, (int64_t count, const int8_t* from, int8_t* to)) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::max(to[i], from[i]);
}

int32_t zero_point(DType dtype, const void* data) {
  if (dtype == kU8) return *static_cast<const uint8_t*>(data);
  return dtype == kI8 ? *static_cast<const int8_t*>(data) : *static_cast<const int32_t*>(data);
}

}  // namespace

Refusal refuses_quantisation(const Group& group) {
  const Node* node = single_node(group, "quantize_linear");
  if (!node) node = single_node(group, "dequantize_linear");
  if (!node) return "is no quantisation";
  const Value *x = node->inputs[0], *scale = node->inputs[1], *zero = node->inputs[2];
  const DType integers = zero->type.dtype;
  if (scale->type.dtype != kF32) return fmt::format("scale is {}, takes f32", to_string(scale->type.dtype));
  if (!is_byte(integers) && (integers != kI32 || node->is("quantize_linear")))
    return fmt::format("integers are {}", to_string(integers));
  const Dims all = x->type.shape.sizes(), each = scale->type.shape.sizes();
  const bool of_columns = !each.empty() && each.back() == all.back() && count_of(each) == all.back();
  if (count_of(zero->type.shape.sizes()) != 1) return "has several zero points";
  if (count_of(each) != 1 && !of_columns) return "has scales along other axes than the last";
  return std::nullopt;
}

std::unique_ptr<Step> make_quantisation(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims all = node.inputs[0]->type.shape.sizes();
  const size_t x = index_of(group, node.inputs[0]), scale = index_of(group, node.inputs[1]),
               zero = index_of(group, node.inputs[2]);
  const int64_t count = count_of(all), step = count_of(node.inputs[1]->type.shape.sizes()) == 1 ? 0 : 1;
  const int64_t columns = step ? all.back() : std::min<int64_t>(std::max<int64_t>(count, 1), 4096);
  const DType dtype = node.inputs[2]->type.dtype;
  const bool quantises = node.is("quantize_linear");
  return call(quantises ? "quantize" : "dequantize", [=](const StepArgs& args) {
    const float* scales = input(args, scale);
    const int32_t offset = zero_point(dtype, args.inputs[zero]);
    for_each(args.executor, (count + columns - 1) / columns, columns, [&](int64_t row) {
      const int64_t at = row * columns, many = std::min(columns, count - at);
      const auto low = static_cast<float>((dtype == kI8 ? -128 : 0) - offset);
      const Range range{low, low + 255, offset};
      if (quantises && dtype == kU8)
        quantise_unsigned(many, input(args, x) + at, scales, step, range, output<uint8_t>(args) + at);
      else if (quantises)
        quantise_signed(many, input(args, x) + at, scales, step, range, output<int8_t>(args) + at);
      else if (dtype == kU8)
        dequantise_unsigned(many, input<uint8_t>(args, x) + at, scales, step, offset, output(args) + at);
      else if (dtype == kI8)
        dequantise_signed(many, input<int8_t>(args, x) + at, scales, step, offset, output(args) + at);
      else
        dequantise_sums(many, input<int32_t>(args, x) + at, scales, step, offset, output(args) + at);
    });
  });
}

Refusal refuses_integer_pool(const Group& group) {
  const Node* node = single_node(group, "max_pool2d");
  if (!node) return "is no maximum of windows of an image";
  if (!is_byte(node->result()->type.dtype)) return "takes integers of 8 bits";
  const int64_t taps = count_of(node->attr().integers("window"));
  if (taps > WindowRow::kMostTaps) return fmt::format("has {} taps", taps);
  return std::nullopt;
}

std::unique_ptr<Step> make_integer_pool(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const SlideSpec s = slide_of(node, node.attr().integers("window"));
  const bool is_signed = node.result()->type.dtype == kI8;
  return call("integer_pool", [s, is_signed](const StepArgs& args) {
    for_each(args.executor, s.n * s.od * s.oh, s.ow * s.channels * s.taps() / 16, [&](int64_t row) {
      const WindowRow taps(s, row / (s.od * s.oh), row / s.oh % s.od, row % s.oh);
      uint8_t* to = output<uint8_t>(args) + row * s.ow * s.channels;
      std::fill_n(to, s.ow * s.channels, is_signed ? 0x80 : 0);
      for (int64_t column = 0; column < s.ow; ++column, to += s.channels)
        for (int64_t tap = 0; tap < s.taps(); ++tap) {
          const int64_t from = taps.pixel(tap, column) * s.channels;
          if (from < 0) continue;
          if (is_signed)
            larger_signed(s.channels, input<int8_t>(args, 0) + from, reinterpret_cast<int8_t*>(to));
          else
            larger_unsigned(s.channels, input<uint8_t>(args, 0) + from, to);
        }
    });
  });
}

}  // namespace cairn
