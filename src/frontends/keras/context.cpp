// Reads the configuration of one layer for its row, with checks of every value and Keras' defaults.
#include "frontends/fold.h"
#include "frontends/keras/importer.h"

namespace cairn::keras {

DType dtype_named(const std::string& name) {
  for (auto [known, dtype] : {std::pair("float32", kF32),
                              {"float64", kF64},
                              {"float16", kF16},
                              {"int32", kI32},
                              {"int64", kI64},
                              {"uint8", kU8},
                              {"bool", kBool}})
    if (name == known) return dtype;
  fail(ErrorKind::unsupported, "", "elements of '{}' are not supported", printable(name));
}

void LayerContext::expect_inputs(size_t count) const {
  if (in.size() != count) fail(ErrorKind::invalid_model, "", "has {} inputs, expected {}", in.size(), count);
}

size_t LayerContext::rank() const {
  if (!in.given(0) || !in[0]->type.is_tensor() || !in[0]->type.shape.ranked)
    refuse("the rank of the input is not known; declare the shapes of the model's inputs");
  return in[0]->type.shape.rank();
}

const Json* LayerContext::find(const char* key) const {
  auto found = config.find(key);
  return found == config.end() || found->is_null() ? nullptr : &*found;
}

void LayerContext::check_dtype() const {
  const Json* policy = find("dtype");
  if (policy != nullptr && policy->is_object()) {  // of Keras 3: {"class_name": "DTypePolicy", "config": {"name": ...}}
    const Json* config = policy->contains("config") ? &(*policy)["config"] : nullptr;
    policy = config != nullptr && config->is_object() && config->contains("name") ? &(*config)["name"] : nullptr;
    if (policy == nullptr) refuse("its dtype policy is not understood");
  }
  if (policy != nullptr && (!policy->is_string() || policy->get<std::string>().starts_with("mixed") ||
                            policy->get<std::string>().find("_from_") != std::string::npos))
    refuse("a dtype policy is not supported");
}

int64_t LayerContext::integer(const char* key, int64_t fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) fail(ErrorKind::invalid_model, "", "{} is no integer", key);
  return value->get<int64_t>();
}

double LayerContext::number(const char* key, double fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) fail(ErrorKind::invalid_model, "", "{} is no number", key);
  return value->get<double>();
}

bool LayerContext::boolean(const char* key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(ErrorKind::invalid_model, "", "{} is neither true nor false", key);
  return value->get<bool>();
}

std::string LayerContext::text(const char* key, const char* fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(ErrorKind::unsupported, "", "{} is no text", key);
  return value->get<std::string>();
}

std::vector<int64_t> LayerContext::integers(const char* key) const {
  const Json* value = find(key);
  std::vector<int64_t> list;
  if (value == nullptr) return list;
  for (const Json& one : value->is_array() ? *value : Json::array({*value})) {
    if (!one.is_number_integer() || list.size() == 64)
      fail(ErrorKind::invalid_model, "", "{} is no list of integers", key);
    list.push_back(one.get<int64_t>());
  }
  return list;
}

std::vector<int64_t> LayerContext::sizes(const char* key, size_t count, int64_t fallback) const {
  std::vector<int64_t> list = integers(key);
  if (list.empty()) list.assign(count, fallback);
  if (list.size() == 1) list.assign(count, list[0]);
  if (list.size() != count)
    fail(ErrorKind::invalid_model, "", "{} has {} numbers, expected {}", key, list.size(), count);
  for (int64_t size : list)
    if (size < 1 || size > (1 << 24)) fail(ErrorKind::invalid_model, "", "{} has {}", key, size);
  return list;
}

Value* LayerContext::weight(const char* name, std::vector<int64_t> dims) {
  return b.constant(weights.take(name, dims));
}

int64_t LayerContext::last_dim() const {
  const Dim last = rank() == 0 ? Dim() : in[0]->type.shape.dims.back();
  return last.known() ? last.size : -1;
}

Value* LayerContext::activated(Value* x, const char* key) {
  const Json* given = find(key);
  if (given != nullptr && !given->is_string()) refuse("an activation that is no name is not supported");
  const std::string name = given == nullptr ? "linear" : given->get<std::string>();
  return activation(x, name, keras3, b);
}

Value* activation(Value* x, const std::string& name, bool keras3, Builder& b) {
  auto constant = [&](float value) { return b.constant(Tensor::scalar_f32(value)); };
  if (name == "linear") return x;
  for (const char* same : {"relu", "tanh", "sigmoid", "softplus", "exp"})
    if (name == same || (name == "exponential" && std::string_view(same) == "exp")) return b.add(same, {x});
  if (name == "softmax" || name == "log_softmax") return b.add(name, {x}, {{"axis", int64_t{-1}}});
  if (name == "elu") return b.add("elu", {x}, {{"alpha", 1.0}});
  if (name == "swish" || name == "silu") return b.add("mul", {x, b.add("sigmoid", {x})});
  if (name == "gelu") return b.add("gelu", {x});
  if (name == "relu6") return b.add("clip", {x}, {{"low", 0.0}, {"high", 6.0}});
  if (name == "softsign") return b.add("div", {x, b.add("add", {b.add("abs", {x}), constant(1)})});
  if (name == "leaky_relu") return b.add("leaky_relu", {x}, {{"alpha", 0.2}});
  if (name == "mish") return b.add("mul", {x, b.add("tanh", {b.add("softplus", {x})})});
  if (name == "hard_sigmoid" && keras3) {  // relu6(x + 3) / 6
    Value* sum = b.add("add", {x, b.scalar_like(x, 3)});
    return b.add("mul", {activation(sum, "relu6", keras3, b), b.scalar_like(x, 1.0 / 6)});
  }
  if (name == "hard_sigmoid")
    return b.add("clip", {b.add("add", {b.add("mul", {x, constant(0.2f)}), constant(0.5f)})},
                 {{"low", 0.0}, {"high", 1.0}});
  if (name == "selu") {
    constexpr double kAlpha = 1.6732632423543772848170429916717;
    return b.add("mul", {b.add("elu", {x}, {{"alpha", kAlpha}}), constant(1.0507009873554804934193349852946f)});
  }
  fail(ErrorKind::unsupported, "", "activation '{}' is not supported", printable(name));
}

Value* of_length_one(Value* x, const std::vector<int64_t>& axes, double least, Builder& b) {
  Value* squares = b.add("reduce_sum", {b.add("square", {x})}, {{"axes", axes}, {"keep_dims", true}});
  return b.add("mul", {x, b.add("rsqrt", {b.add("maximum", {squares, b.scalar_like(x, least)})})});
}

}  // namespace cairn::keras
