// Operators from users at the C interface: registers the rows of libraries and of Python.
#pragma once

#include <string>

#include "cairn/op.h"
#include "ir/op_def.h"

namespace cairn::capi {

/// Copies and registers the row. `library` is used in messages. Throws Error invalid_argument.
const OpDef& add_user_op(const CairnOpRow& row, const std::string& library);
/// The functions that a library may call. `library`: its path, which must live as long as the process.
CairnOpRegistry registry_for(const std::string& library);
/// The library that the row came with.
const std::string& library_of(const OpDef& row);

/// Loads the library once and registers its rows. Throws Error io, invalid_argument.
void load_op_library(const std::string& path);
/// Loads the libraries that CAIRN_OP_LIBRARY names, separated by colons, and those in the platform's plug-in folders;
/// once per process.
void load_op_libraries_of_environment();
/// Loads the shared libraries in the list (separated by commas or colons) and in the folders that it names.
void load_op_libraries(const std::string& list);

}  // namespace cairn::capi
