// Nodes of a graph behind those that make their inputs.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "frontends/onnx/model.h"

namespace cairn::onnx {

/// The names from outside that a graph reads, also within graphs inside of it.
void collect_captures(const Graph& graph, std::set<std::string_view>& free);

/// Puts nodes behind those that make what they read, and else leaves their order: the format demands it, but tools that add casts at the
/// end and runtimes that read such files do not. Changes nothing where nodes form a circle.
void sort_nodes(std::vector<Node>& nodes);

}  // namespace cairn::onnx
