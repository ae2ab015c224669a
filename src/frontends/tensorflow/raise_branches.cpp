// Branches of TensorFlow 1's control flow: Merges with the same condition, and all nodes between them and the Switches
// of that condition, become an If.
#include <algorithm>

#include "frontends/tensorflow/flow.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// The Ifs of one list of nodes, and inside their branches.
class Branches {
 public:
  Branches(std::vector<Node>& nodes, FunctionDef* function, Raising& raising, int level)
      : function_(function), raising_(raising), level_(level), flow_{nodes, raising.effects} {
    if (level > kMostNested) fail(ErrorKind::unsupported, "", "branches are nested deeper than {}", kMostNested);
  }

  void run() {
    order_ = flow_.order();
    find_states();
    std::map<Edge, std::vector<uint32_t>> merges;  // by condition
    for (uint32_t i : order_)
      if (auto found = condition_.find(i); found != condition_.end() && states_[i].empty())
        merges[found->second.tensor].push_back(i);
    std::vector<std::pair<Edge, std::vector<uint32_t>>> groups;
    for (const auto& [condition, group] : merges)
      for (std::vector<uint32_t>& together : by_depth(group)) groups.emplace_back(condition, std::move(together));
    for (const auto& [condition, group] : groups) raise(condition, group, {});
    for (const auto& [condition, effects] : effects_left()) raise(condition, {}, effects);
    leave_branches();
  }

 private:
  using State = std::set<std::pair<Edge, bool>>;  // conditions with the values that they must have
  struct Condition {
    Edge tensor;
    size_t yes;  // which input of the Merge comes from the true side
  };
  struct Made {  // an If
    uint32_t node;
    std::string_view name;
    std::array<size_t, 2> functions = {};                   // of else and then, in the graph
    std::array<std::set<std::string_view>, 2> inside = {};  // nodes in them; a copy keeps its name
    std::array<std::vector<Made>, 2> inner = {};            // the Ifs in them
  };

  /// The condition of a Switch, skipping identities, of which each tf.cond has its own.
  Edge condition_of(uint32_t node) const { return flow_.behind(flow_.data(node, 1)); }

  State state(Edge edge) const {
    State result = states_[edge.node];
    if (!edge.is_control() && flow_.at(edge, "Switch")) result.emplace(condition_of(edge.node), edge.port == 1);
    return result;
  }
  static bool depends(const State& state, Edge condition) {
    return state.contains({condition, true}) || state.contains({condition, false});
  }

  /// Determines the conditions under which each node runs.
  void find_states() {
    states_.resize(flow_.nodes.size());
    for (uint32_t i : order_) {
      if (is_op(flow_.nodes[i], "Merge")) {
        merge_states(i);
        continue;
      }
      for (Edge input : flow_.nodes[i].inputs)
        if (flow_.binds(i, input)) states_[i].merge(state(input));
    }
    skip_known_switches();
  }

  /// No node runs in both branches of a condition.
  static bool never_runs(const State& state) {
    return std::any_of(state.begin(), state.end(), [&](const auto& entry) {
      return entry.second && state.contains({entry.first, false});
    });
  }

  /// Gradients that a branch takes switch and merge its values by the condition of the branch itself: a Switch hands on
  /// its value there (and a Merge, see merge_states).
  void skip_known_switches() {
    for (Node& node : flow_.nodes)
      for (Edge& input : node.inputs)
        while (!input.is_control() && flow_.at(input, "Switch") &&
               states_[input.node].contains({condition_of(input.node), input.port == 1}))
          input = flow_.data(input.node, 0);
  }

  void merge_states(uint32_t merge) {
    const std::vector<Edge>& inputs = flow_.nodes[merge].inputs;
    const auto data = std::count_if(inputs.begin(), inputs.end(), [](Edge input) { return !input.is_control(); });
    if (data != 2)
      fail(ErrorKind::unsupported, printable(flow_.nodes[merge].name), "joins {} branches, expected 2", data);
    State sides[] = {state(flow_.data(merge, 0)), state(flow_.data(merge, 1))};
    for (size_t side : {0, 1})
      if (never_runs(sides[side])) {
        states_[merge] = sides[1 - side];
        std::erase(flow_.nodes[merge].inputs, flow_.data(merge, side));
        flow_.nodes[merge].op = "Identity";
        return;
      }
    for (const auto& [condition, yes] : sides[0]) {
      if (!sides[1].contains({condition, !yes})) continue;
      condition_[merge] = {condition, yes ? 0u : 1u};
      for (const State& side : sides)
        for (const auto& entry : side)
          if (entry.first != condition) states_[merge].insert(entry);
      return;
    }
    fail(ErrorKind::unsupported, printable(flow_.nodes[merge].name), "joins values that no condition tells apart");
  }

  /// Splits the Merges with one condition into groups such that none depends on another of its group.
  std::vector<std::vector<uint32_t>> by_depth(const std::vector<uint32_t>& group) const {
    if (group.size() == 1) return {group};
    std::set<uint32_t> members(group.begin(), group.end());
    std::vector<size_t> depth(flow_.nodes.size(), 0);
    std::vector<std::vector<uint32_t>> result;
    for (uint32_t i : order_) {
      for (Edge input : flow_.nodes[i].inputs) depth[i] = std::max(depth[i], depth[input.node]);
      if (!members.contains(i)) continue;
      if (result.size() <= depth[i]) result.resize(depth[i] + 1);
      result[depth[i]++].push_back(i);
    }
    return result;
  }

  /// Nodes with side effects on which no Merge depends, by the outermost condition.
  std::map<Edge, std::vector<uint32_t>> effects_left() const {
    std::set<Edge> outermost;
    for (uint32_t i = 0; i < states_.size(); ++i)
      if (is_op(flow_.nodes[i], "Switch") && states_[i].empty()) outermost.insert(condition_of(i));
    std::map<Edge, std::vector<uint32_t>> result;
    for (uint32_t i : order_) {
      if (states_[i].empty() || never_runs(states_[i]) || moved_.contains(i) || !raising_.has_effects(flow_.nodes[i]))
        continue;
      std::set<Edge> outer;
      for (const auto& [condition, yes] : states_[i])
        if (outermost.contains(condition)) outer.insert(condition);
      if (outer.size() != 1)
        fail(ErrorKind::unsupported, printable(flow_.nodes[i].name), "depends on {} conditions at once", outer.size());
      result[*outer.begin()].push_back(i);
    }
    return result;
  }

  /// A value that an earlier If with this condition computes in the same branch, as a further result of that If, so
  /// that nothing is computed, drawn or written twice. Constants and shapes are duplicated, so that they stay known.
  std::optional<Edge> shared(Edge edge, Edge condition, bool yes) {
    if (!raising_.effects || !is_worth_sharing(flow_.nodes[edge.node])) return std::nullopt;
    const Made* made = made_before(edge.node, condition, yes);
    if (made == nullptr) return std::nullopt;
    auto [found, fresh] = exports_.try_emplace({made->node, edge}, 0);
    if (fresh) found->second = hand_out(*made, flow_.nodes[edge.node].name, edge.port, yes);
    return Edge{made->node, found->second};
  }

  const Made* made_before(uint32_t node, Edge condition, bool yes) const {
    auto ifs = made_.find(condition);
    if (ifs == made_.end() || is_op(flow_.nodes[node], "Switch"))
      return nullptr;  // that hands on what is shared itself
    for (const Made& made : ifs->second)
      if (made.inside[yes].contains(flow_.nodes[node].name)) return &made;
    return nullptr;
  }

  /// The number of a further result, which is a value of that branch or of branches inside it.
  int32_t hand_out(const Made& made, std::string_view node, int32_t port, bool yes) {
    for (const Made& inner : made.inner[yes])
      for (bool side : {false, true})
        if (inner.inside[side].contains(node))
          return add_result(made, inner.name, hand_out(inner, node, port, side), yes);
    return add_result(made, node, port, yes);
  }

  int32_t add_result(const Made& made, std::string_view from, int32_t port, bool yes) {
    size_t number = 0;
    for (bool side : {true, false}) {
      FunctionDef& function = raising_.graph.functions[made.functions[side]];
      number = function.outputs.size();
      auto place = static_cast<uint32_t>(function.nodes.size());
      if (side == yes) {
        const auto found = std::find_if(function.nodes.begin(), function.nodes.end(),
                                        [&](const Node& node) { return node.name == from; });
        if (found == function.nodes.end())
          fail(ErrorKind::unsupported, printable(from), "is not in its branch any more");
        place = static_cast<uint32_t>(found - function.nodes.begin());
      } else {
        function.nodes.push_back({raising_.fresh(function.name, "%absent"), kAbsent, {}, {}, {}});
      }
      function.outputs.push_back({raising_.keep(std::to_string(number))});
      function.outputs.back().edge = {place, side == yes ? port : 0};
    }
    return static_cast<int32_t>(number);
  }

  bool acts_or_draws(const Node& node) const {
    return raising_.has_effects(node) || traits_of(node.op).has(Trait::draws);
  }

  bool is_worth_sharing(const Node& node) const {
    if (acts_or_draws(node)) return true;
    if (node.op == "Const" || node.op == "_Arg" || traits_of(node.op).has(Trait::shapes)) return false;
    for (const char* name : {"dtype", "DstT", "T"})
      if (const Attr* type = node.find(name)) {
        auto dtype = dtype_of(static_cast<DataType>(decode(*type, *raising_.graph.model).integer));
        return dtype && dtype->is_float();
      }
    return false;
  }

  /// Builds one branch of an If; outer tensors that it uses are added to `captured`.
  Body branch(Edge condition, const std::vector<uint32_t>& group, const std::vector<uint32_t>& effects, bool yes,
              std::string_view made, std::vector<Edge>& captured) {
    auto capture = [&captured](Edge edge) {
      const auto found = std::find(captured.begin(), captured.end(), edge);
      const auto number = static_cast<size_t>(found - captured.begin());
      if (found == captured.end()) captured.push_back(edge);
      return number;
    };
    auto argument = [this, condition, capture, made, yes](Edge edge) -> std::optional<size_t> {
      if (flow_.at(edge, "Switch") && condition_of(edge.node) == condition) {
        const Node& node = flow_.nodes[edge.node];
        raising_.graph.raised[made].push_back({node.name, node.op, node.location});
        return capture(flow_.data(edge.node, 0));
      }
      if (!depends(state(edge), condition)) return capture(edge);
      if (auto earlier = shared(edge, condition, yes)) return capture(*earlier);
      return std::nullopt;
    };
    auto place = [this, condition, yes](Edge edge) {
      const bool earlier = !flow_.is_pivot(edge) && made_before(edge.node, condition, yes) != nullptr;
      return depends(states_[edge.node], condition) && !earlier ? Body::Place::inside : Body::Place::outside;
    };
    Body body(flow_, raising_, raising_.fresh(made, yes ? "%then" : "%else"), argument, place);
    for (uint32_t merge : group) {
      size_t side = yes == (condition_.at(merge).yes == 0) ? 0 : 1;
      body.add_result(flow_.data(merge, side));
    }
    for (uint32_t effect : effects)
      if (states_[effect].contains({condition, yes})) body.add_effect(effect);
    return body;
  }

  void raise(Edge condition, const std::vector<uint32_t>& group, const std::vector<uint32_t>& effects) {
    Node made;
    made.name = raising_.fresh(flow_.nodes[group.empty() ? effects[0] : group[0]].name, "If");
    made.op = "If";
    auto& raised = raising_.graph.raised[made.name];
    for (uint32_t merge : group)
      raised.push_back({flow_.nodes[merge].name, flow_.nodes[merge].op, flow_.nodes[merge].location});
    std::vector<Edge> captured;
    Body yes_body = branch(condition, group, effects, true, made.name, captured);
    Body no_body = branch(condition, group, effects, false, made.name, captured);
    FunctionDef yes_function = yes_body.finish(), no_function = no_body.finish();
    made.inputs.push_back(condition);
    made.inputs.insert(made.inputs.end(), captured.begin(), captured.end());
    const auto at = static_cast<uint32_t>(flow_.nodes.size());
    Made record{at, made.name};
    for (bool yes : {true, false}) {
      const Body& body = yes ? yes_body : no_body;
      FunctionDef& function = yes ? yes_function : no_function;
      made.attrs.push_back({yes ? "then_branch" : "else_branch", raising_.keep(attr_function(function.name))});
      for (uint32_t wait : body.waits()) made.inputs.push_back({wait, Edge::kControl});
      while (function.inputs.size() < captured.size())
        add_argument(function, raising_.keep(fmt::format("%{}", function.inputs.size())));
      for (const auto& [outside, inside] : body.inside()) {
        take(outside, at);
        record.inside[yes].insert(flow_.nodes[outside].name);
      }
      Branches nested(function.nodes, &function, raising_, level_ + 1);
      nested.run();
      for (auto& [nested_condition, ifs] : nested.made_)
        std::move(ifs.begin(), ifs.end(), std::back_inserter(record.inner[yes]));
      raising_.inherit_effects(made, function);
      record.functions[yes] = raising_.graph.functions.size();
      raising_.graph.functions.push_back(std::move(function));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      std::vector<Edge>& inputs = flow_.nodes[group[i]].inputs;
      std::erase_if(inputs, [](Edge input) { return !input.is_control(); });
      inputs.insert(inputs.begin(), {at, static_cast<int32_t>(i)});
    }
    made_[condition].push_back(std::move(record));
    if (function_ != nullptr && raising_.has_effects(made)) function_->control_returns.emplace_back(made.name, at);
    flow_.add(std::move(made));
    states_.emplace_back();
  }

  /// Records the If that contains the node. A node with side effects or random numbers must be in one If only.
  void take(uint32_t inside, uint32_t made) {
    const Node& node = flow_.nodes[inside];
    if (!moved_.emplace(inside, made).second && acts_or_draws(node))
      fail(ErrorKind::unsupported, printable(node.name), "belongs to several results of its branch");
  }

  /// Nodes of branches are now in the functions; control edges from such nodes are redirected to the If.
  void leave_branches() {
    std::vector<bool> outside;
    for (const State& state : states_) outside.push_back(state.empty());
    for (Node& node : flow_.nodes)
      for (Edge& input : node.inputs)
        if (auto moved = moved_.find(input.node); moved != moved_.end() && input.is_control() && !outside[input.node])
          input.node = moved->second;
    wait_for_inputs_of_switches();
    if (function_ != nullptr)
      std::erase_if(function_->control_returns, [&](const auto& effect) { return !outside[effect.second]; });
    const std::vector<uint32_t> places = keep_nodes(flow_.nodes, outside);
    if (function_ != nullptr) renumber(*function_, places);
  }

  /// Who waits for a Switch alone (as `tuple/group_deps` in the gradient of a tf.cond) waits for its inputs, so that the
  /// condition need not be known.
  void wait_for_inputs_of_switches() {
    for (Node& node : flow_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].is_control() || !flow_.at(node.inputs[i], "Switch")) continue;
        const std::vector<Edge> behind = flow_.nodes[node.inputs[i].node].inputs;
        node.inputs.erase(node.inputs.begin() + static_cast<ptrdiff_t>(i--));
        for (Edge edge : behind) node.inputs.push_back({edge.node, Edge::kControl});
      }
  }

  FunctionDef* function_;  // that the nodes are the body of, or null
  Raising& raising_;
  int level_;
  Flow flow_;
  std::vector<uint32_t> order_;
  std::vector<State> states_;
  std::map<uint32_t, Condition> condition_;
  std::map<Edge, std::vector<Made>> made_;  // by condition
  std::map<std::pair<uint32_t, Edge>, int32_t> exports_;
  std::map<uint32_t, uint32_t> moved_;  // node in a branch -> the If that holds it
};

}  // namespace

void raise_branches(std::vector<Node>& nodes, FunctionDef* body, Raising& raising, int level) {
  Branches(nodes, body, raising, level).run();
}

}  // namespace cairn::tensorflow
