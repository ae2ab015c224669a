// cairn.ops: operators as Python functions.
#pragma once

#include <nanobind/nanobind.h>

namespace cairn_python {

void add_operators(nanobind::module_& module);

}  // namespace cairn_python
