#include "support/json_fault.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "support/error.h"

namespace cairn {

std::string json_fault(std::string_view text, bool comments) {
  try {
    [[maybe_unused]] const auto json = nlohmann::json::parse(text, nullptr, true, comments);
    return "";
  } catch (const nlohmann::json::exception& error) {
    const std::string whole = error.what();  // "[...] parse error at line 2, column 7: syntax error ..."
    const size_t at = whole.find("at line ");
    return printable(at == std::string::npos ? whole : whole.substr(at + 3));
  }
}

}  // namespace cairn
