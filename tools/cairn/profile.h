// The verb `cairn profile`, and the option form of the platform's msprof.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "console.h"
#include "profile/export.h"

namespace cairn::cli {

/// Arguments behind the verb. The exit status of a profiled command is handed on.
int profile_main(const std::vector<std::string>& arguments);
int msprof_main(const std::vector<std::string>& arguments);

// What both share. All throw Error.

/// Help, and exceptions as a sentence on standard error.
int guarded_profile(const char* name, const char* help, const std::vector<std::string>& arguments,
                    const std::function<int(std::vector<std::string>)>& body);
/// "--name=value" or "--name value", taken out of the front of the list.
std::string take_value(std::vector<std::string>& words);
/// Runs the command with these PROFILING_OPTIONS, exports and prints what it recorded below `output`; its exit status.
int record_command(const std::vector<std::string>& command, const std::string& output, Json options);
/// Of all recordings; 1 when one of them could not be exported, which is said.
int export_recordings(const std::string& folder, const profile::ExportOptions& options);
int import_recordings(const std::string& folder);
/// Writes every file of the recording in `folder` and prints what stands out.
void export_and_print(const std::string& folder);

}  // namespace cairn::cli
