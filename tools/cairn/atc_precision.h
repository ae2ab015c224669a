// The precision options of atc: modes, lists of operators and their files.
#pragma once

#include "passes/precision.h"
#include "support/options.h"

namespace cairn::cli {

/// Adds to `notices` what has no effect. Throws ReportError with the platform's codes.
/// Whether the operator belongs to a class that --op_precision_mode may name, such as norm_class.
bool is_of_class(std::string_view type);
PrecisionOptions precision_of(const ParsedOptions& options, std::vector<std::string>& notices);

}  // namespace cairn::cli
