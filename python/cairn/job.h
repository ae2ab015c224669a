// Jobs of several processes, for job.py.
#pragma once

#include <nanobind/nanobind.h>

namespace cairn_python {

void add_job(nanobind::module_& module);

}  // namespace cairn_python
