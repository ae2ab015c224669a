#include "quantize/report.h"

#include <cmath>

#include "formats/page.h"
#include "model/om_file.h"
#include "quantize/page.h"

namespace cairn::quantize {

namespace {

using Json = nlohmann::ordered_json;

Json score_json(const Score& score) {
  Json json = {{"sqnr", score.sqnr}, {"error", score.error()}};
  if (score.accuracy) json["accuracy"] = *score.accuracy;
  return json;
}

Json layer_json(const LayerResult& layer) {
  Json json = {{"name", layer.name},
               {"op", layer.op},
               {"location", layer.location},
               {"quantised", layer.quantised},
               {"rounds_data", layer.rounds_data},
               {"reason", layer.reason},
               {"bytes_before", layer.bytes_before},
               {"bytes_after", layer.bytes_after}};
  if (layer.sqnr) json["sqnr"] = *layer.sqnr;
  if (layer.extent) json["low"] = layer.extent->low, json["high"] = layer.extent->high;
  if (layer.steps) json["scale"] = layer.steps->scale, json["zero"] = layer.steps->zero;
  return json;
}

}  // namespace

std::string budget_text(const Budget& budget) {
  if (budget.points) return fmt::format("accuracy may fall by {:g} points", *budget.points);
  if (budget.error)
    return fmt::format("the error of the results may be {:.3g} % ({:.1f} dB)", 100 * *budget.error,
                       -20 * std::log10(std::max(*budget.error, 1e-10)));
  return "none";
}

std::map<std::string, std::string> recorded_options(const Options& options) {
  std::map<std::string, std::string> record = {{"method", std::string(name_of(options.method))}};
  if (options.weights_only != 0) record["weights_only"] = std::to_string(options.weights_only);
  if (options.weights_only == 4) record["group"] = std::to_string(options.group);
  if (options.method == Method::percentile) record["percentile"] = fmt::format("{:g}", options.percentile);
  if (!options.budget.empty()) record["budget"] = options.budget;
  if (!options.keep.empty()) record["keep"] = fmt::format("{}", fmt::join(options.keep, ";"));
  return record;
}

Json report_json(const Outcome& outcome, const Options& options, const Provenance& provenance) {
  Json json = {{"output", provenance.output}};
  if (outcome.original) json["original"] = score_json(*outcome.original);
  if (outcome.whole) json["whole"] = score_json(*outcome.whole);
  if (outcome.final) json["final"] = score_json(*outcome.final);
  json["within"] = outcome.within;
  json["budget"] = outcome.original ? budget_text(outcome.budget) : "none: there is no data";
  json["bytes_before"] = outcome.bytes_before, json["bytes_after"] = outcome.bytes_after;
  if (outcome.seconds_after > 0)
    json["seconds_before"] = outcome.seconds_before, json["seconds_after"] = outcome.seconds_after;
  json["examples"] = outcome.examples;
  json["layers"] = Json::array();
  for (const LayerResult& layer : outcome.layers) json["layers"].push_back(layer_json(layer));
  json["skipped"] = outcome.skipped, json["steps"] = outcome.steps, json["options"] = recorded_options(options);
  json["producer"] = kProducer;
  json["provenance"] = {{"model", provenance.model},
                        {"sha256", provenance.sha256},
                        {"data", provenance.data},
                        {"output", provenance.output}};
  return json;
}

std::string report_page(const Outcome& outcome, const Options& options, const Provenance& provenance) {
  return fill_page(kQuantisationPage,
                   report_json(outcome, options, provenance).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace cairn::quantize
