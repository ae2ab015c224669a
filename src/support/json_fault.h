// Where a text that people write is no JSON.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

/// "line 2, column 7: ..." for a text that cannot be read as JSON, empty for one that can. `comments`: // and /* are taken.
std::string json_fault(std::string_view text, bool comments = false);

}  // namespace cairn
