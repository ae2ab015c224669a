#include "conversion.h"

#include <algorithm>
#include <filesystem>

#include "model/adapt.h"

namespace cairn::cli {

namespace {

/// Makes every shape rule and kernel choice of the model happen once, so that what is written is known to run.
PlanTotals plan_once(const Module& module, Converted& converted) {
  auto model = Model::make(clone(module), {.threads = 1});
  converted.inputs = model->inputs();
  converted.outputs = model->outputs();
  std::vector<Dims> dims;
  for (const Port& input : converted.inputs) {
    if (input.type.is_tensor() && !input.type.is_static()) return {};
    dims.push_back(input.type.is_tensor() ? input.type.shape.sizes() : Dims{});
  }
  return totals_of(*model->plan(dims));
}

}  // namespace

std::optional<DType> parse_type_name(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"FP32", kF32}, {"FLOAT32", kF32}, {"FLOAT", kF32}, {"FP16", kF16}, {"FLOAT16", kF16}, {"BF16", kBF16},
      {"FP64", kF64}, {"DOUBLE", kF64},  {"INT8", kI8},   {"UINT8", kU8}, {"INT32", kI32},   {"INT64", kI64}};
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (auto [text, dtype] : kNames)
    if (upper == text) return dtype;
  return std::nullopt;
}

Converted convert(const Conversion& conversion) {
  Module module = open_model(conversion.source, conversion.import);
  set_input_types(module, conversion.fp16_inputs, kF16);
  set_output_types(module, conversion.output_types);
  verify(module);
  Converted converted;
  converted.operators = histogram(module);
  converted.parameters = parameters_of(module);
  converted.totals = plan_once(module, converted);
  if (conversion.output.empty()) return converted;
  OmOrigin origin = origin_of(conversion.source);
  origin.options = conversion.options;
  write_om(module, origin, conversion.output);
  converted.bytes = std::filesystem::file_size(conversion.output);
  return converted;
}

}  // namespace cairn::cli
