// Branches of TensorFlow 1's control flow: Merges that wait for one condition, with all between them and the Switches of
// that condition, become an If.
#include <algorithm>
#include <array>

#include "frontends/tensorflow/flow.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// The Ifs of one list of nodes, and inside their branches.
class Branches {
 public:
  Branches(std::vector<Node>& nodes, FunctionDef* function, Raising& raising, int level)
      : function_(function), raising_(raising), level_(level), flow_(nodes, raising.effects) {
    if (level > kMostNested) fail(ErrorKind::unsupported, "", "branches are nested deeper than {}", kMostNested);
  }

  void run() {
    order_ = flow_.order();
    find_states();
    std::map<std::string_view, std::vector<size_t>> merges;  // by condition
    for (size_t i : order_)
      if (auto found = condition_.find(i); found != condition_.end() && states_[i].empty())
        merges[found->second.text].push_back(i);
    for (const auto& [condition, group] : merges)
      for (const std::vector<size_t>& together : by_depth(group)) raise(condition, together, {});
    for (const auto& [condition, effects] : effects_left()) raise(condition, {}, effects);
    leave_branches();
  }

 private:
  using State = std::set<std::pair<std::string_view, bool>>;  // conditions, and how they must come out
  struct Condition {
    std::string_view text;
    size_t yes;  // which input of the Merge comes from the true side
  };
  struct Made {  // an If
    size_t node;
    std::string_view name;
    std::array<size_t, 2> functions = {};                   // of else and then, in the graph
    std::array<std::set<std::string_view>, 2> inside = {};  // nodes in them
    std::array<std::vector<Made>, 2> inner = {};            // the Ifs in them
  };

  static std::string_view tensor(std::string_view text) {
    return text.ends_with(":0") ? text.substr(0, text.size() - 2) : text;
  }
  /// What decides a Switch, behind identities: each tf.cond has its own.
  std::string_view condition_of(size_t node) const { return tensor(flow_.behind(flow_.data(node, 1)).text); }

  State state(const End& end) const {
    State result = states_[end.node];
    if (end.index != kControl && flow_.at(end, "Switch")) result.emplace(condition_of(end.node), end.index == 1);
    return result;
  }
  static bool depends(const State& state, std::string_view condition) {
    return state.contains({condition, true}) || state.contains({condition, false});
  }

  /// Under which conditions each node runs.
  void find_states() {
    states_.resize(flow_.nodes.size());
    for (size_t i : order_) {
      if (is_op(flow_.nodes[i], "Merge")) {
        merge_states(i);
        continue;
      }
      for (const End& end : flow_.inputs[i])
        if (flow_.binds(i, end)) states_[i].merge(state(end));
    }
  }

  void merge_states(size_t merge) {
    if (std::count_if(flow_.inputs[merge].begin(), flow_.inputs[merge].end(),
                      [](const End& end) { return end.index != kControl; }) != 2)
      fail(ErrorKind::unsupported, printable(flow_.nodes[merge].name), "joins {} branches, expected 2",
           flow_.inputs[merge].size());
    State sides[] = {state(flow_.data(merge, 0)), state(flow_.data(merge, 1))};
    for (const auto& [text, yes] : sides[0]) {
      if (!sides[1].contains({text, !yes})) continue;
      condition_[merge] = {text, yes ? 0u : 1u};
      for (const State& side : sides)
        for (const auto& entry : side)
          if (entry.first != text) states_[merge].insert(entry);
      return;
    }
    fail(ErrorKind::unsupported, printable(flow_.nodes[merge].name), "joins values that no condition tells apart");
  }

  /// Merges that wait for one condition, apart where one depends on another.
  std::vector<std::vector<size_t>> by_depth(const std::vector<size_t>& group) const {
    if (group.size() == 1) return {group};
    std::set<size_t> members(group.begin(), group.end());
    std::vector<size_t> depth(flow_.nodes.size(), 0);
    std::vector<std::vector<size_t>> result;
    for (size_t i : order_) {
      for (const End& end : flow_.inputs[i]) depth[i] = std::max(depth[i], depth[end.node]);
      if (!members.contains(i)) continue;
      if (result.size() <= depth[i]) result.resize(depth[i] + 1);
      result[depth[i]++].push_back(i);
    }
    return result;
  }

  /// Nodes that run though no Merge depends on them, by the outermost condition.
  std::map<std::string_view, std::vector<size_t>> effects_left() const {
    std::set<std::string_view> outermost;
    for (size_t i = 0; i < states_.size(); ++i)
      if (is_op(flow_.nodes[i], "Switch") && states_[i].empty()) outermost.insert(condition_of(i));
    std::map<std::string_view, std::vector<size_t>> result;
    for (size_t i : order_) {
      if (states_[i].empty() || moved_.contains(i) || !raising_.has_effects(flow_.nodes[i])) continue;
      std::set<std::string_view> outer;
      for (const auto& [condition, yes] : states_[i])
        if (outermost.contains(condition)) outer.insert(condition);
      if (outer.size() != 1)
        fail(ErrorKind::unsupported, printable(flow_.nodes[i].name), "depends on {} conditions at once", outer.size());
      result[*outer.begin()].push_back(i);
    }
    return result;
  }

  /// A value that an earlier If of this condition made in the same branch, as a further result of that If: nothing is
  /// computed, drawn or written twice. Constants and shapes are made again, so that they stay known.
  std::optional<End> shared(const End& end, std::string_view condition, bool yes) {
    if (!raising_.effects || !is_worth_sharing(flow_.nodes[end.node])) return std::nullopt;
    const Made* made = made_before(end.node, condition, yes);
    if (made == nullptr) return std::nullopt;
    auto [found, fresh] = exports_.try_emplace({made->node, end.text}, 0);
    if (fresh) found->second = hand_out(*made, flow_.nodes[end.node].name, end.text, yes);
    return End{made->node, found->second,
               raising_.keep(fmt::format("{}:{}", flow_.nodes[made->node].name, found->second))};
  }

  const Made* made_before(size_t node, std::string_view condition, bool yes) const {
    auto ifs = made_.find(condition);
    if (ifs == made_.end() || is_op(flow_.nodes[node], "Switch"))
      return nullptr;  // that hands on what is shared itself
    for (const Made& made : ifs->second)
      if (made.inside[yes].contains(flow_.nodes[node].name)) return &made;
    return nullptr;
  }

  /// The number of a further result, which is a value of that branch or of branches inside it.
  int hand_out(const Made& made, std::string_view node, std::string_view text, bool yes) {
    for (const Made& inner : made.inner[yes])
      for (bool side : {false, true})
        if (inner.inside[side].contains(node)) {
          const int number = hand_out(inner, node, text, side);
          return add_result(made, raising_.keep(fmt::format("{}:{}", inner.name, number)), yes);
        }
    return add_result(made, text, yes);
  }

  int add_result(const Made& made, std::string_view text, bool yes) {
    size_t number = 0;
    for (bool side : {true, false}) {
      FunctionDef& function = raising_.graph.functions[made.functions[side]];
      number = function.outputs.size();
      std::string_view result = raising_.keep(std::to_string(number)), from = text;
      if (side != yes) {
        Node absent;
        absent.name = from = raising_.fresh(function.name, "%absent");
        absent.op = kAbsent;
        function.nodes.push_back(std::move(absent));
      }
      function.outputs.push_back({result, kDtInvalid, {}, {}, {}});
      function.returns.emplace_back(result, from);
    }
    return static_cast<int>(number);
  }

  bool is_worth_sharing(const Node& node) const {
    constexpr std::array<std::string_view, 6> kKnown = {"Const", "Shape", "ShapeN", "Size", "Rank", "_Arg"};
    if (raising_.has_effects(node) || draws(node.op)) return true;
    if (std::find(kKnown.begin(), kKnown.end(), node.op) != kKnown.end()) return false;
    for (const char* name : {"dtype", "DstT", "T"})
      if (const Attr* type = node.find(name)) {
        auto dtype = dtype_of(static_cast<DataType>(decode(*type, *raising_.graph.model).integer));
        return dtype && dtype->is_float();
      }
    return false;
  }

  /// One branch of an If; what it takes from outside is added to `captured`.
  Body branch(std::string_view condition, const std::vector<size_t>& group, const std::vector<size_t>& effects,
              bool yes, const Node& made, std::vector<End>& captured, std::vector<std::string_view>& arguments) {
    auto capture = [this, &captured, &arguments](const End& end) {
      for (size_t i = 0; i < captured.size(); ++i)
        if (captured[i].node == end.node && captured[i].index == end.index) return arguments[i];
      captured.push_back(end);
      arguments.push_back(raising_.keep(fmt::format("%{}", arguments.size())));
      return arguments.back();
    };
    auto argument = [this, condition, capture, &made, yes](const End& end) -> std::optional<std::string_view> {
      if (flow_.at(end, "Switch") && condition_of(end.node) == condition) {
        const Node& node = flow_.nodes[end.node];
        raising_.graph.raised[made.name].emplace_back(node.name, node.op);
        return capture(flow_.data(end.node, 0));
      }
      if (!depends(state(end), condition)) return capture(end);
      if (auto earlier = shared(end, condition, yes)) return capture(*earlier);
      return std::nullopt;
    };
    auto place = [this, condition, yes](const End& end) {
      const bool earlier = !flow_.is_pivot(end) && made_before(end.node, condition, yes) != nullptr;
      return depends(states_[end.node], condition) && !earlier ? Body::Place::inside : Body::Place::outside;
    };
    Body body(flow_, raising_, raising_.fresh(made.name, yes ? "%then" : "%else"), argument, place);
    for (size_t merge : group) {
      size_t side = yes == (condition_.at(merge).yes == 0) ? 0 : 1;
      body.add_result(body.inner(flow_.data(merge, side)));
    }
    for (size_t effect : effects)
      if (states_[effect].contains({condition, yes})) body.add_effect(effect);
    return body;
  }

  void raise(std::string_view condition, const std::vector<size_t>& group, const std::vector<size_t>& effects) {
    Node made;
    made.name = raising_.fresh(flow_.nodes[group.empty() ? effects[0] : group[0]].name, "If");
    made.op = "If";
    auto& raised = raising_.graph.raised[made.name];
    for (size_t merge : group) raised.emplace_back(flow_.nodes[merge].name, flow_.nodes[merge].op);
    std::vector<End> captured;
    std::vector<std::string_view> arguments;
    Body yes_body = branch(condition, group, effects, true, made, captured, arguments);
    Body no_body = branch(condition, group, effects, false, made, captured, arguments);
    FunctionDef yes_function = yes_body.finish(), no_function = no_body.finish();
    made.inputs.push_back(condition);
    for (const End& end : captured) made.inputs.push_back(end.text);
    Made record{flow_.nodes.size(), made.name};
    for (bool yes : {true, false}) {
      const Body& body = yes ? yes_body : no_body;
      FunctionDef& function = yes ? yes_function : no_function;
      made.attrs.push_back({yes ? "then_branch" : "else_branch", raising_.keep(attr_function(function.name))});
      made.inputs.insert(made.inputs.end(), body.waits().begin(), body.waits().end());
      for (std::string_view argument : arguments) {
        function.inputs.push_back({argument, kDtInvalid, {}, {}, {}});
        function.nodes.push_back({argument, "_Arg", {}, {}, {}});
      }
      take(body.inside(), made.name);
      for (size_t i : body.inside()) record.inside[yes].insert(flow_.nodes[i].name);
      Branches nested(function.nodes, &function, raising_, level_ + 1);
      nested.run();
      for (auto& [nested_condition, ifs] : nested.made_)
        std::move(ifs.begin(), ifs.end(), std::back_inserter(record.inner[yes]));
      raising_.inherit_effects(made, function);
      record.functions[yes] = raising_.graph.functions.size();
      raising_.graph.functions.push_back(std::move(function));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      Node& merge = flow_.nodes[group[i]];
      std::vector<std::string_view> inputs{raising_.keep(fmt::format("{}:{}", made.name, i))};
      for (const End& end : flow_.inputs[group[i]])
        if (end.index == kControl) inputs.push_back(end.text);
      merge.inputs = std::move(inputs);
    }
    made_[condition].push_back(std::move(record));
    if (function_ != nullptr && raising_.has_effects(made))
      function_->control_returns.emplace_back(made.name, made.name);
    flow_.add(std::move(made));
    states_.emplace_back();
  }

  /// Notes which If the nodes are in. What acts or draws is in one.
  void take(const std::set<size_t>& inside, std::string_view made) {
    for (size_t i : inside) {
      const Node& node = flow_.nodes[i];
      if (!moved_.emplace(i, made).second && (raising_.has_effects(node) || draws(node.op)))
        fail(ErrorKind::unsupported, printable(node.name), "belongs to several results of its branch");
    }
  }

  /// What stood in branches is in their functions now; who waits for such a node waits for its If.
  void leave_branches() {
    auto redirect = [this](std::string_view text) -> std::optional<std::string_view> {
      auto found = text.starts_with('^') ? flow_.index.find(text.substr(1)) : flow_.index.end();
      if (found == flow_.index.end() || states_[found->second].empty()) return text;
      auto moved = moved_.find(found->second);
      if (moved == moved_.end()) return std::nullopt;
      return raising_.keep(fmt::format("^{}", moved->second));
    };
    std::vector<Node> outside;
    for (size_t i = 0; i < flow_.nodes.size(); ++i) {
      if (!states_[i].empty()) continue;
      Node& node = outside.emplace_back(std::move(flow_.nodes[i]));
      std::vector<std::string_view> inputs;
      for (std::string_view input : node.inputs)
        if (auto kept = redirect(input)) inputs.push_back(*kept);
      node.inputs = std::move(inputs);
    }
    if (function_ != nullptr)
      std::erase_if(function_->control_returns, [this](const auto& effect) {
        auto found = flow_.index.find(effect.second);
        return found != flow_.index.end() && !states_[found->second].empty();
      });
    flow_.nodes = std::move(outside);
  }

  FunctionDef* function_;  // that the nodes are the body of, or null
  Raising& raising_;
  int level_;
  Flow flow_;
  std::vector<size_t> order_;
  std::vector<State> states_;
  std::map<size_t, Condition> condition_;
  std::map<std::string_view, std::vector<Made>> made_;  // by condition
  std::map<std::pair<size_t, std::string_view>, int> exports_;
  std::map<size_t, std::string_view> moved_;  // node in a branch -> the If that holds it
};

}  // namespace

void raise_branches(std::vector<Node>& nodes, FunctionDef* body, Raising& raising, int level) {
  Branches(nodes, body, raising, level).run();
}

}  // namespace cairn::tensorflow
