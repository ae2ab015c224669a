// Replacements that an op refused, or whose type differs from that of the replaced value. The original nodes are valid
// and are kept; the rule or pass has a bug, and tests require that there are none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Records that `by`, a rule or pass, could not replace the node. An Error `cancelled` is thrown again instead.
void note_refusal(std::string_view by, const Node& node, const Error& fault);
/// The refusals of this thread since the last call, as "rule: op: what was refused". If CAIRN_REFUSED_REPLACEMENTS
/// names a file, also appends a line for each to it.
std::vector<std::string> take_refusals();

}  // namespace cairn
