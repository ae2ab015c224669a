#include "op_traits.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine.h"
#include "partition.h"

namespace cairn_tf {

int OpTraits::work() const {
  // A stream of random numbers is continued where it was begun: on the engine, whatever else a run fetches.
  if (has("heavy") || has("draws")) return kHeavy;
  return has("free") ? 0 : 1;
}

const OpTraits& traits_of(const std::string& op) {
  static const auto table = [] {
    std::unordered_map<std::string, OpTraits> made;
    std::string why;
    char* text = nullptr;
    const Library* engine = library(why);
    if (!engine || engine->cluster_operators(&text) != CAIRN_OK) return made;
    const auto rows = nlohmann::json::parse(text);
    engine->free_text(text);
    for (const auto& [name, row] : rows.items()) {
      OpTraits& traits = made[name];
      traits.names = row.at("traits");
      if (row.contains("known_input")) traits.known_input = row["known_input"];
    }
    return made;
  }();
  static const OpTraits nothing;
  const auto found = table.find(op);
  return found == table.end() ? nothing : found->second;
}

}  // namespace cairn_tf
