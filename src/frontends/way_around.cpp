#include "frontends/way_around.h"

namespace cairn {

Places inputs_below(const DataFlow& flow, Places failed) {
  auto sources = [&](uint32_t node) -> const std::vector<uint32_t>& { return flow.sources[node]; };
  const Places needed = closure(flow.outputs, sources);
  std::erase_if(failed, [&](uint32_t node) { return !needed.contains(node); });
  std::vector<std::vector<uint32_t>> users(flow.sources.size());
  for (uint32_t node : needed)
    for (uint32_t source : sources(node)) users[source].push_back(node);
  Places above_failed;
  for (uint32_t node : failed) above_failed.insert(sources(node).begin(), sources(node).end());
  above_failed = closure(above_failed, sources);
  Places inputs;
  bool reaches_output = false;
  closure(failed, [&](uint32_t node) {
    reaches_output = reaches_output || flow.outputs.contains(node);
    const bool ends_here = !above_failed.contains(node) && flow.can_be_input(node);
    if (ends_here) inputs.insert(node);
    return ends_here || reaches_output ? std::vector<uint32_t>() : users[node];
  });
  return reaches_output ? Places() : inputs;
}

}  // namespace cairn
