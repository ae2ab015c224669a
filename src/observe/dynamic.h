// PROFILING_MODE=dynamic: a process that is asked from outside when to record, by `msprof --dynamic=on --pid=N`.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

/// Where the process listens: ~/dynamic_profiling_socket_<pid>. Throws Error not_found when there is no home folder.
std::string dynamic_socket(int64_t pid);
/// Listens until the process ends, for one client of the same user at a time, who is greeted by "ok". Lines "start OPTIONS" (as PROFILING_OPTIONS),
/// "stop" and "quit"; each is answered by "ok", behind a stop with the recording's folder, or "error: SENTENCE". What a
/// client has started ends when it goes. Throws Error io.
void listen_for_clients();

}  // namespace cairn
