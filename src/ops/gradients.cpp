#include "ops/gradients.h"

#include "ir/module.h"
#include "support/error.h"

namespace cairn {

void refuse_gradient(const GradientContext& g, const std::string& message) {
  fail(ErrorKind::unsupported, g.node().op->name, "{}", message);
}

namespace {

Var slice_of_vector(Var vector, size_t index) {
  const auto at = static_cast<int64_t>(index);
  Builder& b = *vector.builder;
  return vector.apply("slice", {{b, b.ints({at})}, {b, b.ints({at + 1})}});
}

Var index_list(Builder& b, std::vector<int64_t> values) { return {b, b.ints(values)}; }

}  // namespace

Size::Size(Var x, size_t axis) : builder_(x.builder), dim_(x.shape().dims[axis]) {
  if (!dim_.known()) value_ = slice_of_vector(x.apply("shape_of"), axis).value;
}

Size Size::element(Var vector, size_t index) {
  if (const Tensor* known = constant_of(vector.value)) return {*vector.builder, known->as_i64()[index]};
  Size size(*vector.builder, -1);
  size.value_ = cast(slice_of_vector(vector, index), kI64).value;
  return size;
}

Var Size::scalar() const {
  if (dim_.known()) return {*builder_, builder_->constant(Tensor::scalar_i64(dim_.size))};
  return Var{*builder_, value_}.apply("reshape", {index_list(*builder_, {})});
}

namespace {

template <class F>
Size combined(const Size& a, const Size& b, const char* op, F&& f) {
  Builder& builder = *a.vector().builder;
  if (a.dim().known() && b.dim().known()) return {builder, f(a.dim().size, b.dim().size)};
  return Size::element(a.vector().apply(op, {b.vector()}), 0);
}

}  // namespace

Size operator+(const Size& a, const Size& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return combined(a, b, "add", std::plus<>());
}
Size operator-(const Size& a, const Size& b) {
  if (b.is(0)) return a;
  return combined(a, b, "sub", std::minus<>());
}
Size operator*(const Size& a, const Size& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return combined(a, b, "mul", std::multiplies<>());
}

Sizes sizes_of(const GradientContext& g, Var x) {
  if (!x.shape().ranked) refuse_gradient(g, "the gradient needs the number of dims, which is not known");
  Sizes sizes;
  for (size_t i = 0; i < x.shape().rank(); ++i) sizes.emplace_back(x, i);
  return sizes;
}

Size product_of(Builder& b, const Sizes& sizes, size_t first, size_t last) {
  Size product(b, 1);
  for (size_t i = first; i < last; ++i) product = product * sizes[i];
  return product;
}

Size count_of(Var x) {
  if (x.type().is_static())
    if (auto count = element_count(x.shape().sizes())) return {*x.builder, *count};
  return Size::element(x.apply("size_of").apply("reshape", {index_list(*x.builder, {1})}), 0);
}

Var as_vector(Builder& b, const Sizes& sizes) {
  std::vector<int64_t> numbers;
  for (const Size& size : sizes)
    if (size.dim().known()) numbers.push_back(size.dim().size);
  if (numbers.size() == sizes.size()) return index_list(b, numbers);
  std::vector<Value*> parts;
  for (const Size& size : sizes) parts.push_back(size.vector().value);
  return {b, b.add("concat", parts, {{"axis", int64_t{0}}})};
}

namespace {

Var in_f32(Var x) { return x.dtype().bits < 32 ? cast(x, kF32) : x; }

}  // namespace

Var divided(Var x, const Size& size) {
  const Var wide = in_f32(x);
  return cast(wide / size.as(wide.dtype()), x.dtype());
}
Var multiplied(Var x, const Size& size) {
  const Var wide = in_f32(x);
  return cast(wide * size.as(wide.dtype()), x.dtype());
}

size_t axis_from_start(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

Var reshape(Var x, const Sizes& sizes) {
  Shape shape;
  for (const Size& size : sizes) shape.dims.push_back(size.dim());
  if (x.type().is_static() && x.shape() == shape) return x;
  const Type type = Type::tensor(x.dtype(), std::move(shape));
  Builder& b = *x.builder;
  return {b, b.add_node(op_named("reshape"), {x.value, as_vector(b, sizes).value}, {}, {}, {type})->result()};
}

Var flattened(Var x) { return x.apply("reshape", {index_list(*x.builder, {-1})}); }

Var transpose(Var x, std::vector<int64_t> permutation) {
  return x.apply("transpose", {}, {{"permutation", std::move(permutation)}});
}

Var matmul(Var a, Var b, bool transpose_a, bool transpose_b) {
  return a.apply("matmul", {b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Var concat(const std::vector<Var>& parts, int64_t axis) {
  std::vector<Value*> values;
  for (const Var& part : parts) values.push_back(part.value);
  return {*parts[0].builder, parts[0].builder->add("concat", std::move(values), {{"axis", axis}})};
}

Var keep_where(Var mask, Var x) { return select(mask, x, x.number(0)); }

Var transposed_matrices(Var x) {
  std::vector<int64_t> permutation(x.shape().rank());
  for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(x, std::move(permutation));
}

Var counting(const Size& size) {
  const Var limit = size.scalar();
  return limit.number(0).apply("iota", {limit, limit.number(1)}, {{"dtype", kI64}});
}

Var where_of_matrix(Var x, const char* op) {
  const size_t rank = x.shape().rank();
  const Size rows(x, rank - 2), columns(x, rank - 1), one(*x.builder, 1);
  return reshape(counting(rows), {rows, one}).apply(op, {reshape(counting(columns), {one, columns})});
}
Var lower_triangle(Var x) { return keep_where(where_of_matrix(x, "greater_equal"), x); }
Var upper_triangle(Var x) { return keep_where(where_of_matrix(x, "less_equal"), x); }

Var numbered(Var x) { return reshape_like(counting(count_of(x)), x); }

Var counted_from_start(Var indices, Var size) {
  indices = cast(indices, kI64);
  if (const Tensor* known = constant_of(indices.value)) {
    const std::vector<int64_t> values = known->as_i64();
    if (std::all_of(values.begin(), values.end(), [](int64_t value) { return value >= 0; })) return indices;
  }
  return select(indices < 0, indices + size, indices);
}

Var gather_rows(Var x, Var rows) { return x.apply("gather", {rows}); }

Var gather_rows_or_zeros(Var x, Var rows) {
  const Size count(x, 0), one(*x.builder, 1);
  if (count.dim().size > 0) {
    const Var found = gather_rows(x, maximum(rows, rows.number(0))), present = rows > -1;
    return keep_where(x.shape().rank() == 1 ? present : reshape(present, {Size(rows, 0), one}), found);
  }
  // x may have no rows to gather from, so a row of zeros is put in front.
  Sizes sizes = {one};
  for (size_t i = 1; i < x.shape().rank(); ++i) sizes.emplace_back(x, i);
  const Var zeros = x.number(0).apply("broadcast_to", {as_vector(*x.builder, sizes)});
  return gather_rows(concat({zeros, x}, 0), maximum(rows, rows.number(-1)) + 1);
}

Var sum_rows(Var x, Var places, const Size& count) {
  Shape shape = x.shape();
  if (shape.ranked) shape.dims[0] = count.dim();
  Builder& b = *x.builder;
  return {b, b.add_node(op_named("segment_reduce"), {x.value, places.value, count.scalar().value}, {}, {},
                        {Type::tensor(x.dtype(), std::move(shape))})
                 ->result()};
}

Var sum_elements(Var dy, Var places, Var like) {
  return reshape_like(sum_rows(flattened(dy), flattened(places), count_of(like)), like);
}

RowNumbers row_numbers(const GradientContext& g, Var vectors, const Sizes& sizes, size_t batch, bool padded) {
  const Sizes index_sizes = sizes_of(g, vectors);
  const size_t lead = index_sizes.size() - 1;
  if (!index_sizes[lead].dim().known())
    refuse_gradient(g, "the gradient needs the length of the index vectors, which is not known");
  const size_t end = batch + static_cast<size_t>(index_sizes[lead].dim().size);
  const auto at = [&](size_t i) { return sizes.begin() + static_cast<int64_t>(i); };
  const Sizes addressed(at(batch), at(end));
  Sizes strides(addressed.size(), Size(g.b, 1));
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * addressed[i];
  const Size outer = product_of(g.b, sizes, 0, batch), rows = product_of(g.b, sizes, batch, end),
             count = product_of(g.b, index_sizes, 0, lead);
  const Attributes along = {{"axes", std::vector<int64_t>{-1}}};
  const Var whole = cast(vectors, kI64),
            from_start = padded ? whole : counted_from_start(whole, as_vector(g.b, addressed));
  Var numbers = (from_start * as_vector(g.b, strides)).apply("reduce_sum", {}, along);
  if (padded) numbers = select((whole < 0).apply("reduce_any", {}, along), numbers.number(-1), numbers);
  if (batch > 0) {
    const Var offsets = reshape(counting(outer) * rows.scalar(), {outer, Size(g.b, 1)});
    numbers = reshape(numbers, {outer, product_of(g.b, index_sizes, batch, lead)}) + offsets;
  }
  return {count, rows * outer, product_of(g.b, sizes, end, sizes.size()), reshape(numbers, {count})};
}

Var with_axes(const GradientContext& g, Var reduced, Var x, const std::vector<int64_t>& axes, bool kept) {
  if (kept || axes.empty()) return reduced;
  Sizes sizes = sizes_of(g, x);
  for (int64_t axis : axes) sizes[axis_from_start(axis, sizes.size())] = Size(g.b, 1);
  return reshape(reduced, sizes);
}

Var product_of_others(Var x, FunctionRef<Var(Var)> product, FunctionRef<Var(Var)> sum) {
  const Var zero = x.number(0), one = x.number(1), is_zero = x.apply("equal", {zero});
  const Var others = select(is_zero, one, x), zeros = sum(cast(is_zero, x.dtype()));
  const Var whole = product(others);
  const Var none = zeros.apply("equal", {zero}), single = zeros.apply("equal", {one});
  return select(is_zero, select(single, whole, zero), select(none, whole / others, zero));
}

std::vector<Var> apply_again(const GradientContext& g, std::vector<Var> inputs) {
  std::vector<Value*> values;
  for (const Var& input : inputs) values.push_back(input.value);
  const Node* node = g.b.add_node(*g.node().op, std::move(values), g.node().attributes);
  std::vector<Var> results;
  for (const auto& result : node->results) results.emplace_back(g.b, result.get());
  return results;
}

namespace {

// The gradients of a formula's values during the reverse walk over its nodes.
class FormulaWalk {
 public:
  explicit FormulaWalk(Builder& b) : b_(b) {}

  void activate(const Value* value) { gradients_[value] = nullptr; }
  bool active(const Value* value) const { return gradients_.contains(value); }
  Value* gradient(const Value* value) const {
    auto found = gradients_.find(value);
    return found == gradients_.end() ? nullptr : found->second;
  }
  void add(const Value* value, Value* gradient) {
    auto found = gradients_.find(value);
    if (found == gradients_.end()) return;
    found->second = found->second ? b_.add("add", {found->second, gradient}) : gradient;
  }

  // Marks the node's results as active when an input is active.
  void activate_results(const Node& node) {
    for (const auto& result : node.results)
      if (result->type.is_tensor() && result->type.dtype.is_float() &&
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* input) { return active(input); }))
        activate(result.get());
  }

  void pass(const Node& node) {
    std::vector<Value*> results, gradients;
    for (const auto& result : node.results) {
      results.push_back(result.get());
      gradients.push_back(gradient(result.get()));
    }
    if (std::all_of(gradients.begin(), gradients.end(), [](const Value* each) { return each == nullptr; })) return;
    std::vector<bool> wanted;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      wanted.push_back(node.op->role(i) == Role::data && active(node.inputs[i]));
    GradientContext context(b_, node, node.inputs, std::move(results), std::move(gradients), wanted);
    if (!node.op->gradient) refuse_gradient(context, node.op->no_gradient ? node.op->no_gradient : "has no gradient");
    node.op->gradient(context);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i] && context.made(i)) add(node.inputs[i], context.made(i));
  }

 private:
  Builder& b_;
  std::unordered_map<const Value*, Value*> gradients_;  // of the active values; null: none yet
};

}  // namespace

void differentiate_formula(GradientContext& g, FunctionRef<std::vector<Value*>(const std::vector<Var>&)> formula) {
  FormulaWalk walk(g.b);
  std::vector<Var> inputs;
  for (size_t i = 0; i < g.input_count(); ++i) {
    const bool twice = std::any_of(inputs.begin(), inputs.end(), [&](Var x) { return x.value == g.x(i).value; });
    inputs.push_back(twice ? g.x(i).apply("identity") : g.x(i));
    if (g.wanted(i)) walk.activate(inputs[i].value);
  }
  const auto& nodes = g.b.block().nodes;
  const size_t first = nodes.size();
  const std::vector<Value*> results = formula(inputs);
  const size_t last = nodes.size();
  for (size_t i = first; i < last; ++i) walk.activate_results(*nodes[i]);
  for (size_t i = 0; i < results.size(); ++i)
    if (g.has_dy(i)) walk.add(results[i], g.dy(i).value);
  for (size_t i = last; i-- > first;) walk.pass(*nodes[i]);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Value* gradient = walk.gradient(inputs[i].value)) g.set(i, {g.b, gradient});
}

void by_decomposition(GradientContext& g) {
  differentiate_formula(g, [&](const std::vector<Var>& inputs) {
    Node node;  // the same op applied to the inputs of the formula
    node.op = g.node().op;
    node.attributes = g.node().attributes;
    for (const Var& input : inputs) node.inputs.push_back(input.value);
    return node.op->decompose(g.b, node);
  });
}

}  // namespace cairn
