// TensorFlow's functional control flow and calls.
#include "frontends/fold.h"
#include "frontends/region.h"
#include "frontends/tensorflow/flow.h"
#include "frontends/tensorflow/importer.h"
#include "ir/control.h"

namespace cairn::tensorflow {
namespace {

void call(OpContext& c) {
  std::string_view name = c.importer().is_function(c.node().op) ? c.node().op : c.function("f");
  c.out = c.importer().import_function(name, c.in, c.b, c.name(), c.level() + 1);
}

/// Makes the values inside a region that stand for handles known as these handles.
void enter_handles(OpContext& c, const std::vector<Value*>& outside, const std::vector<Value*>& inside) {
  for (size_t i = 0; i < outside.size(); ++i) c.importer().enter(outside[i], inside[i]);
}

/// A region that runs a library function on the captured values.
std::unique_ptr<Block> branch(OpContext& c, std::string_view function, const std::vector<Value*>& captured,
                              const Captures& captures) {
  std::vector<Value*> args;
  std::unique_ptr<Block> block = captures.open(args);
  enter_handles(c, captured, args);
  Builder builder(*block);
  block->results = c.importer().import_function(function, args, builder, c.name(), c.level() + 1);
  for (Value*& result : block->results)
    if (c.importer().is_reference(result)) result = builder.add("read_variable", {result});
  return block;
}

/// Fills in results that only the other branch has: zeros of the other branch's type.
void fill_absent(OpContext& c, std::string_view function, Block& block, const Block& other) {
  const FunctionDef& body = c.importer().find_function(function);
  for (size_t i = 0; i < block.results.size(); ++i) {
    const Node& made = body.nodes[body.outputs[i].edge.node];
    if (made.op != kAbsent) continue;
    const Type& type = other.results[i]->type;
    if (!type.is_tensor() || !type.shape.known())
      c.refuse("{} is {}, expected a known shape: its branch alone has it", printable(made.name), to_string(type));
    Builder builder(block);
    Value* zero = cast_to(builder.constant(Tensor::scalar_f32(0)), type.dtype, builder);
    block.results[i] = builder.add("broadcast_to", {zero, builder.ints(type.shape.sizes())});
  }
}

void choose(OpContext& c, Value* condition, std::unique_ptr<Block> yes, std::unique_ptr<Block> no,
            const Captures& captures) {
  std::vector<Value*> inputs = captures.inputs();
  inputs.insert(inputs.begin(), condition);
  std::vector<std::unique_ptr<Block>> regions;
  regions.push_back(std::move(yes));
  regions.push_back(std::move(no));
  auto* made = c.b.add_node(op_named("if"), std::move(inputs), {}, std::move(regions));
  c.out = results_of(*made);
}

void branch_of_two(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  Value* condition = truth(c.in[0], c.b);
  const std::vector<Value*> captured(c.in.begin() + 1, c.in.end());
  Captures captures(captured);
  auto yes = branch(c, c.function("then_branch"), captured, captures);
  auto no = branch(c, c.function("else_branch"), captured, captures);
  if (yes->results.size() == no->results.size()) {
    fill_absent(c, c.function("then_branch"), *yes, *no);
    fill_absent(c, c.function("else_branch"), *no, *yes);
  }
  choose(c, condition, std::move(yes), std::move(no), captures);
}

/// Marks the arguments that the body returns unchanged.
std::vector<bool> unchanged(const FunctionDef& body) {
  std::vector<bool> same(body.inputs.size(), false);
  for (size_t i = 0; i < body.inputs.size() && i < body.outputs.size(); ++i)
    same[i] = body.outputs[i].edge == body.inputs[i].edge;
  return same;
}

/// The parts of a While: values that change come first, the others are captured.
class Loop {
 public:
  explicit Loop(OpContext& c) : c_(c), cond_(c.function("cond")), body_(c.function("body")) {
    const FunctionDef& body = c.importer().find_function(body_);
    if (body.inputs.size() != c.in.size() || body.outputs.size() != c.in.size())
      fail(ErrorKind::invalid_model, "", "carries {} values, its body takes {} and gives {}", c.in.size(),
           body.inputs.size(), body.outputs.size());
    same_ = unchanged(body);
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (same_[i]) {
        captured_.push_back(c.in[i]);
      } else {
        carried_.push_back(content(c.in[i], c.b));
        types_.push_back(carried_.back()->type);
      }
    }
  }

  std::vector<Value*> run() {
    // The types of carried values must hold at the start and after every iteration: widen them to a fixed point.
    constexpr int kMostRounds = 16;
    for (int round = 0; round < kMostRounds; ++round) {
      auto condition = region(cond_, true);
      auto body = region(body_, false);
      if (name_elements(*body)) continue;
      std::vector<Type> wider;
      for (size_t i = 0; i < types_.size(); ++i) wider.push_back(joined_type(types_[i], body->results[i]->type, i));
      if (wider == types_) return finish(std::move(condition), std::move(body));
      types_ = std::move(wider);
    }
    fail(ErrorKind::unsupported, "", "the shapes of its values do not settle");
  }

 private:
  /// What a loop carries is no reference to a variable but what that holds.
  Value* content(Value* value, Builder& builder) const {
    return c_.importer().is_reference(value) ? builder.add("read_variable", {value}) : value;
  }

  std::unique_ptr<Block> region(std::string_view function, bool condition) {
    auto block = std::make_unique<Block>();
    std::vector<Value*> carried, captured;
    for (size_t i = 0; i < types_.size(); ++i) carried.push_back(block->add_param(types_[i], carried_[i]->name));
    Captures(captured_).enter(*block, captured);
    enter_handles(c_, captured_, captured);
    Builder builder(*block);
    std::vector<Value*> args;
    size_t next_carried = 0, next_captured = 0;
    for (bool same : same_) args.push_back(same ? captured[next_captured++] : carried[next_carried++]);
    std::vector<Value*> results = c_.importer().import_function(function, args, builder, c_.name(), c_.level() + 1);
    if (condition) {
      if (results.size() != 1) fail(ErrorKind::invalid_model, "", "the condition gives {} values", results.size());
      block->results = {truth(results[0], builder)};
    } else {
      for (size_t i = 0; i < results.size(); ++i)
        if (!same_[i]) block->results.push_back(content(results[i], builder));
    }
    return block;
  }

  /// Sets the element shape of lists that are created empty before the loop, from the first element that the body adds.
  /// The list then refuses elements that do not fit.
  bool name_elements(const Block& body) {
    bool named = false;
    for (size_t i = 0; i < types_.size(); ++i) {
      const cairn::Node* made = carried_[i]->producer;
      if (made == nullptr || !made->is("list_make") || types_[i].elements[0].shape.ranked) continue;
      std::optional<Type> element = element_put(body.results[i]);
      if (!element || !element->shape.ranked || element->dtype != types_[i].elements[0].dtype) continue;
      // Symbols that are introduced in the body are meaningless outside.
      for (Dim& dim : element->shape.dims)
        if (!dim.known()) dim = Dim();
      carried_[i] = c_.b.add("list_make", {made->inputs[0]}, {{"element", *element}});
      types_[i] = carried_[i]->type;
      named = true;
    }
    return named;
  }

  /// Type of what is put into a list, through branches and inner loops.
  static std::optional<Type> element_put(const Value* list) {
    for (const cairn::Node* node = list->producer; node != nullptr; node = list->producer) {
      if (node->is("list_set")) return node->inputs[2]->type;
      if (node->is("list_push")) return node->inputs[1]->type;
      if (node->regions.empty()) return std::nullopt;
      if (!is_loop(*node))
        if (auto found = element_put(node->regions[0]->results[list->index])) return found;
      list = node->regions.back()->results[list->index];
    }
    return std::nullopt;
  }

  std::vector<Value*> finish(std::unique_ptr<Block> condition, std::unique_ptr<Block> body) {
    std::vector<Value*> inputs = carried_;
    for (Value* input : Captures(captured_).inputs()) inputs.push_back(input);
    std::vector<std::unique_ptr<Block>> regions;
    regions.push_back(std::move(condition));
    regions.push_back(std::move(body));
    auto* made = c_.b.add_node(op_named("while"), std::move(inputs),
                               {{kCarried, static_cast<int64_t>(carried_.size())}}, std::move(regions));
    std::vector<Value*> out;
    size_t next = 0;
    for (size_t i = 0; i < same_.size(); ++i) out.push_back(same_[i] ? c_.in[i] : made->result(next++));
    return out;
  }

  OpContext& c_;
  std::string_view cond_, body_;
  std::vector<bool> same_;
  std::vector<Value*> carried_, captured_;
  std::vector<Type> types_;
};

void loop(OpContext& c) { c.out = Loop(c).run(); }

/// An If between branch `number` of a Case and the branches after it; an index out of range takes the last one.
std::vector<Value*> choose_from(OpContext& c, const std::vector<std::string_view>& branches, size_t number,
                                const std::vector<Value*>& args, Builder& builder) {
  auto run = [&](size_t branch, const std::vector<Value*>& inner, Builder& b) {
    return c.importer().import_function(branches[branch], inner, b, c.name(), c.level() + 1);
  };
  std::vector<Value*> values(args.begin() + 1, args.end());
  if (number + 1 == branches.size()) return run(number, values, builder);
  Value* here =
      cast_to(builder.constant(Tensor::scalar_i64(static_cast<int64_t>(number))), args[0]->type.dtype, builder);
  std::vector<Value*> inputs{builder.add("equal", {args[0], here})};
  Captures captures(args);
  for (Value* input : captures.inputs()) inputs.push_back(input);
  std::vector<std::unique_ptr<Block>> regions;
  for (bool yes : {true, false}) {
    std::vector<Value*> inside;
    auto block = captures.open(inside);
    Builder b(*block);
    b.sources = builder.sources;
    block->results =
        yes ? run(number, {inside.begin() + 1, inside.end()}, b) : choose_from(c, branches, number + 1, inside, b);
    regions.push_back(std::move(block));
  }
  auto* made = builder.add_node(op_named("if"), std::move(inputs), {}, std::move(regions));
  return results_of(*made);
}

void branch_of_many(OpContext& c) {
  constexpr size_t kMostBranches = 256;
  c.expect_inputs(1, c.in.size());
  std::vector<std::string_view> branches = c.functions("branches");
  if (branches.empty() || branches.size() > kMostBranches)
    fail(ErrorKind::invalid_model, "", "has {} branches, expected 1 to {}", branches.size(), kMostBranches);
  c.out = choose_from(c, branches, 0, c.in, c.b);
}

/// A Switch without a Merge: the condition must be known, since it decides which result has the value.
void lone_switch(OpContext& c) {
  c.expect_inputs(2);
  if (constant_of(c.in[1]) == nullptr) c.refuse("leads to no Merge, and its condition is not known");
  c.out = {c.in[0], c.in[0]};
}

/// Exit and Merge after raising: they forward a value of the While or If.
void hand_on(OpContext& c) { c.out = c.in; }

constexpr Traits kMerges = {Trait::free, Traits::kAny};
constexpr Traits kLoops = kCalls | Trait::hands_on;

constexpr Row kControlRows[] = {
    {"Case", branch_of_many, kCalls},       {"Exit", hand_on, kHandsOn},
    {"If", branch_of_two, kCalls},          {"Merge", hand_on, kMerges},
    {"PartitionedCall", call, kCalls},      {"StatefulPartitionedCall", call, kCalls},
    {"RefExit", hand_on, kHandsOn},         {"RefMerge", hand_on, kMerges},
    {"RefSwitch", lone_switch, kHandsOn},   {"StatelessCase", branch_of_many, kCalls},
    {"StatelessIf", branch_of_two, kCalls}, {"StatelessWhile", loop, kLoops},
    {"Switch", lone_switch, kHandsOn},      {"While", loop, kLoops},
};

}  // namespace

std::span<const Row> control_rows() { return kControlRows; }

}  // namespace cairn::tensorflow
