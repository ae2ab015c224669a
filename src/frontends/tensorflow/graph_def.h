// TensorFlow's GraphDef as plain structs whose texts and attribute bytes are views into the file. Inputs are edges,
// which the reader resolves once (graph.h). Attributes and tensors are decoded on request; nothing here depends on the
// meaning of ops.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/wire.h"
#include "ir/tensor.h"

namespace cairn::tensorflow {

/// tensorflow.DataType; other numbers may occur.
enum DataType : int32_t {
  kDtInvalid = 0,
  kDtFloat = 1,
  kDtDouble = 2,
  kDtInt32 = 3,
  kDtUint8 = 4,
  kDtInt16 = 5,
  kDtInt8 = 6,
  kDtString = 7,
  kDtComplex64 = 8,
  kDtInt64 = 9,
  kDtBool = 10,
  kDtQint8 = 11,
  kDtQuint8 = 12,
  kDtQint32 = 13,
  kDtBfloat16 = 14,
  kDtQint16 = 15,
  kDtQuint16 = 16,
  kDtUint16 = 17,
  kDtComplex128 = 18,
  kDtHalf = 19,
  kDtResource = 20,
  kDtVariant = 21,
  kDtUint32 = 22,
  kDtUint64 = 23,
  kDtRef = 100,  // added to a type: reference to a variable of that type
};

/// "DT_FLOAT"; "DT_77" for a number that TensorFlow 2.15 does not know.
std::string to_string(DataType type);
/// The element type of a tensor; nothing for resource, variant and types that Cairn does not have.
std::optional<DType> dtype_of(DataType type);

/// TensorShapeProto: -1 is an unknown dim.
struct ShapeProto {
  bool unknown_rank = false;
  std::vector<int64_t> dims;
};

/// A named AttrValue. With a payload, `value` is only the head of a TensorProto (dtype and shape) and `payload` its
/// content, so that weights are never copied.
struct Attr {
  std::string_view name;
  std::string_view value;
  std::string_view payload = {};
};

struct NameAttrList {
  std::string_view name;
  std::vector<Attr> attrs;
};

/// A decoded AttrValue. A list fills one of the vectors (more only in a malformed file).
struct AttrValue {
  enum class Kind { none, text, integer, real, boolean, type, shape, tensor, list, function, placeholder };
  Kind kind = Kind::none;
  std::string_view text;  // also placeholder
  int64_t integer = 0;    // also boolean and type
  float real = 0;
  ShapeProto shape;
  std::string_view tensor;   // a TensorProto
  std::string_view payload;  // its content, if it is separate
  NameAttrList function;
  std::vector<std::string_view> texts;
  std::vector<int64_t> integers;  // also booleans and types
  std::vector<float> reals;
  std::vector<ShapeProto> shapes;
  std::vector<std::string_view> tensors;
  std::vector<NameAttrList> functions;
};
const char* to_string(AttrValue::Kind kind);

/// What an input reads: result `port` of a node of the same list; kControl: nothing, the node runs before.
struct Edge {
  static constexpr int32_t kControl = -1;
  uint32_t node = 0;  // index in the list
  int32_t port = 0;

  bool is_control() const { return port == kControl; }
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

struct Node {
  std::string_view name;
  std::string_view op;
  std::string_view device;
  std::vector<Edge> inputs;
  std::vector<Attr> attrs;
  std::string_view result = {};    // in a body, where the op has one result: what the file calls it
  std::string_view location = {};  // "train.py:41" where the file or one beside it tells it

  const Attr* find(std::string_view attr_name) const;
};

/// An argument or result of a function: a tensor of `type`, or of the type that the named attributes give.
struct FunctionArg {
  std::string_view name;
  DataType type = kDtInvalid;
  std::string_view type_attr = {};
  std::string_view number_attr = {};
  std::string_view type_list_attr = {};
  Edge edge = {};  // for an argument: its `_Arg` in the body; for a result: its tensor
};

struct FunctionDef {
  std::string_view name;
  std::vector<FunctionArg> inputs;
  std::vector<FunctionArg> outputs;
  std::vector<Node> nodes;  // include an `_Arg` for each argument
  std::vector<std::pair<std::string_view, uint32_t>> control_returns;
  std::vector<Attr> attrs;
  std::string_view raw;        // the message as read; empty once changed
  bool graph_names = false;    // made by raise_control_flow: node names inside are unique in the whole graph
  std::optional<Error> fault;  // why the body's edges are incomplete

  /// Throws the fault, if there is one. Must be called before the body's edges are used.
  void check() const {
    if (fault) throw *fault;
  }
};

struct GraphDef {
  std::shared_ptr<ModelBytes> model;  // owns all texts and keeps the files of payloads alive
  std::vector<Node> nodes;
  std::vector<FunctionDef> functions;
  struct Origin {
    std::string_view name, op, location;
  };
  /// The nodes that an If or While made by raise_control_flow stands for, by its name.
  std::map<std::string_view, std::vector<Origin>> raised;
  int32_t producer = 0;
  int32_t min_consumer = 0;
};

/// Reads a GraphDef, binary or text (determined by the content). Throws Error; faults in a function's edges are stored
/// in its `fault`, since files contain many unused functions.
GraphDef read_graph_def(const std::string& path);
GraphDef read_graph_def(std::shared_ptr<ModelBytes> model, std::string_view bytes, int depth = 0);
/// Gives nodes the script lines that a GraphDebugInfo tells. Throws Error invalid_model.
void add_script_lines(GraphDef& graph, Wire debug_info);
/// The binary form, in pieces that point into the graph where it is large.
void write_graph_def(const GraphDef& graph, const std::string& path);
std::string encode(const GraphDef& graph);

/// Throws Error invalid_model.
AttrValue decode(const Attr& attr, ModelBytes& model);
/// The value of `node`'s attribute in that kind; nothing when it is absent. Throws Error when it has another kind.
AttrValue attr_of(const Node& node, std::string_view name, AttrValue::Kind kind, ModelBytes& model);

ShapeProto read_shape(Wire wire);
/// The dense elements of a TensorProto: a view if they are dense and aligned in the file, else a copy, counted against
/// the file's limit. Throws Error invalid_model, unsupported; `where` starts the message.
Tensor read_tensor(const AttrValue& value, const std::shared_ptr<ModelBytes>& model, const std::string& where);

/// Encoded AttrValue messages.
std::string attr_type(DataType type);
std::string attr_types(const std::vector<DataType>& types);
std::string attr_shapes(const std::vector<ShapeProto>& shapes);
/// A dense tensor attribute; `content` must outlive the graph.
Attr attr_tensor(ModelBytes& model, std::string_view name, DataType type, const std::vector<int64_t>& dims,
                 std::string_view content);
/// The same for texts, which are copied.
Attr attr_texts(ModelBytes& model, std::string_view name, const std::vector<int64_t>& dims,
                const std::vector<std::string>& texts);
/// A function name without attributes.
std::string attr_function(std::string_view name);
std::string attr_functions(const std::vector<std::string_view>& names);

/// "node" and 1 of "node:1" (0 when no number is given); index Edge::kControl for a control input "^node".
struct TensorName {
  std::string_view node;
  int index = 0;
};
/// For names from outside the graph. Throws Error invalid_model, naming `where`, for an index that is not a number.
TensorName parse_tensor_name(std::string_view text, const std::string& where);

}  // namespace cairn::tensorflow
