// Imports the subgraphs of a node, which may use all outer names.
#pragma once

#include "frontends/onnx/importer.h"

namespace cairn::onnx {

/// The outer values that some subgraphs name.
class Outer {
 public:
  Outer(OpContext& c, std::initializer_list<const Graph*> graphs) : c_(c) {
    std::set<std::string_view> names;
    for (const Graph* graph : graphs) names.merge(c.importer().captures(*graph));
    for (std::string_view name : names) {
      auto found = c.names().values.find(name);
      if (found == c.names().values.end())
        fail(ErrorKind::invalid_model, "", "the subgraph uses '{}', which nothing makes before it", printable(name));
      if (found->second == nullptr) throw AlreadyReported();
      if (const int32_t type = c.importer().narrow_type(found->second))
        c.refuse("elements of {} inside a subgraph are not supported", type_name(type));
      names_.push_back(name);
      values_.push_back(found->second);
    }
    for (size_t i = 0; i < names_.size(); ++i)
      if (Value* given = c.importer().presence(values_[i]))
        optionals_.emplace_back(i, values_.size()), values_.push_back(given);
  }
  const std::vector<Value*>& values() const { return values_; }

  /// Imports a subgraph into a block where `inside` stands for the captured values and `given` for its own inputs.
  std::vector<Value*> run(const Graph& graph, Block& block, const std::vector<Value*>& inside,
                          const std::vector<Value*>& given) {
    Builder builder(block);
    Names names{{}, c_.names().frame, c_.name(), &builder};
    for (size_t i = 0; i < names_.size(); ++i) names.values[names_[i]] = inside[i];
    for (const auto& [value, given] : optionals_) c_.importer().mark_presence(inside[value], inside[given]);
    if (graph.inputs.size() != given.size())
      fail(ErrorKind::invalid_model, "", "the subgraph takes {} inputs, expected {}", graph.inputs.size(),
           given.size());
    for (size_t i = 0; i < given.size(); ++i) names.values[graph.inputs[i].name] = given[i];
    std::vector<std::string_view> outputs;
    for (const ValueInfo& output : graph.outputs) outputs.push_back(output.name);
    std::vector<Value*> results = c_.importer().import_graph(graph, names, outputs);
    for (const Value* result : results)
      if (result == nullptr) throw AlreadyReported();
    return results;
  }

 private:
  OpContext& c_;
  std::vector<std::string_view> names_;
  std::vector<Value*> values_;
  std::vector<std::pair<size_t, size_t>>
      optionals_;  // which of the values are optionals, and which says whether one is there
};

}  // namespace cairn::onnx
