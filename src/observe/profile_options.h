// The options of a recording, by our own names or those of the platform's PROFILING_OPTIONS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

/// marks: runs only. ops: every step. counters: every step with the processor's counters, if these can be read.
enum class ProfileLevel : uint8_t { marks, ops, counters };
const char* to_string(ProfileLevel level);
/// "marks", "ops", "counters", or the platform's L0, L1, L2. Throws Error invalid_argument.
ProfileLevel parse_profile_level(std::string_view text);

struct ProfileOptions {
  ProfileLevel level = ProfileLevel::ops;
  std::string output = ".";
  uint64_t storage_limit = 0;      // bytes; 0: none
  std::string fp_point, bp_point;  // source nodes that begin the forward and end the backward part; empty: detected
  std::vector<std::string> notes;  // on options without effect here
};

/// JSON with the keys of PROFILING_OPTIONS, and "level". Throws Error invalid_argument for what the platform refuses.
ProfileOptions parse_profile_options(std::string_view json);

}  // namespace cairn
