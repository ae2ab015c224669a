// PROFILING_MODE=dynamic: recordings of a running process are started and stopped by `msprof --dynamic=on --pid=N`.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

/// The path of the process's socket: ~/dynamic_profiling_socket_<pid>. Throws Error not_found when there is no home
/// folder.
std::string dynamic_socket(int64_t pid);
/// Listens until the process ends, for one client of the same user at a time, which is greeted with "ok". The client
/// sends lines "start OPTIONS" (as PROFILING_OPTIONS), "stop" and "quit". Each is answered by "ok" (after a stop
/// followed by the recording's folder) or "error: SENTENCE". A recording ends when the client that started it
/// disconnects. Throws Error io.
void listen_for_clients();

}  // namespace cairn
