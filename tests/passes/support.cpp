#include "passes/support.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "passes/passes.h"

namespace cairn::test {

Module parse_short(const std::string& text) {
  size_t start = text.find_first_not_of(" \n");
  if (start != std::string::npos && text.compare(start, 6, "module") == 0) return parse(text);
  return parse("module @test { func @main" + text + " }");
}

std::string structure(Module module) {
  for (auto& function : module.functions)
    for_each_block(function->body, [](Block& block) {
      for (auto& param : block.params) param->name.clear();
      for (auto& node : block.nodes)
        for (auto& result : node->results) result->name.clear();
    });
  return print(module, {.sources = false, .inline_elements = 64}).text;
}

std::vector<HostValue> random_inputs(const Block& block, unsigned seed) {
  std::mt19937 random(seed);
  std::map<Symbol, int64_t> sizes;
  std::vector<HostValue> values;
  for (const auto& param : block.params) {
    const Type& type = param->type.kind == Type::Kind::resource ? param->type.elements[0] : param->type;
    std::vector<int64_t> dims;
    for (const Dim& dim : type.shape.dims)
      dims.push_back(dim.known()  ? dim.size
                     : dim.symbol ? sizes.try_emplace(dim.symbol, 1 + random() % 4).first->second
                                  : 3);
    Tensor tensor = Tensor::zeros(type.dtype, dims);
    auto number = [&] { return std::uniform_real_distribution<double>(-2, 2)(random); };
    if (type.dtype == kF32)
      for (float& x : tensor.mutable_values<float>()) x = static_cast<float>(number());
    else if (type.dtype == kF64)
      for (double& x : tensor.mutable_values<double>()) x = number();
    else if (type.dtype == kF16)  // small whole numbers, whose products and sums are exact
      for (uint16_t& x : tensor.mutable_values<uint16_t>()) x = float_to_half(static_cast<float>(random() % 9) - 4);
    else if (type.dtype == kBool)
      for (uint8_t& x : tensor.mutable_values<uint8_t>()) x = random() % 2;
    else if (type.dtype == kI32)
      for (int32_t& x : tensor.mutable_values<int32_t>()) x = static_cast<int32_t>(random() % 9) - 4;
    else if (type.dtype == kI64)
      for (int64_t& x : tensor.mutable_values<int64_t>()) x = static_cast<int64_t>(random() % 9) - 4;
    else if (type.dtype == kI8)
      for (int8_t& x : tensor.mutable_values<int8_t>()) x = static_cast<int8_t>(random());
    else if (type.dtype == kU8)
      for (uint8_t& x : tensor.mutable_values<uint8_t>()) x = static_cast<uint8_t>(random());
    else
      fail(ErrorKind::unsupported, param->name, "no random values of type {}", to_string(type));
    values.push_back({tensor, nullptr});
  }
  return values;
}

std::string difference(const std::vector<HostValue>& expected, const std::vector<HostValue>& found, double tolerance) {
  if (found.size() < expected.size()) return fmt::format("{} results, expected {}", found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor &a = expected[i].tensor, &b = found[i].tensor;
    if (a.dtype() != b.dtype() || a.dims() != b.dims())
      return fmt::format("result {} is {}, expected {}", i, to_string(b.type()), to_string(a.type()));
    if (!a.dtype().is_float()) {
      if (!a.same_bits(b)) return fmt::format("result {} differs", i);
      continue;
    }
    auto x = a.as_f64(), y = b.as_f64();
    double largest = 0;
    for (double value : x)
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    for (size_t k = 0; k < x.size(); ++k) {
      bool same = x[k] == y[k] || (std::isnan(x[k]) && std::isnan(y[k])) ||
                  std::abs(x[k] - y[k]) <= tolerance * std::max(largest, 1.0);
      if (!same) return fmt::format("result {}, element {} is {}, expected {}", i, k, y[k], x[k]);
    }
  }
  return "";
}

std::string random_check(const Module& before, const Module& after, double tolerance) {
  Module start = clone(before);
  inline_calls(start);
  lift_state(start);  // so that both have the same params
  for (unsigned seed = 0; seed < 5; ++seed) {
    auto inputs = random_inputs(start.main().body, seed);
    std::vector<HostValue> expected;
    try {
      expected = evaluate(start.main().body, inputs, &start);
    } catch (const Error&) {
      continue;  // sizes drawn for unknown dims do not suit the function
    }
    auto found = evaluate(after.main().body, inputs, &after);
    if (std::string text = difference(expected, found, tolerance); !text.empty()) return text;
  }
  return "";
}

}  // namespace cairn::test
