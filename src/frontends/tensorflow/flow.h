// Graphs during the raising of TensorFlow 1's control flow: queries on its nodes, and extraction of functions from a
// list of nodes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "frontends/tensorflow/functions.h"

namespace cairn::tensorflow {

inline constexpr int kMostNested = 64;

/// Whether the node's op is `op` or its variant for variable references.
bool is_op(const Node& node, std::string_view op);

/// The graph that is being raised: its names and texts, and which nodes must run even if no output depends on them.
class Raising {
 public:
  /// With `effects`, control edges order nodes, and nodes that write variables are kept even if no result depends on
  /// them.
  Raising(GraphDef& all, bool keep_effects);

  GraphDef& graph;
  const bool effects;

  std::string_view keep(std::string text) { return graph.model->keep(std::move(text)); }
  /// An unused name in the scope of `near`.
  std::string_view fresh(std::string_view near, std::string_view what);
  /// Whether the node writes a variable, itself or in a raised body.
  bool has_effects(const Node& node) const;
  /// Records that the node made with these bodies has side effects if one of them has.
  void inherit_effects(const Node& made, const FunctionDef& body);

 private:
  std::set<std::string, std::less<>> used_;
  std::map<std::string, size_t> last_number_;  // last suffix given to a name
  std::set<std::string_view> effectful_;
};

/// A list of nodes and queries on its edges. Nodes are appended, so that edges stay valid.
struct Flow {
  std::vector<Node>& nodes;
  bool effects;

  /// The index of the node.
  uint32_t add(Node node);
  /// Data input `number` of a control-flow node.
  Edge data(uint32_t node, size_t number) const { return data_input(nodes[node], number); }
  bool at(Edge edge, std::string_view op) const { return is_op(nodes[edge.node], op); }
  /// The tensor that the edge reads, skipping identities.
  Edge behind(Edge edge) const;
  /// A control edge from the Identity behind a Switch tells the branch of a node without inputs. (In a loop it tells
  /// the frame, which does not matter.)
  bool is_pivot(Edge edge) const;
  /// Whether the edge determines the node's branch or frame: data edges do, and control edges that order nodes.
  bool binds(uint32_t node, Edge edge) const;
  /// The NextIteration that is the back edge of a Merge, if it belongs to a loop.
  std::optional<uint32_t> next_of(uint32_t merge) const;
  /// The nodes in topological order, ignoring the back edges through NextIteration.
  std::vector<uint32_t> order() const;
};

/// Appends an argument to the function; returns its node.
void add_argument(FunctionDef& function, std::string_view name);

/// Builds a function from copies of the nodes on which its results depend.
class Body {
 public:
  /// The argument for a tensor inside, or nothing if its node is copied as well.
  using Argument = std::function<std::optional<size_t>(Edge)>;
  /// How the source of a control edge is represented inside; `argument`: by the arguments.
  enum class Place { inside, outside, argument };
  using Placing = std::function<Place(Edge)>;

  Body(const Flow& flow, Raising& raising, std::string_view name, Argument argument, Placing place);

  /// Adds an outside tensor as a result.
  void add_result(Edge outside);
  void add_argument_as_result(size_t number) { add_result_inside(function.inputs[number].edge); }
  /// Adds a node that runs although no result depends on it.
  void add_effect(uint32_t node) { copy(node); }
  FunctionDef finish();

  /// Outside nodes after which the copied nodes must run.
  const std::set<uint32_t>& waits() const { return waits_; }
  /// Index of a node outside -> index of its copy inside.
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

/// Adds the gradient of each TensorArray as a node with this op.
inline constexpr std::string_view kArrayGradient = "_CairnArrayGradient";
void hoist_array_gradients(Raising& raising);

/// Replaces each loop frame of the graph by a While, inner ones first.
void raise_loops(Raising& raising);

/// Replaces each group of Merges with the same condition by an If, in the graph's nodes or those of a body, and inside
/// the branches. The new nodes then carry the side effects of `body`.
void raise_branches(std::vector<Node>& nodes, FunctionDef* body, Raising& raising, int level);

/// A placeholder for a result that only the other branch has and that is not used.
inline constexpr std::string_view kAbsent = "_CairnAbsent";

}  // namespace cairn::tensorflow
