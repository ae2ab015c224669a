// Records which result of its source node a value is. When one source node becomes several IR nodes, each node that
// produces one of its results gets an additional source (a mark): the same name, and as op the source op with the
// result's number, "Split:1". Sources are preserved by passes, files and the text form, and so are the marks.
#pragma once

#include <functional>
#include <optional>
#include <unordered_set>

#include "ir/module.h"

namespace cairn {

/// "Split:1" marks result 0 of an IR node as result 1 of the source node; "Unique:1@2" marks result 2 of an IR node.
struct ResultMark {
  std::string op;
  size_t index = 0, own = 0;  // which result of the source node, of the IR node
};
std::optional<ResultMark> result_mark(const Source& source);

/// Marks the producers of the source node's results, unless these are the results of one IR node in the same order.
/// `is_new` tells whether a value was made for the source node; `add` gives the id of a source with this op.
void mark_results(const std::vector<Value*>& results, const std::string& op,
                  const std::function<bool(const Value*)>& is_new,
                  const std::function<SourceId(const std::string& op)>& add);

/// Moves the marks of `from`, a node with several results, to the nodes that replace it; `values` replace its results.
void carry_marks(Module& module, const Node& from, const std::vector<Value*>& values,
                 const std::function<bool(const Value*)>& is_new);
/// The given sources without the marks.
std::vector<SourceId> plain_sources(const Module& module, const std::vector<SourceId>& sources);

/// Names of source nodes that have marks. A node with such a source name but without a mark is an intermediate one.
std::unordered_set<std::string> marked_sources(const Module& module);

}  // namespace cairn
