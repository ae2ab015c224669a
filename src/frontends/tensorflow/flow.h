// Graphs with TensorFlow 1's control flow while it is raised: what its nodes say, and functions cut out of a list of nodes.
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

/// A list of nodes and what its edges mean. Nodes are added behind the others, so that edges stay valid.
struct Flow {
  std::vector<Node>& nodes;
  bool effects;

  /// The place of the node.
  uint32_t add(Node node);
  /// Data input `number` of a control-flow node.
  Edge data(uint32_t node, size_t number) const { return data_input(nodes[node], number); }
  bool at(Edge edge, std::string_view op) const { return is_op(nodes[edge.node], op); }
  /// The same without identities in between.
  Edge behind(Edge edge) const;
  /// A control edge from the Identity behind a Switch says in which branch a node without inputs stands. (In a loop it
  /// says in which frame, which does not matter.)
  bool is_pivot(Edge edge) const;
  /// Whether the edge tells where the node stands: data do, and control edges that order nodes.
  bool binds(uint32_t node, Edge edge) const;
  /// The NextIteration that leads back to a Merge, if it belongs to a loop.
  std::optional<uint32_t> next_of(uint32_t merge) const;
  /// The nodes so that each stands behind those it reads, the way round through NextIteration left out.
  std::vector<uint32_t> order() const;
};

/// Gives the function one more argument, and its node.
void add_argument(FunctionDef& function, std::string_view name);

/// A function whose nodes are copies of those above its results.
class Body {
 public:
  /// Which argument stands for a tensor inside, or nothing when its node comes along.
  using Argument = std::function<std::optional<size_t>(Edge)>;
  /// Where the node at a control edge stands: `argument` when it comes in with the arguments.
  enum class Place { inside, outside, argument };
  using Placing = std::function<Place(Edge)>;

  Body(const Flow& flow, Raising& raising, std::string_view name, Argument argument, Placing place);

  /// Takes a tensor from outside as a result.
  void add_result(Edge outside);
  void add_argument_as_result(size_t number) { add_result_inside(function.inputs[number].edge); }
  /// A node that runs though no result depends on it.
  void add_effect(uint32_t node) { copy(node); }
  FunctionDef finish();

  /// Nodes outside that those inside come after.
  const std::set<uint32_t>& waits() const { return waits_; }
  /// Places inside of the copied nodes, by their places outside.
  const std::map<uint32_t, uint32_t>& inside() const { return inside_; }

  FunctionDef function;

 private:
  void add_result_inside(Edge edge);
  Edge inner(Edge outside);
  uint32_t copy(uint32_t node);
  void follow_control(Edge edge, std::vector<Edge>& inputs);

  const Flow& flow_;
  Raising& raising_;
  Argument argument_;
  Placing place_;
  std::map<uint32_t, uint32_t> inside_;
  std::vector<uint32_t> pending_;
  std::set<uint32_t> waits_;
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
