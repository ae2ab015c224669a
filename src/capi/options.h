// Options as JSON at the C interface.
#pragma once

#include <nlohmann/json.hpp>

#include "frontends/import.h"
#include "passes/precision.h"

namespace cairn::capi {

using Json = nlohmann::ordered_json;

/// An empty object for NULL or "". Throws Error invalid_argument.
Json parse_options(const char* text);
std::vector<std::string> texts(const Json& value, const std::string& key);
/// Takes the option when it is one of importing. Throws Error invalid_argument for a value of another form.
bool take_import_option(const std::string& key, const Json& value, ImportOptions& options);
ImportOptions import_options(const char* text);
[[noreturn]] void refuse_option(const std::string& key);

/// One value of all precision settings. Lists and types: JSON and lines as CairnModelOptions has them, or empty.
PrecisionOptions read_precision(const std::string& mode, const std::string& mixed_lists,
                                std::vector<std::string> keep_types, const std::string& custom_types);

}  // namespace cairn::capi
