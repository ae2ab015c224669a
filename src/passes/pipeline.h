// The ordered list of passes, and the runner that gives each a name, a timer, a switch, a printer and a verifier.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"
#include "support/pointer_map.h"

namespace cairn {

struct PipelineOptions {
  std::vector<std::string> disabled;  // passes or rules by our or the platform's name; "ALL": all that are not required
  std::string print_after;            // name of a pass, "all", or empty
  std::function<void(const std::string& pass, const std::string& text)> print;
  /// When the module is verified: never; at the start, after each round and at the end; after each pass that changes something.
  enum class Verify : uint8_t { never, rounds, passes } verify = Verify::passes;
};

struct PassRecord {
  std::string name;
  double milliseconds = 0;
  size_t changes = 0;                   // nodes rewritten or removed
  size_t visits = 0;                    // nodes and edges visited
  std::map<std::string, size_t> rules;  // how often each rule took effect
  std::vector<std::string> refused;     // replacements that an op refused: bugs of ours (refusals.h)
};

/// Optimises the module in place: inlining, state lifting, canonical forms, folding, fusion-friendly rewrites, layout.
/// A valid module stays valid; every source node keeps a node or is recorded in module.removed. Throws Error when
/// inferred shapes contradict each other, or when state is used in a way that cannot be lifted.
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
/// pipeline and when a plan specialises a function to input dims. Results above `largest_bytes` are not folded unless
/// they are smaller than their inputs. Records in `module`, if given, why source nodes may disappear; without it the types
/// must be inferred.
size_t fold_constants(Block& block, Module* module, size_t largest_bytes = 64 << 20);
/// Replaces the node by constants if its results can be computed; constants for results after the first are appended to
/// `place`.
bool fold_node(Node& node, std::vector<std::unique_ptr<Node>>& place, size_t largest_bytes);
/// Infers the types of a block by the shape rules, in order; types only become more precise. Throws Error invalid_model
/// when shapes contradict each other; `module` serves to name the node.
void infer_block(Block& block, const Module* module = nullptr);
/// The same for one node without its regions; returns whether a type became more precise.
bool infer_node(Node& node, const Module* module = nullptr);
/// infer_block for one node that was inferred before and may gain from `changed`, values whose type became more precise or
/// which became constants; its results join them if their types do. `inside`: its regions as well.
void infer_changed(Node& node, PointerSet<const Value*>& changed, bool inside);
/// Dead-code elimination: removes nodes on which no result or side effect depends. `module` tells which calls have
/// effects.
size_t remove_dead(Block& block, const Module* module);

}  // namespace cairn
