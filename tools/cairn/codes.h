// The platform's codes for what is wrong with a command line.
#pragma once

#include <string>

#include "console.h"
#include "convert/convert.h"
#include "support/report.h"

namespace cairn::cli {

/// Ends the command with a code of the platform.
[[noreturn]] void stop(const char* code, const std::string& subject, const std::string& message,
                       const std::string& fix = {});

/// What near_file() says, as a fix.
std::string hint_of(const std::string& near);

/// The JSON of a file that an option names; the refusal tells line and column.
Json read_json(const std::string& path, const char* option, const char* code);

/// convert(), what does not fit told by the option's name and the platform's code. Throws ReportError.
Converted convert_or_stop(const Conversion& conversion);

}  // namespace cairn::cli
