// Which result of its source node a value is. Where one source node became several nodes of ours, a node that makes a result
// carries one more source behind the node's own: the same name, and the op with the result's number, "Split:1". Sources live
// through passes, files and text, so the number does as well.
#pragma once

#include <functional>
#include <optional>
#include <unordered_set>

#include "ir/module.h"

namespace cairn {

/// "Split:1": result 1 of the source node. "Unique:1@2": it is result 2 of our node.
struct ResultMark {
  std::string op;
  size_t index = 0, own = 0;
};
std::optional<ResultMark> result_mark(const Source& source);

/// Marks the producers of the source node's results, unless all of them are one node's own results in their order.
/// `is_new` tells whether the source node made a value; `add` gives the id of a source with this op.
void mark_results(const std::vector<Value*>& results, const std::string& op,
                  const std::function<bool(const Value*)>& is_new,
                  const std::function<SourceId(const std::string& op)>& add);

/// The new nodes that stand for `from`, which had several results, are marked as it was: `values` are its results now.
void carry_marks(Module& module, const Node& from, const std::vector<Value*>& values,
                 const std::function<bool(const Value*)>& is_new);
/// Without the marks.
std::vector<SourceId> plain_sources(const Module& module, const std::vector<SourceId>& sources);

/// Names of source nodes whose results are marked: what else carries such a name is a value in between.
std::unordered_set<std::string> marked_sources(const Module& module);

}  // namespace cairn
