// TensorFlow's ops that slice and split tensors.
#include <algorithm>
#include <limits>

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

constexpr int64_t kPastTheFirst = std::numeric_limits<int64_t>::min();

/// Elements begin .. end-1 along one axis.
Value* cut(OpContext& c, Value* x, int64_t axis, int64_t begin, int64_t end) {
  size_t rank = x->type.shape.rank();
  std::vector<int64_t> begins(rank, 0), ends(rank, kToTheEnd);
  begins[static_cast<size_t>(axis)] = begin;
  ends[static_cast<size_t>(axis)] = end;
  return c.b.add("slice", {x, c.b.ints(begins), c.b.ints(ends)});
}

constexpr int64_t kMostParts = 65536;

void unpack(OpContext& c) {
  c.expect_inputs(1);
  int64_t axis = normal_axis(c.integer("axis", 0), c.rank(0)), count = c.integer("num");
  const Dim& dim = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
  if (count < 0 || count > kMostParts || (dim.known() && dim.size != count))
    fail(ErrorKind::invalid_model, "", "unpacks {} parts from a dim of {}", count, to_string(dim));
  for (int64_t i = 0; i < count; ++i) c.out.push_back(squeeze(cut(c, c.in[0], axis, i, i + 1), {axis}, c.b));
}

void split_parts(OpContext& c, Value* x, int64_t axis, const std::vector<int64_t>& sizes) {
  int64_t begin = 0;
  for (int64_t size : sizes) {
    c.out.push_back(cut(c, x, axis, begin, begin + size));
    begin += size;
  }
}

/// Splits into parts of a size known only at run time, by way of a reshape that gives the parts a dim of their own.
void split_open(OpContext& c, int64_t axis, int64_t count) {
  std::vector<NewDim> apart;
  for (int i = 0; i < static_cast<int>(c.rank(1)); ++i) {
    if (i == axis) apart.push_back({count, -1});
    apart.push_back(i == axis ? NewDim{-1, -1} : NewDim{-1, i});
  }
  Value* parts = reshape_to(c.in[1], apart, c.b);
  for (int64_t i = 0; i < count; ++i) c.out.push_back(squeeze(cut(c, parts, axis, i, i + 1), {axis}, c.b));
}

void split(OpContext& c) {
  c.expect_inputs(2);
  int64_t axis = normal_axis(c.constant_integer(0, "the axis"), c.rank(1)), count = c.integer("num_split");
  const Dim& dim = c.in[1]->type.shape.dims[static_cast<size_t>(axis)];
  if (count < 1 || count > kMostParts || (dim.known() && dim.size % count != 0))
    fail(ErrorKind::invalid_model, "", "splits {} elements into {} parts", to_string(dim), count);
  if (!dim.known()) return split_open(c, axis, count);
  split_parts(c, c.in[1], axis, std::vector<int64_t>(static_cast<size_t>(count), dim.size / count));
}

/// SplitV with sizes, or a size for the rest, that are known only at run time.
void split_computed(OpContext& c, int64_t axis) {
  const auto count = static_cast<int64_t>(c.integer("num_split"));
  const auto told = sizes_in(c.in[1]);
  if (count < 1 || count > kMostParts || (told && static_cast<int64_t>(told->size()) != count))
    fail(ErrorKind::invalid_model, "", "splits into {} parts of {} sizes", count, told ? told->size() : 0);
  const Attributes first{{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}};
  Value *total = dim_of(c.in[0], static_cast<size_t>(axis), c.b), *sizes = cast_to(c.in[1], kI64, c.b);
  Value* given = c.b.add("sub", {total, c.b.add("add", {c.b.add("reduce_sum", {sizes}, first), c.b.ints({1})})});
  Value* rest = c.b.add("equal", {sizes, c.b.ints({-1})});
  sizes = c.b.add("select", {rest, given, sizes});
  Value* all = c.b.add("equal", {c.b.add("reduce_sum", {sizes}, first), total});
  Value* least = c.b.add("greater_equal", {c.b.add("reduce_min", {sizes}, first), c.b.ints({0})});
  c.b.add_node(op_named("assert"), {c.b.add("and", {all, least})},
               {{"message", fmt::format("the parts do not add up to the size of dim {}", axis)}});
  Value* ends = c.b.add("cumsum", {sizes}, {{"axis", int64_t{0}}});
  Value* begins = c.b.add("sub", {ends, sizes});
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value*> from(c.rank(0), c.b.ints({0})), to(c.rank(0), c.b.ints({kToTheEnd}));
    from[static_cast<size_t>(axis)] = part_of(begins, i, i + 1, c.b);
    to[static_cast<size_t>(axis)] = part_of(ends, i, i + 1, c.b);
    c.out.push_back(c.b.add("slice", {c.in[0], joined(from, c.b), joined(to, c.b)}));
  }
}

void split_v(OpContext& c) {
  c.expect_inputs(3);
  int64_t axis = normal_axis(c.constant_integer(2, "the axis"), c.rank(0)), sum = 0;
  if (constant_of(c.in[1]) == nullptr) return split_computed(c, axis);
  std::vector<int64_t> sizes = c.constant_integers(1, "the sizes");
  const Dim& dim = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
  for (int64_t size : sizes) {
    if (size < -1 || __builtin_add_overflow(sum, size, &sum))
      fail(ErrorKind::invalid_model, "", "a part has size {}", size);
  }
  auto rest = std::find(sizes.begin(), sizes.end(), -1);
  if (rest != sizes.end()) {
    if (!dim.known()) return split_computed(c, axis);
    *rest = dim.size - (sum + 1);
    sum = dim.size;
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }) ||
      (dim.known() && sum != dim.size))
    fail(ErrorKind::invalid_model, "", "the parts do not add up to {}", to_string(dim));
  split_parts(c, c.in[0], axis, sizes);
}

/// One dim of the input in a strided slice, as constants or as vectors of one element.
struct Cut {
  int64_t begin = 0, end = kToTheEnd, step = 1;
  Value* begin_value = nullptr;
  Value* end_value = nullptr;
  Value* index = nullptr;  // one element, at this place
  bool shrink = false;
};

/// Reads TensorFlow's sparse form of a strided slice, with its masks, into one cut for each dim of the input.
class StridedSlice {
 public:
  explicit StridedSlice(OpContext& c) : c_(c), rank_(c.rank(0)) {
    c.expect_inputs(4);
    steps_ = c.constant_integers(3, "the strides");
    begins_ = c.known_bounds(1, steps_.size());
    ends_ = c.known_bounds(2, steps_.size());
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
      masks_.push_back(c.integer(mask, 0));
    if (steps_.size() > 62) fail(ErrorKind::invalid_model, "", "has {} entries", steps_.size());
  }

  Value* run() {
    read_entries();
    std::vector<Value*> begins, ends;
    std::vector<int64_t> steps, begin_numbers, end_numbers;
    bool dynamic = false;
    for (Cut& cut : cuts_) {
      dynamic |= cut.begin_value != nullptr || cut.end_value != nullptr;
      steps.push_back(cut.step);
      begin_numbers.push_back(cut.begin);
      end_numbers.push_back(cut.end);
      begins.push_back(cut.begin_value ? cut.begin_value : c_.b.ints({cut.begin}));
      ends.push_back(cut.end_value ? cut.end_value : c_.b.ints({cut.end}));
    }
    Value* begin = dynamic ? joined(begins, c_.b) : c_.b.ints(begin_numbers);
    Value* end = dynamic ? joined(ends, c_.b) : c_.b.ints(end_numbers);
    Value* part = folded(c_.b.add("slice", {c_.in[0], begin, end}, {{"steps", steps}}), c_.b);
    for (size_t i = 0; i < rank_; ++i)
      if (cuts_[i].index) part = c_.b.add("gather", {part, cuts_[i].index}, {{"axis", static_cast<int64_t>(i)}});
    bool same = result_.size() == rank_;
    for (size_t i = 0; same && i < rank_; ++i) same = result_[i].from == static_cast<int>(i);
    return same ? part : reshape_to(part, result_, c_.b);
  }

 private:
  bool masked(size_t mask, size_t entry) const { return (masks_[mask] >> entry & 1) != 0; }

  void read_entries() {
    size_t named = 0;  // dims that entries speak of, without ellipsis and new axes
    bool ellipsis = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (masked(2, i) && ellipsis) fail(ErrorKind::invalid_model, "", "has two ellipses");
      ellipsis |= masked(2, i);
      named += !masked(2, i) && !masked(3, i);
    }
    if (named > rank_) fail(ErrorKind::invalid_model, "", "slices {} dims of {}", named, rank_);
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (masked(2, i))
        for (size_t skipped = named; skipped < rank_; ++skipped) keep_dim();
      else if (masked(3, i))
        result_.push_back({1, -1});
      else
        add_cut(i);
    }
    while (cuts_.size() < rank_) keep_dim();
  }

  void keep_dim() {
    result_.push_back({-1, static_cast<int>(cuts_.size())});
    cuts_.push_back({});
  }

  void add_cut(size_t i) {
    Cut cut;
    cut.step = steps_[i];
    if (cut.step == 0) fail(ErrorKind::invalid_model, "", "stride {} is 0", i);
    cut.shrink = masked(4, i);
    bool backwards = cut.step < 0;
    bool from_start = masked(0, i) && !cut.shrink, to_end = masked(1, i) && !cut.shrink;
    auto entry = static_cast<int64_t>(i);
    if (from_start)
      cut.begin = backwards ? kToTheEnd : 0;
    else if (begins_)
      cut.begin = (*begins_)[i];
    else
      cut.begin_value = cast_to(part_of(c_.in[1], entry, entry + 1, c_.b), kI64, c_.b);
    if (cut.shrink) {
      cut.step = 1;
      set_single(cut);
    } else if (to_end) {
      cut.end = backwards ? kPastTheFirst : kToTheEnd;
    } else if (ends_) {
      cut.end = (*ends_)[i];
    } else {
      cut.end_value = cast_to(part_of(c_.in[2], entry, entry + 1, c_.b), kI64, c_.b);
    }
    if (!cut.shrink) result_.push_back({-1, static_cast<int>(cuts_.size())});
    cuts_.push_back(cut);
  }

  /// Sets the range of a single element: to the next index, or to the end for index -1.
  void set_single(Cut& cut) {
    if (cut.begin_value == nullptr) {
      cut.end = cut.begin == -1 ? kToTheEnd : cut.begin + 1;
      const Dim& dim = c_.in[0]->type.shape.dims[cuts_.size()];
      if (dim.known() && (cut.begin >= dim.size || cut.begin < -dim.size))
        fail(ErrorKind::invalid_model, "", "index {} is out of range for a dim of {}", cut.begin, dim.size);
      return;
    }
    std::swap(cut.index, cut.begin_value);
  }

  OpContext& c_;
  size_t rank_;
  std::vector<int64_t> steps_, masks_;
  std::optional<std::vector<int64_t>> begins_, ends_;
  std::vector<Cut> cuts_;
  std::vector<NewDim> result_;
};

/// For a slice of a shape, known sizes become constants, even if the others are unknown.
void strided_slice(OpContext& c) {
  Value* y = StridedSlice(c).run();
  c.out = {y};
  if (!y->type.is_tensor() || !y->type.dtype.is_integer() || constant_of(y) != nullptr) return;
  auto sizes = sizes_in(y);
  if (!sizes || sizes->empty() || !std::all_of(sizes->begin(), sizes->end(), [](const Dim& d) { return d.known(); }))
    return;
  std::vector<int64_t> numbers;
  for (const Dim& size : *sizes) numbers.push_back(size.size);
  Value* known = y->type.shape.rank() == 0 ? c.b.constant(Tensor::scalar_i64(numbers[0])) : c.b.ints(numbers);
  c.out = {cast_to(known, y->type.dtype, c.b)};
}

/// x with the elements that a strided slice would take replaced by a value.
void strided_slice_update(OpContext& c) {
  c.expect_inputs(5);
  Value *x = c.in[0], *value = c.in[4], *size = folded(c.b.add("size_of", {x}), c.b);
  c.rank(0);
  std::vector<NewDim> dims;
  for (size_t i = 0; i < x->type.shape.rank(); ++i)
    if (x->type.shape.dims[i].known()) dims.push_back({x->type.shape.dims[i].size, -1});
  Value* places = counted(size, c.b);
  Value* shape = folded(c.b.add("shape_of", {x}), c.b);
  c.in = {dims.size() == x->type.shape.rank() ? reshape_to(places, dims, c.b) : reshape_by(places, shape, c.b), c.in[1],
          c.in[2], c.in[3]};
  Value* taken = StridedSlice(c).run();
  Value* spread = c.b.add("broadcast_to", {value, folded(c.b.add("shape_of", {taken}), c.b)});
  auto flat = [&](Value* each) { return c.b.add("reshape", {each, c.b.ints({-1})}); };
  Value* updated = c.b.add("scatter_update", {flat(x), expand_dims(flat(taken), {1}, c.b), flat(spread)});
  c.out = {dims.size() == x->type.shape.rank() ? reshape_to(updated, dims, c.b) : reshape_by(updated, shape, c.b)};
}

/// Slice: sizes of -1 go to the end.
void slice(OpContext& c) {
  c.expect_inputs(3);
  const Attributes within{{"within", true}};
  if (constant_of(c.in[1]) && constant_of(c.in[2])) {
    std::vector<int64_t> begins = c.constant_integers(1, "begin"), sizes = c.constant_integers(2, "size"), ends;
    if (begins.size() != c.rank(0) || sizes.size() != begins.size())
      fail(ErrorKind::invalid_model, "", "has {} begins and {} sizes for {} dims", begins.size(), sizes.size(),
           c.rank(0));
    for (size_t i = 0; i < begins.size(); ++i) {
      int64_t end = kToTheEnd;
      if (begins[i] < 0 || sizes[i] < -1 || (sizes[i] >= 0 && __builtin_add_overflow(begins[i], sizes[i], &end)))
        fail(ErrorKind::invalid_model, "", "begin {} and size {} are out of range", begins[i], sizes[i]);
      ends.push_back(end);
    }
    c.out = {folded(c.b.add("slice", {c.in[0], c.b.ints(begins), c.b.ints(ends)}, within), c.b)};
    return;
  }
  Value* begin = cast_to(c.in[1], kI64, c.b);
  Value* size = cast_to(c.in[2], kI64, c.b);
  Value* rest = c.b.add("equal", {size, c.b.constant(Tensor::scalar_i64(-1))});
  Value* end = c.b.add("select", {rest, c.b.constant(Tensor::scalar_i64(kToTheEnd)), c.b.add("add", {begin, size})});
  c.out = {c.b.add("slice", {c.in[0], begin, end}, within)};
}

constexpr Row kSlicingRows[] = {
    {"Slice", slice},
    {"Split", split, known(0)},
    {"SplitV", split_v, known(-1)},
    {"StridedSlice", strided_slice, Trait::free},
    {"TensorStridedSliceUpdate", strided_slice_update},
    {"Unpack", unpack},
};

}  // namespace

std::span<const Row> slicing_rows() { return kSlicingRows; }

}  // namespace cairn::tensorflow
