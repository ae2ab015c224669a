// The engine that computes nothing: it takes every op on plain buffers and writes zeros, which isolates the cost of
// planning and of the runtime itself.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& null_engine();

}  // namespace cairn
