#include "size_choice.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace cairn_tf {

namespace {

constexpr uint32_t kTries = 4, kMostQuiet = 4096, kMostPatience = 1000;
constexpr uint32_t kFirstPlans = 3;         // of a cluster, for the sizes that its code was compiled at and one more
constexpr size_t kTable = 1024, kWays = 4;  // sizes that are remembered, each in one of so many places
constexpr double kMuchPlanning = 0.1;       // of the time of runs; below, TensorFlow is not tried
constexpr double kLongRun = 50e6;           // ns: of longer runs planning is little, and TensorFlow's memory much
constexpr double kGain = 0.95;              // of the engine's time
constexpr double kHopeless = 2;             // times what TensorFlow takes: two plans show it

uint64_t hash_of(const Sizes& sizes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t size : sizes) hash = (hash ^ static_cast<uint64_t>(size)) * 0x9e3779b97f4a7c15, hash ^= hash >> 32;
  return hash | 1;
}

}  // namespace

SizeChoice::Known& SizeChoice::known(const Sizes& sizes, bool& fresh) {
  if (!table_) table_ = std::make_unique<Known[]>(kTable);
  const uint64_t hash = hash_of(sizes);
  Known* const first = &table_[hash / kWays % (kTable / kWays) * kWays];
  Known* found = std::find_if(first, first + kWays, [&](const Known& each) { return each.hash == hash; });
  fresh = found == first + kWays;
  if (fresh) {
    found = std::find_if(first, first + kWays, [](const Known& each) { return each.hash == 0; });
    if (found == first + kWays)
      found = std::rotate(first, first + 1, first + kWays);  // the place of the oldest, now last
    *found = {hash};
  }
  return *found;
}

bool SizeChoice::next_is_stock(const Sizes& sizes) {
  if (!learns_) return false;
  std::lock_guard lock(mutex_);
  bool fresh = false;
  Known& found = known(sizes, fresh);
  if (!fresh && !found.always && (found.planned || found.waited >= patience_)) return false;
  const bool stock = rule_ == Rule::tensorflow || new_is_stock();
  found.waited += stock;
  return stock;
}

bool SizeChoice::new_is_stock() {
  const uint32_t run = runs_++;
  if (run + kTries == quiet_) trial_ = kNone;  // the last runs as decided are tries of that side
  if (run < quiet_) return stock_;
  const bool tries_left = run < quiet_ + kTries;
  if (stock_ && tries_left && !is_hopeless()) return false;
  const bool doubt = trial_.planning > kMuchPlanning * trial_.all && trial_.engine() < kLongRun;
  if (!stock_ && tries_left && doubt) return true;
  decide();
  return stock_;
}

bool SizeChoice::is_hopeless() const { return trial_.plans > 1 && trial_.engine() > kHopeless * trial_.stock; }

void SizeChoice::took(const Sizes& sizes, double ns, double planning) {
  if (rule_ == Rule::engine || (planning == 0 && !learns_)) return;
  std::lock_guard lock(mutex_);
  if (!learns_ && !(learns_ = ++planned_ >= kFirstPlans)) return;
  bool fresh = false;
  Known& found = known(sizes, fresh);
  found.always = planning > 0 && found.planned;
  found.planned = true;
  trial_.all += ns;
  if (planning == 0) return;
  trial_.ran = std::min(trial_.ran, ns - planning);
  trial_.planning += planning;
  trial_.longest = std::max(trial_.longest, planning);
  ++trial_.plans;
}

void SizeChoice::stock_took(double ns) {
  std::lock_guard lock(mutex_);
  trial_.stock = std::min(trial_.stock, ns);
}

void SizeChoice::decide() {
  const bool stock = trial_.stock < kGain * trial_.engine();
  if (stock != stock_) {
    char text[160];
    std::snprintf(text, sizeof text, "%s: %.3g ms on the engine, %.0f %% of them planning, %.3g ms on TensorFlow",
                  stock ? "tensorflow" : "engine", trial_.engine() * 1e-6,
                  100 * trial_.planning / std::max(trial_.all, 1.), trial_.stock * 1e-6);
    news_ = text;
  }
  quiet_ = stock == stock_ ? std::min((is_hopeless() ? 4 : 2) * quiet_, kMostQuiet) : 32;
  stock_ = stock;
  if (stock) {
    const double gain = trial_.stock - trial_.ran, plan = trial_.planning / std::max(trial_.plans, 1u);
    const uint32_t paid = gain * kMostPatience > plan ? static_cast<uint32_t>(plan / gain) + 1 : kMostPatience;
    patience_ = std::max(paid, patience_ / 2);  // plans like the one before take less time than most
  }
  runs_ = 1;  // the run that asks
  trial_ = kNone;
}

std::string SizeChoice::news() {
  if (!learns_) return "";
  std::lock_guard lock(mutex_);
  return std::exchange(news_, "");
}

}  // namespace cairn_tf
