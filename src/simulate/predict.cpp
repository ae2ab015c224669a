#include "simulate/predict.h"

#include <algorithm>
#include <cmath>

namespace cairn::simulate {
namespace {

struct Bucket {
  double ready = 0, bytes = 0;
};

std::vector<Bucket> buckets_of(const Workload& workload, double most) {
  std::vector<Bucket> buckets;
  for (const Gradient& gradient : workload.gradients) {
    if (buckets.empty() || buckets.back().bytes + gradient.bytes > most) buckets.emplace_back();
    buckets.back().ready = gradient.ready;
    buckets.back().bytes += gradient.bytes;
  }
  return buckets;
}

/// The expected largest of n numbers of the standard normal distribution: G. Blom, Statistical Estimates and Transformed
/// Beta-Variables (1958).
double expected_largest(int n) {
  const double share = (n - 0.375) / (n + 0.25);
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return low;
}

}  // namespace

Prediction predict(const Workload& workload, int ranks, const Network& network, double bucket) {
  Prediction made;
  made.ranks = ranks;
  double slower = 1;  // ranks of a host that share its processors
  if (network.cores_per_host > 0)
    slower = std::max(1.0, double(std::min(network.ranks_per_host, ranks)) * workload.threads / network.cores_per_host);
  made.computing = made.seconds = workload.seconds * slower;
  if (ranks <= 1) return made;

  const std::vector<Bucket> buckets = buckets_of(workload, bucket);
  made.buckets = buckets.size();
  double now = 0, done = 0;  // time, and computing that is done
  double largest = 0;
  for (const Bucket& each : buckets) {
    const double ready = each.ready * slower;
    if (done < ready) now += ready - done, done = ready;
    const Exchange exchange = all_reduce(each.bytes, ranks, network);
    if (each.bytes > largest) largest = each.bytes, made.algorithm = exchange.algorithm;
    made.exchanging += exchange.seconds;
    // Computing goes on meanwhile, up to what needs the last gradient.
    const double last = buckets.back().ready * slower;
    now += exchange.seconds;
    done = std::max(done, std::min(last, done + exchange.seconds * (1 - network.processor_share)));
  }
  now += made.computing - done;
  made.exposed = std::max(0.0, now - made.computing);
  made.waiting = expected_largest(ranks) * workload.spread * slower;
  made.seconds = now + made.waiting;
  return made;
}

}  // namespace cairn::simulate
