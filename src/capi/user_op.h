// Rows of users at the C interface: made of what a library or Python registers.
#pragma once

#include <string>

#include "cairn/op.h"
#include "ir/op_def.h"

namespace cairn::capi {

/// Copies the row and makes it known. `library` is for messages. Throws Error invalid_argument.
const OpDef& add_user_op(const CairnOpRow& row, const std::string& library);
/// What libraries call back; `host` is the library's path, a std::string that outlives the process's rows.
CairnOpRegistry registry_for(const std::string& library);
/// The library that the row came with.
const std::string& library_of(const OpDef& row);

/// Loads the library once and registers its rows. Throws Error io, invalid_argument.
void load_op_library(const std::string& path);
/// The libraries that CAIRN_OP_LIBRARY names, between colons, and those of the platform's folders of plug-ins; once in a
/// process.
void load_op_libraries_of_environment();
/// Shared libraries of these lists (between commas or colons) and in the folders named there.
void load_op_libraries(const std::string& list);

}  // namespace cairn::capi
