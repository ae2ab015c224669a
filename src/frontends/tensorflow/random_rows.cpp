// TensorFlow's random numbers. A stateful op keeps its generator in a variable of its own, named as the node, so that
// each run continues the stream; the module's random_states say where it starts, unless the op asks for any seed.
#include <algorithm>

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

/// The state that a stateless op draws from: of two numbers, or of a key and a counter.
Value* state_of(OpContext& c) {
  if (!c.node().op.ends_with("V2")) return seeded(c, c.in[1]);
  const Tensor* algorithm = constant_of(c.in[3]);
  if (algorithm == nullptr || algorithm->count() != 1) c.refuse("the algorithm must be a constant");
  // 1 is Philox; 3 lets the kernel choose, which on a CPU is Philox.
  const int64_t number = whole_numbers(*algorithm)[0];
  if (number != 1 && number != 3) c.refuse("random algorithm {} is not supported", number);
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
    {"StatelessMultinomial", stateless_categorical},
    {"StatelessRandomGetAlg", algorithm},
    {"StatelessRandomGetKeyCounter", key_and_counter},
    {"StatelessRandomNormal", stateless_floats, "random_normal"},
    {"StatelessRandomNormalV2", stateless_floats, "random_normal"},
    {"StatelessRandomUniform", stateless_floats, "random_uniform"},
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
