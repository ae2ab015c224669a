// Pooling over windows of NHWC images.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_pool(InferContext& context) {
  DType dtype = number_type(context, 0);
  check_windows(context);
  const auto& window = context.attr.integers("window");
  if (window.size() != 2) context.fail("window must have 2 values, found {}", window.size());
  bool known = ranked(context, 0, 4);
  std::vector<Dim> x = known ? context.shape(0).dims : std::vector<Dim>(4);
  Shape result{x[0], Dim(), Dim(), x[3]};
  for (size_t i : {0, 1}) {
    WindowSpec spec = window_spec(context.attr, window[i], i);
    result.dims[1 + i] = slide(context, x[1 + i], spec);
    if (spec.before >= spec.reach() || spec.after >= spec.reach())
      context.fail("padding {} and {} must be less than the window of {}", spec.before, spec.after, spec.reach());
  }
  context.result(dtype, std::move(result));
}

double pool_flops(const InferContext& context) {
  InferContext copy = context;
  infer_pool(copy);
  const auto& window = context.attr.integers("window");
  return static_cast<double>(known_count(copy.results()[0].shape).value_or(0)) * static_cast<double>(window[0]) *
         static_cast<double>(window[1]);
}

// The part of one window along one axis: taps first, first + step, ... before last lie inside the image.
struct Taps {
  int64_t first, last, step;
  int64_t padded;  // positions of the undilated window inside the padded image
};
Taps taps_at(const WindowSpec& spec, int64_t in, int64_t before, int64_t at) {
  int64_t start = at * spec.stride - before, end = start + spec.reach();
  if (spec.padding == "valid" || spec.padding == "explicit") end = std::min(end, in + spec.after);
  int64_t first = start < 0 ? start + (-start + spec.dilation - 1) / spec.dilation * spec.dilation : start;
  return {first, std::min(start + spec.reach(), in), spec.dilation, end - start};
}

// visit(result index, top-left pixel of channel, row taps, column taps) for every result.
template <class Visit>
void for_each_window(const KernelContext& context, const Dims& in, const Dims& out, Visit&& visit) {
  const auto& window = context.attr.integers("window");
  const WindowSpec rows = window_spec(context.attr, window[0], 0), columns = window_spec(context.attr, window[1], 1);
  const int64_t top = rows.padding_before(in[1], out[1]), left = columns.padding_before(in[2], out[2]);
  walk<1>(out, {strides_of(out)}, [&](int64_t n, auto&) {
    const int64_t channel = n % out[3], column = n / out[3] % out[2], row = n / out[3] / out[2] % out[1],
                  image = n / out[3] / out[2] / out[1];
    visit(n, image * in[1] * in[2] * in[3] + channel, taps_at(rows, in[1], top, row),
          taps_at(columns, in[2], left, column));
  });
}

void max_pool2d(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    using C = Compute<T>;
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    const C least =
        std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
    for_each_window(context, in, context.output(0).dims(),
                    [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
                      C most = least;
                      for (int64_t h = rows.first; h < rows.last; h += rows.step)
                        for (int64_t w = columns.first; w < columns.last; w += columns.step)
                          most = maximum(most, static_cast<C>(xs[base + (h * in[2] + w) * in[3]]));
                      to[n] = T(most);
                    });
  });
}

void avg_pool2d(KernelContext& context) {
  allocate_results(context);
  const Dims& in = context.input(0).dims();
  const bool count_padding = context.attr.boolean("count_padding");
  with_floats(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* xs = data<T>(context.input(0));
    T* to = data<T>(context.output(0));
    for_each_window(
        context, in, context.output(0).dims(), [&](int64_t n, int64_t base, const Taps& rows, const Taps& columns) {
          double sum = 0;
          int64_t count = 0;
          for (int64_t h = rows.first; h < rows.last; ++h)
            for (int64_t w = columns.first; w < columns.last; ++w, ++count)
              sum += static_cast<double>(xs[base + (h * in[2] + w) * in[3]]);
          to[n] = T(
              static_cast<Compute<T>>(sum / static_cast<double>(count_padding ? rows.padded * columns.padded : count)));
        });
  });
}

std::vector<AttrDef> window_attributes(std::vector<AttrDef> more) {
  std::vector<AttrDef> all = {{"window", AttrKind::integers},
                              integers("strides", {1, 1}),
                              word("padding", "valid", {"valid", "same", "same_lower", "explicit"}),
                              integers("pads", {0, 0, 0, 0}),
                              flag("ceil_mode")};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<OpDef> make_rows() {
  return {
      {.name = "max_pool2d",
       .summary = "largest element of each window, NaN when one is NaN; padding never wins: a window all in padding "
                  "gives -inf, of integers the "
                  "least; ceil_mode adds a last partial window if it starts inside the image or its leading padding",
       .inputs = {{"x", Accepts::numbers}},
       .attributes = window_attributes({integers("dilations", {1, 1})}),
       .traits = kReduction,
       .infer = infer_pool,
       .flops = pool_flops,
       .reference = max_pool2d,
       .oracle = {"pool2d('MAX', x, window, strides, dilations, padding, pads, ceil_mode, False)", kTensorFlow},
       .cases = {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
                 "f32[1, 9, 9, 2] {window = [2, 3], dilations = [3, 2]}",
                 "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 4, 4, 1] {window = [2, 2]}", "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}",
                 "f16[1, 4, 4, 3] {window = [2, 2]}", "i32[1, 4, 4, 3] {window = [2, 2]}"}},
      {.name = "avg_pool2d",
       .summary = "mean of each window over the elements inside the image; count_padding divides by the window's part "
                  "in the padded image instead",
       .inputs = {{"x", Accepts::floats}},
       .attributes = window_attributes({flag("count_padding")}),
       .traits = kReduction,
       .precision = Precision::accumulate_f32,
       .infer = infer_pool,
       .flops = pool_flops,
       .reference = avg_pool2d,
       .oracle = {"pool2d('AVG', x, window, strides, [1, 1], padding, pads, ceil_mode, count_padding)", kTensorFlow},
       .cases = {"f32[1, 4, 4, 1] {window = [2, 2], strides = [2, 2]}",
                 "f32[2, 7, 8, 19] {window = [3, 3], strides = [2, 2], padding = same}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], strides = [2, 2]}",
                 "f32[1, 7, 8, 3] {window = [3, 2], padding = explicit, pads = [1, 1, 0, 1], count_padding = true}",
                 "f32[1, 6, 6, 3] {window = [3, 3], strides = [2, 2], ceil_mode = true}",
                 "f32[0, 4, 4, 1] {window = [2, 2]}", "f32[1, 7, 7, 65] {window = [7, 7]}",
                 "f32[1, 5, 6, 2] {window = [2, 2], padding = same_lower}", "f16[1, 4, 4, 3] {window = [2, 2]}"}},
  };
}

}  // namespace

std::span<const OpDef> pooling_ops() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace cairn
