#include "engines/cpu/segments.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/results.h"
#include "engines/cpu/row_order.h"
#include "engines/cpu/row_sums.h"
#include "ops/combine.h"
#include "support/memory.h"
#include "support/stop.h"

namespace cairn {

namespace {

Dims sizes(const Value* value) { return value->type.shape.sizes(); }

/// A vector of i32 or i64 among the inputs.
struct Indices {
  Indices(const Group& group, const Value* value)
      : input(index_of(group, value)), count(count_of(sizes(value))), wide(value->type.dtype == kI64) {}
  int64_t at(const StepArgs& args, int64_t i) const {
    return wide ? static_cast<const int64_t*>(args.inputs[input])[i]
                : static_cast<const int32_t*>(args.inputs[input])[i];
  }

  /// All of them as i64, which need room_for_all() bytes at `scratch`.
  const int64_t* all(const StepArgs& args, void* scratch) const {
    if (wide) return static_cast<const int64_t*>(args.inputs[input]);
    return std::copy_n(static_cast<const int32_t*>(args.inputs[input]), count, static_cast<int64_t*>(scratch)) - count;
  }
  size_t room_for_all() const { return wide ? 0 : whole_lines(static_cast<size_t>(count) * sizeof(int64_t)); }

  size_t input;
  int64_t count;
  bool wide;
};

Refusal refuses_indices(const Value* indices) {
  const DType dtype = indices->type.dtype;
  if (dtype != kI32 && dtype != kI64) return fmt::format("indices are {}, takes i32 and i64", to_string(dtype));
  return std::nullopt;
}

// Writes `count` rows of the number that a reduction starts from.
template <class A>
void fill_rows(Executor& executor, int64_t count, int64_t inner, A start, A* to) {
  for_ranges(executor, count * inner, 1, [&](int64_t first, int64_t last) { std::fill(to + first, to + last, start); });
}

CAIRN_VECTORISED(void, divide_f32, (int64_t count, float divisor, float* to)) {
  for (int64_t j = 0; j < count; ++j) to[j] /= divisor;
}

/// What a reduced row of `size` members becomes; `sums` may be the row itself.
template <class T>
void finish_row(std::string_view mode, bool empty_is_zero, int64_t size, int64_t inner, Compute<T>* sums, T* to) {
  if (size == 0 && empty_is_zero) {
    std::fill_n(to, inner, T(0));
    return;
  }
  if constexpr (kIsFloat<T>) {
    if (size > 1 && (mode == "mean" || mode == "sqrt_n")) {
      const auto members = static_cast<Compute<T>>(size), divisor = mode == "mean" ? members : std::sqrt(members);
      if constexpr (std::is_same_v<T, float>) return divide_f32(inner, divisor, to);
      for (int64_t j = 0; j < inner; ++j) sums[j] /= divisor;
    }
  }
  if constexpr (!std::is_same_v<T, Compute<T>>)
    for (int64_t j = 0; j < inner; ++j) to[j] = T(sums[j]);
}

}  // namespace

Refusal refuses_row_updates(const Group& group) {
  const Node* node = single_node(group, "scatter_reduce");
  return node ? refuses_indices(node->inputs[1]) : Refusal("is another operation");
}

std::unique_ptr<Step> make_row_updates(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const Indices indices(group, node.inputs[1]);
  const bool padded = node.attr().boolean("padded"), ignored = count_of(sizes(node.inputs[2])) == 0;
  const int64_t rows = dims[0], inner = count_between(dims, 1, dims.size());
  const int64_t bytes = inner * static_cast<int64_t>(node.result()->type.dtype.size());
  const size_t x = index_of(group, node.inputs[0]), updates = index_of(group, node.inputs[2]);
  const CombineRow combine = combine_row(node.attr().text("mode"), node.result()->type.dtype, false);
  const bool adds = node.result()->type.dtype == kF32 && node.attr().text("mode") == "add" && !ignored;
  const RowOrder order(indices.count, bytes);
  const auto run = [=](const StepArgs& args) {
    copy_bytes(args.executor, args.inputs[x], args.outputs[0], rows * bytes);
    const auto row_of = [&](int64_t i) {
      const int64_t row = indices.at(args, i);
      return row >= rows || (row < 0 && !padded) ? kNoRow : std::max(row, kLeftOut);
    };
    const auto combine_one = [&](int64_t i, int64_t row) {
      if (!ignored) combine(inner, input<char>(args, updates) + i * bytes, output<char>(args) + row * bytes);
    };
    const auto add_list = [&](const RowOrder::Rows& list) {
      add_rows({list.count, inner, list.indices, list.rows, nullptr, input(args, updates), output(args), nullptr});
    };
    if (adds ? order.run_lists(args, row_of, add_list) : order.run(args, row_of, combine_one)) return;
    for (int64_t i = 0; i < indices.count; ++i)
      if (row_of(i) == kNoRow)
        fail(ErrorKind::invalid_argument, "scatter_reduce", "index {} is out of range for {} rows", indices.at(args, i),
             rows);
  };
  CallOptions options{.workspace = order.workspace()};
  if (x != updates && x != indices.input) options.in_place = {x};
  return call("scatter_reduce", run, std::move(options));
}

Refusal refuses_scatter_elements(const Group& group) {
  const Node* node = single_node(group, "scatter_elements");
  return node ? refuses_indices(node->inputs[1]) : Refusal("is another operation");
}

namespace {

/// scatter_elements with x as [outer, size, middle] parts and updates as [outer, count, middle] ones, where the outer and
/// middle dims of the updates may be smaller. Parts of one outer and middle position are independent of all others.
struct ElementScatter {
  ElementScatter(const Dims& x, const Dims& at, size_t axis)
      : outer(at.begin(), at.begin() + static_cast<long>(axis)),
        middle(at.begin() + static_cast<long>(axis) + 1, at.end()),
        whole_outer(x.begin(), x.begin() + static_cast<long>(axis)), size(x[axis]), count(at[axis]),
        whole_middle(count_between(x, axis + 1, at.size())), columns(count_of(middle)),
        part(count_between(x, at.size(), x.size())) {
    const Dims inside(x.begin() + static_cast<long>(axis) + 1, x.begin() + std::ssize(at));
    for (int64_t m = 0; m < columns; ++m) places.push_back(place(m, middle, inside));
  }
  /// The row-major number in `whole` dims of element n of `dims`.
  static int64_t place(int64_t n, const Dims& dims, const Dims& whole) {
    int64_t at = 0;
    for (int64_t i = std::ssize(dims) - 1, step = 1; i >= 0; step *= whole[static_cast<size_t>(i--)]) {
      at += n % dims[static_cast<size_t>(i)] * step;
      n /= dims[static_cast<size_t>(i)];
    }
    return at;
  }

  Dims outer, middle, whole_outer;
  int64_t size, count, whole_middle, columns, part;
  Dims places;  // of the columns among those of x
};

}  // namespace

std::unique_ptr<Step> make_scatter_elements(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const DType dtype = node.result()->type.dtype;
  const Indices indices(group, node.inputs[1]);
  const int64_t axis_given = node.attr().integer("axis");
  const auto axis = static_cast<size_t>(axis_given < 0 ? axis_given + std::ssize(dims) : axis_given);
  const ElementScatter scatter(dims, sizes(node.inputs[1]), axis);
  const std::string mode = node.attr().text("mode");
  const auto width = static_cast<int64_t>(dtype.size()), part = scatter.part, all = count_of(dims) * width;
  const bool ignored = count_of(sizes(node.inputs[2])) == 0, update = mode == "update";
  const size_t x = index_of(group, node.inputs[0]), updates = index_of(group, node.inputs[2]);
  const CombineRow combine = update ? nullptr : combine_row(mode, dtype, false);
  const CombineAt at_places = combine_at(mode, dtype);
  // Workers share out the outer positions, and the columns or the elements of a part by cache lines.
  const int64_t outer = count_of(scatter.outer), line = std::max<int64_t>(1, 64 / width);
  const int64_t across = scatter.columns > 1 ? scatter.columns : part, blocks = (across + line - 1) / line;
  const auto run = [=](const StepArgs& args) {
    copy_bytes(args.executor, args.inputs[x], args.outputs[0], all);
    if (ignored) return;
    std::atomic<int64_t> wrong = indices.count;
    for_ranges(args.executor, indices.count, 1, [&](int64_t first, int64_t last) {
      int64_t i = first;
      while (i < last && indices.at(args, i) >= -scatter.size && indices.at(args, i) < scatter.size) ++i;
      for (int64_t least = wrong; i < last && i < least && !wrong.compare_exchange_weak(least, i);) continue;
    });
    if (wrong < indices.count)
      fail(ErrorKind::invalid_argument, "scatter_elements", "index {} is out of range for {} elements",
           indices.at(args, wrong), scatter.size);
    const auto row_of = [&](int64_t i) {
      const int64_t index = indices.at(args, i);
      return index < 0 ? index + scatter.size : index;
    };
    const auto one = [&](int64_t o, int64_t first, int64_t last) {  // columns, or elements of the parts of one column
      const int64_t start = o * scatter.count * scatter.columns;
      const char* from = input<char>(args, updates) + start * part * width;
      char* to = output<char>(args) + ElementScatter::place(o, scatter.outer, scatter.whole_outer) * scatter.size *
                                          scatter.whole_middle * part * width;
      int64_t places[64];
      if (part == 1 && scatter.columns == 1) {
        for (int64_t i = 0, many = 0; i < scatter.count; i += many) {
          many = std::min<int64_t>(64, scatter.count - i);
          for (int64_t k = 0; k < many; ++k) places[k] = row_of(start + i + k) * scatter.whole_middle;
          at_places(many, places, from + i * width, to);
        }
        return;
      }
      for (int64_t i = 0; i < scatter.count; ++i) {
        const int64_t line_start = start + i * scatter.columns;
        if (part == 1) {
          for (int64_t m = first, many = 0; m < last; m += many) {
            many = std::min<int64_t>(64, last - m);
            for (int64_t k = 0; k < many; ++k)
              places[k] =
                  row_of(line_start + m + k) * scatter.whole_middle + scatter.places[static_cast<size_t>(m + k)];
            at_places(many, places, from + (i * scatter.columns + m) * width, to);
          }
          continue;
        }
        const bool whole = scatter.columns > 1;
        const int64_t begin = whole ? 0 : first, elements = whole ? part : last - first;
        for (int64_t m = whole ? first : 0; m < (whole ? last : 1); ++m) {
          const int64_t place = row_of(line_start + m) * scatter.whole_middle + scatter.places[static_cast<size_t>(m)];
          const char* source = from + ((i * scatter.columns + m) * part + begin) * width;
          char* target = to + (place * part + begin) * width;
          if (update)
            std::memcpy(target, source, static_cast<size_t>(elements * width));
          else
            combine(elements, source, target);
        }
      }
    };
    const int64_t work = scatter.count * scatter.columns * part * 4;
    if (outer >= 4 * args.executor.width() || outer * work < 32 << 10)
      return for_each(args.executor, outer, work, [&](int64_t o) { one(o, 0, across); });
    const int64_t pieces = std::min<int64_t>(blocks, 4 * args.executor.width());
    args.executor.run(static_cast<int>(outer * pieces), [&](int chunk, int) {
      const int64_t o = chunk / pieces, piece = chunk % pieces;
      one(o, blocks * piece / pieces * line, std::min(across, blocks * (piece + 1) / pieces * line));
    });
  };
  CallOptions options;
  if (x != updates && x != indices.input) options.in_place = {x};
  return call("scatter_elements " + mode, run, std::move(options));
}

Refusal refuses_segments(const Group& group) {
  const Node* node = single_node(group, "segment_reduce");
  if (node) return refuses_indices(node->inputs[1]);
  node = single_node(group, "gather_reduce");
  if (!node) return "is another operation";
  if (node->result()->type.dtype != kF32)
    return fmt::format("elements are {}, takes f32", to_string(node->result()->type.dtype));
  return std::nullopt;
}

std::unique_ptr<Step> make_segments(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const DType dtype = node.result()->type.dtype;
  const bool gathers = node.is("gather_reduce"), from_start = gathers && node.attr().boolean("from_start");
  const Indices segments(group, node.inputs[gathers ? 2 : 1]), picks(group, node.inputs[1]);
  const size_t weights = node.inputs.size() > 4 ? index_of(group, node.inputs[4]) : kNoOutput;
  const int64_t rows = gathers ? dim(node.inputs[0], 0) : 0;
  const std::string mode = node.attr().text("mode");
  const bool sorted = node.attr().boolean("sorted"), divides = mode == "mean" || mode == "sqrt_n";
  const bool adds = dtype == kF32 && (mode == "sum" || divides), weighs = weights != kNoOutput;
  const bool zeroes =
      !gathers && node.attr().boolean("empty_is_zero") && (mode == "prod" || mode == "max" || mode == "min");
  const bool small_floats = dtype.is_float() && dtype.size() == 2;  // their sums are f32
  const int64_t count = dims[0], inner = count_between(dims, 1, dims.size());
  const auto bytes = static_cast<int64_t>(dtype.size());
  const int64_t sum_bytes = inner * (small_floats ? int64_t{4} : bytes);
  const int64_t stride = sum_bytes < 64 ? 1 : 8;  // of the counters of members: those of two workers lie apart
  const RowOrder order(segments.count,
                       stride == 1 && (divides || zeroes) ? std::min<int64_t>(sum_bytes, 8) : sum_bytes);
  const CombineRow combine = combine_row(mode, dtype, true);
  const size_t x = index_of(group, node.inputs[0]);
  const size_t sums_at = whole_lines(order.workspace());
  const size_t members_at = sums_at + (small_floats ? whole_lines(static_cast<size_t>(count * sum_bytes)) : 0);
  const size_t segments_at =
      members_at + (divides || zeroes ? whole_lines(static_cast<size_t>(count * stride) * 8) : 0);
  const size_t picks_at = segments_at + segments.room_for_all();
  const size_t workspace = picks_at + (gathers ? picks.room_for_all() : 0);
  const auto run = [=, name = node.op->name](const StepArgs& args) {
    char* scratch = static_cast<char*>(args.workspace);
    char* sums = small_floats ? scratch + sums_at : output<char>(args);
    int64_t* members = divides || zeroes ? reinterpret_cast<int64_t*>(scratch + members_at) : nullptr;
    const int64_t* const segment_of = segments.all(args, scratch + segments_at);
    const int64_t* const pick_of = gathers ? picks.all(args, scratch + picks_at) : nullptr;
    const auto source_of = [=](int64_t i) {  // the row of x, or kNoRow
      if (!pick_of) return i;
      const int64_t row = pick_of[i] + (pick_of[i] < 0 && !from_start ? rows : 0);
      return row < 0 || row >= rows ? kNoRow : row;
    };
    const auto row_of = [=](int64_t i) {
      const bool falls = sorted && segment_of[i] < (i > 0 ? segment_of[i - 1] : 0);
      const bool wrong = source_of(i) == kNoRow || segment_of[i] >= count || falls;
      return wrong ? kNoRow : std::max(segment_of[i], kLeftOut);
    };
    const auto fill_from = [&](int64_t row) {
      with_numbers(dtype, [&](auto tag) {
        using T = decltype(tag);
        auto* const to = reinterpret_cast<Compute<T>*>(sums + row * sum_bytes);
        fill_rows(args.executor, count - row, inner, neutral<T, Compute<T>>(mode), to);
      });
    };
    if (members) std::fill_n(members, count * stride, 0);
    int64_t begun = 0;  // rows of sums that ascend
    int64_t* begin = nullptr;
    const auto start = [&](bool ascends) {
      if (adds && ascends)
        begin = &begun;
      else
        fill_from(0);
    };
    const auto body = [&](const RowOrder::Rows& list) {
      for (int64_t k = 0; members && k < list.count; ++k)
        if (list.rows[k] >= 0) ++members[list.rows[k] * stride];
      if (!adds) {
        for (int64_t k = 0; k < list.count; ++k)
          if (const int64_t row = list.rows[k]; row >= 0)
            combine(inner, input<char>(args, x) + list.indices[k] * inner * bytes, sums + row * sum_bytes);
        return;
      }
      int64_t sources[RowOrder::kList];
      float by[RowOrder::kList];
      for (int64_t k = 0; k < list.count; ++k) sources[k] = source_of(list.indices[k]);
      for (int64_t k = 0; weighs && k < list.count; ++k) by[k] = input(args, weights)[list.indices[k]];
      add_rows({list.count, inner, sources, list.rows, weighs ? by : nullptr, input(args, x), output(args), begin});
    };
    const bool good = order.run_lists(args, row_of, start, body);
    if (begin) fill_from(begun);
    for (int64_t i = 0, before = 0; i < segments.count && !good; before = segment_of[i++]) {
      const int64_t segment = segment_of[i];
      if (source_of(i) == kNoRow)
        fail(ErrorKind::invalid_argument, name, "index {} is out of range for {} rows", pick_of[i], rows);
      if (segment >= count)
        fail(ErrorKind::invalid_argument, name, "segment {} is out of range for {} segments", segment, count);
      if (sorted && segment < before)
        fail(ErrorKind::invalid_argument, name, "segment {} where sorted ones are {} at least", segment, before);
    }
    if (!members && !small_floats) return;
    with_numbers(dtype, [&](auto tag) {
      using T = decltype(tag);
      for_each(args.executor, count, inner, [&](int64_t row) {
        finish_row(mode, zeroes, members ? members[row * stride] : 1, inner,
                   reinterpret_cast<Compute<T>*>(sums + row * sum_bytes), output<T>(args) + row * inner);
      });
    });
  };
  return call(fmt::format("{} {}", node.op->name, mode), run, {.workspace = workspace});
}

namespace {

/// Finds equal elements by a hash table of the places of the different ones.
class DifferentElements {
 public:
  explicit DifferentElements(int64_t count) : slots_(std::bit_ceil(static_cast<uint64_t>(2 * count + 1))) {}
  size_t workspace() const { return slots_ * sizeof(int32_t); }

  /// Writes the different elements to `values` and for each element its place among them to `index`; returns their number.
  /// Every NaN is different.
  template <class T>
  int64_t find(const T* x, int64_t count, void* workspace, T* values, int64_t* index) const {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    auto* table = static_cast<int32_t*>(workspace);
    std::fill_n(table, slots_, -1);
    int32_t found = 0;
    for (const int64_t i : turns(count, 8)) {
      const auto value = static_cast<Compute<T>>(x[i]);
      uint64_t slot = bits_of(value) * kSpread >> 32 & (slots_ - 1);
      while (table[slot] >= 0 && static_cast<Compute<T>>(values[table[slot]]) != value)
        slot = (slot + 1) & (slots_ - 1);
      if (table[slot] < 0) {
        table[slot] = found;
        values[found++] = x[i];
      }
      index[i] = table[slot];
    }
    return found;
  }

 private:
  template <class N>
  static uint64_t bits_of(N value) {
    if constexpr (std::is_floating_point_v<N>) {
      const double number = static_cast<double>(value) + 0.0;  // one zero
      return std::bit_cast<uint64_t>(number) ^ std::bit_cast<uint64_t>(number) >> 32;
    } else {
      return static_cast<uint64_t>(value);
    }
  }

  uint64_t slots_;
};

/// The same of elements from 0 to below `below`, by a table of as many places.
template <class T>
int64_t find_by_table(const T* x, int64_t count, int64_t below, int32_t* table, T* values, int64_t* index) {
  std::fill_n(table, below, -1);
  int32_t found = 0;
  for (const int64_t i : turns(count, 2)) {
    int32_t& place = table[x[i]];
    if (place < 0) values[found] = x[i], place = found++;
    index[i] = place;
  }
  return found;
}

Refusal refuses_many(const Value* x) {
  return count_of(sizes(x)) > 1 << 30 ? Refusal("has too many elements") : std::nullopt;
}

}  // namespace

Refusal refuses_unique_padded(const Group& group) {
  const Node* node = single_node(group, "unique_padded");
  if (!node) return "is another operation";
  if (auto reason = refuses_many(node->inputs[0])) return reason;
  return refuses_indices(node->inputs[0]);
}

std::unique_ptr<Step> make_unique_padded(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const DType dtype = node.inputs[0]->type.dtype;
  const int64_t count = count_of(sizes(node.inputs[0]));
  const int64_t rows = count_of(sizes(node.result(0))), below = node.attr().integer("below");
  const bool few = below > 0 && below <= count;  // then a table has a place for each
  const DifferentElements different(count);
  const Results results(group, node, few ? static_cast<size_t>(below) * sizeof(int32_t) : different.workspace());
  const auto run = [=](const StepArgs& args) {
    with_integers(dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* x = input<T>(args, 0);
      for (int64_t i = 0; i < count; ++i) {
        if (x[i] < 0) fail(ErrorKind::invalid_argument, "unique_padded", "element {} is negative", x[i]);
        if (below > 0 && static_cast<int64_t>(x[i]) >= below)
          fail(ErrorKind::invalid_argument, "unique_padded", "element {} is not below {}", x[i], below);
      }
      T* values = results.at<T>(args, 0);
      auto* index = results.at<int64_t>(args, 1);
      const int64_t found = few ? find_by_table(x, count, below, static_cast<int32_t*>(args.workspace), values, index)
                                : different.find(x, count, args.workspace, values, index);
      std::fill(values + found, values + rows, T(-1));
    });
  };
  return call("unique_padded", run, {.workspace = results.workspace()});
}

Refusal refuses_unique(const Group& group) {
  const Node* node = single_node(group, "unique");
  if (!node) return "is another operation";
  if (node->inputs[0]->type.dtype == kString) return "elements are strings";
  if (node->result(0)->type.is_static()) return "the number of different elements is declared";
  return refuses_many(node->inputs[0]);
}

std::unique_ptr<Step> make_unique_elements(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const DType dtype = node.inputs[0]->type.dtype;
  const int64_t count = count_of(sizes(node.inputs[0]));
  const size_t values = index_of_output(group, node.result(0)), index = index_of_output(group, node.result(1));
  const DifferentElements different(count);
  const size_t values_at = whole_lines(different.workspace()), index_at = values_at + static_cast<size_t>(count) * 8;
  const auto run = [=](const StepArgs& args) {
    char* scratch = static_cast<char*>(args.workspace);
    with_numbers_or_bool(dtype, [&](auto tag) {
      using T = decltype(tag);
      T* found = reinterpret_cast<T*>(scratch + values_at);
      auto* places = index < kNoOutput ? output<int64_t>(args, index) : reinterpret_cast<int64_t*>(scratch + index_at);
      const int64_t size = different.find(input<T>(args, 0), count, scratch, found, places);
      if (values == kNoOutput) return;
      Tensor y = Tensor::uninitialized(dtype, {size});
      std::copy_n(found, size, static_cast<T*>(y.mutable_data()));
      *static_cast<HostValue*>(args.outputs[values]) = {std::move(y), nullptr};
    });
  };
  return call("unique", run, {.workspace = index_at + static_cast<size_t>(count) * 8});
}

}  // namespace cairn
