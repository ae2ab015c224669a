// How the all_reduce nodes of each group are put together, as scripts say it.
#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "comm/job.h"
#include "support/error.h"
#include "support/fork.h"

namespace cairn::comm {

namespace {

std::mutex& fusion_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

std::map<std::string, Fusion, std::less<>>& fusions() {
  static auto& map = *new std::map<std::string, Fusion, std::less<>>;
  return map;
}

}  // namespace

void set_fusion(const std::string& group, const std::string& strategy) {
  const auto json = nlohmann::json::parse(strategy, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "strategy", "is no JSON object");
  Fusion fusion;
  try {
    for (const auto& [key, value] : json.items()) {
      if (key == "bytes")
        fusion.bytes = value.get<int64_t>();
      else if (key == "indices")
        fusion.indices = value.get<std::vector<int64_t>>();
      else if (key == "percents")
        fusion.percents = value.get<std::vector<int64_t>>();
      else if (key == "none")
        fusion.none = value.get<bool>();
      else
        fail(ErrorKind::invalid_argument, key, "is no strategy, expected bytes, indices, percents or none");
    }
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::invalid_argument, "strategy", "is {}", strategy);
  }
  if (!std::is_sorted(fusion.indices.begin(), fusion.indices.end()) || fusion.bytes < 1)
    fail(ErrorKind::invalid_argument, "strategy", "is {}: indices rise, bytes are above 0", strategy);
  int64_t sum = 0;
  for (int64_t percent : fusion.percents) sum += percent;
  if (!fusion.percents.empty() && sum != 100)
    fail(ErrorKind::invalid_argument, "percents", "sum up to {}, expected 100", sum);
  const ShieldedLock lock(fusion_mutex());
  fusions()[std::string(known_name(group))] = fusion;
}

Fusion fusion_of(std::string_view group) {
  const ShieldedLock lock(fusion_mutex());
  auto found = fusions().find(known_name(group));
  return found == fusions().end() ? Fusion() : found->second;
}

void forget_fusion() {
  const ShieldedLock lock(fusion_mutex());
  fusions().clear();
}

}  // namespace cairn::comm
