#include "diff/report.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "diff/page.h"
#include "formats/npz.h"
#include "formats/page.h"
#include "ir/text.h"
#include "model/om_file.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::diff {

std::string name_of(const Row& row) {
  std::string name = row.key.node;
  if (row.key.index > 0) name += fmt::format(":{}", row.key.index);
  if (row.key.turn > 0) name += fmt::format(" (execution {})", row.key.turn + 1);
  return name;
}

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json number(double value) {
  if (std::isnan(value)) return nullptr;
  return std::isinf(value) ? Json("inf") : Json(value);
}

Json row_json(const Row& row) {
  return {{"name", name_of(row)},
          {"op", row.op},
          {"location", row.location},
          {"kernel", row.kernel},
          {"dtype", row.dtype},
          {"dims", fmt::format("{}", fmt::join(row.dims, ","))},
          {"error", number(row.error)},
          {"allowed", number(row.allowed)},
          {"spread", number(row.spread)},
          {"nonfinite", row.nonfinite},
          {"off", row.off},
          {"suspect", row.suspect},
          {"finding", row.finding}};
}

std::string cause_of(const Culprit& culprit) {
  if (culprit.kernel) return "the kernel: the reference engine computes this operator right from the same values";
  if (!culprit.pass.empty())
    return fmt::format("the pass {}{}", culprit.pass,
                       culprit.pass_alone ? ": without it the outputs agree" : ", together with those before it");
  if (!culprit.remark.empty()) return culprit.remark;
  return "no pass: the graph in the file gives it as well";
}

/// What the step does beside the node that gives its result, and which of them it is.
std::string held_by(const Culprit& culprit) {
  constexpr size_t kMost = 6;
  const size_t count = culprit.sources.size();
  std::string text;
  for (size_t i = 0; i < std::min(kMost, culprit.unpaired.size()); ++i)
    text += fmt::format("  it reads {}, which has no counterpart and may be wrong instead\n", culprit.unpaired[i]);
  if (count < 2) return text;
  text += "  one step does ";
  for (size_t i = 0; i < std::min(kMost, count); ++i)
    text += (i ? ", " : "") + culprit.sources[i].substr(culprit.sources[i].find(':') + 1);
  if (count > kMost) text += fmt::format(" and {} more", count - kMost);
  if (!culprit.inner) return text + "\n";
  const Row& inner = *culprit.inner;
  return text + fmt::format("\n  done one by one, the first that differs is {}{} ({}){}\n", name_of(inner),
                            inner.location.empty() ? "" : " (" + inner.location + ")", inner.op,
                            inner.nonfinite ? "" : fmt::format(", off by {:.3g}", inner.error));
}

Json culprit_json(const Culprit& culprit) {
  Json json = row_json(culprit.row);
  json["local_error"] = number(culprit.local_error);
  json["confirmed"] = culprit.confirmed;
  json["cause"] = cause_of(culprit);
  json["pass"] = culprit.pass;
  json["is_kernel"] = culprit.kernel;
  json["kernel_name"] = culprit.row.kernel;
  json["sources"] = culprit.sources;
  json["unpaired"] = culprit.unpaired;
  json["inner"] = culprit.inner ? row_json(*culprit.inner) : Json();
  return json;
}

Json result_json(const Result& result) {
  Json json = {{"equal", result.equal},    {"mine", result.mine},         {"golden", result.golden},
               {"runs", result.runs},      {"unpaired", result.unpaired}, {"culprits", Json::array()},
               {"outputs", Json::array()}, {"rows", Json::array()}};
  for (const Culprit& culprit : result.culprits) json["culprits"].push_back(culprit_json(culprit));
  for (const Row& row : result.outputs) json["outputs"].push_back(row_json(row));
  for (const Row& row : result.rows) json["rows"].push_back(row_json(row));
  return json;
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Result& result) { return dumped(result_json(result), 1) + "\n"; }

std::string to_html(const Result& result) { return fill_page(kDifferencePage, dumped(result_json(result), -1)); }

std::string to_text(const Result& result) {
  std::string text;
  for (const Row& row : result.outputs)
    text += fmt::format("output {}: {}, largest difference {:.3g}, rounding explains {:.3g}{}\n", name_of(row),
                        row.off ? "DIFFERS" : "agrees", row.error, row.allowed,
                        row.nonfinite ? fmt::format("; {} values are finite on one side only", row.nonfinite) : "");
  for (const Culprit& culprit : result.culprits) {
    const Row& row = culprit.row;
    text += fmt::format("\nfirst wrong: {}{} ({}, {})\n", name_of(row),
                        row.location.empty() ? "" : " (" + row.location + ")", row.op, row.kernel);
    text += held_by(culprit);
    if (!row.finding.empty()) text += fmt::format("  {}\n", row.finding);
    text += fmt::format("  off by {:.3g}, rounding explains {:.3g}; by itself, on right inputs, {:.3g}\n", row.error,
                        row.allowed, culprit.local_error);
    text += fmt::format("  made by {}\n", cause_of(culprit));
    if (!culprit.confirmed) text += "  right values in its place do not mend what follows: not certain\n";
  }
  if (!result.equal && result.culprits.empty())
    text += "\nno operator inside has a counterpart that differs: both have too few values in common\n";
  text += fmt::format("\n{}: {} values compared, {} without a counterpart, {} runs of the model\n",
                      result.equal ? "no difference beyond rounding" : "DIFFERS", result.rows.size(), result.unpaired,
                      result.runs);
  return text;
}

void write_reproducer(const Culprit& culprit, const std::string& folder) {
  make_folders(folder);
  auto at = [&](const char* name) { return (fs::path(folder) / name).string(); };
  write_file(at("operator.txt"), print(culprit.program).text);
  write_om(culprit.program, {}, at("operator.om"));
  write_npz(at("inputs.npz"), culprit.inputs);
  write_npz(at("expected.npz"), culprit.expected);
  write_npz(at("found.npz"), culprit.found);
  write_file(
      at("run.sh"),
      "#!/bin/sh\n# The operator alone, on right inputs, against what it should make of them; exit 2: it differs.\n"
      "cd \"$(dirname \"$0\")\" && cairn diff operator.om expected.npz --inputs inputs.npz -o again\n");
}

}  // namespace cairn::diff
