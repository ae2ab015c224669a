#include "support/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cairn {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownPlaces = 2;

std::string places_text(const Problem& problem) {
  std::string text;
  for (size_t i = 0; i < std::min(problem.places.size(), kShownPlaces); ++i)
    text += (i ? ", " : "") + to_string(problem.places[i]);
  if (problem.places.size() > kShownPlaces) text += fmt::format(" and {} more", problem.places.size() - kShownPlaces);
  return text;
}

/// Texts may come from malformed files, so bytes that are not UTF-8 are replaced.
std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string to_string(const Problem::Place& place) {
  if (place.location.empty()) return place.node;
  return place.node.empty() ? place.location : fmt::format("{} ({})", place.node, place.location);
}

const char* to_string(Severity severity) {
  constexpr const char* kNames[] = {"note", "warning", "error"};
  return kNames[static_cast<int>(severity)];
}

void Report::add(Problem problem) {
  for (Problem& known : problems_) {
    if (known.code != problem.code || known.subject != problem.subject || known.message != problem.message ||
        known.fix != problem.fix)
      continue;
    for (auto& place : problem.places) known.places.push_back(std::move(place));
    return;
  }
  problems_.push_back(std::move(problem));
}

void Report::add(const Report& other) {
  for (const Problem& problem : other.problems_) add(problem);
}

size_t Report::count(Severity severity) const {
  return static_cast<size_t>(std::count_if(problems_.begin(), problems_.end(),
                                           [&](const Problem& problem) { return problem.severity == severity; }));
}

std::string Report::text() const {
  size_t subject = 0, nodes = 0, places = 0;
  std::vector<std::pair<std::string, std::string>> columns;
  for (const Problem& problem : problems_) {
    size_t n = problem.places.size();
    columns.emplace_back(n == 0 ? "" : fmt::format("{} node{}", n, n == 1 ? "" : "s"), places_text(problem));
    subject = std::max(subject, problem.subject.size());
    nodes = std::max(nodes, columns.back().first.size());
    places = std::max(places, columns.back().second.size());
  }
  places = std::min<size_t>(places, 48);
  std::string text;
  for (size_t i = 0; i < problems_.size(); ++i) {
    const Problem& problem = problems_[i];
    text += fmt::format("  {:<{}}  ", problem.subject, subject);
    if (nodes) text += fmt::format("{:<{}}  {:<{}}  ", columns[i].first, nodes, columns[i].second, places);
    if (problem.severity != Severity::error) text += fmt::format("{}: ", to_string(problem.severity));
    text += problem.message;
    if (!problem.fix.empty()) text += "; " + problem.fix;
    text += '\n';
  }
  return text;
}

std::string Report::json() const {
  Json list = Json::array();
  for (const Problem& problem : problems_) {
    Json places = Json::array();
    for (const auto& place : problem.places) places.push_back({{"node", place.node}, {"location", place.location}});
    list.push_back({{"code", problem.code},
                    {"severity", to_string(problem.severity)},
                    {"subject", problem.subject},
                    {"message", problem.message},
                    {"fix", problem.fix},
                    {"places", std::move(places)}});
  }
  return dump({{"problems", std::move(list)}});
}

std::string Report::sarif(const std::string& file) const {
  Json results = Json::array();
  for (const Problem& problem : problems_) {
    Json locations = Json::array();
    auto locate = [&](const std::string& location, const std::string& node) {
      size_t colon = location.rfind(':');
      bool numbered = colon != std::string::npos && colon + 1 < location.size() &&
                      location.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                      location.size() - colon < 10;
      Json physical = {{"artifactLocation", {{"uri", location.empty() ? file : location.substr(0, colon)}}}};
      if (numbered) physical["region"] = {{"startLine", std::max(1, std::stoi(location.substr(colon + 1)))}};
      Json entry = {{"physicalLocation", std::move(physical)}};
      if (!node.empty()) entry["logicalLocations"] = Json::array({{{"fullyQualifiedName", node}}});
      locations.push_back(std::move(entry));
    };
    for (const auto& place : problem.places) locate(place.location, place.node);
    if (problem.places.empty()) locate("", "");
    std::string message = problem.subject.empty() ? problem.message : problem.subject + ": " + problem.message;
    if (!problem.fix.empty()) message += "; " + problem.fix;
    results.push_back({{"ruleId", problem.code},
                       {"level", to_string(problem.severity)},
                       {"message", {{"text", std::move(message)}}},
                       {"locations", std::move(locations)}});
  }
  Json run = {{"tool", {{"driver", {{"name", "cairn"}}}}}, {"results", std::move(results)}};
  return dump({{"version", "2.1.0"},
               {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
               {"runs", Json::array({std::move(run)})}});
}

namespace {

std::string with_table(const std::string& headline, const Report& report) {
  std::string table = report.text();
  if (!table.empty()) table.pop_back();
  return headline + "\n" + table;
}

}  // namespace

ReportError::ReportError(ErrorKind kind, std::string where, const std::string& headline, Report report)
    : Error(kind, where, with_table(clean(headline), report), AsItIs{}), report_(std::move(report)),
      headline_(clean(headline)) {}

}  // namespace cairn
