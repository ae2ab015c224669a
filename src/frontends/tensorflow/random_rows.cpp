// TensorFlow's random numbers. A stateful op keeps its generator in a variable of its own, named as the node, so that
// each run continues the stream; the module's random_states say where it starts, unless the op asks for any seed.
#include <algorithm>
#include <limits>

#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"
#include "frontends/values.h"

namespace cairn::tensorflow {
namespace {

/// By how much TensorFlow advances a stateful op's counter for each element.
constexpr int64_t kReserve = 256;

/// A draw from the node's own stream: `inputs` follow the state.
Value* from_stream(OpContext& c, const char* op, std::vector<Value*> inputs, Attributes attributes) {
  const auto seed = static_cast<uint64_t>(c.integer("seed", 0)), second = static_cast<uint64_t>(c.integer("seed2", 0));
  if (seed != 0 || second != 0) c.importer().module().random_states[c.name()] = {seed, 0, second};
  Value* variable = c.b.add("variable", {}, {{"name", c.name()}, {"type", Type::rng()}});
  inputs.insert(inputs.begin(), c.b.add("read_variable", {variable}));
  auto* made = c.b.add_node(op_named(op), std::move(inputs), std::move(attributes));
  c.b.add_node(op_named("assign_variable"), {variable, made->result(0)});
  return made->result(1);
}

void stateful_floats(OpContext& c) {
  c.expect_inputs(1);
  c.out = {from_stream(c, c.target, c.in, {{"dtype", c.dtype("dtype")}, {"reserve", kReserve}})};
}

void stateful_integers(OpContext& c) {
  c.expect_inputs(3);
  c.out = {from_stream(c, "random_integers", c.in, {{"reserve", kReserve}})};
}

void stateful_shuffle(OpContext& c) {
  c.expect_inputs(1);
  c.out = {c.rank(0) == 0 ? c.in[0] : from_stream(c, "random_shuffle", c.in, {})};
}

void stateful_categorical(OpContext& c) {
  c.expect_inputs(2);
  c.out = {from_stream(c, "random_categorical", c.in, {{"dtype", c.dtype("output_dtype", kDtInt64)}})};
}

Value* seeded(OpContext& c, Value* seed) {
  auto* made = c.b.add_node(op_named("random_seed"), {seed});
  return c.b.add("random_state", {made->result(0), made->result(1)});
}

/// Of TensorFlow's algorithms 1 is Philox; 3 lets the kernel choose, which on a CPU is Philox.
void require_philox(OpContext& c, const Value* algorithm) {
  const Tensor* number = constant_of(algorithm);
  if (number == nullptr || number->count() != 1) c.refuse("the algorithm must be a constant");
  if (const int64_t chosen = whole_numbers(*number)[0]; chosen != 1 && chosen != 3)
    c.refuse("random algorithm {} is not supported", chosen);
}

/// The state that a stateless op draws from: of two numbers, or of a key and a counter.
Value* state_of(OpContext& c) {
  if (!c.node().op.ends_with("V2")) return seeded(c, c.in[1]);
  require_philox(c, c.in[3]);
  return c.b.add("random_state", {c.in[1], c.in[2]});
}

void stateless(OpContext& c, const char* op, std::vector<Value*> inputs, Attributes attributes) {
  inputs.insert(inputs.begin(), state_of(c));
  c.out = {c.b.add_node(op_named(op), std::move(inputs), std::move(attributes))->result(1)};
}

void stateless_floats(OpContext& c) {
  c.expect_inputs(c.node().op.ends_with("V2") ? 4 : 2);
  stateless(c, c.target, {c.in[0]}, {{"dtype", c.dtype("dtype", kDtFloat)}});
}

void stateless_integers(OpContext& c) {
  const size_t bounds = c.node().op.ends_with("V2") ? 4 : 2;
  c.expect_inputs(bounds + 2);
  stateless(c, "random_integers", {c.in[0], c.in[bounds], c.in[bounds + 1]}, {});
}

/// Words as they are: draws from all of i64, which are the words but for their first bit. (The word of 64 ones is drawn as 0.)
void stateless_bits(OpContext& c) {
  c.expect_inputs(c.node().op.ends_with("V2") ? 4 : 2);
  const DType dtype = c.dtype("dtype");
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  Value *low = c.b.constant(Tensor::scalar_i64(kLow)), *high = c.b.constant(Tensor::scalar_i64(kHigh));
  const auto words = [&](Value* shape) {
    Value* drawn = c.b.add_node(op_named("random_integers"), {state_of(c), shape, low, high})->result(1);
    return c.b.add("bit_xor", {drawn, low});
  };
  Value* shape = cast_to(c.in[0], kI64, c.b);
  const auto as_given = [&](Value* x) {
    return x->type.dtype == dtype ? x : c.b.add("bitcast", {x}, {{"dtype", dtype}});
  };
  if (dtype == kI64 || dtype == kU64) {
    c.out = {as_given(words(shape))};
    return;
  }
  const Var count(c.b, c.b.add("reduce_prod", {shape}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}}));
  Value* all =
      c.b.add("reshape", {as_given(words(folded(by_number(count + 1.0, "floor_div", 2)).value)), c.b.ints({-1})});
  c.out = {reshape_by(c.b.add("slice", {all, c.b.ints({0}), folded(count).value}), shape, c.b)};
}

/// The state of a generator, counter (two words) and key, before its counter is advanced by 256 for each of so many elements.
void read_and_skip(OpContext& c) {
  c.expect_inputs(3);
  require_philox(c, c.in[1]);
  Value* state = c.b.add("read_variable", {c.in[0]});
  const Var words(c.b, c.b.add("bitcast", {state}, {{"dtype", kU64}}));
  const auto word = [&](int64_t i) {
    return Var(c.b, c.b.add("slice", {words.value, c.b.ints({i}), c.b.ints({i + 1})}));
  };
  const Var step = cast(Var(c.b, c.in[2]), kU64) * static_cast<double>(kReserve);
  const Var low = word(0) + step, high = word(1) + cast(low < word(0), kU64);
  Value* next = c.b.add("concat", {low.value, high.value, word(2).value}, {{"axis", int64_t{0}}});
  c.b.add_node(op_named("assign_variable"), {c.in[0], c.b.add("bitcast", {next}, {{"dtype", state->type.dtype}})});
  c.out = {state};
}

void stateless_categorical(OpContext& c) {
  c.expect_inputs(3);
  Value* state = seeded(c, c.in[2]);
  auto* made = c.b.add_node(op_named("random_categorical"), {state, c.in[0], c.in[1]},
                            {{"dtype", c.dtype("output_dtype", kDtInt64)}});
  c.out = {made->result(1)};
}

void key_and_counter(OpContext& c) {
  c.expect_inputs(1);
  auto* made = c.b.add_node(op_named("random_seed"), c.in);
  c.out = {made->result(0), made->result(1)};
}

void algorithm(OpContext& c) { c.out = {cast_to(c.b.constant(Tensor::scalar_i64(1)), kI32, c.b)}; }

constexpr Row kRandomRows[] = {
    {"Multinomial", stateful_categorical, Trait::draws},
    {"RandomShuffle", stateful_shuffle, Trait::draws},
    {"RandomStandardNormal", stateful_floats, "random_normal", Trait::draws},
    {"RandomUniform", stateful_floats, "random_uniform", Trait::draws},
    {"RandomUniformInt", stateful_integers, Trait::draws},
    {"RngReadAndSkip", read_and_skip, writes(1) | known(1)},
    {"StatelessMultinomial", stateless_categorical},
    {"StatelessRandomGetAlg", algorithm},
    {"StatelessRandomGetKeyCounter", key_and_counter},
    {"StatelessRandomNormal", stateless_floats, "random_normal"},
    {"StatelessRandomNormalV2", stateless_floats, "random_normal"},
    {"StatelessRandomUniform", stateless_floats, "random_uniform"},
    {"StatelessRandomUniformFullInt", stateless_bits},
    {"StatelessRandomUniformFullIntV2", stateless_bits},
    {"StatelessRandomUniformInt", stateless_integers},
    {"StatelessRandomUniformIntV2", stateless_integers},
    {"StatelessRandomUniformV2", stateless_floats, "random_uniform"},
    {"StatelessTruncatedNormal", stateless_floats, "random_truncated_normal"},
    {"StatelessTruncatedNormalV2", stateless_floats, "random_truncated_normal"},
    {"TruncatedNormal", stateful_floats, "random_truncated_normal", Trait::draws},
};

}  // namespace

std::span<const Row> random_rows() { return kRandomRows; }

}  // namespace cairn::tensorflow
