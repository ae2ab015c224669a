// The only list that gives the order of passes.
#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "autodiff/prune.h"
#include "ir/text.h"
#include "passes/passes.h"
#include "passes/provenance.h"
#include "passes/refusals.h"
#include "passes/rules.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int kMostRounds = 6;

struct Run {
  Module& module;
  SimplifyOptions simplify;
  std::map<std::string, size_t> effects;  // how often each rule took effect in the current step
};

size_t each_block(Run& run, size_t (*pass)(Block&, Module&)) {
  size_t changes = 0;
  for (const auto& function : run.module.functions) changes += pass(function->body, run.module);
  return changes;
}

size_t infer_all(Run& run) {
  for (const auto& function : run.module.functions) infer_block(function->body, &run.module);
  return 0;
}

size_t simplify_all(Run& run) {
  size_t changes = 0;
  for (const auto& function : run.module.functions)
    changes += simplify(function->body, &run.module, run.simplify, &run.effects);
  return changes;
}

struct Pass {
  const char* name;
  const char* summary;
  size_t (*run)(Run&);
  const char* platform = "";
  bool required = false;
};

// Passes that turn a frontend's module into one function on pure values.
constexpr Pass kFirst[] = {
    {"inline_calls", "bodies of called functions take the place of calls",
     [](Run& run) { return inline_calls(run.module); }, "", true},
    {"expand_user_ops", "operators of users that are written as others become these",
     [](Run& run) { return expand_user_ops(run.module); }, "", true},
    {"lift_state", "variables and random state become inputs and results",
     [](Run& run) { return lift_state(run.module); }, "VariablePrepareOpPass", true},
    {"infer_types", "shapes as far as they are known", infer_all, "InferShapePass", true},
};

constexpr Pass kRemoveDead = {
    "remove_dead", "nodes that no result depends on go",
    [](Run& run) { return each_block(run, [](Block& block, Module& module) { return remove_dead(block, &module); }); },
    "PrunePass", true};

// Repeated until nothing changes, since each may enable others. Passes that count uses run after dead-code elimination.
constexpr Pass kRepeated[] = {
    {"take_constant_branches", "an if whose condition is known becomes the chosen branch",
     [](Run& run) { return each_block(run, take_constant_branches); }, "CondRemovePass"},
    {"simplify_captures", "regions hold their constants and see no more than they use",
     [](Run& run) { return each_block(run, simplify_captures); }, "UnusedArgsCleanPass"},
    {"hoist_invariants", "what a loop computes from values that no turn changes is computed before it",
     [](Run& run) { return each_block(run, [](Block& block, Module&) { return hoist_invariants(block); }); }, ""},
    {"fold_constants", "what depends on constants alone is computed",
     [](Run& run) {
       return each_block(run, [](Block& block, Module& module) { return fold_constants(block, &module); });
     },
     "ConstantFoldingPass"},
    {"merge_equal_nodes", "equal nodes of equal inputs are one",
     [](Run& run) { return each_block(run, merge_equal_nodes); }, "CommonSubexpressionEliminationPass"},
    {"simplify", "the rewrite rules", simplify_all, ""},
    kRemoveDead,
    {"drop_unused_results", "loops and branches yield, carry and take no more than is used",
     [](Run& run) { return each_block(run, [](Block& block, Module& module) { return prune(block, module); }); }, ""},
    {"pad_unique", "different indices of rows to update get room for all, so that dims are known",
     [](Run& run) { return each_block(run, pad_unique); }, ""},
    {"fuse_gathers", "reductions of gathered rows need no memory for these",
     [](Run& run) { return each_block(run, fuse_gathers); }, ""},
    {"sink_transposes", "the layout of every region of nodes by the fewest elements moved",
     [](Run& run) { return each_block(run, sink_transposes); }, "TransOpWithoutReshapeFusionPass"},
    {"sink_reshapes", "reshapes go behind element-wise nodes", [](Run& run) { return each_block(run, sink_reshapes); },
     "ReshapeRecoveryPass"},
};

constexpr Pass kDequantize = {"dequantize_constants",
                              "quantised constants whose integers no product takes become floats",
                              [](Run& run) { return each_block(run, dequantize_constants); }, ""};

constexpr Pass kBucket = {"bucket_collectives", "all_reduce nodes are put together and ordered as they become ready",
                          [](Run& run) { return each_block(run, bucket_collectives); }, "AllReducePass"};

bool names(const std::string& text, const std::string& name, const std::string& platform) {
  if (text == name) return true;
  if (platform.empty() || text.empty()) return false;
  return text == platform || text + "Pass" == platform || text + "FusionPass" == platform;
}

bool disabled(const PipelineOptions& options, const PassInfo& pass) {
  if (pass.required) return false;
  return std::any_of(options.disabled.begin(), options.disabled.end(),
                     [&](const std::string& text) { return text == "ALL" || names(text, pass.name, pass.platform); });
}

class Pipeline {
  using Verify = PipelineOptions::Verify;

 public:
  Pipeline(Module& module, const PipelineOptions& options) : run_{module, {}, {}}, options_(options) {
    for (const PassInfo& pass : list_passes()) {
      if (!disabled(options, pass)) continue;
      off_.insert(pass.name);
      if (pass.rule) run_.simplify.disabled.insert(pass.name);
    }
    run_.simplify.fold = !off_.count("fold_constants");
  }

  std::vector<PassRecord> run() {
    if (options_.verify != Verify::never) verify(run_.module);
    SourceGraph sources(run_.module);
    for (const Pass& pass : kFirst) step(pass);
    repeat();
    if (step(kDequantize) > 0) repeat();
    step(kBucket);
    step(kRemoveDead);
    end_round();
    sources.explain(run_.module);
    return std::move(records_);
  }

 private:
  void repeat() {
    size_t changes = 1;
    for (int round = 0; round < kMostRounds && changes > 0; ++round) {
      changes = 0;
      for (const Pass& pass : kRepeated) changes += step(pass);
      end_round();
    }
  }

  void end_round() {
    if (options_.verify == Verify::rounds && changed_) check("of this round");
    changed_ = false;
  }

  size_t step(const Pass& pass) {
    if (off_.count(pass.name)) return 0;
    stop_point();
    run_.effects.clear();
    const size_t before = visits;
    auto start = std::chrono::steady_clock::now();
    size_t changes = pass.run(run_);
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    records_.push_back({pass.name, spent.count(), changes, visits - before, run_.effects, take_refusals()});
    if (options_.print && (options_.print_after == "all" || options_.print_after == pass.name))
      options_.print(pass.name, print(run_.module).text);
    changed_ = changed_ || changes > 0;
    if (options_.verify == Verify::passes && changes > 0) check(pass.name);
    return changes;
  }

  // An Error here may be the model's fault: inference may reveal shapes that contradict each other.
  void check(const char* pass) const {
    try {
      verify(run_.module);
    } catch (const Error& fault) {
      throw Error(fault.kind(), fault.where(), fmt::format("{} (seen after pass {})", fault.message(), pass));
    }
  }

  Run run_;
  const PipelineOptions& options_;
  std::set<std::string> off_;
  bool changed_ = false;  // since the module was verified
  std::vector<PassRecord> records_;
};

}  // namespace

std::vector<PassRecord> optimise(Module& module, const PipelineOptions& options) {
  return Pipeline(module, options).run();
}

std::vector<PassInfo> list_passes() {
  std::vector<PassInfo> list;
  for (const Pass& pass : kFirst) list.push_back({pass.name, pass.summary, pass.platform, false, pass.required});
  for (const Pass& pass : kRepeated) list.push_back({pass.name, pass.summary, pass.platform, false, pass.required});
  list.push_back({kDequantize.name, kDequantize.summary, kDequantize.platform, false, kDequantize.required});
  list.push_back({kBucket.name, kBucket.summary, kBucket.platform, false, kBucket.required});
  for (const Rule* rule : all_rules()) list.push_back({rule->name, rule->summary, rule->platform, true, false});
  return list;
}

std::string describe_passes() {
  std::string text =
      "# Passes and rules\n\nWritten from the tables in `src/passes`. Names can be given to `--disable`; the "
      "platform's name "
      "works in fusion switch files.\n";
  for (bool rules : {false, true}) {
    text += rules ? "\n## Rules of `simplify`\n\n| rule | what it does | platform's name |\n|---|---|---|\n"
                  : "\n## Passes, in order\n\n| pass | what it does | platform's name | can be disabled "
                    "|\n|---|---|---|---|\n";
    for (const PassInfo& pass : list_passes()) {
      if (pass.rule != rules) continue;
      text += fmt::format("| {} | {} | {} |", pass.name, pass.summary, pass.platform);
      text += rules ? "\n" : pass.required ? " no |\n" : " yes |\n";
    }
  }
  return text;
}

}  // namespace cairn
