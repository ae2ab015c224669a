// How results are judged, for the tools that are written in Python.
#pragma once

#include <nanobind/nanobind.h>

namespace cairn_python {

void add_judgement(nanobind::module_& module);

}  // namespace cairn_python
