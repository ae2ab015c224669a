// The calls of layers in a saved model: on which results of which calls, and with which other arguments.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "frontends/keras/saved.h"

namespace cairn::keras {

/// Identifies a result: layer, number of the call, number of the result.
struct ResultName {
  std::string layer;
  uint64_t call = 0, index = 0;
  const Json* type = nullptr;  // {"shape": [...], "dtype": ...} where the file tells it
  bool operator<(const ResultName& other) const {
    return std::tie(layer, call, index) < std::tie(other.layer, other.call, other.index);
  }
};

/// An argument: a result, or a literal in the file.
struct Argument {
  std::optional<ResultName> from;
  const Json* literal = nullptr;
};

struct Call {
  std::vector<Argument> inputs;
  std::map<std::string, Argument, std::less<>> named;
};

constexpr int kMostLevels = 16;

/// All results in input_layers and output_layers: one, a list, or lists of lists. Throws Error unsupported.
std::vector<ResultName> results_in(const Json& value, int depth = 0);
/// Parses an entry of a layer's inbound_nodes, of Keras 2 or 3. Throws Error.
Call read_call(const Json& node);

}  // namespace cairn::keras
