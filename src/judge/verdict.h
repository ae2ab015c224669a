// Verdicts from distances: whether a result agrees, whose error is larger, and which operators are the first at fault.
#pragma once

#include <span>
#include <vector>

#include "judge/distance.h"

namespace cairn::judge {

enum class Verdict : uint8_t {
  none,  // not judged
  pass,
  warning,  // agrees, but something is odd
  fail,
};
const char* to_string(Verdict verdict);

/// Whether no element differs by more than `allowed`, and none is unlike.
bool agrees(const Distance& distance, double allowed);

/// Which of two errors relative to the same exact result is larger.
enum class Larger : uint8_t { alike, mine, theirs };
const char* to_string(Larger larger);
/// An error is larger when it is more than this times the other, and by more than chance explains: of one run e^(3 / sqrt(elements)),
/// which matters below 55; of several runs e^(3 standard deviations of the mean of the ratio's logarithm).
inline constexpr double kLarger = 1.5;
struct Errors {
  Larger larger = Larger::alike;
  double ratio = 1;  // rms of mine over that of theirs; neither counts as less than one rounding of the exact result
};
/// Both are distances from the exact result.
Errors compare_errors(const Distance& mine, const Distance& theirs);
/// The same of a value in several runs on inputs of their own; the ratio is the geometric mean of theirs.
Errors compare_errors(std::span<const Distance> mine, std::span<const Distance> theirs);

/// A judged value of a graph.
struct Judged {
  Verdict verdict = Verdict::none;
  std::vector<size_t> inputs;  // indices of the values that it was computed from
};
/// Marks the values that fail although none of their inputs does; for an input that was not judged, its inputs count.
/// The graph may have cycles; a value does not count as its own input.
std::vector<bool> first_faults(std::span<const Judged> values);

}  // namespace cairn::judge
