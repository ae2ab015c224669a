// Generated code for element-wise programs: one loop whose values stay in registers, from the inputs' own place to the
// outputs'. The results are bit for bit those of the interpreter (program.h).
#pragma once

#include <memory>

#include "engines/cpu/element_recorder.h"
#include "engines/cpu/isa.h"

namespace cairn {

/// Elements [0, count) of every output; nothing beyond them is read or written. By operand inputs[i] points to as many
/// elements, or to one number where the specification says single. An output may be an input that is not single.
using ElementFunction = void (*)(const float* const* inputs, float* const* outputs, int64_t count);

/// Shared by all programs of the process with an equal specification.
class ElementKernel {
 public:
  /// Nothing where no code can be made: Isa::none, or an operation that only the C library does.
  static std::shared_ptr<const ElementKernel> make(Isa isa, const ElementSpec& spec);
  virtual ~ElementKernel() = default;
  ElementFunction function() const { return function_; }

 protected:
  ElementFunction function_ = nullptr;
};

}  // namespace cairn
