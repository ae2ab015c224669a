// What the tests of passes share: short texts of functions, random inputs, comparison of results.
#pragma once

#include <string>
#include <vector>

#include "ir/evaluate.h"
#include "ir/text.h"

namespace cairn::test {

/// "(%x: f32[2]) -> (%y: f32[2]) { ... }" as @main of a module; a whole module stays as it is.
Module parse_short(const std::string& text);
/// The module's functions without names of values, so that only structure counts.
std::string structure(Module module);

/// One value for each param: sizes for symbols are drawn once a name, numbers between -2 and 2.
std::vector<HostValue> random_inputs(const Block& block, unsigned seed);
/// Empty, or what differs; floats within `tolerance` of the largest magnitude.
std::string difference(const std::vector<HostValue>& expected, const std::vector<HostValue>& found, double tolerance);
/// Runs both on a few random inputs, as far as `before` takes them. Results beyond those of `before` are not compared.
std::string random_check(const Module& before, const Module& after, double tolerance = 2e-6);

}  // namespace cairn::test
