// cairn why of a report of the TensorFlow door.
#pragma once

#include <string>

namespace cairn::cli {

bool is_report(const std::string& path);
/// Throws Error invalid_argument when the file is no report, not_found when nothing has `name` in its name.
int explain_report(const std::string& path, const std::string& name, bool json);

}  // namespace cairn::cli
