#include "frontends/problems.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr size_t kMostCuts = 8, kMostTries = 12;

}  // namespace

void Problems::add_once(Entry& entry, const Place& node) {
  ++count_;
  if (entry.seen.insert(node.node).second) entry.nodes.push_back(node);
}

void Problems::unsupported(const std::string& op, const Place& node, const std::vector<std::string>& cuts) {
  Entry& entry = entries_[{op, "not supported"}];
  entry.unknown = true;
  add_once(entry, node);
  for (const std::string& cut : cuts)
    if (std::find(entry.cuts.begin(), entry.cuts.end(), cut) == entry.cuts.end()) entry.cuts.push_back(cut);
}

void Problems::refused(const std::string& op, const Place& node, const Error& error) {
  add_once(entries_[{op, error.what()}], node);
}

static constexpr const char* kNoCut = "no cut that was tried leaves a model without it";

std::string Problems::fix(const Entry& entry, const Remedies& remedies,
                          const std::function<bool(const std::vector<std::string>&, bool)>& holds) {
  std::string text;
  for (const std::vector<std::string>* ends : {&entry.cuts, &remedies.ends})
    if (text.empty() && holds(*ends, true))
      text = fmt::format("cut above it: --out_nodes=\"{}\"", fmt::join(*ends, ";"));
  if (holds(remedies.below, false))
    text += fmt::format("{}feed the rest: --cut=\"{}\"", text.empty() ? "" : "; or ", fmt::join(remedies.below, ";"));
  return text.empty() ? kNoCut : text;
}

namespace {

/// Whether the op is of a custom domain, such as "acme::Gelu" or "Acme>Gelu".
bool is_of_domain(std::string_view op) {
  return op.find("::") != std::string_view::npos || op.find('>') != std::string_view::npos;
}

}  // namespace

void Problems::raise(const std::string& file, const Remedies& remedies) const {
  if (entries_.empty()) return;
  std::map<std::pair<std::vector<std::string>, bool>, bool> tried;
  auto holds = [&](const std::vector<std::string>& nodes, bool as_outputs) {
    if (nodes.empty() || nodes.size() > kMostCuts) return false;
    auto [known, fresh] = tried.try_emplace({nodes, as_outputs}, false);
    if (!fresh || tried.size() > kMostTries) return known->second;
    try {
      remedies.attempt(as_outputs ? nodes : std::vector<std::string>(),
                       as_outputs ? std::vector<std::string>() : nodes);
      known->second = true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory) throw;
    }
    return known->second;
  };
  Report report;
  size_t unknown = 0;
  for (const auto& [key, entry] : entries_) {
    Problem problem;
    problem.code = entry.unknown ? "unsupported-op" : "invalid-node";
    problem.subject = key.first;
    problem.message = key.second;
    problem.places = entry.nodes;
    if (remedies.attempt) problem.fix = fix(entry, remedies, holds);
    if (entry.unknown && is_of_domain(key.first)) {
      const bool cut = !problem.fix.empty() && problem.fix != kNoCut;
      problem.fix = "load the library that has it: --op-library=FILE" + (cut ? "; or " + problem.fix : "");
    }
    unknown += entry.unknown;
    report.add(std::move(problem));
  }
  std::string headline =
      fmt::format("{} operator{} cannot be converted", entries_.size(), entries_.size() == 1 ? "" : "s");
  throw ReportError(unknown > 0 ? ErrorKind::unsupported : ErrorKind::invalid_model, file, headline, std::move(report));
}

}  // namespace cairn
