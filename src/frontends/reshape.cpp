#include "frontends/reshape.h"

#include <algorithm>

#include "frontends/fold.h"
#include "frontends/values.h"

namespace cairn {

int64_t normal_axis(int64_t axis, size_t rank) {
  auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    fail(ErrorKind::invalid_model, "", "axis {} is out of range for {} dims", axis, rank);
  return axis < 0 ? axis + signed_rank : axis;
}

std::vector<int64_t> axes_from(int64_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (; first < static_cast<int64_t>(rank); ++first) axes.push_back(first);
  return axes;
}

std::vector<int64_t> swapped_axes(size_t rank, size_t one, size_t other) {
  std::vector<int64_t> order = axes_from(0, rank);
  std::swap(order[one], order[other]);
  return order;
}

std::vector<int64_t> normal_axes(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) axis = normal_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    fail(ErrorKind::invalid_model, "", "an axis is named twice");
  return axes;
}

Value* part_of(Value* vector, int64_t begin, int64_t end, Builder& builder) {
  return folded(builder.add("slice", {vector, builder.ints({begin}), builder.ints({end})}), builder);
}

namespace {

const Dim& dim_at(const Value* x, size_t axis) {
  const Shape& shape = x->type.shape;
  if (!shape.ranked) fail(ErrorKind::unsupported, "", "the rank of an input is not known");
  if (axis >= shape.rank()) fail(ErrorKind::invalid_model, "", "an input has {} dims, more are needed", shape.rank());
  return shape.dims[axis];
}

}  // namespace

Value* dim_of(Value* x, size_t axis, Builder& builder) {
  const Dim& dim = dim_at(x, axis);
  if (dim.known()) return builder.ints({dim.size});
  return part_of(builder.add("shape_of", {x}), static_cast<int64_t>(axis), static_cast<int64_t>(axis) + 1, builder);
}

Value* scalar_dim(Value* x, size_t axis, Builder& builder) {
  return folded(builder.add("reshape", {dim_of(x, axis, builder), builder.ints({})}), builder);
}

Value* counted(Value* size, Builder& builder) {
  Value *zero = builder.constant(Tensor::scalar_i64(0)), *one = builder.constant(Tensor::scalar_i64(1));
  return folded(builder.add("iota", {zero, size, one}, {{"dtype", kI64}}), builder);
}

Value* joined(const std::vector<Value*>& parts, Builder& builder) {
  std::vector<Value*> vectors;
  for (Value* part : parts) {
    Value* vector = cast_to(part, kI64, builder);
    if (vector->type.shape.rank() == 0) vector = folded(builder.add("reshape", {vector, builder.ints({1})}), builder);
    vectors.push_back(vector);
  }
  if (vectors.empty()) return builder.ints({});
  if (vectors.size() == 1) return vectors[0];
  return folded(builder.add("concat", vectors, {{"axis", int64_t{0}}}), builder);
}

Value* reshape_to(Value* x, const std::vector<NewDim>& dims, Builder& builder, bool exact) {
  std::vector<int64_t> numbers;
  std::vector<Dim> known;
  int64_t unknown = 0;
  for (const NewDim& dim : dims) {
    known.push_back(dim.from < 0 ? Dim(dim.size) : dim_at(x, static_cast<size_t>(dim.from)));
    numbers.push_back(known.back().known() ? known.back().size : -1);
    unknown += !known.back().known();
  }
  Value* shape = nullptr;
  // -1 is ambiguous if another dim is 0.
  if (unknown == 0 || (unknown == 1 && !exact && std::find(numbers.begin(), numbers.end(), 0) == numbers.end())) {
    shape = builder.ints(numbers);
  } else {
    std::vector<Value*> parts;
    for (const NewDim& dim : dims)
      parts.push_back(dim.from < 0 ? builder.ints({dim.size}) : dim_of(x, static_cast<size_t>(dim.from), builder));
    shape = joined(parts, builder);
  }
  std::vector<Type> type{Type::tensor(x->type.dtype, Shape(known))};
  return folded(builder.add_node(op_named("reshape"), {x, shape}, {}, {}, type)->result(), builder);
}

std::optional<std::vector<Dim>> sizes_in(const Value* vector, std::optional<size_t>* free) {
  const Shape& own = vector->type.shape;
  if (!vector->type.is_tensor() || !own.known() || own.rank() > 1) return std::nullopt;
  const auto count = static_cast<size_t>(own.rank() == 0 ? 1 : own.dims[0].size);
  constexpr size_t kMost = 64;
  if (count > kMost) return std::nullopt;
  std::vector<Dim> sizes(count);
  if (const Tensor* constant = constant_of(vector)) {
    std::vector<int64_t> numbers = whole_numbers(*constant);
    for (size_t i = 0; i < count; ++i) {
      if (numbers[i] >= 0) sizes[i] = numbers[i];
      if (numbers[i] == -1 && free != nullptr) *free = i;
    }
    return sizes;
  }
  const Node* node = vector->producer;
  if (node == nullptr) return sizes;
  if (node->is("shape_of") && node->inputs[0]->type.shape.ranked) return node->inputs[0]->type.shape.dims;
  if (node->is("cast") || (node->is("reshape") && node->inputs[0]->type.shape.known()))
    return sizes_in(node->inputs[0], free);
  if (node->is("concat")) {
    sizes.clear();
    for (const Value* part : node->inputs) {
      std::optional<size_t> free_here;
      auto some = sizes_in(part, &free_here);
      if (!some) return std::vector<Dim>(count);
      if (free_here && free != nullptr) *free = sizes.size() + *free_here;
      sizes.insert(sizes.end(), some->begin(), some->end());
    }
    return sizes;
  }
  if (node->is("slice") && own.rank() == 0) return sizes_in(node->inputs[0], free);
  const auto steps = node->is("slice") ? node->attr().integers("steps") : std::vector<int64_t>();
  if (node->is("slice") && std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; })) {
    const Tensor* begin = constant_of(node->inputs[1]);
    auto all = sizes_in(node->inputs[0]);
    if (begin == nullptr || !all) return sizes;
    int64_t first = whole_numbers(*begin)[0];
    if (first < 0) first += static_cast<int64_t>(all->size());
    for (size_t i = 0; i < count && first >= 0 && static_cast<size_t>(first) + i < all->size(); ++i)
      sizes[i] = (*all)[static_cast<size_t>(first) + i];
  }
  return sizes;
}

namespace {

/// The size that -1 stands for: the remaining dim of x after equal numbers and symbols are cancelled on both sides.
Dim rest_of(const Shape& x, const std::vector<Dim>& others, size_t free) {
  if (!x.ranked) return Dim();
  std::vector<Dim> left;
  int64_t elements = 1, divisor = 1;
  for (const Dim& dim : x.dims) {
    if (!dim.known()) left.push_back(dim);
    if (dim.known() && __builtin_mul_overflow(elements, dim.size, &elements)) return Dim();
  }
  for (size_t i = 0; i < others.size(); ++i) {
    if (i == free) continue;
    if (others[i].known()) {
      if (__builtin_mul_overflow(divisor, others[i].size, &divisor)) return Dim();
      continue;
    }
    auto same = std::find_if(left.begin(), left.end(), [&](const Dim& dim) { return dim.surely_equals(others[i]); });
    if (same == left.end()) return Dim();
    left.erase(same);
  }
  if (divisor == 0 || elements % divisor != 0) return Dim();
  if (left.empty()) return elements / divisor;
  return left.size() == 1 && elements == divisor ? left[0] : Dim();
}

}  // namespace

Value* reshape_by(Value* x, Value* shape, Builder& builder) {
  std::optional<size_t> free;
  auto sizes = sizes_in(shape, &free);
  if (!sizes || shape->type.shape.rank() != 1 || !x->type.is_tensor())
    return folded(builder.add("reshape", {x, shape}), builder);
  if (free) (*sizes)[*free] = rest_of(x->type.shape, *sizes, *free);
  // A single unknown size can be written as -1, so that the shape is a constant.
  std::vector<int64_t> numbers;
  for (const Dim& dim : *sizes) numbers.push_back(dim.known() ? dim.size : -1);
  bool one = std::count(numbers.begin(), numbers.end(), -1) <= 1 && std::count(numbers.begin(), numbers.end(), 0) == 0;
  std::vector<Type> type{Type::tensor(x->type.dtype, Shape(*sizes))};
  if (one && constant_of(shape) == nullptr) {
    for (const Dim& dim : *sizes) one = one && (dim.known() || dim.symbol != nullptr || free);
    if (one) shape = builder.ints(numbers);
  }
  return folded(builder.add_node(op_named("reshape"), {x, shape}, {}, {}, type)->result(), builder);
}

Value* squeeze(Value* x, const std::vector<int64_t>& axes, Builder& builder) {
  std::vector<NewDim> dims;
  const auto& from = x->type.shape.dims;
  bool exact = false;
  for (size_t i = 0; i < from.size(); ++i) {
    bool drop = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!drop) dims.push_back({-1, static_cast<int>(i)});
    exact |= drop && !from[i].known();
    if (drop && from[i].known() && from[i].size != 1)
      fail(ErrorKind::invalid_model, "", "dim {} has size {}, expected 1", i, from[i].size);
  }
  return reshape_to(x, dims, builder, exact);
}

Value* transposed(Value* x, std::vector<int64_t> permutation, Builder& builder) {
  return builder.add("transpose", {x}, {{"permutation", std::move(permutation)}});
}

Value* expand_dims(Value* x, const std::vector<int64_t>& axes, Builder& builder) {
  std::vector<NewDim> dims;
  size_t rank = x->type.shape.rank() + axes.size();
  int next = 0;
  for (size_t i = 0; i < rank; ++i) {
    bool fresh = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    dims.push_back(fresh ? NewDim{1, -1} : NewDim{-1, next++});
  }
  return reshape_to(x, dims, builder);
}

}  // namespace cairn
