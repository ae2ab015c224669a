// Models as JSON in the platform's words (atc --mode=1 and --mode=5): names, types, attributes, shapes and edges.
#pragma once

#include <string>

#include "console.h"
#include "ir/module.h"

namespace cairn::cli {

Json module_json(const Module& module);

/// A text dump of the platform's graph (ge_proto_*.txt): messages become objects, repeated fields lists; weights and
/// sizes are left out. Throws Error invalid_model with the line.
Json text_dump_json(std::string_view text, const std::string& file);

}  // namespace cairn::cli
