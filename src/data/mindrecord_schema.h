// What reading and writing of MindRecord files share: the schema in JSON, and integers in as few bytes as they need.
#pragma once

#include <nlohmann/json.hpp>

#include "data/mindrecord.h"

namespace cairn::data {

using MindJson = nlohmann::ordered_json;

MindSchema schema_of_json(const MindJson& json);
MindJson json_of(const MindSchema& schema);
Kind number_kind(const std::string& type);  // of the four types of numbers
inline constexpr int kMindWidths[] = {1, 2, 4, 8};

}  // namespace cairn::data
