// Caffe's recurrent layers over steps [time, batch, ..], whose second bottom is 0 where a sequence begins anew and else 1.
#include "frontends/caffe/importer.h"
#include "frontends/fold.h"
#include "ir/expression.h"

namespace cairn::caffe {
namespace {

/// The layer's bottoms and weights: those of the steps, of an input that all steps share, and of the states.
struct Recurrent {
  Recurrent(LayerContext& c, int64_t gates, size_t states) : c(c), gates(gates), states(states) {
    const Message params = c.params("recurrent_param");
    hidden = params.integer("num_output", 0);
    exposed = params.flag("expose_hidden", false);
    constexpr int64_t kMost = 1 << 24;
    if (hidden < 1 || hidden > kMost) c.invalid("num_output is {}", hidden);
    const size_t given = exposed ? states : 0;
    c.expect(2 + given, 3 + given);
    shared = c.in.size() == 3 + given;
  }

  /// Vectors [.., n] of a bottom behind `leading` dims, by the weights at `blob`.
  Value* product(size_t bottom, int leading, size_t blob) {
    std::vector<NewDim> dims;
    int64_t n = 1;
    for (int i = 0; i < leading; ++i) dims.push_back({-1, i});
    for (size_t i = static_cast<size_t>(leading); i < c.rank(bottom); ++i)
      if (__builtin_mul_overflow(n, c.size(i, bottom), &n)) c.invalid("has too many elements");
    dims.push_back({n});
    return c.b.add("matmul", {reshape_to(c.in[bottom], dims, c.b), c.blob(blob, {gates * hidden, n})},
                   {{"transpose_b", true}});
  }

  /// What does not depend on states, [time, batch, gates * hidden].
  Value* of_inputs() {
    if (c.rank(0) < 3 || c.rank(1) != 2)
      c.invalid("bottoms have {} and {} dims, expected 3 or more, and 2", c.rank(0), c.rank(1));
    Value* x = c.b.add("add", {product(0, 2, 0), c.blob(1, {gates * hidden})});
    return shared ? c.b.add("add", {x, product(2, 1, 2)}) : x;
  }
  size_t next_blob() const { return shared ? 3 : 2; }

  /// The states [batch, hidden] before the first step.
  std::vector<Value*> start(Value* x) {
    std::vector<Value*> values;
    Builder& b = c.b;
    for (size_t i = 0; i < states; ++i)
      values.push_back(
          exposed ? reshape_to(c.in[(shared ? 3 : 2) + i], {{-1, 1}, {hidden}}, b)
                  : b.add("broadcast_to", {b.scalar_like(x, 0), joined({dim_of(x, 1, b), b.ints({hidden})}, b)}));
    return values;
  }

  LayerContext& c;
  int64_t gates, hidden;
  size_t states;
  bool exposed, shared;
};

using StepOf = FunctionRef<std::vector<Value*>(Builder&, Value* x, Value* goes_on, const std::vector<Value*>& states,
                                               const std::vector<Value*>& taken)>;

/// The first state after each step, [time, batch, hidden], then the last states.
std::vector<Value*> stepped(LayerContext& c, Value* x, const std::vector<Value*>& start, std::vector<Value*> taken,
                            StepOf step) {
  Builder& b = c.b;
  const auto number = [](Builder& in, int64_t i) { return in.constant(Tensor::scalar_i64(i)); };
  const size_t count = start.size(), first = count + 2;
  std::vector<Value*> carried{number(b, 0)};
  carried.insert(carried.end(), start.begin(), start.end());
  carried.push_back(b.add("list_make", {number(b, 0)}, {{"element", start[0]->type}}));
  Value* steps = scalar_dim(x, 0, b);
  taken.insert(taken.begin(), {x, c.in[1], steps});
  std::vector<Value*> done = b.make_while(
      carried, taken,
      [&](Builder& in, const std::vector<Value*>& now) {
        return std::vector{in.add("less", {now[0], now[first + 2]})};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        Value* goes_on = expand_dims(in.add("gather", {now[first + 1], now[0]}), {1}, in);
        const auto begin = now.begin();
        std::vector<Value*> states = step(in, in.add("gather", {now[first], now[0]}), goes_on,
                                          {begin + 1, begin + 1 + static_cast<int64_t>(count)},
                                          {begin + static_cast<int64_t>(first) + 3, now.end()});
        std::vector<Value*> next{in.add("add", {now[0], number(in, 1)})};
        next.insert(next.end(), states.begin(), states.end());
        next.push_back(in.add("list_push", {now[count + 1], states[0]}));
        return next;
      });
  std::vector<Value*> results{b.add("list_stack", {done[count + 1]})};
  results.insert(results.end(), done.begin() + 1, done.begin() + 1 + static_cast<int64_t>(count));
  return results;
}

void expose(LayerContext& c, const Recurrent& layer, const std::vector<Value*>& results) {
  c.out = {results[0]};
  for (size_t i = 1; layer.exposed && i < results.size(); ++i) c.out.push_back(expand_dims(results[i], {0}, c.b));
}

/// Gates input, forget, output and new cell.
void lstm(LayerContext& c) {
  Recurrent layer(c, 4, 2);
  const int64_t hidden = layer.hidden;
  Value* x = layer.of_inputs();
  Value* kernel = c.blob(layer.next_blob(), {4 * hidden, hidden});
  expose(
      c, layer,
      stepped(
          c, x, layer.start(x), {kernel},
          [&](Builder& in, Value* now, Value* goes_on, const std::vector<Value*>& states,
              const std::vector<Value*>& taken) {
            const Var lasts{in, goes_on}, cell{in, states[1]};
            const Var before = Var{in, states[0]} * lasts;
            const Var all = Var{in, now} + Var{in, in.add("matmul", {before.value, taken[0]}, {{"transpose_b", true}})};
            const auto gate = [&](int64_t i) {
              return all.apply("slice", {{in, in.ints({0, i * hidden})}, {in, in.ints({kToTheEnd, (i + 1) * hidden})}});
            };
            const Var next = lasts * gate(1).apply("sigmoid") * cell + gate(0).apply("sigmoid") * gate(3).apply("tanh");
            return std::vector{(gate(2).apply("sigmoid") * next.apply("tanh")).value, next.value};
          }));
}

/// A state by tanh, and a result by tanh of it.
void simple_recurrence(LayerContext& c) {
  Recurrent layer(c, 1, 1);
  const int64_t hidden = layer.hidden;
  Value* x = layer.of_inputs();
  const size_t blob = layer.next_blob();
  Value* kernel = c.blob(blob, {hidden, hidden});
  std::vector<Value*> results = stepped(
      c, x, layer.start(x), {kernel},
      [&](Builder& in, Value* now, Value* goes_on, const std::vector<Value*>& states,
          const std::vector<Value*>& taken) {
        const Var before = Var{in, states[0]} * Var{in, goes_on};
        return std::vector{(Var{in, now} + Var{in, in.add("matmul", {before.value, taken[0]}, {{"transpose_b", true}})})
                               .apply("tanh")
                               .value};
      });
  Value* out = c.b.add("matmul", {results[0], c.blob(blob + 1, {hidden, hidden})}, {{"transpose_b", true}});
  results[0] = c.b.add("tanh", {c.b.add("add", {out, c.blob(blob + 2, {hidden})})});
  expose(c, layer, results);
}

constexpr Row kRecurrentRows[] = {
    {"LSTM", lstm},
    {"RNN", simple_recurrence},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace cairn::caffe
