#include "support/process_state.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace cairn {

bool ProcessState::goes_on() const {
  constexpr uint32_t kExiting = 4;  // PF_EXITING of Linux
  return state != 'Z' && !(flags & kExiting);
}

std::optional<ProcessState> process_state(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_ends = text.rfind(')');  // a name may hold blanks and parentheses
  if (name_ends == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_ends + 1));
  ProcessState found;
  int64_t group = 0, session = 0, terminal = 0, foreground = 0;
  rest >> found.state >> found.parent >> group >> session >> terminal >> foreground >> found.flags;
  return rest ? std::optional(found) : std::nullopt;
}

}  // namespace cairn
