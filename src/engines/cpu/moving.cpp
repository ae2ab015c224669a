#include "engines/cpu/moving.h"

#include <cstring>

#include "engines/cpu/groups.h"
#include "engines/cpu/isa.h"
#include "engines/cpu/move.h"
#include "engines/cpu/odometer.h"
#include "ops/kernels.h"

namespace cairn {

namespace {

using Sources = std::vector<Dims>;

Refusal refuses_elements(const Type& type) {
  const size_t size = type.dtype.size();
  if (type.dtype == kString) return "elements are strings";
  if (size != 1 && size != 2 && size != 4 && size != 8) return "elements are not 1, 2, 4 or 8 bytes";
  return std::nullopt;
}

Dims sizes(const Value* value) { return value->type.shape.sizes(); }

size_t positive_axis(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

Dims count_up(int64_t first, int64_t step, int64_t count) {
  Dims values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = first + i * step;
  return values;
}

// The source positions of a slice along each axis; the result's dims give their number.
Sources slice_sources(const Node& node, const Dims& to) {
  const Dims first = slice_begin(node);
  const auto& steps = node.attr().integers("steps");
  Sources sources;
  for (size_t i = 0; i < to.size(); ++i)
    sources.push_back(to[i] == 1 ? Dims{first[i]} : count_up(first[i], steps.empty() ? 1 : steps[i], to[i]));
  return sources;
}

Sources reverse_sources(const Node& node, const Dims& from) {
  Sources sources;
  for (int64_t n : from) sources.push_back(count_up(0, 1, n));
  for (int64_t axis : node.attr().integers("axes")) {
    Dims& source = sources[positive_axis(axis, from.size())];
    std::reverse(source.begin(), source.end());
  }
  return sources;
}

Sources pad_sources(const Node& node, const Dims& from, const Dims& to) {
  const Dims pads = constant_of(node.inputs[1])->as_i64();
  const std::string& mode = node.attr().text("mode");
  const int64_t mirror = mode == "reflect" ? 1 : 0;
  Sources sources;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const int64_t n = from[axis];
    sources.push_back(count_up(-pads[2 * axis], 1, to[axis]));
    for (int64_t& at : sources.back()) {
      if (at >= 0 && at < n) continue;
      if (mode == "constant")
        at = -1;
      else if (mode == "edge")
        at = at < 0 ? 0 : n - 1;
      else
        at = at < 0 ? -at - 1 + mirror : 2 * n - 1 - at - mirror;
    }
  }
  return sources;
}

// The source positions of broadcasting or tiling.
Sources repeat_sources(const Dims& from, const Dims& to) {
  Sources sources;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    sources.push_back(count_up(0, 1, to[axis]));
    for (int64_t& at : sources.back()) at %= from[axis];
  }
  return sources;
}

uint64_t fill_of(const Node& node) {
  Tensor fill = Tensor::zeros(node.result()->type.dtype, {});
  const double value = node.attr().number("value");
  uint64_t bits = 0;
  with_numbers_or_bool(fill.dtype(), [&](auto tag) {
    using T = decltype(tag);
    *data<T>(fill) = saturate<T>(fill.dtype() == kBool ? value != 0 : value);
  });
  std::memcpy(&bits, fill.data(), fill.bytes());
  return bits;
}

/// Whether an index lies outside [least, size).
template <class Index>
CAIRN_INLINE bool are_outside(int64_t count, const Index* index, int64_t least, int64_t size) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside |= static_cast<uint64_t>(index[i] < least) | (index[i] >= size);
  return outside != 0;
}

/// Elements of 4 bytes, by indices that count from the end below 0.
template <class Index>
CAIRN_INLINE void pick_words(int64_t count, const Index* index, int64_t size, const uint32_t* from, uint32_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[index[i] + (index[i] < 0 ? size : 0)];
}

/// Index i of a tensor of i32 or i64.
int64_t index_at(const void* indices, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
}

Refusal refuses_indices(const Value* indices) {
  const DType dtype = indices->type.dtype;
  if (dtype != kI32 && dtype != kI64) return fmt::format("indices are {}, takes i32 and i64", to_string(dtype));
  return std::nullopt;
}

}  // namespace

namespace {

size_t joined_axis(const Node& concat) {
  return positive_axis(concat.attr().integer("axis"), concat.result()->type.shape.rank());
}

}  // namespace

bool joins_slice(const Node& concat, const Node& slice) {
  if (!slice.is("slice") || !slice.result()->type.is_static() || !slice.inputs[0]->type.is_static()) return false;
  if (!constant_of(slice.inputs[1])) return false;
  const Dims& steps = slice.attr().integers("steps");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) return false;
  Dims whole = sizes(slice.inputs[0]);
  const size_t axis = joined_axis(concat);
  whole[axis] = sizes(slice.result())[axis];
  return whole == sizes(slice.result());
}

Refusal refuses_concat(const Group& group) {
  const Node& node = group.last();
  if (!node.is("concat")) return "is another operation";
  if (node.result()->type.dtype.size() == 0) return "elements are not whole bytes";
  if (node.result()->type.dtype == kString) return "elements are strings";
  for (const Node* each : group.nodes)
    if (each != &node && !joins_slice(node, *each)) return "slices along other axes than it joins";
  return std::nullopt;
}

namespace {

/// What a concatenation copies of one operand: `bytes` for each outer index, from `from` bytes on, `step` bytes apart.
struct Part {
  size_t input;
  int64_t bytes, from, step;
};

/// body(size) with the bytes of a piece, as a constant where they are few: a call of memcpy would take longer than the copy.
template <class Body>
void with_size(int64_t bytes, Body body) {
  switch (bytes) {
    case 1: return body(std::integral_constant<size_t, 1>());
    case 2: return body(std::integral_constant<size_t, 2>());
    case 4: return body(std::integral_constant<size_t, 4>());
    case 8: return body(std::integral_constant<size_t, 8>());
    case 12: return body(std::integral_constant<size_t, 12>());
    case 16: return body(std::integral_constant<size_t, 16>());
    case 32: return body(std::integral_constant<size_t, 32>());
    case 64: return body(std::integral_constant<size_t, 64>());
    case 128: return body(std::integral_constant<size_t, 128>());
    default: return body(static_cast<size_t>(bytes));
  }
}

void copy_pieces(int64_t count, int64_t bytes, const char* from, int64_t from_step, char* to, int64_t to_step) {
  with_size(bytes, [&](auto size) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, size);
  });
}

}  // namespace

// Slices in the group are read where they are.
std::unique_ptr<Step> make_concat(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const size_t axis = joined_axis(node);
  const int64_t outer = count_between(dims, 0, axis);
  std::vector<Part> parts;
  int64_t row = 0;
  CallOptions options;
  for (const Value* value : node.inputs) {
    const Node* slice = value->producer;
    if (std::find(group.nodes.begin(), group.nodes.end(), slice) == group.nodes.end()) slice = nullptr;
    const Value* whole = slice ? slice->inputs[0] : value;
    const int64_t item = count_between(dims, axis + 1, dims.size()) * static_cast<int64_t>(value->type.dtype.size());
    const int64_t from = slice ? slice_begin(*slice)[axis] * item : 0;
    parts.push_back({index_of(group, whole), sizes(value)[axis] * item, from, sizes(whole)[axis] * item});
    row += parts.back().bytes;
  }
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (std::none_of(parts.begin(), parts.end(), [&](const Part& part) { return part.input == i; }))
      options.unread.push_back(i);
  return call(
      "concat",
      [=](const StepArgs& args) {
        constexpr int64_t kBlockBytes = 16 << 10;  // of the result, which stays in the cache for all parts
        const int64_t each = std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, row));
        for_ranges(args.executor, outer, row / 4, [&](int64_t first, int64_t last) {
          for (int64_t at = first; at < last; at += each) {
            char* to = output<char>(args) + at * row;
            for (const Part& part : parts) {
              copy_pieces(std::min(each, last - at), part.bytes,
                          input<char>(args, part.input) + part.from + at * part.step, part.step, to, row);
              to += part.bytes;
            }
          }
        });
      },
      std::move(options));
}

Refusal refuses_transpose(const Group& group) {
  if (group.nodes.size() != 1 || !group.last().is("transpose")) return "is another operation";
  return refuses_elements(group.last().result()->type);
}

namespace {

std::unique_ptr<Step> move_step(StridedCopy copy) {
  return call("transpose", [copy = std::move(copy)](const StepArgs& args) {
    copy.run(args.executor, args.inputs[0], args.outputs[0]);
  });
}

}  // namespace

std::unique_ptr<Step> make_transpose(const Group& group, MakeContext&) {
  const Node& node = group.last();
  return move_step(
      transpose_copy(sizes(node.inputs[0]), node.attr().integers("permutation"), node.result()->type.dtype.size()));
}

std::unique_ptr<Step> make_strided_transpose(const Group& group, const GroupStrides& strides) {
  if (!strides.outputs[0].empty()) return nullptr;
  const Node& node = group.last();
  return move_step(transpose_copy(sizes(node.inputs[0]), node.attr().integers("permutation"),
                                  node.result()->type.dtype.size(), strides.inputs[0]));
}

Refusal refuses_axis_copy(const Group& group) {
  constexpr std::string_view kNames[] = {"slice", "reverse", "pad", "broadcast_to", "tile"};
  const bool named = std::any_of(std::begin(kNames), std::end(kNames),
                                 [&](std::string_view name) { return single_node(group, name) != nullptr; });
  if (!named) return "is another operation";
  const Node& node = group.last();
  if (auto reason = refuses_elements(node.result()->type)) return reason;
  if (node.result()->type.shape.rank() > Odometer::kMostDims) return "has too many dims";
  constexpr int64_t kLongest = 1 << 24;  // a step keeps a number for each position along an axis
  for (int64_t size : sizes(node.result()))
    if (size > kLongest) return fmt::format("an axis is longer than {}", kLongest);
  if (node.is("pad") || node.is("slice"))
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (!constant_of(node.inputs[i])) return "bounds are no constants";
  return std::nullopt;
}

std::unique_ptr<Step> make_axis_copy(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims to = sizes(node.result());
  Dims from = sizes(node.inputs[0]);
  from.insert(from.begin(), to.size() - from.size(), 1);
  Sources sources = node.is("slice")     ? slice_sources(node, to)
                    : node.is("reverse") ? reverse_sources(node, from)
                    : node.is("pad")     ? pad_sources(node, from, to)
                                         : repeat_sources(from, to);
  const bool filled = node.is("pad") && node.attr().text("mode") == "constant";
  AxisCopy copy(from, std::move(sources), node.result()->type.dtype.size(), filled ? fill_of(node) : 0);
  const size_t x = index_of(group, node.inputs[0]);
  CallOptions options;
  options.unread = inputs_but(group, {x});
  return call(
      node.op->name,
      [copy = std::move(copy), x](const StepArgs& args) { copy.run(args.executor, args.inputs[x], args.outputs[0]); },
      std::move(options));
}

Refusal refuses_gather(const Group& group) {
  const Node* node = single_node(group, "gather");
  if (!node) return "is another operation";
  if (auto reason = refuses_indices(node->inputs[1])) return reason;
  return refuses_elements(node->result()->type);
}

GatherRows::GatherRows(const Node& gather) {
  const Dims dims = sizes(gather.inputs[0]);
  const size_t axis = positive_axis(gather.attr().integer("axis"), dims.size());
  const auto batch = static_cast<size_t>(gather.attr().integer("batch_dims"));
  outer = count_between(dims, 0, batch), middle = count_between(dims, batch, axis), size = dims[axis];
  inner = count_between(dims, axis + 1, dims.size());
  picks = outer ? count_of(sizes(gather.inputs[1])) / outer : 0;
  least = gather.attr().boolean("from_start") ? 0 : -size;
  wide = gather.inputs[1]->type.dtype == kI64;
}

void GatherRows::check(const void* indices) const {
  const auto check = [&](auto tag) {
    const auto* index = static_cast<const decltype(tag)*>(indices);
    const bool outside = Vectorised<are_outside<decltype(tag)>>()(outer * picks, index, least, size);
    for (int64_t i = 0; outside && i < outer * picks; ++i)
      if (index[i] < least || index[i] >= size)
        fail(ErrorKind::invalid_argument, "gather", "index {} is out of range for {} elements", index[i], size);
  };
  wide ? check(int64_t()) : check(int32_t());
}

void GatherRows::offsets(int64_t part, int64_t pick, int64_t count, const void* indices, int64_t* offsets) const {
  const int64_t start = part * size;
  const auto find = [&](auto tag) {
    const auto* index =
        static_cast<const decltype(tag)*>(indices) + (middle == 1 ? part : part / middle) * picks + pick;
    for (int64_t i = 0; i < count; ++i) offsets[i] = (start + index[i] + (index[i] < 0 ? size : 0)) * inner;
  };
  wide ? find(int64_t()) : find(int32_t());
}

std::unique_ptr<Step> make_gather(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const GatherRows rows(node);
  const int64_t bytes = rows.inner * static_cast<int64_t>(node.result()->type.dtype.size());
  const bool nothing = count_of(sizes(node.result())) == 0;
  const size_t x = index_of(group, node.inputs[0]), at = index_of(group, node.inputs[1]);
  return call("gather", [=](const StepArgs& args) {
    if (nothing) return;
    rows.check(args.inputs[at]);
    const auto gather = [&](auto tag, auto copy) {
      using Index = decltype(tag);
      const int64_t picks = rows.picks, size = rows.size;
      for_ranges(args.executor, rows.outer * rows.middle * picks, bytes / 4, [&](int64_t first, int64_t last) {
        for (int64_t row = first, many = 0; row < last; row += many) {
          const int64_t part = row / picks, pick = row % picks;
          many = std::min(last - row, picks - pick);
          const char* from = input<char>(args, x) + part * size * bytes;
          char* to = output<char>(args) + row * bytes;
          const Index* index = input<Index>(args, at) + part / rows.middle * picks + pick;
          if (bytes == sizeof(uint32_t))
            Vectorised<pick_words<Index>>()(many, index, size, reinterpret_cast<const uint32_t*>(from),
                                            reinterpret_cast<uint32_t*>(to));
          else
            for (int64_t i = 0; i < many; ++i)
              copy(to + i * bytes, from + (index[i] < 0 ? index[i] + size : index[i]) * bytes);
        }
      });
    };
    const auto with_copy = [&](auto tag) {
      with_size(bytes,
                [&](auto size) { gather(tag, [size](char* to, const char* from) { std::memcpy(to, from, size); }); });
    };
    rows.wide ? with_copy(int64_t()) : with_copy(int32_t());
  });
}

Refusal refuses_one_hot(const Group& group) {
  const Node* node = single_node(group, "one_hot");
  if (!node) return "is another operation";
  if (auto reason = refuses_indices(node->inputs[0])) return reason;
  return refuses_elements(node->result()->type);
}

std::unique_ptr<Step> make_one_hot(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const Dims dims = sizes(node.result());
  const size_t axis = positive_axis(node.attr().integer("axis"), dims.size());
  const int64_t depth = dims[axis], inner = count_between(dims, axis + 1, dims.size());
  const int64_t indices = count_of(sizes(node.inputs[0]));
  const size_t bytes = node.result()->type.dtype.size();
  const bool wide = node.inputs[0]->type.dtype == kI64;
  const size_t at = index_of(group, node.inputs[0]), on = index_of(group, node.inputs[2]),
               off = index_of(group, node.inputs[3]);
  return call("one_hot", [=](const StepArgs& args) {
    const auto put = [&](auto element) {
      using T = decltype(element);
      if (depth == 0) return;
      for_each(args.executor, indices, depth, [&](int64_t i) {
        T* to = output<T>(args) + i / inner * depth * inner + i % inner;
        for (int64_t k = 0; k < depth; ++k) to[k * inner] = *input<T>(args, off);
        const int64_t index = index_at(args.inputs[at], wide, i);
        if (index >= 0 && index < depth) to[index * inner] = *input<T>(args, on);
      });
    };
    if (bytes == 1) put(uint8_t());
    if (bytes == 2) put(uint16_t());
    if (bytes == 4) put(uint32_t());
    if (bytes == 8) put(uint64_t());
  });
}

}  // namespace cairn
