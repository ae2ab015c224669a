// ONNX's If and Loop. A subgraph may use all outer names; those that it uses become explicit captures.
#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/region.h"
#include "ir/control.h"

namespace cairn::onnx {
namespace {

/// The outer values that some subgraphs name.
class Outer {
 public:
  Outer(OpContext& c, std::initializer_list<const Graph*> graphs) : c_(c) {
    std::set<std::string_view> names;
    for (const Graph* graph : graphs) names.merge(c.importer().captures(*graph));
    for (std::string_view name : names) {
      auto found = c.names().values.find(name);
      if (found == c.names().values.end())
        fail(ErrorKind::invalid_model, "", "the subgraph uses '{}', which nothing makes before it", printable(name));
      if (found->second == nullptr) throw AlreadyReported();
      names_.push_back(name);
      values_.push_back(found->second);
    }
  }
  const std::vector<Value*>& values() const { return values_; }

  /// Imports a subgraph into a block where `inside` stands for the captured values and `given` for its own inputs.
  std::vector<Value*> run(const Graph& graph, Block& block, const std::vector<Value*>& inside,
                          const std::vector<Value*>& given) {
    Builder builder(block);
    Names names{{}, c_.names().frame, c_.name(), &builder};
    for (size_t i = 0; i < names_.size(); ++i) names.values[names_[i]] = inside[i];
    if (graph.inputs.size() != given.size())
      fail(ErrorKind::invalid_model, "", "the subgraph takes {} inputs, expected {}", graph.inputs.size(),
           given.size());
    for (size_t i = 0; i < given.size(); ++i) names.values[graph.inputs[i].name] = given[i];
    std::vector<std::string_view> outputs;
    for (const ValueInfo& output : graph.outputs) outputs.push_back(output.name);
    std::vector<Value*> results = c_.importer().import_graph(graph, names, outputs);
    for (const Value* result : results)
      if (result == nullptr) throw AlreadyReported();
    return results;
  }

 private:
  OpContext& c_;
  std::vector<std::string_view> names_;
  std::vector<Value*> values_;
};

/// A vector of one element counts as a scalar.
Value* scalar(Value* x, Builder& builder) {
  if (!x->type.is_tensor() || x->type.shape.rank() != 1) return x;
  return folded(builder.add("reshape", {x, builder.ints({})}), builder);
}

void branch(OpContext& c) {
  c.expect_inputs(1, 1);
  const Graph &yes = c.graph("then_branch"), &no = c.graph("else_branch");
  Outer outer(c, {&yes, &no});
  Captures captures(outer.values());
  std::vector<std::unique_ptr<Block>> regions;
  for (const Graph* graph : {&yes, &no}) {
    std::vector<Value*> inside;
    regions.push_back(captures.open(inside));
    regions.back()->results = outer.run(*graph, *regions.back(), inside, {});
  }
  std::vector<Value*> inputs = captures.inputs();
  inputs.insert(inputs.begin(), truth(scalar(c.in[0], c.b), c.b));
  auto* made = c.b.add_node(op_named("if"), std::move(inputs), {}, std::move(regions));
  c.out = results_of(*made);
}

/// Loop(limit, condition, values...): the body takes the iteration number, the condition and the carried values, and
/// returns the next condition, the next values, and elements of scan outputs, which are collected in lists.
class Loop {
 public:
  explicit Loop(OpContext& c) : c_(c), body_(c.graph("body")), outer_(c, {&body_}) {
    if (c.in.size() < 2) c.expect_inputs(2, c.in.size());
    values_ = c.in.size() - 2;
    if (body_.inputs.size() != values_ + 2 || body_.outputs.size() < values_ + 1)
      fail(ErrorKind::invalid_model, "", "its body takes {} inputs and gives {} outputs for {} values",
           body_.inputs.size(), body_.outputs.size(), values_);
    start_ = {c.b.constant(Tensor::scalar_i64(0)), given_condition()};
    for (size_t i = 0; i < values_; ++i) {
      if (!c.in.given(i + 2)) fail(ErrorKind::invalid_model, "", "value {} is left out", i);
      start_.push_back(c.in[i + 2]);
    }
    for (const Value* value : start_) types_.push_back(value->type);
    limit_ = c.given(0) ? cast_to(scalar(c.in[0], c.b), kI64, c.b) : nullptr;
    captured_ = outer_.values();
    if (limit_ != nullptr) captured_.push_back(limit_);
  }

  std::vector<Value*> run() {
    constexpr int kMostRounds = 16;
    bool elements_known = body_.outputs.size() == values_ + 1;
    for (int round = 0; round < kMostRounds; ++round) {
      std::vector<Type> elements;
      auto body = body_region(elements_known, elements);
      std::vector<Type> wider, wider_elements;
      for (size_t i = 0; i < types_.size(); ++i) wider.push_back(joined_type(types_[i], body->results[i]->type, i));
      for (size_t i = 0; i < elements.size(); ++i)
        wider_elements.push_back(elements_known ? joined_type(elements_[i], elements[i], i) : elements[i]);
      bool settled = elements_known && wider == types_ && wider_elements == elements_;
      types_ = std::move(wider);
      elements_ = std::move(wider_elements);
      elements_known = true;
      if (settled) return finish(std::move(body));
    }
    c_.refuse("the shapes of its values do not settle");
  }

 private:
  Value* given_condition() {
    if (c_.given(1)) return truth(scalar(c_.in[1], c_.b), c_.b);
    return c_.b.constant(Tensor::of<uint8_t>(kBool, {}, {1}));
  }

  /// A block with parameters for carried values, lists and captures.
  std::unique_ptr<Block> open(bool lists, std::vector<Value*>& carried, std::vector<Value*>& inside) {
    auto block = std::make_unique<Block>();
    for (const Type& type : types_) carried.push_back(block->add_param(type, ""));
    if (lists)
      for (const Type& element : elements_) carried.push_back(block->add_param(Type::list(element), ""));
    Captures(captured_).enter(*block, inside);
    return block;
  }

  std::unique_ptr<Block> body_region(bool lists, std::vector<Type>& elements) {
    std::vector<Value*> carried, inside;
    auto block = open(lists, carried, inside);
    std::vector<Value*> given(carried.begin(), carried.begin() + static_cast<int64_t>(values_ + 2));
    std::vector<Value*> results = outer_.run(body_, *block, inside, given);
    Builder builder(*block);
    Value* next = builder.add("add", {carried[0], builder.constant(Tensor::scalar_i64(1))});
    block->results = {next, truth(scalar(results[0], builder), builder)};
    for (size_t i = 0; i < values_; ++i) block->results.push_back(results[i + 1]);
    for (size_t i = values_ + 1; i < results.size(); ++i) {
      elements.push_back(results[i]->type);
      if (lists) block->results.push_back(builder.add("list_push", {carried[i + 1], results[i]}));
    }
    return block;
  }

  std::unique_ptr<Block> condition_region() {
    std::vector<Value*> carried, inside;
    auto block = open(true, carried, inside);
    Builder builder(*block);
    Value* more = carried[1];
    if (limit_ != nullptr) more = builder.add("and", {more, builder.add("less", {carried[0], inside.back()})});
    block->results = {more};
    return block;
  }

  std::vector<Value*> finish(std::unique_ptr<Block> body) {
    std::vector<Value*> inputs = start_;
    Value* zero = c_.b.constant(Tensor::scalar_i64(0));
    for (const Type& element : elements_) inputs.push_back(c_.b.add("list_make", {zero}, {{"element", element}}));
    auto carried = static_cast<int64_t>(inputs.size());
    for (Value* input : Captures(captured_).inputs()) inputs.push_back(input);
    std::vector<std::unique_ptr<Block>> regions;
    regions.push_back(condition_region());
    regions.push_back(std::move(body));
    auto* made = c_.b.add_node(op_named("while"), std::move(inputs), {{kCarried, carried}}, std::move(regions));
    std::vector<Value*> out;
    for (size_t i = 2; i < made->results.size(); ++i)
      out.push_back(i < values_ + 2 ? made->result(i) : c_.b.add("list_stack", {made->result(i)}));
    return out;
  }

  OpContext& c_;
  const Graph& body_;
  Outer outer_;
  size_t values_ = 0;
  Value* limit_ = nullptr;
  std::vector<Value*> start_, captured_;
  std::vector<Type> types_, elements_;
};

void loop(OpContext& c) { c.out = Loop(c).run(); }

constexpr Row kControlRows[] = {
    {"If", branch},
    {"Loop", loop},
};

}  // namespace

std::span<const Row> control_rows() { return kControlRows; }

}  // namespace cairn::onnx
