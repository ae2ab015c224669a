// How many processors the system lets this process use; separate from the executor so that tests can pass another root.
#pragma once

#include <filesystem>

namespace cairn {

/// Processors that the cgroup quotas (version 1 and 2) on the way from this process up to the root allow, rounded down
/// to at least 1; 0 when there is no quota. Reads `root`/proc/self/cgroup and `root`/sys/fs/cgroup.
int cgroup_threads(const std::filesystem::path& root);

}  // namespace cairn
