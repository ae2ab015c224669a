// What the passes over collectives share: which nodes of a graph are some, in which loops and conditionals they are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace cairn_tf {

namespace tf = tensorflow;

constexpr const char* kCollective = "CairnCollective";

inline bool is_back_edge(const tf::Edge& edge) { return edge.src()->IsNextIteration(); }

class Collectives {
 public:
  /// Its number in the script, then its name; functions that hold collectives come first.
  using Key = std::pair<tf::int64, std::string>;
  /// A loop, by the frames that it is in.
  using Frame = std::vector<std::string>;

  Collectives(const tf::Graph& graph, const tf::FunctionLibraryDefinition* functions);

  const std::map<tf::Node*, Key>& keys() const { return keys_; }
  const Frame& frame(const tf::Node* node) const { return places_[static_cast<size_t>(node->id())].frame; }
  /// In how many conditionals it is.
  int conditions(const tf::Node* node) const { return places_[static_cast<size_t>(node->id())].conditions; }
  /// Collectives on the longest way to it: equal ones do not depend on each other.
  int level(const tf::Node* node) const { return places_[static_cast<size_t>(node->id())].level; }

 private:
  struct Place {
    Frame frame;
    int conditions = 0, level = 0;
  };
  bool calls_collective(const tf::NodeDef& node);
  bool has_collective(const std::string& function);
  void find_places(const tf::Graph& graph);

  const tf::FunctionLibraryDefinition* functions_;
  std::map<tf::Node*, Key> keys_;
  std::map<std::string, bool> functions_with_;
  std::vector<Place> places_;
};

/// Puts all-reduces that the script wants fused together to one node each.
tf::Status fuse_collectives(tf::Graph& graph, const tf::FunctionLibraryDefinition* functions);

}  // namespace cairn_tf
