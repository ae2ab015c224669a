#include "frontends/neighbours.h"

#include <algorithm>

#include "frontends/reshape.h"

namespace cairn {

Value* sum_of_neighbours(Value* x, size_t axis, int64_t before, int64_t after, Builder& builder) {
  const size_t rank = x->type.shape.rank();
  const Dim& size = x->type.shape.dims[axis];
  if (!size.known()) fail(ErrorKind::unsupported, "", "the size along axis {} must be known", axis);
  before = std::min(before, size.size), after = std::min(after, size.size);
  std::vector<int64_t> pads(2 * rank, 0), begin(rank, 0), end(rank, kToTheEnd);
  pads[2 * axis] = before, pads[2 * axis + 1] = after;
  Value* padded =
      builder.add("pad", {x, builder.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(rank), 2}, pads))});
  Value* sum = nullptr;
  for (int64_t shift = 0; shift <= before + after; ++shift) {
    begin[axis] = shift, end[axis] = shift + size.size;
    Value* part = builder.add("slice", {padded, builder.ints(begin), builder.ints(end)});
    sum = sum == nullptr ? part : builder.add("add", {sum, part});
  }
  return sum;
}

}  // namespace cairn
