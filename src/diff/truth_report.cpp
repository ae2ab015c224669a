// The errors against float64 as text, JSON and a page.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "diff/report.h"
#include "diff/truth.h"
#include "diff/truth_page.h"
#include "formats/page.h"

namespace cairn::diff {

namespace {

using TruthJson = nlohmann::ordered_json;

TruthJson error_json(const std::optional<judge::Distance>& error) {
  if (!error) return nullptr;
  return {{"rms", error->rms}, {"most", error->most}, {"nonfinite", error->unlike}};
}

TruthJson truth_row_json(const TruthRow& row) {
  return {{"name", name_of(row.row)},
          {"op", row.row.op},
          {"location", row.row.location},
          {"kernel", row.row.kernel},
          {"dims", fmt::format("{}", fmt::join(row.row.dims, ","))},
          {"size", row.row.spread},
          {"mine", error_json(row.mine)},
          {"theirs", error_json(row.theirs)},
          {"ratio", row.ratio},
          {"larger", to_string(row.larger)},
          {"first", row.first}};
}

TruthJson truth_json(const TruthResult& result) {
  TruthJson json = {{"mine", result.mine},           {"theirs", result.theirs},   {"truth", result.truth},
                    {"runs", result.runs},           {"worse", result.worse()},   {"larger", TruthJson::object()},
                    {"outputs", TruthJson::array()}, {"rows", TruthJson::array()}};
  for (Larger larger : {Larger::mine, Larger::theirs, Larger::alike})
    json["larger"][to_string(larger)] = result.count(larger);
  for (const TruthRow& row : result.outputs) json["outputs"].push_back(truth_row_json(row));
  for (const TruthRow& row : result.rows) json["rows"].push_back(truth_row_json(row));
  return json;
}

std::string text_of(const TruthJson& json, int indent) {
  return json.dump(indent, ' ', false, TruthJson::error_handler_t::replace);
}

std::string line_of(const TruthRow& row) {
  std::string text = fmt::format("ours {:.2e}, theirs {:.2e} of {:.2e}", row.mine ? row.mine->rms : NAN,
                                 row.theirs ? row.theirs->rms : NAN, row.row.spread);
  if (row.mine && row.mine->unlike > 0)
    text += fmt::format("; {} of ours are finite on one side only", row.mine->unlike);
  switch (row.larger) {
    case Larger::mine: return text + fmt::format(": OURS is larger, {:.2f} times", row.ratio);
    case Larger::theirs: return text + fmt::format(": theirs is larger, {:.2f} times", 1 / row.ratio);
    default: return text + ": alike";
  }
}

}  // namespace

std::string to_json(const TruthResult& result) { return text_of(truth_json(result), 1) + "\n"; }

std::string to_html(const TruthResult& result) { return fill_page(kTruthPage, text_of(truth_json(result), -1)); }

std::string to_text(const TruthResult& result) {
  std::string text = fmt::format("error against {}, root mean square{}; theirs: {}\n", result.truth,
                                 result.runs > 1 ? fmt::format(" of {} runs", result.runs) : "", result.theirs);
  for (const TruthRow& row : result.outputs) text += fmt::format("output {}: {}\n", name_of(row.row), line_of(row));
  std::vector<const TruthRow*> first;
  for (const TruthRow& row : result.rows)
    if (row.first) first.push_back(&row);
  std::stable_sort(first.begin(), first.end(), [](auto* a, auto* b) { return a->ratio > b->ratio; });
  constexpr size_t kMost = 8;
  if (!first.empty()) text += "\noperators where ours is larger although it is not in what they read:\n";
  for (size_t i = 0; i < std::min(kMost, first.size()); ++i) {
    const Row& row = first[i]->row;
    text += fmt::format("  {}{} ({}, {})\n    {}\n", name_of(row),
                        row.location.empty() ? "" : " (" + row.location + ")", row.op, row.kernel, line_of(*first[i]));
  }
  if (first.size() > kMost) text += fmt::format("  and {} more\n", first.size() - kMost);
  text += fmt::format("\n{} operators: ours is larger in {}, theirs in {}, within {} times of each other in {}\n",
                      result.count(Larger::mine) + result.count(Larger::theirs) + result.count(Larger::alike),
                      result.count(Larger::mine), result.count(Larger::theirs), judge::kLarger,
                      result.count(Larger::alike));
  return text;
}

}  // namespace cairn::diff
