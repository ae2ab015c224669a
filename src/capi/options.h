// Options as JSON at the C interface.
#pragma once

#include <nlohmann/json.hpp>

#include "frontends/import.h"
#include "passes/precision.h"

namespace cairn::capi {

using Json = nlohmann::ordered_json;

/// Parses a JSON object; NULL and "" give an empty one. Throws Error invalid_argument.
Json parse_options(const char* text);
std::vector<std::string> texts(const Json& value, const std::string& key);
/// Sets an import option; returns false for other keys. Throws Error invalid_argument for a malformed value.
bool take_import_option(const std::string& key, const Json& value, ImportOptions& options);
ImportOptions import_options(const char* text);
[[noreturn]] void refuse_option(const std::string& key);

/// Combines all precision settings. The lists and types have the formats of CairnModelOptions, or are empty.
PrecisionOptions read_precision(const std::string& mode, const std::string& mixed_lists,
                                std::vector<std::string> keep_types, const std::string& custom_types);

}  // namespace cairn::capi
