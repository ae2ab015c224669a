// Whether a script that parsed still does with edits made.
#pragma once

#include "migrate/edits.h"
#include "migrate/module.h"

namespace cairn::migrate {

/// Whether the edits, sorted and free of overlap, add no syntax error. Parses again what they touch alone.
bool still_parses(const Module& module, const std::vector<Edit>& edits);

/// A statement with its plain names and numbers made equal: statements of one shape parse alike.
std::string shape_of(std::string_view statement);

}  // namespace cairn::migrate
