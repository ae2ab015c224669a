#include "engines/cpu/segments.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/results.h"
#include "ops/kernels.h"

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

  size_t input;
  int64_t count;
  bool wide;
};

Refusal refuses_indices(const Value* indices) {
  const DType dtype = indices->type.dtype;
  if (dtype != kI32 && dtype != kI64) return fmt::format("indices are {}, takes i32 and i64", to_string(dtype));
  return std::nullopt;
}

/// Calls body(i, row) for every index i; a negative index counts from `end` and is skipped if it is still negative. For
/// each row the calls are in the order of the indices. Each chunk has its own rows, interleaved with those of others
/// because small indices are the frequent ones.
template <class Body>
void for_each_row(const StepArgs& args, const Indices& indices, int64_t end, int64_t work, Body&& body) {
  constexpr int64_t kLeastWork = 16 << 10;
  const int64_t most = std::max<int64_t>(1, indices.count * work / kLeastWork);
  const int64_t parts = std::min<int64_t>(args.executor.width() == 1 ? 1 : args.executor.width() * 4, most);
  args.executor.run(static_cast<int>(parts), [&](int part, int) {
    for (int64_t i = 0; i < indices.count; ++i) {
      const int64_t index = indices.at(args, i), row = index < 0 ? index + end : index;
      if (row >= 0 && row % parts == part) body(i, row);
    }
  });
}

void copy_rows(const StepArgs& args, const void* from, void* to, int64_t bytes) {
  constexpr int64_t kBlock = 256 << 10;
  if (from == to) return;
  args.executor.run(static_cast<int>((bytes + kBlock - 1) / kBlock), [&](int block, int) {
    const int64_t at = block * kBlock;
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                static_cast<size_t>(std::min(kBlock, bytes - at)));
  });
}

CAIRN_VECTORISED void add_row(int64_t count, const float* __restrict from, float* __restrict to) {
  for (int64_t j = 0; j < count; ++j) to[j] += from[j];
}
CAIRN_VECTORISED void subtract_row(int64_t count, const float* __restrict from, float* __restrict to) {
  for (int64_t j = 0; j < count; ++j) to[j] -= from[j];
}
CAIRN_VECTORISED void divide_row(int64_t count, float divisor, float* to) {
  for (int64_t j = 0; j < count; ++j) to[j] /= divisor;
}

const Node* row_update(const Group& group) {
  const Node* node = single_node(group, "scatter_reduce");
  return node ? node : single_node(group, "scatter_update");
}

}  // namespace

Refusal refuses_row_updates(const Group& group) {
  const Node* node = row_update(group);
  if (!node) return "is another operation";
  if (auto reason = refuses_indices(node->inputs[1])) return reason;
  const DType dtype = node->result()->type.dtype;
  if (node->is("scatter_update")) {
    if (sizes(node->inputs[1]).back() != 1) return "index vectors have not one number";
    if (dtype == kString || dtype.size() == 0) return fmt::format("elements are {}", to_string(dtype));
    return std::nullopt;
  }
  const std::string& mode = node->attr().text("mode");
  if (mode != "add" && mode != "sub") return fmt::format("mode is {}, takes add and sub", mode);
  return dtype == kF32 ? std::nullopt : Refusal(fmt::format("elements are {}, takes f32", to_string(dtype)));
}

std::unique_ptr<Step> make_row_updates(const Group& group, MakeContext&) {
  const Node& node = *row_update(group);
  const Dims dims = sizes(node.result());
  const Indices indices(group, node.inputs[1]);
  const bool update = node.is("scatter_update"), add = !update && node.attr().text("mode") == "add";
  const bool padded = node.attr().boolean("padded"), ignored = count_of(sizes(node.inputs[2])) == 0;
  const bool wraps = update && !node.attr().boolean("from_start");
  const int64_t rows = dims[0], inner = count_between(dims, 1, dims.size());
  const int64_t bytes = inner * static_cast<int64_t>(node.result()->type.dtype.size());
  const size_t x = index_of(group, node.inputs[0]), updates = index_of(group, node.inputs[2]);
  const auto run = [=, name = node.op->name](const StepArgs& args) {
    for (int64_t i = 0; i < indices.count && !(update && ignored); ++i) {
      const int64_t row = indices.at(args, i);
      if (row >= rows || (!padded && row < (wraps ? -rows : 0)))
        fail(ErrorKind::invalid_argument, name, "index {} is out of range for {} {}", row, rows,
             update ? "elements" : "rows");
    }
    copy_rows(args, args.inputs[x], args.outputs[0], rows * bytes);
    if (ignored) return;
    if (!update)
      return for_each_row(args, indices, 0, inner, [&](int64_t i, int64_t row) {
        (add ? add_row : subtract_row)(inner, input(args, updates) + i * inner, output(args) + row * inner);
      });
    for_each_row(args, indices, padded ? 0 : rows, bytes / 4, [&](int64_t i, int64_t row) {
      std::memcpy(output<char>(args) + row * bytes, input<char>(args, updates) + i * bytes, static_cast<size_t>(bytes));
    });
  };
  CallOptions options;
  if (x != updates && x != indices.input) options.in_place = {x};
  return call(node.op->name, run, std::move(options));
}

Refusal refuses_segments(const Group& group) {
  const Node* node = single_node(group, "segment_reduce");
  if (!node) return "is another operation";
  if (auto reason = refuses_indices(node->inputs[1])) return reason;
  const std::string& mode = node->attr().text("mode");
  if (mode != "sum" && mode != "mean" && mode != "sqrt_n") return fmt::format("combines by {}", mode);
  const DType dtype = node->result()->type.dtype;
  return dtype == kF32 ? std::nullopt : Refusal(fmt::format("elements are {}, takes f32", to_string(dtype)));
}

std::unique_ptr<Step> make_segments(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const Indices segments(group, node.inputs[1]);
  const bool mean = node.attr().text("mode") == "mean", root = node.attr().text("mode") == "sqrt_n";
  const bool sorted = node.attr().boolean("sorted");
  const int64_t count = dims[0], inner = count_between(dims, 1, dims.size());
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    for (int64_t i = 0, before = 0; i < segments.count; ++i) {
      const int64_t segment = segments.at(args, i);
      if (segment >= count)
        fail(ErrorKind::invalid_argument, "segment_reduce", "segment {} is out of range for {} segments", segment,
             count);
      if (!sorted) continue;
      if (segment < before)
        fail(ErrorKind::invalid_argument, "segment_reduce", "segment {} where sorted ones are {} at least", segment,
             before);
      before = segment;
    }
    std::memset(args.outputs[0], 0, static_cast<size_t>(count * inner) * sizeof(float));
    for_each_row(args, segments, 0, inner, [&](int64_t i, int64_t row) {
      add_row(inner, input(args, x) + i * inner, output(args) + row * inner);
    });
    if (!mean && !root) return;
    auto* members = static_cast<int64_t*>(args.workspace);
    std::fill_n(members, count, 0);
    for (int64_t i = 0; i < segments.count; ++i)
      if (const int64_t row = segments.at(args, i); row >= 0) ++members[row];
    for_each(args.executor, count, inner, [&](int64_t row) {
      const auto size = static_cast<float>(std::max<int64_t>(1, members[row]));
      divide_row(inner, mean ? size : std::sqrt(size), output(args) + row * inner);
    });
  };
  const size_t workspace = mean || root ? static_cast<size_t>(count) * sizeof(int64_t) : 0;
  return call("segment_reduce", run, {.workspace = workspace});
}

Refusal refuses_unique_padded(const Group& group) {
  const Node* node = single_node(group, "unique_padded");
  if (!node) return "is another operation";
  if (count_of(sizes(node->inputs[0])) > 1 << 30) return "has too many elements";
  return refuses_indices(node->inputs[0]);
}

std::unique_ptr<Step> make_unique_padded(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Indices x(group, node.inputs[0]);
  const uint64_t slots = std::bit_ceil(static_cast<uint64_t>(2 * x.count + 1));
  const Results results(group, node, slots * sizeof(int32_t));
  const auto run = [=](const StepArgs& args) {
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    auto* table = static_cast<int32_t*>(args.workspace);  // hash table of positions among the distinct elements
    std::fill_n(table, slots, -1);
    void* values = results.at<void>(args, 0);
    auto* index = results.at<int64_t>(args, 1);
    const auto value_at = [&](int64_t i) {
      return x.wide ? static_cast<int64_t*>(values)[i] : static_cast<int32_t*>(values)[i];
    };
    const auto put = [&](int64_t i, int64_t value) {
      if (x.wide)
        static_cast<int64_t*>(values)[i] = value;
      else
        static_cast<int32_t*>(values)[i] = static_cast<int32_t>(value);
    };
    int32_t found = 0;
    for (int64_t i = 0; i < x.count; ++i) {
      const int64_t value = x.at(args, i);
      if (value < 0) fail(ErrorKind::invalid_argument, "unique_padded", "element {} is negative", value);
      uint64_t slot = static_cast<uint64_t>(value) * kSpread >> 32 & (slots - 1);
      while (table[slot] >= 0 && value_at(table[slot]) != value) slot = (slot + 1) & (slots - 1);
      if (table[slot] < 0) {
        table[slot] = found;
        put(found++, value);
      }
      index[i] = table[slot];
    }
    for (int64_t i = found; i < x.count; ++i) put(i, -1);
  };
  return call("unique_padded", run, {.workspace = results.workspace()});
}

}  // namespace cairn
