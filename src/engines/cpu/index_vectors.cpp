#include "engines/cpu/index_vectors.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/row_order.h"
#include "engines/cpu/row_sums.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

/// Index vectors (i32 or i64) into the dims [batch, batch + depth) of a tensor.
struct IndexVectors {
  IndexVectors(const Group& group, const Node& node, const Value* vectors, const Dims& tensor, size_t batch)
      : name(node.op->name), input(index_of(group, vectors)), wide(vectors->type.dtype == kI64),
        from_start(node.attr().boolean("from_start")),
        padded(node.op->find_attribute("padded") && node.attr().boolean("padded")) {
    const Dims shape = vectors->type.shape.sizes();
    count = count_between(shape, 0, shape.size() - 1);
    const auto depth = static_cast<size_t>(shape.back());
    dims.assign(tensor.begin() + static_cast<long>(batch), tensor.begin() + static_cast<long>(batch + depth));
    part = count_between(tensor, batch + depth, tensor.size());
  }

  int64_t number(const StepArgs& args, int64_t i, size_t d) const {
    const int64_t at = i * static_cast<int64_t>(dims.size()) + static_cast<int64_t>(d);
    return wide ? static_cast<const int64_t*>(args.inputs[input])[at]
                : static_cast<const int32_t*>(args.inputs[input])[at];
  }
  bool outside(int64_t index, size_t d) const { return index < (from_start ? 0 : -dims[d]) || index >= dims[d]; }

  /// The row-major number of the part that vector i addresses, or kLeftOut, or kNoRow when it is out of range.
  int64_t part_of(const StepArgs& args, int64_t i) const {
    int64_t place = 0;
    for (size_t d = 0; d < dims.size() && padded; ++d)
      if (number(args, i, d) < 0) return kLeftOut;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t index = number(args, i, d);
      if (outside(index, d)) return kNoRow;
      place = place * dims[d] + (index < 0 ? index + dims[d] : index);
    }
    return place;
  }

  /// Throws Error invalid_argument for the first vector that is out of range.
  [[noreturn]] void refuse(const StepArgs& args) const {
    int64_t i = 0;
    while (part_of(args, i) != kNoRow) ++i;
    size_t d = 0;
    while (!outside(number(args, i, d), d)) ++d;
    fail(ErrorKind::invalid_argument, name, "index {} is out of range for {} elements", number(args, i, d), dims[d]);
  }

  const char* name;
  size_t input;
  bool wide, from_start, padded;
  int64_t count = 0, part = 0;  // number of vectors; elements of an addressed part
  Dims dims;
};

Refusal refuses_vectors(const Value* vectors) {
  const DType dtype = vectors->type.dtype;
  if (dtype != kI32 && dtype != kI64) return fmt::format("indices are {}, takes i32 and i64", to_string(dtype));
  return std::nullopt;
}

}  // namespace

Refusal refuses_gather_nd(const Group& group) {
  const Node* node = single_node(group, "gather_nd");
  if (!node) return "is another operation";
  const DType dtype = node->result()->type.dtype;
  if (dtype == kString || dtype.size() == 0) return fmt::format("elements are {}", to_string(dtype));
  return refuses_vectors(node->inputs[1]);
}

std::unique_ptr<Step> make_gather_nd(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = node.inputs[0]->type.shape.sizes();
  const auto batch = static_cast<size_t>(node.attr().integer("batch_dims"));
  const IndexVectors vectors(group, node, node.inputs[1], dims, batch);
  const int64_t outer = count_between(dims, 0, batch), each = count_between(dims, batch, dims.size());
  const int64_t bytes = vectors.part * static_cast<int64_t>(node.result()->type.dtype.size());
  const int64_t width = static_cast<int64_t>(node.result()->type.dtype.size());
  const bool nothing = count_of(node.result()->type.shape.sizes()) == 0;
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    if (nothing) return;
    auto* places = static_cast<int64_t*>(args.workspace);
    for (int64_t i = 0; i < vectors.count; ++i)  // before the parallel part: chunks of an executor must not throw
      if ((places[i] = vectors.part_of(args, i)) == kNoRow) vectors.refuse(args);
    const int64_t picks = vectors.count / outer;
    for_each(args.executor, vectors.count, bytes / 4, [&](int64_t i) {
      const char* from = input<char>(args, x) + i / picks * each * width + places[i] * bytes;
      std::memcpy(output<char>(args) + i * bytes, from, static_cast<size_t>(bytes));
    });
  };
  return call("gather_nd", run, {.workspace = static_cast<size_t>(vectors.count) * sizeof(int64_t)});
}

Refusal refuses_scatter(const Group& group) {
  const Node* sum = single_node(group, "scatter_nd");
  const Node* update = single_node(group, "scatter_update");
  if (!sum && !update) return "is another operation";
  const DType dtype = group.last().result()->type.dtype;
  if (dtype == kString || dtype.size() == 0) return fmt::format("elements are {}", to_string(dtype));
  return refuses_vectors(group.last().inputs[sum ? 0 : 1]);
}

std::unique_ptr<Step> make_scatter(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = node.result()->type.shape.sizes();
  const DType dtype = node.result()->type.dtype;
  const bool sums = node.is("scatter_nd"), adds = sums && dtype == kF32;
  const IndexVectors vectors(group, node, node.inputs[sums ? 0 : 1], dims, 0);
  const Value* source = node.inputs[sums ? 1 : 2];
  const auto width = static_cast<int64_t>(dtype.size()), bytes = vectors.part * width, all = count_of(dims) * width;
  const bool nothing = count_of(source->type.shape.sizes()) == 0;
  const size_t x = index_of(group, node.inputs[0]), updates = index_of(group, source);
  const CombineRow combine = sums ? combine_row("add", dtype, false) : nullptr;
  const RowOrder order(vectors.count, bytes);
  const auto run = [=](const StepArgs& args) {
    if (sums)
      for_ranges(args.executor, all, 1, [&](int64_t first, int64_t last) {
        std::memset(output<char>(args) + first, 0, static_cast<size_t>(last - first));
      });
    else
      copy_bytes(args.executor, args.inputs[x], args.outputs[0], all);
    if (nothing) return;
    const auto part_of = [&](int64_t i) { return vectors.part_of(args, i); };
    const auto put_one = [&](int64_t i, int64_t place) {
      const char* from = input<char>(args, updates) + i * bytes;
      char* to = output<char>(args) + place * bytes;
      if (sums)
        combine(vectors.part, from, to);
      else
        std::memcpy(to, from, static_cast<size_t>(bytes));
    };
    const auto add_list = [&](const RowOrder::Rows& list) {
      add_rows(
          {list.count, vectors.part, list.indices, list.rows, nullptr, input(args, updates), output(args), nullptr});
    };
    if (!(adds ? order.run_lists(args, part_of, add_list) : order.run(args, part_of, put_one))) vectors.refuse(args);
  };
  CallOptions options{.workspace = order.workspace()};
  if (!sums && x != updates && x != vectors.input) options.in_place = {x};
  return call(node.op->name, run, std::move(options));
}

namespace {

/// Writes the index vectors of the non-zero elements of [first, last) of x, whose dims are `dims`.
template <class T>
void write_vectors(const T* x, const Dims& dims, int64_t first, int64_t last, int64_t* to) {
  const size_t rank = dims.size();
  Dims at(rank);
  for (int64_t d = std::ssize(dims) - 1, rest = first; d >= 0; rest /= dims[static_cast<size_t>(d--)])
    at[static_cast<size_t>(d)] = rest % dims[static_cast<size_t>(d)];
  for (int64_t n = first; n < last; ++n) {
    if (static_cast<Compute<T>>(x[n]) != 0) to = std::copy(at.begin(), at.end(), to);
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

Refusal refuses_non_zero(const Group& group) {
  const Node* node = single_node(group, "non_zero");
  if (!node) return "is another operation";
  return node->result()->type.is_static() ? Refusal("the number of vectors is declared") : std::nullopt;
}

std::unique_ptr<Step> make_non_zero(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = node.inputs[0]->type.shape.sizes();
  const DType dtype = node.inputs[0]->type.dtype;
  constexpr int64_t kPart = 16 << 10;
  const int64_t count = count_of(dims), parts = (count + kPart - 1) / kPart, rank = std::ssize(dims);
  const auto run = [=](const StepArgs& args) {
    with_numbers_or_bool(dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* x = input<T>(args, 0);
      auto* starts = static_cast<int64_t*>(args.workspace);
      const auto in_parts = [&](auto&& visit) {
        args.executor.run(static_cast<int>(parts), [&](int part, int) {
          visit(starts[part], part * kPart, std::min(count, (part + 1) * kPart));
        });
      };
      in_parts([&](int64_t& size, int64_t first, int64_t last) {
        size = std::count_if(x + first, x + last, [](T element) { return static_cast<Compute<T>>(element) != 0; });
      });
      int64_t total = 0;
      for (int64_t part = 0; part < parts; ++part) total += std::exchange(starts[part], total);
      Tensor y = Tensor::uninitialized(kI64, {total, rank});
      auto* to = static_cast<int64_t*>(y.mutable_data());
      in_parts(
          [&](int64_t start, int64_t first, int64_t last) { write_vectors(x, dims, first, last, to + start * rank); });
      *static_cast<HostValue*>(args.outputs[0]) = {std::move(y), nullptr};
    });
  };
  return call("non_zero", run, {.workspace = static_cast<size_t>(parts) * sizeof(int64_t)});
}

}  // namespace cairn
