// The graph that is written: nodes, initialisers, and where each value of the module stands in it.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "export/onnx.h"

namespace cairn::onnx_export {

using Name = std::string;
/// A graph within an attribute, as a message.
struct Subgraph {
  std::string bytes;
};
using Setting = std::variant<int64_t, float, std::string, std::vector<int64_t>, Tensor, Subgraph>;
using Settings = std::vector<std::pair<const char*, Setting>>;
using Port = std::pair<Name, const Type*>;

/// Images stand in ONNX with their channels behind the batch. A value may have both forms; what makes one of them is added
/// when it is asked for.
class Graph {
 public:
  explicit Graph(const Module& module);
  /// One within a node of the graph around it, whose names it sees.
  explicit Graph(Graph& around);

  /// Names of nodes made from now on.
  void begin(const Node& node);
  /// Operators of ai.onnx.ml are named "ai.onnx.ml:LabelEncoder".
  std::vector<Name> add(const char* op, std::vector<Name> inputs, const Settings& settings = {}, size_t results = 1);
  Name one(const char* op, std::vector<Name> inputs, const Settings& settings = {}) {
    return add(op, std::move(inputs), settings)[0];
  }
  Name constant(const Tensor& value);
  Name ints(const std::vector<int64_t>& values) { return constant(Tensor::of_i64(values)); }
  Name number(double value, DType dtype);

  Name plain(const Value* value);
  Name channels_first(const Value* value);
  bool only_channels_first(const Value* value) const;
  void set(const Value* value, Name name) { places_[value].plain = std::move(name); }
  void set_channels_first(const Value* value, Name name) { places_[value].first = std::move(name); }

  /// A name that no other value of the model has.
  Name unique(const std::string& base);
  /// A graph within; its results are new names.
  Subgraph within(const std::vector<Port>& inputs, const std::vector<Port>& results);
  /// The whole model.
  OnnxModel model(const std::string& data_file, bool external);

 private:
  struct Written {
    std::string domain, op, name;
    std::vector<Name> inputs, outputs;
    std::string settings;  // as a message's fields
  };
  struct Place {
    Name plain, first;
  };
  std::string node_bytes() const;
  void name_output(const Value* value, const Name& wanted);
  std::vector<std::pair<const Value*, Name>> results() const;
  std::string graph_bytes(const std::string& data_file, bool external, std::vector<Tensor>& data);

  const Module& module_;
  Graph* around_ = nullptr;
  std::string base_ = "node", node_name_;
  std::vector<Written> nodes_;
  std::vector<std::pair<Name, Tensor>> constants_;  // of the whole model in the outermost graph
  std::unordered_map<const Value*, Place> places_;
  struct Whole {
    std::unordered_set<std::string> names;
    bool learning = false;  // whether operators of ai.onnx.ml are used
  };
  std::shared_ptr<Whole> whole_;
};

/// The permutation of a tensor of so many dims that puts the last dim second, and its inverse.
std::vector<int64_t> to_channels_first(size_t rank);
std::vector<int64_t> to_channels_last(size_t rank);

}  // namespace cairn::onnx_export
