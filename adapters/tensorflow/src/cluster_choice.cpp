#include "cluster_choice.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace cairn_tf {

namespace {

constexpr uint32_t kTries = 5, kFirstQuiet = 32, kMostQuiet = 8192, kMoreQuiet = 4;
constexpr double kGain = 0.95;   // of the engine's time
constexpr double kClear = 1.25;  // times the other's: fewer tries show it

}  // namespace

bool ClusterChoice::next_is_stock() {
  const Rule rule = rule_;
  if (rule != Rule::measured) return rule == Rule::tensorflow;
  std::lock_guard lock(mutex_);
  if (left_ == 0) return engine_.runs > stock_.runs && !is_early();
  --left_;
  return on_stock_;
}

void ClusterChoice::add(double ns, Side& side, bool planned) {
  if (rule_ != Rule::measured) return;
  std::lock_guard lock(mutex_);
  if (left_ > 0) return;
  const bool cold = !decided_ && side.runs == 0;  // it compiled, planned or made kernels
  if (planned && !cold) return;
  if (cold && &side == &engine_) compiled_ = ns;
  const bool early = !cold && is_early();
  if (early) spent_ += ns;
  side.runs += !early;
  if (!cold) side.shortest = std::min(side.shortest, ns);
  const double ratio = engine_.shortest / stock_.shortest;
  const uint32_t least = (ratio > kClear || ratio < 1 / kClear ? 1 : kTries) + (decided_ ? 0 : 1);
  if (engine_.runs >= least && stock_.runs >= least) decide();
}

void ClusterChoice::decide() {
  const bool stock = stock_.shortest < kGain * engine_.shortest;
  const bool same = decided_ && stock == on_stock_;
  const bool clear = stock ? engine_.shortest > kClear * stock_.shortest : stock_.shortest > kClear * engine_.shortest;
  if (!same) {
    char text[120];
    std::snprintf(text, sizeof text, "%s: %.3g ms on the engine, %.3g ms on TensorFlow",
                  stock ? "tensorflow" : "engine", engine_.shortest * 1e-6, stock_.shortest * 1e-6);
    news_ = text;
  }
  quiet_ = same    ? std::min(kMoreQuiet * quiet_, kMostQuiet)
           : clear ? kMoreQuiet * kMoreQuiet * kFirstQuiet
                   : kFirstQuiet;
  left_ = quiet_;
  decided_ = true;
  on_stock_ = stock;
  engine_ = stock_ = {};
}

std::string ClusterChoice::news() {
  if (rule_ != Rule::measured) return "";
  std::lock_guard lock(mutex_);
  return std::exchange(news_, "");
}

}  // namespace cairn_tf
