// Modules at the C interface: opened, annotated with script lines, saved.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "capi/handles.h"
#include "capi/user_op.h"
#include "frontends/tensorflow/cluster.h"
#include "ir/text.h"
#include "passes/passes.h"
#include "support/files.h"
#include "support/sha256.h"

using namespace cairn;
using namespace cairn::capi;
namespace {

constexpr size_t kLongestOptions = 1 << 20;

std::vector<std::string> texts(const nlohmann::json& value, const std::string& key) {
  if (!value.is_array()) fail(ErrorKind::invalid_argument, "options", "{} is no list of texts", key);
  std::vector<std::string> list;
  for (const nlohmann::json& item : value) {
    if (!item.is_string()) fail(ErrorKind::invalid_argument, "options", "{} is no list of texts", key);
    list.push_back(item.get<std::string>());
  }
  return list;
}

Shape shape_of(const nlohmann::json& value, const std::string& input) {
  std::vector<Dim> dims;
  if (!value.is_array()) fail(ErrorKind::invalid_argument, input, "shape is no list of numbers");
  for (const nlohmann::json& item : value) {
    if (!item.is_number_integer()) fail(ErrorKind::invalid_argument, input, "shape is no list of numbers");
    int64_t size = item.get<int64_t>();
    dims.push_back(size < 0 ? Dim() : Dim(size));
  }
  return Shape(std::move(dims));
}

std::vector<int64_t> values_of(const nlohmann::json& value, const std::string& input) {
  std::vector<int64_t> values;
  for (const nlohmann::json& item : value.is_array() ? value : nlohmann::json::array({nullptr})) {
    if (!item.is_number_integer()) fail(ErrorKind::invalid_argument, input, "value is no list of integers");
    values.push_back(item.get<int64_t>());
  }
  return values;
}

ImportOptions import_options(const char* text) {
  ImportOptions options;
  if (!text || !*text) return options;
  if (std::string_view(text).size() > kLongestOptions) fail(ErrorKind::invalid_argument, "options", "are too long");
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "options", "are no JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key == "outputs") {
      options.out_nodes = texts(value, key);
    } else if (key == "tags") {
      options.tags = texts(value, key);
    } else if (key == "signature" && value.is_string()) {
      options.signature = value.get<std::string>();
    } else if (key == "input_shapes" && value.is_object()) {
      for (const auto& [input, shape] : value.items()) options.input_shapes[input] = shape_of(shape, input);
    } else if (key == "input_values" && value.is_object()) {
      for (const auto& [input, list] : value.items()) options.input_values[input] = values_of(list, input);
    } else {
      fail(ErrorKind::invalid_argument, "options", "no option is called {}, or its value has another form", key);
    }
  }
  return options;
}

BytesFormat bytes_format(CairnFormat format) {
  switch (format) {
    case CAIRN_FORMAT_ANY: return BytesFormat::any;
    case CAIRN_FORMAT_IR: return BytesFormat::text;
    case CAIRN_FORMAT_GRAPHDEF: return BytesFormat::graph_def;
    case CAIRN_FORMAT_ONNX: return BytesFormat::onnx;
    case CAIRN_FORMAT_OM: return BytesFormat::om;
    case CAIRN_FORMAT_CLUSTER: return BytesFormat::cluster;
    case CAIRN_FORMAT_SAVEDMODEL: break;
  }
  fail(ErrorKind::invalid_argument, "format", "{} cannot be read from memory", static_cast<int>(format));
}

CairnModule* module_from_bytes(BytesFormat format, const char* name, const void* data, size_t size,
                               const ImportOptions& options) {
  if (size) require(data, "data");
  load_op_libraries_of_environment();
  std::string_view bytes(static_cast<const char*>(data), size);
  std::string title = name ? name : "model";
  Module made = open_bytes(format, title, bytes, options);
  Sha256 hash;
  hash.add(bytes);
  return new CairnModule{std::move(made), {title, hash.digest(), {}}};
}

}  // namespace

CairnStatus cairn_module_open(const char* path, const char* options, CairnModule** module) {
  return guarded([&] {
    require(path, "path");
    require(module, "module");
    *module = nullptr;
    load_op_libraries_of_environment();
    std::string file = expand_home(path);
    // The checksum waits until something is written: it would be most of the time to load.
    *module = new CairnModule{open_model(file, import_options(options)), {file, "", {}}};
  });
}

CairnStatus cairn_module_from_bytes(CairnFormat format, const char* name, const void* data, size_t size,
                                    const char* options, CairnModule** module) {
  return guarded([&] {
    require(module, "module");
    *module = nullptr;
    *module = module_from_bytes(bytes_format(format), name, data, size, import_options(options));
  });
}

CairnStatus cairn_module_from_cluster(const char* name, const void* data, size_t size, const char* options,
                                      const char* const* names, const CairnTensor* constants, size_t count,
                                      CairnModule** module) {
  return guarded([&] {
    require(module, "module");
    *module = nullptr;
    if (count) require(names, "names"), require(constants, "constants");
    ImportOptions known = import_options(options);
    const Inputs values(constants, count);
    for (size_t i = 0; i < count; ++i) {
      require(names[i], "name");
      const TensorRef& value = values.refs()[i];
      known.constants[names[i]] =
          Tensor::view(value.dtype, {value.dims.begin(), value.dims.end()}, value.data, nullptr).owned();
    }
    *module = module_from_bytes(BytesFormat::cluster, name, data, size, known);
  });
}

void cairn_module_free(CairnModule* module) { delete module; }

CairnStatus cairn_cluster_refusals(const void* graph, size_t size, char** refusals) {
  return guarded([&] {
    require(refusals, "refusals");
    *refusals = nullptr;
    if (size) require(graph, "graph");
    load_op_libraries_of_environment();
    auto bytes = ModelBytes::from_memory("graph", std::string(static_cast<const char*>(graph), size));
    nlohmann::json reasons = refused_nodes(tensorflow::read_graph_def(bytes, bytes->bytes()));
    if (reasons.is_null()) reasons = nlohmann::json::object();
    *refusals = copy_text(reasons.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

CairnStatus cairn_module_set_locations(CairnModule* module, const CairnLocation* locations, size_t count) {
  return guarded([&] {
    require(module, "module");
    if (count) require(locations, "locations");
    std::unordered_map<std::string_view, const char*> lines;
    for (size_t i = 0; i < count; ++i) {
      require(locations[i].node, "node");
      require(locations[i].location, "location");
      lines[locations[i].node] = locations[i].location;
    }
    for (Source& source : module->module.sources)
      if (auto found = lines.find(source.name); found != lines.end()) source.location = found->second;
  });
}

CairnStatus cairn_module_save(const CairnModule* module, const char* path) {
  return guarded([&] {
    require(module, "module");
    require(path, "path");
    const bool built = module->origin.source.empty();  // by cairn_builder_finish: there is no file
    const bool known = built || !module->origin.source_sha256.empty();
    Module written = clone(module->module);
    expand_user_ops(written);  // whoever opens the file need not have what is made of other operators
    write_om(written, known ? module->origin : origin_of(module->origin.source), expand_home(path));
  });
}

CairnStatus cairn_module_text(const CairnModule* module, char** text) {
  return guarded([&] {
    require(module, "module");
    require(text, "text");
    *text = copy_text(print(module->module).text);
  });
}
