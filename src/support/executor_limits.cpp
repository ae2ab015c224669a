#include "support/executor_limits.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "support/executor.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

std::optional<double> read_number(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

/// The quota of one cgroup directory in processors, or infinity.
double quota_of(const fs::path& directory) {
  std::ifstream cpu_max(directory / "cpu.max");  // "max 100000" or "200000 100000"
  double quota = 0, period = 0;
  if (cpu_max >> quota >> period && quota > 0 && period > 0) return quota / period;
  const auto quota_us = read_number(directory / "cpu.cfs_quota_us");  // -1: none
  const auto period_us = read_number(directory / "cpu.cfs_period_us");
  if (quota_us && period_us && *quota_us > 0 && *period_us > 0) return *quota_us / *period_us;
  return INFINITY;
}

/// The smallest quota of `group` and its parents below `mount`. A container may see paths of its host, so directories
/// that do not exist are taken as unlimited.
double quota_up_to_root(const fs::path& mount, fs::path group) {
  double least = quota_of(mount);
  for (; group.has_relative_path(); group = group.parent_path())
    least = std::min(least, quota_of(mount / group.relative_path()));
  return least;
}

bool lists_cpu(const std::string& controllers) { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }

int affinity_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // the machine has more processors than cpu_set_t holds
}

}  // namespace

int cgroup_threads(const fs::path& root) {
  std::ifstream in(root / "proc/self/cgroup");
  double least = INFINITY;
  for (std::string line; std::getline(in, line);) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path mount = root / "sys/fs/cgroup";
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, quota_up_to_root(mount, group));
    } else if (lists_cpu(controllers)) {
      least = std::min({least, quota_up_to_root(mount / "cpu", group), quota_up_to_root(mount / controllers, group)});
    }
  }
  return std::isinf(least) ? 0 : std::max(1, static_cast<int>(std::min(least, 1e6)));
}

int available_threads() {
  const int quota = cgroup_threads("/");
  const int processors = std::max(1, affinity_threads());
  return quota ? std::min(quota, processors) : processors;
}

}  // namespace cairn
