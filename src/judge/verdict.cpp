#include "judge/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

double log_ratio(const Distance& mine, const Distance& theirs) {
  // One rounding of the exact result to f32 has an error of about 0.4 of the unit roundoff.
  const double least = std::max(0.4 * 0x1p-24 * theirs.size, 1e-300);
  return std::log(std::max(mine.rms, least) / std::max(theirs.rms, least));
}

size_t unlike_in(std::span<const Distance> distances) {
  return std::accumulate(distances.begin(), distances.end(), size_t{0},
                         [](size_t sum, const Distance& each) { return sum + each.unlike; });
}

}  // namespace

Errors compare_errors(const Distance& mine, const Distance& theirs) {
  return compare_errors(std::span(&mine, 1), std::span(&theirs, 1));
}

Errors compare_errors(std::span<const Distance> mine, std::span<const Distance> theirs) {
  CHECK(!mine.empty() && mine.size() == theirs.size(), "{} and {} runs", mine.size(), theirs.size());
  const auto runs = static_cast<double>(mine.size());
  double sum = 0, squares = 0, elements = 0;
  for (size_t run = 0; run < mine.size(); ++run) {
    const double each = log_ratio(mine[run], theirs[run]);
    sum += each, squares += each * each, elements += static_cast<double>(theirs[run].finite);
  }
  const double mean = sum / runs;
  // Errors of one size that are independent in n elements have a ratio whose logarithm deviates by about 1 / sqrt(n). Those of an
  // operator often are not independent, which several runs show.
  double variance = elements > 0 ? 1 / elements : 0;
  if (runs > 1) variance = std::max(variance, (squares / runs - mean * mean) / (runs - 1));
  // Beyond three deviations, so once in some hundred operators.
  const double bound = std::max(std::log(kLarger), 3 * std::sqrt(variance));
  Errors errors{Larger::alike, std::exp(mean)};
  const size_t unlike = unlike_in(mine), unlike_theirs = unlike_in(theirs);
  if (unlike != unlike_theirs)
    errors.larger = unlike > unlike_theirs ? Larger::mine : Larger::theirs;
  else if (std::abs(mean) > bound)
    errors.larger = mean > 0 ? Larger::mine : Larger::theirs;
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
