// Branches and loops, whose graphs see the names around them, and lists, which are sequences of tensors.
#include "export/rows.h"
#include "frontends/onnx/model.h"

namespace cairn::onnx_export {

namespace {

std::vector<Name> all_inputs(const Context& c) {
  std::vector<Name> names;
  for (const Value* input : c.node.inputs) names.push_back(c.graph.plain(input));
  return names;
}

std::vector<Port> ports(const std::vector<Name>& names, const Block& block) {
  std::vector<Port> all;
  for (size_t i = 0; i < names.size(); ++i) all.emplace_back(names[i], &block.results[i]->type);
  return all;
}

void set_results(const Context& c, const std::vector<Name>& names) {
  for (size_t i = 0; i < names.size(); ++i) c.graph.set(c.node.result(i), names[i]);
}

bool is_written(const Type& type) {
  if (type.kind == Type::Kind::list) return type.elements[0].is_tensor() && is_written(type.elements[0]);
  return type.is_tensor() && onnx::type_of(type.dtype) != onnx::kUndefined;
}

/// Whether all that goes in and out are tensors and lists of these.
bool passes_tensors(const Node& node) {
  const auto fits = [](const auto& value) { return is_written(value->type); };
  return std::all_of(node.inputs.begin(), node.inputs.end(), fits) &&
         std::all_of(node.results.begin(), node.results.end(), fits);
}

void branch(const Context& c) {
  const std::vector<Name> inputs = all_inputs(c), captures(inputs.begin() + 1, inputs.end());
  const auto within = [&](const Block& region) {
    Graph graph(c.graph);
    const std::vector<Name> results = write_block(graph, region, captures);
    return graph.within({}, ports(results, region));
  };
  const Settings settings = {{"then_branch", within(*c.node.regions[0])}, {"else_branch", within(*c.node.regions[1])}};
  set_results(c, c.graph.add("If", {inputs[0]}, settings, c.node.results.size()));
}

// The condition is computed before the loop and at the end of each turn.
void loop(const Context& c) {
  static const Type kTurn = Type::tensor(kI64, Shape()), kGoesOn = Type::tensor(kBool, Shape());
  const Block &condition = *c.node.regions[0], &body = *c.node.regions[1];
  const auto carried = static_cast<size_t>(c.attr().integer("carried"));
  std::vector<Name> names = all_inputs(c), starts = {"", write_block(c.graph, condition, names)[0]};
  starts.insert(starts.end(), names.begin(), names.begin() + static_cast<std::ptrdiff_t>(carried));
  c.graph.begin(c.node);
  Graph graph(c.graph);
  std::vector<Port> inputs = {{graph.unique("turn"), &kTurn}, {graph.unique("goes_on"), &kGoesOn}};
  for (size_t i = 0; i < carried; ++i) {
    names[i] = graph.unique(names[i] + "/carried");
    inputs.emplace_back(names[i], &body.params[i]->type);
  }
  const std::vector<Name> next = write_block(graph, body, names);
  std::copy(next.begin(), next.end(), names.begin());
  std::vector<Port> results = {{write_block(graph, condition, names)[0], &kGoesOn}};
  for (const Port& port : ports(next, body)) results.push_back(port);
  set_results(c, c.graph.add("Loop", starts, {{"body", graph.within(inputs, results)}}, carried));
}

bool plain_access(const Node& node) {
  const auto is_set = [&](const char* flag) { return node.op->find_attribute(flag) && node.attr().boolean(flag); };
  return passes_tensors(node) && !is_set("grow") && !is_set("add");
}

// Each element of a sequence is a tensor: unset ones are zeros, whose unknown dims are 1.
void list_make(const Context& c) {
  const Type& element = c.type().elements[0];
  const Tensor* size = constant_of(c.value(0));
  if (size && size->as_i64()[0] == 0)
    return c.out(c.one("SequenceEmpty", {}, {{"dtype", int64_t{onnx::type_of(element.dtype)}}}));
  std::vector<int64_t> dims;
  for (const Dim& dim : element.shape.dims) dims.push_back(dim.known() ? dim.size : 1);
  const Name count = c.one("Reshape", {c.i64(0), c.graph.ints({1})});
  const Name shape = c.one("Concat", {count, c.graph.ints(dims)}, {{"axis", int64_t{0}}});
  const Name zeros = c.one("Expand", {c.graph.number(0, element.dtype), shape});
  c.out(c.one("SplitToSequence", {zeros}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}));
}

void list_get(const Context& c) { c.out(c.one("SequenceAt", {c.in(0), c.i64(1)})); }

void list_set(const Context& c) {
  c.out(c.one("SequenceInsert", {c.one("SequenceErase", {c.in(0), c.i64(1)}), c.in(2), c.i64(1)}));
}

void list_pop(const Context& c) {
  c.out(c.one("SequenceErase", {c.in(0)}), 0);
  c.out(c.one("SequenceAt", {c.in(0), c.graph.constant(Tensor::scalar_i64(-1))}), 1);
}

void list_stack(const Context& c) {
  c.out(c.one("ConcatFromSequence", {c.in(0)}, {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}}));
}

void list_concat(const Context& c) { c.out(c.one("ConcatFromSequence", {c.in(0)}, {{"axis", int64_t{0}}})); }

void list_unstack(const Context& c) {
  c.out(c.one("SplitToSequence", {c.in(0)}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}));
}

void list_split(const Context& c) { c.out(c.one("SplitToSequence", {c.in(0), c.i64(1)}, {{"axis", int64_t{0}}})); }

constexpr Row kControlRows[] = {{"if", branch, nullptr, passes_tensors},
                                {"while", loop, nullptr, passes_tensors},
                                {"list_make", list_make, nullptr, passes_tensors},
                                {"list_get", list_get, nullptr, plain_access},
                                {"list_set", list_set, nullptr, plain_access},
                                {"list_push", nullptr, "SequenceInsert", passes_tensors},
                                {"list_pop", list_pop, nullptr, passes_tensors},
                                {"list_size", nullptr, "SequenceLength", passes_tensors},
                                {"list_stack", list_stack, nullptr, passes_tensors},
                                {"list_unstack", list_unstack, nullptr, passes_tensors},
                                {"list_concat", list_concat, nullptr, passes_tensors},
                                {"list_split", list_split, nullptr, passes_tensors}};

}  // namespace

std::span<const Row> control_rows() { return kControlRows; }

}  // namespace cairn::onnx_export
