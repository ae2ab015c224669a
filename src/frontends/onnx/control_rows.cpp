// ONNX's If, Loop and Scan. A subgraph may use all outer names; those that it uses become explicit captures.
#include <set>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/subgraph.h"
#include "frontends/region.h"
#include "frontends/reshape.h"
#include "ir/control.h"

namespace cairn::onnx {
namespace {

/// A vector of one element counts as a scalar.
Value* scalar(Value* x, Builder& builder) {
  if (!x->type.is_tensor() || x->type.shape.rank() != 1) return x;
  return folded(builder.add("reshape", {x, builder.ints({})}), builder);
}

Value* always(Builder& b) { return b.constant(Tensor::of<uint8_t>(kBool, {}, {1})); }

/// Whether a value of a region is there, if it is an optional.
Value* presence_or_true(OpContext& c, const Value* value, Block& region) {
  Value* given = c.importer().presence(value);
  Builder b(region);
  return given ? given : always(b);
}

void branch(OpContext& c) {
  c.expect_inputs(1, 1);
  const Graph &yes = c.graph("then_branch"), &no = c.graph("else_branch");
  Value* condition = truth(scalar(c.in[0], c.b), c.b);
  if (const Tensor* known = constant_of(condition)) {  // exporters ask for ranks, which are known here
    const Graph& chosen = known->as_i64().at(0) != 0 ? yes : no;
    Outer outer(c, {&chosen});
    c.out = outer.run(chosen, c.b.block(), outer.values(), {});
    return;
  }
  Outer outer(c, {&yes, &no});
  Captures captures(outer.values());
  std::vector<std::unique_ptr<Block>> regions;
  std::set<size_t> optionals;
  for (const Graph* graph : {&yes, &no}) {
    std::vector<Value*> inside;
    regions.push_back(captures.open(inside));
    regions.back()->results = outer.run(*graph, *regions.back(), inside, {});
    for (size_t i = 0; i < graph->outputs.size(); ++i)
      if (graph->outputs[i].kind == ValueInfo::Kind::optional ||
          (graph->outputs[i].kind == ValueInfo::Kind::none && c.importer().presence(regions.back()->results[i])))
        optionals.insert(i);
  }
  const size_t count = yes.outputs.size();
  for (const auto& region : regions)
    for (size_t i : optionals) region->results.push_back(presence_or_true(c, region->results.at(i), *region));
  std::vector<Value*> inputs = captures.inputs();
  inputs.insert(inputs.begin(), condition);
  auto* made = c.b.add_node(op_named("if"), std::move(inputs), {}, std::move(regions));
  c.out = results_of(*made);
  for (size_t given = count; size_t i : optionals) c.importer().mark_presence(c.out.at(i), c.out.at(given++));
  c.out.resize(std::min(c.out.size(), count));
}

/// Loop(limit, condition, values...): the body takes the iteration number, the condition and the carried values, and
/// returns the next condition, the next values, and elements of scan outputs, which are collected in lists. Scan's body takes the
/// values and a part of each scanned input, and returns no condition.
class Loop {
 public:
  enum class Form : uint8_t { loop, scan };
  Loop(OpContext& c, Form form) : c_(c), body_(c.graph("body")), outer_(c, {&body_}), scan_(form == Form::scan) {
    start_ = {c.b.constant(Tensor::scalar_i64(0)), nullptr};
    captured_ = outer_.values();
    scan_ ? begin_scan() : begin_loop();
    for (const Value* value : start_) types_.push_back(value->type);
    if (limit_ != nullptr) captured_.push_back(limit_);
  }

  std::vector<Value*> run() {
    constexpr int kMostRounds = 16;
    bool elements_known = body_.outputs.size() == values_ + told();
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
      c_.importer().keep(std::move(body));
    }
    c_.refuse("the shapes of its values do not settle");
  }

 private:
  /// How many results of the body come before the values: the condition.
  size_t told() const { return scan_ ? 0 : 1; }

  void begin_loop() {
    OpContext& c = c_;
    if (c.in.size() < 2) c.expect_inputs(2, c.in.size());
    values_ = c.in.size() - 2;
    if (body_.inputs.size() != values_ + 2 || body_.outputs.size() < values_ + 1)
      fail(ErrorKind::invalid_model, "", "its body takes {} inputs and gives {} outputs for {} values",
           body_.inputs.size(), body_.outputs.size(), values_);
    start_[1] = c.given(1) ? truth(scalar(c.in[1], c.b), c.b) : always(c.b);
    add_values(2);
    limit_ = c.given(0) ? cast_to(scalar(c.in[0], c.b), kI64, c.b) : nullptr;
    for (size_t i = 0; i < values_; ++i) {
      Value* given = c.importer().presence(c.in[i + 2]);
      if (!given && body_.inputs[i + 2].kind != ValueInfo::Kind::optional) continue;
      optionals_.push_back(i);
      start_.push_back(given ? given : always(c.b));
    }
  }

  void begin_scan() {
    const int64_t count = c_.integer("num_scan_inputs");
    if (count < 1 || count > static_cast<int64_t>(c_.in.size()))
      fail(ErrorKind::invalid_model, "", "scans {} of {} inputs", count, c_.in.size());
    scanned_ = static_cast<size_t>(count);
    values_ = c_.in.size() - scanned_;
    if (body_.inputs.size() != c_.in.size() || body_.outputs.size() < values_)
      fail(ErrorKind::invalid_model, "", "its body takes {} inputs and gives {} outputs for {} inputs",
           body_.inputs.size(), body_.outputs.size(), c_.in.size());
    start_[1] = always(c_.b);
    add_values(0);
    for (size_t i = 0; i < scanned_; ++i) {
      Value* x = c_.in[values_ + i];
      axes_.push_back(normal_axis(numbers("scan_input_axes", i), c_.rank(values_ + i)));
      if (i == 0) limit_ = scalar(dim_of(x, static_cast<size_t>(axes_[0]), c_.b), c_.b);
      captured_.push_back(x);
    }
  }

  void add_values(size_t first) {
    for (size_t i = 0; i < values_; ++i) {
      if (!c_.in.given(i + first)) fail(ErrorKind::invalid_model, "", "value {} is left out", i);
      start_.push_back(declared(c_.in[i + first], body_.inputs[i + first]));
    }
  }
  /// An empty list of elements of any shape, whose shape the body tells, as one of these.
  Value* declared(Value* value, const ValueInfo& info) {
    const cairn::Node* made = value->producer;
    if (info.kind != ValueInfo::Kind::sequence || !info.ranked || !made || !made->is("list_make")) return value;
    const Type& any = value->type.elements[0];
    if (any.shape.ranked || dtype_of(info.element) != any.dtype) return value;
    Shape shape;
    for (const Dimension& dim : info.dims) shape.dims.push_back(dim.size >= 0 ? Dim(dim.size) : Dim());
    return c_.b.add("list_make", made->inputs, {{"element", Type::tensor(any.dtype, shape)}});
  }
  int64_t numbers(std::string_view attribute, size_t i) const {
    const std::vector<int64_t> list = c_.integers(attribute);
    return i < list.size() ? list[i] : 0;
  }

  /// What the body takes in the iteration.
  std::vector<Value*> body_inputs(const std::vector<Value*>& carried, const std::vector<Value*>& inside, Builder& b) {
    const auto end = carried.begin() + static_cast<int64_t>(values_ + 2);
    if (!scan_) {
      std::vector<Value*> given(carried.begin(), end);
      for (size_t i : {0, 1})  // the number and the condition are vectors of one element where the body says so
        if (body_.inputs[i].ranked && body_.inputs[i].dims.size() == 1) given[i] = reshape_to(given[i], {{1}}, b);
      return given;
    }
    std::vector<Value*> given(carried.begin() + 2, end);
    const size_t first = inside.size() - scanned_ - 1;
    for (size_t i = 0; i < scanned_; ++i) {
      Value* at = carried[0];
      if (numbers("scan_input_directions", i) != 0)
        at = b.add("sub", {b.add("sub", {inside.back(), b.constant(Tensor::scalar_i64(1))}), at});
      given.push_back(b.add("gather", {inside[first + i], at}, {{"axis", axes_[i]}}));
    }
    return given;
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
    Builder builder(*block);
    for (size_t i = 0; i < optionals_.size(); ++i)
      c_.importer().mark_presence(carried[2 + optionals_[i]], carried[2 + values_ + i]);
    std::vector<Value*> results = outer_.run(body_, *block, inside, body_inputs(carried, inside, builder));
    Value* next = builder.add("add", {carried[0], builder.constant(Tensor::scalar_i64(1))});
    block->results = {next, scan_ ? always(builder) : truth(scalar(results[0], builder), builder)};
    for (size_t i = 0; i < values_; ++i) block->results.push_back(results[i + told()]);
    for (size_t i : optionals_) block->results.push_back(presence_or_true(c_, results[i + told()], *block));
    for (size_t i = values_ + told(); i < results.size(); ++i) {
      elements.push_back(results[i]->type);
      if (!lists) continue;
      Value* list = carried[i + 2 - told() + optionals_.size()];
      block->results.push_back(builder.add("list_push", {list, results[i]}));
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
    for (size_t i = 0; i < values_; ++i) out.push_back(made->result(2 + i));
    for (size_t i = 0; i < optionals_.size(); ++i)
      c_.importer().mark_presence(out[optionals_[i]], made->result(2 + values_ + i));
    const size_t lists = 2 + values_ + optionals_.size();
    for (size_t i = lists; i < made->results.size(); ++i) out.push_back(collected(made->result(i), i - lists));
    return out;
  }

  Value* collected(Value* list, size_t i) {
    Value* y = c_.b.add("list_stack", {list});
    if (!scan_) return y;
    if (numbers("scan_output_directions", i) != 0) y = c_.b.add("reverse", {y}, {{"axes", std::vector<int64_t>{0}}});
    const int64_t axis = numbers("scan_output_axes", i);
    if (axis == 0) return y;
    if (!y->type.shape.ranked) c_.refuse("the rank of scan output {} is not known", i);
    std::vector<int64_t> order;
    for (size_t from = 1; from < y->type.shape.rank(); ++from) order.push_back(static_cast<int64_t>(from));
    order.insert(order.begin() + normal_axis(axis, y->type.shape.rank()), 0);
    return transposed(y, order, c_.b);
  }

  OpContext& c_;
  const Graph& body_;
  Outer outer_;
  bool scan_;
  size_t values_ = 0, scanned_ = 0;
  std::vector<size_t> optionals_;  // of the values; whether each is there is carried behind them
  std::vector<int64_t> axes_;      // of the scanned inputs
  Value* limit_ = nullptr;
  std::vector<Value*> start_, captured_;
  std::vector<Type> types_, elements_;
};

void loop(OpContext& c) { c.out = Loop(c, Loop::Form::loop).run(); }

/// Operator set 8 has lengths first and a batch in all inputs: each of its samples is scanned by itself.
void scan(OpContext& c) {
  if (c.opset >= 9) {
    c.out = Loop(c, Loop::Form::scan).run();
    return;
  }
  constexpr int64_t kMostSamples = 64;
  if (c.given(0)) c.refuse("lengths of the samples are not supported");
  const Dim batch = c.rank(1) == 0 ? Dim() : c.in[1]->type.shape.dims[0];
  if (!batch.known() || batch.size < 1 || batch.size > kMostSamples)
    c.refuse("the batch must be 1 to {}", kMostSamples);
  std::vector<std::vector<Value*>> parts;
  for (int64_t i = 0; i < batch.size; ++i) {
    std::vector<Value*> inputs;
    for (size_t k = 1; k < c.in.size(); ++k)
      inputs.push_back(c.b.add("gather", {c.in[k], c.b.constant(Tensor::scalar_i64(i))}));
    OpContext sample(c.importer(), c.node(), c.name(), c.names(), std::move(inputs), c.opset);
    const std::vector<Value*> made = Loop(sample, Loop::Form::scan).run();
    parts.resize(made.size());
    for (size_t k = 0; k < made.size(); ++k) parts[k].push_back(expand_dims(made[k], {0}, c.b));
  }
  for (const auto& part : parts) c.out.push_back(c.b.add("concat", part, {{"axis", int64_t{0}}}));
}

constexpr Row kControlRows[] = {
    {"If", branch},
    {"Loop", loop},
    {"Scan", scan},
};

}  // namespace

std::span<const Row> control_rows() { return kControlRows; }

}  // namespace cairn::onnx
