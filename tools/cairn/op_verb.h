// The parts of `cairn op`.
#pragma once

#include <string>
#include <vector>

#include "console.h"

namespace cairn::cli {

/// Writes a folder with the source of one operator and its CMake file. Throws Error.
void new_op(const std::string& name, const std::string& folder);
/// Where <cairn/op.hpp> is: beside this program or in the Python package beside it. Throws Error not_found.
std::string include_folder();

struct OpCheck {
  std::string op, input, what;  // "acme.gelu", "f32[2, 3]", "gradient of x"
  std::string fault;            // empty: it holds
};
/// Checks every operator of a loaded library by its cases.
std::vector<OpCheck> check_ops(const std::string& library);

}  // namespace cairn::cli
