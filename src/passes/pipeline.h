// The ordered list of passes, and the runner that gives each a name, a timer, a switch, a printer and a verifier.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

struct PipelineOptions {
  std::vector<std::string>
      disabled;             // passes or rules by name or by the platform's name; "ALL": whatever can be left out
  std::string print_after;  // name of a pass, "all", or empty
  std::function<void(const std::string& pass, const std::string& text)> print;
  bool verify = true;
};

struct PassRecord {
  std::string name;
  double milliseconds = 0;
  size_t changes = 0;                   // nodes rewritten or removed
  size_t visits = 0;                    // nodes and edges looked at
  std::map<std::string, size_t> rules;  // how often each rule took effect
  std::vector<std::string> refused;     // replacements that an op refused: faults of ours (refusals.h)
};

/// Optimises the module in place: inlining, state lifting, canonical forms, folding, fusion-friendly rewrites, layout.
/// Valid in, valid out; every source node stays present or is recorded in module.removed. Throws Error when shapes that
/// come to light contradict each other, or state is used in a way that cannot be lifted.
std::vector<PassRecord> optimise(Module& module, const PipelineOptions& options = {});

struct PassInfo {
  std::string name;
  std::string summary;   // one sentence
  std::string platform;  // name in fusion switch files, may be empty
  bool rule = false;
  bool required = false;  // cannot be disabled
};
/// Passes in order, then rules in order.
std::vector<PassInfo> list_passes();
/// The table of list_passes as Markdown: docs/reference/passes.md.
std::string describe_passes();

/// Evaluates nodes whose inputs are constants by their reference kernels, and re-infers types downstream. Used by the
/// pipeline and when a plan specialises a function to input dims. Results above `largest_bytes` are left to run time
/// unless they come out smaller than their inputs. With a module, notes there why source nodes may vanish.
size_t fold_constants(Block& block, Module* module, size_t largest_bytes = 64 << 20);
/// Replaces the node by constants when its results can be computed now; `place` takes constants for further results.
bool fold_node(Node& node, std::vector<std::unique_ptr<Node>>& place, size_t largest_bytes);
/// Types again by the shape rules, in order; values keep what was known before and gain what follows. Throws Error
/// invalid_model when shapes contradict each other; the module tells where.
void infer_block(Block& block, const Module* module = nullptr);
/// The same for one node without its regions; true when something was gained.
bool infer_node(Node& node, const Module* module = nullptr);
/// Removes nodes that no result or effect depends on; the module tells which calls have effects.
size_t remove_dead(Block& block, const Module* module);

}  // namespace cairn
