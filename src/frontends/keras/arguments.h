// The arguments of a function that is a layer: the first one is the layer's input, the others are named.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"

namespace cairn::keras {

/// Elements of nested lists of numbers, row-major, with the lists' dims.
struct Numbers {
  std::vector<double> values;
  std::vector<int64_t> dims;

  void read(const Json& json, const LayerContext& c, size_t depth = 0) {
    constexpr size_t kMost = 1 << 20, kDeepest = 16;
    if (json.is_array() && depth < kDeepest) {
      if (dims.size() == depth) dims.push_back(static_cast<int64_t>(json.size()));
      if (dims[depth] != static_cast<int64_t>(json.size())) c.refuse("a constant has rows of different length");
      for (const Json& part : json) read(part, c, depth + 1);
      return;
    }
    if (!json.is_number() && !json.is_boolean()) c.refuse("a constant is no number: {}", printable(json.dump()));
    if (depth != dims.size() || values.size() >= kMost) c.refuse("a constant has an odd shape");
    values.push_back(json.is_boolean() ? double(json.get<bool>()) : json.get<double>());
  }
};

/// The arguments of a call, by the names in the TensorFlow function.
class Arguments {
 public:
  explicit Arguments(LayerContext& c) : c_(c), b(c.b) {}

  const Json* literal(const char* name) const {
    auto found = c_.named.find(name);
    return found == c_.named.end() ? nullptr : found->second.literal;
  }
  Value* tensor(const char* name) const {
    auto found = c_.named.find(name);
    return found == c_.named.end() ? nullptr : found->second.value;
  }
  Value* constant(const Json& json, DType dtype) const {
    Numbers numbers;
    numbers.read(json, c_);
    const Tensor wide = Tensor::of<double>(kF64, numbers.dims, numbers.values);
    return cast_to(b.constant(wide), dtype, b);
  }
  /// The argument as a tensor; a literal takes the element type of `like`.
  Value* value(const char* name, const Value* like) const {
    if (Value* given = tensor(name)) return given;
    const Json* given = literal(name);
    return given == nullptr ? nullptr : constant(*given, like->type.dtype);
  }
  /// The first two arguments; a literal takes the element type of the other one.
  std::pair<Value*, Value*> two(const char* second) const {
    Value* x = c_.in.given(0) ? c_.in[0] : nullptr;
    Value* y = c_.in.given(1) ? c_.in[1] : c_.in.size() > 1 ? nullptr : tensor(second);
    if (x == nullptr && y != nullptr && !c_.literals.empty() && c_.literals[0] != nullptr)
      x = constant(*c_.literals[0], y->type.dtype);
    if (y == nullptr && x != nullptr) y = value(second, x);
    if (x == nullptr || y == nullptr) fail(ErrorKind::invalid_model, "", "lacks the argument {}", second);
    return {x, y};
  }
  Value* first() const {
    if (!c_.in.given(0)) c_.refuse("it is called on a constant");
    return c_.in[0];
  }
  std::vector<Value*> all() const {
    for (size_t i = 0; i < c_.in.size(); ++i)
      if (!c_.in.given(i)) c_.refuse("it is called on a constant");
    return c_.in;
  }
  std::vector<int64_t> integers(const char* name) const {
    std::vector<int64_t> list;
    const Json* given = literal(name);
    if (given == nullptr && tensor(name) != nullptr) c_.refuse("{} must be a constant", name);
    if (given == nullptr) return list;
    for (const Json& one : given->is_array() ? *given : Json::array({*given})) {
      if (!one.is_number_integer() || list.size() == 64) c_.refuse("{} is no list of integers", name);
      list.push_back(one.get<int64_t>());
    }
    return list;
  }
  int64_t integer(const char* name, int64_t fallback) const {
    const std::vector<int64_t> list = integers(name);
    if (list.size() > 1) c_.refuse("{} is no integer", name);
    return list.empty() ? fallback : list[0];
  }
  bool flag(const char* name) const {
    const Json* given = literal(name);
    return given != nullptr && *given == true;
  }
  double real(const char* name, double fallback) const {
    const Json* given = literal(name);
    if (given == nullptr) return fallback;
    if (!given->is_number()) c_.refuse("{} is no number", name);
    return given->get<double>();
  }
  size_t rank(const Value* x) const {
    if (!x->type.is_tensor() || !x->type.shape.ranked) c_.refuse("the rank of its input is not known");
    return x->type.shape.rank();
  }

 private:
  LayerContext& c_;
  Builder& b;
};

/// Imports the TensorFlow function with that name (after "tf.") as a layer. Throws Error.
void build_function(LayerContext& c, std::string_view name);
/// x[...] with a list of indices, ranges, new dims (null) and an "Ellipsis". Throws Error.
void build_slice(LayerContext& c, Value* x, const Json& list);

}  // namespace cairn::keras
