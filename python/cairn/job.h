// Jobs of several processes, for job.py.
#pragma once

#include <nanobind/nanobind.h>

namespace cairn_python {

/// While it lives, other ranks are told which line outside this package makes the calls of this thread, if it is wanted.
class CallerPlace {
 public:
  explicit CallerPlace(bool wanted);
  ~CallerPlace();
  CallerPlace(const CallerPlace&) = delete;

 private:
  const bool set_;
};

void add_job(nanobind::module_& module);

}  // namespace cairn_python
