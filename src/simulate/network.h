// What connects the ranks of a job, and how long an all-reduce takes on it: the alpha-beta model, in which a message of n bytes
// takes latency + n / bandwidth.
#pragma once

#include <string>

namespace cairn::simulate {

struct Link {
  double latency = 0;    // seconds a message
  double bandwidth = 0;  // bytes a second that a rank sends, and receives at the same time
};

struct Network {
  Link between;                   // hosts
  Link inside;                    // a host; used where ranks_per_host is above 1
  int ranks_per_host = 1;         // whose ranks share the host's link
  int cores_per_host = 0;         // 0: every rank has the processors that it was measured with
  std::string topology = "auto";  // ring, tree, direct; auto: the fastest for each size, one level or by hosts
  double reduction = 1e10;        // bytes a second that one rank adds up
  double processor_share = 0;     // of the time of an exchange, which is taken from the rank's computing
};

/// "10us,12.5GB/s" or "10us,100Gb/s,ring", or the path of a JSON file with latency, bandwidth and, where wanted, topology,
/// ranks_per_host, inside {latency, bandwidth}, cores_per_host, reduction and processor_share. Throws Error.
Network read_network(const std::string& text);

/// Seconds of "10us", "2.5ms", "1s", "1e-5"; throws Error invalid_argument, about `option`.
double parse_seconds(const std::string& text, const std::string& option);
/// Bytes of "32MB", "64MiB", "1e6"; with a "/s" behind them and "b" for bits: a rate.
double parse_bytes(const std::string& text, const std::string& option);

struct Exchange {
  double seconds = 0;
  std::string algorithm;  // "ring", "tree by hosts", ...
};
/// One all-reduce of so many bytes over all ranks.
Exchange all_reduce(double bytes, int ranks, const Network& network);

}  // namespace cairn::simulate
