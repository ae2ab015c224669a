// Direct evaluation by the reference kernels, without plan or engine: while importing, folding and preparing, and in tests.
#pragma once

#include <span>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// Value of `largest_bytes` (the most bytes that one result may take) that allows any size.
inline constexpr size_t kNoLimit = SIZE_MAX;

/// Results of one node for concrete inputs. Regions and calls are run (callees are looked up in `module`). Throws Error
/// when the op refuses the inputs, out_of_memory when a result would take more than `largest_bytes`.
std::vector<HostValue> evaluate(const Node& node, std::span<const HostValue> inputs, const Module* module = nullptr,
                                size_t largest_bytes = kNoLimit);
/// Results of a block for concrete params.
std::vector<HostValue> evaluate(const Block& block, std::span<const HostValue> params, const Module* module = nullptr);

/// The first result of an op for these inputs.
Tensor evaluate(std::string_view op, const std::vector<Tensor>& inputs, Attributes attributes = {});

/// The condition of an `if` or `while`. Throws Error invalid_model unless it is one bool.
bool truth(const HostValue& value);

}  // namespace cairn
