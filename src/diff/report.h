// A difference as text, JSON and one self-contained page, and the operator alone as a folder that shows the fault again.
#pragma once

#include <string>

#include "diff/difference.h"

namespace cairn::diff {

/// "conv1:1 (execution 2)".
std::string name_of(const Row& row);
std::string to_json(const Result& result);
std::string to_html(const Result& result);
/// What a terminal shows, in lines of at most 100 columns.
std::string to_text(const Result& result);

/// operator.txt, operator.om, inputs.npz, expected.npz, found.npz and run.sh of the culprit; makes the folder. Throws Error
/// io.
void write_reproducer(const Culprit& culprit, const std::string& folder);

}  // namespace cairn::diff
