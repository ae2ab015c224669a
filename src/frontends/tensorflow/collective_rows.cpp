// CairnCollective, which the TensorFlow door writes for every exchange between the ranks of a job: `kind` names the operator.
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

/// Several tensors are reduced as one bucket, which every rank makes of the same tensors whatever else its graph has.
void all_reduce(OpContext& c, Attributes attributes) {
  const std::vector<std::string> names = c.texts("names");
  attributes.set("reduction", c.text("reduction", "sum"));
  if (c.in.size() == 1) {
    attributes.set("name", names.empty() ? std::string() : names[0]);
    attributes.set("fusion", int64_t{0});
    c.out = {c.b.add("all_reduce", c.in.all(), std::move(attributes))};
    return;
  }
  attributes.set("names", names);
  c.out = results_of(*c.b.add_node(op_named("all_reduce_bucket"), c.in.all(), std::move(attributes)));
}

void collective(OpContext& c) {
  const std::string kind = c.text("kind", "");
  Attributes attributes = {{"group", c.text("group", "world")}};
  if (kind == "send" || kind == "receive") {
    attributes.set(kind == "send" ? "to" : "from", c.integer("root", 0));
    attributes.set("tag", c.integer("tag", 0));
    if (kind == "receive") {
      const std::optional<ShapeProto> shape = c.shape("shape");
      if (!shape) c.refuse("has no shape");
      attributes.set("dtype", c.dtype("dtype"));
      attributes.set("shape", shape->dims);
    }
  } else if (kind != "barrier") {
    attributes.set("ranks", c.integer("ranks", 1));
  }
  if (kind == "all_reduce") return all_reduce(c, std::move(attributes));
  if (kind == "reduce_scatter" || kind == "reduce_to") attributes.set("reduction", c.text("reduction", "sum"));
  if (kind == "broadcast_from" || kind == "reduce_to") attributes.set("root", c.integer("root", 0));
  const OpDef* op = find_op(kind);
  if (!op) c.refuse("{} is no collective", kind);
  c.out = results_of(*c.b.add_node(*op, c.in.all(), std::move(attributes)));
}

constexpr Row kCollectiveRows[] = {{"CairnCollective", collective, Trait::stops}};

}  // namespace

std::span<const Row> collective_rows() { return kCollectiveRows; }

}  // namespace cairn::tensorflow
