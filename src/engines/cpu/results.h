// The results of a kernel that computes all of them although some may be unused: unused ones are written to the
// workspace.
#pragma once

#include <algorithm>
#include <vector>

#include "engines/cpu/call_step.h"
#include "ops/kernels.h"
#include "support/memory.h"

namespace cairn {

class Results {
 public:
  /// The kernel's own `workspace` bytes come first, then the unused results. `first`: the value that replaces result 0
  /// (that of the epilogue).
  Results(const Group& group, const Node& node, size_t workspace, const Value* first = nullptr)
      : bytes_(whole_lines(workspace)) {
    for (const auto& result : node.results) {
      const Value* value = first && result->index == 0 ? first : result.get();
      places_.push_back(index_of_output(group, value));
      starts_.push_back(bytes_);
      if (places_.back() == kNoOutput) bytes_ += whole_lines(storage_bytes(value->type));
    }
  }
  template <class T = float>
  T* at(const StepArgs& args, size_t i) const {
    if (places_[i] != kNoOutput) return output<T>(args, places_[i]);
    return static_cast<T*>(static_cast<void*>(static_cast<char*>(args.workspace) + starts_[i]));
  }
  size_t workspace() const { return bytes_; }

 private:
  std::vector<size_t> places_, starts_;
  size_t bytes_;
};

}  // namespace cairn
