// Modules built from Python, and operators whose functions are Python's.
#pragma once

#include <nanobind/nanobind.h>

#include "cairn/cairn.h"

/// `check` raises cairn.Error for a status other than CAIRN_OK.
void add_user_ops(nanobind::module_& module, void (*check)(CairnStatus));
