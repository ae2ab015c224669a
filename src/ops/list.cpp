// Lists of tensors (TensorArray, TensorList, sequence). Lists are immutable values: an update gives a new list, which
// shares the unchanged elements with the old one.
#include "ir/gradient.h"
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

const Type& checked_element(const InferContext& context, const Type& element) {
  if (!element.is_tensor() || (element.dtype.bits > 0 && element.dtype.bits < 8))
    context.fail("elements must be tensors of whole bytes, found {}", to_string(element));
  return element;
}

const Type& list_element(const InferContext& context) {
  const auto& elements = context.input(0).elements;
  if (elements.size() != 1) context.fail("{} is no list", to_string(context.input(0)));
  return checked_element(context, elements[0]);
}

void check_element(const InferContext& context, size_t i) {
  if (!compatible(list_element(context), context.input(i)))
    context.fail("an element is {}, found {}", to_string(list_element(context)), to_string(context.input(i)));
}

const List& list_in(const KernelContext& context) {
  if (!context.value(0).list) context.fail("the list is undefined");
  return *context.value(0).list;
}

size_t index_of(const KernelContext& context, const List& list) {
  const int64_t index = context.input(1).as_i64()[0];
  if (index < 0 || static_cast<size_t>(index) >= list.elements.size())
    context.fail("index {} is out of range for {} elements", index, list.elements.size());
  return static_cast<size_t>(index);
}

void check_element(const KernelContext& context, const List& list, const Tensor& x) {
  if (!compatible(list.element, x.type()))
    context.fail("an element is {}, found {}", to_string(list.element), to_string(x.type()));
}

// The dims of an element that was never set, which reads as zeros of the declared dims.
Dims unset_dims(const KernelContext& context, const List& list, size_t i) {
  if (!list.element.is_static()) context.fail("element {} was never set", i);
  return list.element.shape.sizes();
}

// Limits the length: unset elements cost memory too, and no model needs more.
void check_length(const KernelContext& context, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 20;
  if (size < 0 || size > kMost) context.fail("a list cannot have {} elements, expected 0 to {}", size, kMost);
}

void infer_make(InferContext& context) {
  require_scalar(context, 0);
  context.result(Type::list(checked_element(context, std::get<Type>(context.attr.get("element")))));
}

void make(KernelContext& context) {
  const int64_t size = context.input(0).as_i64()[0];
  check_length(context, size);
  auto list = std::make_shared<List>();
  list->element = std::get<Type>(context.attr.get("element"));
  list->elements.resize(static_cast<size_t>(size));
  context.result(0).list = std::move(list);
}

void infer_get(InferContext& context) {
  require_scalar(context, 1);
  if (context.input_count() > 2) check_element(context, 2);
  context.result(context.input_count() > 2 ? meet(list_element(context), context.input(2)) : list_element(context));
}

void get(KernelContext& context) {
  const List& list = list_in(context);
  const int64_t place = context.input(1).as_i64()[0];
  const bool behind = context.attr.boolean("grow") && place >= static_cast<int64_t>(list.elements.size());
  const size_t index = behind ? static_cast<size_t>(place) : index_of(context, list);
  const ListElements::Shared element = behind ? nullptr : list.elements[index];
  if (element) return copy_elements(*element, context.allocate(0, element->dtype(), element->dims()));
  Tensor zeros = context.input_count() > 2 ? Tensor::zeros(context.input(2).dtype(), context.input(2).dims())
                                           : Tensor::zeros(list.element.dtype, unset_dims(context, list, index));
  copy_elements(zeros, context.allocate(0, zeros.dtype(), zeros.dims()));
}

void infer_set(InferContext& context) {
  require_scalar(context, 1);
  check_element(context, 2);
  context.result(context.input(0));
}

Tensor kept(const Tensor& x) {
  Tensor copy = Tensor::uninitialized(x.dtype(), x.dims());
  copy_elements(x, copy);
  return copy;
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dtype() != kString && a.dims() == b.dims() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

Tensor sum(const KernelContext& context, const Tensor& a, const Tensor& b) {
  if (a.dims() != b.dims()) context.fail("{} cannot be added to {}", to_string(b.type()), to_string(a.type()));
  Tensor result = Tensor::uninitialized(a.dtype(), a.dims());
  with_numbers(a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::transform(data<T>(a), data<T>(a) + a.count(), data<T>(b), data<T>(result), [](T x, T y) {
      if constexpr (std::is_integral_v<T>)
        return wrapped(x, y, std::plus<>());
      else
        return T(static_cast<Compute<T>>(x) + static_cast<Compute<T>>(y));
    });
  });
  return result;
}

void set(KernelContext& context) {
  const List& list = list_in(context);
  check_element(context, list, context.input(2));
  auto copy = std::make_shared<List>(list);
  if (const int64_t index = context.input(1).as_i64()[0];
      context.attr.boolean("grow") && index >= static_cast<int64_t>(list.elements.size())) {
    check_length(context, index == std::numeric_limits<int64_t>::max() ? index : index + 1);
    copy->elements.resize(static_cast<size_t>(index) + 1);
  }
  const size_t index = index_of(context, *copy);
  const ListElements::Shared element = copy->elements[index];
  copy->elements.set(index, context.attr.boolean("add") && element ? sum(context, *element, context.input(2))
                                                                   : kept(context.input(2)));
  context.result(0).list = std::move(copy);
}

void infer_add(InferContext& context) {
  const Type& element = list_element(context);
  const Type& other = context.input(1);
  if (other.elements.size() != 1 || !compatible(element, other.elements[0]))
    context.fail("{} cannot be added to {}", to_string(other), to_string(context.input(0)));
  context.result(Type::list(meet(element, other.elements[0])));
}

void add(KernelContext& context) {
  const List& a = list_in(context);
  if (!context.value(1).list) context.fail("the list is undefined");
  const List& b = *context.value(1).list;
  if (a.elements.size() != b.elements.size() && !context.attr.boolean("grow"))
    context.fail("lists of {} and {} elements cannot be added", a.elements.size(), b.elements.size());
  auto result = std::make_shared<List>(a);
  if (b.elements.size() > a.elements.size()) result->elements.resize(b.elements.size());
  for (size_t i = 0; i < b.elements.size(); ++i)
    if (!result->elements[i])
      result->elements.set(i, b.elements[i]);
    else if (b.elements[i])
      result->elements.set(i, sum(context, *result->elements[i], *b.elements[i]));
  context.result(0).list = std::move(result);
}

void infer_zeros(InferContext& context) {
  list_element(context);
  context.result(context.input(0));
}

void zeros(KernelContext& context) {
  auto result = std::make_shared<List>(list_in(context));
  ListElements::Shared last;  // adjacent elements of equal dims share one tensor of zeros
  for (size_t i = 0; i < result->elements.size(); ++i) {
    const ListElements::Shared& x = result->elements[i];
    if (!x) continue;
    if (!last || last->dims() != x->dims()) last = std::make_shared<const Tensor>(Tensor::zeros(x->dtype(), x->dims()));
    result->elements.set(i, last);
  }
  context.result(0).list = std::move(result);
}

void infer_push(InferContext& context) {
  check_element(context, 1);
  context.result(context.input(0));
}

void push(KernelContext& context) {
  check_element(context, list_in(context), context.input(1));
  auto copy = std::make_shared<List>(list_in(context));
  const Tensor& x = context.input(1);
  const size_t count = copy->elements.size();
  copy->elements.resize(count + 1);
  // Loops push the same weights in every iteration: equal consecutive elements share one copy.
  const bool again = count > 0 && copy->elements[count - 1] && equal_bytes(*copy->elements[count - 1], x);
  copy->elements.set(count, again ? copy->elements[count - 1] : std::make_shared<const Tensor>(kept(x)));
  context.result(0).list = std::move(copy);
}

void infer_pop(InferContext& context) {
  context.result(context.input(0));
  context.result(list_element(context));
}

void pop(KernelContext& context) {
  const List& list = list_in(context);
  if (list.elements.size() == 0) context.fail("the list is empty");
  const size_t last = list.elements.size() - 1;
  const ListElements::Shared& set = list.elements[last];
  const Tensor element = set ? *set : Tensor::zeros(list.element.dtype, unset_dims(context, list, last));
  copy_elements(element, context.allocate(1, element.dtype(), element.dims()));
  auto copy = std::make_shared<List>(list);
  copy->elements.resize(last);
  context.result(0).list = std::move(copy);
}

void size(KernelContext& context) {
  *data<int64_t>(context.allocate(0, kI64, {})) = static_cast<int64_t>(list_in(context).elements.size());
}

void infer_stack(InferContext& context) {
  const Type& element = list_element(context);
  Shape result = element.shape;
  if (result.ranked) result.dims.insert(result.dims.begin(), Dim());
  context.result(element.dtype, std::move(result));
}

// All elements; an unset one is zeros of the dims of the first that is set.
std::vector<Tensor> whole_elements(const KernelContext& context, const List& list) {
  std::vector<Tensor> whole;
  const Tensor* known = nullptr;
  for (size_t i = 0; i < list.elements.size() && !known; ++i) known = list.elements[i].get();
  for (size_t i = 0; i < list.elements.size(); ++i) {
    if (const ListElements::Shared& element = list.elements[i]) {
      check_element(context, list, *element);
      whole.push_back(*element);
    } else {
      whole.push_back(Tensor::zeros(list.element.dtype, known ? known->dims() : unset_dims(context, list, i)));
    }
  }
  return whole;
}

void append_parts(const std::vector<Tensor>& parts, Tensor& y) {
  with_elements(y.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (const Tensor& part : parts) to = std::copy_n(data<T>(part), part.count(), to);
  });
}

void stack(KernelContext& context) {
  const List& list = list_in(context);
  auto parts = whole_elements(context, list);
  Dims dims = parts.empty() ? unset_dims(context, list, 0) : parts[0].dims();
  for (const Tensor& part : parts)
    if (part.dims() != dims)
      context.fail("elements differ: {} and {}", to_string(parts[0].type()), to_string(part.type()));
  dims.insert(dims.begin(), static_cast<int64_t>(parts.size()));
  append_parts(parts, context.allocate(0, list.element.dtype, dims));
}

void infer_unstack(InferContext& context) {
  DType dtype = moved_type(context, 0);
  Shape shape = context.shape(0);
  if (shape.ranked && shape.rank() == 0) context.fail("a scalar cannot be taken apart");
  if (shape.ranked) shape.dims.erase(shape.dims.begin());
  context.result(Type::list(Type::tensor(dtype, std::move(shape))));
}

void unstack(KernelContext& context) {
  const Tensor& x = context.input(0);
  check_length(context, x.dims()[0]);
  auto list = std::make_shared<List>();
  const Dims dims(x.dims().begin() + 1, x.dims().end());
  list->element = Type::tensor(x.dtype(), Shape::of(dims));
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    for (const int64_t i : turns(x.dims()[0])) {
      Tensor part = Tensor::uninitialized(x.dtype(), dims);
      std::copy_n(data<T>(x) + i * part.count(), part.count(), data<T>(part));
      list->elements.push_back(std::move(part));
    }
  });
  context.result(0).list = std::move(list);
}

void infer_list_concat(InferContext& context) {
  const Type& element = list_element(context);
  Shape result = element.shape;
  if (result.ranked && result.rank() == 0) context.fail("scalars have no axis to join along");
  if (result.ranked) result.dims[0] = Dim();
  context.result(element.dtype, std::move(result));
}

void concat_list(KernelContext& context) {
  const List& list = list_in(context);
  auto parts = whole_elements(context, list);
  Dims dims = parts.empty() ? unset_dims(context, list, 0) : parts[0].dims();
  if (dims.empty()) context.fail("scalars have no axis to join along");
  dims[0] = 0;
  for (const Tensor& part : parts) {
    if (part.rank() != dims.size() || !std::equal(dims.begin() + 1, dims.end(), part.dims().begin() + 1))
      context.fail("elements differ: {} and {}", to_string(parts[0].type()), to_string(part.type()));
    dims[0] += part.dims()[0];
  }
  append_parts(parts, context.allocate(0, list.element.dtype, dims));
}

void infer_list_resize(InferContext& context) {
  require_scalar(context, 1);
  context.result(context.input(0));
}

void resize_list(KernelContext& context) {
  const int64_t size = context.input(1).as_i64()[0];
  check_length(context, size);
  auto copy = std::make_shared<List>(list_in(context));
  copy->elements.resize(static_cast<size_t>(size));
  context.result(0).list = std::move(copy);
}

void unset(KernelContext& context) {
  auto copy = std::make_shared<List>(list_in(context));
  const int64_t index = context.input(1).as_i64()[0];
  if (index < 0) context.fail("index {} is out of range for {} elements", index, copy->elements.size());
  if (static_cast<size_t>(index) < copy->elements.size()) copy->elements.set(static_cast<size_t>(index), nullptr);
  context.result(0).list = std::move(copy);
}

void lengths(KernelContext& context) {
  const std::vector<Tensor> parts = whole_elements(context, list_in(context));
  Tensor& y = context.allocate(0, kI64, {static_cast<int64_t>(parts.size())});
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank() == 0) context.fail("scalars have no axis to join along");
    data<int64_t>(y)[i] = parts[i].dims()[0];
  }
}

void infer_split(InferContext& context) {
  Shape rows = context.shape(0);
  if (rows.ranked && rows.rank() == 0) context.fail("a scalar cannot be taken apart");
  if (rows.ranked) rows.dims[0] = Dim();
  context.result(Type::list(Type::tensor(moved_type(context, 0), std::move(rows))));
}

void split_list_of(KernelContext& context) {
  const Tensor& x = context.input(0);
  auto list = std::make_shared<List>();
  Shape rows = Shape::of(x.dims());
  rows.dims[0] = Dim();
  list->element = Type::tensor(x.dtype(), std::move(rows));
  Dims dims = x.dims();
  const int64_t all = dims[0];
  int64_t begin = 0;
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = data<T>(x);
    for (const int64_t size : context.input(1).as_i64()) {
      if (size < 0 || size > all - begin)
        context.fail("a part of {} rows is asked for, {} are left", size, all - begin);
      dims[0] = size;
      begin += size;
      Tensor part = Tensor::uninitialized(x.dtype(), dims);
      std::copy_n(from, part.count(), data<T>(part));
      from += part.count();
      list->elements.push_back(std::move(part));
    }
  });
  if (begin != all) context.fail("the parts have {} rows, x has {}", begin, all);
  context.result(0).list = std::move(list);
}

// The gradient of a list is a list in which an unset or missing element means zero. It may be longer than the list
// itself; the extra elements have no meaning, and rules that depend on the length shorten it first.

Var no_gradients(const GradientContext& c, Var list) {
  Value* none = c.b.constant(Tensor::scalar_i64(0));
  return {c.b, c.b.add("list_make", {none}, {{"element", list.type().elements[0]}})};
}

Var add_at(Var gradients, Var index, Var dy) {
  return gradients.apply("list_set", {index, dy}, {{"grow", true}, {"add", true}});
}

// The gradient of x, the element `index` of the list.
Var gradient_at(Var gradients, Var index, Var x) {
  return gradients.apply("list_get", {index, zeros_like(x)}, {{"grow", true}});
}

Var add_lists(Var a, Var b) { return a.apply("list_add", {b}, {{"grow", true}}); }

void get_gradient(GradientContext& c) { c.set(0, add_at(no_gradients(c, c.x(0)), c.x(1), c.dy())); }

void set_gradient(GradientContext& c) {
  c.set(0, c.attr.boolean("add") ? c.dy() : c.dy().apply("list_unset", {c.x(1)}));
  if (c.wanted(2)) c.set(2, gradient_at(c.dy(), c.x(1), c.x(2)));
}

void push_gradient(GradientContext& c) {
  const Var size = c.x(0).apply("list_size");
  c.set(0, c.dy().apply("list_resize", {size}));
  if (c.wanted(1)) c.set(1, gradient_at(c.dy(), size, c.x(1)));
}

void pop_gradient(GradientContext& c) {
  const Var rest = c.has_dy(0) ? c.dy(0) : no_gradients(c, c.y(0)), size = c.y(0).apply("list_size");
  c.set(0, c.has_dy(1) ? add_at(rest.apply("list_resize", {size}), size, c.dy(1)) : rest);
}

void add_gradient(GradientContext& c) {
  c.set(0, c.dy());
  c.set(1, c.dy());
}

void stack_gradient(GradientContext& c) { c.set(0, c.dy().apply("list_unstack")); }

// The gradients of all elements, with explicit zeros for the missing ones.
Var all_gradients(const GradientContext& c, Var zeros) {
  return add_lists(zeros, c.dy()).apply("list_resize", {c.y().apply("list_size")});
}

void unstack_gradient(GradientContext& c) {
  c.set(0, all_gradients(c, zeros_like(c.x(0)).apply("list_unstack")).apply("list_stack"));
}

void concat_gradient(GradientContext& c) { c.set(0, c.dy().apply("list_split", {c.x(0).apply("list_lengths")})); }

void split_gradient(GradientContext& c) {
  c.set(0, all_gradients(c, zeros_like(c.x(0)).apply("list_split", {c.x(1)})).apply("list_concat"));
}

void resize_gradient(GradientContext& c) {
  c.set(0, c.dy().apply("list_resize", {c.x(1)}).apply("list_resize", {c.x(0).apply("list_size")}));
}

void unset_gradient(GradientContext& c) { c.set(0, c.dy().apply("list_unset", {c.x(1)})); }
void zero_gradient(GradientContext&) {}

OpDef list_row(const char* name, const char* summary, std::vector<InputDef> inputs, void (*infer)(InferContext&),
               void (*reference)(KernelContext&), void (*gradient)(GradientContext&)) {
  return {.name = name,
          .summary = summary,
          .inputs = std::move(inputs),
          .traits = kHostValue,
          .infer = infer,
          .gradient = gradient,
          .reference = reference,
          .oracle = untested("works on lists: tests/ops/list_test.cpp")};
}

std::vector<OpDef> make_list_rows() {
  const InputDef list = {"list", Accepts::list}, index = index_operand("index"), x = {"x"};
  const InputDef like = {"like", Accepts::any_tensor, InputDef::Arity::optional};
  std::vector<OpDef> rows = {
      list_row("list_make",
               "a list of `size` unset elements; reading one gives zeros where the element type has all its dims, else "
               "an error",
               {{"size", Accepts::i32_or_i64}}, infer_make, make, nullptr),
      list_row("list_get",
               "element `index`, zeros like `like` where it is unset; out of range is an error, with `grow` behind the "
               "last an unset one",
               {list, index, like}, infer_get, get, get_gradient),
      list_row("list_set",
               "the list with x in place of element `index`; out of range is an error, or with `grow` behind the last "
               "makes the list longer by unset elements; with `add` an element that is set gets x added",
               {list, index, x}, infer_set, set, set_gradient),
      list_row("list_push", "the list with x behind its last element", {list, x}, infer_push, push, push_gradient),
      list_row("list_pop", "the list without its last element, and that element; an empty list is an error", {list},
               infer_pop, pop, pop_gradient),
      list_row("list_add",
               "the sums of the elements of two lists of the same length; unset ones add nothing; with `grow` the "
               "shorter list counts as filled up by unset elements",
               {list, {"other", Accepts::list}}, infer_add, add, add_gradient),
      list_row(
          "list_size", "number of elements, set or not", {list},
          [](InferContext& context) { context.result(kI64, Shape()); }, size, nullptr),
      list_row("list_zeros", "zeros in place of the elements that are set", {list}, infer_zeros, zeros, zero_gradient),
      list_row("list_stack", "all elements along a new first dim; unset ones are zeros like the others", {list},
               infer_stack, stack, stack_gradient),
      list_row("list_unstack", "a list of the parts of x along its first dim", {x}, infer_unstack, unstack,
               unstack_gradient),
      list_row("list_concat", "all elements joined along their first dim", {list}, infer_list_concat, concat_list,
               concat_gradient),
      list_row("list_split", "a list of the parts of x along its first dim that have these lengths, which add up to it",
               {x, shape_operand("lengths")}, infer_split, split_list_of, split_gradient),
      list_row(
          "list_lengths", "first dim of each element", {list},
          [](InferContext& context) { context.result(kI64, Shape{Dim()}); }, lengths, nullptr),
      list_row("list_resize", "the list with `size` elements: later ones go, new ones are unset",
               {list, shape_operand("size")}, infer_list_resize, resize_list, resize_gradient),
      list_row("list_unset", "the list with element `index` unset; behind the last one nothing changes", {list, index},
               infer_list_resize, unset, unset_gradient),
  };
  rows[0].attributes = {{"element", AttrKind::type}};
  rows[1].attributes = {flag("grow")};
  rows[2].attributes = {flag("grow"), flag("add")};
  rows[4].results = {"list", "y"};
  rows[5].attributes = {flag("grow")};
  for (OpDef& row : rows) {
    row.traits |= kNotFoldable;
    if (!row.gradient) row.no_gradient = "only the number of elements counts, or their lengths";
  }
  return rows;
}

}  // namespace

std::span<const OpDef> list_ops() {
  static const std::vector<OpDef> rows = make_list_rows();
  return rows;
}

}  // namespace cairn
