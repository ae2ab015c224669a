// Gradients of modules at the C interface.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "autodiff/calls.h"
#include "autodiff/differentiate.h"
#include "autodiff/parameters.h"
#include "capi/handles.h"
#include "passes/passes.h"

using namespace cairn;
using namespace cairn::capi;
namespace {

struct GradientRequest {
  std::string kind = "grad", function = "main";
  GradientOptions options;
  bool weights = false;
  bool weights_as_inputs = false;
};

GradientRequest gradient_request(const char* text) {
  GradientRequest request;
  if (!text || !*text) return request;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ErrorKind::invalid_argument, "options", "are no JSON object");
  for (const auto& [key, value] : json.items()) {
    const bool names =
        value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& each) { return each.is_string(); });
    if (key == "kind" && (value == "grad" || value == "vjp" || value == "jvp"))
      request.kind = value.get<std::string>();
    else if (key == "function" && value.is_string())
      request.function = value.get<std::string>();
    else if (key == "wrt" && names)
      request.options.wrt = value.get<std::vector<std::string>>();
    else if (key == "result" && value.is_string())
      request.options.result = value.get<std::string>();
    else if (key == "value" && value.is_boolean())
      request.options.value = value.get<bool>();
    else if (key == "weights" && value.is_boolean())
      request.weights = value.get<bool>();
    else if (key == "weights_as_inputs" && value.is_boolean())
      request.weights_as_inputs = value.get<bool>();
    else
      fail(ErrorKind::invalid_argument, "options", "no option is called {}, or its value has another form", key);
  }
  return request;
}

// Turns the requested weights into params and adds their names to `wrt`.
std::vector<Parameter> lift_weights(const Module& module, Function& function, GradientRequest& request) {
  std::vector<std::string>& wrt = request.options.wrt;
  std::vector<std::string> names;
  for (const std::string& name : wrt)
    if (std::none_of(function.body.params.begin(), function.body.params.end(),
                     [&](const auto& param) { return param->name == name; }))
      names.push_back(name);
  if (names.empty() && !request.weights) return {};
  LiftOptions lift{.names = names, .module = &module};
  if (request.weights) lift.names.clear();
  const std::vector<Parameter> lifted = lift_constants(function, lift);
  if (request.weights)
    for (const Parameter& parameter : lifted)
      if (std::find(wrt.begin(), wrt.end(), parameter.name) == wrt.end()) wrt.push_back(parameter.name);
  return lifted;
}

void erase(Module& module, const std::string& name) {
  std::erase_if(module.functions, [&](const auto& function) { return function->name == name; });
}

// Makes another function the module's @main.
void make_main(Module& module, const std::string& name) {
  if (name == "main") return;
  const Function* function = module.find(name);
  if (!function) fail(ErrorKind::invalid_argument, name, "the module has no function of this name");
  Function& copy = append_copy(module, *function, name);
  erase(module, "main");
  copy.name = "main";
}

Module gradient_of(const Module& module, GradientRequest request) {
  Module made = clone(module);
  make_main(made, request.function);
  Function& main = made.main();
  inline_plain_calls(made, main.body);
  lift_state(made);
  const std::vector<Parameter> weights = lift_weights(made, main, request);
  hoist_invariants(main.body);  // else the backward pass would keep them for every iteration
  Function& gradient = request.kind == "grad"  ? append_grad(made, main, request.options, "gradient")
                       : request.kind == "vjp" ? append_vjp(made, main, request.options.wrt, "gradient")
                                               : append_jvp(made, main, request.options.wrt, "gradient");
  if (!request.weights_as_inputs) lower_parameters(gradient, weights);
  erase(made, "main");
  gradient.name = "main";
  made.optimised_by.clear();
  return made;
}

}  // namespace

CairnStatus cairn_module_grad(const CairnModule* module, const char* options, CairnModule** gradient) {
  return guarded([&] {
    require(module, "module");
    require(gradient, "gradient");
    *gradient = nullptr;
    *gradient = new CairnModule{gradient_of(module->module, gradient_request(options)), module->origin};
  });
}
