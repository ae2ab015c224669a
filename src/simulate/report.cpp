// A prediction as JSON and as a page.
#include <nlohmann/json.hpp>

#include "formats/page.h"
#include "simulate/page.h"
#include "simulate/predict.h"

namespace cairn::simulate {
namespace {

using Json = nlohmann::ordered_json;

Json link_json(const Link& link) { return {{"latency", link.latency}, {"bandwidth", link.bandwidth}}; }

Json whole(const Workload& workload, const Network& network, const std::vector<Prediction>& predictions,
           double bucket) {
  Json gradients = Json::array(), made = Json::array();
  for (const Gradient& each : workload.gradients)
    gradients.push_back({{"name", each.name}, {"bytes", each.bytes}, {"ready", each.ready}});
  for (const Prediction& each : predictions)
    made.push_back({{"ranks", each.ranks},
                    {"seconds", each.seconds},
                    {"computing", each.computing},
                    {"exchanging", each.exchanging},
                    {"exposed", each.exposed},
                    {"waiting", each.waiting},
                    {"hidden", each.hidden()},
                    {"buckets", each.buckets},
                    {"algorithm", each.algorithm},
                    {"efficiency", each.efficiency(workload.seconds)}});
  return {{"workload",
           {{"name", workload.name},
            {"seconds", workload.seconds},
            {"spread", workload.spread},
            {"steps", workload.steps},
            {"threads", workload.threads},
            {"bytes", workload.bytes()},
            {"gradients", std::move(gradients)}}},
          {"network",
           {{"between", link_json(network.between)},
            {"inside", link_json(network.inside)},
            {"ranks_per_host", network.ranks_per_host},
            {"cores_per_host", network.cores_per_host},
            {"topology", network.topology},
            {"reduction", network.reduction},
            {"processor_share", network.processor_share}}},
          {"bucket", bucket},
          {"predictions", std::move(made)}};
}

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_of(const Workload& workload, const Network& network, const std::vector<Prediction>& predictions,
                    double bucket) {
  return dumped(whole(workload, network, predictions, bucket), 2);
}

std::string picture(const Workload& workload, const Network& network, const std::vector<Prediction>& predictions,
                    double bucket) {
  return fill_page(kPage, dumped(whole(workload, network, predictions, bucket), -1));
}

}  // namespace cairn::simulate
