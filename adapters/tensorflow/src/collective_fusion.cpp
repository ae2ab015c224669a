// All-reduces that a script makes one by one become one exchange: those of equal fusion_id, and with fusion 1 as many as fill a
// bucket. Which ones follows from the collectives alone, so that all ranks put the same together.
#include <algorithm>

#include "collectives.h"

namespace cairn_tf {
namespace {

using Nodes = std::vector<tf::Node*>;

tf::int64 integer(const tf::Node* node, const char* name) { return node->attrs().Find(name)->i(); }

bool may_fuse(const tf::Node* node, const Collectives& all) {
  if (node->type_string() != kCollective || node->attrs().Find("kind")->s() != "all_reduce") return false;
  const tf::int64 fusion = integer(node, "fusion");
  return (fusion == 2 || (fusion == 1 && integer(node, "bytes") > 0)) && node->num_inputs() == 1 &&
         all.frame(node).empty() && all.conditions(node) == 0;
}

std::string kind_of(const tf::Node* node, const Collectives& all) {
  const tf::int64 id = integer(node, "fusion") == 2 ? integer(node, "fusion_id") : -1;
  return tf::strings::StrCat(all.level(node), " ", node->attrs().Find("group")->s(), " ",
                             node->attrs().Find("reduction")->s(), " ", node->input_type(0), " ", id, " ",
                             node->assigned_device_name());
}

/// The last ones first: of gradients, these are there first.
std::vector<Nodes> cut(Nodes nodes) {
  std::sort(nodes.begin(), nodes.end(), [](const tf::Node* a, const tf::Node* b) {
    return integer(a, "order") != integer(b, "order") ? integer(a, "order") > integer(b, "order")
                                                      : a->name() < b->name();
  });
  std::vector<Nodes> buckets;
  tf::int64 held = 0;
  for (tf::Node* node : nodes) {
    const bool full = integer(node, "fusion") == 1 && held + integer(node, "bytes") > integer(node, "bucket");
    if (buckets.empty() || full) buckets.emplace_back(), held = 0;
    buckets.back().push_back(node);
    held += integer(node, "bytes");
  }
  return buckets;
}

/// One node instead of these, which comes where the script has made the first of them.
tf::Status replace(tf::Graph& graph, const Nodes& nodes, tf::int64 order) {
  tf::NodeDef def = nodes[0]->def();
  def.clear_input();
  def.set_name(graph.NewName(nodes[0]->name() + "/fused"));
  auto& attributes = *def.mutable_attr();
  for (const char* types : {"Tin", "Tout"}) attributes[types].clear_list();
  auto* names = attributes["names"].mutable_list();
  names->clear_s();
  for (const tf::Node* node : nodes) {
    for (const char* types : {"Tin", "Tout"}) attributes[types].mutable_list()->add_type(node->input_type(0));
    const auto& own = node->attrs().Find("names")->list();
    names->add_s(own.s_size() ? own.s(0) : "");
  }
  attributes["order"].set_i(order);
  attributes["fusion"].set_i(0);
  tf::Status status;
  tf::Node* fused = graph.AddNode(def, &status);
  if (!status.ok()) return status;
  fused->set_assigned_device_name(nodes[0]->assigned_device_name());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const tf::Edge* edge : nodes[i]->in_edges())
      if (edge->IsControlEdge())
        graph.AddControlEdge(edge->src(), fused);
      else
        graph.AddEdge(edge->src(), edge->src_output(), fused, static_cast<int>(i));
    for (const tf::Edge* edge :
         std::vector<const tf::Edge*>(nodes[i]->out_edges().begin(), nodes[i]->out_edges().end())) {
      tf::Node* user = edge->dst();
      const int input = edge->dst_input();
      const bool control = edge->IsControlEdge();
      graph.RemoveEdge(edge);
      if (control)
        graph.AddControlEdge(fused, user);
      else
        graph.AddEdge(fused, static_cast<int>(i), user, input);
    }
  }
  for (tf::Node* node : nodes) graph.RemoveNode(node);
  return status;
}

}  // namespace

tf::Status fuse_collectives(tf::Graph& graph, const tf::FunctionLibraryDefinition* functions) {
  const Collectives all(graph, functions);
  if (all.keys().size() < 2) return tf::OkStatus();
  std::map<std::string, Nodes> kinds;
  for (const auto& [node, key] : all.keys())
    if (may_fuse(node, all)) kinds[kind_of(node, all)].push_back(node);
  for (const auto& [kind, nodes] : kinds) {
    tf::int64 first = integer(nodes[0], "order");
    for (const tf::Node* node : nodes) first = std::min(first, integer(node, "order"));
    for (const Nodes& bucket : cut(nodes)) {
      if (bucket.size() > 1) TF_RETURN_IF_ERROR(replace(graph, bucket, first));
      ++first;
    }
  }
  return tf::OkStatus();
}

}  // namespace cairn_tf
