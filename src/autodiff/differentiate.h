// Gradients of functions by source transformation: the result is a function of the module, which can be optimised, run
// and differentiated again.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Appends nodes to the function's body that compute the gradients of the values `wanted`, and returns them; a value on
/// which no result depends has gradient zero. `cotangents` are the gradients of `results`; null stands for ones. All
/// values belong to the body itself, not to its regions. Unused nodes remain: prune() removes them. State must have
/// been lifted to params before. Throws Error unsupported when a node on the path has no gradient.
std::vector<Value*> append_gradients(Module& module, Function& function, const std::vector<Value*>& results,
                                     const std::vector<Value*>& cotangents, const std::vector<Value*>& wanted);

struct GradientOptions {
  std::vector<std::string> wrt;  // names of inputs; empty: all that have float elements
  std::string result;            // name of the result to differentiate, of one element; empty: the first
  bool value = false;            // also return that result, before the gradients
};
/// Appends a function of the same inputs whose results are gradients, then the new contents of the function's state.
/// Throws Error invalid_argument for names that do not exist and for a result that does not have exactly one element.
Function& append_grad(Module& module, const Function& function, const GradientOptions& options,
                      const std::string& name);
/// Appends a function (vector-Jacobian product) of the inputs and of a gradient for each float result; its results are
/// those of the function, then the gradients of the inputs `wrt`.
Function& append_vjp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name);
/// Appends a function (Jacobian-vector product) of the inputs and of a tangent for each input of `wrt`; its results are
/// those of the function, then the tangents of the float ones.
Function& append_jvp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name);

}  // namespace cairn
