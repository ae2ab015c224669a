// What operators touch and cost, as their rows in the engine tell it.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace cairn_tf {

struct OpTraits {
  std::set<std::string> names = {};
  std::optional<int> known_input = {};  // that the engine must know when it compiles; negative: from the end

  bool has(const char* trait) const { return names.count(trait) != 0; }
  /// Hands on a variable as it gets it.
  bool hands_on() const { return has("hands_on") && !has("calls"); }
  /// How much a node is worth in a cluster: `Node::work`.
  int work() const;
};

/// Nothing for operators that the engine knows nothing of, and where there is no engine.
const OpTraits& traits_of(const std::string& op);

}  // namespace cairn_tf
