// ONNX's sequences of tensors inside a graph, as lists.
#include "frontends/fold.h"
#include "frontends/onnx/packed.h"
#include "frontends/onnx/subgraph.h"
#include "frontends/region.h"
#include "frontends/reshape.h"

namespace cairn::onnx {
namespace {

Value* integer_constant(Builder& b, int64_t x) { return b.constant(Tensor::scalar_i64(x)); }

Value* the_list(OpContext& c, size_t input) {
  if (c.in[input]->type.kind != Type::Kind::list) fail(ErrorKind::invalid_model, "", "input {} is no sequence", input);
  return c.in[input];
}
Value* length_of(Value* list, Builder& b) { return cast_to(b.add("list_size", {list}), kI64, b); }

/// A position counted from the start, below `end`; negative ones count from the end of the list.
Value* position(OpContext& c, size_t input, Value* length, Value* end) {
  Value* at = cast_to(reshape_to(c.in[input], {}, c.b), kI64, c.b);
  Value* negative = c.b.add("less", {at, integer_constant(c.b, 0)});
  at = c.b.add("select", {negative, c.b.add("add", {at, length}), at});
  return c.b.add("gather", {counted(end, c.b), at}, {{"from_start", true}});
}

/// A list of what `element` makes for 0, 1, ... below count; `taken` stand inside as they do outside.
Value* made_list(Builder& b, Type type, Value* count, std::vector<Value*> taken,
                 FunctionRef<Value*(Builder&, Value*, const std::vector<Value*>&)> element) {
  taken.insert(taken.begin(), count);
  return b.make_while(
      {integer_constant(b, 0), empty_list(std::move(type), b)}, taken,
      [](Builder& in, const std::vector<Value*>& now) {
        return std::vector<Value*>{in.add("less", {now[0], now[2]})};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        Value* made = element(in, now[0], {now.begin() + 3, now.end()});
        return std::vector<Value*>{in.add("add", {now[0], integer_constant(in, 1)}),
                                   in.add("list_push", {now[1], made})};
      })[1];
}

void sequence_empty(OpContext& c) {
  c.expect_inputs(0, 0);
  const auto dtype = dtype_of(static_cast<int32_t>(c.integer("dtype", kFloat)));
  if (!dtype) c.refuse("elements of this dtype are not supported");
  c.out = {empty_list(Type::tensor(*dtype, Shape::unranked()), c.b)};
}

void sequence_construct(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  Type element = c.in[0]->type;
  for (size_t i = 1; i < c.in.size(); ++i) element = joined_type(element, c.in[i]->type, i);
  if (!element.is_tensor()) c.refuse("sequences of sequences are not supported");
  Value* list = empty_list(element, c.b);
  for (Value* x : c.in) list = c.b.add("list_push", {list, x});
  c.out = {list};
}

void sequence_at(OpContext& c) {
  c.expect_inputs(2, 2);
  Value *list = the_list(c, 0), *length = length_of(list, c.b);
  c.out = {c.b.add("list_get", {list, position(c, 1, length, length)})};
}

void sequence_length(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {length_of(the_list(c, 0), c.b)};
}

void sequence_insert(OpContext& c) {
  c.expect_inputs(2, 3);
  Builder& b = c.b;
  Value* list = the_list(c, 0);
  const Type element = joined_type(list->type.elements[0], c.in[1]->type, 0);
  if (!c.given(2)) {
    if (element != list->type.elements[0])  // the list was declared for elements of one shape alone
      list =
          made_list(b, element, length_of(list, b), {list}, [](Builder& in, Value* i, const std::vector<Value*>& with) {
            return in.add("list_get", {with[0], i});
          });
    c.out = {b.add("list_push", {list, c.in[1]})};
    return;
  }
  Value *length = length_of(list, b), *longer = b.add("add", {length, integer_constant(b, 1)});
  Value* place = position(c, 2, length, longer);
  c.out = {
      made_list(b, element, longer, {list, c.in[1], place}, [](Builder& in, Value* i, const std::vector<Value*>& with) {
        Value* behind = in.add("greater", {i, with[2]});
        Value* from = in.add("sub", {i, cast_to(behind, kI64, in)});
        return in.make_if(
            in.add("equal", {i, with[2]}), {with[0], with[1], from},
            [](Builder&, const std::vector<Value*>& values) { return std::vector<Value*>{values[1]}; },
            [](Builder& other, const std::vector<Value*>& values) {
              return std::vector<Value*>{other.add("list_get", {values[0], values[2]})};
            })[0];
      })};
}

void sequence_erase(OpContext& c) {
  c.expect_inputs(1, 2);
  Builder& b = c.b;
  Value *list = the_list(c, 0), *length = length_of(list, b);
  Value* shorter = b.add("sub", {length, integer_constant(b, 1)});
  Value* place = c.given(1) ? position(c, 1, length, length) : b.add("gather", {counted(length, b), shorter});
  c.out = {made_list(b, list->type.elements[0], shorter, {list, place},
                     [](Builder& in, Value* i, const std::vector<Value*>& with) {
                       Value* behind = in.add("greater_equal", {i, with[1]});
                       return in.add("list_get", {with[0], in.add("add", {i, cast_to(behind, kI64, in)})});
                     })};
}

void concat_from_sequence(OpContext& c) {
  c.expect_inputs(1, 1);
  Builder& b = c.b;
  Value* list = the_list(c, 0);
  const int64_t axis = c.integer("axis");
  if (c.integer("new_axis", 0) != 0) {
    Value* y = b.add("list_stack", {list});
    if (axis != 0) {
      if (!y->type.shape.ranked) c.refuse("the rank of the elements is not known");
      std::vector<int64_t> order;
      for (size_t i = 1; i < y->type.shape.rank(); ++i) order.push_back(static_cast<int64_t>(i));
      order.insert(order.begin() + normal_axis(axis, y->type.shape.rank()), 0);
      y = transposed(y, order, b);
    }
    c.out = {y};
    return;
  }
  if (axis == 0) {
    c.out = {b.add("list_concat", {list})};
    return;
  }
  Value* first = b.add("list_get", {list, integer_constant(b, 0)});
  if (!first->type.shape.ranked) c.refuse("the rank of the elements is not known");
  const size_t rank = first->type.shape.rank();
  const std::vector<int64_t> order = swapped_axes(rank, 0, static_cast<size_t>(normal_axis(axis, rank)));
  Shape shape;
  shape.dims.resize(order.size());
  list = made_list(b, Type::tensor(first->type.dtype, shape), length_of(list, b), {list},
                   [&](Builder& in, Value* i, const std::vector<Value*>& with) {
                     return transposed(in.add("list_get", {with[0], i}), order, in);
                   });
  c.out = {transposed(b.add("list_concat", {list}), order, b)};
}

/// Parts of given sizes, of one size (the last may be smaller), or of 1 whose dim may go.
void split_to_sequence(OpContext& c) {
  c.expect_inputs(1, 2);
  Builder& b = c.b;
  const size_t rank = c.rank(0);
  const int64_t axis = normal_axis(c.integer("axis", 0), rank);
  std::vector<int64_t> order{axis}, back(rank);
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
    if (i != axis) order.push_back(i);
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  Value* x = axis == 0 ? c.in[0] : transposed(c.in[0], order, b);
  if (!c.given(1) && c.integer("keepdims", 1) == 0) {
    c.out = {b.add("list_unstack", {x})};
    return;
  }
  Value *size = scalar_dim(x, 0, b), *lengths;
  if (c.given(1) && c.rank(1) == 1) {
    lengths = cast_to(c.in[1], kI64, b);
  } else {
    Value* each = c.given(1) ? cast_to(reshape_to(c.in[1], {}, b), kI64, b) : integer_constant(b, 1);
    Value* starts = b.add("iota", {integer_constant(b, 0), size, each}, {{"dtype", kI64}});
    lengths = b.add("minimum", {b.add("sub", {size, starts}), each});
  }
  Value* list = b.add("list_split", {x, lengths});
  if (axis != 0) {
    Shape shape = c.in[0]->type.shape;
    shape.dims[static_cast<size_t>(axis)] = Dim();
    list = made_list(b, Type::tensor(x->type.dtype, shape), length_of(list, b), {list},
                     [&](Builder& in, Value* i, const std::vector<Value*>& with) {
                       return transposed(in.add("list_get", {with[0], i}), back, in);
                     });
  }
  c.out = {list};
}

/// The body's results for each element of the first sequence and those of the others beside it; tensors are the same for all.
void sequence_map(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  const Graph& graph = c.graph("body");
  Outer outer(c, {&graph});
  std::vector<Value*> taken = c.in;
  const auto own = static_cast<int64_t>(taken.size());
  taken.insert(taken.end(), outer.values().begin(), outer.values().end());
  taken.push_back(length_of(the_list(c, 0), c.b));
  const auto elements = [&](Builder& in, Value* at, const std::vector<Value*>& inside) {
    std::vector<Value*> given;
    for (Value* x : std::span(inside).first(static_cast<size_t>(own)))
      given.push_back(x->type.kind == Type::Kind::list ? in.add("list_get", {x, at}) : x);
    return outer.run(graph, in.block(), {inside.begin() + own, inside.end() - 1}, given);
  };
  auto aside = std::make_unique<Block>();  // tells the types of the elements
  Builder first(*aside);
  std::vector<Value*> params, start{integer_constant(c.b, 0)};
  Captures(taken).enter(*aside, params);  // constants stay such, since branches may hang on them
  for (const Value* made : elements(first, aside->add_param(start[0]->type, ""), params))
    start.push_back(empty_list(made->type, c.b));
  c.importer().keep(std::move(aside));
  const size_t lists = start.size();
  std::vector<Value*> made = c.b.make_while(
      start, taken,
      [](Builder& in, const std::vector<Value*>& now) {
        return std::vector{in.add("less", {now[0], now.back()})};
      },
      [&](Builder& in, const std::vector<Value*>& now) {
        const std::vector<Value*> now_made =
            elements(in, now[0], {now.begin() + static_cast<int64_t>(lists), now.end()});
        std::vector<Value*> next{in.add("add", {now[0], integer_constant(in, 1)})};
        for (size_t i = 1; i < lists; ++i) next.push_back(in.add("list_push", {now[i], now_made[i - 1]}));
        return next;
      });
  c.out = {made.begin() + 1, made.end()};
}

Value* truth_constant(Builder& b, bool truth) {
  return b.constant(Tensor::of<uint8_t>(kBool, {}, {static_cast<uint8_t>(truth)}));
}

/// An input that is no optional is there; one that is left out is not.
void optional_has_element(OpContext& c) {
  c.expect_inputs(0, 1);
  Value* given = c.given(0) ? c.importer().presence(c.in[0]) : nullptr;
  c.out = {given ? given : truth_constant(c.b, c.given(0))};
}
/// An optional with an element is its value; without one it is any value of its type.
void optional(OpContext& c) {
  c.expect_inputs(0, 1);
  if (c.given(0)) {
    c.out = {c.in[0]};
    return;
  }
  const ValueInfo* info = c.type("type");
  const auto dtype = info ? dtype_of(info->element) : std::nullopt;
  if (!dtype) c.refuse("an optional of this type is not supported");
  Shape shape;
  std::vector<int64_t> dims;
  for (const Dimension& dim : info->dims) {
    shape.dims.push_back(dim.size >= 0 ? Dim(dim.size) : Dim());
    dims.push_back(std::max<int64_t>(dim.size, 0));
  }
  if (!info->ranked) shape = Shape::unranked();
  if (info->of_sequence)
    c.out = {empty_list(Type::tensor(*dtype, shape), c.b)};
  else
    c.out = {c.b.constant(Tensor::zeros(*dtype, dims))};
  c.importer().mark_presence(c.out[0], truth_constant(c.b, false));
}
void optional_get_element(OpContext& c) {
  c.expect_inputs(1, 1);
  c.out = {c.in[0]};
}

constexpr Row kSequenceRows[] = {
    {"ConcatFromSequence", concat_from_sequence},
    {"Optional", optional},
    {"OptionalGetElement", optional_get_element},
    {"OptionalHasElement", optional_has_element},
    {"SequenceAt", sequence_at},
    {"SequenceConstruct", sequence_construct},
    {"SequenceEmpty", sequence_empty},
    {"SequenceErase", sequence_erase},
    {"SequenceInsert", sequence_insert},
    {"SequenceLength", sequence_length},
    {"SequenceMap", sequence_map},
    {"SplitToSequence", split_to_sequence},
};

}  // namespace

std::span<const Row> sequence_rows() { return kSequenceRows; }

}  // namespace cairn::onnx
