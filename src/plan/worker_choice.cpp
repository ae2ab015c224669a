#include "plan/worker_choice.h"

#include <algorithm>

namespace cairn {

namespace {

constexpr uint32_t kTries = 4, kMostQuiet = 4096;
constexpr double kLongRun = 3e6;  // ns: what a second worker costs is little of longer runs
constexpr double kGain = 0.95;    // of one worker's time; more than that is noise
constexpr double kHopeless = 2;   // times what all take: one such run is enough

void keep_least(std::atomic<double>& least, double value) {
  if (value < least) least = value;
}

}  // namespace

bool WorkerChoice::next_is_alone() {
  const uint32_t run = runs_.fetch_add(1), quiet = quiet_;
  if (run < quiet) return alone_;
  const uint32_t tried = run - quiet;
  if (tried == 0) single_ = kNever;
  if (tried < kTries) return !long_ && (single_ == kNever || single_ < kHopeless * together_);
  if (tried == kTries) together_ = kNever;
  if (tried < 2 * kTries) return false;
  if (tried == 2 * kTries) decide();
  return alone_;
}

void WorkerChoice::took(bool alone, double ns, double expected) {
  if (!alone) long_ = ns > kLongRun;
  keep_least(alone ? single_ : together_, ns / std::max(expected, 1.));
}

void WorkerChoice::decide() {
  const bool alone = !long_ && together_ > kGain * single_;
  quiet_ = alone == alone_ ? std::min(2 * quiet_, kMostQuiet) : 64;
  alone_ = alone;
  runs_ = 0;
}

}  // namespace cairn
