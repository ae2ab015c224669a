// Lookup tables of a SavedModel: the nodes that initialise them at loading are kept in the frozen graph, with the
// content of files and of the checkpoint as constants.
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

/// Keeps the nodes on which `roots` depend and the nodes that initialise the tables among them. `assets`: files in the
/// folder "assets" by the node that gives their path; `stored`: the checkpoint's content of a table. The initialising
/// nodes are added to `roots`, which are node indices and are updated. Throws Error.
void keep_tables(GraphDef& graph, std::vector<uint32_t>& roots, const std::string& directory,
                 const std::map<std::string, std::string>& assets,
                 const std::function<std::optional<TableContent>(const Node& table)>& stored);

}  // namespace cairn::tensorflow
