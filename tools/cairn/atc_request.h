// The options of atc and omg as a conversion: shapes and profiles, precision, fusion switches, and what they exclude.
#pragma once

#include "codes.h"
#include "support/options.h"

namespace cairn::cli {

struct Request {
  Conversion conversion;
  std::vector<std::string> repairs;  // what was mended while reading values, a sentence each
  std::vector<std::string> notices;  // settings without effect, a sentence each
};

/// Throws ReportError with the platform's codes.
Request request_of(const ParsedOptions& options, Door door);

/// Settings of a finished conversion that met nothing in the model, a sentence each.
std::vector<std::string> without_effect(const ParsedOptions& options, const Conversion& conversion,
                                        const Converted& converted);

}  // namespace cairn::cli
