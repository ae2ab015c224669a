// Modules at the C interface: opened, annotated with script lines, saved.
#include <unordered_map>

#include "capi/handles.h"
#include "capi/options.h"
#include "capi/user_op.h"
#include "convert/report.h"
#include "frontends/tensorflow/cluster.h"
#include "frontends/tensorflow/row.h"
#include "ir/text.h"
#include "passes/passes.h"
#include "support/files.h"
#include "support/sha256.h"

using namespace cairn;
using namespace cairn::capi;
namespace {

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

NamedDims named_dims(const std::string& input, const Json& value) {
  NamedDims named{input, {}, {}};
  if (!value.is_array()) fail(ErrorKind::invalid_argument, input, "shape is no list of numbers and [low, high]");
  for (const Json& item : value) {
    const bool range =
        item.is_array() && item.size() == 2 && item[0].is_number_integer() && item[1].is_number_integer();
    if (!range && !item.is_number_integer())
      fail(ErrorKind::invalid_argument, input, "shape is no list of numbers and [low, high]");
    if (range) {
      const int64_t low = item[0].get<int64_t>(), high = item[1].get<int64_t>();
      named.dims.push_back(-1);
      named.ranges.push_back({std::max<int64_t>(low, 1), high < 0 ? SizeRange::kNoLimit : high});
    } else {
      const int64_t size = item.get<int64_t>();
      named.dims.push_back(size < 0 ? -1 : size);
      named.ranges.push_back(size < 0 ? SizeRange{} : SizeRange{size, size});
    }
  }
  return named;
}

DType type_of(const std::string& key, const Json& value) {
  const auto type = value.is_string() ? parse_type_name(value.get<std::string>()) : std::nullopt;
  if (!type) fail(ErrorKind::invalid_argument, key, "{} is no element type; FP32, FP16, ...", value.dump());
  return *type;
}

/// Reads the profiles that the model is converted for: [[1], [2]] batches, [[224, 224]] images, [[1, 32]] open sizes in
/// order.
bool take_profiles(const std::string& key, const Json& value, Conversion& conversion) {
  constexpr std::pair<const char*, ProfileKind> kKinds[] = {{"dynamic_batch_size", ProfileKind::batch},
                                                            {"dynamic_image_size", ProfileKind::image},
                                                            {"dynamic_dims", ProfileKind::dims}};
  for (auto [name, kind] : kKinds) {
    if (key != name) continue;
    if (conversion.profile_kind) fail(ErrorKind::invalid_argument, key, "stands beside another list of sizes");
    std::vector<std::string> lists;
    auto number = [&](const Json& size) {
      if (!size.is_number_integer()) fail(ErrorKind::invalid_argument, key, "is no list of sizes");
      return size.get<int64_t>();
    };
    if (!value.is_array()) fail(ErrorKind::invalid_argument, key, "is no list of sizes");
    for (const Json& list : value) {
      std::vector<int64_t> sizes;
      if (!list.is_array()) sizes.push_back(number(list));
      if (list.is_array())
        for (const Json& size : list) sizes.push_back(number(size));
      lists.push_back(fmt::format("{}", fmt::join(sizes, ",")));
    }
    std::vector<std::string> repairs;  // lists have none
    conversion.profile_kind = kind;
    conversion.profiles =
        parse_profiles(kind, fmt::format("{}", fmt::join(lists, kind == ProfileKind::batch ? "," : ";")), repairs);
    return true;
  }
  return false;
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
    // The checksum is computed only when the module is written: it would take most of the loading time.
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

CairnStatus cairn_cluster_operators(char** operators) {
  return guarded([&] {
    require(operators, "operators");
    *operators = nullptr;
    nlohmann::json table = nlohmann::json::object();
    for (const tensorflow::Row* row : tensorflow::rows_with_traits()) {
      nlohmann::json& told = table[std::string(row->op)];
      told["traits"] = tensorflow::names_of(row->traits);
      if (row->traits.known_input != tensorflow::Traits::kNoInput) told["known_input"] = row->traits.known_input;
    }
    *operators = copy_text(table.dump());
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
    const bool built = module->origin.source.empty();  // made by cairn_builder_finish, not from a file
    const bool known = built || !module->origin.source_sha256.empty();
    Module written = clone(module->module);
    expand_user_ops(written);  // so that the file can be opened without these operators' libraries
    write_om(written, known ? module->origin : origin_of(module->origin.source), expand_home(path));
  });
}

namespace {

Conversion conversion_of(const char* text) {
  Conversion conversion;
  std::string mode, lists, custom;
  std::vector<std::string> keep;
  const Json options = parse_options(text);
  for (const auto& [key, value] : options.items()) {
    if (key == "input_shapes" && value.is_object()) {
      for (const auto& [input, dims] : value.items()) conversion.shapes.push_back(named_dims(input, dims));
    } else if (take_import_option(key, value, conversion.import)) {
    } else if (key == "output_types" && value.is_object()) {
      for (const auto& [output, type] : value.items()) conversion.output_types[output] = type_of(key, type);
    } else if (key == "output_type") {
      conversion.output_types[""] = type_of(key, value);
    } else if (key == "input_fp16_nodes") {
      conversion.fp16_inputs = texts(value, key);
    } else if (key == "insert_op_conf" && value.is_string()) {
      conversion.aipp = expand_home(value.get<std::string>());
    } else if (key == "input_format" && value.is_string()) {
      conversion.format = value.get<std::string>();
    } else if (key == "precision_mode" && value.is_string()) {
      mode = value.get<std::string>();
    } else if (key == "mixed_lists" && value.is_object()) {
      lists = value.dump();
    } else if (key == "keep_types") {
      keep = texts(value, key);
    } else if (key == "custom_types" && value.is_string()) {
      custom = value.get<std::string>();
    } else if (key == "disabled_passes") {
      conversion.disabled_passes = texts(value, key);
    } else if (key == "keep_memory" && value.is_boolean()) {
      conversion.keep_memory = value.get<bool>();
    } else if (key == "deterministic" && value.is_boolean()) {
      conversion.deterministic = value.get<bool>();
    } else if (key == "external_weights" && value.is_boolean()) {
      conversion.external_weights = value.get<bool>();
    } else if (!take_profiles(key, value, conversion)) {
      refuse_option(key);
    }
  }
  conversion.precision = read_precision(mode, lists, std::move(keep), custom);
  return conversion;
}

}  // namespace

CairnStatus cairn_module_convert(const char* source, const char* options, const char* output, char** report) {
  return guarded([&] {
    require(source, "source");
    require(output, "output");
    if (report) *report = nullptr;
    load_op_libraries_of_environment();
    Conversion conversion = conversion_of(options);
    conversion.source = expand_home(source);
    conversion.output = expand_home(output);
    Json notes = Json::array();
    conversion.import.note = [&](const std::string& sentence) { notes.push_back(sentence); };
    const Converted converted = convert(conversion);
    if (!report) return;
    if (is_slow(converted.reference))
      notes.push_back(fmt::format("{}", fmt::join(describe(converted.reference), "\n")));
    Json json = conversion_json(conversion, converted);
    json["notes"] = notes;
    *report = copy_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  });
}

CairnStatus cairn_module_text(const CairnModule* module, char** text) {
  return guarded([&] {
    require(module, "module");
    require(text, "text");
    *text = copy_text(print(module->module).text);
  });
}
