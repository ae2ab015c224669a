// Generated code for element-wise programs: one loop from the inputs to the outputs, with all intermediate values in
// registers. The results equal those of the interpreter (program.h) bit for bit.
#pragma once

#include <memory>

#include "engines/cpu/element_recorder.h"
#include "engines/cpu/isa.h"

namespace cairn {

/// Computes elements [0, count) of every output; nothing beyond them is read or written. inputs[i] points to `count`
/// elements of operand i, or to one float if the specification says `single`. An output may alias an input that is not
/// single and has elements of the same size.
using ElementFunction = void (*)(const void* const* inputs, void* const* outputs, int64_t count);

/// Generated code, shared by all programs of the process with an equal specification.
class ElementKernel {
 public:
  /// Null for Isa::none.
  static std::shared_ptr<const ElementKernel> make(Isa isa, const ElementSpec& spec);
  virtual ~ElementKernel() = default;
  ElementFunction function() const { return function_; }

 protected:
  ElementFunction function_ = nullptr;
};

}  // namespace cairn
