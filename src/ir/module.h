// A program: functions of nodes in static single assignment form. Regions stand only inside `if` and `while` and see
// their own parameters alone (captures are explicit inputs). Every node knows the source nodes it came from.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/attribute.h"
#include "ir/op_def.h"
#include "ir/types.h"

namespace cairn {

struct Node;

/// One result of a node, or a parameter of a block.
struct Value {
  Type type;
  Node* producer = nullptr;  // null: block parameter
  uint32_t index = 0;        // which result or parameter
  std::string name;          // for people; unique names are made when printing
};

using SourceId = uint32_t;

/// A node of the model or script that the module was made from.
struct Source {
  std::string framework;  // "tf", "onnx", ...
  std::string name;       // "conv1/Conv2D"
  std::string op;         // "Conv2D"
  std::string location;   // "train.py:41", may be empty
};

/// Why a source node has no node of its own any more.
enum class Removal : uint8_t {
  folded,      // computed at compile time
  fused,       // merged into a node that lists it among its sources
  identity,    // passes its input on unchanged
  dead,        // no output depends on it
  shape_only,  // only its shape was used, and that is known
  training,    // has an effect in training only
};
const char* to_string(Removal removal);

struct Block {
  std::vector<std::unique_ptr<Value>> params;
  std::vector<std::unique_ptr<Node>> nodes;  // in topological order
  std::vector<Value*> results;

  Value* add_param(Type type, std::string name);
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value*> inputs;
  Attributes attributes;
  std::vector<std::unique_ptr<Value>> results;
  std::vector<std::unique_ptr<Block>> regions;
  std::vector<SourceId> sources;

  AttributeView attr() const { return {*op, attributes}; }
  Value* result(size_t i = 0) const { return results[i].get(); }
  bool is(std::string_view name) const { return name == op->name; }
};

struct Function {
  std::string name;
  Block body;                             // param names are the input names
  std::vector<std::string> result_names;  // as many as body.results
  /// State as values: result `first` is the new content of param `second` (variables, random state).
  std::vector<std::pair<size_t, size_t>> updates;
};

struct Module {
  std::string name = "model";
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Source> sources;
  std::map<SourceId, Removal> removed;          // filled by passes for sources without a node
  std::map<std::string, std::string> metadata;  // for people and tools: producer, format, signature, options
  /// The initial random state of that name: key and counter of Philox.
  std::map<std::string, std::array<uint64_t, 3>> random_states;
  /// How a converted model was prepared.
  std::string optimised_by;                  // the Cairn version whose passes optimised it; "": not optimised
  std::vector<std::string> disabled_passes;  // also skipped when it is optimised again
  bool keep_memory = false;                  // no two values share a buffer

  Function* find(std::string_view function_name) const;
  Function& main() const;
  SourceId add_source(Source source);
};

/// Sets each value's index to its position, after a list of results or params was changed.
void renumber(std::vector<std::unique_ptr<Value>>& values);
std::vector<Value*> results_of(const Node& node);
/// The tensor of a `constant` node's result, else null.
const Tensor* constant_of(const Value* value);
/// Whether a constant is a weight of the source model: floats of rank 1 or more with at least one element. In an ONNX
/// graph, and when `module` is null, a constant that has a source node is not a weight.
bool is_weight(const Node& constant, const Module* module);
/// "resnet/conv1 (train.py:41)": name and location of the node's first source, else the name of its result.
std::string where(const Module& module, const Node& node);
/// Deep copy; values map to their copies through `map` when given.
std::unique_ptr<Function> clone(const Function& function, std::unordered_map<const Value*, Value*>* map = nullptr);
std::unique_ptr<Node> clone(const Node& node, std::unordered_map<const Value*, Value*>& map);
Module clone(const Module& module);

/// Checks arity, attributes and input types, then returns the result types by the op's shape rule. Throws Error
/// invalid_model.
std::vector<Type> infer_types(const OpDef& op, const std::vector<Value*>& inputs, const Attributes& attributes,
                              std::span<const std::unique_ptr<Block>> regions = {});

/// The result types that combine the inferred and the declared (`known`) ones; those of a called function are as
/// declared. Throws Error invalid_model when the two contradict each other.
std::vector<Type> refine(const OpDef& op, std::vector<Type> inferred, const std::vector<Type>& known);

/// Calls visit(block) for the block and every region block below it, outer first.
template <class Visit>
void for_each_block(Block& block, Visit&& visit) {
  visit(block);
  for (auto& node : block.nodes)
    for (auto& region : node->regions) for_each_block(*region, visit);
}

}  // namespace cairn
