// The platform's names of precision modes: the one table that atc's options, the TensorFlow door and the C ABI read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace cairn {

enum class PrecisionMode : unsigned char {
  keep,               // the model's own types
  force_wide,         // 16-bit operators compute and hand on f32
  force_low,          // every f32 operator
  matrix_low,         // matrix products and convolutions
  matrix_low_inputs,  // the same, whose results stay f32
  mixed,              // by lists: white is lowered, black is not, gray follows what it reads
};

struct NamedPrecision {
  std::string_view name;
  PrecisionMode mode;
  bool of_v1 = false, of_v2 = false;  // a value of precision_mode, of precision_mode_v2
  bool brain = false;                 // bf16 instead of f16
  const char* remark = "";            // what differs here
};
std::span<const NamedPrecision> precision_modes();
/// Null when no mode is called so.
const NamedPrecision* find_precision(std::string_view name);
/// Names of precision_mode, or of precision_mode_v2.
std::vector<std::string_view> precision_names(bool v2);

}  // namespace cairn
