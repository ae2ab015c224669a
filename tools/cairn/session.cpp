#include "session.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "arrays.h"
#include "ir/result_marks.h"
#include "made_inputs.h"
#include "observe/watch.h"
#include "runtime/likely_dims.h"
#include "support/files.h"

namespace cairn::cli {

std::map<std::string, std::string> replacements(const ModelArguments& arguments) {
  std::map<std::string, std::string> all;
  for (const std::string& word : arguments.replace) {
    const size_t at = word.rfind('=');
    if (at == std::string::npos || at == 0)
      fail(ErrorKind::invalid_argument, "--replace", "'{}' is not NODE=identity, NODE=zeros or NODE=input", word);
    all[word.substr(0, at)] = word.substr(at + 1);
  }
  for (const std::string& node : arguments.cut) all[node] = "input";
  return all;
}

Module open(const ModelArguments& arguments) {
  std::string path = expand_home(arguments.path);
  ImportOptions options;
  options.out_nodes = arguments.outputs;
  options.weights = expand_home(arguments.weights);
  options.signature = arguments.signature;
  options.replace = replacements(arguments);
  options.note = [](const std::string& sentence) {
    static std::set<std::string> told;  // a command may open a model several times
    if (told.insert(sentence).second) fmt::print(stderr, "note: {}\n", sentence);
  };
  if (arguments.shapes.empty() || kind_of(path) != FileKind::foreign) return open_model(path, options);
  std::vector<std::string> repairs;
  options.input_shapes = shapes_of(parse_input_shapes(arguments.shapes, repairs));
  for (const std::string& repair : repairs) fmt::print(stderr, "note: {}\n", repair);
  return open_model(path, options);
}

std::shared_ptr<const Model> prepare(const ModelArguments& arguments) {
  ModelOptions options;
  options.threads = arguments.threads;
  options.engines = split_list(arguments.engines, ',');
  options.deterministic = arguments.deterministic;
  return Model::make(open(arguments), options);
}

namespace {

/// What is given; -1 for sizes that are not.
std::vector<Dims> given_dims(const std::vector<Port>& inputs, const ModelArguments& arguments) {
  std::vector<std::string> repairs;
  std::vector<NamedDims> given;
  if (!arguments.shapes.empty()) given = parse_input_shapes(arguments.shapes, repairs);
  std::vector<Dims> all;
  for (const Port& input : inputs) {
    Dims dims;
    const Shape& shape = input.type.shape;
    auto named = std::find_if(given.begin(), given.end(),
                              [&](const NamedDims& each) { return is_named(input.name, each.name); });
    if (named != given.end() && shape.ranked && named->dims.size() != shape.rank())
      fail(ErrorKind::invalid_argument, input.name, "has {} dimensions in --input-shape, the model has {}",
           named->dims.size(), to_string(shape));
    if (!shape.ranked && named == given.end())
      fail(ErrorKind::invalid_argument, input.name, "takes any shape; give one: --input-shape=\"{}:1,2\"", input.name);
    size_t rank = shape.ranked ? shape.rank() : named->dims.size();
    for (size_t axis = 0; axis < rank; ++axis) {
      int64_t size = shape.ranked ? shape.dims[axis].size : -1;
      if (named != given.end() && named->dims[axis] >= 0) size = named->dims[axis];
      dims.push_back(size < 0 && axis == 0 && arguments.batch > 0 ? arguments.batch : size);
    }
    all.push_back(std::move(dims));
  }
  const bool cut = !arguments.outputs.empty() || !arguments.cut.empty() || !arguments.replace.empty();
  for (const NamedDims& each : given)
    if (!cut &&
        std::none_of(inputs.begin(), inputs.end(), [&](auto& input) { return is_named(input.name, each.name); }))
      fail(ErrorKind::invalid_argument, each.name, "is no input of the model");
  return all;
}

std::vector<Dims> with_ones(std::vector<Dims> all) {
  for (Dims& dims : all)
    std::replace_if(
        dims.begin(), dims.end(), [](int64_t size) { return size < 0; }, 1);
  return all;
}

/// "x:?,?,40" for what has sizes to fill in.
std::string shapes_to_fill(const std::vector<Port>& inputs, const std::vector<Dims>& given) {
  std::vector<std::string> all;
  for (size_t i = 0; i < given.size(); ++i) {
    std::vector<std::string> sizes;
    for (const int64_t size : given[i]) sizes.push_back(size < 0 ? "?" : std::to_string(size));
    if (std::find(sizes.begin(), sizes.end(), "?") != sizes.end())
      all.push_back(fmt::format("{}:{}", inputs[i].name, fmt::join(sizes, ",")));
  }
  return fmt::format("{}", fmt::join(all, ";"));
}

}  // namespace

std::vector<Dims> choose_dims(const Model& model, const ModelArguments& arguments, int64_t batch,
                              const std::function<bool(const std::vector<Dims>&)>& fits) {
  std::vector<Dims> given = given_dims(model.inputs(), arguments), closed = with_ones(given);
  if (given == closed) return given;
  if (auto likely = likely_dims(model, given, batch, fits)) return *likely;
  try {
    model.plan(closed);
  } catch (const Error& fault) {
    if (fault.kind() == ErrorKind::cancelled) throw;
    throw Error(
        fault.kind(), fault.where(),
        fmt::format("{}; no sizes fit that were tried for what the model leaves open, give them: --input-shape=\"{}\"",
                    fault.message(), shapes_to_fill(model.inputs(), given)));
  }
  return closed;
}

std::vector<Tensor> read_inputs(const Model& model, const ModelArguments& arguments,
                                const std::vector<std::string>& files, bool zeros, uint64_t seed) {
  const auto& ports = model.inputs();
  std::vector<Tensor> tensors(ports.size());
  size_t next = 0;
  std::vector<std::string> paths(ports.size());
  for (const std::string& file : files) {
    size_t equals = file.find('=');
    auto named = std::find_if(ports.begin(), ports.end(), [&](const Port& port) {
      return equals != std::string::npos && file.substr(0, equals) == port.name;
    });
    if (named == ports.end() && equals != std::string::npos && !std::filesystem::exists(file)) {
      std::vector<std::string_view> names;
      for (const Port& port : ports) names.push_back(port.name);
      fail(ErrorKind::not_found, file.substr(0, equals), "is no input of the model, which has {}",
           fmt::join(names, ", "));
    }
    size_t index = named != ports.end() ? static_cast<size_t>(named - ports.begin()) : next++;
    if (index >= ports.size())
      fail(ErrorKind::invalid_argument, file, "is one input too many: the model has {}", ports.size());
    paths[index] = expand_home(named != ports.end() ? file.substr(equals + 1) : file);
  }
  bool complete = std::none_of(paths.begin(), paths.end(), [](const std::string& path) { return path.empty(); });
  bool typed = std::all_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.ends_with(".npy") || path.find(".npz:") != std::string::npos;
  });
  std::vector<Dims> dims = complete && typed ? std::vector<Dims>(ports.size())
                           : files.empty()   ? make_dims(model, arguments)
                                             : with_ones(given_dims(ports, arguments));
  int64_t batch = 0;  // of the files, where the model leaves it open
  for (size_t i = 0; i < ports.size(); ++i) {
    if (paths[i].empty()) continue;
    tensors[i] = read_array(paths[i], ports[i].type.dtype, dims[i]);
    const Shape& shape = ports[i].type.shape;
    if (shape.ranked && shape.rank() > 0 && !shape.dims[0].known() && tensors[i].rank() > 0)
      batch = tensors[i].dims()[0];
  }
  if (complete) return tensors;
  for (size_t i = 0; i < ports.size(); ++i)
    if (batch > 0 && arguments.batch == 0 && arguments.shapes.empty() && !dims[i].empty() &&
        !ports[i].type.shape.dims[0].known())
      dims[i][0] = batch;
  const std::vector<Tensor> made = zeros ? std::vector<Tensor>() : make_inputs(model, dims, seed);
  for (size_t i = 0; i < ports.size(); ++i)
    if (paths[i].empty()) tensors[i] = zeros ? Tensor::zeros(ports[i].type.dtype, dims[i]) : made[i];
  return tensors;
}

std::vector<Tensor> run_watched(const Model& model, const std::vector<Tensor>& inputs, RunOptions options) {
  start_watch_from_environment();
  RunWatch watch(model.module(), 0, options.observer);
  options.observer = watch.observer();
  return model.run(inputs, options);
}

std::string step_sources(const Module& module, const PlannedStep& step) {
  std::vector<SourceId> sources;
  auto add = [&](const Node& node) {
    for (SourceId id : node.sources)
      if (id < module.sources.size() && !result_mark(module.sources[id]) &&
          std::find(sources.begin(), sources.end(), id) == sources.end())
        sources.push_back(id);
  };
  if (step.control) add(*step.control);
  for (const Node* node : step.group.nodes) add(*node);
  if (sources.empty()) return step.group.nodes.empty() ? "" : step.group.last().op->name;
  const Source& first = module.sources[sources[0]];
  std::string text = first.name;
  if (!first.location.empty()) text += fmt::format(" ({})", first.location);
  if (sources.size() > 1) text += fmt::format(" +{}", sources.size() - 1);
  return text;
}

std::string common_folder(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string common = names[0];
  for (const std::string& name : names) {
    auto [end, other] = std::mismatch(common.begin(), common.end(), name.begin(), name.end());
    common.erase(end, common.end());
  }
  return common.substr(0, common.rfind('/') + 1);
}

void StepTimes::step_begins(const Plan&, size_t, void* const*) { open_.push_back({std::chrono::steady_clock::now()}); }

void StepTimes::step_ends(const Plan& plan, size_t step, void* const*) {
  Open open = open_.back();
  open_.pop_back();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - open.begin).count();
  if (!open_.empty()) open_.back().inner += seconds;
  const PlannedStep* planned = &plan.steps[step];
  auto [entry, fresh] = index_.try_emplace(planned, entries_.size());
  if (fresh) entries_.push_back({planned});
  entries_[entry->second].seconds += seconds - open.inner;
  ++entries_[entry->second].runs;
}

}  // namespace cairn::cli
