#include "frontends/reshape.h"

#include <algorithm>

#include "frontends/fold.h"

namespace cairn {

int64_t normal_axis(int64_t axis, size_t rank) {
  auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    fail(ErrorKind::invalid_model, "", "axis {} is out of range for {} dims", axis, rank);
  return axis < 0 ? axis + signed_rank : axis;
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

Value* dim_of(Value* x, size_t axis, Builder& builder) {
  const Dim& dim = x->type.shape.dims[axis];
  if (dim.known()) return builder.ints({dim.size});
  return part_of(builder.add("shape_of", {x}), static_cast<int64_t>(axis), static_cast<int64_t>(axis) + 1, builder);
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
    known.push_back(dim.from < 0 ? Dim(dim.size) : x->type.shape.dims[static_cast<size_t>(dim.from)]);
    numbers.push_back(known.back().known() ? known.back().size : -1);
    unknown += !known.back().known();
  }
  Value* shape = nullptr;
  // -1 says nothing where another dim is 0.
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
