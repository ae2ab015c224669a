#include "support/precision_modes.h"

namespace cairn {

namespace {

using enum PrecisionMode;

constexpr NamedPrecision kModes[] = {
    {"force_fp16", force_low, true},
    {"fp16", force_low, false, true},
    {"force_fp32", force_wide, true, false, false,
     ": convolutions and matrix products are in full f32 here, not in f16"},
    {"cube_fp16in_fp32out", matrix_low_inputs, true, true},
    {"allow_fp32_to_fp16", matrix_low, true},
    {"allow_mix_precision", mixed, true},
    {"allow_mix_precision_fp16", mixed, true},
    {"mixed_float16", mixed, false, true},
    {"allow_mix_precision_bf16", mixed, true, false, true},
    {"mixed_bfloat16", mixed, false, true, true},
    {"must_keep_origin_dtype", keep, true},
    {"allow_fp32_to_bf16", keep, true, false, false, " has no effect: every operator takes f32, which comes first"},
    {"origin", keep, true, true}};

}  // namespace

std::span<const NamedPrecision> precision_modes() { return kModes; }

const NamedPrecision* find_precision(std::string_view name) {
  for (const NamedPrecision& mode : kModes)
    if (mode.name == name) return &mode;
  return nullptr;
}

std::vector<std::string_view> precision_names(bool v2) {
  std::vector<std::string_view> names;
  for (const NamedPrecision& mode : kModes)
    if (v2 ? mode.of_v2 : mode.of_v1) names.push_back(mode.name);
  return names;
}

}  // namespace cairn
