#include "frontends/problems.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr size_t kMostCuts = 8;

}  // namespace

void Problems::add_once(Entry& entry, const std::string& node) {
  if (entry.seen.insert(node).second) entry.nodes.push_back(node);
}

void Problems::unsupported(const std::string& op, const std::string& node, const std::vector<std::string>& cuts) {
  Entry& entry = entries_[{op, "not supported"}];
  entry.unknown = true;
  add_once(entry, node);
  for (const std::string& cut : cuts)
    if (std::find(entry.cuts.begin(), entry.cuts.end(), cut) == entry.cuts.end()) entry.cuts.push_back(cut);
}

void Problems::refused(const std::string& op, const std::string& node, const Error& error) {
  add_once(entries_[{op, error.what()}], node);
}

void Problems::raise(const std::string& file, const std::vector<std::string>& ends,
                     const std::vector<std::string>& below) const {
  if (entries_.empty()) return;
  Report report;
  size_t unknown = 0;
  for (const auto& [key, entry] : entries_) {
    Problem problem;
    problem.code = entry.unknown ? "unsupported-op" : "invalid-node";
    problem.subject = key.first;
    problem.message = key.second;
    for (const std::string& node : entry.nodes) problem.places.push_back({node, ""});
    const std::vector<std::string>& cuts = entry.cuts.empty() ? ends : entry.cuts;
    if (!cuts.empty() && cuts.size() <= kMostCuts)
      problem.fix = fmt::format("cut above it: --out_nodes=\"{}\"", fmt::join(cuts, ";"));
    if (!below.empty() && below.size() <= kMostCuts)
      problem.fix +=
          fmt::format("{}feed the rest: --cut=\"{}\"", problem.fix.empty() ? "" : "; or ", fmt::join(below, ";"));
    unknown += entry.unknown;
    report.add(std::move(problem));
  }
  std::string headline =
      fmt::format("{} operator{} cannot be converted", entries_.size(), entries_.size() == 1 ? "" : "s");
  throw ReportError(unknown > 0 ? ErrorKind::unsupported : ErrorKind::invalid_model, file, headline, std::move(report));
}

}  // namespace cairn
