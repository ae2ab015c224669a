// The edges of a GraphDef. The reader finds the nodes that inputs name once; from then on an input is a place in its list
// of nodes, the graph's or a function's body. Edits act on the list itself and keep its edges valid.
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

/// Inputs as a file names them, by node: "node", "node:1", "^node"; in a body "argument", "node:result:1", "^node".
using InputNames = std::vector<std::vector<std::string_view>>;

/// What the body of a function names: inputs, the tensors that are its results, and nodes that run though no result needs
/// them, each after the name outside.
struct BodyNames {
  InputNames inputs;
  std::vector<std::pair<std::string_view, std::string_view>> returns;
  std::vector<std::pair<std::string_view, std::string_view>> control_returns;
};

/// Gives the nodes their edges. Throws Error invalid_model for a name that two nodes have, naming `where`, and for an input
/// that no node has, naming its reader.
void connect(std::vector<Node>& nodes, const InputNames& inputs, const std::string& where);
/// The same in a function, whose arguments become nodes behind the others. Sets `fault` instead of throwing.
void connect_body(FunctionDef& function, const BodyNames& names, const Library& library);

/// Nodes by name, for names that come from outside: of a signature, of a user. Throws Error invalid_model, naming `where`,
/// for a name that two nodes have.
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

/// Who reads each node of a list.
class Users {
 public:
  explicit Users(const std::vector<Node>& nodes);
  size_t count() const { return users_.size(); }
  /// The readers in their order, one for each input that it is, with the port that they read.
  std::span<const Edge> of(uint32_t node) const {
    return std::span(users_).subspan(starts_[node], starts_[node + 1] - starts_[node]);
  }

 private:
  std::vector<size_t> starts_;
  std::vector<Edge> users_;
};

/// Data input `number` of a node. Throws Error invalid_model.
Edge data_input(const Node& node, size_t number);
/// The tensor that this one is, behind identities. Throws Error, naming `where`.
Edge origin(Edge edge, const std::vector<Node>& nodes, const std::string& where);
/// "node:1".
std::string tensor_name(const std::vector<Node>& nodes, Edge edge);

/// Which nodes the roots, which are places, depend on, themselves among them; by data alone, or by control edges as well.
enum class Along { data, all };
std::vector<bool> needed_by(const std::vector<uint32_t>& roots, const std::vector<Node>& nodes, Along along);

/// Keeps the marked nodes, in their order, without their control edges from others. The new place of each, kGone for those
/// that go. Throws Error invalid_model for data from a node that goes.
inline constexpr uint32_t kGone = UINT32_MAX;
std::vector<uint32_t> keep_nodes(std::vector<Node>& nodes, const std::vector<bool>& keep);
/// The function's own edges after that was done to its nodes. Throws the same.
void renumber(FunctionDef& function, const std::vector<uint32_t>& places);
/// Keeps the nodes that the roots depend on; the roots become their new places.
void prune(GraphDef& graph, std::vector<uint32_t>& roots);

}  // namespace cairn::tensorflow
