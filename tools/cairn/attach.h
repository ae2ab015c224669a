// Recordings of a program that was started with PROFILING_MODE=dynamic, begun and ended by hand at a prompt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"

namespace cairn::cli {

/// Attaches to the process `pid`, or to `command` which is started for it, and takes start, stop and quit from standard
/// input; each recording goes below `output`. Throws Error.
int record_on_request(uint32_t pid, const std::vector<std::string>& command, const std::string& output, Json options);

}  // namespace cairn::cli
