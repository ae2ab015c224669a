#include "engines/cpu/wide_reduction.h"

#include <array>

#include "engines/cpu/isa.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

/// x seen as [outer, middle, inner], of which the middle one is reduced.
struct Middle {
  int64_t outer = 1, middle = 1, inner = 1;
};

// Partial results side by side: several registers, whose operations do not wait for each other.
constexpr int64_t kSums = 32;
constexpr int64_t kFew = 8;  // elements that are faster one by one

enum class Way : uint8_t { sum, largest, smallest };

template <Way kWay, class T>
CAIRN_INLINE T combined(T a, T b) {
  if constexpr (kWay == Way::sum) {
    if constexpr (std::is_integral_v<T>)
      return wrapped(a, b, std::plus<>());
    else
      return a + b;
  } else if constexpr (kWay == Way::largest) {
    return (b > a) | (b != b) ? b : a;  // NaN stays: nothing is larger than it
  } else {
    return (b < a) | (b != b) ? b : a;
  }
}

/// y[i] of up to kSums columns that begin at x, from `middle` rows of `inner` elements.
template <Way kWay, class T>
CAIRN_INLINE void reduce_columns(const T* x, int64_t middle, int64_t inner, int64_t columns, T start, T* y) {
  T sums[kSums];
  for (T& sum : sums) sum = start;
  if (columns == kSums) {
    for (int64_t k = 0; k < middle; ++k, x += inner)
      for (int64_t i = 0; i < kSums; ++i) sums[i] = combined<kWay>(sums[i], x[i]);
  } else {
    for (int64_t k = 0; k < middle; ++k, x += inner)
      for (int64_t i = 0; i < columns; ++i) sums[i] = combined<kWay>(sums[i], x[i]);
  }
  for (int64_t i = 0; i < columns; ++i) y[i] = sums[i];
}

template <Way kWay, class T>
CAIRN_INLINE T reduce_row(const T* x, int64_t count, T start) {
  if (count < (std::is_integral_v<T> ? kSums : kFew)) {
    for (int64_t i = 0; i < count; ++i) start = combined<kWay>(start, x[i]);
    return start;
  }
  T sums[kSums];
  for (T& sum : sums) sum = start;
  int64_t done = 0;
  for (; done + kSums <= count; done += kSums)
    for (int64_t i = 0; i < kSums; ++i) sums[i] = combined<kWay>(sums[i], x[done + i]);
  for (int64_t i = 0; done + i < count; ++i) sums[i] = combined<kWay>(sums[i], x[done + i]);
  for (int64_t width = kSums / 2; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i) sums[i] = combined<kWay>(sums[i], sums[i + width]);
  return sums[0];
}

#define CAIRN_REDUCTION(name, way, T)                                                             \
  CAIRN_VECTORISED(void, name##_columns,                                                          \
                   (const T* x, int64_t middle, int64_t inner, int64_t columns, T start, T* y)) { \
    reduce_columns<way, T>(x, middle, inner, columns, start, y);                                  \
  }                                                                                               \
  CAIRN_VECTORISED(T, name##_row, (const T* x, int64_t count, T start)) { return reduce_row<way, T>(x, count, start); }
CAIRN_REDUCTION(sum_f64, Way::sum, double)
CAIRN_REDUCTION(largest_f64, Way::largest, double)
CAIRN_REDUCTION(smallest_f64, Way::smallest, double)
CAIRN_REDUCTION(sum_i32, Way::sum, int32_t)
CAIRN_REDUCTION(largest_i32, Way::largest, int32_t)
CAIRN_REDUCTION(smallest_i32, Way::smallest, int32_t)
CAIRN_REDUCTION(sum_i64, Way::sum, int64_t)
CAIRN_REDUCTION(largest_i64, Way::largest, int64_t)
CAIRN_REDUCTION(smallest_i64, Way::smallest, int64_t)
#undef CAIRN_REDUCTION

template <class T>
struct Loops {
  void (*columns)(const T*, int64_t, int64_t, int64_t, T, T*);
  T (*row)(const T*, int64_t, T);
  T start;
};

template <class T>
Loops<T> loops_of(const Node& node) {
  using Limits = std::numeric_limits<T>;
  constexpr bool kInfinite = Limits::has_infinity;
  const T least = kInfinite ? -Limits::infinity() : Limits::lowest(),
          most = kInfinite ? Limits::infinity() : Limits::max();
#define CAIRN_CHOICE(type)                                                                    \
  if (node.is("reduce_max")) return {largest_##type##_columns, largest_##type##_row, least};  \
  if (node.is("reduce_min")) return {smallest_##type##_columns, smallest_##type##_row, most}; \
  return {sum_##type##_columns, sum_##type##_row, 0};
  if constexpr (std::is_same_v<T, double>) {
    CAIRN_CHOICE(f64)
  } else if constexpr (std::is_same_v<T, int32_t>) {
    CAIRN_CHOICE(i32)
  } else {
    CAIRN_CHOICE(i64)
  }
#undef CAIRN_CHOICE
}

std::optional<Middle> middle_of(const Node& node) {
  const Dims dims = node.inputs[0]->type.shape.sizes();
  std::vector<bool> reduced(dims.size(), false);
  for (int64_t axis : node.attr().integers("axes"))
    reduced[static_cast<size_t>(axis < 0 ? axis + std::ssize(dims) : axis)] = true;
  Middle all;
  size_t first = 0, last = dims.size();
  while (first < dims.size() && !reduced[first]) all.outer *= dims[first++];
  while (last > first && !reduced[last - 1]) all.inner *= dims[--last];
  for (size_t i = first; i < last; ++i) {
    if (!reduced[i] && dims[i] != 1) return std::nullopt;
    all.middle *= dims[i];
  }
  return all;
}

template <class T>
std::unique_ptr<Step> step_of(const Node& node) {
  const Middle m = *middle_of(node);
  const Loops<T> loops = loops_of<T>(node);
  const bool mean = node.is("reduce_mean");
  const auto ends = [=](T* y, int64_t count) {
    if constexpr (std::is_same_v<T, double>)
      for (int64_t i = 0; mean && i < count; ++i) y[i] /= static_cast<double>(m.middle);
  };
  if (m.inner == 1)
    return call("wide_reduce_rows", [=](const StepArgs& args) {
      for_ranges(args.executor, m.outer, m.middle, [&](int64_t first, int64_t last) {
        const T* x = input<T>(args, 0);
        for (int64_t i = first; i < last; ++i) output<T>(args)[i] = loops.row(x + i * m.middle, m.middle, loops.start);
        ends(output<T>(args) + first, last - first);
      });
    });
  const int64_t blocks = (m.inner + kSums - 1) / kSums;
  return call("wide_reduce", [=](const StepArgs& args) {
    for_each(args.executor, m.outer * blocks, m.middle * kSums, [&](int64_t i) {
      const int64_t column = i % blocks * kSums, columns = std::min(kSums, m.inner - column);
      T* y = output<T>(args) + i / blocks * m.inner + column;
      loops.columns(input<T>(args, 0) + i / blocks * m.middle * m.inner + column, m.middle, m.inner, columns,
                    loops.start, y);
      ends(y, columns);
    });
  });
}

}  // namespace

Refusal refuses_wide_reduction(const Group& group) {
  const Node& node = group.last();
  const bool sums = node.is("reduce_sum") || node.is("reduce_mean");
  if (group.nodes.size() != 1 || (!sums && !node.is("reduce_max") && !node.is("reduce_min")))
    return "is another operation";
  const DType dtype = node.inputs[0]->type.dtype;
  if (dtype != kF64 && dtype != kI32 && dtype != kI64)
    return fmt::format("x is {}, takes f64, i32, i64", to_string(dtype));
  if (dtype != node.result()->type.dtype || (node.is("reduce_mean") && dtype != kF64)) return "makes other elements";
  if (!middle_of(node)) return "axes are not neighbours";
  return std::nullopt;
}

std::unique_ptr<Step> make_wide_reduction(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const DType dtype = node.inputs[0]->type.dtype;
  return dtype == kF64 ? step_of<double>(node) : dtype == kI32 ? step_of<int32_t>(node) : step_of<int64_t>(node);
}

}  // namespace cairn
