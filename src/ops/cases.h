// The cases of the op rows (OpDef::cases) as values: what the tests of the rows, the engines' conformance suite, the
// Python oracles and `cairn op test` are made from. A case reads "f32[2, 3], i64[2]=[1, -1] {axis = 1}": a type an input, an optional
// literal for its elements in row-major order ("rng=[key, low, high]" for a random state), then attributes.
#pragma once

#include <optional>
#include <random>

#include "ir/module.h"

namespace cairn {

struct OpCase {
  const OpDef* op = nullptr;
  std::string text;              // "concat f32[2, 3], f32[2, 4] {axis = 1}", for messages
  std::vector<Type> types;       // of the inputs
  std::vector<Tensor> literals;  // of the inputs; undefined where any value will do
  Attributes attributes;
};

OpCase parse_case(const OpDef& op, const std::string& text);
/// Every case of every row, in the rows' order.
std::vector<OpCase> all_cases();

/// What the elements of inputs without literal are.
enum class Elements : uint8_t {
  ordinary,  // floats in [-3, 3], many of them halves, so that ties and equal values happen; integers in [-9, 9]
  special,   // floats among these also NaN, both infinities and zeros, the largest and the smallest
};
/// The same values for the same seed on every machine.
Tensor random_tensor(const Type& type, std::mt19937_64& random, Elements elements = Elements::ordinary);
std::vector<HostValue> random_inputs(const OpCase& op_case, uint64_t seed = 1, Elements elements = Elements::ordinary);

/// A module whose @main is the one node: literal inputs are constants (random states excepted), the others parameters
/// in their order.
Module module_of(const OpCase& op_case);
/// Of the inputs of the case, those that are parameters of module_of().
std::vector<HostValue> parameters_of(const OpCase& op_case, const std::vector<HostValue>& inputs);

/// The row's reference kernel on these inputs. Throws Error.
std::vector<HostValue> run_reference(const OpDef& op, const Attributes& attributes,
                                     const std::vector<HostValue>& inputs);

/// What is wrong with `actual` by the row's accuracy class, or nothing. NaN equals NaN and the zeros are equal.
/// exact: equal elements; rounded: 8 units in the last place of an element, of 1/4 where it is smaller;
/// accumulate_f32: 4 units and 2e-6 (f64: 1e-13) of the largest element, of 1 where that is smaller.
std::optional<std::string> difference(const Tensor& expected, const Tensor& actual, Precision precision);

}  // namespace cairn
