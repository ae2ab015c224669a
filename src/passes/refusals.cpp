#include "passes/refusals.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cairn {

namespace {

thread_local std::vector<std::string> refused;

}  // namespace

void note_refusal(std::string_view by, const Node& node, const Error& fault) {
  if (fault.kind() == ErrorKind::cancelled) throw Error(fault);
  refused.push_back(fmt::format("{}: {}: {}", by, node.op->name, fault.what()));
}

std::vector<std::string> take_refusals() {
  std::vector<std::string> list = std::exchange(refused, {});
  const char* path = std::getenv("CAIRN_REFUSED_REPLACEMENTS");
  if (list.empty() || path == nullptr || *path == 0) return list;
  std::FILE* file = std::fopen(path, "a");
  if (!file) fail(ErrorKind::io, path, "cannot be written");
  for (const std::string& line : list) fmt::print(file, "{}\n", line);
  std::fclose(file);
  return list;
}

}  // namespace cairn
