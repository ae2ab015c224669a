#include "rule.h"

#include <cstdlib>
#include <string_view>

namespace cairn_tf {

bool read_rule(const char* variable, Rule& rule) {
  const char* text = std::getenv(variable);
  const std::string_view given = text ? text : "";
  rule = given == "engine" ? Rule::engine : given == "tensorflow" ? Rule::tensorflow : Rule::measured;
  return rule != Rule::measured || given.empty() || given == "measured";
}

}  // namespace cairn_tf
