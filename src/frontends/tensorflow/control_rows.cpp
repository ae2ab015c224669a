// TensorFlow's functional control flow, calls, and lists of tensors.
#include "frontends/fold.h"
#include "frontends/region.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

void call(OpContext& c) {
  std::string_view name = c.importer().is_function(c.node().op) ? c.node().op : c.function("f");
  c.out = c.importer().import_function(name, c.in, c.b, c.name(), c.level() + 1);
}

/// A region that runs a library function on the captured values.
std::unique_ptr<Block> branch(OpContext& c, std::string_view function, const Captures& captures) {
  std::vector<Value*> args;
  std::unique_ptr<Block> block = captures.open(args);
  Builder builder(*block);
  block->results = c.importer().import_function(function, args, builder, c.name(), c.level() + 1);
  return block;
}

void choose(OpContext& c, Value* condition, std::unique_ptr<Block> yes, std::unique_ptr<Block> no,
            const Captures& captures) {
  std::vector<Value*> inputs = captures.inputs();
  inputs.insert(inputs.begin(), condition);
  std::vector<std::unique_ptr<Block>> regions;
  regions.push_back(std::move(yes));
  regions.push_back(std::move(no));
  auto* made = c.b.add_node(op_named("if"), std::move(inputs), {}, std::move(regions));
  for (const auto& result : made->results) c.out.push_back(result.get());
}

void branch_of_two(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  Value* condition = truth(c.in[0], c.b);
  Captures captures({c.in.begin() + 1, c.in.end()});
  auto yes = branch(c, c.function("then_branch"), captures);
  auto no = branch(c, c.function("else_branch"), captures);
  choose(c, condition, std::move(yes), std::move(no), captures);
}

/// Which arguments the body hands on unchanged.
std::vector<bool> unchanged(const FunctionDef& body) {
  std::vector<bool> same(body.inputs.size(), false);
  std::unordered_map<std::string_view, std::string_view> returns(body.returns.begin(), body.returns.end());
  for (size_t i = 0; i < body.inputs.size() && i < body.outputs.size(); ++i) {
    auto found = returns.find(body.outputs[i].name);
    same[i] = found != returns.end() && found->second == body.inputs[i].name;
  }
  return same;
}

/// The parts of a While: values that change come first, the others are captured.
class Loop {
 public:
  explicit Loop(OpContext& c) : c_(c), cond_(c.function("cond")), body_(c.function("body")) {
    const FunctionDef& body = c.importer().find_function(body_);
    if (body.inputs.size() != c.in.size() || body.outputs.size() != c.in.size())
      fail(ErrorKind::invalid_model, "", "carries {} values, its body takes {} and gives {}", c.in.size(),
           body.inputs.size(), body.outputs.size());
    same_ = unchanged(body);
    for (size_t i = 0; i < c.in.size(); ++i) {
      if (same_[i]) {
        captured_.push_back(c.in[i]);
      } else {
        carried_.push_back(c.in[i]);
        types_.push_back(c.in[i]->type);
      }
    }
  }

  std::vector<Value*> run() {
    // The types of carried values are what holds for the start and after any round: widen until nothing changes.
    constexpr int kMostRounds = 16;
    for (int round = 0; round < kMostRounds; ++round) {
      auto condition = region(cond_, true);
      auto body = region(body_, false);
      std::vector<Type> wider;
      for (size_t i = 0; i < types_.size(); ++i) wider.push_back(joined_type(types_[i], body->results[i]->type, i));
      if (wider == types_) return finish(std::move(condition), std::move(body));
      types_ = std::move(wider);
    }
    fail(ErrorKind::unsupported, "", "the shapes of its values do not settle");
  }

 private:
  std::unique_ptr<Block> region(std::string_view function, bool condition) {
    auto block = std::make_unique<Block>();
    std::vector<Value*> carried, captured;
    for (size_t i = 0; i < types_.size(); ++i) carried.push_back(block->add_param(types_[i], carried_[i]->name));
    Captures(captured_).enter(*block, captured);
    Builder builder(*block);
    std::vector<Value*> args;
    size_t next_carried = 0, next_captured = 0;
    for (bool same : same_) args.push_back(same ? captured[next_captured++] : carried[next_carried++]);
    std::vector<Value*> results = c_.importer().import_function(function, args, builder, c_.name(), c_.level() + 1);
    if (condition) {
      if (results.size() != 1) fail(ErrorKind::invalid_model, "", "the condition gives {} values", results.size());
      block->results = {truth(results[0], builder)};
    } else {
      for (size_t i = 0; i < results.size(); ++i)
        if (!same_[i]) block->results.push_back(results[i]);
    }
    return block;
  }

  std::vector<Value*> finish(std::unique_ptr<Block> condition, std::unique_ptr<Block> body) {
    std::vector<Value*> inputs = carried_;
    for (Value* input : Captures(captured_).inputs()) inputs.push_back(input);
    std::vector<std::unique_ptr<Block>> regions;
    regions.push_back(std::move(condition));
    regions.push_back(std::move(body));
    auto* made = c_.b.add_node(op_named("while"), std::move(inputs),
                               {{"carried", static_cast<int64_t>(carried_.size())}}, std::move(regions));
    std::vector<Value*> out;
    size_t next = 0;
    for (size_t i = 0; i < same_.size(); ++i) out.push_back(same_[i] ? c_.in[i] : made->result(next++));
    return out;
  }

  OpContext& c_;
  std::string_view cond_, body_;
  std::vector<bool> same_;
  std::vector<Value*> carried_, captured_;
  std::vector<Type> types_;
};

void loop(OpContext& c) {
  c.out = Loop(c).run();
}

/// The element shape that an input tells: a vector with -1 for unknown dims, or a scalar -1 for unknown rank.
Shape element_shape(OpContext& c, size_t input) {
  const Tensor* tensor = constant_of(c.in[input]);
  if (tensor == nullptr || tensor->rank() != 1) {
    const Shape& own = c.in[input]->type.shape;
    if (tensor == nullptr && own.known() && own.rank() == 1)
      return Shape(std::vector<Dim>(own.sizes()[0] > 64 ? 0 : own.sizes()[0]));
    return Shape::unranked();
  }
  std::vector<Dim> dims;
  for (int64_t size : tensor->as_i64()) dims.push_back(size < 0 ? Dim() : Dim(size));
  return Shape(std::move(dims));
}

void list_reserve(OpContext& c) {
  c.expect_inputs(2);
  Type element = Type::tensor(c.dtype("element_dtype"), element_shape(c, 0));
  bool empty = c.node().op == "EmptyTensorList";
  Value* size = empty ? c.b.constant(Tensor::scalar_i64(0)) : c.in[1];
  c.out = {c.b.add("list_make", {size}, {{"element", element}})};
}

void list_plain(OpContext& c) {
  c.out = {c.b.add(c.target, c.in)};
}

void list_set(OpContext& c) {
  c.expect_inputs(3);
  if (c.boolean("resize_if_index_out_of_bounds", false)) c.refuse("lists that grow on writing are not supported");
  list_plain(c);
}

/// What the list says of its elements, and what the node says.
Type element_type(OpContext& c, size_t shape_input) {
  const Type& list = c.in[0]->type;
  if (list.kind != Type::Kind::list)
    fail(ErrorKind::invalid_model, "", "input 0 is {}, expected a list", to_string(list));
  Type told = Type::tensor(c.dtype("element_dtype"), element_shape(c, shape_input));
  if (!compatible(told, list.elements[0]))
    fail(ErrorKind::invalid_model, "", "elements are {}, told {}", to_string(list.elements[0]), to_string(told));
  return meet(list.elements[0], told);
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

void list_length(OpContext& c) {
  c.expect_inputs(1);
  c.out = {cast_to(c.b.add("list_size", c.in), kI32, c.b)};
}

constexpr Row kRows[] = {
    {"EmptyTensorList", list_reserve},
    {"If", branch_of_two},
    {"PartitionedCall", call},
    {"StatefulPartitionedCall", call},
    {"StatelessIf", branch_of_two},
    {"StatelessWhile", loop},
    {"TensorListFromTensor", list_unstack},
    {"TensorListGetItem", list_get},
    {"TensorListLength", list_length},
    {"TensorListPushBack", list_plain, "list_push"},
    {"TensorListReserve", list_reserve},
    {"TensorListSetItem", list_set, "list_set"},
    {"TensorListStack", list_stack},
    {"While", loop},
};

}  // namespace

std::span<const Row> control_rows() {
  return kRows;
}

}  // namespace cairn::tensorflow
