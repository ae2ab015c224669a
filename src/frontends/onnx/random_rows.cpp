// ONNX's random operators. A node keeps its generator in a variable of its own, so that each run continues the stream; the
// module's random_states say where it starts, unless the model asks for any seed.
#include <cstring>

#include "frontends/fold.h"
#include "frontends/onnx/importer.h"
#include "frontends/reshape.h"
#include "ir/expression.h"

namespace cairn::onnx {

Value* random_numbers(OpContext& c, const char* op, std::vector<Value*> inputs, DType dtype) {
  if (c.has("seed")) {
    uint64_t seed = 0;
    if (c.node().op == "Dropout") {
      seed = static_cast<uint64_t>(c.integer("seed"));
    } else {
      const double number = c.real("seed", 0);
      std::memcpy(&seed, &number, sizeof seed);
    }
    c.importer().module().random_states[c.name()] = {seed, 0, 0};
  }
  Value* variable = c.b.add("variable", {}, {{"name", c.name()}, {"type", Type::rng()}});
  inputs.insert(inputs.begin(), c.b.add("read_variable", {variable}));
  auto* made = c.b.add_node(op_named(op), std::move(inputs), {{"dtype", dtype}});
  c.b.add_node(op_named("assign_variable"), {variable, made->result(0)});
  return made->result(1);
}

namespace {

DType float_type(OpContext& c, DType fallback) {
  if (!c.has("dtype")) return fallback;
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("dtype")));
  if (!dtype || !dtype->is_float()) c.refuse("dtype is no type of floats");
  return *dtype;
}

/// RandomUniform and RandomNormal, of a shape or of the shape of an input.
void random_floats(OpContext& c) {
  const bool like = c.node().op.ends_with("Like"), uniform = c.node().op.starts_with("RandomUniform");
  c.expect_inputs(like ? 1 : 0, like ? 1 : 0);
  DType dtype = kF32;
  if (like && !c.has("dtype") && !c.in[0]->type.dtype.is_float()) c.refuse("dtype is no type of floats");
  dtype = float_type(c, like ? c.in[0]->type.dtype : kF32);
  Value* shape = like ? c.b.add("shape_of", {c.in[0]}) : c.b.ints(c.integers("shape"));
  const DType drawn = dtype == kF64 ? kF64 : kF32;
  const Var x(c.b, random_numbers(c, c.target, {shape}, drawn));
  const double first = uniform ? c.real("low", 0) : c.real("mean", 0);
  const double width = uniform ? c.real("high", 1) - first : c.real("scale", 1);
  c.out = {cast_to((x * width + first).value, dtype, c.b)};
}

/// 1 with the probability that each element is.
void bernoulli(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto dtype =
      c.has("dtype") ? dtype_of(static_cast<int32_t>(c.integer("dtype"))) : std::optional(c.in[0]->type.dtype);
  if (!dtype || *dtype == kString) c.refuse("dtype is no type of numbers");
  Value* drawn = random_numbers(c, "random_uniform", {c.b.add("shape_of", {c.in[0]})}, kF32);
  c.out = {cast_to(c.b.add("less", {drawn, cast_to(c.in[0], kF32, c.b)}), *dtype, c.b)};
}

void multinomial(OpContext& c) {
  c.expect_inputs(1, 1);
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("dtype", kInt32)));
  if (!dtype || !dtype->is_integer()) c.refuse("dtype is no type of integers");
  Value* count = c.b.constant(Tensor::scalar_i64(c.integer("sample_size", 1)));
  c.out = {cast_to(random_numbers(c, "random_categorical", {c.in[0], count}, kI64), *dtype, c.b)};
}

constexpr Row kRandomRows[] = {
    {"Bernoulli", bernoulli},
    {"Multinomial", multinomial},
    {"RandomNormal", random_floats, "random_normal"},
    {"RandomNormalLike", random_floats, "random_normal"},
    {"RandomUniform", random_floats, "random_uniform"},
    {"RandomUniformLike", random_floats, "random_uniform"},
};

}  // namespace

std::span<const Row> random_rows() { return kRandomRows; }

}  // namespace cairn::onnx
