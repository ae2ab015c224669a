// The user's word about a choice between the engine and TensorFlow's kernels that is otherwise measured.
#pragma once

#include <cstdint>

namespace cairn_tf {

enum class Rule : uint8_t { engine, tensorflow, measured };

/// By the environment variable; measured where it is not set. False: it has a value that is no rule.
bool read_rule(const char* variable, Rule& rule);

}  // namespace cairn_tf
