// Rows for clusters only. Stacks and TensorArrays of TensorFlow 1's loops are variables that live during a run and
// contain lists. Reads and writes use the handle, as in TensorFlow; the flow is a number that orders them.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/region.h"
#include "frontends/tensorflow/flow.h"
#include "frontends/tensorflow/importer.h"
#include "frontends/tensorflow/lists.h"

namespace cairn::tensorflow {
namespace {

constexpr size_t kHandle = 0;

ListState& state(OpContext& c) { return c.importer().list_state(c.in[kHandle]); }

Value* held(OpContext& c, Value* list, ListState state) {
  Value* handle = c.b.add("local_variable", {list});
  c.importer().add_list(handle, std::move(state));
  return handle;
}

/// An empty list with unknown element shapes; the elements that are added determine them during import.
Value* empty_list(OpContext& c, Value* size, DType dtype) {
  return c.b.add("list_make", {size}, {{"element", Type::tensor(dtype, Shape::unranked())}});
}

Value* content(OpContext& c) { return c.b.add("read_variable", {c.in[kHandle]}); }
void put(OpContext& c, Value* list) { c.b.add_node(op_named("assign_variable"), {c.in[kHandle], list}); }

Type element(OpContext& c) {
  std::optional<Type> joined;
  for (const auto& [node, type] : state(c).types) joined = joined ? joined_type(*joined, type, 0) : type;
  if (!joined) joined = state(c).declared;
  if (!joined->shape.ranked) c.refuse("nothing tells the rank of the elements");
  state(c).told = true;
  return *joined;
}

/// Records the type of the element that the node writes. It must agree with the element type that earlier reads have
/// assumed.
void learn(OpContext& c, const Type& type, const Value* value = nullptr) {
  ListState& list = state(c);
  if (list.told && !list.types.contains(c.name()) && (value != nullptr || element(c) != type))
    c.refuse("puts in an element after others were taken out");
  const Tensor* constant = value == nullptr ? nullptr : constant_of(value);
  list.types[c.name()] = type;
  list.values[c.name()] = constant == nullptr ? std::nullopt : std::optional(*constant);
}

/// The value of every element, if it is known and one.
const Tensor* common_value(OpContext& c) {
  const Tensor* common = nullptr;
  for (const auto& [node, value] : state(c).values) {
    if (!value || (common != nullptr && !common->same_bits(*value))) return nullptr;
    common = &*value;
  }
  return common;
}

void stack_make(OpContext& c) {
  const DType dtype = c.dtype("elem_type");
  Value* list = empty_list(c, c.b.constant(Tensor::scalar_i64(0)), dtype);
  c.out = {held(c, list, {Type::tensor(dtype, Shape::unranked())})};
}

void stack_push(OpContext& c) {
  c.expect_inputs(2);
  learn(c, c.in[1]->type, c.in[1]);
  put(c, c.b.add("list_push", {content(c), c.in[1]}));
  c.out = {c.in[1]};
}

void stack_pop(OpContext& c) {
  c.expect_inputs(1);
  Value* list = content(c);
  auto* made = c.b.add_node(op_named("list_pop"), {list}, {}, {}, {list->type, element(c)});
  put(c, made->result(0));
  const Tensor* known = common_value(c);  // sizes above all, which must be known while importing
  c.out = {known != nullptr ? c.b.constant(*known) : made->result(1)};
}

void held_make(OpContext& c) {
  c.expect_inputs(1);
  Value* handle = held(c, empty_list(c, c.in[0], c.dtype("dtype")), {array_element(c)});
  c.importer().list_state(handle).grows = c.boolean("dynamic_size", false);
  c.out = {handle, c.b.constant(Tensor::scalar_f32(0))};
}

/// An array with as many unset elements as the original has now; it grows if the original may.
void array_gradient(OpContext& c) {
  c.expect_inputs(1);
  const ListState array = state(c);
  Value* list = empty_list(c, c.b.add("list_size", {content(c)}), array.declared.dtype);
  c.out = {held(c, list, {array.declared, array.grows, true})};
}

/// An element of a gradient is the sum of what is written to its place.
void held_write(OpContext& c) {
  c.expect_inputs(4);
  learn(c, c.in[2]->type);
  const ListState& array = state(c);
  put(c, c.b.add("list_set", {content(c), c.in[1], c.in[2]}, {{"grow", array.grows}, {"add", array.gradient}}));
  c.out = {c.in[3]};
}

void held_read(OpContext& c) {
  c.expect_inputs(3);
  const std::vector<Type> type{element(c)};
  c.out = {c.b.add_node(op_named("list_get"), {content(c), c.in[1]}, {{"grow", state(c).grows && state(c).gradient}},
                        {}, type)
               ->result()};
}

void held_gather(OpContext& c) {
  c.expect_inputs(3);
  const Type told = array_element(c), known = element(c);
  c.out = {elements_at(c, content(c), c.in[1], compatible(told, known) ? meet(told, known) : known)};
}

void held_scatter(OpContext& c) {
  c.expect_inputs(4);
  if (!state(c).types.empty()) c.refuse("scatters into a TensorArray that has elements");
  Value* list = scattered(c, c.in[2], c.in[1]);
  learn(c, list->type.elements[0]);
  put(c, list);
  c.out = {c.in[3]};
}

void held_size(OpContext& c) {
  c.expect_inputs(2);
  c.out = {cast_to(c.b.add("list_size", {content(c)}), kI32, c.b)};
}

void nothing(OpContext&) {}

/// Nodes that a loop's body keeps only for ordering.
void hand_on(OpContext& c) { c.out = c.in; }

/// A placeholder for a result that only the other branch has; the If fills it in.
void absent(OpContext& c) { c.out = {c.b.constant(Tensor::scalar_f32(0))}; }

constexpr Row kLoopRows[] = {
    {kAbsent, absent},
    {kArrayGradient, array_gradient, writes(1)},
    {"ControlTrigger", nothing, Trait::free},
    {"Enter", hand_on, kHandsOn},
    {"LoopCond", hand_on, Trait::heavy},
    {"NextIteration", hand_on, kHandsOn},
    {"RefEnter", hand_on, kHandsOn},
    {"RefNextIteration", hand_on, kHandsOn},
    {"StackCloseV2", nothing, writes(1)},
    {"StackPopV2", stack_pop, writes(1)},
    {"StackPushV2", stack_push, writes(1)},
    {"StackV2", stack_make, Trait::makes_list},
    {"TensorArrayCloseV3", nothing, writes(1)},
    {"TensorArrayConcatV3", nullptr, Trait::host},
    {"TensorArrayGatherV3", held_gather, writes(1)},
    {"TensorArrayGradV3", nothing, writes(1) | Trait::makes_list},
    {"TensorArrayReadV3", held_read, writes(1)},
    {"TensorArrayScatterV3", held_scatter, writes(1)},
    {"TensorArraySizeV3", held_size, reads(1)},
    {"TensorArrayV3", held_make, Trait::makes_list},
    {"TensorArrayWriteV3", held_write, writes(1)},
};

}  // namespace

std::span<const Row> loop_rows() { return kLoopRows; }

}  // namespace cairn::tensorflow
