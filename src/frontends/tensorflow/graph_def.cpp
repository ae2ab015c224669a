#include "frontends/tensorflow/graph_def.h"

#include <algorithm>
#include <charconv>

#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/text_schema.h"

namespace cairn::tensorflow {
namespace {

/// A map entry as an attribute: key and the bytes of the value.
Attr read_attr(Wire entry) {
  Attr attr;
  while (entry.next()) {
    switch (entry.field()) {
      case field::map_entry::key: attr.name = entry.bytes(); break;
      case field::map_entry::value: attr.value = entry.bytes(); break;
      default: entry.skip();
    }
  }
  return attr;
}

std::pair<std::string_view, std::string_view> read_text_entry(Wire entry) {
  Attr attr = read_attr(entry);
  return {attr.name, attr.value};
}

Node read_node(Wire wire, InputNames& inputs) {
  Node node;
  std::vector<std::string_view>& names = inputs.emplace_back();
  wire.model().charge(2 * sizeof(Node));
  while (wire.next()) {
    switch (wire.field()) {
      case field::node_def::name: node.name = wire.bytes(); break;
      case field::node_def::op: node.op = wire.bytes(); break;
      case field::node_def::input:
        wire.model().charge(2 * sizeof(std::string_view));
        names.push_back(wire.bytes());
        break;
      case field::node_def::device: node.device = wire.bytes(); break;
      case field::node_def::attr:
        wire.model().charge(2 * sizeof(Attr));
        node.attrs.push_back(read_attr(wire.message("NodeDef.attr")));
        break;
      default: wire.skip();
    }
  }
  return node;
}

FunctionArg read_arg(Wire wire) {
  FunctionArg arg;
  wire.model().charge(2 * sizeof(FunctionArg));
  while (wire.next()) {
    switch (wire.field()) {
      case field::arg_def::name: arg.name = wire.bytes(); break;
      case field::arg_def::type: arg.type = static_cast<DataType>(wire.integer()); break;
      case field::arg_def::type_attr: arg.type_attr = wire.bytes(); break;
      case field::arg_def::number_attr: arg.number_attr = wire.bytes(); break;
      case field::arg_def::type_list_attr: arg.type_list_attr = wire.bytes(); break;
      default: wire.skip();
    }
  }
  return arg;
}

void read_signature(Wire wire, FunctionDef& function) {
  while (wire.next()) {
    switch (wire.field()) {
      case field::op_def::name: function.name = wire.bytes(); break;
      case field::op_def::input_arg: function.inputs.push_back(read_arg(wire.message("OpDef.input_arg"))); break;
      case field::op_def::output_arg: function.outputs.push_back(read_arg(wire.message("OpDef.output_arg"))); break;
      default: wire.skip();
    }
  }
}

FunctionDef read_function(std::string_view bytes, const Wire& library, BodyNames& names) {
  FunctionDef function;
  function.raw = bytes;
  library.model().charge(2 * sizeof(FunctionDef));
  Wire wire(bytes, "FunctionDef", library.model(), library.depth() + 1);
  constexpr size_t kPairBytes = 4 * sizeof(std::string_view);
  while (wire.next()) {
    switch (wire.field()) {
      case field::function_def::signature: read_signature(wire.message("OpDef"), function); break;
      case field::function_def::node: function.nodes.push_back(read_node(wire.message("NodeDef"), names.inputs)); break;
      case field::function_def::ret:
        wire.model().charge(kPairBytes);
        names.returns.push_back(read_text_entry(wire.message("FunctionDef.ret")));
        break;
      case field::function_def::control_ret:
        wire.model().charge(kPairBytes);
        names.control_returns.push_back(read_text_entry(wire.message("FunctionDef.control_ret")));
        break;
      case field::function_def::attr:
        wire.model().charge(2 * sizeof(Attr));
        function.attrs.push_back(read_attr(wire.message("FunctionDef.attr")));
        break;
      default: wire.skip();
    }
  }
  return function;
}

NameAttrList read_name_attrs(Wire wire) {
  NameAttrList list;
  while (wire.next()) {
    switch (wire.field()) {
      case field::name_attr_list::name: list.name = wire.bytes(); break;
      case field::name_attr_list::attr:
        wire.model().charge(2 * sizeof(Attr));
        list.attrs.push_back(read_attr(wire.message("NameAttrList.attr")));
        break;
      default: wire.skip();
    }
  }
  return list;
}

void read_list(Wire wire, AttrValue& value) {
  constexpr size_t kElementBytes = 64;
  while (wire.next()) {
    wire.model().charge(kElementBytes);
    switch (wire.field()) {
      case field::list_value::s: value.texts.push_back(wire.bytes()); break;
      case field::list_value::i:
      case field::list_value::b:
      case field::list_value::type: wire.append_integers(value.integers); break;
      case field::list_value::f: wire.append_reals(value.reals); break;
      case field::list_value::shape: value.shapes.push_back(read_shape(wire.message("TensorShapeProto"))); break;
      case field::list_value::tensor: value.tensors.push_back(wire.bytes()); break;
      case field::list_value::func: value.functions.push_back(read_name_attrs(wire.message("NameAttrList"))); break;
      default: wire.skip();
    }
  }
}

}  // namespace

std::string to_string(DataType type) {
  static constexpr const char* kNames[] = {"DT_INVALID",  "DT_FLOAT",   "DT_DOUBLE", "DT_INT32",      "DT_UINT8",
                                           "DT_INT16",    "DT_INT8",    "DT_STRING", "DT_COMPLEX64",  "DT_INT64",
                                           "DT_BOOL",     "DT_QINT8",   "DT_QUINT8", "DT_QINT32",     "DT_BFLOAT16",
                                           "DT_QINT16",   "DT_QUINT16", "DT_UINT16", "DT_COMPLEX128", "DT_HALF",
                                           "DT_RESOURCE", "DT_VARIANT", "DT_UINT32", "DT_UINT64"};
  int32_t number = type;
  std::string suffix;
  if (number > kDtRef && number < kDtRef + 24) {
    number -= kDtRef;
    suffix = "_REF";
  }
  if (number >= 0 && number < static_cast<int32_t>(std::size(kNames))) return kNames[number] + suffix;
  return fmt::format("DT_{}", static_cast<int32_t>(type));
}

std::optional<DType> dtype_of(DataType type) {
  switch (type) {
    case kDtFloat: return kF32;
    case kDtDouble: return kF64;
    case kDtHalf: return kF16;
    case kDtBfloat16: return kBF16;
    case kDtInt8: return kI8;
    case kDtInt16: return kI16;
    case kDtInt32: return kI32;
    case kDtInt64: return kI64;
    case kDtUint8: return kU8;
    case kDtUint16: return kU16;
    case kDtUint32: return kU32;
    case kDtUint64: return kU64;
    case kDtBool: return kBool;
    case kDtComplex64: return kC64;
    case kDtComplex128: return DType{DType::Kind::complex_float, 128};
    case kDtString: return kString;
    default: return std::nullopt;
  }
}

const char* to_string(AttrValue::Kind kind) {
  static constexpr const char* kNames[] = {"nothing", "string", "int",  "float", "bool",       "type",
                                           "shape",   "tensor", "list", "func",  "placeholder"};
  return kNames[static_cast<int>(kind)];
}

const Attr* Node::find(std::string_view attr_name) const {
  for (const Attr& attr : attrs)
    if (attr.name == attr_name) return &attr;
  return nullptr;
}

GraphDef read_graph_def(std::shared_ptr<ModelBytes> model, std::string_view bytes, int depth) {
  GraphDef graph;
  graph.model = model;
  InputNames inputs;
  std::vector<BodyNames> bodies;
  std::optional<Wire> debug_info;
  Wire wire(bytes, "GraphDef", *model, depth);
  while (wire.next()) {
    switch (wire.field()) {
      case field::graph_def::node: graph.nodes.push_back(read_node(wire.message("NodeDef"), inputs)); break;
      case field::graph_def::library: {
        Wire library = wire.message("FunctionDefLibrary");
        while (library.next()) {
          if (library.field() == field::library::function)
            graph.functions.push_back(read_function(library.bytes(), library, bodies.emplace_back()));
          else
            library.skip();
        }
        break;
      }
      case field::graph_def::versions: {
        Wire versions = wire.message("VersionDef");
        while (versions.next()) {
          switch (versions.field()) {
            case field::version_def::producer: graph.producer = static_cast<int32_t>(versions.integer()); break;
            case field::version_def::min_consumer: graph.min_consumer = static_cast<int32_t>(versions.integer()); break;
            default: versions.skip();
          }
        }
        break;
      }
      case field::graph_def::debug_info: debug_info.emplace(wire.message("GraphDebugInfo")); break;
      default: wire.skip();
    }
  }
  if (debug_info) add_script_lines(graph, *debug_info);
  connect(graph.nodes, inputs, model->name());
  const Library library(graph);
  for (size_t i = 0; i < bodies.size(); ++i) connect_body(graph.functions[i], bodies[i], library);
  return graph;
}

GraphDef read_graph_def(const std::string& path) {
  std::shared_ptr<ModelBytes> model = ModelBytes::open(path);
  std::string_view bytes = model->bytes();
  if (looks_like_text(bytes, kGraphDefText)) bytes = model->keep(text_to_wire(bytes, kGraphDefText, path));
  GraphDef graph = read_graph_def(model, bytes);
  if (graph.nodes.empty()) fail(ErrorKind::invalid_model, path, "holds no TensorFlow node");
  return graph;
}

ShapeProto read_shape(Wire wire) {
  ShapeProto shape;
  while (wire.next()) {
    switch (wire.field()) {
      case field::tensor_shape::dim: {
        Wire dim = wire.message("TensorShapeProto.Dim");
        int64_t size = 0;
        while (dim.next()) {
          if (dim.field() == field::dim::size)
            size = dim.integer();
          else
            dim.skip();
        }
        if (size < -1) wire.fail("has dimension {}, expected -1 or more", size);
        wire.model().charge(2 * sizeof(size));
        shape.dims.push_back(size);
        break;
      }
      case field::tensor_shape::unknown_rank: shape.unknown_rank = wire.integer() != 0; break;
      default: wire.skip();
    }
  }
  return shape;
}

AttrValue decode(const Attr& attr, ModelBytes& model) {
  AttrValue value;
  if (!attr.payload.empty()) {
    value.kind = AttrValue::Kind::tensor;
    value.tensor = attr.value;
    value.payload = attr.payload;
    return value;
  }
  using Kind = AttrValue::Kind;
  Wire wire(attr.value, "AttrValue", model);
  while (wire.next()) {
    switch (wire.field()) {
      case field::attr_value::list:
        value.kind = Kind::list;
        read_list(wire.message("AttrValue.ListValue"), value);
        break;
      case field::attr_value::s: value.kind = Kind::text, value.text = wire.bytes(); break;
      case field::attr_value::i: value.kind = Kind::integer, value.integer = wire.integer(); break;
      case field::attr_value::f: value.kind = Kind::real, value.real = wire.real32(); break;
      case field::attr_value::b: value.kind = Kind::boolean, value.integer = wire.integer() != 0; break;
      case field::attr_value::type: value.kind = Kind::type, value.integer = wire.integer(); break;
      case field::attr_value::shape:
        value.kind = Kind::shape, value.shape = read_shape(wire.message("TensorShapeProto"));
        break;
      case field::attr_value::tensor: value.kind = Kind::tensor, value.tensor = wire.bytes(); break;
      case field::attr_value::placeholder: value.kind = Kind::placeholder, value.text = wire.bytes(); break;
      case field::attr_value::func:
        value.kind = Kind::function, value.function = read_name_attrs(wire.message("NameAttrList"));
        break;
      default: wire.skip();
    }
  }
  return value;
}

AttrValue attr_of(const Node& node, std::string_view name, AttrValue::Kind kind, ModelBytes& model) {
  const Attr* attr = node.find(name);
  if (attr == nullptr) return {};
  AttrValue value = decode(*attr, model);
  if (value.kind != kind)
    fail(ErrorKind::invalid_model, printable(node.name), "attribute {} is of kind {}, expected {}", printable(name),
         to_string(value.kind), to_string(kind));
  return value;
}

TensorName parse_tensor_name(std::string_view text, const std::string& where) {
  if (text.starts_with('^')) return {text.substr(1), Edge::kControl};
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, 0};
  TensorName name{text.substr(0, colon), 0};
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + colon + 1, end, name.index);
  if (error != std::errc() || stop != end || name.index < 0)
    fail(ErrorKind::invalid_model, printable(where), "'{}' is no tensor name, expected node:number", printable(text));
  return name;
}

}  // namespace cairn::tensorflow
