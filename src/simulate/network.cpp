#include "simulate/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/error.h"
#include "support/files.h"

namespace cairn::simulate {
namespace {

using Json = nlohmann::ordered_json;

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}};
constexpr Unit kSizes[] = {{"", 1},          {"B", 1},        {"kB", 1e3},     {"KB", 1e3},
                           {"MB", 1e6},      {"GB", 1e9},     {"KiB", 1024},   {"MiB", 1024.0 * 1024},
                           {"GiB", 1 << 30}, {"kb", 1e3 / 8}, {"Mb", 1e6 / 8}, {"Gb", 1e9 / 8}};

template <size_t count>
double parse(std::string text, const Unit (&units)[count], const std::string& option, const char* example) {
  std::erase(text, ' ');
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  for (const Unit& unit : units)
    if (end != text.c_str() && std::string_view(end) == unit.name && std::isfinite(number) && number >= 0)
      return number * unit.factor;
  fail(ErrorKind::invalid_argument, option, "'{}' is not understood; expected something like {}", text, example);
}

double positive(double value, const std::string& option, const char* what) {
  if (value <= 0) fail(ErrorKind::invalid_argument, option, "{} must be above 0", what);
  return value;
}

Link link_of(const std::string& latency, const std::string& bandwidth, const std::string& option) {
  return {parse_seconds(latency, option), positive(parse_bytes(bandwidth, option), option, "the bandwidth")};
}

void check_topology(const std::string& topology, const std::string& option) {
  if (topology != "auto" && topology != "ring" && topology != "tree" && topology != "direct")
    fail(ErrorKind::invalid_argument, option, "'{}' is no topology; expected auto, ring, tree or direct", topology);
}

std::string text_of(const Json& json, const char* key, const std::string& path) {
  if (!json.contains(key)) fail(ErrorKind::invalid_argument, path, "has no {}", key);
  const Json& value = json[key];
  if (!value.is_string() && !value.is_number()) fail(ErrorKind::invalid_argument, path, "{} is no number or text", key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

int whole(const Json& json, const char* key, int least, int otherwise, const std::string& path) {
  if (!json.contains(key)) return otherwise;
  if (!json[key].is_number_integer() || json[key].get<int64_t>() < least || json[key].get<int64_t>() > 1000000)
    fail(ErrorKind::invalid_argument, path, "{} must be a whole number of at least {}", key, least);
  return json[key].get<int>();
}

Network from_file(const std::string& path) {
  const Json json = Json::parse(read_file(path, 1 << 20), nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, path, "is no JSON object");
  static const std::vector<std::string> known = {"latency",        "bandwidth",      "topology",  "inside",
                                                 "ranks_per_host", "cores_per_host", "reduction", "processor_share"};
  for (const auto& [key, value] : json.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ErrorKind::invalid_argument, path, "{} is no part of a network; known are {}", key, fmt::join(known, ", "));
  Network network;
  network.between = link_of(text_of(json, "latency", path), text_of(json, "bandwidth", path), path);
  network.inside = network.between;
  if (json.contains("inside")) {
    if (!json["inside"].is_object()) fail(ErrorKind::invalid_argument, path, "inside must have latency and bandwidth");
    network.inside =
        link_of(text_of(json["inside"], "latency", path), text_of(json["inside"], "bandwidth", path), path);
  }
  if (json.contains("topology")) check_topology(network.topology = text_of(json, "topology", path), path);
  network.ranks_per_host = whole(json, "ranks_per_host", 1, 1, path);
  network.cores_per_host = whole(json, "cores_per_host", 0, 0, path);
  if (json.contains("reduction"))
    network.reduction = positive(parse_bytes(text_of(json, "reduction", path), path), path, "reduction");
  if (json.contains("processor_share")) {
    network.processor_share = std::atof(text_of(json, "processor_share", path).c_str());
    if (network.processor_share < 0 || network.processor_share > 1)
      fail(ErrorKind::invalid_argument, path, "processor_share must be in [0, 1]");
  }
  return network;
}

/// All ranks in a ring, which pass on parts of n / p: R. Thakur et al., Optimization of Collective Communication Operations
/// in MPICH (2005), from where the other formulas are as well.
double ring(double bytes, int ranks, const Link& link, double reduction) {
  const double p = ranks, moved = bytes * (p - 1) / p;
  return 2 * (p - 1) * link.latency + 2 * moved / link.bandwidth + moved / reduction;
}

/// Recursive halving and doubling of parts; where ranks is no power of two the ones above it first hand over theirs.
double tree(double bytes, int ranks, const Link& link, double reduction) {
  const double p = std::bit_floor(static_cast<unsigned>(ranks)), rounds = std::log2(p), moved = bytes * (p - 1) / p;
  const double rest = ranks > p ? 2 * (link.latency + bytes / link.bandwidth) + bytes / reduction : 0;
  return rest + 2 * rounds * link.latency + 2 * moved / link.bandwidth + moved / reduction;
}

/// Every rank sends all to every other: one latency.
double direct(double bytes, int ranks, const Link& link, double reduction) {
  return link.latency + (ranks - 1) * (bytes / link.bandwidth + bytes / reduction);
}

Exchange on(const Link& link, double bytes, int ranks, const Network& network) {
  Exchange best{INFINITY, {}};
  auto consider = [&](const char* name, auto&& seconds) {
    if (network.topology != "auto" && network.topology != name) return;
    const double taken = seconds(bytes, ranks, link, network.reduction);
    if (taken < best.seconds) best = {taken, name};
  };
  consider("direct", direct);
  consider("tree", tree);
  consider("ring", ring);
  return best;
}

}  // namespace

double parse_seconds(const std::string& text, const std::string& option) {
  return parse(text, kTimes, option, "10us or 2.5ms");
}

double parse_bytes(const std::string& text, const std::string& option) {
  return parse(text.ends_with("/s") ? text.substr(0, text.size() - 2) : text, kSizes, option,
               "32MB, 12.5GB/s or 100Gb/s");
}

Network read_network(const std::string& text) {
  std::error_code error;
  if (std::filesystem::is_regular_file(expand_home(text), error)) return from_file(expand_home(text));
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  if (parts.size() < 2 || parts.size() > 3)
    fail(ErrorKind::invalid_argument, "--network", "'{}' is no file and not latency,bandwidth[,topology]", text);
  Network network;
  network.between = network.inside = link_of(parts[0], parts[1], "--network");
  if (parts.size() == 3) check_topology(network.topology = parts[2], "--network");
  return network;
}

Exchange all_reduce(double bytes, int ranks, const Network& network) {
  if (ranks <= 1) return {0, "none"};
  const int local = std::min(network.ranks_per_host, ranks);
  if (local == ranks) return on(network.inside, bytes, ranks, network);
  // One level: the ranks of a host share its link.
  Link shared = network.between;
  if (network.topology != "ring") shared.bandwidth /= local;  // a ring passes each host's link once in each direction
  Exchange flat = on(shared, bytes, ranks, network);
  if (local == 1) return flat;
  // By hosts: parts are added up inside, each rank exchanges its part with those of other hosts, then all parts are handed around.
  const double part = bytes / local, p = local;
  const Link per_rank{network.between.latency, network.between.bandwidth / local};
  const Exchange among = on(per_rank, part, (ranks + local - 1) / local, network);
  const double inside =
      2 * (p - 1) * (network.inside.latency + part / network.inside.bandwidth) + (p - 1) * part / network.reduction;
  Exchange hosts{inside + among.seconds, among.algorithm + " by hosts"};
  return hosts.seconds < flat.seconds ? hosts : flat;
}

}  // namespace cairn::simulate
