#include "framework.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "arrays.h"
#include "formats/npz.h"
#include "framework_worker.h"
#include "frontends/tensorflow/saved_model.h"
#include "support/files.h"
#include "verbs.h"
#include "worker.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

/// "x" of "serving_default_x:0".
std::string undecorated(std::string name) {
  constexpr std::string_view kPrefix = "serving_default_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

struct Ports {
  std::vector<Port> inputs, outputs;
};

Ports ports_of(const Module& module) {
  Ports ports;
  const Function& main = module.main();
  for (const auto& param : main.body.params) ports.inputs.push_back({param->name, param->type});
  for (size_t i = 0; i < main.body.results.size(); ++i)
    ports.outputs.push_back({main.result_names[i], main.body.results[i]->type});
  return ports;
}

/// The source's own inputs and outputs. A graph gives any node, so that our outputs may be asked of it by name. What our
/// readers cannot open may still run: then it is asked by our names.
std::optional<Ports> source_ports(const std::string& source, const std::string& signature, const Model& mine) {
  ModelArguments arguments;
  arguments.path = source, arguments.signature = signature;
  for (const Port& port : mine.outputs()) arguments.outputs.push_back(port.name);
  const bool graph = !fs::is_directory(source) && !source.ends_with(".onnx") && !source.ends_with(".keras") &&
                     !source.ends_with(".h5") && !source.ends_with(".om");
  for (bool by_name : {true, false}) {
    if (by_name && !graph) continue;
    if (!by_name) arguments.outputs.clear();
    try {
      return ports_of(open(arguments));
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

Json pairs_of(const std::vector<Port>& mine, const std::vector<std::string>& theirs) {
  Json list = Json::array();
  for (size_t i = 0; i < mine.size(); ++i) list.push_back({mine[i].name, theirs[i]});
  return list;
}

void write_ports(const FrameworkQuestion& question, const Model& mine, const std::string& path) {
  const Ports own{mine.inputs(), mine.outputs()};
  const Ports theirs = source_ports(question.source, question.signature, mine).value_or(own);
  const Json json = {{"inputs", pairs_of(own.inputs, counterparts(own.inputs, theirs.inputs))},
                     {"outputs", pairs_of(own.outputs, counterparts(own.outputs, theirs.outputs))}};
  write_file(path, json.dump());
}

/// The interpreter to ask, then those of the virtual environments in the folder of its own.
std::vector<std::string> interpreters(const FrameworkQuestion& question) {
  const std::string first = find_python(question.python);
  if (!question.python.empty() || std::getenv("CAIRN_PYTHON")) return {first};
  std::error_code none;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(fs::path(first).parent_path().parent_path().parent_path(), none)) {
    const fs::path python = entry.path() / "bin/python";
    if (python != first && fs::exists(entry.path() / "pyvenv.cfg", none) && fs::exists(python, none))
      found.push_back(python.string());
  }
  std::sort(found.begin(), found.end());
  found.insert(found.begin(), first);
  return found;
}

void run_worker(const FrameworkQuestion& question, size_t runs, const fs::path& folder) {
  const std::string log = (folder / "log").string(), error = (folder / "error").string();
  const std::vector<std::string> pythons = interpreters(question);
  int status = 3;
  std::string missing;
  for (size_t i = 0; i < pythons.size() && (status == 3 || status == 127); ++i) {
    status = run_program({pythons[i], "-c", kFrameworkScript, question.trace ? "trace" : "run", question.source,
                          question.signature, std::to_string(runs), folder.string()},
                         log);
    if (status == 127) missing += fmt::format("{}{} cannot be started", i > 0 ? ", " : "", pythons[i]);
    if (status == 3) missing += fmt::format("{}{} in {}", i > 0 ? ", " : "", printable(read_file(log)), pythons[i]);
    if (status != 3 && status != 127 && i > 0)
      fmt::print(stderr, "note: {} is asked; missing: {}\n", pythons[i], missing);
  }
  if (status == 127 || status == 3) throw FrameworkMissing{missing};
  if (status == 0) return;
  const std::string said = fs::exists(error) ? read_file(error) : "";
  if (said.empty()) fail_with_log(question.source, read_file(log));
  fail(ErrorKind::invalid_model, question.source, "the framework could not run it: {}", printable(said));
}

/// "mlp/dense/MatMul" of "StatefulPartitionedCall/mlp/dense/MatMul".
std::string without_calls(std::string name) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/')) {
    std::string_view first(name.data(), slash);
    if (!first.starts_with("PartitionedCall") && !first.starts_with("StatefulPartitionedCall")) break;
    name.erase(0, slash + 1);
  }
  return name;
}

void read_values(const fs::path& folder, FrameworkAnswer& answer) {
  const Json meta = Json::parse(read_file((folder / "values.json").string()));
  answer.maker = meta["maker"].get<std::string>();
  auto file = NpzFile::open((folder / "values.npz").string());
  size_t i = 0;
  for (const Json& entry : meta["values"]) {
    const std::string name = entry[0];
    const auto index = entry[1].get<size_t>(), turn = entry[2].get<size_t>();
    Tensor value = file->read(fmt::format("v{}", i++));
    answer.values[{name, index, turn}] = value;
    // Where our import has one name less in front, because the nodes were those of a function.
    answer.values.try_emplace({without_calls(name), index, turn}, value);
  }
}

bool same_type(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype) return false;
  if (!a.shape.ranked || !b.shape.ranked) return true;
  if (a.shape.rank() != b.shape.rank()) return false;
  for (size_t i = 0; i < a.shape.rank(); ++i) {
    const int64_t x = a.shape.dims[i].size, y = b.shape.dims[i].size;
    if (x >= 0 && y >= 0 && x != y) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> counterparts(const std::vector<Port>& mine, const std::vector<Port>& theirs) {
  std::vector<std::string> names(mine.size());
  std::vector<bool> taken(theirs.size(), false);
  auto pair_where = [&](auto&& fits) {
    for (size_t i = 0; i < mine.size(); ++i)
      for (size_t k = 0; k < theirs.size() && names[i].empty(); ++k)
        if (!taken[k] && fits(mine[i], theirs[k])) names[i] = theirs[k].name, taken[k] = true;
  };
  pair_where([](const Port& a, const Port& b) { return a.name == b.name; });
  pair_where([](const Port& a, const Port& b) { return undecorated(a.name) == undecorated(b.name); });
  pair_where([](const Port& a, const Port& b) { return same_type(a.type, b.type); });
  for (size_t i = 0; i < mine.size(); ++i)
    if (names[i].empty()) names[i] = mine[i].name;
  return names;
}

ModelArguments fitted(ModelArguments arguments, const Model& mine, const std::string& source) {
  const bool open = std::any_of(mine.inputs().begin(), mine.inputs().end(), [](const Port& port) {
    return port.type.is_tensor() && port.type.shape.ranked && !port.type.is_static();
  });
  if (!open || !arguments.shapes.empty()) return arguments;
  const auto theirs = source_ports(source, arguments.signature, mine);
  if (!theirs) return arguments;
  const std::vector<std::string> names = counterparts(mine.inputs(), theirs->inputs);
  for (size_t i = 0; i < names.size(); ++i) {
    const Port& port = mine.inputs()[i];
    for (const Port& other : theirs->inputs) {
      if (other.name != names[i] || !same_type(port.type, other.type) || !other.type.shape.ranked) continue;
      std::vector<int64_t> sizes;
      for (const Dim& dim : other.type.shape.dims) sizes.push_back(dim.known() ? dim.size : -1);
      if (std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) continue;
      if (arguments.batch > 0 && sizes[0] < 0) sizes[0] = arguments.batch;
      arguments.shapes += fmt::format("{}{}:{}", arguments.shapes.empty() ? "" : ";", port.name, fmt::join(sizes, ","));
    }
  }
  return arguments;
}

FrameworkAnswer ask_framework(const FrameworkQuestion& asked, const Model& mine,
                              const std::vector<std::vector<Tensor>>& inputs) {
  FrameworkQuestion question = asked;
  question.source = fs::absolute(expand_home(question.source)).string();
  if (question.source.ends_with(".prototxt"))
    throw FrameworkMissing{"Caffe; compare with the net in another format, or with saved values, by cairn diff"};
  if (const std::string prefix = tensorflow::checkpoint_prefix(question.source); !prefix.empty())
    question.source = prefix;
  TemporaryFolder folder;
  write_ports(question, mine, (folder.path() / "ports.json").string());
  for (size_t run = 0; run < inputs.size(); ++run) {
    std::vector<std::pair<std::string, Tensor>> named;
    for (size_t i = 0; i < inputs[run].size(); ++i) named.emplace_back(mine.inputs()[i].name, inputs[run][i]);
    write_npz(named, (folder.path() / fmt::format("in_{}.npz", run)).string());
  }
  run_worker(question, inputs.size(), folder.path());
  FrameworkAnswer answer;
  for (size_t run = 0; run < inputs.size(); ++run) {
    auto file = NpzFile::open((folder.path() / fmt::format("out_{}.npz", run)).string());
    std::vector<Tensor>& outputs = answer.outputs.emplace_back();
    for (size_t i = 0; i < mine.outputs().size(); ++i) outputs.push_back(file->read(fmt::format("o{}", i)).owned());
  }
  if (question.trace) read_values(folder.path(), answer);
  return answer;
}

}  // namespace cairn::cli
