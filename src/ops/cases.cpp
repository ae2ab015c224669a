// Parses the cases of the op rows and makes inputs and modules from them.
#include "ops/cases.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ir/builder.h"
#include "ir/text.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

// Splits at commas outside of brackets and trims the parts.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 0)
      parts.push_back(std::move(part)), part.clear();
    else if (c != ' ' || !part.empty())
      part += c;
  }
  if (!part.empty()) parts.push_back(std::move(part));
  for (std::string& each : parts) each.resize(each.find_last_not_of(' ') + 1);
  return parts;
}

template <class T>
T element(const std::string& text) {
  if constexpr (kIsFloat<T>) {
    return saturate<T>(std::get<double>(parse_attribute(text, AttrKind::number)));
  } else {
    T value{};
    auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    CHECK(result.ec == std::errc() && result.ptr == text.data() + text.size(), "literal {}", text);
    return value;
  }
}

Tensor literal(const Type& type, std::string_view list) {
  auto words = split(list.substr(1, list.size() - 2));
  Tensor tensor = Tensor::zeros(type.dtype, type.shape.sizes());
  CHECK(static_cast<int64_t>(words.size()) == tensor.count(), "{} literals for {}", words.size(), to_string(type));
  if (type.dtype == kBool)
    for (size_t i = 0; i < words.size(); ++i) tensor.mutable_values<uint8_t>()[i] = words[i] == "true";
  else
    with_numbers(type.dtype, [&](auto tag) {
      using T = decltype(tag);
      for (size_t i = 0; i < words.size(); ++i) data<T>(tensor)[i] = element<T>(words[i]);
    });
  return tensor;
}

void parse_input(const std::string& text, OpCase& into) {
  const size_t equals = text.find('=');
  into.types.push_back(parse_type(text.substr(0, equals)));
  const Type& type = into.types.back();
  const Type filled = type.kind == Type::Kind::rng ? Type::tensor(kU64, Shape{3}) : type;
  into.literals.push_back(equals == std::string::npos ? Tensor()
                                                      : literal(filled, std::string_view(text).substr(equals + 1)));
}

template <class T>
T ordinary(std::mt19937_64& random) {
  if constexpr (!kIsFloat<T>)
    return static_cast<T>(std::is_signed_v<T> ? static_cast<int64_t>(random() % 19) - 9
                                              : static_cast<int64_t>(random() % 10));
  const bool half = random() % 4 == 0;
  const double value =
      half ? static_cast<double>(random() % 13) / 2 - 3 : std::ldexp(static_cast<double>(random() >> 11), -53) * 6 - 3;
  return saturate<T>(value);
}

template <class T>
T special(std::mt19937_64& random) {
  using Limits = std::numeric_limits<float>;
  constexpr double kValues[] = {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), 0.0, -0.0, 1, -1,
                                Limits::max(),       Limits::min(),      Limits::denorm_min()};
  if (random() % 2 || !kIsFloat<T>) return ordinary<T>(random);
  return saturate<T>(kValues[random() % std::size(kValues)]);
}

double unit_in_last_place(DType dtype) {
  if (dtype == kF64) return 0x1p-52;
  if (dtype == kF16) return 0x1p-10;
  if (dtype == kBF16) return 0x1p-7;
  return 0x1p-23;
}

}  // namespace

OpCase parse_case(const OpDef& op, const std::string& text) {
  OpCase result{&op, std::string(op.name) + " " + text, {}, {}, {}};
  const size_t brace = std::min(text.find('{'), text.size());
  for (const std::string& input : split(std::string_view(text).substr(0, brace))) parse_input(input, result);
  if (brace == text.size()) return result;
  for (const std::string& pair : split(std::string_view(text).substr(brace + 1, text.rfind('}') - brace - 1))) {
    const size_t equals = pair.find(" = ");
    const AttrDef* def = op.find_attribute(pair.substr(0, equals));
    CHECK(def, "{}: no attribute {}", result.text, pair);
    result.attributes.set(def->name, parse_attribute(pair.substr(equals + 3), def->kind));
  }
  return result;
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  for (const OpDef* op : all_ops())
    for (const char* text : op->cases) cases.push_back(parse_case(*op, text));
  return cases;
}

Tensor random_tensor(const Type& type, std::mt19937_64& random, Elements elements) {
  Tensor tensor = Tensor::zeros(type.dtype, type.shape.sizes());
  if (type.dtype == kBool) {
    for (uint8_t& value : tensor.mutable_values<uint8_t>()) value = random() % 2;
    return tensor;
  }
  with_numbers(type.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (T& value : tensor.mutable_values<T>())
      value = elements == Elements::special ? special<T>(random) : ordinary<T>(random);
  });
  return tensor;
}

std::vector<HostValue> random_inputs(const OpCase& op_case, uint64_t seed, Elements elements) {
  std::mt19937_64 random(seed);
  std::vector<HostValue> inputs;
  for (size_t i = 0; i < op_case.types.size(); ++i) {
    const Tensor& given = op_case.literals[i];
    inputs.push_back({given.defined() ? given : random_tensor(op_case.types[i], random, elements), nullptr});
  }
  return inputs;
}

namespace {

bool is_parameter(const OpCase& op_case, size_t i) {
  return !op_case.literals[i].defined() || !op_case.types[i].is_tensor();
}

}  // namespace

Module module_of(const OpCase& op_case) {
  Module module;
  auto function = std::make_unique<Function>();
  function->name = "main";
  Builder builder(function->body);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < op_case.types.size(); ++i) {
    const std::string name = fmt::format("x{}", i);
    inputs.push_back(is_parameter(op_case, i) ? function->body.add_param(op_case.types[i], name)
                                              : builder.constant(op_case.literals[i], name));
  }
  Node* node = builder.add_node(*op_case.op, inputs, op_case.attributes, {}, {}, "y");
  for (const auto& result : node->results) {
    function->body.results.push_back(result.get());
    function->result_names.push_back(fmt::format("y{}", result->index));
  }
  module.functions.push_back(std::move(function));
  return module;
}

std::vector<HostValue> parameters_of(const OpCase& op_case, const std::vector<HostValue>& inputs) {
  std::vector<HostValue> parameters;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_parameter(op_case, i)) parameters.push_back(inputs[i]);
  return parameters;
}

std::vector<HostValue> run_reference(const OpDef& op, const Attributes& attributes,
                                     const std::vector<HostValue>& inputs) {
  size_t count = op.results.size();
  if (count == 0) {  // none, or as many as the shape rule says
    Block block;
    std::vector<Value*> values;
    for (const HostValue& input : inputs) values.push_back(block.add_param(input.tensor.type(), "x"));
    count = infer_types(op, values, attributes).size();
  }
  std::vector<HostValue> results(count);
  KernelContext context(op, attributes, inputs, results);
  op.reference(context);
  return results;
}

std::optional<std::string> difference(const Tensor& expected, const Tensor& actual, Precision precision) {
  if (expected.dtype() != actual.dtype() || expected.dims() != actual.dims())
    return fmt::format("expected {}, found {}", to_string(expected.type()), to_string(actual.type()));
  const bool is_float = expected.dtype().is_float();
  const bool wide = expected.dtype().is_integer() && expected.dtype().bits == 64;
  if (wide && expected.same_bits(actual)) return std::nullopt;  // doubles cannot represent all 64-bit integers
  const std::vector<double> e = expected.as_f64(), a = actual.as_f64();
  const double unit = unit_in_last_place(expected.dtype());
  double largest = 1;
  for (double value : e)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < e.size(); ++i) {
    double allowed = 0;
    if (is_float && precision == Precision::rounded) allowed = 8 * unit * std::max(std::abs(e[i]), 0.25);
    if (is_float && precision == Precision::accumulate_f32)
      allowed = (4 * unit + (expected.dtype() == kF64 ? 1e-13 : 2e-6)) * largest;
    const bool same = e[i] == a[i] || (std::isnan(e[i]) && std::isnan(a[i])) ||
                      std::abs(e[i] - a[i]) <= (std::isinf(e[i]) ? 0 : allowed);
    if (!same || wide) return fmt::format("element {}: expected {}, found {}", i, e[i], a[i]);
  }
  return std::nullopt;
}

}  // namespace cairn
