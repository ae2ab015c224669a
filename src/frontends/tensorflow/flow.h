// Graphs with TensorFlow 1's control flow while it is raised: edges resolved, and functions cut out of a list of nodes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "frontends/tensorflow/functions.h"

namespace cairn::tensorflow {

inline constexpr int kMostNested = 64;

/// `op`, or its form for references of variables.
bool is_op(const Node& node, std::string_view op);

/// Where an input comes from; index kControl is a control edge.
struct End {
  size_t node;
  int index;
  std::string_view text;
};

/// The graph that is raised: its names and texts, and which nodes must run whatever is asked for.
class Raising {
 public:
  /// With `effects` control edges order nodes, and what writes variables stays whether a result depends on it or not.
  Raising(GraphDef& all, bool keep_effects);

  GraphDef& graph;
  const bool effects;

  std::string_view keep(std::string text) { return graph.model->keep(std::move(text)); }
  /// A name in the scope of `near` that no node has.
  std::string_view fresh(std::string_view near, std::string_view what);
  /// Whether the node writes a variable, itself or in a body that was raised.
  bool has_effects(const Node& node) const;
  /// The node made with these bodies runs for its effects when one of them does.
  void inherit_effects(const Node& made, const FunctionDef& body);

 private:
  std::set<std::string, std::less<>> used_;
  std::map<std::string, size_t> last_number_;  // of a name that was asked for several times
  std::set<std::string_view> effectful_;
};

/// A list of nodes with its edges resolved.
struct Flow {
  std::vector<Node>& nodes;
  bool effects;
  NodeIndex index;
  std::vector<std::vector<End>> inputs;

  Flow(std::vector<Node>& list, bool keep_effects);
  void resolve(size_t i);
  void add(Node node);
  /// Data input `number` of a control-flow node.
  const End& data(size_t node, size_t number) const;
  bool at(const End& end, std::string_view op) const { return is_op(nodes[end.node], op); }
  /// The same without identities in between.
  const End& behind(const End& end) const;
  /// A control edge from the Identity behind a Switch says in which branch a node without inputs stands. (In a loop it
  /// says in which frame, which does not matter.)
  bool is_pivot(const End& end) const;
  /// Whether the edge tells where the node stands: data do, and control edges that order nodes.
  bool binds(size_t node, const End& end) const;
  /// The NextIteration that leads back to a Merge, if it belongs to a loop.
  std::optional<size_t> next_of(size_t merge) const;
  /// The nodes so that each stands behind those it reads, the way round through NextIteration left out.
  std::vector<size_t> order() const;
};

/// A function whose nodes are copies of those above its results.
class Body {
 public:
  /// What stands for a tensor inside: an argument, or nothing when its node comes along.
  using Argument = std::function<std::optional<std::string_view>(const End&)>;
  /// Where the node at a control edge stands: `argument` when it comes in with the arguments.
  enum class Place { inside, outside, argument };
  using Placing = std::function<Place(const End&)>;

  Body(const Flow& flow, Raising& raising, std::string_view name, Argument argument, Placing place);

  /// Arguments stand among the nodes as well, so that what is raised inside finds them.
  void add_argument(std::string_view name);
  void add_result(std::string_view text);
  /// A node that runs though no result depends on it.
  void add_effect(size_t node);
  /// The name inside of a tensor outside.
  std::string_view inner(const End& end);
  FunctionDef finish();

  /// Nodes outside that those inside come after, as control inputs.
  const std::set<std::string_view>& waits() const { return waits_; }
  /// Copied nodes, by their number outside.
  const std::set<size_t>& inside() const { return inside_; }

  FunctionDef function;

 private:
  void follow_control(const End& end, Node& copy);

  const Flow& flow_;
  Raising& raising_;
  Argument argument_;
  Placing place_;
  std::set<size_t> inside_;
  std::vector<size_t> pending_;
  std::set<std::string_view> waits_;
};

/// Puts the gradient of each TensorArray beside the array, as a node of this op.
inline constexpr std::string_view kArrayGradient = "_CairnArrayGradient";
void hoist_array_gradients(Raising& raising);

/// Puts a While for each loop frame of the graph, inner ones first.
void raise_loops(Raising& raising);

/// Puts an If for each group of Merges that wait for one condition, in the graph's nodes or those of a body, and inside
/// the branches. Effects of `body` are told by the nodes that have them then.
void raise_branches(std::vector<Node>& nodes, FunctionDef* body, Raising& raising, int level);

/// A result that only the other branch has, which nobody reads.
inline constexpr std::string_view kAbsent = "_CairnAbsent";

}  // namespace cairn::tensorflow
