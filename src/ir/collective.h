// The trait of operators that exchange tensors with the other ranks of a job, and may run beside other steps.
#pragma once

#include "ir/op_def.h"

namespace cairn {

inline constexpr uint32_t kCollective = 1 << 16;  // beside those of Trait

}  // namespace cairn
