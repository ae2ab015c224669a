// Gradients and decompositions of rows in C++: formulas of Cairn's operators. Part of <cairn/op.hpp>.
#ifndef CAIRN_OP_GRAPH_HPP_
#define CAIRN_OP_GRAPH_HPP_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cairn/op_call.hpp"

namespace cairn::op {

class Graph;

/// A value in a gradient or decomposition: add(), mul() and the like are nodes of Cairn's operators, by name.
class Value {
 public:
  Value() = default;
  Value(const Graph* graph, CairnValue* value) : graph_(graph), value_(value) {}
  const Graph& graph() const { return *graph_; }
  CairnValue* handle() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }
  Type type() const;
  /// An operator with this as its first input.
  Value apply(const char* op, std::initializer_list<Value> more = {},
              const std::vector<std::pair<const char*, int64_t>>& integers = {}) const;

 private:
  const Graph* graph_ = nullptr;
  CairnValue* value_ = nullptr;
};

/// An attribute of a node: true, 3, 0.5, "same", {1, 2}.
class Attribute {
 public:
  Attribute(const char* name, bool value) : name_(name), kind_(CAIRN_ATTRIBUTE_BOOLEAN), integer_(value) {}
  Attribute(const char* name, int value) : Attribute(name, static_cast<int64_t>(value)) {}
  Attribute(const char* name, int64_t value) : name_(name), kind_(CAIRN_ATTRIBUTE_INTEGER), integer_(value) {}
  Attribute(const char* name, double value) : name_(name), kind_(CAIRN_ATTRIBUTE_NUMBER), number_(value) {}
  Attribute(const char* name, const char* value) : name_(name), kind_(CAIRN_ATTRIBUTE_TEXT), text_(value) {}
  Attribute(const char* name, std::vector<int64_t> value)
      : name_(name), kind_(CAIRN_ATTRIBUTE_INTEGERS), integers_(std::move(value)) {}
  Attribute(const char* name, std::vector<double> value)
      : name_(name), kind_(CAIRN_ATTRIBUTE_NUMBERS), numbers_(std::move(value)) {}
  Attribute(const char* name, CairnDType value) : name_(name), kind_(CAIRN_ATTRIBUTE_DTYPE), dtype_(value) {}

  /// Views of what this holds.
  CairnAttribute c() const {
    CairnAttribute made{name_.c_str(), kind_, {}};
    switch (kind_) {
      case CAIRN_ATTRIBUTE_BOOLEAN: made.value.boolean = integer_ != 0; break;
      case CAIRN_ATTRIBUTE_INTEGER: made.value.integer = integer_; break;
      case CAIRN_ATTRIBUTE_NUMBER: made.value.number = number_; break;
      case CAIRN_ATTRIBUTE_TEXT: made.value.text = {text_.data(), text_.size()}; break;
      case CAIRN_ATTRIBUTE_INTEGERS: made.value.integers = {integers_.data(), integers_.size()}; break;
      case CAIRN_ATTRIBUTE_NUMBERS: made.value.numbers = {numbers_.data(), numbers_.size()}; break;
      default: made.value.dtype = dtype_;
    }
    return made;
  }
  /// Without a value: the attribute must be given.
  static Attribute required(const char* name, CairnAttributeKind kind) {
    Attribute made(name, int64_t{0});
    made.kind_ = kind;
    return made;
  }

 private:
  std::string name_;
  int32_t kind_;
  int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;
  std::vector<int64_t> integers_;
  std::vector<double> numbers_;
  CairnDType dtype_ = f32;
};

/// Where the nodes of a gradient or decomposition are added.
class Graph : public Call {
 public:
  Graph(const CairnOpCall& call, CairnBuilder* builder) : Call(call), builder_(builder) {}
  using Call::number;
  /// A node of one result.
  Value add(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes = {}) const {
    return add(op, inputs, attributes, 1)[0];
  }
  std::vector<Value> add(const char* op, const std::vector<Value>& inputs, const std::vector<Attribute>& attributes,
                         size_t results) const {
    std::vector<CairnValue*> handles, made(results, nullptr);
    for (const Value& input : inputs) handles.push_back(input.handle());
    std::vector<CairnAttribute> c;
    for (const Attribute& attribute : attributes) c.push_back(attribute.c());
    check(call_.registry->node(builder_, op, handles.data(), handles.size(), c.data(), c.size(), nullptr, made.data(),
                               results));
    std::vector<Value> values;
    for (CairnValue* each : made) values.emplace_back(this, each);
    return values;
  }
  Value number(double value, CairnDType dtype) const {
    CairnValue* made = nullptr;
    check(call_.registry->number(builder_, value, dtype, &made));
    return {this, made};
  }
  /// A list of integers as i64[n]: axes, sizes.
  Value integer_list(std::vector<int64_t> values) const {
    auto count = static_cast<int64_t>(values.size());
    const CairnTensor tensor{values.data(), {1, 0}, 1, i64, &count, nullptr, 0};
    CairnValue* made = nullptr;
    check(call_.registry->constant(builder_, &tensor, nullptr, &made));
    return {this, made};
  }
  Type type(const Value& value) const {
    const CairnType* type = nullptr;
    check(call_.registry->type(builder_, value.handle(), &type));
    return Type(*type);
  }
  /// The elements of a value where it is a constant, else false.
  bool constant(const Value& value, CairnTensor& tensor) const {
    return call_.registry->constant_of(builder_, value.handle(), &tensor) == CAIRN_OK;
  }
  CairnBuilder* builder() const { return builder_; }

 private:
  CairnBuilder* builder_;
};

inline Type Value::type() const { return graph_->type(*this); }
inline Value Value::apply(const char* op, std::initializer_list<Value> more,
                          const std::vector<std::pair<const char*, int64_t>>& integers) const {
  std::vector<Value> inputs = {*this};
  inputs.insert(inputs.end(), more.begin(), more.end());
  std::vector<Attribute> attributes;
  for (const auto& [name, value] : integers) attributes.emplace_back(name, value);
  return graph_->add(op, inputs, attributes);
}

inline Value like(const Value& value, double number) { return value.graph().number(number, value.type().dtype); }
inline Value operator+(const Value& a, const Value& b) { return a.apply("add", {b}); }
inline Value operator-(const Value& a, const Value& b) { return a.apply("sub", {b}); }
inline Value operator*(const Value& a, const Value& b) { return a.apply("mul", {b}); }
inline Value operator/(const Value& a, const Value& b) { return a.apply("div", {b}); }
inline Value operator-(const Value& a) { return a.apply("neg"); }
inline Value operator+(const Value& a, double b) { return a + like(a, b); }
inline Value operator-(const Value& a, double b) { return a - like(a, b); }
inline Value operator*(const Value& a, double b) { return a * like(a, b); }
inline Value operator/(const Value& a, double b) { return a / like(a, b); }
inline Value operator+(double a, const Value& b) { return like(b, a) + b; }
inline Value operator-(double a, const Value& b) { return like(b, a) - b; }
inline Value operator*(double a, const Value& b) { return like(b, a) * b; }
inline Value operator/(double a, const Value& b) { return like(b, a) / b; }
inline Value exp(const Value& a) { return a.apply("exp"); }
inline Value log(const Value& a) { return a.apply("log"); }
inline Value sqrt(const Value& a) { return a.apply("sqrt"); }
inline Value tanh(const Value& a) { return a.apply("tanh"); }
inline Value sigmoid(const Value& a) { return a.apply("sigmoid"); }
inline Value maximum(const Value& a, const Value& b) { return a.apply("maximum", {b}); }
inline Value minimum(const Value& a, const Value& b) { return a.apply("minimum", {b}); }
inline Value matmul(const Value& a, const Value& b) { return a.apply("matmul", {b}); }
inline Value reduce_sum(const Value& a, std::vector<int64_t> axes, bool keep_dims = false) {
  return a.graph().add("reduce_sum", {a}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}
/// The same elements in the dims of `like`.
inline Value reshape_like(const Value& a, const Value& like) { return a.apply("reshape", {like.apply("shape_of")}); }

/// The gradients of the inputs, made of the gradients of the results.
class Gradient : public Graph {
 public:
  explicit Gradient(const CairnGradientCall& gradient) : Graph(gradient.call, gradient.builder), gradient_(gradient) {}
  Value x(size_t i) const { return {this, gradient_.inputs[i]}; }
  Value y(size_t i) const { return {this, gradient_.results[i]}; }
  bool has_dy(size_t i) const { return gradient_.gradients[i] != nullptr; }
  /// Zeros where nothing depends on result i.
  Value dy(size_t i) const { return has_dy(i) ? Value{this, gradient_.gradients[i]} : y(i) * 0.0; }
  bool wanted(size_t i) const { return gradient_.wanted[i] != 0; }
  void set(size_t i, const Value& value) { gradient_.made[i] = value.handle(); }

 private:
  const CairnGradientCall& gradient_;
};

/// The results, made by other operators.
class Decomposition : public Graph {
 public:
  explicit Decomposition(const CairnDecomposeCall& parts) : Graph(parts.call, parts.builder), parts_(parts) {}
  size_t input_count() const { return parts_.input_count; }
  Value x(size_t i) const { return {this, parts_.inputs[i]}; }
  void result(size_t i, const Value& value) { parts_.results[i] = value.handle(); }

 private:
  const CairnDecomposeCall& parts_;
};

}  // namespace cairn::op

#endif
