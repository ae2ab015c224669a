// What a quantisation was and did, as JSON and as one self-contained page.
#pragma once

#include <nlohmann/json.hpp>

#include "quantize/quantise.h"

namespace cairn::quantize {

/// Where it came from, for people.
struct Provenance {
  std::string model, sha256, data, output;
};

/// {"original", "whole", "final": {"sqnr", "error", "accuracy"}, "budget", "within", "bytes_before", "bytes_after",
/// "seconds_before", "seconds_after" (a batch), "layers": [{"name", "op", "location", "quantised", "reason", "sqnr", "low", "high", "scale", "zero", "bytes_before",
/// "bytes_after"}], "skipped", "steps", "options", "provenance"}; what is not known is left out.
nlohmann::ordered_json report_json(const Outcome& outcome, const Options& options, const Provenance& provenance);
std::string report_page(const Outcome& outcome, const Options& options, const Provenance& provenance);

/// "accuracy may fall by 0.5 points", "the results' error may be 10 %".
std::string budget_text(const Budget& budget);
/// What is recorded in the metadata of the model that is written.
std::map<std::string, std::string> recorded_options(const Options& options);

}  // namespace cairn::quantize
