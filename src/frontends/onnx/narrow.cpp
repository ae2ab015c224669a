#include "frontends/onnx/narrow.h"

#include <cmath>
#include <limits>

#include "frontends/fold.h"
#include "ir/expression.h"

namespace cairn::onnx {
namespace {

/// A float: its bits behind the sign are exponent and fraction. `most` is the code of the largest number, `over` that of what lies
/// above it, `nan` that of NaN; without a negative zero NaN is the code of it.
struct Format {
  int32_t type;
  int bits, fraction, bias;
  int most, over, nan;
  bool negative_zero;
};
constexpr Format kFormats[] = {
    {17, 8, 3, 7, 0x7e, 0x7f, 0x7f, true},  {18, 8, 3, 8, 0x7f, 0x80, 0x80, false},
    {19, 8, 2, 15, 0x7b, 0x7c, 0x7e, true}, {20, 8, 2, 16, 0x7f, 0x80, 0x80, false},
    {23, 4, 1, 1, 0x7, 0x7, 0x8, true},
};
constexpr int32_t kPowers = 24;  // FLOAT8E8M0: 2 to the code less 127

struct Integers {
  int32_t type;
  int bits;
  bool sign;
};
constexpr Integers kIntegers[] = {{21, 4, false}, {22, 4, true}, {25, 2, false}, {26, 2, true}};

const Format* format_of(int32_t type) {
  for (const Format& each : kFormats)
    if (each.type == type) return &each;
  return nullptr;
}
const Integers* integers_of(int32_t type) {
  for (const Integers& each : kIntegers)
    if (each.type == type) return &each;
  return nullptr;
}

float number_of(int code, const Format& format) {
  const int sign = 1 << (format.bits - 1), rest = code & (sign - 1);
  if (!format.negative_zero && code == sign) return std::numeric_limits<float>::quiet_NaN();
  if (format.bits == 8 && format.negative_zero && rest > format.most)
    return rest == format.over && format.over != format.nan && rest < format.nan - 1
               ? (code & sign ? -1 : 1) * std::numeric_limits<float>::infinity()
               : std::numeric_limits<float>::quiet_NaN();
  const int exponent = rest >> format.fraction, fraction = rest & ((1 << format.fraction) - 1);
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - format.bias - format.fraction)
                                    : std::ldexp(static_cast<float>(fraction + (1 << format.fraction)),
                                                 exponent - format.bias - format.fraction);
  return code & sign ? -value : value;
}

Var bits_of(Var x) { return x.apply("bitcast", {}, {{"dtype", kI32}}); }
Var shifted(Var x, const char* op, int by) { return x.apply(op, {x.number(by)}); }
Var masked(Var x, int mask) { return x.apply("bit_and", {x.number(mask)}); }
Var least(Var x, double bound) { return maximum(x, x.number(bound)); }

Value* float_codes(Var x, const Format& format, bool saturate) {
  const Var size = abs(x), zero = cast(x, kI32) * 0.0;
  // The step between numbers near x: a power of 2, 1 at least at the bottom of the range.
  const int bottom = 1 - format.bias;
  const Var exponent = least(shifted(bits_of(size), "shift_right", 23) - 127.0, bottom);
  const Var step = shifted(exponent - static_cast<double>(format.fraction) + 127.0, "shift_left", 23)
                       .apply("bitcast", {}, {{"dtype", kF32}});
  const Var wide = minimum(size, size.number(std::numeric_limits<float>::max()));  // infinite: beyond all anyway
  Var code =
      cast((wide / step).apply("round"), kI32) + (exponent - static_cast<double>(bottom)) * std::exp2(format.fraction);
  const Var negative = shifted(masked(shifted(bits_of(x), "shift_right", 31), 1), "shift_left", format.bits - 1);
  const Var infinite(*x.builder, x.builder->add("is_inf", {x.value}));
  const Var nan(*x.builder, x.builder->add("is_nan", {x.value}));
  const Var beyond(*x.builder, x.builder->add("or", {(code > format.most).value, infinite.value}));
  code = select(beyond, code.number(saturate ? format.most : format.over), code);
  Var signed_code = code + negative;
  if (!format.negative_zero) {
    const Var plain = select(code.apply("equal", {zero}), zero, signed_code);
    signed_code = select(code > 0x7f, code.number(format.nan), plain);
  }
  const Var with_nan = select(nan, zero + static_cast<double>(format.nan), signed_code);
  return cast(masked(with_nan, 0xff), kU8).value;
}

Value* power_codes(Var x, bool saturate, std::string_view rounding) {
  const Var bits = bits_of(x), exponent = masked(shifted(bits, "shift_right", 23), 0xff), one = exponent.number(1);
  const Var none = exponent * 0.0;
  Var more = none;
  const auto holds = [&](Var condition) { return select(condition, one, none); };
  if (rounding == "up") {
    more = holds(masked(bits, 0x7fffff) > 0);
  } else if (rounding == "nearest") {
    const Var half = holds(masked(bits, 0x400000) > 0), rest = holds(masked(bits, 0x3fffff) > 0);
    more = half * maximum(rest, holds(exponent > 0));
  } else if (rounding != "down") {
    fail(ErrorKind::invalid_model, "", "round_mode '{}' is unknown", printable(rounding));
  }
  if (saturate) more = select(exponent.apply("equal", {exponent.number(0xfe)}), none, more);
  const Var code = select(exponent.apply("equal", {exponent.number(0xff)}), exponent, exponent + more);
  return cast(masked(code, 0xff), kU8).value;
}

}  // namespace

bool is_narrow(int32_t type) { return type == kPowers || format_of(type) != nullptr || integers_of(type) != nullptr; }

std::optional<DType> carrier_of(int32_t type) {
  if (const Integers* integers = integers_of(type)) return integers->sign ? kI8 : kU8;
  return is_narrow(type) ? std::optional(kU8) : dtype_of(type);
}

int bits_of_narrow(int32_t type) {
  if (const Integers* integers = integers_of(type)) return integers->bits;
  const Format* format = format_of(type);
  return format ? format->bits : type == kPowers ? 8 : 0;
}

Value* widened(Value* x, int32_t type, Builder& b) {
  if (integers_of(type)) return cast_to(x, kF32, b);
  const Format* format = format_of(type);
  std::vector<float> numbers;
  for (int code = 0; code < (format ? 1 << format->bits : 256); ++code)
    numbers.push_back(format        ? number_of(code, *format)
                      : code == 255 ? std::numeric_limits<float>::quiet_NaN()
                                    : std::ldexp(1.0F, code - 127));
  Value* table = b.constant(Tensor::of(kF32, {static_cast<int64_t>(numbers.size())}, numbers));
  return b.add("gather", {table, cast_to(x, kI32, b)});
}

Value* narrowed(Value* x, int32_t type, bool saturate, std::string_view rounding, Builder& b) {
  if (const Integers* integers = integers_of(type)) {
    const double low = integers->sign ? -std::exp2(integers->bits - 1) : 0, high = low + std::exp2(integers->bits) - 1;
    if (saturate) return cast_to(b.add("clip", {x}, {{"low", low}, {"high", high}}), *carrier_of(type), b);
    // Out of range the low bits stay.
    const Var whole(b, cast_to(x, kI64, b)), shift = whole.number(64 - integers->bits);
    if (integers->sign) return cast_to(whole.apply("shift_left", {shift}).apply("shift_right", {shift}).value, kI8, b);
    return cast_to(masked(whole, (1 << integers->bits) - 1).value, kU8, b);
  }
  const Var wide(b, cast_to(x, kF32, b));
  const Format* format = format_of(type);
  return format ? float_codes(wide, *format, saturate) : power_codes(wide, saturate, rounding);
}

}  // namespace cairn::onnx
