// Replacements that an op refused, or that had another type than what they replace. The nodes were valid, so the rule or pass is
// at fault: they stay as they are, and tests demand that there is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Notes that `by`, a rule or pass, could not replace the node. A cancelled run is no refusal: it is thrown again.
void note_refusal(std::string_view by, const Node& node, const Error& fault);
/// "rule: op: what was refused", of this thread since the last call. CAIRN_REFUSED_REPLACEMENTS names a file to which they are
/// added, a line each.
std::vector<std::string> take_refusals();

}  // namespace cairn
