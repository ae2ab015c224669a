#include "edges.h"

#include <algorithm>

#include "op_traits.h"

namespace cairn_tf {

using tf::DataType;

bool holds_variable(const tf::Node& node) { return traits_of(node.type_string()).has("makes_variable"); }

bool is_reference_input(const tf::Edge& edge) {
  return !edge.IsControlEdge() && edge.dst()->IsOp() && tf::IsRefType(edge.dst()->input_type(edge.dst_input()));
}
bool makes_reference(const tf::Edge& edge) {
  return !edge.IsControlEdge() && tf::IsRefType(edge.src()->output_type(edge.src_output()));
}
bool is_resource(const tf::Edge& edge) {
  return !edge.IsControlEdge() && edge.src()->output_type(edge.src_output()) == tf::DT_RESOURCE;
}

bool reads_reference(const tf::Node& node) {
  if (!node.IsIdentity()) return false;
  return std::all_of(node.in_edges().begin(), node.in_edges().end(), [](const tf::Edge* edge) {
    return edge->IsControlEdge() ? !edge->src()->IsOp() : edge->src()->IsVariable() && makes_reference(*edge);
  });
}

/// The node that made what the edge carries.
static const tf::Node* maker_of(const tf::Edge& edge) {
  const tf::Edge* from = &edge;
  while (true) {
    const tf::Node* node = from->src();
    if (!traits_of(node->type_string()).has("hands_on")) return node;
    if (!node->input_edge(node->IsSwitch() ? 0 : from->src_output(), &from).ok()) return node;
  }
}

std::optional<DataType> content_type(const tf::Edge& edge) {
  const tf::Node* maker = maker_of(edge);
  const tf::AttrValue* known = maker->attrs().Find("_handle_dtypes");  // of a function's argument
  if (known && known->list().type_size() == 1) return static_cast<DataType>(known->list().type(0));
  for (const tf::Node* node : {maker, static_cast<const tf::Node*>(edge.dst())}) {
    for (const char* name : {"dtype", "T"}) {
      const tf::AttrValue* attr = node->attrs().Find(name);
      if (attr && attr->type() != tf::DT_INVALID && attr->type() != tf::DT_RESOURCE) return attr->type();
    }
    if (node->type_string() == "RngReadAndSkip") return tf::DT_INT64;  // the state of each generator
  }
  return std::nullopt;
}

int reference_group(DataType type) {
  constexpr DataType kGroups[] = {tf::DT_FLOAT, tf::DT_HALF,   tf::DT_BFLOAT16,  tf::DT_INT32,     tf::DT_INT64,
                                  tf::DT_BOOL,  tf::DT_DOUBLE, tf::DT_COMPLEX64, tf::DT_COMPLEX128};
  auto found = std::find(std::begin(kGroups), std::end(kGroups), type);
  return found == std::end(kGroups) ? -1 : static_cast<int>(found - std::begin(kGroups));
}

bool carries_list(const tf::Edge& edge) {
  if (edge.IsControlEdge()) return false;
  if (edge.src()->output_type(edge.src_output()) == tf::DT_VARIANT) return true;
  return is_resource(edge) && traits_of(maker_of(edge)->type_string()).has("makes_list");
}

bool may_write(const tf::Edge& edge) {
  const tf::Node& user = *edge.dst();
  const OpTraits& traits = traits_of(user.type_string());
  if (!traits.hands_on()) return is_reference_input(edge) || (is_resource(edge) && !traits.has("reads"));
  return std::any_of(user.out_edges().begin(), user.out_edges().end(), [](const tf::Edge* next) {
    return (is_resource(*next) || makes_reference(*next)) && next->dst()->IsOp() && may_write(*next);
  });
}

std::vector<const tf::Edge*> sorted_inputs(const tf::Node& node) {
  std::vector<const tf::Edge*> edges(node.in_edges().begin(), node.in_edges().end());
  std::sort(edges.begin(), edges.end(), [](const tf::Edge* a, const tf::Edge* b) {
    return std::pair(a->dst_input(), a->src()->id()) < std::pair(b->dst_input(), b->src()->id());
  });
  return edges;
}
std::vector<const tf::Edge*> sorted_outputs(const tf::Node& node) {
  std::vector<const tf::Edge*> edges(node.out_edges().begin(), node.out_edges().end());
  std::sort(edges.begin(), edges.end(), [](const tf::Edge* a, const tf::Edge* b) {
    return std::tuple(a->src_output(), a->dst()->id(), a->dst_input()) <
           std::tuple(b->src_output(), b->dst()->id(), b->dst_input());
  });
  return edges;
}

bool is_note(const std::string& attribute) { return attribute[0] == '_'; }

}  // namespace cairn_tf
