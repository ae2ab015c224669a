#include "convert/convert.h"

#include <algorithm>
#include <filesystem>

#include "export/onnx.h"
#include "ir/image_order.h"
#include "ir/text.h"
#include "model/adapt.h"
#include "ops/aipp.h"
#include "passes/aipp.h"
#include "runtime/input_limits.h"
#include "runtime/likely_dims.h"
#include "support/files.h"
#include "support/nearest.h"

namespace cairn {

namespace {

using Fault = ConversionError::Fault;

/// The shape given for an input, by name or by position.
const NamedDims* given_for(const std::vector<NamedDims>& shapes, const Value& input, size_t position) {
  for (const NamedDims& shape : shapes)
    if (is_named(input.name, shape.name)) return &shape;
  bool positional = position < shapes.size() && shapes[position].name.empty();
  return positional ? &shapes[position] : nullptr;
}

std::vector<SizeRange> ranges_of(const Type& type) {
  std::vector<SizeRange> ranges;
  for (const Dim& dim : type.shape.dims) ranges.push_back(dim.known() ? SizeRange{dim.size, dim.size} : SizeRange{});
  return ranges;
}

/// Writes the module as an ONNX file, large or external weights beside it; returns the bytes of both.
uint64_t write_onnx(const Module& module, const Conversion& conversion) {
  const std::string data_file = std::filesystem::path(conversion.output).filename().string() + ".data";
  const OnnxModel model = onnx_of(module, data_file, conversion.external_weights);
  uint64_t bytes = model.bytes.size();
  if (!model.data.empty())
    write_file(conversion.output + ".data", [&](const FileSink& sink) {
      for (const Tensor& tensor : model.data) {
        const size_t padding = (kOnnxAlignment - tensor.bytes() % kOnnxAlignment) % kOnnxAlignment;
        sink({static_cast<const char*>(tensor.data()), tensor.bytes()});
        sink(std::string(padding, '\0'));
        bytes += tensor.bytes() + padding;
      }
    });
  write_file(conversion.output, model.bytes);
  return bytes;
}

bool is_limited(const SizeRange& range) { return range != SizeRange{} && range.low != range.high; }

/// The sizes that the model is converted for: every profile, or the ranges if one of them is bounded.
InputLimits limits_of(const Conversion& conversion, const Function& main) {
  std::vector<std::vector<std::vector<int64_t>>> filled;
  if (conversion.profile_kind)
    filled = fill_profiles(*conversion.profile_kind, conversion.profiles, conversion.shapes, conversion.format);
  bool ranged = false;
  for (const NamedDims& shape : conversion.shapes)
    ranged = ranged || std::any_of(shape.ranges.begin(), shape.ranges.end(), is_limited);
  if (filled.empty() && !ranged) return {};
  std::vector<InputLimits::Alternative> alternatives;
  for (size_t i = 0; i < std::max<size_t>(filled.size(), 1); ++i) {
    auto& alternative = alternatives.emplace_back();
    for (const auto& param : main.body.params) {
      const NamedDims* given = given_for(conversion.shapes, *param, alternative.size());
      auto& sizes = alternative.emplace_back(given ? given->ranges : ranges_of(param->type));
      if (given && !filled.empty()) {
        const auto& dims = filled[i][static_cast<size_t>(given - conversion.shapes.data())];
        for (size_t axis = 0; axis < dims.size(); ++axis) sizes[axis] = {dims[axis], dims[axis]};
      }
    }
  }
  return InputLimits(std::move(alternatives));
}

/// Gives shapes that were given by position the names of the inputs, which are known once the model has been read.
void name_positions(Conversion& conversion) {
  bool positional = std::any_of(conversion.shapes.begin(), conversion.shapes.end(),
                                [](const NamedDims& shape) { return shape.name.empty(); });
  if (!positional) return;
  ImportOptions plain = conversion.import;
  plain.input_shapes.clear();
  plain.note = nullptr;
  Module module = open_model(conversion.source, plain);
  const auto& params = module.main().body.params;
  if (conversion.shapes.size() > params.size())
    throw ConversionError(
        Fault::shapes, "",
        fmt::format("shapes for {} inputs are given, the model has {}", conversion.shapes.size(), params.size()));
  for (size_t i = 0; i < conversion.shapes.size(); ++i) conversion.shapes[i].name = params[i]->name;
}

/// The size in bytes of the parameters of dynamic preprocessing, for a range of image counts.
SizeRange parameter_bytes(const SizeRange& images) {
  auto bytes = [](int64_t count) {
    return static_cast<int64_t>(AippHeader::kBytes + AippImage::kBytes * size_t(count));
  };
  return {bytes(images.low), images.high == SizeRange::kNoLimit ? SizeRange::kNoLimit : bytes(images.high)};
}

/// Inserts the preprocessing: images become byte inputs, and their limits, except for the batch, those of the bytes.
void preprocess(const Conversion& conversion, Module& module, std::vector<InputLimits::Alternative>& alternatives) {
  std::string text = read_text(conversion.aipp);
  const bool channels_first = conversion.format.starts_with("NC");
  std::vector<AippInput> inputs;
  try {
    inputs = insert_aipp(module, parse_aipp(text, conversion.aipp), channels_first);
  } catch (const Error& error) {
    throw ConversionError(Fault::preprocessing, "", error.what());
  }
  const auto& params = module.main().body.params;
  for (const AippInput& input : inputs) {  // in the order in which inputs for parameters were added
    size_t i = 0;
    while (params[i]->name != input.name) ++i;
    for (const std::string& half : conversion.fp16_inputs)
      if (is_named(params[i]->name, half))
        throw ConversionError(Fault::fp16_processed, half, "is preprocessed and cannot be fp16");
    const size_t row = channels_first ? 2 : 1;
    for (auto& alternative : alternatives) {
      const std::vector<SizeRange> own = alternative[i];
      alternative[i] = ranges_of(params[i]->type);
      if (!input.parameters.empty()) {
        alternative.push_back({parameter_bytes(own[0])});
        continue;
      }
      alternative[i][0] = own[0];
      for (size_t axis : {1, 2})  // open height and width are limited as the model's own
        if (!params[i]->type.shape.dims[axis].known()) alternative[i][axis] = own[row + axis - 1];
    }
  }
}

void lower(const Conversion& conversion, Module& module, Converted& converted) {
  if (conversion.precision.mode == PrecisionMode::keep && conversion.precision.custom.empty()) return;
  converted.passes = optimise(module, {.disabled = conversion.disabled_passes});  // a fused node is one operator
  converted.precision = set_precision(module, conversion.precision);
  std::string missing;
  size_t count = 0;
  for (const std::string& entry : conversion.precision.keep)
    if (std::count(converted.precision.unused.begin(), converted.precision.unused.end(), entry) && ++count <= 10)
      missing += (missing.empty() ? "" : ", ") + entry;
  if (count > 0)
    throw ConversionError(Fault::kept_types, missing,
                          count == 1 ? "an entry fits no operator" : fmt::format("{} entries fit no operator", count));
}

void set_types_of_outputs(const Conversion& conversion, Module& module) {
  const std::vector<std::string>& results = module.main().result_names;
  const std::vector<std::string_view> names(results.begin(), results.end());
  for (const auto& [name, dtype] : conversion.output_types)
    if (!name.empty() && std::ranges::none_of(results, [&](const std::string& each) { return is_named(each, name); }))
      throw ConversionError(
          Fault::output_name, name,
          fmt::format("is no output of the model, which has {}{}", fmt::join(names, ", "), did_you_mean(name, names)));
  set_output_types(module, conversion.output_types);
}

void check_fp16_inputs(const Conversion& conversion, const Function& main) {
  for (const std::string& name : conversion.fp16_inputs) {
    const auto& params = main.body.params;
    auto found =
        std::find_if(params.begin(), params.end(), [&](const auto& param) { return is_named(param->name, name); });
    if (found == params.end()) {
      std::vector<std::string_view> names;
      for (const auto& param : params) names.push_back(param->name);
      throw ConversionError(
          Fault::fp16_name, name,
          fmt::format("is no input of the model, which has {}{}", fmt::join(names, ", "), did_you_mean(name, names)));
    }
    if (!(*found)->type.dtype.is_float())
      throw ConversionError(Fault::fp16_type, name,
                            fmt::format("the input is {}, expected floats", to_string((*found)->type)));
  }
}

double constant_bytes(const Module& module) {
  double total = 0;
  for (const Tensor& weight : print(module).weights) total += static_cast<double>(weight.bytes());
  return total;
}

/// Whether to store the optimised form, in which folded weights are mapped instead of computed at each load. Not if
/// folding made the constants much larger, and not with variables, whose handles the optimised form lacks.
bool loads_faster(const Module& module, const Module& optimised) {
  constexpr double kMostGrowth = 1.25;
  return optimised.main().updates.empty() && constant_bytes(optimised) <= kMostGrowth * constant_bytes(module) + 4096;
}

/// The reference share of a run with likely sizes for the open ones; empty if none are known that the model runs with.
ReferenceShare likely_share(const Model& model) {
  std::vector<Dims> dims;
  for (const Port& input : model.inputs()) {
    dims.emplace_back();
    if (!input.type.is_tensor()) continue;
    if (!input.type.shape.ranked) return {};
    for (const Dim& dim : input.type.shape.dims) dims.back().push_back(dim.known() ? dim.size : -1);
  }
  const auto likely = likely_dims(model, dims, 1);
  return likely ? model.expected_share(*likely) : ReferenceShare{};
}

/// Plans the model for all its sizes, which runs every shape rule and kernel choice once: the written file is known to
/// run.
void plan_all(const Module& module, const InputLimits& limits, Converted& converted) {
  auto model = Model::make(clone(module), {.threads = 1, .optimise = false});
  converted.inputs = model->inputs();
  converted.outputs = model->outputs();
  auto plan = [&](const std::vector<Dims>& dims) {
    auto made = model->plan(dims);
    PlanTotals totals = totals_of(*made);
    if (converted.totals.steps == 0 || totals.arena > converted.totals.arena) {
      converted.totals = totals;
      converted.reference = model->reference_share(*made);
    }
    converted.groups.clear();
    for (const PlannedStep& step : made->steps)
      if (step.group.nodes.size() > 1) ++converted.groups[step.kernel.substr(0, step.kernel.find(' '))];
  };
  std::vector<Dims> dims;
  bool open = false;
  for (const Port& input : converted.inputs) {
    open = open || (input.type.is_tensor() && !input.type.is_static());
    dims.push_back(input.type.is_static() ? input.type.shape.sizes() : Dims{});
  }
  if (!open) return plan(dims);
  for (const auto& alternative : limits.alternatives()) {
    bool fixed = true;
    for (size_t i = 0; i < dims.size(); ++i) {
      dims[i].clear();
      for (const SizeRange& range : alternative[i])
        dims[i].push_back(range.low), fixed = fixed && range.low == range.high;
    }
    if (fixed) plan(dims);
  }
  if (converted.totals.steps == 0) converted.reference = likely_share(*model);
}

}  // namespace

namespace {

std::string shape_text(const NamedDims& shape) {
  std::vector<std::string> sizes;
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    const SizeRange range = shape.dims[i] < 0 && i < shape.ranges.size() ? shape.ranges[i] : SizeRange{};
    const std::string high = range.high == SizeRange::kNoLimit ? "-1" : std::to_string(range.high);
    sizes.push_back(range == SizeRange{} ? std::to_string(shape.dims[i]) : fmt::format("{}~{}", range.low, high));
  }
  return fmt::format("{}:{}", shape.name, fmt::join(sizes, ","));
}

template <class List, class F>
std::string joined(const List& list, F&& text) {
  std::vector<std::string> parts;
  for (const auto& item : list) parts.push_back(text(item));
  return fmt::format("{}", fmt::join(parts, ";"));
}

}  // namespace

std::map<std::string, std::string> recorded_options(const Conversion& conversion) {
  std::map<std::string, std::string> record;
  auto put = [&](const char* name, std::string value) {
    if (!value.empty()) record[name] = std::move(value);
  };
  auto same = [](const std::string& text) { return text; };
  std::vector<NamedDims> shapes = conversion.shapes;
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  put("input_shape", joined(shapes, shape_text));
  put("out_nodes", joined(conversion.import.out_nodes, same));
  put("input_fp16_nodes", joined(conversion.fp16_inputs, same));
  put("output_type", joined(conversion.output_types, [](const auto& item) {
        return item.first.empty() ? to_string(item.second) : fmt::format("{}:{}", item.first, to_string(item.second));
      }));
  constexpr const char* kProfiles[] = {"dynamic_batch_size", "dynamic_image_size", "dynamic_dims"};
  if (conversion.profile_kind)
    put(kProfiles[static_cast<size_t>(*conversion.profile_kind)],
        joined(conversion.profiles, [](const Profile& profile) { return fmt::format("{}", fmt::join(profile, ",")); }));
  put("input_format", conversion.format);
  put("insert_op_conf", std::filesystem::path(conversion.aipp).filename().string());
  put("weight", std::filesystem::path(conversion.import.weights).filename().string());
  put("precision_mode", std::string(precision_name(conversion.precision)));
  put("keep_dtype", joined(conversion.precision.keep, same));
  put("disabled_passes", joined(conversion.disabled_passes, same));
  if (conversion.keep_memory) put("disable_reuse_memory", "1");
  if (conversion.deterministic) put("deterministic", "1");
  if (conversion.external_weights) put("external_weight", "1");
  return record;
}

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

Converted convert(const Conversion& given) {
  Conversion conversion = given;
  name_positions(conversion);
  for (const auto& [name, shape] : shapes_of(conversion.shapes)) conversion.import.input_shapes[name] = shape;
  Module module = open_model(conversion.source, conversion.import);
  if (conversion.format.empty()) conversion.format = channels_first(module) ? "NCHW" : "NHWC";
  Converted converted;
  converted.operators = histogram(module);
  converted.sources = module.sources;
  converted.parameters = parameters_of(module);
  OmOrigin origin = origin_of(conversion.source);
  origin.options = recorded_options(given);
  if (!conversion.output.empty() && !conversion.original_output.empty())
    write_om(module, origin, conversion.original_output);

  auto alternatives = limits_of(conversion, module.main()).alternatives();
  if (!conversion.aipp.empty()) preprocess(conversion, module, alternatives);
  InputLimits limits(std::move(alternatives));
  limits.write(module);
  check_fp16_inputs(conversion, module.main());
  set_input_types(module, conversion.fp16_inputs, kF16);
  lower(conversion, module, converted);
  set_types_of_outputs(conversion, module);
  module.disabled_passes = conversion.disabled_passes;
  module.keep_memory = conversion.keep_memory;
  if (conversion.deterministic) module.metadata["deterministic"] = "1";
  verify(module);

  Module optimised = clone(module);
  auto passes = optimise(optimised, {.disabled = conversion.disabled_passes});
  if (converted.passes.empty()) converted.passes = std::move(passes);
  plan_all(optimised, limits, converted);
  if (conversion.output.empty()) return converted;
  if (conversion.output.ends_with(".onnx")) {
    converted.bytes = write_onnx(module, conversion);
    return converted;
  }
  bool ready = loads_faster(module, optimised);
  if (ready) optimised.optimised_by = kProducer;
  write_om(ready ? optimised : module, origin, conversion.output, conversion.external_weights);
  std::error_code stream;  // a pipe has no size
  const auto bytes = std::filesystem::file_size(conversion.output, stream);
  converted.bytes = stream ? 0 : bytes;
  return converted;
}

}  // namespace cairn
