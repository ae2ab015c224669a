// cairn why: for each step of a plan, the source nodes it computes, the kernel chosen, and why others were not; and what
// became of source nodes that have no step.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "ir/result_marks.h"
#include "support/nearest.h"
#include "verbs.h"
#include "why_report.h"

namespace cairn::cli {
namespace {

struct Why {
  ModelArguments model;
  std::string node;
  bool json = false;
};

bool concerns(const Module& module, const PlannedStep& step, const std::string& node) {
  auto matches = [&](const Node& each) {
    for (SourceId id : each.sources)
      if (id < module.sources.size() && module.sources[id].name.find(node) != std::string::npos) return true;
    return std::any_of(each.results.begin(), each.results.end(),
                       [&](const auto& result) { return result->name == node; });
  };
  if (step.control && matches(*step.control)) return true;
  return std::any_of(step.group.nodes.begin(), step.group.nodes.end(),
                     [&](const Node* each) { return matches(*each); });
}

std::vector<Candidate> refused(const PlannedStep& step, const std::vector<const Engine*>& engines) {
  std::vector<Candidate> list;
  if (step.control || step.group.nodes.empty()) return list;
  for (const Engine* engine : engines) {
    for (Candidate& candidate : engine->candidates(step.group)) {
      if (candidate.kernel == step.kernel) return list;
      if (candidate.refusal.empty()) {
        if (engine == step.engine) return list;  // the one chosen, by a more general name
        candidate.refusal = "slower here, by its cost";
      }
      list.push_back(std::move(candidate));
    }
    if (engine == step.engine) return list;
  }
  return list;
}

Json sources_json(const Module& module, const PlannedStep& step) {
  Json list = Json::array();
  for (const Node* node : step.group.nodes)
    for (SourceId id : node->sources)
      if (id < module.sources.size() && !result_mark(module.sources[id])) {
        const Source& source = module.sources[id];
        list.push_back({{"name", source.name}, {"op", source.op}, {"location", source.location}});
      }
  return list;
}

/// Source nodes that the module carries and no step of this plan: constants, what a loop or branch runs, and what is
/// known once the sizes are.
Json elsewhere(const Module& module, const std::vector<PlannedStep>& steps) {
  std::unordered_set<SourceId> told;
  for (const PlannedStep& step : steps)
    for (const Node* node : step.group.nodes) told.insert(node->sources.begin(), node->sources.end());
  std::map<SourceId, const char*> found;
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](const Block& block) {
      const char* place = &block == &function->body ? "known for these sizes" : "inside a loop or branch";
      for (const auto& node : block.nodes)
        for (SourceId id : node->sources)
          if (!told.contains(id))
            found.emplace(id, !node->results.empty() && constant_of(node->result()) ? "constant"
                              : node->op->has(kControl)                             ? "loop or branch"
                                                                                    : place);
    });
  Json list = Json::array();
  for (const auto& [id, reason] : found)
    if (id < module.sources.size() && !result_mark(module.sources[id]))
      list.push_back({{"name", module.sources[id].name}, {"op", module.sources[id].op}, {"reason", reason}});
  return list;
}

int explain(const Why& why) {
  if (is_report(why.model.path)) return explain_report(why.model.path, why.node, why.json);
  auto model = prepare(why.model);
  auto plan = model->plan(choose_dims(*model, why.model));
  const Module& module = model->module();
  std::vector<const Engine*> engines;
  for (const std::string& name :
       why.model.engines.empty() ? std::vector<std::string>{"cpu", "reference"} : split_list(why.model.engines, ','))
    if (const Engine* engine = find_engine(name)) engines.push_back(engine);
  Json steps = Json::array(), gone = Json::array();
  size_t shown = 0;
  for (const PlannedStep& step : plan->steps) {
    if (!why.node.empty() && !concerns(module, step, why.node)) continue;
    ++shown;
    std::vector<Candidate> others = refused(step, engines);
    if (why.json) {
      Json refusals = Json::array();
      for (const auto& other : others) refusals.push_back({{"kernel", other.kernel}, {"reason", other.refusal}});
      steps.push_back({{"sources", sources_json(module, step)},
                       {"kernel", step.kernel},
                       {"flops", step.cost.flops},
                       {"bytes", step.cost.bytes},
                       {"refused", refusals}});
      continue;
    }
    std::string sources = step_sources(module, step);
    std::string kernel =
        fmt::format("{}  {}, {}", step.kernel, count_text(step.cost.flops, "FLOPs"), bytes_text(step.cost.bytes));
    bool fits = sources.size() + 2 + kernel.size() <= kColumns;
    fmt::print("{}{}{}\n", bold(sources), fits ? "  " : "\n  by  ", kernel);
    for (const auto& other : others) fmt::print("  not {}  {}\n", other.kernel, other.refusal);
  }
  for (const auto& [id, removal] : module.removed) {
    if (id >= module.sources.size() || result_mark(module.sources[id])) continue;
    if (module.sources[id].name.find(why.node) == std::string::npos) continue;
    const Source& source = module.sources[id];
    if (why.json)
      gone.push_back({{"name", source.name}, {"op", source.op}, {"reason", to_string(removal)}});
    else if (!why.node.empty())
      fmt::print("{} ({}) has no step: {}\n", source.name, source.op, to_string(removal));
    ++shown;
  }
  if (shown == 0 && !why.node.empty()) {
    std::vector<std::string_view> names;
    for (const Source& source : module.sources) names.push_back(source.name);
    fail(ErrorKind::not_found, why.node, "is no node of the model{}", did_you_mean(why.node, names));
  }
  if (why.json)
    print_json(
        {{"plan", plan->id()}, {"steps", steps}, {"without_step", elsewhere(module, plan->steps)}, {"removed", gone}});
  else if (plan->rest)
    fmt::print("what follows is planned when the sizes born here are known\n");
  return 0;
}

}  // namespace

void add_why(Verb& app, Run& run) {
  auto why = std::make_shared<Why>();
  Verb verb = app.add_verb("why", "the kernel of each step, and why others were not taken");
  add_model_options(verb, why->model, why->json);
  verb.add_option("node", why->node, "source nodes whose names have this in them");
  verb.footer(
      "\nExamples:\n  cairn why model.om\n  cairn why model.om conv1\n  cairn why model.onnx --batch 8 --json\n"
      "  CAIRN_REPORT=report.json python train.py; cairn why report.json");
  verb.callback([why, &run] { run = [why] { return explain(*why); }; });
}

}  // namespace cairn::cli
