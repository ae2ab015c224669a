#include "autodiff/differentiate.h"

#include <algorithm>

#include "autodiff/calls.h"
#include "autodiff/prune.h"
#include "autodiff/sweep.h"
#include "ir/expression.h"
#include "support/nearest.h"

namespace cairn {

namespace {

// The inputs with these names; without names all differentiable ones.
std::vector<Value*> chosen_inputs(const Function& function, const std::vector<std::string>& names) {
  std::vector<Value*> chosen;
  std::vector<std::string_view> known;
  for (const auto& param : function.body.params) {
    if (!is_differentiable(param->type)) continue;
    known.push_back(param->name);
    if (names.empty()) chosen.push_back(param.get());
  }
  for (const std::string& name : names) {
    const auto param = std::find_if(function.body.params.begin(), function.body.params.end(),
                                    [&](const auto& each) { return each->name == name; });
    if (param == function.body.params.end())
      fail(ErrorKind::invalid_argument, name, "no input has this name{}", did_you_mean(name, known));
    if (!is_differentiable((*param)->type))
      fail(ErrorKind::invalid_argument, name, "the input is {}, only floats have gradients", to_string((*param)->type));
    chosen.push_back(param->get());
  }
  if (chosen.empty()) fail(ErrorKind::invalid_argument, "@" + function.name, "has no float input");
  return chosen;
}

size_t chosen_result(const Function& function, const std::string& name) {
  const auto& names = function.result_names;
  const auto found = name.empty() ? names.begin() : std::find(names.begin(), names.end(), name);
  if (found == names.end())
    fail(ErrorKind::invalid_argument, name, "no result has this name{}",
         did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end())));
  const auto index = static_cast<size_t>(found - names.begin());
  const Type& type = function.body.results[index]->type;
  const bool one = type.is_static() && type.dtype.is_float() && element_count(type.shape.sizes()) == 1;
  if (!one)
    fail(ErrorKind::invalid_argument, *found, "the result is {}, expected one float, as a loss is", to_string(type));
  return index;
}

// The differentiable results, except those that are new contents of the function's state.
std::vector<size_t> float_results(const Function& function) {
  std::vector<size_t> list;
  for (size_t i = 0; i < function.body.results.size(); ++i)
    if (is_differentiable(function.body.results[i]->type) &&
        std::none_of(function.updates.begin(), function.updates.end(),
                     [&](const auto& each) { return each.first == i; }))
      list.push_back(i);
  return list;
}

std::string gradient_name(const std::string& name) { return "gradient/" + name; }

struct Results {
  std::vector<Value*> values;
  std::vector<std::string> names;
  void add(Value* value, std::string name) {
    values.push_back(value);
    names.push_back(std::move(name));
  }
};

// Makes these the function's results, followed by the new contents of its state.
void set_results(Function& function, Results results) {
  for (auto& [result, param] : function.updates) {
    const size_t place = results.values.size();
    results.add(function.body.results[result], function.result_names[result]);
    result = place;
  }
  function.body.results = std::move(results.values);
  function.result_names = std::move(results.names);
}

}  // namespace

std::vector<Value*> append_gradients(Module& module, Function& function, const std::vector<Value*>& results,
                                     const std::vector<Value*>& cotangents, const std::vector<Value*>& wanted) {
  Differentiator differentiator(module);
  std::vector<Value*> gradients = differentiator.differentiate(function, results, cotangents, wanted);
  differentiator.finish();
  return gradients;
}

Function& append_grad(Module& module, const Function& function, const GradientOptions& options,
                      const std::string& name) {
  const size_t result = chosen_result(function, options.result);
  Function& made = append_copy(module, function, name);
  const std::vector<Value*> inputs = chosen_inputs(made, options.wrt);
  Value* loss = made.body.results[result];
  const std::vector<Value*> gradients = append_gradients(module, made, {loss}, {nullptr}, inputs);
  Results results;
  if (options.value) results.add(loss, made.result_names[result]);
  for (size_t i = 0; i < inputs.size(); ++i) results.add(gradients[i], gradient_name(inputs[i]->name));
  set_results(made, std::move(results));
  prune(made.body, module);
  return made;
}

Function& append_vjp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name) {
  Function& made = append_copy(module, function, name);
  const std::vector<Value*> inputs = chosen_inputs(made, wrt);
  std::vector<Value*> results, cotangents;
  for (const size_t i : float_results(made)) {
    results.push_back(made.body.results[i]);
    cotangents.push_back(append_named_param(made.body, results.back()->type, gradient_name(made.result_names[i])));
  }
  const std::vector<Value*> gradients = append_gradients(module, made, results, cotangents, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    made.body.results.push_back(gradients[i]);
    made.result_names.push_back(gradient_name(inputs[i]->name));
  }
  prune(made.body, module);
  return made;
}

// The vjp is linear in the gradients of the results; its own gradient with respect to these is the jvp.
Function& append_jvp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name) {
  Function& made = append_copy(module, function, name);
  const std::vector<Value*> inputs = chosen_inputs(made, wrt);
  Builder builder(made.body);
  std::vector<Value*> results, zeros, directions;
  const std::vector<size_t> which = float_results(made);
  for (const size_t i : which) {
    results.push_back(made.body.results[i]);
    if (!results.back()->type.is_tensor())
      fail(ErrorKind::unsupported, made.result_names[i], "lists cannot be followed along a direction");
    zeros.push_back(builder.add("after", {zeros_like({builder, results.back()}).value}));
  }
  const std::vector<Value*> gradients = append_gradients(module, made, results, zeros, inputs);
  for (const Value* input : inputs)
    directions.push_back(append_named_param(made.body, input->type, "direction/" + input->name));
  const std::vector<Value*> changes = append_gradients(module, made, gradients, directions, zeros);
  for (size_t i = 0; i < which.size(); ++i) {
    made.body.results.push_back(changes[i]);
    made.result_names.push_back("change/" + made.result_names[which[i]]);
  }
  prune(made.body, module);
  return made;
}

}  // namespace cairn
