// A training step on many ranks: computing as measured on one, gradients exchanged in buckets as soon as they are there.
#pragma once

#include <string>
#include <vector>

#include "comm/job.h"
#include "simulate/network.h"
#include "simulate/workload.h"

namespace cairn::simulate {

inline constexpr double kUsualBucket = comm::kBucketBytes;

struct Prediction {
  int ranks = 1;
  double seconds = 0;     // of a step
  double computing = 0;   // of it, on the processors that the rank has
  double exchanging = 0;  // seconds in which gradients travel
  double exposed = 0;     // of them, in which the rank computes nothing or less
  double waiting = 0;     // for the slowest rank, whose steps take longer by chance
  size_t buckets = 0;
  std::string algorithm;  // of the largest bucket

  double efficiency(double alone) const { return alone / seconds; }
  double hidden() const { return exchanging > 0 ? 1 - exposed / exchanging : 1; }
};

/// bucket: bytes up to which gradients travel together. The batch of a rank is the one that was measured.
Prediction predict(const Workload& workload, int ranks, const Network& network, double bucket = kUsualBucket);

/// A page with the curves, self-contained.
std::string picture(const Workload& workload, const Network& network, const std::vector<Prediction>& predictions,
                    double bucket);
/// The same facts as JSON.
std::string json_of(const Workload& workload, const Network& network, const std::vector<Prediction>& predictions,
                    double bucket);

}  // namespace cairn::simulate
