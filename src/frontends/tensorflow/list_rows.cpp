// TensorFlow's lists of tensors: the TensorList ops, and TensorArray, whose flow carries the list.
#include "frontends/fold.h"
#include "frontends/tensorflow/lists.h"
#include "frontends/values.h"

namespace cairn::tensorflow {
namespace {

/// The element shape given by an input: a vector with -1 for unknown dims, or a scalar -1 for unknown rank.
Shape element_shape(OpContext& c, size_t input) {
  const Tensor* tensor = constant_of(c.in[input]);
  if (tensor == nullptr || tensor->rank() != 1) {
    const Shape& own = c.in[input]->type.shape;
    if (tensor == nullptr && own.known() && own.rank() == 1)
      return Shape(std::vector<Dim>(own.sizes()[0] > 64 ? 0 : own.sizes()[0]));
    return Shape::unranked();
  }
  std::vector<Dim> dims;
  for (int64_t size : whole_numbers(*tensor)) dims.push_back(size < 0 ? Dim() : Dim(size));
  return Shape(std::move(dims));
}

void list_reserve(OpContext& c) {
  c.expect_inputs(2);
  Type element = Type::tensor(c.dtype("element_dtype"), element_shape(c, 0));
  bool empty = c.node().op == "EmptyTensorList";
  Value* size = empty ? c.b.constant(Tensor::scalar_i64(0)) : c.in[1];
  c.out = {c.b.add("list_make", {size}, {{"element", element}})};
}

void list_plain(OpContext& c) { c.out = {c.b.add(c.target, c.in)}; }

void list_set(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("list_set", c.in, {{"grow", c.boolean("resize_if_index_out_of_bounds", false)}})};
}

/// The element type by the list's type and by the node's attributes and shape input.
Type element_type(OpContext& c, size_t shape_input) {
  const Type& list = c.in[0]->type;
  if (list.kind != Type::Kind::list)
    fail(ErrorKind::invalid_model, "", "input 0 is {}, expected a list", to_string(list));
  Type told = Type::tensor(c.dtype("element_dtype"), element_shape(c, shape_input));
  if (!compatible(told, list.elements[0]))
    fail(ErrorKind::invalid_model, "", "elements are {}, told {}", to_string(list.elements[0]), to_string(told));
  return meet(list.elements[0], told);
}

void list_pop(OpContext& c) {
  c.expect_inputs(2);
  Type element = element_type(c, 1);
  auto* made = c.b.add_node(op_named("list_pop"), {c.in[0]}, {}, {}, {c.in[0]->type, element});
  c.out = {made->result(0), made->result(1)};
}

void list_get(OpContext& c) {
  c.expect_inputs(3);
  std::vector<Type> type{element_type(c, 2)};
  c.out = {c.b.add_node(op_named("list_get"), {c.in[0], c.in[1]}, {}, {}, type)->result()};
}

void list_stack(OpContext& c) {
  c.expect_inputs(2);
  Type type = element_type(c, 1);
  int64_t count = c.integer("num_elements", -1);
  if (type.shape.ranked) type.shape.dims.insert(type.shape.dims.begin(), count < 0 ? Dim() : Dim(count));
  c.out = {c.b.add_node(op_named("list_stack"), {c.in[0]}, {}, {}, {type})->result()};
}

void list_unstack(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("list_unstack", {c.in[0]})};
}

/// The dims of elements, -1 where a run tells them, and -1 alone for an unknown rank.
void list_element_shape(OpContext& c) {
  c.expect_inputs(1);
  if (c.in[0]->type.kind != Type::Kind::list)
    fail(ErrorKind::invalid_model, "", "input 0 is {}, expected a list", to_string(c.in[0]->type));
  const Shape& shape = c.in[0]->type.elements[0].shape;
  std::vector<int64_t> sizes;
  for (const Dim& dim : shape.dims) sizes.push_back(dim.known() ? dim.size : -1);
  Value* told = shape.ranked ? c.b.ints(sizes) : c.b.constant(Tensor::scalar_i64(-1));
  c.out = {cast_to(told, c.dtype("shape_type"), c.b)};
}

void list_length(OpContext& c) {
  c.expect_inputs(1);
  c.out = {cast_to(c.b.add("list_size", c.in), kI32, c.b)};
}

/// Whether the values are 0, 1, 2, ...
bool counts_up(const Value* indices) {
  if (const Tensor* constant = constant_of(indices)) {
    std::vector<int64_t> values = whole_numbers(*constant);
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != static_cast<int64_t>(i)) return false;
    return true;
  }
  const cairn::Node* range = indices->producer;
  if (range == nullptr || !range->is("iota")) return false;
  const Tensor *start = constant_of(range->inputs[0]), *step = constant_of(range->inputs[2]);
  return start != nullptr && step != nullptr && real_numbers(*start)[0] == 0 && real_numbers(*step)[0] == 1;
}

/// Whether the values are the places of all elements of a list: 0 up to its size.
bool all_places(const Value* indices) {
  if (!counts_up(indices) || indices->producer == nullptr || !indices->producer->is("iota")) return false;
  const cairn::Node* limit = indices->producer->inputs[1]->producer;
  while (limit != nullptr && limit->is("cast")) limit = limit->inputs[0]->producer;
  return limit != nullptr && limit->is("list_size");
}

}  // namespace

Value* elements_at(OpContext& c, Value* list, Value* indices, const Type& element) {
  Type type = element;
  if (type.shape.ranked) type.shape.dims.insert(type.shape.dims.begin(), Dim());
  Value* all = c.b.add_node(op_named("list_stack"), {list}, {}, {}, {type})->result();
  return all_places(indices) ? all : c.b.add("gather", {all, indices}, {{"axis", int64_t{0}}});
}

namespace {

void list_gather(OpContext& c) {
  c.expect_inputs(3);
  c.out = {elements_at(c, c.in[0], c.in[1], element_type(c, 2))};
}

}  // namespace

Value* scattered(OpContext& c, Value* parts, Value* indices) {
  if (!counts_up(indices)) c.refuse("puts elements at places that are not 0, 1, 2, ...");
  return c.b.add("list_unstack", {parts});
}

namespace {

void list_scatter(OpContext& c) {
  c.expect_inputs(3, 4);
  c.out = {scattered(c, c.in[0], c.in[1])};
}

bool is_fresh(const Value* list) { return list->producer != nullptr && list->producer->is("list_make"); }

void list_scatter_into(OpContext& c) {
  c.expect_inputs(3);
  if (!is_fresh(c.in[0])) c.refuse("scatters into a list that has elements");
  c.out = {scattered(c, c.in[1], c.in[2])};
}

void list_concat(OpContext& c) {
  c.expect_inputs(1, 3);
  c.out = {c.b.add("list_concat", {c.in[0]})};
}

}  // namespace

Type array_element(OpContext& c) {
  auto proto = c.shape(c.has("element_shape") ? "element_shape" : "element_shape_except0");
  Shape shape = Shape::unranked();
  if (proto && !proto->unknown_rank) {
    shape = Shape();
    for (int64_t size : proto->dims) shape.dims.push_back(size < 0 ? Dim() : Dim(size));
  }
  return Type::tensor(c.dtype("dtype"), shape);
}

namespace {

/// Results: handle and flow. The list is the flow; the ops below read and write it.
void array_make(OpContext& c) {
  c.expect_inputs(1);
  Value* list = c.b.add("list_make", {c.in[0]}, {{"element", array_element(c)}});
  c.out = {list, list};
}

void array_write(OpContext& c) {
  c.expect_inputs(4);
  c.out = {c.b.add("list_set", {c.in[3], c.in[1], c.in[2]}, {{"grow", true}})};
}

void array_read(OpContext& c) {
  c.expect_inputs(3);
  c.out = {c.b.add("list_get", {c.in[2], c.in[1]})};
}

void array_gather(OpContext& c) {
  c.expect_inputs(3);
  if (c.in[2]->type.kind != Type::Kind::list) fail(ErrorKind::invalid_model, "", "the flow is no TensorArray");
  Type told = array_element(c);
  const Type& own = c.in[2]->type.elements[0];
  c.out = {elements_at(c, c.in[2], c.in[1], compatible(told, own) ? meet(told, own) : own)};
}

void array_scatter(OpContext& c) {
  c.expect_inputs(4);
  if (!is_fresh(c.in[3])) c.refuse("scatters into a TensorArray that has elements");
  c.out = {scattered(c, c.in[2], c.in[1])};
}

void array_size(OpContext& c) {
  c.expect_inputs(2);
  c.out = {cast_to(c.b.add("list_size", {c.in[1]}), kI32, c.b)};
}

void array_concat(OpContext& c) {
  c.expect_inputs(2);
  c.out = {c.b.add("list_concat", {c.in[1]})};
}

constexpr Row kListRows[] = {
    {"EmptyTensorList", list_reserve},
    {"TensorArrayConcatV3", array_concat},
    {"TensorArrayGatherV3", array_gather},
    {"TensorArrayReadV3", array_read},
    {"TensorArrayScatterV3", array_scatter},
    {"TensorArraySizeV3", array_size},
    {"TensorArrayV3", array_make},
    {"TensorArrayWriteV3", array_write},
    {"TensorListConcatV2", list_concat},
    {"TensorListElementShape", list_element_shape},
    {"TensorListFromTensor", list_unstack},
    {"TensorListGather", list_gather},
    {"TensorListGetItem", list_get},
    {"TensorListLength", list_length},
    {"TensorListPopBack", list_pop},
    {"TensorListPushBack", list_plain, "list_push"},
    {"TensorListReserve", list_reserve},
    {"TensorListScatter", list_scatter},
    {"TensorListScatterIntoExistingList", list_scatter_into},
    {"TensorListScatterV2", list_scatter},
    {"TensorListSetItem", list_set},
    {"TensorListStack", list_stack},
};

}  // namespace

std::span<const Row> list_rows() { return kListRows; }

}  // namespace cairn::tensorflow
