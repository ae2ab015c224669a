// The platform's names of precision modes: the one table that atc's options, the TensorFlow door and the C ABI read.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace cairn {

enum class PrecisionMode : unsigned char {
  keep,               // the model's own types
  force_wide,         // 16-bit operators compute and hand on f32
  force_low,          // all f32 operators compute in 16 bits
  matrix_low,         // matrix products and convolutions compute in 16 bits
  matrix_low_inputs,  // the same, but their results stay f32
  mixed,              // by lists: white operators go to 16 bits, black ones do not, gray ones follow their operands
};

struct NamedPrecision {
  std::string_view name;
  PrecisionMode mode;
  bool of_v1 = false, of_v2 = false;  // a value of precision_mode, of precision_mode_v2
  bool brain = false;                 // bf16 instead of f16
  const char* remark = "";            // how Cairn differs from the platform
};
std::span<const NamedPrecision> precision_modes();
/// The mode of that name, or null.
const NamedPrecision* find_precision(std::string_view name);
/// The values of option precision_mode, or of precision_mode_v2.
std::vector<std::string_view> precision_names(bool v2);

}  // namespace cairn
