// Gradients of functions by source transformation: what comes out are functions of the module, which can be optimised, run and
// differentiated again.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Appends to the function's body what the gradients of the values `wanted` are, and returns them: zeros for a value that
/// nothing depends on. `cotangents` are the gradients of `results`; null stands for ones. All are values of the body itself,
/// not of its regions. Nodes that nothing needs stay: prune() removes them. State is no obstacle where it was lifted to params before. Throws Error unsupported at a node on the
/// way that has no gradient.
std::vector<Value*> append_gradients(Module& module, Function& function, const std::vector<Value*>& results,
                                     const std::vector<Value*>& cotangents, const std::vector<Value*>& wanted);

struct GradientOptions {
  std::vector<std::string> wrt;  // names of inputs; empty: all that have float elements
  std::string result;            // name of the result of one element; empty: the first
  bool value = false;            // that result comes first, then the gradients
};
/// A function of the same inputs whose results are gradients, then what the updates of the function's state need. Throws
/// Error invalid_argument for names that do not exist and for a result that has not one element.
Function& append_grad(Module& module, const Function& function, const GradientOptions& options,
                      const std::string& name);
/// A function of the inputs and of a gradient for each float result; its results are those of the function, then the
/// gradients of the inputs `wrt`.
Function& append_vjp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name);
/// A function of the inputs and of a direction for each input of `wrt`; its results are those of the function, then how the
/// float ones change along it.
Function& append_jvp(Module& module, const Function& function, const std::vector<std::string>& wrt,
                     const std::string& name);

}  // namespace cairn
