#include "support/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "support/utf8.h"

namespace cairn {

std::string clean(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t size = first < 0x20 || first == 0x7f ? 0 : utf8_size(text);
    if (size == 0)
      result += fmt::format("\\x{:02x}", first);
    else
      result += text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return result;
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string result = clean(text.substr(0, kLongest));
  if (text.size() > kLongest) result += "...";
  return result;
}

void check_failed(const char* file, int line, const char* condition, const std::string& facts) {
  std::fprintf(stderr, "cairn: internal error at %s:%d: %s does not hold; %s\n", file, line, condition, facts.c_str());
  std::abort();
}

}  // namespace cairn
