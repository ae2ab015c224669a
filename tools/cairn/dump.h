// Writes what every step of a run makes as NumPy files with a manifest, in the form that `cairn compare` reads.
#pragma once

#include <string>

#include "session.h"

namespace cairn::cli {

class Dumper : public Observer {
 public:
  /// Files go to `folder`, which is made; `module` names the sources. `time` stands in the files' names.
  Dumper(const Module& module, std::string folder, uint64_t time);

  void step_ends(const Plan& plan, size_t step, void* const* buffers) override;
  size_t files() const { return files_; }

 private:
  void write(const Node& node, size_t index, const Value& value, const void* data);

  const Module& module_;
  std::string folder_, time_, manifest_;
  size_t files_ = 0;
};

}  // namespace cairn::cli
