#include "model/adapt.h"
#include "ir/builder.h"

#include <algorithm>

namespace cairn {

namespace {

/// Compares names; ":0" at the end of a foreign tensor name may be left out.
bool same_tensor(const std::string& a, const std::string& b) {
  for (const std::string& prefix : {std::string(), std::string("serving_default_")})
    if (a == prefix + b || a + ":0" == prefix + b || a == prefix + b + ":0") return true;
  return false;
}

void require_number(const std::string& name, const Type& type) {
  bool number = type.is_tensor() && type.dtype != kString && type.dtype != kC64;
  if (!number) fail(ErrorKind::unsupported, name, "is {} and cannot be converted to a number", to_string(type));
}

}  // namespace

void set_output_types(Module& module, const std::map<std::string, DType>& types) {
  Function& main = module.main();
  for (const auto& [name, dtype] : types) {
    bool found = name.empty();
    for (size_t i = 0; i < main.body.results.size(); ++i) {
      Value*& result = main.body.results[i];
      if (!name.empty() && !same_tensor(name, main.result_names[i])) continue;
      found = true;
      require_number(main.result_names[i], result->type);
      if (result->type.dtype == dtype) continue;
      Builder builder(main.body);
      if (result->producer) builder.sources = result->producer->sources;
      result = builder.add("cast", {result}, {{"dtype", dtype}});
    }
    if (!found)
      fail(ErrorKind::not_found, name, "is no output of the model; it has {}", fmt::join(main.result_names, ", "));
  }
}

void set_input_types(Module& module, const std::vector<std::string>& inputs, DType dtype) {
  Function& main = module.main();
  for (const std::string& name : inputs) {
    auto& params = main.body.params;
    auto found =
        std::find_if(params.begin(), params.end(), [&](const auto& param) { return same_tensor(name, param->name); });
    if (found == params.end()) fail(ErrorKind::not_found, name, "is no input of the model");
    Value* param = found->get();
    require_number(name, param->type);
    if (param->type.dtype == dtype) continue;
    DType inner = param->type.dtype;
    param->type.dtype = dtype;
    Builder builder(main.body);
    Value* converted = builder.add("cast", {param}, {{"dtype", inner}});
    for (auto& node : main.body.nodes)
      if (node.get() != converted->producer) std::replace(node->inputs.begin(), node->inputs.end(), param, converted);
    std::replace(main.body.results.begin(), main.body.results.end(), param, converted);
    std::rotate(main.body.nodes.begin(), main.body.nodes.end() - 1, main.body.nodes.end());
  }
}

}  // namespace cairn
