// The engine that takes every op: one step a node, running the row's reference kernel on the calling thread.
#pragma once

#include "engine/engine.h"

namespace cairn {

const Engine& reference_engine();

/// The reference kernels behind a memory space of their own whose addresses are not host addresses: proves that plans
/// never touch a device buffer directly.
const Engine& remote_engine();

}  // namespace cairn
