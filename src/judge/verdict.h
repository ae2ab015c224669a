// What follows from distances: whether a result agrees, whose error is larger, and which operators are the first at fault.
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

/// Nothing is apart by more than `allowed`, nor unlike.
bool agrees(const Distance& distance, double allowed);

/// Of two errors against the same truth.
enum class Larger : uint8_t { alike, mine, theirs };
const char* to_string(Larger larger);
/// An error is larger when it is more than this times the other.
inline constexpr double kLarger = 1.5;
struct Errors {
  Larger larger = Larger::alike;
  double ratio = 1;  // mine over theirs, root mean squares, neither below what rounding the truth once gives
};
/// Both are distances from the truth.
Errors compare_errors(const Distance& mine, const Distance& theirs);

/// A value of a graph.
struct Judged {
  Verdict verdict = Verdict::none;
  std::vector<size_t> inputs;  // places of the values that it was made from
};
/// The values that fail although nothing that they were made from does; where an input was not judged, what that was made
/// from counts. The graph may have cycles: no value is its own input.
std::vector<bool> first_faults(std::span<const Judged> values);

}  // namespace cairn::judge
