// Lookup tables of a SavedModel: what fills them when the model is loaded stays in the frozen graph, with what files and the
// checkpoint hold as constants.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

/// Turns what fills tables from files into what fills them with constants. Throws Error.
void read_table_files(GraphDef& graph);

struct TableContent {
  Tensor keys, values;
};

/// Keeps what the nodes `roots` need, and what fills the tables among it, as nodes that import constants or nodes of the
/// graph. `assets` are files in the folder "assets" by the node that gives their path; `stored` is what the checkpoint has
/// of a table. `roots`, which are places, gets those nodes as well and becomes the new places. Throws Error.
void keep_tables(GraphDef& graph, std::vector<uint32_t>& roots, const std::string& directory,
                 const std::map<std::string, std::string>& assets,
                 const std::function<std::optional<TableContent>(const Node& table)>& stored);

}  // namespace cairn::tensorflow
