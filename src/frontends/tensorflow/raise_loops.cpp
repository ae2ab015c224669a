// Loops of TensorFlow 1's control flow: each frame, from Enter to Exit, becomes a While.
#include <algorithm>

#include "frontends/tensorflow/flow.h"

namespace cairn::tensorflow {
namespace {

struct Frame {
  size_t parent = 0;
  int depth = 0;
  std::vector<uint32_t> enters, merges, exits;
  std::vector<uint32_t> effects;  // nodes that run whether a result depends on them or not
  std::optional<uint32_t> condition;
};

/// The Whiles of a graph.
class Loops {
 public:
  explicit Loops(Raising& raising) : raising_(raising), flow_{raising.graph.nodes, raising.effects} {}

  void run() {
    std::vector<Frame> frames = find_frames();
    std::vector<size_t> inner_first;
    for (size_t i = 1; i < frames.size(); ++i) inner_first.push_back(i);
    std::stable_sort(inner_first.begin(), inner_first.end(),
                     [&](size_t a, size_t b) { return frames[a].depth > frames[b].depth; });
    for (size_t i : inner_first) raise(frames[i], frames);
    // The nodes inside loops are in the functions now.
    inside_.flip();
    keep_nodes(flow_.nodes, inside_);
  }

 private:
  const Node& node(uint32_t i) const { return flow_.nodes[i]; }

  /// Finds the frames and their nesting. Constants inside a loop have no input that tells their frame, so a value may
  /// seem to enter an inner loop from outside. The deepest entering value decides; repeats while a frame turns out to
  /// be deeper.
  std::vector<Frame> find_frames() {
    std::vector<Frame> frames(1);
    std::map<std::string_view, size_t> known;
    const std::vector<uint32_t> order = flow_.order();
    while (visit_frames(order, frames, known)) {
    }
    return frames;
  }

  bool visit_frames(const std::vector<uint32_t>& order, std::vector<Frame>& frames,
                    std::map<std::string_view, size_t>& known) {
    bool deeper = false;
    std::vector<size_t> frame_of(flow_.nodes.size(), 0);
    inside_.assign(flow_.nodes.size(), false);
    for (Frame& frame : frames) frame = {frame.parent, frame.depth, {}, {}, {}, {}, {}};
    for (uint32_t i : order) {
      size_t frame = 0;
      for (Edge input : node(i).inputs)
        if ((!input.is_control() || raising_.effects) && frames[frame_of[input.node]].depth > frames[frame].depth)
          frame = frame_of[input.node];
      if (is_op(node(i), "Exit")) {
        if (frame == 0) fail(ErrorKind::invalid_model, printable(node(i).name), "leaves a loop that it is not in");
        frames[frame].exits.push_back(i);
        frame = frames[frame].parent;
      } else if (is_op(node(i), "Enter")) {
        const size_t outer = frame;
        std::string_view name = attr_of(node(i), "frame_name", AttrValue::Kind::text, *raising_.graph.model).text;
        auto [found, fresh] = known.try_emplace(name, frames.size());
        if (fresh) frames.emplace_back();
        frame = found->second;
        if (frames[outer].depth >= frames[frame].depth) {
          deeper = deeper || !fresh;
          frames[frame].parent = outer;
          frames[frame].depth = frames[outer].depth + 1;
        }
        if (frames[frame].depth > kMostNested)
          fail(ErrorKind::unsupported, printable(node(i).name), "loops are nested deeper than {}", kMostNested);
        frames[frame].enters.push_back(i);
      } else if (is_op(node(i), "LoopCond")) {
        frames[frame].condition = i;
      } else if (is_op(node(i), "Merge") && flow_.next_of(i)) {
        frames[frame].merges.push_back(i);
      }
      if (frame != 0 && raising_.has_effects(node(i))) frames[frame].effects.push_back(i);
      frame_of[i] = frame;
      inside_[i] = frame != 0;
    }
    return deeper;
  }

  /// What a loop is told to wait for although its own results come first. TensorFlow's values go round one by one, so one may wait, by
  /// control, for what another result of the same loop makes. A While takes all of them together: the results that can wait do so in
  /// its place.
  class Late {
   public:
    Late(Flow& flow, const Frame& frame) : flow_(flow), exits_(frame.exits) {
      if (!flow.effects || frame.depth > 1) return;
      users_.emplace(flow.nodes);
      behind_ = reached_from(exits_);
    }

    /// Whether the node comes behind the loop; then the results have been told to wait.
    bool take(uint32_t wait) {
      if (wait >= behind_.size() || !behind_[wait]) return false;
      for (uint32_t exit : exits_)
        if (!reached_from({exit})[wait]) flow_.nodes[exit].inputs.push_back({wait, Edge::kControl});
      return true;
    }

    /// The same for what enters the loop; nothing inside waits for it afterwards. False when it is read as well.
    bool take_entering(uint32_t enter) {
      const uint32_t from = flow_.data(enter, 0).node;
      if (from >= behind_.size() || !behind_[from]) return false;
      std::vector<uint32_t> passed{enter};  // it and identities
      for (size_t i = 0; i < passed.size(); ++i)
        for (Edge user : users_->of(passed[i])) {
          if (user.is_control()) continue;
          if (!flow_.at(user, "Identity")) return false;
          passed.push_back(user.node);
        }
      for (uint32_t each : passed)
        for (Edge user : users_->of(each)) std::erase(flow_.nodes[user.node].inputs, Edge{each, Edge::kControl});
      return take(from);
    }

   private:
    std::vector<bool> reached_from(std::vector<uint32_t> pending) const {
      std::vector<bool> reached(flow_.nodes.size(), false);
      while (!pending.empty()) {
        const uint32_t at = pending.back();
        pending.pop_back();
        for (Edge user : users_->of(at)) {
          if (reached[user.node]) continue;
          reached[user.node] = true;
          pending.push_back(user.node);
        }
      }
      return reached;
    }

    Flow& flow_;
    const std::vector<uint32_t>& exits_;
    std::optional<Users> users_;
    std::vector<bool> behind_;
  };

  /// What enters a loop: of a constant that waits for what comes behind the loop a copy that does not.
  Edge entering(Edge start, Late& late) {
    Node copy = node(start.node);
    if (copy.op != "Const" || !std::erase_if(copy.inputs, [&](Edge wait) { return late.take(wait.node); }))
      return start;
    copy.name = raising_.fresh(copy.name, "start");
    inside_.push_back(false);
    return {flow_.add(std::move(copy)), 0};
  }

  /// Whether the edge comes from a Switch of the loop itself, not of a conditional inside it.
  bool is_of_loop(Edge edge) const {
    return flow_.at(edge, "Switch") && flow_.at(flow_.behind(flow_.data(edge.node, 1)), "LoopCond");
  }

  /// Whether the tensor is, skipping identities, the value at the start of the iteration.
  bool hands_on(Edge edge, uint32_t merge) const {
    const Edge from = flow_.behind(edge);
    return flow_.at(from, "Switch") && from.port == 1 && flow_.data(from.node, 0).node == merge;
  }

  void raise(const Frame& frame, std::vector<Frame>& frames) {
    if (!frame.condition)
      fail(ErrorKind::invalid_model, printable(node(frame.enters[0]).name), "enters a loop without a condition");
    Node loop;
    loop.name = raising_.fresh(node(*frame.condition).name, "While");
    loop.op = "While";
    auto& raised = raising_.graph.raised[loop.name];
    auto absorb = [&](uint32_t i) { raised.push_back({node(i).name, node(i).op, node(i).location}); };
    absorb(*frame.condition);
    std::set<uint32_t> waits;
    Late late(flow_, frame);
    std::map<uint32_t, size_t> numbers;  // Merge or Enter -> which value of the loop
    auto argument = [&](Edge edge) -> std::optional<size_t> {
      const auto found = numbers.find(is_of_loop(edge) ? flow_.data(edge.node, 0).node : edge.node);
      return found == numbers.end() ? std::nullopt : std::optional(found->second);
    };
    auto place = [&](Edge edge) {
      if (argument(edge)) return Body::Place::argument;
      return inside_[edge.node] ? Body::Place::inside : Body::Place::outside;
    };
    Body body(flow_, raising_, raising_.fresh(loop.name, "%body"), argument, place);
    Body condition(flow_, raising_, raising_.fresh(loop.name, "%cond"), argument, place);
    auto carry = [&](uint32_t at, uint32_t enter) {
      numbers.emplace(at, loop.inputs.size());
      loop.inputs.push_back(entering(flow_.data(enter, 0), late));
      for (Edge input : node(enter).inputs)
        if (input.is_control() && raising_.effects) waits.insert(input.node);
      add_argument(body.function, node(at).name);
      add_argument(condition.function, node(at).name);
      absorb(at);
    };
    std::set<uint32_t> starts;
    for (uint32_t merge : frame.merges) {
      const uint32_t next = *flow_.next_of(merge);
      const Edge start = flow_.data(merge, flow_.data(merge, 0).node == next ? 1 : 0);
      if (!flow_.at(start, "Enter"))
        fail(ErrorKind::unsupported, printable(node(merge).name), "begins a loop with a value that does not enter it");
      carry(merge, start.node);
      absorb(start.node);
      absorb(next);
      starts.insert(start.node);
    }
    for (uint32_t enter : frame.enters)
      if (!starts.contains(enter) && !late.take_entering(enter)) carry(enter, enter);
    for (uint32_t merge : frame.merges) {
      const Edge result = flow_.data(*flow_.next_of(merge), 0);
      if (hands_on(result, merge))
        body.add_argument_as_result(numbers.at(merge));
      else
        body.add_result(result);
    }
    for (size_t invariant = frame.merges.size(); invariant < loop.inputs.size(); ++invariant)
      body.add_argument_as_result(invariant);
    condition.add_result(flow_.data(*frame.condition, 0));
    for (uint32_t effect : frame.effects) body.add_effect(effect);
    for (Body* part : {&condition, &body}) {
      FunctionDef function = part->finish();
      waits.insert(part->waits().begin(), part->waits().end());
      raise_branches(function.nodes, &function, raising_, frame.depth);
      raising_.inherit_effects(loop, function);
      loop.attrs.push_back({part == &body ? "body" : "cond", raising_.keep(attr_function(function.name))});
      raising_.graph.functions.push_back(std::move(function));
    }
    for (uint32_t wait : waits)
      if (!late.take(wait)) loop.inputs.push_back({wait, Edge::kControl});
    const auto at = static_cast<uint32_t>(flow_.nodes.size());
    for (uint32_t exit : frame.exits) {
      const Edge from = flow_.data(exit, 0);
      auto found = flow_.at(from, "Switch") ? numbers.find(flow_.data(from.node, 0).node) : numbers.end();
      if (found == numbers.end())
        fail(ErrorKind::unsupported, printable(node(exit).name), "leaves a loop with a value that does not go round");
      absorb(from.node);
      std::erase_if(flow_.nodes[exit].inputs, [](Edge input) { return !input.is_control(); });
      flow_.nodes[exit].inputs.insert(flow_.nodes[exit].inputs.begin(), {at, static_cast<int32_t>(found->second)});
    }
    if (frame.parent != 0 && raising_.has_effects(loop)) frames[frame.parent].effects.push_back(at);
    flow_.add(std::move(loop));
    inside_.push_back(frame.depth > 1);
  }

  Raising& raising_;
  Flow flow_;
  std::vector<bool> inside_;  // nodes that stand in a loop
};

}  // namespace

void raise_loops(Raising& raising) { Loops(raising).run(); }

}  // namespace cairn::tensorflow
