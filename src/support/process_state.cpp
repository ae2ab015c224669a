#include "support/process_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>
#include <string>

namespace cairn {

namespace {

/// Without C++'s streams, which throw where the process ends between opening and reading.
std::string status_line(int64_t pid) {
  const int file = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[4096];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  return std::string(text, static_cast<size_t>(size > 0 ? size : 0));
}

}  // namespace

bool ProcessState::goes_on() const {
  constexpr uint32_t kExiting = 4;  // PF_EXITING of Linux
  return state != 'Z' && !(flags & kExiting);
}

std::optional<ProcessState> process_state(int64_t pid) {
  const std::string text = status_line(pid);
  const size_t name_ends = text.rfind(')');  // a name may hold blanks and parentheses
  if (name_ends == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_ends + 1));
  ProcessState found;
  int64_t group = 0, session = 0, terminal = 0, foreground = 0;
  rest >> found.state >> found.parent >> group >> session >> terminal >> foreground >> found.flags;
  return rest ? std::optional(found) : std::nullopt;
}

}  // namespace cairn
