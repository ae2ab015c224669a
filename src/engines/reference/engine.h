// The engine that takes every op: each node is a step that runs the row's reference kernel on the calling thread.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& reference_engine();

/// The reference kernels with a memory space whose addresses are not valid on the host: a test that plans never access
/// a device buffer directly.
const Engine& remote_engine();

}  // namespace cairn
