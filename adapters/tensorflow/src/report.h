// What became of each graph: clusters, and why every other node stayed with TensorFlow. Written as JSON to the file that
// CAIRN_REPORT names, after each graph.
#pragma once

#include <string>
#include <vector>

#include "partition.h"

namespace cairn_tf {

/// True when CAIRN_REPORT is set.
bool report_wanted();
/// `numeric[i]`: node i computes on numbers, so that it counts for the engine's share. `title`: of the function, or "".
void report(const std::string& title, const std::vector<Node>& nodes, const std::vector<bool>& numeric,
            const Partition& partition, const std::vector<std::string>& clusters);
/// A cluster met other sizes than those it was compiled for: with these open, or (`why` tells) once more for each set of
/// them. `compilations`: up to now.
void report_open_sizes(const std::string& cluster, int compilations, const std::string& why);
/// Runs of the cluster at sizes that it has not met go to TensorFlow, or to the engine again, and why.
void report_new_sizes(const std::string& cluster, const std::string& where);
/// The cluster was in doubt: the faster of engine and TensorFlow has it, and why.
void report_in_doubt(const std::string& cluster, const std::string& where);
/// The engine refused this cluster when it saw its shapes, so TensorFlow runs it: all of it, or the `nodes` around which it
/// was cut again.
void report_stock_run(const std::string& cluster, const std::string& reason, const std::vector<std::string>& nodes);

}  // namespace cairn_tf
