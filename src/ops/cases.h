// The cases of the op rows (OpDef::cases), parsed: the tests of the rows, the engines' conformance suite, the Python
// oracles and `cairn op test` use them. A case reads "f32[2, 3], i64[2]=[1, -1] {axis = 1}": one type per input,
// optionally with a literal for its elements in row-major order ("rng=[key, low, high]" for a random state), then
// attributes.
#pragma once

#include <optional>
#include <random>

#include "ir/module.h"

namespace cairn {

struct OpCase {
  const OpDef* op = nullptr;
  std::string text;              // "concat f32[2, 3], f32[2, 4] {axis = 1}", for messages
  std::vector<Type> types;       // of the inputs
  std::vector<Tensor> literals;  // of the inputs; undefined for inputs without a literal
  Attributes attributes;
};

OpCase parse_case(const OpDef& op, const std::string& text);
/// Every case of every row, in the rows' order.
std::vector<OpCase> all_cases();

/// How the elements of inputs without a literal are drawn.
enum class Elements : uint8_t {
  ordinary,  // floats in [-3, 3], many of them halves, so that ties and equal values happen; integers in [-9, 9]
  special,   // the same, and floats also NaN, both infinities and zeros, the largest and the smallest numbers
};
/// A tensor of random elements; equal seeds give equal elements on every machine.
Tensor random_tensor(const Type& type, std::mt19937_64& random, Elements elements = Elements::ordinary);
std::vector<HostValue> random_inputs(const OpCase& op_case, uint64_t seed = 1, Elements elements = Elements::ordinary);

/// A module whose @main has the node of the case: inputs with literals are constants (except random states), the others
/// are params in their order.
Module module_of(const OpCase& op_case);
/// Those of the case's inputs that are params in module_of().
std::vector<HostValue> parameters_of(const OpCase& op_case, const std::vector<HostValue>& inputs);

/// Runs the row's reference kernel on these inputs. Throws Error when the shape rule or the kernel refuses them.
std::vector<HostValue> run_reference(const OpDef& op, const Attributes& attributes,
                                     const std::vector<HostValue>& inputs);

/// How `actual` violates the row's accuracy class, or nothing. NaN equals NaN, and the zeros are equal.
/// exact: equal elements; rounded: within 8 units in the last place of the element (of 1/4 for smaller ones);
/// accumulate_f32: within 4 such units plus 2e-6 (f64: 1e-13) of the largest element (of 1 if that is smaller).
std::optional<std::string> difference(const Tensor& expected, const Tensor& actual, Precision precision);

}  // namespace cairn
