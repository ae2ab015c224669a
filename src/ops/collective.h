// Collectives of one tensor, for engines that look up their attributes once.
#pragma once

#include <optional>
#include <span>

#include "comm/request.h"
#include "ir/module.h"

namespace cairn {

/// What a node with an operand of these dims asks of the ranks, but for the memory; nothing when it is no such collective. The
/// request refers to the node and to `dims`.
std::optional<comm::Request> exchange_of(const Node& node, std::span<const int64_t> dims);

}  // namespace cairn
