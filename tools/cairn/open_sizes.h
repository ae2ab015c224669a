// What a model leaves open: which dimension of which input, and the sizes it takes.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn::cli {

struct OpenSize {
  std::string input;
  size_t dim = 0;     // kAnyRank: the input takes any number of dimensions
  std::string name;   // of the size, may be empty; equal names are equal sizes
  std::string sizes;  // "any size", "1 to 8", "1, 4 or 8"
};
constexpr size_t kAnyRank = size_t(-1);

std::vector<OpenSize> open_sizes(const Module& module);
/// "x: dim 0 (n), any size".
std::string to_text(const OpenSize& open);

}  // namespace cairn::cli
