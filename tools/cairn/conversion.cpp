#include "conversion.h"

#include <algorithm>
#include <filesystem>

#include "model/adapt.h"
#include "ops/aipp.h"
#include "passes/aipp.h"
#include "runtime/input_limits.h"
#include "support/files.h"
#include "support/json_fault.h"

namespace cairn::cli {

namespace {

/// What was given for an input, by name or position.
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

bool is_limited(const SizeRange& range) { return range != SizeRange{} && range.low != range.high; }

/// The sizes the model is made for: every profile, or the ranges when one has an end.
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

/// Shapes by position get the names of the inputs, which are known once the model was read.
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
    stop("E19025", "--input_shape_range",
         fmt::format("shapes for {} inputs are given, the model has {}", conversion.shapes.size(), params.size()));
  for (size_t i = 0; i < conversion.shapes.size(); ++i) conversion.shapes[i].name = params[i]->name;
}

/// Bytes of the parameters of dynamic preprocessing for a range of images.
SizeRange parameter_bytes(const SizeRange& images) {
  auto bytes = [](int64_t count) {
    return static_cast<int64_t>(AippHeader::kBytes + AippImage::kBytes * size_t(count));
  };
  return {bytes(images.low), images.high == SizeRange::kNoLimit ? SizeRange::kNoLimit : bytes(images.high)};
}

/// Images come as bytes; their limits are then those of the bytes, but for the batch.
void preprocess(const Conversion& conversion, Module& module, std::vector<InputLimits::Alternative>& alternatives) {
  std::string text = read_file(conversion.aipp);
  const bool channels_first = conversion.format.starts_with("NC");
  std::vector<AippInput> inputs;
  try {
    inputs = insert_aipp(module, parse_aipp(text, conversion.aipp), channels_first);
  } catch (const Error& error) {
    stop("E10052", "--insert_op_conf", fmt::format("AIPP configuration invalid: {}", error.what()));
  }
  const auto& params = module.main().body.params;
  for (const AippInput& input : inputs) {  // in the order in which inputs for parameters were added
    size_t i = 0;
    while (params[i]->name != input.name) ++i;
    for (const std::string& half : conversion.fp16_inputs)
      if (is_named(params[i]->name, half))
        stop("E10034", "--input_fp16_nodes", fmt::format("Input [{}] is preprocessed and cannot be fp16.", half));
    const size_t row = channels_first ? 2 : 1;
    for (auto& alternative : alternatives) {
      const std::vector<SizeRange> own = alternative[i];
      alternative[i] = ranges_of(params[i]->type);
      if (!input.parameters.empty()) {
        alternative.push_back({parameter_bytes(own[0])});
        continue;
      }
      alternative[i][0] = own[0];
      for (size_t axis : {1, 2})  // open height and width are the model's own
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
    stop("E10003", "--keep_dtype", fmt::format("{} entries of --keep_dtype fit no operator: {}", count, missing));
}

void check_fp16_inputs(const Conversion& conversion, const Function& main) {
  for (const std::string& name : conversion.fp16_inputs) {
    const auto& params = main.body.params;
    auto found =
        std::find_if(params.begin(), params.end(), [&](const auto& param) { return is_named(param->name, name); });
    if (found == params.end())
      stop("E10016", "--input_fp16_nodes",
           fmt::format("Opname [{}] specified in [--input_fp16_nodes] is not found.", name),
           name.find_first_of(", ") == std::string::npos ? "" : "separate the inputs by ';'");
    if (!(*found)->type.dtype.is_float())
      stop("E10001", "--input_fp16_nodes",
           fmt::format(
               "Value [{}] for parameter [--input_fp16_nodes] is invalid. Reason: the input is {}, expected floats",
               name, to_string((*found)->type)));
  }
}

/// A name that there is not has a code of its own on the platform.
Module open_source(const Conversion& conversion) {
  try {
    return open_model(conversion.source, conversion.import);
  } catch (const Error& error) {
    for (const NamedDims& shape : conversion.shapes)
      if (error.message().find(fmt::format("has no input '{}'", shape.name)) != std::string::npos)
        stop("E10016", "--input_shape",
             fmt::format("Opname [{}] specified in [--input_shape] is not found: {}", shape.name, error.what()));
    if (error.message().find("has no node '") != std::string::npos ||
        error.message().find("has no tensor or node '") != std::string::npos)
      stop("E10016", "--out_nodes", fmt::format("An opname specified in [--out_nodes] is not found: {}", error.what()),
           std::any_of(conversion.import.out_nodes.begin(), conversion.import.out_nodes.end(),
                       [](const std::string& node) { return node.find_first_of(", ") != std::string::npos; })
               ? "separate the nodes by ';': --out_nodes=\"a:0;b:0\""
               : "");
    throw;
  }
}

double constant_bytes(const Module& module) {
  double total = 0;
  for (const Tensor& weight : print(module).weights) total += static_cast<double>(weight.bytes());
  return total;
}

/// Whether to store the optimised form: folded weights are then mapped and not computed at each load. Not where folding
/// made constants much larger, nor with variables, whose handles are gone in it.
bool loads_faster(const Module& module, const Module& optimised) {
  constexpr double kMostGrowth = 1.25;
  return optimised.main().updates.empty() && constant_bytes(optimised) <= kMostGrowth * constant_bytes(module) + 4096;
}

/// With 1 for each open size; nothing where the model does not run so.
ReferenceShare smallest_share(const Model& model) {
  std::vector<Dims> dims;
  for (const Port& input : model.inputs()) {
    dims.emplace_back();
    if (!input.type.is_tensor()) continue;
    if (!input.type.shape.ranked) return {};
    for (const Dim& dim : input.type.shape.dims) dims.back().push_back(dim.known() ? dim.size : 1);
  }
  try {
    return model.expected_share(dims);
  } catch (const Error&) {
    return {};  // sizes that depend on each other
  }
}

/// Makes every shape rule and kernel choice of the model happen once, so that what is written is known to run.
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
  if (converted.totals.steps == 0) converted.reference = smallest_share(*model);
}

}  // namespace

void stop(const char* code, const std::string& subject, const std::string& message, const std::string& fix) {
  Report report;
  report.add({code, Severity::error, subject, {}, message, fix});
  throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", std::move(report));
}

Json read_json(const std::string& path, const char* option, const char* code) {
  const std::string text = read_file(path);
  if (const std::string fault = json_fault(text); !fault.empty())
    stop(code, option, fmt::format("File [{}] of parameter [{}] cannot be read as JSON: {}", path, option, fault));
  return Json::parse(text);
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
  Module module = open_source(conversion);
  auto framework = module.metadata.find("format");
  if (conversion.format.empty())
    conversion.format = framework != module.metadata.end() && framework->second == "onnx" ? "NCHW" : "NHWC";
  Converted converted;
  converted.operators = histogram(module);
  converted.sources = module.sources;
  converted.parameters = parameters_of(module);
  OmOrigin origin = origin_of(conversion.source);
  origin.options = conversion.options;
  if (!conversion.output.empty() && !conversion.original_output.empty())
    write_om(module, origin, conversion.original_output);

  auto alternatives = limits_of(conversion, module.main()).alternatives();
  if (!conversion.aipp.empty()) preprocess(conversion, module, alternatives);
  InputLimits limits(std::move(alternatives));
  limits.write(module);
  check_fp16_inputs(conversion, module.main());
  set_input_types(module, conversion.fp16_inputs, kF16);
  lower(conversion, module, converted);
  set_output_types(module, conversion.output_types);
  module.disabled_passes = conversion.disabled_passes;
  module.keep_memory = conversion.keep_memory;
  verify(module);

  Module optimised = clone(module);
  auto passes = optimise(optimised, {.disabled = conversion.disabled_passes});
  if (converted.passes.empty()) converted.passes = std::move(passes);
  plan_all(optimised, limits, converted);
  if (conversion.output.empty()) return converted;
  bool ready = loads_faster(module, optimised);
  if (ready) optimised.optimised_by = kProducer;
  write_om(ready ? optimised : module, origin, conversion.output, conversion.external_weights);
  std::error_code stream;  // a pipe has no size
  const auto bytes = std::filesystem::file_size(conversion.output, stream);
  converted.bytes = stream ? 0 : bytes;
  return converted;
}

}  // namespace cairn::cli
