#include "engines/cpu/planes.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/plane_pool.h"
#include "engines/cpu/vector_loops.h"
#include "ops/image.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

// [n, c, h, w] to [n, h, w, c], and back.
bool moves_channels(const Node& node, bool last) {
  if (!node.is("transpose")) return false;
  const Dims& permutation = node.attr().integers("permutation");
  const auto rank = std::ssize(permutation);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t from = i == 0 ? 0 : last ? (i + 1 < rank ? i + 1 : 1) : (i == 1 ? rank - 1 : i - 1);
    const int64_t found = permutation[static_cast<size_t>(i)];
    if ((found < 0 ? found + rank : found) != from) return false;
  }
  return rank > 2;
}

std::unique_ptr<Step> make_plane_pool(PlanePool pool) {
  const char* name = pool.spec.work == WindowWork::mean ? "average_pool of planes" : "max_pool of planes";
  return call(name, [pool = std::move(pool)](const StepArgs& args) {
    const SlideSpec& s = pool.spec;
    for_ranges(args.executor, s.n * s.channels * s.od * s.oh, s.ow * s.kw + s.w * s.kd * s.kh,
               [&](int64_t first, int64_t last) { pool_plane_rows(pool, first, last, input(args, 0), output(args)); });
  });
}

std::unique_ptr<Step> make_plane_resize(const Group& group, const Node& node) {
  const Dims in = node.inputs[0]->type.shape.sizes(), out = node.result()->type.shape.sizes();
  std::vector<int64_t> rows;
  std::vector<int32_t> columns;
  for (const auto& taps : resize_sampling(node.attr(), in[1], out[1]).taps) rows.push_back(taps[0]);
  for (const auto& taps : resize_sampling(node.attr(), in[2], out[2]).taps)
    columns.push_back(static_cast<int32_t>(taps[0]));
  columns.resize(columns.size() + kLanes, columns.back());  // read as whole vectors
  const size_t x = index_of(group, group.nodes.front()->inputs[0]);
  CallOptions options;
  options.unread = inputs_but(group, {x});
  return call(
      "resize of planes",
      [=](const StepArgs& args) {
        for_ranges(args.executor, in[0] * in[3] * out[1], out[2], [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const auto h = static_cast<size_t>(i % out[1]);
            float* to = output(args) + i * out[2];
            if (h > 0 && i > first && rows[h] == rows[h - 1])
              std::memcpy(to, to - out[2], static_cast<size_t>(out[2]) * sizeof(float));
            else
              vector_loops().pick(out[2], columns.data(), input(args, x) + (i / out[1] * in[1] + rows[h]) * in[2],
                                  in[2], to);
          }
        });
      },
      std::move(options));
}

bool resizes_nearest(const Node& node) { return node.is("resize2d") && node.attr().text("mode") == "nearest"; }

}  // namespace

std::vector<const Node*> find_planes(const Node& node, const Uses& uses) {
  if (!is_pooling(node) && !resizes_nearest(node)) return {};
  const Node* before = node.inputs[0]->producer;
  if (!before || !moves_channels(*before, true) || !uses.single(node.inputs[0]) || !uses.single(node.result()))
    return {};
  const Node* after = uses.users(node.result()).front();
  if (!moves_channels(*after, false)) return {};
  return {before, &node, after};
}

namespace {

// The operator of the group: between transposes, or alone where there is one channel.
const Node* operator_of(const Group& group) {
  const auto& nodes = group.nodes;
  if (nodes.size() == 1)
    return is_pooling(*nodes[0]) && nodes[0]->result()->type.is_static() && last_dim(nodes[0]->result()) == 1 ? nodes[0]
                                                                                                              : nullptr;
  return nodes.size() == 3 && moves_channels(*nodes[0], true) && moves_channels(*nodes[2], false) ? nodes[1] : nullptr;
}

}  // namespace

Refusal refuses_planes(const Group& group) {
  const Node* node = operator_of(group);
  if (!node || (!is_pooling(*node) && !resizes_nearest(*node))) return "is another operation";
  for (const Value* value : {node->inputs[0], node->result()})
    if (!value->type.is_static() || value->type.dtype != kF32) return "takes f32 of known dims";
  if (count_of(node->result()->type.shape.sizes()) == 0) return "has no elements";
  if (resizes_nearest(*node)) return std::nullopt;
  const SlideSpec spec = pooling_of(*node);
  if (spec.kd * spec.kh > kMostPlaneRows) return fmt::format("windows have more than {} rows", kMostPlaneRows);
  if (PlanePool(spec).columns > kMostPlaneColumns) return fmt::format("rows are longer than {}", kMostPlaneColumns);
  return std::nullopt;
}

std::unique_ptr<Step> make_planes(const Group& group, MakeContext&) {
  const Node& node = *operator_of(group);
  return is_pooling(node) ? make_plane_pool(PlanePool(pooling_of(node))) : make_plane_resize(group, node);
}

}  // namespace cairn
