// Finds the first syntax error in JSON that people write.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

/// "line 2, column 7: ..." when the text is not valid JSON, else empty. `comments`: // and /* comments are allowed.
std::string json_fault(std::string_view text, bool comments = false);

}  // namespace cairn
