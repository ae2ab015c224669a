// An ONNX ModelProto as plain structs whose texts and small attributes are views into the file. Tensors are decoded on
// request; external data is opened only below the model's own directory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/wire.h"
#include "ir/tensor.h"

namespace cairn::onnx {

/// TensorProto.DataType; other numbers may occur.
enum DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kText = 8,
  kBoolean = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
};
/// The element type; nothing for types that Cairn does not have.
std::optional<DType> dtype_of(int32_t type);
/// Its inverse; kUndefined for types that ONNX does not have.
int32_t type_of(DType dtype);
/// "FLOAT"; "type 77" for a number without a name.
std::string type_name(int32_t type);

struct TensorProto {
  std::string_view name;
  std::string_view bytes;  // the message
  bool sparse = false;     // it is a SparseTensorProto
};

struct Graph;
struct ValueInfo;

struct Attribute {
  enum class Type : int32_t {
    none = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse = 11,
    other = 12
  };
  std::string_view name;
  std::string_view reference;  // inside a function: the name of the function's attribute that gives the value
  Type type = Type::none;
  float real = 0;
  int64_t integer = 0;
  std::string_view text;
  TensorProto tensor;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const ValueInfo> declared;  // a type, without a name
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
};
const char* to_string(Attribute::Type type);

struct Node {
  std::string_view name;
  std::string_view op;
  std::string_view domain;  // "" and "ai.onnx" mean the same; stored as ""
  std::string_view overload;
  std::vector<std::string_view> inputs;  // "": optional input left out
  std::vector<std::string_view> outputs;
  std::vector<Attribute> attributes;
  std::string location;  // "train.py:41" where torch's exporter tells it

  const Attribute* find(std::string_view attribute) const;
};

struct Dimension {
  int64_t size = -1;
  std::string_view name;
};

/// The declared type of a value; `kind` tells if it is not a tensor.
struct ValueInfo {
  enum class Kind { none, tensor, sequence, optional, map, sparse } kind = Kind::none;
  std::string_view name;
  bool of_sequence = false;  // it is a sequence, or an optional one; what follows describes its elements
  int32_t element = kUndefined;
  bool ranked = false;
  std::vector<Dimension> dims;
  std::string_view torch_kind;  // the kind that torch's exporter gives for an initialiser: "PARAMETER", "BUFFER", ...
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> values;
  std::string_view torch_signature;  // of torch's exporter: a line for each parameter that the network had
};

struct OpsetImport {
  std::string_view domain;
  int64_t version = 0;
};

struct Function {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
  std::vector<Attribute> defaults;
};

struct Model {
  std::shared_ptr<ModelBytes> bytes;
  std::string directory;  // external data lies below it
  int64_t ir_version = 0;
  std::string_view producer;
  std::string_view producer_version;
  std::vector<OpsetImport> opsets;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  /// Data files opened so far, by location.
  using Files = std::map<std::string, std::shared_ptr<ModelBytes>>;
  std::shared_ptr<Files> external_files = std::make_shared<Files>();

  /// Version of a domain's operator set, 0 when it is not imported.
  int64_t opset(std::string_view domain) const;
};

/// Throws Error.
Model read_model(const std::string& path);
/// From bytes in memory; external data is refused unless `directory` is given.
Model read_model(std::shared_ptr<ModelBytes> bytes, std::string directory);

/// TensorProto.DataType of the elements.
int32_t element_type(const TensorProto& tensor, const Model& model);
/// The dense elements (those of narrow types by what carries them, narrow.h): a view of the file if they are dense and aligned there, else a copy, counted against the file's
/// limit. Throws Error invalid_model, unsupported; `where` starts the message.
Tensor read_tensor(const TensorProto& tensor, const Model& model, const std::string& where);

}  // namespace cairn::onnx
