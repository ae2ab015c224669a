// Chains of steps over the same rows: all steps on a slice of rows that stays in the cache, then the next slice.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

/// The number of leading axes that the node leaves alone while it combines elements along others; nothing for other nodes.
std::optional<size_t> row_axes(const Node& node);
/// Whether each row of the node's result, by the first `axes` axes, depends on that row of its operands only, in a tensor
/// whose rows are those of `like`.
bool goes_by_rows(const Node& node, const Type& like, size_t axes);

Refusal refuses_row_slices(const Group& group);
std::unique_ptr<Step> make_row_slices(const Group& group, MakeContext& context);

}  // namespace cairn
