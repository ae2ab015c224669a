// The options of a dump, by the platform's names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

struct DumpOptions {
  std::string path;
  bool tensors = false;     // enable_dump
  bool overflow = false;    // enable_dump_debug: watch for values that are not finite
  bool exceptions = false;  // enable_exception_dump: write the inputs of a failing operator
  bool inputs = false, outputs = true;
  bool statistics = false;                         // instead of the tensors
  bool npy = false;                                // NumPy's files instead of DumpData
  std::vector<std::pair<int64_t, int64_t>> steps;  // first and last; empty: every step
  std::vector<std::string> layers;                 // source operators; empty: all
  uint64_t budget = 0;                             // bytes on disk; 0: no limit
  std::vector<std::string> notes;                  // on options without effect here

  bool wants_step(int64_t step) const;
};

/// JSON with enable_dump, enable_dump_debug, enable_exception_dump, dump_path, dump_step ("0|5|10-20"), dump_mode (input,
/// output, all), dump_data (tensor, stats), dump_layer, dump_debug_mode, and our own dump_format (dump, npy) and dump_budget
/// ("500MB"). Without any of the three switches tensors are dumped. Throws Error invalid_argument.
DumpOptions parse_dump_options(std::string_view json);

}  // namespace cairn
