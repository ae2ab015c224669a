// Matrix products, convolutions and their gradients over numbers and shapes that no kernel before takes: f64, whole numbers.
#pragma once

#include "engines/cpu/call_step.h"

namespace cairn {

Refusal refuses_products(const Group& group);
std::unique_ptr<Step> make_products(const Group& group, MakeContext& context);

}  // namespace cairn
