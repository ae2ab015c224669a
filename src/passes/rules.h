// Rewrite rules as rows of tables: pattern, condition, replacement, and an example that is also the rule's test.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace cairn {

/// The values and nodes that a pattern bound, and functions to build the replacement.
class Match {
 public:
  Match(Rewriter& rewriter, Node& root) : rewriter_(rewriter), root_(root) {}

  Value* operator[](std::string_view name) const;       // x
  const Tensor& constant(std::string_view name) const;  // c!
  Node& node(std::string_view name) const;              // conv2d(...), or the name given after ':'
  Node& root() const { return root_; }
  const Type& type() const { return root_.result()->type; }  // of the replaced value

  /// Treats a node that the pattern does not name as one of the matched nodes.
  void absorb(Node& node);
  /// The result of a new node, which is folded and simplified at once if possible.
  Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
  Value* constant(Tensor value);
  /// The same op and attributes as `node` on other inputs, with some attributes set.
  Value* like(const Node& node, std::vector<Value*> inputs, const Attributes& changed = {});

 private:
  friend class RuleEngine;
  template <class T>
  using Bound = std::vector<std::pair<std::string_view, T>>;

  Rewriter& rewriter_;
  Node& root_;
  class RuleEngine* engine_ = nullptr;
  Bound<Value*> values_;
  Bound<Node*> nodes_;
};

/// Pattern text: `op(a, b)`; `op|op(...)` for either op; `x` for any value (a name used twice, or the name of a node,
/// stands for the same value); `c!` for a constant; `~` after a node: it has no other use; `:name` after a node: its
/// name instead of the op's; `...` for any further inputs. The inputs of commutative ops match in both orders.
struct Rule {
  const char* name;
  const char* summary;
  const char* pattern;
  bool (*where)(const Match&);       // null: always
  Value* (*replace)(Match&);         // returns null when the rule does not apply after all
  Removal removal = Removal::fused;  // of the inner matched nodes; identity and folded: of the root as well
  const char* platform = "";         // name of the corresponding rule in fusion switch files
  const char* in = "";               // "(%x: f32[2]) -> (%y: f32[2]) { ... return %y }"
  const char* out = "";
};

/// Whether the value `x` of the pattern surely has the type of the replaced value.
bool keeps_type(const Match& m);

std::span<const Rule> canonical_rules();     // identities and normal forms
std::span<const Rule> shape_rules();         // transposes, reshapes, shapes known early
std::span<const Rule> slice_rules();         // slices, and what is one
std::span<const Rule> arithmetic_rules();    // element-wise algebra
std::span<const Rule> contraction_rules();   // constants into the weights of convolutions and matrix products
std::span<const Rule> pattern_rules();       // compositions that equal one op
std::span<const Rule> quantisation_rules();  // integers instead of the floats made of them
/// All tables in order.
std::span<const Rule* const> all_rules();

struct SimplifyOptions {
  std::set<std::string, std::less<>> disabled;  // names of rules
  bool rules = true;
  bool fold = true;  // fold constants as they appear
  size_t largest_bytes = 64 << 20;
};

/// Applies the rules to the block and its regions in one walk; new nodes are simplified when they are made. Counts in
/// `effects` how often each rule took effect.
size_t simplify(Block& block, Module* module, const SimplifyOptions& options,
                std::map<std::string, size_t>* effects = nullptr);

}  // namespace cairn
