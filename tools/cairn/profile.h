// The verb `cairn profile`, and the option form of the platform's msprof.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

/// Arguments behind the verb. The exit status of a profiled command is handed on.
int profile_main(const std::vector<std::string>& arguments);
int msprof_main(const std::vector<std::string>& arguments);

/// Writes every file of the recording in `folder` and prints what stands out.
void export_and_print(const std::string& folder);

}  // namespace cairn::cli
