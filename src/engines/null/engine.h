// The engine that computes nothing: it takes every op on plain buffers and writes zeros. What remains is the cost of
// planning and running itself.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& null_engine();

}  // namespace cairn
