// The fast engine: our own kernels, run on the executor's workers.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& cpu_engine();

}  // namespace cairn
