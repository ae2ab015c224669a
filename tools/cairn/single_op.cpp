#include "single_op.h"

#include <algorithm>
#include <filesystem>

#include "codes.h"
#include "frontends/import.h"
#include "frontends/tensorflow/text_schema.h"
#include "frontends/text_proto.h"
#include "runtime/input_limits.h"
#include "single_op_graph.h"
#include "support/files.h"
#include "support/nearest.h"

namespace cairn::cli {
namespace {

constexpr const char* kOption = "--singleop";
constexpr size_t kLongestName = 128;

struct TypeRow {
  std::string_view name;
  int number;  // on the platform
  const char* tensorflow;
  const char* element;  // in our text form
};
constexpr TypeRow kTypes[] = {{"float", 0, "DT_FLOAT", "f32"},
                              {"float32", 0, "DT_FLOAT", "f32"},
                              {"float16", 1, "DT_HALF", "f16"},
                              {"half", 1, "DT_HALF", "f16"},
                              {"fp16", 1, "DT_HALF", "f16"},
                              {"int8", 2, "DT_INT8", "i8"},
                              {"int32", 3, "DT_INT32", "i32"},
                              {"uint8", 4, "DT_UINT8", "u8"},
                              {"int16", 6, "DT_INT16", "i16"},
                              {"uint16", 7, "DT_UINT16", "u16"},
                              {"uint32", 8, "DT_UINT32", "u32"},
                              {"int64", 9, "DT_INT64", "i64"},
                              {"uint64", 10, "DT_UINT64", "u64"},
                              {"double", 11, "DT_DOUBLE", "f64"},
                              {"bool", 12, "DT_BOOL", "bool"},
                              {"complex64", 16, "DT_COMPLEX64", "c64"},
                              {"complex128", 17, "DT_COMPLEX128", "c128"}};
constexpr std::pair<std::string_view, int> kFormats[] = {{"nchw", 0},  {"nhwc", 1},   {"nd", 2},     {"nc1hwc0", 3},
                                                         {"hwcn", 16}, {"ncdhw", 30}, {"ndhwc", 27}, {"dhwcn", 31},
                                                         {"cn", 34},   {"nc", 35}};

/// Text between double quotes of the text form.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

const TypeRow* type_row(const std::string& name) {
  auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& each) { return each.name == name; });
  return row == std::end(kTypes) ? nullptr : row;
}

class SingleOpReader {
 public:
  SingleOpReader(const Json& json, size_t index) : json_(json), index_(index) {}

  SingleOp read() {
    if (!json_.is_object() || !json_.contains("op") || !json_["op"].is_string() ||
        json_["op"].get<std::string>().empty())
      stop("E10026", kOption, fmt::format("Operator {} has no name in \"op\".", index_));
    op_.op = json_["op"].get<std::string>();
    if (op_.op.find_first_of("\"\\\n") != std::string::npos)
      stop("E10026", kOption, fmt::format("'{}' is no name of an operator.", clean(op_.op)));
    op_.file = fmt::format("{}_{}", index_, op_.op);
    check_keys();
    OpDescription described{.op = op_.op};
    std::string inputs;
    for (const Json& description : list("input_desc")) inputs += input(description, described.inputs);
    for (const Json& description : list("output_desc")) {
      described.outputs.push_back(operand(description, ""));
      const std::string type = text_of(description, "type");
      op_.outputs.push_back({type, type_row(type)->element, described.outputs.back().dims});
    }
    if (described.outputs.empty()) stop("E10027", kOption, fmt::format("Operator {} has no output_desc.", op_.op));
    for (const Json& each : list("attr")) attr(each, described);
    OpGraph graph = graph_of(described);
    op_.graph = inputs + graph.nodes;
    op_.results = std::move(graph.results);
    if (json_.contains("name") && json_["name"].is_string()) op_.file = json_["name"].get<std::string>();
    op_.file = op_.file.substr(0, kLongestName);
    if (op_.file.find('/') != std::string::npos || op_.file.empty())
      stop("E10026", kOption, fmt::format("'{}' is no name for a file.", op_.file));
    return std::move(op_);
  }

 private:
  /// A misspelt key would leave out what stands behind it.
  void check_keys() const {
    constexpr std::string_view kKeys[] = {"op", "name", "input_desc", "output_desc", "attr"};
    for (const auto& [key, value] : json_.items())
      if (const auto meant = nearest(key, kKeys); meant && *meant != key && !json_.contains(*meant))
        stop("E10027", kOption, fmt::format("'{}' of operator {} is no key.", clean(key), op_.op),
             fmt::format("did you mean {}?", *meant));
  }

  Json list(const char* key) const {
    if (!json_.contains(key)) return Json::array();
    if (!json_[key].is_array()) stop("E10032", kOption, fmt::format("{} of operator {} is no list.", key, op_.op));
    return json_[key];
  }

  std::string text_of(const Json& description, const char* key) const {
    if (!description.is_object() || !description.contains(key) || !description[key].is_string())
      stop("E10027", kOption, fmt::format("A tensor of operator {} has no text \"{}\".", op_.op, key));
    return lower(description[key].get<std::string>());
  }

  /// Adds the tensor to the file's name; returns its type.
  const TypeRow& describe(const Json& description) {
    std::string type = text_of(description, "type"), format = text_of(description, "format");
    const TypeRow* row = type_row(type);
    auto order =
        std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& each) { return each.first == format; });
    if (row == nullptr) stop("E10027", kOption, fmt::format("'{}' of operator {} is no type.", type, op_.op));
    if (order == std::end(kFormats))
      stop("E10027", kOption, fmt::format("'{}' of operator {} is no format.", format, op_.op));
    op_.file += fmt::format("_{}_{}", row->number, order->second);
    for (int64_t size : shape(description)) op_.file += fmt::format("_{}", size);
    return *row;
  }

  std::vector<int64_t> shape(const Json& description) const {
    std::vector<int64_t> sizes;
    bool sound = description.contains("shape") && description["shape"].is_array();
    for (const Json& size : sound ? description["shape"] : Json::array()) {
      sound = sound && size.is_number_integer() && size.get<int64_t>() >= -1;
      if (sound) sizes.push_back(size.get<int64_t>());
    }
    if (!sound)
      stop("E10027", kOption, fmt::format("A tensor of operator {} has no list of sizes in \"shape\".", op_.op));
    return sizes;
  }

  /// "shape_range": [low, high] for each size, high -1 for no limit. Empty where there is none.
  std::vector<SizeRange> ranges(const Json& description, const std::vector<int64_t>& dims) const {
    std::vector<SizeRange> list;
    if (!description.contains("shape_range") || description["shape_range"].empty()) return list;
    const Json& given = description["shape_range"];
    bool sound = given.is_array() && given.size() == dims.size();
    for (size_t i = 0; sound && i < dims.size(); ++i) {
      sound = given[i].is_array() && given[i].size() == 2 && given[i][0].is_number_integer() &&
              given[i][1].is_number_integer();
      if (!sound) break;
      const auto low = given[i][0].get<int64_t>(), high = given[i][1].get<int64_t>();
      sound =
          low >= 0 && (high == -1 || high >= low) && (dims[i] < 0 || (low <= dims[i] && (high < 0 || dims[i] <= high)));
      list.push_back({dims[i] < 0 ? low : dims[i], dims[i] >= 0 ? dims[i] : high < 0 ? SizeRange::kNoLimit : high});
    }
    if (!sound)
      stop("E10027", kOption,
           fmt::format(
               "A \"shape_range\" of operator {} is no list of [lowest, highest] for each of its {} sizes that holds "
               "them.",
               op_.op, dims.size()));
    return list;
  }

  Operand operand(const Json& description, const std::string& name) {
    const TypeRow& type = describe(description);
    return {name, type.tensorflow, text_of(description, "format"), shape(description)};
  }

  /// A placeholder, the constant that the description has in "const_value", or nothing for an input that is left out.
  std::string input(const Json& description, std::vector<Operand>& operands) {
    if (text_of(description, "type") == "undefined" || text_of(description, "format") == "reserved") {
      operands.emplace_back();  // an optional input that is not there
      return "";
    }
    const Operand operand = this->operand(description, fmt::format("x{}", operands.size()));
    operands.push_back(operand);
    const bool constant = description.contains("is_const") && description["is_const"] == true;
    if (constant && description.contains("const_value"))
      return constant_node(operand.name, operand.type, operand.dims, description["const_value"]);
    op_.ranges.push_back(ranges(description, operand.dims));
    std::string dims;
    for (int64_t size : operand.dims) dims += fmt::format("dim {{ size: {} }} ", size);
    return fmt::format("node {{ name: \"{}\" op: \"Placeholder\"\n", operand.name) +
           attribute_line("dtype", std::string("type: ") + operand.type) +
           attribute_line("shape", fmt::format("shape {{ {} }}", dims)) + "}\n";
  }

  void attr(const Json& attr, OpDescription& described) {
    auto text = [&](const char* key) {
      return attr.is_object() && attr.contains(key) && attr[key].is_string() ? attr[key].get<std::string>() : "";
    };
    std::string name = text("name"), type = text("type");
    if (name.empty()) stop("E10029", kOption, fmt::format("An attribute of operator {} has no name.", op_.op));
    const Json value = attr.contains("value") ? attr["value"] : Json();
    described.attributes[name] = value;
    if (type == "list_list_int" && value.is_array()) return;  // has no form in a graph
    std::string one = type.starts_with("list_") ? type.substr(5) : type;
    if (name == "dst_type" && one == "int") one = "data_type";  // a number of the platform
    std::string values;
    bool sound = one == "bool" || one == "int" || one == "float" || one == "string" || one == "data_type";
    if (type.starts_with("list_") != value.is_array()) sound = false;
    for (const Json& each : value.is_array() ? value : Json::array({value})) {
      if (!sound) break;
      auto written = scalar(one, each);
      sound = written.has_value();
      if (sound) values += *written + " ";
    }
    if (!sound)
      stop("E10030", kOption,
           fmt::format("Attribute {} of operator {} has no value of type '{}'.", name, op_.op, type));
    described.written[name] = value.is_array() ? fmt::format("list {{ {} }}", values) : values;
  }

  static std::optional<std::string> scalar(const std::string& type, const Json& value) {
    if (type == "bool" && value.is_boolean()) return fmt::format("b: {}", value.get<bool>());
    if (type == "int" && value.is_number_integer()) return fmt::format("i: {}", value.get<int64_t>());
    if (type == "float" && value.is_number()) return fmt::format("f: {}", value.get<double>());
    if (type == "string" && value.is_string()) return "s: " + quoted(value.get<std::string>());
    if (type != "data_type") return std::nullopt;
    for (const TypeRow& row : kTypes)
      if ((value.is_string() && lower(value.get<std::string>()) == lower(row.tensorflow)) ||
          (value.is_number_integer() && value.get<int64_t>() == row.number))
        return std::string("type: ") + row.tensorflow;
    return std::nullopt;
  }

  const Json& json_;
  size_t index_;
  SingleOp op_;
};

}  // namespace

std::vector<SingleOp> read_single_ops(const std::string& path) {
  if (!std::filesystem::exists(path))
    stop("E10023", kOption, fmt::format("File [{}] does not exist.", path), hint_of(near_file(path)));
  Json json = read_json(path, kOption, "E10025");
  if (!json.is_array()) json = Json::array({json});
  std::vector<SingleOp> ops;
  for (const Json& each : json) ops.push_back(SingleOpReader(each, ops.size()).read());
  return ops;
}

/// All inputs stay, also one that is not read. There is nothing to cut around a single operator.
static Module opened(const SingleOp& op, const std::string& wire, const ImportOptions& options) {
  try {
    const auto bytes = ModelBytes::from_memory(op.file, wire);
    const tensorflow::GraphDef graph = tensorflow::read_graph_def(bytes, bytes->bytes());
    tensorflow::Signature signature;
    for (const tensorflow::Node& node : graph.nodes)
      if (node.op == "Placeholder") signature.inputs.push_back(tensorflow::placeholder_info(node, *bytes));
    return import_tensorflow(graph, options, signature);
  } catch (const ReportError& error) {
    Report report;
    for (Problem problem : error.report().problems()) {
      problem.fix.clear();
      report.add(std::move(problem));
    }
    throw ReportError(error.kind(), error.where(), error.headline(), std::move(report));
  }
}

static std::string sizes_text(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

/// Sizes that one side leaves open fit. A scalar has the shape [] or [1].
static bool fits(const std::vector<int64_t>& described, const std::vector<int64_t>& made) {
  const auto is_one = [](const auto& dims) { return dims.empty() || (dims.size() == 1 && dims[0] == 1); };
  if (is_one(described) && is_one(made)) return true;
  return described.size() == made.size() && std::equal(made.begin(), made.end(), described.begin(),
                                                       [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

static void check_outputs(const SingleOp& op, const Module& module) {
  const auto& results = module.main().body.results;
  if (results.size() < op.outputs.size())
    stop("E10027", kOption,
         fmt::format("Operator {} has {} outputs, output_desc has {}.", op.op, results.size(), op.outputs.size()));
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const Type& type = results[i]->type;
    std::vector<int64_t> made = op.outputs[i].dims;
    if (type.shape.ranked) {
      made.clear();
      for (const Dim& dim : type.shape.dims) made.push_back(dim.known() ? dim.size : -1);
    }
    const std::string element = to_string(type.dtype);
    if (element == op.outputs[i].element && fits(op.outputs[i].dims, made)) continue;
    auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& each) { return each.element == element; });
    stop("E10027", kOption,
         fmt::format("Output {} of operator {} is {} {} by its inputs and attributes, output_desc says {} {}.", i,
                     op.op, row == std::end(kTypes) ? std::string_view(element) : row->name, sizes_text(made),
                     op.outputs[i].type, sizes_text(op.outputs[i].dims)));
  }
}

static void write_ranges(const SingleOp& op, Module& module) {
  if (std::all_of(op.ranges.begin(), op.ranges.end(), [](const auto& each) { return each.empty(); })) return;
  InputLimits::Alternative limits;
  const auto& params = module.main().body.params;
  for (size_t i = 0; i < params.size(); ++i)
    limits.push_back(i < op.ranges.size() && !op.ranges[i].empty()
                         ? op.ranges[i]
                         : std::vector<SizeRange>(params[i]->type.shape.rank(), {0, SizeRange::kNoLimit}));
  InputLimits({limits}).write(module);
}

void write_single_op(const SingleOp& op, const std::string& path) {
  std::string wire = text_to_wire(op.graph, tensorflow::kGraphDefText, op.file);
  ImportOptions options;
  options.out_nodes = op.results;
  Module module = opened(op, wire, options);
  module.name = op.op;
  check_outputs(op, module);
  write_ranges(op, module);
  auto model = Model::make(clone(module), {.threads = 1});
  OmOrigin origin;
  origin.options["singleop"] = op.op;
  write_om(module, origin, path);
}

}  // namespace cairn::cli
