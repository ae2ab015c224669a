// The fast engine: f32 kernels of our own on the executor's workers.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& cpu_engine();

}  // namespace cairn
