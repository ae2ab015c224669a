// How each operator is written as nodes of ONNX.
#pragma once

#include <span>

#include "export/graph.h"

namespace cairn::onnx_export {

/// One node that is written.
struct Context {
  const Node& node;
  Graph& graph;
  bool first = false;  // an element-wise node of images in ONNX's order

  AttributeView attr() const { return node.attr(); }
  const Value* value(size_t i) const { return node.inputs[i]; }
  const Type& type() const { return node.result()->type; }
  size_t rank(size_t i = 0) const { return node.inputs[i]->type.shape.rank(); }
  Name in(size_t i) const;
  /// The input as a vector or number of i64.
  Name i64(size_t i) const;
  void out(Name name, size_t i = 0) const;
  Name one(const char* op, std::vector<Name> inputs, const Settings& settings = {}) const {
    return graph.one(op, std::move(inputs), settings);
  }
  Name number(double x) const { return graph.number(x, node.inputs[0]->type.dtype); }
  Name cast(const Name& name, DType dtype) const;
};

struct Row {
  std::string_view op;
  void (*write)(const Context& c);
  const char* same = nullptr;                // the operator of ONNX with the same inputs, without attributes
  bool (*fits)(const Node& node) = nullptr;  // none: always
};

/// The row that can write the node, or null.
const Row* row_for(const Node& node);
/// Whether the node, of images or volumes, is best written on channels first.
bool takes_channels_first(const Node& node, const Graph& graph);

std::span<const Row> element_rows();
std::span<const Row> array_rows();
std::span<const Row> window_rows();
std::span<const Row> control_rows();
std::span<const Row> random_rows();
std::span<const Row> tree_rows();

/// Writes the nodes of a block whose parameters have these names in the graph; returns the names of its results.
std::vector<Name> write_block(Graph& graph, const Block& block, const std::vector<Name>& params);

}  // namespace cairn::onnx_export
