#include "engines/cpu/groups.h"

#include <algorithm>
#include <unordered_set>

#include "engines/cpu/attention.h"
#include "ops/shapes.h"

namespace cairn {

namespace {

constexpr size_t kMostNodes = 24;  // of one element-wise program: its registers are tiles in the first-level cache

bool is_f32(const Value* value) { return value->type.is_static() && value->type.dtype == kF32; }

bool is_add(const Node& node) { return node.is("add") && is_f32(node.result()); }

bool is_activation(const Node& node) { return (node.is("relu") || node.is("clip")) && is_f32(node.result()); }

const Value* other_operand(const Node& node, const Value* one) { return node.inputs[node.inputs[0] == one ? 1 : 0]; }

// A constant that adds the same number to every element of a channel.
bool is_bias(const Value* value, const Type& result) {
  if (!constant_of(value) || !is_f32(value) || result.shape.rank() == 0) return false;
  const auto& dims = value->type.shape.dims;
  if (dims.empty() || dims.size() > result.shape.rank() || dims.back() != result.shape.dims.back()) return false;
  return std::all_of(dims.begin(), dims.end() - 1, [](const Dim& dim) { return dim.size == 1; });
}

bool is_residual(const Value* value, const Type& result) { return value->type == result && !constant_of(value); }

// Extends the epilogue by the node when its place (bias, residual, activation) is still free.
bool extend(Contraction& contraction, const Node& node, const Value* current) {
  Epilogue& epilogue = contraction.epilogue;
  if (epilogue.activation) return false;
  if (is_activation(node)) {
    epilogue.activation = &node;
    return true;
  }
  if (!is_add(node) || node.inputs[0] == node.inputs[1] || node.result()->type != current->type) return false;
  const Value* operand = other_operand(node, current);
  if (!epilogue.bias && !epilogue.residual && is_bias(operand, current->type)) {
    epilogue.bias = operand;
    return true;
  }
  if (!epilogue.residual && is_residual(operand, current->type)) {
    epilogue.residual = operand;
    return true;
  }
  return false;
}

class Proposer {
 public:
  Proposer(const Block& block, const Uses& uses) : block_(block), uses_(uses) {}

  std::vector<Group> run() {
    for (const auto& node : block_.nodes)
      if (node->is("softmax") && node->result()->type.is_static()) attention(*node);
    // From the back: of two contractions that meet in an addition the later one takes it, and reads the earlier's result.
    for (auto node = block_.nodes.rbegin(); node != block_.nodes.rend(); ++node)
      if ((*node)->op->has(kContraction) && is_f32((*node)->result())) contraction(**node);
    for (const auto& node : block_.nodes)
      if (!taken_.count(node.get()) && elementwise(*node)) chain(*node);
    return std::move(groups_);
  }

 private:
  void take(std::vector<const Node*> nodes) {
    taken_.insert(nodes.begin(), nodes.end());
    groups_.push_back(make_group(std::move(nodes), uses_));
  }

  void attention(const Node& softmax) {
    const auto sole_user = [&](const Value* value) {
      return uses_.single(value) ? uses_.users(value).front() : nullptr;
    };
    const auto joins = [&](const Node* node) { return !taken_.count(node); };
    const std::vector<const Node*> found = find_attention(softmax, {sole_user, joins});
    if (found.empty()) return;
    std::vector<const Node*> nodes;  // in program order
    for (const auto& node : block_.nodes)
      if (std::find(found.begin(), found.end(), node.get()) != found.end()) nodes.push_back(node.get());
    if (nodes.size() == found.size() && !refuses_attention(make_group(nodes, uses_))) take(std::move(nodes));
  }

  void contraction(const Node& node) {
    if (taken_.count(&node)) return;
    Contraction contraction{&node, {}};
    std::vector<const Node*> nodes{&node};
    const Value* current = node.result();
    while (uses_.single(current)) {
      const Node* next = uses_.users(current).front();
      if (taken_.count(next) || !extend(contraction, *next, current)) break;
      // A residual made later than the contraction is fine: the group runs where its last node stands.
      nodes.push_back(next);
      current = next->result();
    }
    take(std::move(nodes));
  }

  static bool elementwise(const Node& node) {
    if (!node.op->has(kElementwise) || !node.op->pure() || node.results.size() != 1) return false;
    auto fits = [](const Value* value) {
      return value->type.is_static() && (value->type.dtype == kF32 || value->type.dtype == kBool);
    };
    return fits(node.result()) && std::all_of(node.inputs.begin(), node.inputs.end(), fits) && node.inputs.size() > 0;
  }

  // Follows single uses from the node while the shape stays: what meets on the way is computed on the same tile.
  void chain(const Node& first) {
    std::vector<const Node*> nodes{&first};
    const Value* current = first.result();
    while (nodes.size() < kMostNodes && uses_.single(current)) {
      const Node* next = uses_.users(current).front();
      if (taken_.count(next) || !elementwise(*next) || next->result()->type.shape != current->type.shape) break;
      nodes.push_back(next);
      current = next->result();
    }
    while (nodes.size() > 1 && nodes.back()->result()->type.dtype != kF32) nodes.pop_back();
    if (nodes.back()->result()->type.dtype == kF32) take(std::move(nodes));
  }

  const Block& block_;
  const Uses& uses_;
  std::unordered_set<const Node*> taken_;
  std::vector<Group> groups_;
};

}  // namespace

size_t index_of(const Group& group, const Value* value) {
  return static_cast<size_t>(std::find(group.inputs.begin(), group.inputs.end(), value) - group.inputs.begin());
}

std::optional<std::string> not_f32(const Group& group) {
  for (const Value* value : group.inputs)
    if (value->type.dtype != kF32) return fmt::format("input is {}, takes f32", to_string(value->type.dtype));
  for (const Value* value : group.outputs)
    if (value->type.dtype != kF32) return fmt::format("result is {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

Activation activation_of(const Epilogue& epilogue) {
  if (!epilogue.activation) return {};
  if (epilogue.activation->is("relu")) return {Activation::Kind::relu, 0, 0};
  const auto attr = epilogue.activation->attr();
  return {Activation::Kind::clip, static_cast<float>(attr.number("low")), static_cast<float>(attr.number("high"))};
}

SlideSpec slide_of(const Node& node, const Value* x, const Value* y, int64_t kh, int64_t kw) {
  const WindowSpec rows = window_spec(node.attr(), kh, 0), columns = window_spec(node.attr(), kw, 1);
  SlideSpec spec;
  spec.n = dim(x, 0), spec.h = dim(x, 1), spec.w = dim(x, 2), spec.channels = dim(x, 3);
  spec.oh = dim(y, 1), spec.ow = dim(y, 2), spec.kh = kh, spec.kw = kw;
  spec.stride_h = rows.stride, spec.stride_w = columns.stride;
  spec.dilation_h = rows.dilation, spec.dilation_w = columns.dilation;
  spec.pad_top = rows.padding_before(spec.h, spec.oh), spec.pad_left = columns.padding_before(spec.w, spec.ow);
  // How far windows may reach beyond the image and still count: explicit padding has an end, "same" has what it needs.
  const bool ends = rows.padding == "explicit" || rows.padding == "valid";
  spec.pad_bottom = ends ? rows.after : rows.reach(), spec.pad_right = ends ? columns.after : columns.reach();
  return spec;
}

std::vector<Group> propose_groups(const Block& block, const Uses& uses) { return Proposer(block, uses).run(); }

std::optional<Contraction> as_contraction(const Group& group) {
  const Node& first = *group.nodes.front();
  if (!first.op->has(kContraction) || group.outputs.size() != 1) return std::nullopt;
  Contraction contraction{&first, {}};
  const Value* current = first.result();
  for (size_t i = 1; i < group.nodes.size(); ++i) {
    if (!extend(contraction, *group.nodes[i], current)) return std::nullopt;
    current = group.nodes[i]->result();
  }
  return group.outputs[0] == current ? std::optional(contraction) : std::nullopt;
}

bool is_elementwise(const Group& group) {
  return std::all_of(group.nodes.begin(), group.nodes.end(),
                     [](const Node* node) { return node->op->has(kElementwise) && node->results.size() == 1; }) &&
         std::all_of(group.outputs.begin(), group.outputs.end(), [&](const Value* output) {
           return output->type == group.outputs[0]->type && output->type.dtype == kF32;
         });
}

}  // namespace cairn
