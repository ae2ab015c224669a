#include "export/onnx.h"

#include "export/matrices.h"
#include "export/rows.h"
#include "frontends/onnx/model.h"
#include "ir/builder.h"
#include "ir/evaluate.h"
#include "passes/pipeline.h"

namespace cairn {

namespace onnx_export {

Name Context::cast(const Name& name, DType dtype) const {
  if (onnx::type_of(dtype) == onnx::kUndefined)
    fail(ErrorKind::unsupported, node.op->name, "{} is no type of ONNX", to_string(dtype));
  return one("Cast", {name}, {{"to", int64_t{onnx::type_of(dtype)}}});
}

Name Context::in(size_t i) const {
  const Value* x = value(i);
  if (!first || x->type.shape.rank() == 0) return graph.plain(x);
  const size_t rank = type().shape.rank();
  if (x->type.shape.rank() == rank) return graph.channels_first(x);
  const Tensor& constant = *constant_of(x);  // of fewer dims, which takes_channels_first() has seen
  std::vector<int64_t> dims(rank - constant.rank(), 1);
  dims.insert(dims.end(), constant.dims().begin(), constant.dims().end());
  return graph.constant(evaluate("transpose", {constant.reshaped(dims)}, {{"permutation", to_channels_first(rank)}}));
}

Name Context::i64(size_t i) const {
  const Value* x = value(i);
  if (x->type.dtype == kI64) return graph.plain(x);
  if (const Tensor* constant = constant_of(x))
    return graph.constant(Tensor::of(kI64, constant->dims(), constant->as_i64()));
  return cast(graph.plain(x), kI64);
}

void Context::out(Name name, size_t i) const {
  if (first)
    graph.set_channels_first(node.result(i), std::move(name));
  else
    graph.set(node.result(i), std::move(name));
}

const Row* row_for(const Node& node) {
  for (const auto rows : {element_rows(), array_rows(), window_rows(), control_rows(), random_rows(), tree_rows()})
    for (const Row& row : rows)
      if (row.op == node.op->name) return !row.fits || row.fits(node) ? &row : nullptr;
  return nullptr;
}

bool takes_channels_first(const Node& node, const Graph& graph) {
  const bool moves = node.is("pad") || node.is("concat");
  if (!(node.op->has(kElementwise) || moves) || node.results.size() != 1) return false;
  const Shape& shape = node.result()->type.shape;
  if (!shape.ranked || shape.rank() < 3) return false;
  if (node.is("pad") && !constant_of(node.inputs[1])) return false;
  bool wanted = false;
  for (size_t i = 0; i < (node.is("pad") ? 1 : node.inputs.size()); ++i) {
    const Value* input = node.inputs[i];
    const Shape& own = input->type.shape;
    if (!own.ranked || (own.rank() != 0 && own.rank() != shape.rank() && !constant_of(input))) return false;
    wanted |= graph.only_channels_first(input);
  }
  return wanted;
}

namespace {

/// A search for floats by their bits becomes one for the floats, whose row in turn reads the keys as floats.
void search_floats(Node& search) {
  const Node* made = search.inputs[2]->producer;
  if (!made || !made->is("bitcast")) return;
  const DType floats = made->inputs[0]->type.dtype;
  if (floats.is_float() && floats.bits == search.inputs[2]->type.dtype.bits) search.inputs[2] = made->inputs[0];
}

/// Nodes without a row become what they decompose into; returns whether there were any.
bool expand(Block& body) {
  bool any = false;
  auto nodes = std::move(body.nodes);
  body.nodes.clear();
  Builder builder(body);
  std::unordered_map<const Value*, Value*> replaced;
  std::vector<std::unique_ptr<Node>> gone;
  const auto renew = [&](std::vector<Value*>& values) {
    for (Value*& value : values)
      if (const auto found = replaced.find(value); found != replaced.end()) value = found->second;
  };
  for (auto& node : nodes) {
    renew(node->inputs);
    for (auto& region : node->regions) any |= expand(*region);
    if (node->is("find_key")) search_floats(*node);
    const bool written = node->is("constant") || row_for(*node);
    builder.sources = node->sources;
    std::vector<Value*> made;
    if (!written) made = node->op->decompose ? node->op->decompose(builder, *node) : by_elimination(builder, *node);
    if (made.empty()) {
      body.nodes.push_back(std::move(node));
      continue;
    }
    for (size_t i = 0; i < made.size(); ++i) replaced[node->result(i)] = made[i];
    gone.push_back(std::move(node));
  }
  renew(body.results);
  return any || !gone.empty();
}

void refuse_unknown(const Module& module) {
  std::map<std::string, std::string> first;  // place by operator
  size_t count = 0;
  for_each_block(module.main().body, [&](const Block& block) {
    for (const auto& node : block.nodes)
      if (!node->is("constant") && !row_for(*node)) first.try_emplace(node->op->name, where(module, *node)), ++count;
  });
  if (count == 0) return;
  std::vector<std::string> list;
  for (const auto& [op, place] : first) list.push_back(fmt::format("{} ({})", op, place));
  fail(ErrorKind::unsupported, "", "{} operators have no counterpart in ONNX: {}", count, fmt::join(list, ", "));
}

void write_nodes(Graph& graph, const Block& block) {
  for (const auto& node : block.nodes) {
    if (node->is("constant")) continue;
    graph.begin(*node);
    const Row& row = *row_for(*node);
    const Context context{*node, graph, takes_channels_first(*node, graph)};
    if (!row.same) {
      row.write(context);
      continue;
    }
    std::vector<Name> inputs;
    for (size_t i = 0; i < node->inputs.size(); ++i) inputs.push_back(context.in(i));
    context.out(context.one(row.same, inputs));
  }
}

}  // namespace

std::vector<Name> write_block(Graph& graph, const Block& block, const std::vector<Name>& params) {
  for (size_t i = 0; i < params.size(); ++i) graph.set(block.params[i].get(), params[i]);
  write_nodes(graph, block);
  std::vector<Name> results;
  for (const Value* result : block.results) results.push_back(graph.plain(result));
  return results;
}

}  // namespace onnx_export

OnnxModel onnx_of(const Module& given, const std::string& data_file, bool external) {
  using namespace onnx_export;
  Module module = clone(given);
  // What is quantised stays so: ONNX's way of writing it is that of the rows.
  optimise(module, {.disabled = {"product_of_dequantised", "dequantize_constants"}});
  constexpr int kDeepest = 4;
  for (int depth = 0; depth < kDeepest && expand(module.main().body); ++depth)
    fold_constants(module.main().body, &module);
  remove_dead(module.main().body, &module);
  refuse_unknown(module);
  Graph graph(module);
  write_nodes(graph, module.main().body);
  return graph.model(data_file, external);
}

}  // namespace cairn
