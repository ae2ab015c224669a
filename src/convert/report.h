// The results of a conversion in the form in which all interfaces report them.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/convert.h"

namespace cairn {

/// {"of_flops", "of_seconds": shares of the plan's, "steps": [{"op", "types", "node", "reason", "seconds", "count"}]}
nlohmann::ordered_json reference_json(const ReferenceShare& share);

/// {"output", "bytes", "inputs", "outputs", "nodes", "parameters", "flops", "peak_bytes", "reference"}; FLOPs and
/// peak_bytes only if the model was planned.
nlohmann::ordered_json conversion_json(const Conversion& conversion, const Converted& converted);

}  // namespace cairn
