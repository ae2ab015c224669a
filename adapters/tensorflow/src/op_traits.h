// What the partitioner knows of TensorFlow's operators by name.
#pragma once

#include <string>
#include <vector>

namespace cairn_tf {

/// The operator looks at its variable and changes nothing.
bool only_reads(const std::string& op);
/// How much a node of this operator is worth in a cluster: `Node::work`.
int work_of(const std::string& op);
/// Results of these follow from shapes, which are known when a cluster is compiled.
bool tells_shapes(const std::string& op);

/// Inputs (negative: from the end; kEvery: all) that the engine must know when it compiles: axes, permutations and the
/// like.
inline constexpr int kEvery = 1000;
const std::vector<int>& known_inputs(const std::string& op);

}  // namespace cairn_tf
