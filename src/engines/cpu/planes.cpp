#include "engines/cpu/planes.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/resample.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/vector_loops.h"
#include "ops/image.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

constexpr int64_t kLongestRow = 4096, kMostRows = 64;  // floats of a row with its borders, rows of a window
constexpr int64_t kMostTogether = 16;                  // rows

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

/// Pooled planes, and the windows' parts inside them for each place along each dim.
struct PlanePool {
  SlideSpec spec;
  std::vector<Inside> slices, rows;
  std::vector<float> counts;  // mean: the columns of a window, for each column of the result

  explicit PlanePool(const Node& node) : spec(pooling_of(node)) {
    const SlideSpec& s = spec;
    for (int64_t z = 0; z < s.od; ++z)
      slices.push_back(inside_of(z, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d, s.pad_back));
    for (int64_t y = 0; y < s.oh; ++y)
      rows.push_back(inside_of(y, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h, s.pad_bottom));
    if (s.work == WindowWork::maximum) return;
    for (int64_t x = 0; x < s.ow; ++x)
      counts.push_back(
          static_cast<float>(counted(inside_of(x, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w, s.pad_right))));
  }
  int64_t counted(const Inside& along) const { return spec.count_padding ? along.padded : along.count; }
};

/// Of a row with its borders, as RowPool::columns.
int64_t row_with_borders(const SlideSpec& s) {
  const int64_t reach = (s.ow - 1) * s.stride_w + (s.kw - 1) * s.dilation_w + 1;
  return std::max(s.pad_left + s.w, reach) + kLanes * s.stride_w;
}

// Rows [first, last) of the result, counted over all planes. Several go down before they go along: to read at once what was
// just written at other places would wait for it.
void pool_plane_rows(const PlanePool& pool, int64_t first, int64_t last, const float* x, float* y) {
  const SlideSpec& s = pool.spec;
  const VectorLoops& loops = vector_loops();
  const RowPool row{s.work == WindowWork::maximum,
                    s.w,
                    s.pad_left,
                    row_with_borders(s),
                    s.kw,
                    s.dilation_w,
                    s.stride_w,
                    s.ow,
                    pool.counts.data()};
  float padded[kLongestRow], counts[kMostTogether];
  const int64_t most = std::min(kMostTogether, kLongestRow / row.columns);
  for (int64_t start = first, many = 0; start < last; start += many) {
    many = std::min(most, last - start);
    for (int64_t i = 0; i < many; ++i) {
      const int64_t number = start + i, slice = number / s.oh;
      const Inside& slices = pool.slices[static_cast<size_t>(slice % s.od)];
      const Inside& rows = pool.rows[static_cast<size_t>(number % s.oh)];
      const float* plane = x + slice / s.od * s.pixels();
      const float* from[kMostRows];
      int64_t count = 0;
      for (int64_t d = 0; d < slices.count; ++d)
        for (int64_t h = 0; h < rows.count; ++h)
          from[count++] = plane + ((slices.first + d * s.dilation_d) * s.h + rows.first + h * s.dilation_h) * s.w;
      loops.pool_down(row, from, count, padded + i * row.columns);
      counts[i] = static_cast<float>(pool.counted(slices) * pool.counted(rows));
    }
    for (int64_t i = 0; i < many; ++i)
      loops.pool_along(row, counts[i], padded + i * row.columns, y + (start + i) * s.ow);
  }
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
  if (spec.kd * spec.kh > kMostRows) return fmt::format("windows have more than {} rows", kMostRows);
  if (row_with_borders(spec) > kLongestRow) return fmt::format("rows are longer than {}", kLongestRow);
  return std::nullopt;
}

std::unique_ptr<Step> make_planes(const Group& group, MakeContext&) {
  const Node& node = *operator_of(group);
  return is_pooling(node) ? make_plane_pool(PlanePool(node)) : make_plane_resize(group, node);
}

}  // namespace cairn
