#include "frontends/tensorflow/raise.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "frontends/tensorflow/functions.h"

namespace cairn::tensorflow {
namespace {

constexpr int kMostLevels = 64;

bool is(const Node& node, std::string_view op) {
  return node.op == op || (node.op.starts_with("Ref") && node.op.substr(3) == op);
}

/// Where an input comes from; index kControl is a control edge.
struct End {
  size_t node;
  int index;
  std::string_view text;
};

/// A list of nodes with its edges resolved.
struct Flow {
  std::vector<Node>& nodes;
  NodeIndex index;
  std::vector<std::vector<End>> inputs;

  explicit Flow(std::vector<Node>& list) : nodes(list), index(index_nodes(list, "graph")), inputs(list.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) resolve(i);
  }
  void resolve(size_t i) {
    inputs[i].clear();
    for (std::string_view text : nodes[i].inputs) {
      TensorName name = parse_tensor_name(text, printable(nodes[i].name));
      auto found = index.find(name.node);
      if (found != index.end())
        inputs[i].push_back({found->second, name.index, text});
      else if (name.index != kControl)
        fail(ErrorKind::invalid_model, printable(nodes[i].name), "input '{}' does not exist", printable(text));
    }
  }
  void add(Node node) {
    index.emplace(node.name, nodes.size());
    nodes.push_back(std::move(node));
    inputs.emplace_back();
    resolve(nodes.size() - 1);
  }
  /// Data input `number` of a control-flow node.
  const End& data(size_t node, size_t number) const {
    for (const End& end : inputs[node])
      if (end.index != kControl && number-- == 0) return end;
    fail(ErrorKind::invalid_model, printable(nodes[node].name), "{} has too few inputs", printable(nodes[node].op));
  }
  bool at(const End& end, std::string_view op) const { return is(nodes[end.node], op); }
  /// A control edge from the Identity behind a Switch says in which branch a node without inputs stands. (In a loop it
  /// says in which frame, which does not matter.)
  bool is_pivot(const End& end) const {
    if (end.index != kControl || !at(end, "Identity") || inputs[end.node].empty()) return false;
    const End& from = inputs[end.node][0];
    return at(from, "Switch") && !at(data(from.node, 1), "LoopCond");
  }
  /// The NextIteration that leads back to a Merge, if it belongs to a loop.
  std::optional<size_t> next_of(size_t merge) const {
    for (const End& end : inputs[merge])
      if (end.index != kControl && at(end, "NextIteration")) return end.node;
    return std::nullopt;
  }
  std::vector<size_t> order() const;
};

/// The nodes so that each stands behind those it reads, the way round through NextIteration left out.
std::vector<size_t> Flow::order() const {
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0), ready, sorted;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const End& end : inputs[i]) {
      if ((at(end, "NextIteration") && is(nodes[i], "Merge")) || (end.index == kControl && !is_pivot(end))) continue;
      users[end.node].push_back(i);
      ++waits[i];
    }
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    size_t i = ready.back();
    ready.pop_back();
    sorted.push_back(i);
    for (size_t user : users[i])
      if (--waits[user] == 0) ready.push_back(user);
  }
  if (sorted.size() != nodes.size()) {
    auto stuck = std::find_if(waits.begin(), waits.end(), [](size_t count) { return count > 0; }) - waits.begin();
    fail(ErrorKind::invalid_model, printable(nodes[static_cast<size_t>(stuck)].name),
         "is part of a circle, or stands behind one");
  }
  return sorted;
}

/// Names and texts that the graph keeps.
class Names {
 public:
  explicit Names(GraphDef& graph) : model_(*graph.model) {
    for (const Node& node : graph.nodes) used_.emplace(node.name);
  }
  std::string_view keep(std::string text) { return model_.keep(std::move(text)); }
  /// One in the scope of `near` that no node has.
  std::string_view fresh(std::string_view near, std::string_view what) {
    size_t slash = near.rfind('/');
    std::string name(slash == std::string_view::npos ? std::string_view() : near.substr(0, slash + 1));
    name += what;
    while (!used_.insert(name).second) name += "_";
    return keep(std::move(name));
  }
  ModelBytes& model() { return model_; }

 private:
  ModelBytes& model_;
  std::set<std::string, std::less<>> used_;
};

/// A function whose nodes are copies of those above its results.
class Body {
 public:
  /// What stands for a tensor inside: an argument, or nothing when its node comes along.
  using Argument = std::function<std::optional<std::string_view>(const End&)>;

  Body(const Flow& flow, Names& names, std::string_view name, Argument argument)
      : flow_(flow), names_(names), argument_(std::move(argument)) {
    function.name = name;
    function.graph_names = true;
  }

  /// Arguments stand among the nodes as well, so that what is raised inside finds them.
  void add_argument(std::string_view name) {
    function.inputs.push_back({name, kDtInvalid, {}, {}, {}});
    function.nodes.push_back({name, "_Arg", {}, {}, {}});
  }
  void add_result(std::string_view text) {
    std::string_view result = names_.keep(std::to_string(function.outputs.size()));
    function.outputs.push_back({result, kDtInvalid, {}, {}, {}});
    function.returns.emplace_back(result, text);
  }
  /// The name inside of a tensor outside.
  std::string_view inner(const End& end) {
    if (auto argument = argument_(end)) return *argument;
    if (inside_.insert(end.node).second) pending_.push_back(end.node);
    return end.text;
  }
  FunctionDef finish() {
    while (!pending_.empty()) {
      const size_t at = pending_.back();
      pending_.pop_back();
      const Node& node = flow_.nodes[at];
      names_.model().charge(2 * sizeof(Node) + 2 * node.inputs.size() * sizeof(std::string_view) +
                            2 * node.attrs.size() * sizeof(Attr));
      Node copy = node;
      copy.inputs.clear();
      for (const End& end : flow_.inputs[at]) {
        if (end.index != kControl) {
          copy.inputs.push_back(inner(end));
        } else if (flow_.is_pivot(end)) {
          inner({end.node, 0, flow_.nodes[end.node].name});
          copy.inputs.push_back(end.text);
        }
      }
      function.nodes.push_back(std::move(copy));
    }
    return std::move(function);
  }

  FunctionDef function;

 private:
  const Flow& flow_;
  Names& names_;
  Argument argument_;
  std::set<size_t> inside_;
  std::vector<size_t> pending_;
};

/// The Ifs of one list of nodes, and inside their branches.
class Conditions {
 public:
  Conditions(std::vector<Node>& nodes, GraphDef& graph, Names& names, int level)
      : graph_(graph), names_(names), level_(level), flow_(nodes) {
    if (level > kMostLevels) fail(ErrorKind::unsupported, "", "branches are nested deeper than {}", kMostLevels);
  }

  void run() {
    order_ = flow_.order();
    find_states();
    std::map<std::string_view, std::vector<size_t>> merges;  // by condition
    for (size_t i : order_)
      if (auto found = condition_.find(i); found != condition_.end() && states_[i].empty())
        merges[found->second.text].push_back(i);
    for (const auto& [condition, group] : merges)
      for (const std::vector<size_t>& together : by_depth(group)) raise(together);
    // What stood in branches is in their functions now.
    std::vector<Node> outside;
    for (size_t i = 0; i < flow_.nodes.size(); ++i)
      if (states_[i].empty()) outside.push_back(std::move(flow_.nodes[i]));
    flow_.nodes = std::move(outside);
  }

 private:
  using State = std::set<std::pair<std::string_view, bool>>;  // conditions, and how they must come out
  struct Condition {
    std::string_view text;
    size_t yes;  // which input of the Merge comes from the true side
  };

  static std::string_view tensor(std::string_view text) {
    return text.ends_with(":0") ? text.substr(0, text.size() - 2) : text;
  }
  /// What decides a Switch, behind identities: each tf.cond has its own.
  std::string_view condition_of(size_t node) const {
    const End* end = &flow_.data(node, 1);
    while (flow_.at(*end, "Identity") && !flow_.inputs[end->node].empty()) end = &flow_.inputs[end->node][0];
    return tensor(end->text);
  }

  State state(const End& end) const {
    State result = states_[end.node];
    if (end.index != kControl && flow_.at(end, "Switch")) result.emplace(condition_of(end.node), end.index == 1);
    return result;
  }

  /// Under which conditions each node runs.
  void find_states() {
    states_.resize(flow_.nodes.size());
    for (size_t i : order_) {
      if (is(flow_.nodes[i], "Merge")) {
        merge_states(i);
        continue;
      }
      for (const End& end : flow_.inputs[i]) {
        if (end.index == kControl && !flow_.is_pivot(end)) continue;
        if (end.index == kControl || flow_.at(end, "Switch") || !states_[end.node].empty())
          states_[i].merge(state(end));
      }
    }
  }

  void merge_states(size_t merge) {
    if (flow_.inputs[merge].size() != 2)
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

  /// One branch of a group; what it takes from outside is added to `captured`.
  Body branch(const std::vector<size_t>& group, bool yes, const Node& made, std::vector<End>& captured,
              std::vector<std::string_view>& arguments) {
    std::string_view condition = condition_.at(group[0]).text;
    auto capture = [this, &captured, &arguments](const End& end) {
      for (size_t i = 0; i < captured.size(); ++i)
        if (captured[i].node == end.node && captured[i].index == end.index) return arguments[i];
      captured.push_back(end);
      arguments.push_back(names_.keep(fmt::format("%{}", arguments.size())));
      return arguments.back();
    };
    auto argument = [this, condition, capture, &made](const End& end) -> std::optional<std::string_view> {
      if (flow_.at(end, "Switch") && condition_of(end.node) == condition) {
        const Node& node = flow_.nodes[end.node];
        graph_.raised[made.name].emplace_back(node.name, node.op);
        return capture(flow_.data(end.node, 0));
      }
      State here = state(end);
      if (here.contains({condition, true}) || here.contains({condition, false})) return std::nullopt;
      return capture(end);
    };
    Body body(flow_, names_, names_.fresh(made.name, yes ? "%then" : "%else"), argument);
    for (size_t merge : group) {
      size_t side = yes == (condition_.at(merge).yes == 0) ? 0 : 1;
      body.add_result(body.inner(flow_.data(merge, side)));
    }
    return body;
  }

  void raise(const std::vector<size_t>& group) {
    Node made;
    made.name = names_.fresh(flow_.nodes[group[0]].name, "If");
    made.op = "If";
    for (size_t merge : group) graph_.raised[made.name].emplace_back(flow_.nodes[merge].name, flow_.nodes[merge].op);
    std::vector<End> captured;
    std::vector<std::string_view> arguments;
    Body bodies[] = {branch(group, true, made, captured, arguments), branch(group, false, made, captured, arguments)};
    FunctionDef functions[] = {bodies[0].finish(), bodies[1].finish()};
    made.inputs.push_back(condition_.at(group[0]).text);
    for (const End& end : captured) made.inputs.push_back(end.text);
    made.attrs = {{"then_branch", names_.keep(attr_function(functions[0].name))},
                  {"else_branch", names_.keep(attr_function(functions[1].name))}};
    for (FunctionDef& function : functions) {
      for (std::string_view argument : arguments) {
        function.inputs.push_back({argument, kDtInvalid, {}, {}, {}});
        function.nodes.push_back({argument, "_Arg", {}, {}, {}});
      }
      Conditions(function.nodes, graph_, names_, level_ + 1).run();
      graph_.functions.push_back(std::move(function));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      Node& merge = flow_.nodes[group[i]];
      merge.inputs = {names_.keep(fmt::format("{}:{}", made.name, i))};
    }
    flow_.add(std::move(made));
    states_.emplace_back();
  }

  GraphDef& graph_;
  Names& names_;
  int level_;
  Flow flow_;
  std::vector<size_t> order_;
  std::vector<State> states_;
  std::map<size_t, Condition> condition_;
};

struct Frame {
  size_t parent = 0;
  int depth = 0;
  std::vector<size_t> enters, merges, exits;
  std::optional<size_t> condition;
};

/// The Whiles of a graph.
class Loops {
 public:
  Loops(GraphDef& graph, Names& names) : graph_(graph), names_(names), flow_(graph.nodes) {}

  void run() {
    std::vector<Frame> frames = find_frames();
    std::stable_sort(frames.begin() + 1, frames.end(),
                     [](const Frame& a, const Frame& b) { return a.depth > b.depth; });
    for (size_t i = 1; i < frames.size(); ++i) raise(frames[i]);
    // What stood inside loops is in their functions now.
    std::vector<Node> outside;
    for (size_t i = 0; i < flow_.nodes.size(); ++i)
      if (!inside_[i]) outside.push_back(std::move(flow_.nodes[i]));
    graph_.nodes = std::move(outside);
  }

 private:
  const Node& node(size_t i) const { return flow_.nodes[i]; }

  /// Constants inside a loop have no input that tells so: a value may seem to enter an inner loop from outside. The
  /// deepest of the values that enter tells, hence another look as long as a frame turns out to lie deeper.
  std::vector<Frame> find_frames() {
    std::vector<Frame> frames(1);
    std::map<std::string_view, size_t> known;
    const std::vector<size_t> order = flow_.order();
    while (visit_frames(order, frames, known)) {
    }
    return frames;
  }

  bool visit_frames(const std::vector<size_t>& order, std::vector<Frame>& frames,
                    std::map<std::string_view, size_t>& known) {
    bool deeper = false;
    std::vector<size_t> frame_of(flow_.nodes.size(), 0);
    inside_.assign(flow_.nodes.size(), false);
    for (Frame& frame : frames) frame = {frame.parent, frame.depth, {}, {}, {}, {}};
    for (size_t i : order) {
      size_t frame = 0;
      for (const End& end : flow_.inputs[i])
        if (end.index != kControl && frames[frame_of[end.node]].depth > frames[frame].depth) frame = frame_of[end.node];
      if (is(node(i), "Exit")) {
        if (frame == 0) fail(ErrorKind::invalid_model, printable(node(i).name), "leaves a loop that it is not in");
        frames[frame].exits.push_back(i);
        frame = frames[frame].parent;
      } else if (is(node(i), "Enter")) {
        const size_t outer = frame;
        std::string_view name = attr_of(node(i), "frame_name", AttrValue::Kind::text, *graph_.model).text;
        auto [found, fresh] = known.try_emplace(name, frames.size());
        if (fresh) frames.emplace_back();
        frame = found->second;
        if (frames[outer].depth >= frames[frame].depth) {
          deeper = deeper || !fresh;
          frames[frame].parent = outer;
          frames[frame].depth = frames[outer].depth + 1;
        }
        if (frames[frame].depth > kMostLevels)
          fail(ErrorKind::unsupported, printable(node(i).name), "loops are nested deeper than {}", kMostLevels);
        frames[frame].enters.push_back(i);
      } else if (is(node(i), "LoopCond")) {
        frames[frame].condition = i;
      } else if (is(node(i), "Merge") && flow_.next_of(i)) {
        frames[frame].merges.push_back(i);
      }
      frame_of[i] = frame;
      inside_[i] = frame != 0;
    }
    return deeper;
  }

  /// Whether `end` is, behind identities, what the round started with.
  bool hands_on(End end, size_t merge) const {
    while (flow_.at(end, "Identity") && !flow_.inputs[end.node].empty()) end = flow_.inputs[end.node][0];
    return flow_.at(end, "Switch") && end.index == 1 && flow_.data(end.node, 0).node == merge;
  }

  void raise(const Frame& frame) {
    if (!frame.condition)
      fail(ErrorKind::invalid_model, printable(node(frame.enters[0]).name), "enters a loop without a condition");
    Node loop;
    loop.name = names_.fresh(node(*frame.condition).name, "While");
    loop.op = "While";
    auto& raised = graph_.raised[loop.name];
    auto absorb = [&](size_t i) { raised.emplace_back(node(i).name, node(i).op); };
    absorb(*frame.condition);
    std::map<size_t, size_t> numbers;  // Merge or Enter -> which value of the loop
    auto argument = [&](const End& end) -> std::optional<std::string_view> {
      size_t at = end.node;
      if (flow_.at(end, "Switch") && numbers.contains(flow_.data(at, 0).node)) at = flow_.data(at, 0).node;
      return numbers.contains(at) ? std::optional(node(at).name) : std::nullopt;
    };
    Body body(flow_, names_, names_.fresh(loop.name, "%body"), argument);
    Body condition(flow_, names_, names_.fresh(loop.name, "%cond"), argument);
    auto carry = [&](size_t at, size_t enter) {
      numbers.emplace(at, loop.inputs.size());
      loop.inputs.push_back(flow_.data(enter, 0).text);
      body.add_argument(node(at).name);
      condition.add_argument(node(at).name);
      absorb(at);
    };
    std::set<size_t> starts;
    for (size_t merge : frame.merges) {
      const size_t next = *flow_.next_of(merge);
      const End& start = flow_.data(merge, flow_.data(merge, 0).node == next ? 1 : 0);
      if (!flow_.at(start, "Enter"))
        fail(ErrorKind::unsupported, printable(node(merge).name), "begins a loop with a value that does not enter it");
      carry(merge, start.node);
      absorb(start.node);
      absorb(next);
      starts.insert(start.node);
    }
    std::vector<size_t> invariants;
    for (size_t enter : frame.enters)
      if (!starts.contains(enter)) {
        carry(enter, enter);
        invariants.push_back(enter);
      }
    for (size_t merge : frame.merges) {
      const End& result = flow_.data(*flow_.next_of(merge), 0);
      body.add_result(hands_on(result, merge) ? node(merge).name : body.inner(result));
    }
    for (size_t enter : invariants) body.add_result(node(enter).name);
    condition.add_result(condition.inner(flow_.data(*frame.condition, 0)));
    for (Body* part : {&condition, &body}) {
      FunctionDef function = part->finish();
      Conditions(function.nodes, graph_, names_, frame.depth).run();
      loop.attrs.push_back({part == &body ? "body" : "cond", names_.keep(attr_function(function.name))});
      graph_.functions.push_back(std::move(function));
    }
    for (size_t exit : frame.exits) {
      const End& from = flow_.data(exit, 0);
      auto found = flow_.at(from, "Switch") ? numbers.find(flow_.data(from.node, 0).node) : numbers.end();
      if (found == numbers.end())
        fail(ErrorKind::unsupported, printable(node(exit).name), "leaves a loop with a value that does not go round");
      absorb(from.node);
      flow_.nodes[exit].inputs = {names_.keep(fmt::format("{}:{}", loop.name, found->second))};
    }
    flow_.add(std::move(loop));
    inside_.push_back(frame.depth > 1);
    for (size_t exit : frame.exits) flow_.resolve(exit);
  }

  GraphDef& graph_;
  Names& names_;
  Flow flow_;
  std::vector<bool> inside_;  // nodes that stand in a loop
};

}  // namespace

bool has_switches(const GraphDef& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return is(node, "Switch") || is(node, "Merge") || is(node, "Enter"); });
}

void raise_control_flow(GraphDef& graph) {
  Names names(graph);
  Loops(graph, names).run();
  Conditions(graph.nodes, graph, names, 0).run();
}

}  // namespace cairn::tensorflow
