#include "frontends/keras/calls.h"

#include <algorithm>

#include "support/error.h"

namespace cairn::keras {
namespace {

constexpr size_t kMostArguments = 1 << 12;

/// ["layer", call, index] and, around it in Keras 3, an object with what the result is.
std::optional<ResultName> result_name(const Json& value) {
  if (value.is_object() && value.value("class_name", Json()) == "__keras_tensor__") {
    const auto config = value.find("config");
    if (config == value.end() || !config->is_object() || !config->contains("keras_history")) return std::nullopt;
    auto name = result_name((*config)["keras_history"]);
    if (name) name->type = &*config;
    return name;
  }
  if (!value.is_array() || value.size() < 3 || !value[0].is_string() || !value[1].is_number_unsigned() ||
      !value[2].is_number_unsigned())
    return std::nullopt;
  return ResultName{value[0].get<std::string>(), value[1].get<uint64_t>(), value[2].get<uint64_t>()};
}

/// Lists without one are constants.
bool holds_result(const Json& value, int depth) {
  return result_name(value).has_value() ||
         (value.is_array() && depth < kMostLevels &&
          std::any_of(value.begin(), value.end(), [&](const Json& part) { return holds_result(part, depth + 1); }));
}

class Reader {
 public:
  Call read(const Json& node) {
    if (node.is_object() && node.contains("args")) {
      for (const Json& argument : node["args"])
        if (holds_result(argument, 0))
          read_input(argument, 0);
        else
          add({std::nullopt, &argument});
      if (node.contains("kwargs")) read_named(node["kwargs"]);
    } else {
      read_input(node, 0);
    }
    return std::move(call_);
  }

 private:
  void add(Argument argument) {
    if (call_.inputs.size() >= kMostArguments) fail(ErrorKind::unsupported, "", "a layer has too many inputs");
    call_.inputs.push_back(std::move(argument));
  }

  /// Keras 2 puts what is given by name behind each result.
  void read_input(const Json& value, int depth) {
    if (auto name = result_name(value)) {
      add({std::move(name)});
      if (value.is_array() && value.size() > 3) read_named(value[3]);
      return;
    }
    if (value.is_array() && value.size() > 2 && value[0] == "_CONSTANT_VALUE") {
      add({std::nullopt, &value[2]});
      if (value.size() > 3) read_named(value[3]);
      return;
    }
    if (depth > kMostLevels || (!value.is_array() && !value.is_object()))
      fail(ErrorKind::unsupported, "", "inputs are not lists of layers");
    for (const Json& part : value) read_input(part, depth + 1);
  }

  void read_named(const Json& values) {
    if (!values.is_object()) return;
    for (const auto& [name, value] : values.items()) {
      if (value.is_null()) continue;
      auto result = result_name(value);
      call_.named[name] = result ? Argument{std::move(result)} : Argument{std::nullopt, &value};
    }
  }

  Call call_;
};

}  // namespace

std::vector<ResultName> results_in(const Json& value, int depth) {
  if (auto one = result_name(value)) return {*one};
  std::vector<ResultName> all;
  if (depth > kMostLevels || (!value.is_array() && !value.is_object()))
    fail(ErrorKind::unsupported, "", "inputs are not lists of layers");
  for (const Json& part : value) {
    std::vector<ResultName> some = results_in(part, depth + 1);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Call read_call(const Json& node) { return Reader().read(node); }

}  // namespace cairn::keras
