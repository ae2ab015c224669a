#include "frontends/onnx/model.h"

#include <filesystem>

#include "frontends/onnx/fields.h"
#include "frontends/onnx/node_order.h"
#include "frontends/script_line.h"

namespace cairn::onnx {
namespace {

constexpr std::string_view kTorchKind = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr std::string_view kTorchSignature = "pkg.torch.export.ExportedProgram.graph_signature";

constexpr std::string_view kTorchStack = "pkg.torch.onnx.stack_trace";

Graph read_graph(Wire wire);
void read_type(Wire type, ValueInfo& info);
std::pair<std::string_view, std::string_view> read_entry(Wire wire);

TensorProto read_tensor_name(std::string_view bytes, const Wire& outer) {
  TensorProto tensor;
  tensor.bytes = bytes;
  Wire wire(bytes, "TensorProto", outer.model(), outer.depth() + 1);
  wire.model().charge(2 * sizeof(TensorProto));
  while (wire.next()) {
    if (wire.field() == field::tensor::name)
      tensor.name = wire.bytes();
    else
      wire.skip();
  }
  return tensor;
}

TensorProto read_sparse_name(std::string_view bytes, const Wire& outer) {
  TensorProto tensor{"", bytes, true};
  Wire wire(bytes, "SparseTensorProto", outer.model(), outer.depth() + 1);
  while (wire.next()) {
    if (wire.field() == field::sparse_tensor::values)
      tensor.name = read_tensor_name(wire.bytes(), wire).name;
    else
      wire.skip();
  }
  return tensor;
}

Attribute read_attribute(Wire wire) {
  Attribute attribute;
  wire.model().charge(2 * sizeof(Attribute));
  while (wire.next()) {
    switch (wire.field()) {
      case field::attribute::name: attribute.name = wire.bytes(); break;
      case field::attribute::ref_attr_name: attribute.reference = wire.bytes(); break;
      case field::attribute::type: attribute.type = static_cast<Attribute::Type>(wire.integer()); break;
      case field::attribute::f: attribute.real = wire.real32(); break;
      case field::attribute::i: attribute.integer = wire.integer(); break;
      case field::attribute::s: attribute.text = wire.bytes(); break;
      case field::attribute::t: attribute.tensor = read_tensor_name(wire.bytes(), wire); break;
      case field::attribute::sparse: attribute.tensor = read_sparse_name(wire.bytes(), wire); break;
      case field::attribute::g:
        wire.model().charge(sizeof(Graph) + 64);
        attribute.graph = std::make_shared<const Graph>(read_graph(wire.message("GraphProto")));
        break;
      case field::attribute::tp: {
        auto declared = std::make_shared<ValueInfo>();
        wire.model().charge(2 * sizeof(ValueInfo));
        read_type(wire.message("TypeProto"), *declared);
        attribute.declared = std::move(declared);
        break;
      }
      case field::attribute::floats: wire.append_reals(attribute.reals); break;
      case field::attribute::ints: wire.append_integers(attribute.integers); break;
      case field::attribute::strings:
        wire.model().charge(2 * sizeof(std::string_view));
        attribute.texts.push_back(wire.bytes());
        break;
      default: wire.skip();
    }
  }
  if (attribute.type == Attribute::Type::graph && !attribute.graph)
    wire.fail("'{}' says it is a graph and has none", printable(attribute.name));
  return attribute;
}

std::string_view plain_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

Node read_node(Wire wire) {
  Node node;
  wire.model().charge(2 * sizeof(Node));
  while (wire.next()) {
    switch (wire.field()) {
      case field::node::input:
      case field::node::output: {
        wire.model().charge(2 * sizeof(std::string_view));
        auto& list = wire.field() == field::node::input ? node.inputs : node.outputs;
        list.push_back(wire.bytes());
        break;
      }
      case field::node::name: node.name = wire.bytes(); break;
      case field::node::op_type: node.op = wire.bytes(); break;
      case field::node::domain: node.domain = plain_domain(wire.bytes()); break;
      case field::node::overload: node.overload = wire.bytes(); break;
      case field::node::attribute: node.attributes.push_back(read_attribute(wire.message("AttributeProto"))); break;
      case field::node::doc:
        if (const std::string_view text = wire.bytes(); node.location.empty()) node.location = script_line_in(text);
        break;
      case field::node::metadata:
        if (const auto [key, text] = read_entry(wire.message("metadata_props")); key == kTorchStack)
          node.location = script_line_in(text);
        break;
      default: wire.skip();
    }
  }
  return node;
}

void read_tensor_type(Wire wire, ValueInfo& info) {
  while (wire.next()) {
    if (wire.field() == field::tensor_type::elem_type) {
      info.element = static_cast<int32_t>(wire.integer());
    } else if (wire.field() == field::tensor_type::shape) {
      info.ranked = true;
      Wire shape = wire.message("TensorShapeProto");
      while (shape.next()) {
        if (shape.field() != field::shape::dim) {
          shape.skip();
          continue;
        }
        Dimension dimension;
        Wire dim = shape.message("TensorShapeProto.Dimension");
        while (dim.next()) {
          switch (dim.field()) {
            case field::dimension::value: dimension.size = dim.integer(); break;
            case field::dimension::param: dimension.name = dim.bytes(); break;
            default: dim.skip();
          }
        }
        if (dimension.size < 0) dimension.size = -1;
        wire.model().charge(2 * sizeof(Dimension));
        info.dims.push_back(dimension);
      }
    } else {
      wire.skip();
    }
  }
}

std::pair<std::string_view, std::string_view> read_entry(Wire wire) {
  std::pair<std::string_view, std::string_view> entry;
  wire.model().charge(2 * sizeof(entry));
  while (wire.next()) {
    switch (wire.field()) {
      case field::entry::key: entry.first = wire.bytes(); break;
      case field::entry::value: entry.second = wire.bytes(); break;
      default: wire.skip();
    }
  }
  return entry;
}

/// The elements' type of a sequence or an optional of tensors, or of an optional sequence.
void read_elements_type(Wire wire, ValueInfo& info) {
  while (wire.next()) {
    if (wire.field() != field::sequence_type::elem_type) {
      wire.skip();
      continue;
    }
    Wire element = wire.message("TypeProto");
    while (element.next()) {
      if (element.field() == field::type::tensor)
        read_tensor_type(element.message("TypeProto.Tensor"), info);
      else if (element.field() == field::type::sequence && !info.of_sequence)
        info.of_sequence = true, read_elements_type(element.message("TypeProto.Sequence"), info);
      else
        element.skip();
    }
  }
}

void read_type(Wire type, ValueInfo& info) {
  while (type.next()) {
    switch (type.field()) {
      case field::type::tensor:
        info.kind = ValueInfo::Kind::tensor;
        read_tensor_type(type.message("TypeProto.Tensor"), info);
        break;
      case field::type::sequence:
        info.kind = ValueInfo::Kind::sequence, info.of_sequence = true;
        read_elements_type(type.message("TypeProto.Sequence"), info);
        break;
      case field::type::optional:
        info.kind = ValueInfo::Kind::optional;
        read_elements_type(type.message("TypeProto.Optional"), info);
        break;
      case field::type::map: info.kind = ValueInfo::Kind::map, type.skip(); break;
      case field::type::sparse_tensor: info.kind = ValueInfo::Kind::sparse, type.skip(); break;
      default: type.skip();
    }
  }
}

ValueInfo read_value_info(Wire wire) {
  ValueInfo info;
  wire.model().charge(2 * sizeof(ValueInfo));
  while (wire.next()) {
    if (wire.field() == field::value_info::name) {
      info.name = wire.bytes();
    } else if (wire.field() == field::value_info::type) {
      read_type(wire.message("TypeProto"), info);
    } else if (wire.field() == field::value_info::metadata) {
      const auto [key, value] = read_entry(wire.message("metadata_props"));
      if (key == kTorchKind) info.torch_kind = value;
    } else {
      wire.skip();
    }
  }
  return info;
}

Graph read_graph(Wire wire) {
  Graph graph;
  while (wire.next()) {
    switch (wire.field()) {
      case field::graph::node: graph.nodes.push_back(read_node(wire.message("NodeProto"))); break;
      case field::graph::name: graph.name = wire.bytes(); break;
      case field::graph::initializer: graph.initializers.push_back(read_tensor_name(wire.bytes(), wire)); break;
      case field::graph::sparse_initializer: graph.initializers.push_back(read_sparse_name(wire.bytes(), wire)); break;
      case field::graph::input: graph.inputs.push_back(read_value_info(wire.message("ValueInfoProto"))); break;
      case field::graph::output: graph.outputs.push_back(read_value_info(wire.message("ValueInfoProto"))); break;
      case field::graph::metadata: {
        const auto [key, value] = read_entry(wire.message("metadata_props"));
        if (key == kTorchSignature) graph.torch_signature = value;
        break;
      }
      case field::graph::value_info: graph.values.push_back(read_value_info(wire.message("ValueInfoProto"))); break;
      default: wire.skip();
    }
  }
  sort_nodes(graph.nodes);
  return graph;
}

OpsetImport read_opset(Wire wire) {
  OpsetImport opset;
  wire.model().charge(2 * sizeof(OpsetImport));
  while (wire.next()) {
    switch (wire.field()) {
      case field::opset::domain: opset.domain = plain_domain(wire.bytes()); break;
      case field::opset::version: opset.version = wire.integer(); break;
      default: wire.skip();
    }
  }
  return opset;
}

Function read_function(Wire wire) {
  Function function;
  wire.model().charge(2 * sizeof(Function));
  while (wire.next()) {
    switch (wire.field()) {
      case field::function::name: function.name = wire.bytes(); break;
      case field::function::domain: function.domain = plain_domain(wire.bytes()); break;
      case field::function::overload: function.overload = wire.bytes(); break;
      case field::function::input:
      case field::function::output: {
        wire.model().charge(2 * sizeof(std::string_view));
        auto& list = wire.field() == field::function::input ? function.inputs : function.outputs;
        list.push_back(wire.bytes());
        break;
      }
      case field::function::node: function.nodes.push_back(read_node(wire.message("NodeProto"))); break;
      case field::function::opset_import:
        function.opsets.push_back(read_opset(wire.message("OperatorSetIdProto")));
        break;
      case field::function::attribute_proto:
        function.defaults.push_back(read_attribute(wire.message("AttributeProto")));
        break;
      default: wire.skip();
    }
  }
  sort_nodes(function.nodes);
  return function;
}

}  // namespace

std::optional<DType> dtype_of(int32_t type) {
  switch (type) {
    case kFloat: return kF32;
    case kDouble: return kF64;
    case kFloat16: return kF16;
    case kBfloat16: return kBF16;
    case kInt8: return kI8;
    case kInt16: return kI16;
    case kInt32: return kI32;
    case kInt64: return kI64;
    case kUint8: return kU8;
    case kUint16: return kU16;
    case kUint32: return kU32;
    case kUint64: return kU64;
    case kBoolean: return kBool;
    case kComplex64: return kC64;
    case kText: return kString;
    default: return std::nullopt;
  }
}

int32_t type_of(DType dtype) {
  for (int32_t type = kFloat; type <= kBfloat16; ++type)
    if (dtype_of(type) == dtype) return type;
  return kUndefined;
}

std::string type_name(int32_t type) {
  static constexpr const char* kNames[] = {
      "UNDEFINED", "FLOAT",      "UINT8",      "INT8",         "UINT16",         "INT16",      "INT32",
      "INT64",     "STRING",     "BOOL",       "FLOAT16",      "DOUBLE",         "UINT32",     "UINT64",
      "COMPLEX64", "COMPLEX128", "BFLOAT16",   "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
      "UINT4",     "INT4",       "FLOAT4E2M1", "FLOAT8E8M0",   "UINT2",          "INT2"};
  if (type >= 0 && type < static_cast<int32_t>(std::size(kNames))) return kNames[type];
  return fmt::format("type {}", type);
}

const char* to_string(Attribute::Type type) {
  static constexpr const char* kNames[] = {"undefined", "float",         "int",  "string",  "tensor",
                                           "graph",     "floats",        "ints", "strings", "tensors",
                                           "graphs",    "sparse tensor", "other"};
  auto number = static_cast<size_t>(type);
  return number < std::size(kNames) ? kNames[number] : "other";
}

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate;
  return nullptr;
}

int64_t Model::opset(std::string_view domain) const {
  for (const OpsetImport& import : opsets)
    if (import.domain == domain) return import.version;
  return 0;
}

Model read_model(std::shared_ptr<ModelBytes> bytes, std::string directory) {
  Model model;
  model.bytes = bytes;
  model.directory = std::move(directory);
  Wire wire(bytes->bytes(), "ModelProto", *bytes);
  bool has_graph = false;
  while (wire.next()) {
    switch (wire.field()) {
      case field::model::ir_version: model.ir_version = wire.integer(); break;
      case field::model::producer_name: model.producer = wire.bytes(); break;
      case field::model::producer_version: model.producer_version = wire.bytes(); break;
      case field::model::opset_import: model.opsets.push_back(read_opset(wire.message("OperatorSetIdProto"))); break;
      case field::model::graph:
        if (has_graph) wire.fail("has two graphs");
        model.graph = read_graph(wire.message("GraphProto"));
        has_graph = true;
        break;
      case field::model::functions: model.functions.push_back(read_function(wire.message("FunctionProto"))); break;
      case field::model::metadata: model.metadata.push_back(read_entry(wire.message("metadata_props"))); break;
      default: wire.skip();
    }
  }
  if (!has_graph) fail(ErrorKind::invalid_model, bytes->name(), "is no ONNX model: it has no graph");
  return model;
}

Model read_model(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  return read_model(ModelBytes::open(path), directory.empty() ? "." : directory);
}

}  // namespace cairn::onnx
