// The edges of a GraphDef. The reader resolves the names of inputs once; from then on an input is an index in the list
// of nodes of the graph or of a function's body. Edits change the list and keep its edges valid.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {

class Library;

/// The inputs of each node as the file names them: "node", "node:1", "^node"; in a body "argument", "node:result:1",
/// "^node".
using InputNames = std::vector<std::vector<std::string_view>>;

/// The names in the body of a function: inputs, the tensors that are its results, and nodes that run although no result
/// depends on them, each with its name outside.
struct BodyNames {
  InputNames inputs;
  std::vector<std::pair<std::string_view, std::string_view>> returns;
  std::vector<std::pair<std::string_view, std::string_view>> control_returns;
};

/// Sets the nodes' edges. Throws Error invalid_model for a name that two nodes have (the message names `where`) and for
/// an input that does not exist (it names the reader).
void connect(std::vector<Node>& nodes, const InputNames& inputs, const std::string& where);
/// The same for a function, whose arguments become nodes after the others. Sets `fault` instead of throwing.
void connect_body(FunctionDef& function, const BodyNames& names, const Library& library);

/// Nodes by name, for names from a signature or a user. Throws Error invalid_model, naming `where`, for a name that two
/// nodes have.
class NodeNames {
 public:
  NodeNames(const std::vector<Node>& nodes, const std::string& where);
  std::optional<uint32_t> find(std::string_view name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<std::string_view, uint32_t> places_;
};

/// The users of each node of a list.
class Users {
 public:
  explicit Users(const std::vector<Node>& nodes);
  size_t count() const { return users_.size(); }
  /// The users in order, one entry for each input, with the port that is read.
  std::span<const Edge> of(uint32_t node) const {
    return std::span(users_).subspan(starts_[node], starts_[node + 1] - starts_[node]);
  }

 private:
  std::vector<size_t> starts_;
  std::vector<Edge> users_;
};

/// Data input `number` of a node. Throws Error invalid_model when there is none.
Edge data_input(const Node& node, size_t number);
/// The tensor that this one equals, skipping identities. Throws Error, naming `where`.
Edge origin(Edge edge, const std::vector<Node>& nodes, const std::string& where);
/// "node:1".
std::string tensor_name(const std::vector<Node>& nodes, Edge edge);

/// The nodes on which the roots (node indices) depend, including themselves; by data edges only, or also by control
/// edges.
enum class Along { data, all };
std::vector<bool> needed_by(const std::vector<uint32_t>& roots, const std::vector<Node>& nodes, Along along);

/// Keeps only the marked nodes, in their order, and removes control edges from others. Returns the new index of each
/// node, kGone for removed ones. Throws Error invalid_model when a kept node reads data from a removed one.
inline constexpr uint32_t kGone = UINT32_MAX;
std::vector<uint32_t> keep_nodes(std::vector<Node>& nodes, const std::vector<bool>& keep);
/// Updates the function's own edges after its nodes were changed in this way. Throws the same.
void renumber(FunctionDef& function, const std::vector<uint32_t>& places);
/// Keeps only the nodes on which the roots depend, and updates the roots to their new indices.
void prune(GraphDef& graph, std::vector<uint32_t>& roots);

}  // namespace cairn::tensorflow
