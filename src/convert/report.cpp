#include "convert/report.h"

namespace cairn {

namespace {

nlohmann::ordered_json ports_json(const std::vector<Port>& ports) {
  auto json = nlohmann::ordered_json::array();
  for (const Port& port : ports) json.push_back({{"name", port.name}, {"type", to_string(port.type)}});
  return json;
}

}  // namespace

nlohmann::ordered_json reference_json(const ReferenceShare& share) {
  auto steps = nlohmann::ordered_json::array();
  for (const ReferenceStep& step : share.steps)
    steps.push_back({{"op", step.op},
                     {"types", step.types},
                     {"node", step.node},
                     {"reason", step.reason},
                     {"seconds", step.seconds},
                     {"count", step.count}});
  return {{"of_flops", share.of_flops}, {"of_seconds", share.of_seconds}, {"steps", steps}};
}

nlohmann::ordered_json conversion_json(const Conversion& conversion, const Converted& converted) {
  size_t nodes = 0;
  for (const auto& [op, count] : converted.operators) nodes += count;
  nlohmann::ordered_json json = {{"output", conversion.output},
                                 {"bytes", converted.bytes},
                                 {"inputs", ports_json(converted.inputs)},
                                 {"outputs", ports_json(converted.outputs)},
                                 {"nodes", nodes},
                                 {"parameters", converted.parameters}};
  if (converted.totals.steps > 0) json["flops"] = converted.totals.flops, json["peak_bytes"] = converted.totals.arena;
  json["reference"] = reference_json(converted.reference);
  return json;
}

}  // namespace cairn
