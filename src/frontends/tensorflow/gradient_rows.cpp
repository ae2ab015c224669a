// TensorFlow's gradients of element-wise and array ops, as compositions of simpler ones.
#include <algorithm>
#include <limits>
#include <numeric>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/training.h"

namespace cairn::tensorflow {
namespace {

/// A row whose result is kFunction(first input, second input); which of both is the gradient is TensorFlow's order,
/// different from op to op.
template <Var (*kFunction)(Var, Var)>
void formula(OpContext& c) {
  c.expect_inputs(2);
  c.out = {kFunction({c.b, c.in[0]}, {c.b, c.in[1]}).value};
}

Var relu(Var dy, Var x) { return select(x > 0, dy, dy.number(0)); }
Var relu6(Var dy, Var x) { return select((x > 0).apply("and", {x < 6}), dy, dy.number(0)); }
Var elu(Var dy, Var y) { return select(y < 0, (y + 1) * dy, dy); }
Var selu(Var dy, Var y) { return select(y < 0, dy * (y + 1.7580993408473768), dy * 1.0507009873554805); }
Var softplus(Var dy, Var x) { return dy / (exp(-x) + 1); }
Var softsign(Var dy, Var x) { return dy / (abs(x) + 1).apply("square"); }
Var tanh(Var y, Var dy) { return dy * (1 - y * y); }
Var sigmoid(Var y, Var dy) { return dy * (1 - y) * y; }
Var rsqrt(Var y, Var dy) { return (dy * y) * (y * y) * -0.5; }
Var sqrt(Var y, Var dy) { return (dy * 0.5) / y; }
Var reciprocal(Var y, Var dy) { return -(y * y * dy); }

void leaky_relu(OpContext& c) {
  c.expect_inputs(2);
  const Var dy(c.b, c.in[0]), x(c.b, c.in[1]);
  c.out = {select(x > 0, dy, dy * c.real("alpha", 0.2)).value};
}

void l2_loss(OpContext& c) {
  c.expect_inputs(1);
  std::vector<int64_t> axes(c.rank(0));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  Value* sum = c.b.add("reduce_sum", {c.b.add("square", c.in)}, {{"axes", axes}});
  c.out = {(Var(c.b, sum) * 0.5).value};
}

/// The tensor of whose shape the vector is the result, or null.
const Value* measured(const Value* vector) {
  const auto* node = vector->producer;
  while (node != nullptr && node->is("cast")) node = node->inputs[0]->producer;
  return node != nullptr && node->is("shape_of") ? node->inputs[0] : nullptr;
}

/// A tensor that surely has the shape of x: the operand of element-wise ops, or the tensor for which random numbers
/// were drawn. Two tensors with the same shape source have equal sizes, even if these are known only at run time.
const Value* shape_source(const Value* x, int levels = 8) {
  const auto* node = x->producer;
  if (node == nullptr || levels == 0) return x;
  const Value* source = nullptr;
  if (std::string_view(node->op->name).starts_with("random_") && node->inputs.size() > 1) {
    if (const Value* like = measured(node->inputs[1])) source = shape_source(like, levels - 1);
  } else if (node->op->has(kElementwise)) {
    for (const Value* input : node->inputs) {
      if (input->type.shape.ranked && input->type.shape.rank() == 0) continue;
      const Value* next = shape_source(input, levels - 1);
      if (source != nullptr && source != next) return x;
      source = next;
    }
  }
  return source != nullptr ? source : x;
}

/// The axes of two shapes that broadcasting repeats. An axis of size 1 in both may be reduced or not, so unknown sizes
/// matter only relative to each other.
void broadcast_axes(OpContext& c) {
  c.expect_inputs(2);
  std::optional<std::vector<Dim>> shapes[2] = {dims_told(c.in[0]), dims_told(c.in[1])};
  for (size_t side : {0, 1}) {
    if (shapes[side]) continue;
    if (c.rank(side) != 1 || !c.in[side]->type.shape.dims[0].known())
      c.refuse("the ranks must be known while importing");
    shapes[side].emplace(static_cast<size_t>(c.in[side]->type.shape.dims[0].size));
  }
  const size_t rank = std::max(shapes[0]->size(), shapes[1]->size());
  for (auto& shape : shapes) shape->insert(shape->begin(), rank - shape->size(), Dim(1));
  const Value *first = measured(c.in[0]), *second = measured(c.in[1]);
  const bool equal = first && second && shape_source(first) == shape_source(second);
  std::vector<int64_t> axes[2];
  for (size_t i = 0; i < rank; ++i) {
    const Dim &a = (*shapes[0])[i], &b = (*shapes[1])[i];
    const bool one[2] = {a == Dim(1), b == Dim(1)};
    const bool told = equal || one[0] || one[1] || (a.known() && b.known()) || a.surely_equals(b);
    if (!told) {  // determined at run time, by the sums over these axes
      auto* node = c.b.add_node(op_named("broadcast_axes"), c.in);
      for (Value* list : {node->result(0), node->result(1)}) c.out.push_back(cast_to(list, c.in[0]->type.dtype, c.b));
      return;
    }
    for (size_t side : {0, 1})
      if (one[side]) axes[side].push_back(static_cast<int64_t>(i));
  }
  for (const auto& list : axes) c.out.push_back(cast_to(c.b.ints(list), c.in[0]->type.dtype, c.b));
}

void invert_permutation(OpContext& c) {
  c.expect_inputs(1);
  if (c.rank(0) != 1) fail(ErrorKind::invalid_model, "", "the permutation has {} dims, expected 1", c.rank(0));
  const Dim& size = c.in[0]->type.shape.dims[0];
  if (!size.known()) c.refuse("the length of the permutation is not known");
  if (size.size > (1 << 20)) c.refuse("a permutation of {} numbers", size.size);
  std::vector<int64_t> places(static_cast<size_t>(size.size));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  Value* indices = folded(c.b.add("reshape", {c.in[0], c.b.ints({size.size, 1})}), c.b);
  Value* numbers = cast_to(c.b.ints(places), c.in[0]->type.dtype, c.b);
  c.out = {folded(c.b.add("scatter_nd", {indices, numbers, c.b.ints({size.size})}), c.b)};
}

/// The start of each part in a concatenation.
void concat_offset(OpContext& c) {
  if (c.in.size() < 2) c.expect_inputs(2);
  std::optional<std::vector<Dim>> first = dims_told(c.in[1]);
  if (!first) c.refuse("the shapes must be known while importing");
  const auto axis = static_cast<size_t>(normal_axis(c.constant_integer(0, "the axis"), first->size()));
  std::vector<int64_t> along(first->size(), 0);
  along[axis] = 1;
  int64_t offset = 0;
  Value* open = nullptr;  // the offsets behind parts of unknown size
  for (size_t i = 1; i < c.in.size(); ++i) {
    std::optional<std::vector<Dim>> dims = dims_told(c.in[i]);
    if (!dims || dims->size() != first->size()) c.refuse("the shapes must be known while importing");
    std::vector<int64_t> offsets(dims->size(), 0);
    offsets[axis] = offset;
    c.out.push_back(open ? open : cast_to(c.b.ints(offsets), c.in[i]->type.dtype, c.b));
    const Dim& size = (*dims)[axis];
    if (i + 1 == c.in.size()) break;
    if (open || !size.known()) {
      Value* mine = c.b.add("mul", {c.in[i], cast_to(c.b.ints(along), c.in[i]->type.dtype, c.b)});
      open = c.b.add("add", {c.out.back(), mine});
    } else if (__builtin_add_overflow(offset, size.size, &offset))
      fail(ErrorKind::invalid_model, "", "the parts are too large");
  }
}

/// Numbers before and after every dim, for `pad`.
Value* padded(OpContext& c, Value* x, const std::vector<int64_t>& pads) {
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; })) return x;
  Tensor table = Tensor::of<int64_t>(kI64, {static_cast<int64_t>(pads.size() / 2), 2}, pads);
  return c.b.add("pad", {x, c.b.constant(std::move(table))});
}

Value* part(OpContext& c, Value* x, size_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> begins(x->type.shape.rank(), 0), ends(begins.size(), kToTheEnd);
  begins[axis] = begin;
  ends[axis] = end;
  return c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)});
}

/// The gradient of a strided slice: dy put back where the slice took it from, zeros elsewhere.
class StridedSliceGradient {
 public:
  explicit StridedSliceGradient(OpContext& c) : c_(c) {
    c.expect_inputs(5);
    std::optional<std::vector<Dim>> dims = dims_told(c.in[0]);
    if (!dims) c.refuse("the shape of the sliced tensor must be known while importing");
    dims_ = *dims;
    steps_ = c.constant_integers(3, "the strides");
    if (steps_.size() > 62) fail(ErrorKind::invalid_model, "", "has {} entries", steps_.size());
    begins_ = c.known_bounds(1, steps_.size());
    ends_ = c.known_bounds(2, steps_.size());
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
      masks_.push_back(c.integer(mask, 0));
  }

  Value* run() {
    read_entries();
    // dy with a dim for each dim of the sliced tensor.
    const Shape& dy = c_.in[4]->type.shape;
    c_.rank(4);
    if (static_cast<int64_t>(dy.rank()) != results_)
      fail(ErrorKind::invalid_model, "", "the gradient has {} dims, expected {}", dy.rank(), results_);
    std::vector<NewDim> full;
    for (const Entry& entry : entries_)
      full.push_back(entry.result < 0 ? NewDim{1, -1} : NewDim{-1, static_cast<int>(entry.result)});
    Value* x = entries_.empty() ? c_.in[4] : reshape_to(c_.in[4], full, c_.b);
    std::vector<int64_t> pads, turned;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (entry.step < 0) turned.push_back(static_cast<int64_t>(i));
      if (entry.step != 1 && entry.step != -1) x = spread(x, i, entry);
      pads.insert(pads.end(), {entry.before, entry.after});
    }
    if (!turned.empty()) x = c_.b.add("reverse", {x}, {{"axes", turned}});
    return at_run_time(padded(c_, x, pads));
  }

 private:
  struct Entry {
    int64_t step = 1, count = -1;   // count: size of the slice, if known
    int64_t before = 0, after = 0;  // elements of the sliced tensor before the first and after the last one taken
    int64_t result = -1;            // dim of dy; -1: removed by an index
    Value* begin = nullptr;         // i64[1]: index of the first element taken, if known only at run time
  };

  bool masked(size_t mask, size_t entry) const { return (masks_[mask] >> entry & 1) != 0; }

  void read_entries() {
    size_t named = 0;
    for (size_t i = 0; i < steps_.size(); ++i) named += !masked(2, i) && !masked(3, i);
    if (named > dims_.size()) fail(ErrorKind::invalid_model, "", "slices {} dims of {}", named, dims_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (masked(2, i))
        for (size_t skipped = named; skipped < dims_.size() && entries_.size() < dims_.size(); ++skipped) keep();
      else if (masked(3, i))
        ++results_;
      else if (entries_.size() < dims_.size())
        cut(i);
    }
    while (entries_.size() < dims_.size()) keep();
  }

  void keep() {
    Entry entry;
    entry.result = results_++;
    entries_.push_back(entry);
  }

  void cut(size_t i) {
    const Dim& dim = dims_[entries_.size()];
    const bool shrink = masked(4, i), from_start = masked(0, i) && !shrink, to_end = masked(1, i) && !shrink;
    Entry entry;
    entry.step = shrink ? 1 : steps_[i];
    if (entry.step == 0) fail(ErrorKind::invalid_model, "", "stride {} is 0", i);
    if (!shrink && from_start && to_end && entry.step == 1) return keep();
    if (!dim.known() || (!begins_ && !from_start) || (!ends_ && !to_end && !shrink)) return cut_at_run_time(i);
    const int64_t n = dim.size, low = entry.step > 0 ? 0 : -1, high = entry.step > 0 ? n : n - 1;
    auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + n : at, low, high); };
    const int64_t begin = from_start ? (entry.step > 0 ? low : high) : bound((*begins_)[i]);
    const int64_t end = shrink ? begin + 1 : to_end ? (entry.step > 0 ? high : low) : bound((*ends_)[i]);
    if (shrink && (begin < 0 || begin >= n))
      fail(ErrorKind::invalid_model, "", "index {} is out of range for a dim of {}", (*begins_)[i], n);
    const int64_t distance = entry.step > 0 ? end - begin : begin - end,
                  stride = std::max<int64_t>(std::abs(entry.step), 1);
    entry.count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    if (entry.count == 0) {
      entry.before = n;
    } else {
      const int64_t last = begin + (entry.count - 1) * entry.step;
      entry.before = std::min(begin, last);
      entry.after = n - 1 - std::max(begin, last);
    }
    if (!shrink) entry.result = results_++;
    entries_.push_back(entry);
  }

  /// i64[1]: the size of a dim of the sliced tensor.
  Value* size_of(size_t axis) const {
    if (dims_[axis].known()) return c_.b.ints({dims_[axis].size});
    const auto at = static_cast<int64_t>(axis);
    return cast_to(part_of(c_.in[0], at, at + 1, c_.b), kI64, c_.b);
  }

  void cut_at_run_time(size_t i) {
    Entry entry;
    if (!masked(4, i) && steps_[i] != 1) c_.refuse("has bounds that a run tells, and stride {}", steps_[i]);
    const auto at = static_cast<int64_t>(i);
    Value *zero = c_.b.ints({0}), *size = size_of(entries_.size()), *begin = zero;
    if (!masked(0, i) || masked(4, i))
      begin = begins_ ? c_.b.ints({(*begins_)[i]}) : cast_to(part_of(c_.in[1], at, at + 1, c_.b), kI64, c_.b);
    begin = c_.b.add("select", {c_.b.add("less", {begin, zero}), c_.b.add("add", {begin, size}), begin});
    entry.begin = c_.b.add("minimum", {c_.b.add("maximum", {begin, zero}), size});
    if (!masked(4, i)) entry.result = results_++;
    entries_.push_back(entry);
  }

  /// Puts dy at its position along the axes for which that is known only at run time.
  Value* at_run_time(Value* x) {
    std::vector<Value*> pads;
    bool open = false;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      pads.insert(pads.end(), {c_.b.ints({0}), c_.b.ints({0})});
      if (!entry.begin) continue;
      if (entry.result >= 0 || !dims_[i].known()) {
        open = true;
        Value* rest = c_.b.add("sub", {size_of(i), dim_of(x, i, c_.b)});
        pads[2 * i] = entry.begin;
        pads[2 * i + 1] = c_.b.add("sub", {rest, entry.begin});
        continue;
      }
      // One of n: zeros elsewhere.
      std::vector<int64_t> places(static_cast<size_t>(dims_[i].size)), along(entries_.size(), 1);
      std::iota(places.begin(), places.end(), 0);
      along[i] = dims_[i].size;
      Value* here = c_.b.add("equal", {c_.b.constant(Tensor::of<int64_t>(kI64, along, places)), entry.begin});
      x = c_.b.add("select", {here, x, c_.b.scalar_like(x, 0)});
    }
    if (!open) return x;
    Value* table = c_.b.add("reshape", {joined(pads, c_.b), c_.b.ints({-1, 2})});
    std::vector<Type> type{Type::tensor(x->type.dtype, Shape(dims_))};
    return c_.b.add_node(op_named("pad"), {x, table}, {}, {}, type)->result();
  }

  /// Zeros between the elements along one axis, so that they stand a stride apart.
  Value* spread(Value* x, size_t axis, const Entry& entry) {
    if (entry.count < 2) return x;
    const int64_t stride = std::abs(entry.step);
    const size_t rank = x->type.shape.rank();
    Value* single = expand_dims(x, {static_cast<int64_t>(axis) + 1}, c_.b);
    std::vector<int64_t> pads(2 * (rank + 1), 0);
    pads[2 * (axis + 1) + 1] = stride - 1;
    Value* wide = padded(c_, single, pads);
    std::vector<NewDim> merged;
    for (size_t i = 0; i < rank; ++i)
      merged.push_back(i == axis ? NewDim{entry.count * stride, -1}
                                 : NewDim{-1, static_cast<int>(i < axis ? i : i + 1)});
    return part(c_, reshape_to(wide, merged, c_.b), axis, 0, (entry.count - 1) * stride + 1);
  }

  OpContext& c_;
  std::vector<Dim> dims_;
  std::vector<int64_t> steps_, masks_;
  std::optional<std::vector<int64_t>> begins_, ends_;
  std::vector<Entry> entries_;
  int64_t results_ = 0;
};

void strided_slice_gradient(OpContext& c) { c.out = {StridedSliceGradient(c).run()}; }

/// Adds the reversed gradients of the mirrored padding to the elements of which it has copies.
void mirror_pad_gradient(OpContext& c) {
  c.expect_inputs(2);
  const size_t rank = c.rank(0);
  const std::vector<int64_t> pads = c.constant_integers(1, "the paddings");
  const std::string mode = c.text("mode", "");
  if (mode != "REFLECT" && mode != "SYMMETRIC")
    fail(ErrorKind::invalid_model, "", "mode '{}' is unknown", printable(mode));
  if (pads.size() != 2 * rank) fail(ErrorKind::invalid_model, "", "has {} paddings for {} dims", pads.size(), rank);
  const int64_t edge = mode == "REFLECT" ? 1 : 0;
  Value* x = c.in[0];
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t before = pads[2 * axis], after = pads[2 * axis + 1];
    if (before == 0 && after == 0) continue;
    const Dim dim = x->type.shape.dims[axis];
    if (!dim.known()) c.refuse("dim {} of the gradient is not known", axis);
    const int64_t size = dim.size - before - after;
    if (before < 0 || after < 0 || size < std::max(before, after) + edge)
      fail(ErrorKind::invalid_model, "", "paddings {} and {} do not fit {} elements", before, after, dim.size);
    Value* sum = part(c, x, axis, before, before + size);
    auto add = [&](int64_t begin, int64_t count, int64_t offset) {
      if (count == 0) return;
      Value* turned = c.b.add("reverse", {part(c, x, axis, begin, begin + count)},
                              {{"axes", std::vector<int64_t>{static_cast<int64_t>(axis)}}});
      std::vector<int64_t> around(2 * rank, 0);
      around[2 * axis] = offset;
      around[2 * axis + 1] = size - count - offset;
      sum = c.b.add("add", {sum, padded(c, turned, around)});
    };
    add(0, before, edge);
    add(before + size, after, size - after - edge);
    x = sum;
  }
  c.out = {x};
}

/// The same for indices, and thus a number of rows, that are known only at run time.
void stitch_open(OpContext& c, const std::vector<int64_t>& row_shape) {
  const size_t parts = c.in.size() / 2;
  std::vector<Value*> places, rows;
  for (size_t i = 0; i < parts; ++i) {
    places.push_back(cast_to(folded(c.b.add("reshape", {c.in[i], c.b.ints({-1, 1})}), c.b), kI64, c.b));
    rows.push_back(folded(c.b.add("reshape", {c.in[parts + i], c.b.ints(row_shape)}), c.b));
  }
  const Attributes joined_rows{{"axis", int64_t{0}}};
  Value* all = rows.size() == 1 ? rows[0] : c.b.add("concat", rows, joined_rows);
  Value* indices = places.size() == 1 ? places[0] : c.b.add("concat", places, joined_rows);
  // Without any indices, the -1 in front gives 0 rows.
  Value* marked = c.b.add("concat", {c.b.constant(Tensor::of<int64_t>(kI64, {1, 1}, {-1})), indices}, joined_rows);
  Value* last = c.b.add("reduce_max", {marked}, {{"axes", std::vector<int64_t>{0, 1}}});
  std::vector<Value*> sizes{c.b.add("add", {last, c.b.constant(Tensor::scalar_i64(1))})};
  std::vector<Dim> dims{Dim()};
  for (size_t i = 1; i < row_shape.size(); ++i) sizes.push_back(c.b.ints({row_shape[i]})), dims.push_back(row_shape[i]);
  std::vector<Type> type{Type::tensor(all->type.dtype, Shape(dims))};
  Value* zeros =
      c.b.add_node(op_named("broadcast_to"), {c.b.scalar_like(all, 0), joined(sizes, c.b)}, {}, {}, type)->result();
  c.out = {c.b.add("scatter_update", {zeros, indices, all}, {{"from_start", true}})};
}

/// Puts rows of several tensors at the positions given by indices; of several rows for one position the last one
/// counts.
void dynamic_stitch(OpContext& c) {
  if (c.in.size() < 2 || c.in.size() % 2 != 0) fail(ErrorKind::invalid_model, "", "has {} inputs", c.in.size());
  const size_t parts = c.in.size() / 2, lead = c.rank(0);
  const auto& first = c.in[parts]->type.shape;
  if (c.rank(parts) < lead) fail(ErrorKind::invalid_model, "", "data has fewer dims than its indices");
  std::vector<int64_t> rest, places;
  for (size_t i = lead; i < first.rank(); ++i) {
    if (!first.dims[i].known()) c.refuse("dim {} of the data is not known", i);
    rest.push_back(first.dims[i].size);
  }
  std::vector<Value*> rows;
  std::vector<int64_t> row_shape = rest;
  row_shape.insert(row_shape.begin(), -1);
  for (size_t i = 0; i < parts; ++i)
    if (constant_of(c.in[i]) == nullptr) return stitch_open(c, row_shape);
  for (size_t i = 0; i < parts; ++i) {
    for (int64_t place : c.constant_integers(i, "the indices")) places.push_back(place);
    rows.push_back(folded(c.b.add("reshape", {c.in[parts + i], c.b.ints(row_shape)}), c.b));
  }
  std::vector<int64_t> shape = rest;
  shape.insert(shape.begin(), places.empty() ? 0 : *std::max_element(places.begin(), places.end()) + 1);
  if (std::any_of(places.begin(), places.end(), [](int64_t place) { return place < 0; }))
    fail(ErrorKind::invalid_model, "", "an index is negative");
  if (shape[0] > (1 << 20)) c.refuse("stitches {} rows", shape[0]);
  Value* all = rows.size() == 1 ? rows[0] : folded(c.b.add("concat", rows, {{"axis", int64_t{0}}}), c.b);
  Value* zeros = folded(c.b.add("broadcast_to", {c.b.scalar_like(all, 0), c.b.ints(shape)}), c.b);
  Value* indices = c.b.constant(Tensor::of<int64_t>(kI64, {static_cast<int64_t>(places.size()), 1}, places));
  c.out = {folded(c.b.add("scatter_update", {zeros, indices, all}), c.b)};
}

constexpr Row kGradientRows[] = {
    {"BroadcastGradientArgs", broadcast_axes, Trait::all_known | Trait::free},
    {"ConcatOffset", concat_offset, Trait::free},
    {"DynamicStitch", dynamic_stitch, Trait::all_known},
    {"EluGrad", formula<elu>},
    {"InvGrad", formula<reciprocal>},
    {"InvertPermutation", invert_permutation},
    {"L2Loss", l2_loss},
    {"LeakyReluGrad", leaky_relu},
    {"MirrorPadGrad", mirror_pad_gradient},
    {"ParallelDynamicStitch", dynamic_stitch, Trait::all_known},
    {"ReciprocalGrad", formula<reciprocal>},
    {"Relu6Grad", formula<relu6>},
    {"ReluGrad", formula<relu>},
    {"RsqrtGrad", formula<rsqrt>},
    {"SeluGrad", formula<selu>},
    {"SigmoidGrad", formula<sigmoid>},
    {"SoftplusGrad", formula<softplus>},
    {"SoftsignGrad", formula<softsign>},
    {"SqrtGrad", formula<sqrt>},
    {"StridedSliceGrad", strided_slice_gradient},
    {"TanhGrad", formula<tanh>},
};

}  // namespace

std::span<const Row> gradient_rows() { return kGradientRows; }

}  // namespace cairn::tensorflow
