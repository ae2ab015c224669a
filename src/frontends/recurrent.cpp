#include "frontends/recurrent.h"

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "ir/control.h"

namespace cairn {
namespace {

Value* sum(Builder& b, Value* x, Value* y) { return b.add("add", {x, y}); }
Value* product(Builder& b, Value* x, Value* y) { return b.add("mul", {x, y}); }

/// Elements begin .. end-1 of the last axis.
Value* cut(Builder& b, Value* x, int64_t begin, int64_t end) {
  if (const Dim& size = x->type.shape.dims.back(); begin == 0 && size.known() && size.size == end) return x;
  std::vector<int64_t> first(x->type.shape.rank(), 0), last(x->type.shape.rank(), kToTheEnd);
  first.back() = begin, last.back() = end;
  return folded(b.add("slice", {x, b.ints(first), b.ints(last)}), b);
}

/// One step of a layer, inside the loop's body: all values of the layer are the body's own.
class Step {
 public:
  Step(const Recurrence& layer, Builder& b) : layer_(layer), b(b) {}

  /// The next states.
  std::vector<Value*> run(Value* x) {
    switch (layer_.kind) {
      case Recurrence::Kind::simple: return {applied(layer_.fresh, sum(b, x, of_state(layer_.states[0], 0, 1)))};
      case Recurrence::Kind::gru: return {gru(x, layer_.states[0])};
      case Recurrence::Kind::lstm: return lstm(x, layer_.states[0], layer_.states[1]);
    }
    CHECK(false, "kind");
  }

 private:
  Value* applied(const std::string& function, Value* x) { return layer_.apply(function, x, b); }

  /// The state's contribution to `count` gates from `first` on.
  Value* of_state(Value* h, int64_t first, int64_t count) {
    const int64_t begin = first * layer_.hidden, end = begin + count * layer_.hidden;
    Value* y = layer_.product(h, cut(b, layer_.kernel, begin, end), b);
    return layer_.bias == nullptr ? y : sum(b, y, cut(b, layer_.bias, begin, end));
  }
  Value* gate(Value* all, size_t number) {
    const int64_t begin = layer_.order[number] * layer_.hidden;
    return cut(b, all, begin, begin + layer_.hidden);
  }
  Value* peeped(Value* x, Value* cell, int64_t number) {
    if (layer_.peephole == nullptr) return x;
    return sum(b, x, product(b, cell, cut(b, layer_.peephole, number * layer_.hidden, (number + 1) * layer_.hidden)));
  }

  std::vector<Value*> lstm(Value* x, Value* h, Value* cell) {
    Value* all = sum(b, x, of_state(h, 0, 4));
    Value* input = applied(layer_.gate, peeped(gate(all, 0), cell, 0));
    Value* forget = layer_.coupled ? b.add("sub", {b.scalar_like(input, 1), input})
                                   : applied(layer_.gate, peeped(gate(all, 1), cell, 2));
    Value* fresh = applied(layer_.fresh, gate(all, 2));
    Value* next = sum(b, product(b, forget, cell), product(b, input, fresh));
    Value* output = applied(layer_.gate, peeped(gate(all, 3), next, 1));
    return {product(b, output, applied(layer_.out, next)), next};
  }

  Value* gru(Value* x, Value* h) {
    const int64_t last = layer_.order[2];
    Value *update = nullptr, *reset = nullptr, *past = nullptr;
    if (layer_.reset_after) {
      Value* of_h = of_state(h, 0, 3);
      Value* both = sum(b, x, of_h);
      update = applied(layer_.gate, gate(both, 0)), reset = applied(layer_.gate, gate(both, 1));
      past = product(b, reset, gate(of_h, 2));
    } else {
      update = applied(layer_.gate, sum(b, gate(x, 0), of_state(h, layer_.order[0], 1)));
      reset = applied(layer_.gate, sum(b, gate(x, 1), of_state(h, layer_.order[1], 1)));
      past = of_state(product(b, reset, h), last, 1);
    }
    Value* fresh = applied(layer_.fresh, sum(b, gate(x, 2), past));
    return sum(b, fresh, product(b, update, b.add("sub", {h, fresh})));
  }

  const Recurrence& layer_;
  Builder& b;
};

Value* zero_like(const Value* x, Builder& builder) {
  return cast_to(builder.constant(Tensor::scalar_f32(0)), x->type.dtype, builder);
}

Value* turned(Value* x, Builder& builder) { return builder.add("reverse", {x}, {{"axes", std::vector<int64_t>{0}}}); }

/// The values that the loop captures.
std::vector<Value**> captures(Recurrence& layer) {
  std::vector<Value**> all;
  for (Value** each : {&layer.input, &layer.kernel, &layer.bias, &layer.peephole, &layer.lengths, &layer.mask})
    if (*each != nullptr) all.push_back(each);
  return all;
}

/// The loop's body. Its params: the number of the step, the states and the results so far; then the number of steps and
/// the captures.
std::unique_ptr<Block> body_for(Recurrence layer, const std::vector<Value*>& inputs) {
  auto body = std::make_unique<Block>();
  for (const Value* input : inputs) body->add_param(input->type, "");
  Builder b(*body);
  size_t at = 0;
  auto param = [&] { return body->params[at++].get(); };
  Value* now = param();
  for (Value*& state : layer.states) state = param();
  Value* results = param();
  param();
  for (Value** each : captures(layer)) *each = param();
  std::vector<Value*> next = Step(layer, b).run(b.add("gather", {layer.input, now}));
  Value* y = next[0];
  if (layer.lengths != nullptr) {
    Value* within = layer.backwards ? b.add("less_equal", {layer.lengths, now}) : b.add("less", {now, layer.lengths});
    y = b.add("select", {within, y, zero_like(y, b)});
    for (size_t i = 0; i < next.size(); ++i) next[i] = b.add("select", {within, next[i], layer.states[i]});
  }
  if (layer.mask != nullptr) {
    Value* counts = b.add("gather", {layer.mask, now});
    for (size_t i = 0; i < next.size(); ++i) next[i] = b.add("select", {counts, next[i], layer.states[i]});
    y = layer.masked_zero ? b.add("select", {counts, y, zero_like(y, b)}) : next[0];
  }
  body->results = {b.add("add", {now, b.constant(Tensor::scalar_i64(1))})};
  body->results.insert(body->results.end(), next.begin(), next.end());
  body->results.push_back(b.add("list_push", {results, y}));
  return body;
}

}  // namespace

Value* zero_state(Value* input, int64_t hidden, Builder& builder) {
  Value* sizes = joined({dim_of(input, 1, builder), builder.ints({hidden})}, builder);
  const Type type = Type::tensor(input->type.dtype, Shape{input->type.shape.dims[1], Dim(hidden)});
  return builder.add_node(op_named("broadcast_to"), {zero_like(input, builder), sizes}, {}, {}, {type})->result();
}

Sequence recur(const Recurrence& given, Builder& b) {
  Recurrence layer = given;
  if (layer.backwards) layer.input = turned(layer.input, b);
  if (layer.backwards && layer.mask != nullptr) layer.mask = turned(layer.mask, b);
  if (layer.backwards && layer.lengths != nullptr)  // from here on: the iteration that reaches the sequence
    layer.lengths = b.add("sub", {dim_of(layer.input, 0, b), layer.lengths});
  Value* zero = b.constant(Tensor::scalar_i64(0));
  std::vector<Value*> inputs{zero};
  inputs.insert(inputs.end(), layer.states.begin(), layer.states.end());
  inputs.push_back(b.add("list_make", {zero}, {{"element", layer.states[0]->type}}));
  const size_t carried = inputs.size();
  inputs.push_back(scalar_dim(layer.input, 0, b));
  for (Value** each : captures(layer)) inputs.push_back(*each);
  auto condition = std::make_unique<Block>();
  for (const Value* input : inputs) condition->add_param(input->type, "");
  condition->results = {
      Builder(*condition).add("less", {condition->params[0].get(), condition->params[carried].get()})};
  std::vector<std::unique_ptr<Block>> regions;
  regions.push_back(std::move(condition));
  regions.push_back(body_for(layer, inputs));
  Node* loop = b.add_node(op_named("while"), inputs, {{kCarried, static_cast<int64_t>(carried)}}, std::move(regions));
  Sequence sequence;
  Shape all = layer.states[0]->type.shape;
  if (all.ranked) all.dims.insert(all.dims.begin(), layer.input->type.shape.dims[0]);
  const Type type = Type::tensor(layer.input->type.dtype, all);
  sequence.all = b.add_node(op_named("list_stack"), {loop->result(carried - 1)}, {}, {}, {type})->result();
  if (layer.backwards) sequence.all = turned(sequence.all, b);
  for (size_t i = 0; i < layer.states.size(); ++i) sequence.last.push_back(loop->result(1 + i));
  return sequence;
}

}  // namespace cairn
