#include "engines/cpu/resample.h"

#include <algorithm>
#include <limits>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/slides.h"
#include "ops/image.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

// Computes one row of the result from up to four rows of the image, whose pixels have c channels.
CAIRN_VECTORISED(void, resize_row,
                 (const Sampling& columns, size_t taps, const float* const* rows, const float* weights, int64_t c,
                  float* __restrict y)) {
  for (size_t w = 0; w < columns.taps.size(); ++w, y += c) {
    const auto& at = columns.taps[w];
    const auto& share = columns.weights[w];
    if (taps == 1) {
      std::copy_n(rows[0] + at[0] * c, c, y);
      continue;
    }
    if (taps == 2) {
      const float *a = rows[0] + at[0] * c, *b = rows[0] + at[1] * c, *p = rows[1] + at[0] * c,
                  *q = rows[1] + at[1] * c;
      for (int64_t i = 0; i < c; ++i)
        y[i] = (a[i] * share[0] + b[i] * share[1]) * weights[0] + (p[i] * share[0] + q[i] * share[1]) * weights[1];
      continue;
    }
    for (int64_t i = 0; i < c; ++i) {
      float sum = 0;
      for (size_t k = 0; k < taps; ++k) {
        const float* from = rows[k] + i;
        sum += weights[k] * ((from[at[0] * c] * share[0] + from[at[1] * c] * share[1]) +
                             (from[at[2] * c] * share[2] + from[at[3] * c] * share[3]));
      }
      y[i] = sum;
    }
  }
}

/// A row of dy, whose pixels have c channels, to the pixels of a row of the image that it was sampled from.
CAIRN_VECTORISED(void, resize_row_back,
                 (const Sampling& columns, int64_t c, int64_t count, const float* __restrict dy,
                  float* __restrict to)) {
  std::fill_n(to, count, 0.f);
  for (size_t w = 0; w < columns.taps.size(); ++w, dy += c)
    for (size_t k = 0; k < columns.count; ++k) {
      float* __restrict pixel = to + columns.taps[w][k] * c;
      const float share = columns.weights[w][k];
      for (int64_t i = 0; i < c; ++i) pixel[i] += share * dy[i];
    }
}

CAIRN_VECTORISED(void, add_row, (int64_t count, float weight, const float* __restrict from, float* __restrict to)) {
  for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

constexpr int64_t kBlockChannels = 64;

/// The parts of a window inside the volume, and the floats between its taps, from the outermost dim.
struct PoolWindow {
  Inside along[3];
  int64_t step[3];
};

// The window of one result pixel, for up to kBlockChannels channels; each row of the window is summed separately.
CAIRN_VECTORISED(void, pool_window,
                 (bool largest, const PoolWindow& window, int64_t channels, float divisor, const float* x, float* y)) {
  const float start = largest ? -std::numeric_limits<float>::infinity() : 0.f;
  float total[kBlockChannels], row[kBlockChannels];
  const auto combine = [largest](float a, float b) __attribute__((always_inline)) {
    return !largest ? a + b : a > b || a != a ? a : b;
  };
  std::fill_n(total, channels, start);
  for (int64_t d = 0; d < window.along[0].count; ++d)
    for (int64_t h = 0; h < window.along[1].count; ++h) {
      std::fill_n(row, channels, start);
      for (int64_t w = 0; w < window.along[2].count; ++w) {
        const float* __restrict from = x + d * window.step[0] + h * window.step[1] + w * window.step[2];
        for (int64_t i = 0; i < channels; ++i) row[i] = combine(row[i], from[i]);
      }
      for (int64_t i = 0; i < channels; ++i) total[i] = combine(total[i], row[i]);
    }
  for (int64_t i = 0; i < channels; ++i) y[i] = largest ? total[i] : total[i] / divisor;
}

// One row of the result, counted over all volumes.
void pool_row(const SlideSpec& s, int64_t number, const float* x, float* y) {
  const int64_t row = number % s.oh, slice = number / s.oh % s.od, image = number / s.oh / s.od;
  PoolWindow window;
  window.along[0] = inside_of(slice, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.d, s.pad_back);
  window.along[1] = inside_of(row, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.h, s.pad_bottom);
  window.step[0] = s.dilation_d * s.h * s.w * s.channels, window.step[1] = s.dilation_h * s.w * s.channels;
  window.step[2] = s.dilation_w * s.channels;
  for (int64_t column = 0; column < s.ow; ++column) {
    window.along[2] = inside_of(column, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.w, s.pad_right);
    const auto& [slices, rows, columns] = window.along;
    const int64_t count =
        s.count_padding ? slices.padded * rows.padded * columns.padded : slices.count * rows.count * columns.count;
    const float* from = x + (((image * s.d + slices.first) * s.h + rows.first) * s.w + columns.first) * s.channels;
    float* to = y + (number * s.ow + column) * s.channels;
    stop_point_after(slices.count * rows.count * columns.count * s.channels);
    for (int64_t at = 0; at < s.channels; at += kBlockChannels)
      pool_window(s.work == WindowWork::maximum, window, std::min(kBlockChannels, s.channels - at),
                  static_cast<float>(count), from + at, to + at);
  }
}

}  // namespace

Inside inside_of(int64_t position, int64_t size, int64_t stride, int64_t dilation, int64_t pad, int64_t in,
                 int64_t after) {
  const int64_t start = position * stride - pad;
  const int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int64_t until = std::clamp<int64_t>((in - start + dilation - 1) / dilation, 0, size);
  return {start + skipped * dilation, std::max<int64_t>(0, until - skipped),
          std::min(start + size, in + after) - start};
}

Refusal refuses_resize(const Group& group) {
  const Node* node = single_node(group, "resize2d");
  if (!node) return "is another operation";
  for (const Value* value : {node->inputs[0], node->result()})
    if (value->type.dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

std::unique_ptr<Step> make_resize(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims in = node.inputs[0]->type.shape.sizes(), out = node.result()->type.shape.sizes();
  const bool empty = count_of(out) == 0;
  Sampling rows, columns;
  if (!empty) {
    rows = resize_sampling(node.attr(), in[1], out[1]);
    columns = resize_sampling(node.attr(), in[2], out[2]);
  }
  const size_t x = index_of(group, node.inputs[0]);
  return call(fmt::format("resize {}", node.attr().text("mode")), [=](const StepArgs& args) {
    if (empty) return;
    const int64_t from = in[2] * in[3], to = out[2] * out[3];
    for_each(args.executor, out[0] * out[1], to * 4, [&](int64_t i) {
      const auto h = static_cast<size_t>(i % out[1]);
      const float* taps[4];
      for (size_t k = 0; k < rows.count; ++k) taps[k] = input(args, x) + (i / out[1] * in[1] + rows.taps[h][k]) * from;
      resize_row(columns, rows.count, taps, rows.weights[h].data(), in[3], output(args) + i * to);
    });
  });
}

Refusal refuses_resize_gradient(const Group& group) {
  const Node* node = single_node(group, "resize2d_gradient");
  if (!node) return "is another operation";
  const Value *dy = node->inputs[0], *dx = node->result();
  for (const Value* value : {dy, dx})
    if (value->type.dtype != kF32) return fmt::format("elements are {}, takes f32", to_string(value->type.dtype));
  const Dims in = dx->type.shape.sizes(), out = dy->type.shape.sizes();
  if (count_of(in) * count_of(out) == 0) return "has no elements";
  const bool nearest = resize_sampling(node->attr(), in[1], out[1]).count == 1;
  if (nearest && out[1] % in[1] == 0 && out[2] % in[2] == 0) return "a mean of windows is faster";
  return std::nullopt;
}

std::unique_ptr<Step> make_resize_gradient(const Group& group, MakeContext& context) {
  constexpr int64_t kLeastBand = 8;  // rows of the image, at whose ends rows of dy are summed twice
  const Node& node = group.last();
  const Dims in = node.result()->type.shape.sizes(), out = node.inputs[0]->type.shape.sizes();
  const Sampling rows = resize_sampling(node.attr(), in[1], out[1]),
                 columns = resize_sampling(node.attr(), in[2], out[2]);
  const size_t dy = index_of(group, node.inputs[0]);
  const int64_t threads = std::max(1, context.threads), line = in[2] * in[3];
  const int64_t bands = std::clamp<int64_t>(in[1] / kLeastBand, 1, threads == 1 ? 1 : 2 * threads);
  CallOptions options{.workspace = static_cast<size_t>(threads * line) * sizeof(float)};
  options.unread = inputs_but(group, {dy});
  const auto run = [=](const StepArgs& args) {
    executor_for(args, static_cast<int>(threads)).run(static_cast<int>(in[0] * bands), [&](int chunk, int worker) {
      const int64_t image = chunk / bands, band = chunk % bands;
      const int64_t first = in[1] * band / bands, last = in[1] * (band + 1) / bands;
      float *const sums = static_cast<float*>(args.workspace) + worker * line, *const to =
                                                                                   output(args) + image * in[1] * line;
      std::fill(to + first * line, to + last * line, 0.f);
      for (size_t h = 0; h < rows.taps.size(); ++h) {
        const auto begin = rows.taps[h].begin(), end = begin + static_cast<std::ptrdiff_t>(rows.count);
        const auto is_in = [&](int64_t row) { return row >= first && row < last; };
        if (std::none_of(begin, end, is_in)) continue;
        stop_point_after(out[2] * out[3]);
        resize_row_back(columns, in[3], line,
                        input(args, dy) + (image * out[1] + static_cast<int64_t>(h)) * out[2] * out[3], sums);
        for (size_t k = 0; k < rows.count; ++k)
          if (is_in(rows.taps[h][k])) add_row(line, rows.weights[h][k], sums, to + rows.taps[h][k] * line);
      }
    });
  };
  return call(fmt::format("resize gradient {}", node.attr().text("mode")), run, std::move(options));
}

Refusal refuses_large_pool(const Group& group) {
  if (group.nodes.size() != 1 || !is_pooling(group.last())) return "is no pooling";
  if (auto reason = not_f32(group)) return reason;
  return std::nullopt;
}

std::unique_ptr<Step> make_large_pool(const Group& group, MakeContext&) {
  const SlideSpec spec = pooling_of(group.last());
  return call(spec.work == WindowWork::mean ? "average_pool of large windows" : "max_pool of large windows",
              [=](const StepArgs& args) {
                for_each(args.executor, spec.n * spec.od * spec.oh, spec.ow * spec.channels * spec.taps(),
                         [&](int64_t i) { pool_row(spec, i, input(args, 0), output(args)); });
              });
}

}  // namespace cairn
