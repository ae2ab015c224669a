// What the system tells of a process of this machine.
#pragma once

#include <cstdint>
#include <optional>

namespace cairn {

struct ProcessState {
  char state = '?';  // 'R', 'S', 'T' (stopped), 'Z' (ended, nobody has asked for its status), ...
  int64_t parent = 0;
  uint32_t flags = 0;
  /// Whether it runs and is not about to end: a process closes its sockets before it is gone.
  bool goes_on() const;
};

/// Nothing when there is no such process, or the system tells nothing of it.
std::optional<ProcessState> process_state(int64_t pid);

}  // namespace cairn
