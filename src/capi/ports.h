// Descriptions of inputs, outputs and states for the C interface.
#pragma once

#include "capi/handles.h"

namespace cairn::capi {

std::vector<CairnModel::Port> ports_of(const std::vector<Port>& ports);
/// Throws Error invalid_argument for an index that is out of range.
void hand_port(const std::vector<CairnModel::Port>& ports, size_t index, CairnPort* port);

}  // namespace cairn::capi
