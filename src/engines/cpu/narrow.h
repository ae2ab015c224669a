// Elements of 16 and 8 bits: how they lie in memory, widened to floats, and floats rounded to them.
#pragma once

#include <cstdint>

#include "ir/types.h"

namespace cairn {

/// How elements lie in memory. Kernels compute in floats.
enum class Form : uint8_t { floats, halves, brains, bools, unsigned_bytes, signed_bytes };

constexpr bool is_byte(DType dtype) { return dtype == kU8 || dtype == kI8; }
constexpr bool is_byte(Form form) { return form == Form::unsigned_bytes || form == Form::signed_bytes; }
constexpr int64_t bytes_of(Form form) {
  return form == Form::floats ? 4 : form == Form::bools || is_byte(form) ? 1 : 2;
}
constexpr bool is_narrow(DType dtype) { return dtype == kF16 || dtype == kBF16; }
constexpr bool is_narrow(Form form) { return form == Form::halves || form == Form::brains; }
constexpr const char* to_string(Form form) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "bool", "u8", "i8"};
  return kNames[static_cast<size_t>(form)];
}
/// Of floats up to f32, integers of 8 bits, and bools.
constexpr Form form_of(DType dtype) {
  if (is_byte(dtype)) return dtype == kU8 ? Form::unsigned_bytes : Form::signed_bytes;
  return dtype == kBool ? Form::bools : dtype == kF16 ? Form::halves : dtype == kBF16 ? Form::brains : Form::floats;
}

/// How results of 16 bits are made of f32 sums. A residual may be narrow alone.
struct NarrowEpilogue {
  Form result = Form::floats, residual = Form::floats;
  bool rounds_sum = false;     // before the bias, which comes last then
  bool rounds_biased = false;  // before the residual
  bool acts() const { return is_narrow(result) || is_narrow(residual); }
  friend bool operator==(const NarrowEpilogue&, const NarrowEpilogue&) = default;
};

/// An element of f16 as a float, also where processors flush denormals.
constexpr float wide_half(uint16_t half) {
  const uint32_t bits = half, exponent = bits & 0x7c00, magnitude = (bits & 0x7fff) << 13;
  const float tiny = static_cast<float>(static_cast<int32_t>(bits & 0x3ff)) * 0x1p-24F;
  const uint32_t usual = magnitude + (exponent == 0x7c00 ? 0xe0U << 23 : 0x70U << 23);
  return __builtin_bit_cast(float, (exponent == 0 ? __builtin_bit_cast(uint32_t, tiny) : usual) | (bits & 0x8000)
                                                                                                      << 16);
}

/// Copies floats, widens others.
void widen(Form form, int64_t count, const void* from, float* to);
/// The same of rows of elements of 16 bits that begin `step` elements apart; the floats lie side by side.
void widen_rows(Form form, int64_t rows, int64_t columns, const uint16_t* from, int64_t step, float* to);
/// Copies floats, or rounds them to nearest even.
void narrow(Form form, int64_t count, const float* from, void* to);
/// Floats rounded to the form's elements, in place.
void round_to(Form form, int64_t count, float* values);

/// Rows of `width` floats from a matrix of any strides; missing columns are 0. Floats are rounded to `precision`.
void pack_rows(Form form, const void* from, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step,
               int64_t width, float* to, Form precision = Form::floats);
/// The same of rows of pairs: elements of bf16 from two adjacent rows. One of the strides is 1.
void pack_pairs(const uint16_t* from, int64_t pairs, int64_t row_step, int64_t columns, int64_t column_step,
                int64_t width, float* to);
/// The same of floats, which are rounded, where machine_has_brain_products().
void pack_rounded_pairs(const float* from, int64_t pairs, int64_t row_step, int64_t columns, int64_t column_step,
                        int64_t width, float* to);

}  // namespace cairn
