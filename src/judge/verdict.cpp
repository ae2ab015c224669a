#include "judge/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cairn::judge {

const char* to_string(Verdict verdict) {
  constexpr const char* kNames[] = {"none", "pass", "warning", "fail"};
  return kNames[static_cast<size_t>(verdict)];
}

bool agrees(const Distance& distance, double allowed) { return distance.unlike == 0 && distance.most <= allowed; }

const char* to_string(Larger larger) {
  constexpr const char* kNames[] = {"alike", "mine", "theirs"};
  return kNames[static_cast<size_t>(larger)];
}

namespace {

/// The logarithm of the ratio of two root mean squares of n independent errors of one size has a deviation of about 1 / sqrt(n);
/// three times that is met once in some hundred operators.
double beyond_chance(const Distance& distance) {
  return distance.finite ? std::max(kLarger, std::exp(3 / std::sqrt(static_cast<double>(distance.finite)))) : kLarger;
}

}  // namespace

Errors compare_errors(const Distance& mine, const Distance& theirs) {
  // One rounding of the exact result to f32 has an error of about 0.4 of the unit roundoff.
  const double least = std::max(0.4 * 0x1p-24 * theirs.size, 1e-300);
  Errors errors;
  errors.ratio = std::max(mine.rms, least) / std::max(theirs.rms, least);
  const double bound = beyond_chance(theirs);
  if (mine.unlike != theirs.unlike)
    errors.larger = mine.unlike > theirs.unlike ? Larger::mine : Larger::theirs;
  else if (errors.ratio > bound)
    errors.larger = Larger::mine;
  else if (errors.ratio < 1 / bound)
    errors.larger = Larger::theirs;
  return errors;
}

std::vector<bool> first_faults(std::span<const Judged> values) {
  std::vector<std::vector<size_t>> users(values.size());
  for (size_t place = 0; place < values.size(); ++place)
    for (size_t input : values[place].inputs) users[input].push_back(place);
  // For each value up to two faults that reach it are kept, since on a cycle one may be its own.
  constexpr size_t kNone = SIZE_MAX;
  std::vector<std::array<size_t, 2>> reached(values.size(), {kNone, kNone});
  std::vector<std::pair<size_t, size_t>> pending;  // a value, and a fault that reaches its users
  auto faulty = [&](size_t place) { return values[place].verdict == Verdict::fail; };
  for (size_t place = 0; place < values.size(); ++place)
    if (faulty(place)) pending.emplace_back(place, place);
  while (!pending.empty()) {
    const auto [place, fault] = pending.back();
    pending.pop_back();
    for (size_t user : users[place]) {
      auto& known = reached[user];
      if (user == fault || known[0] == fault || known[1] != kNone) continue;
      known[known[0] == kNone ? 0 : 1] = fault;
      if (values[user].verdict == Verdict::none) pending.emplace_back(user, fault);
    }
  }
  std::vector<bool> first(values.size());
  for (size_t place = 0; place < values.size(); ++place) first[place] = faulty(place) && reached[place][0] == kNone;
  return first;
}

}  // namespace cairn::judge
