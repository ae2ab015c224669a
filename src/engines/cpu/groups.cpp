#include "engines/cpu/groups.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "engines/cpu/activated.h"
#include "engines/cpu/attention.h"
#include "engines/cpu/batch_norm.h"
#include "engines/cpu/doubles.h"
#include "engines/cpu/integers.h"
#include "engines/cpu/moving.h"
#include "engines/cpu/planes.h"
#include "engines/cpu/program.h"
#include "engines/cpu/row_slices.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/separable.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/training.h"
#include "engines/cpu/updated_gradient.h"
#include "ops/shapes.h"

namespace cairn {

namespace {

// Bounds of one element-wise program, whose virtual registers are tiles in the first-level cache. Nodes are counted without casts, which
// mixed precision puts behind each of them; instructions with these.
constexpr size_t kMostNodes = 48, kMostInputs = 16;
constexpr size_t kMostInstructions = ElementwiseProgram::kMostRegisters - kMostInputs;

bool is_float(const Value* value) {
  const DType dtype = value->type.dtype;
  return value->type.is_static() && (dtype == kF32 || dtype == kF16 || dtype == kBF16);
}

bool is_add(const Node& node) { return node.is("add") && is_float(node.result()); }

bool is_activation(const Node& node) { return (node.is("relu") || node.is("clip")) && is_float(node.result()); }

const Value* other_operand(const Node& node, const Value* one) { return node.inputs[node.inputs[0] == one ? 1 : 0]; }

// Whether adding the value adds the same number to all elements of a channel.
bool is_bias(const Value* value, const Type& result) {
  if (!is_float(value) || result.shape.rank() == 0) return false;
  const auto& dims = value->type.shape.dims;
  if (dims.empty() || dims.size() > result.shape.rank() || dims.back() != result.shape.dims.back()) return false;
  return std::all_of(dims.begin(), dims.end() - 1, [](const Dim& dim) { return dim.size == 1; });
}

bool is_residual(const Value* value, const Type& result) {
  return is_float(value) && value->type.shape == result.shape && !constant_of(value);
}

// Passes a cast of the result to 16 bits, or back to f32.
bool extend_by_cast(Contraction& contraction, const Node& node) {
  Epilogue& epilogue = contraction.epilogue;
  const DType to = node.result()->type.dtype;
  if (to == kF32 ? !is_narrow(contraction.result->type.dtype) : !is_narrow(to)) return false;
  if (to == kF32) return true;
  if (epilogue.low != kF32 && epilogue.low != to) return false;
  epilogue.low = to;
  return epilogue.rounded = true;
}

// Adds the node to the epilogue as bias, residual or activation, if that is still free.
bool extend(Contraction& contraction, const Node& node) {
  const Value* current = contraction.result;
  Epilogue& epilogue = contraction.epilogue;
  if (node.is("cast")) return extend_by_cast(contraction, node);
  if (epilogue.activation || node.results.size() != 1 || node.result()->type != current->type) return false;
  if (is_activation(node)) {
    epilogue.activation = &node;
    return true;
  }
  if (!is_add(node) || node.inputs[0] == node.inputs[1]) return false;
  const Value* operand = other_operand(node, current);
  if (!epilogue.bias && !epilogue.residual && is_bias(operand, current->type)) {
    epilogue.bias = operand;
    epilogue.rounds_sum = epilogue.rounded;
  } else if (!epilogue.residual && is_residual(operand, current->type)) {
    epilogue.residual = operand;
    epilogue.rounds_biased = epilogue.rounded;
  } else {
    return false;
  }
  epilogue.rounded = is_narrow(node.result()->type.dtype);
  return true;
}

Contraction begin_with(const Node& node) {
  Contraction begun{&node, {}, node.result(0)};
  if (is_narrow(begun.result->type.dtype)) begun.epilogue.low = begun.result->type.dtype, begun.epilogue.rounded = true;
  return begun;
}

std::optional<Contraction> read_epilogue(const Group& group, size_t start = 0) {
  const Node& first = *group.nodes[start];
  Contraction found = begin_with(first);
  for (size_t i = start + 1; i < group.nodes.size(); ++i) {
    const Node& node = *group.nodes[i];
    if ((is_widening(node) || is_rounding(node)) && node.inputs[0] != found.result) continue;  // of another operand
    if (!extend(found, node)) return std::nullopt;
    found.result = node.result();
  }
  if (found.epilogue.low != kF32 && found.result->type.dtype != found.epilogue.low) return std::nullopt;
  return found;
}

// The first node that neither rounds nor widens an operand.
size_t start_of(const Group& group) {
  size_t start = 0;
  const auto converts = [](const Node& node) { return is_widening(node) || is_rounding(node); };
  while (start + 1 < group.nodes.size() && converts(*group.nodes[start])) ++start;
  return start;
}

// The nodes of a block by position, and the positions of their users.
class Places {
 public:
  Places(const Block& block, const Uses& uses) : nodes_(block.nodes) {
    for (const auto& node : block.nodes) place_.emplace(node.get(), place_.size());
    users_.resize(place_.size());
    for (const auto& node : block.nodes)
      for (const auto& result : node->results)
        for (const Node* user : uses.users(result.get())) users_[of(*node)].push_back(of(*user));
  }
  size_t of(const Node& node) const { return place_.at(&node); }
  const Node* at(size_t place) const { return nodes_[place].get(); }
  size_t count() const { return users_.size(); }
  const std::vector<size_t>& users(size_t place) const { return users_[place]; }

 private:
  const std::vector<std::unique_ptr<Node>>& nodes_;
  std::unordered_map<const Node*, size_t> place_;
  std::vector<std::vector<size_t>> users_;
};

class Proposer {
 public:
  Proposer(const Block& block, const Uses& uses, Refuses refuses)
      : block_(block), uses_(uses), refuses_(refuses), places_(block, uses), group_(places_.count(), kNone),
        lowest_(places_.count()), seen_(places_.count(), 0) {
    std::iota(lowest_.begin(), lowest_.end(), size_t{0});
  }

  std::vector<Group> run() {
    for (const auto& node : block_.nodes)
      if (node->is("softmax") && node->result()->type.is_static()) attention(*node);
    for (const auto& node : block_.nodes)
      if (node->is("conv2d") && node->result()->type.is_static() && is_depthwise(*node)) separable(*node);
    for (const auto& node : block_.nodes)
      if ((node->is("conv2d") || node->is("matmul")) && is_float(node->result()) && !taken(*node)) activated(*node);
    for (const auto& node : block_.nodes)
      if (!node->results.empty() && !taken(*node) && makes_weight_gradient(*node)) updated(*node);
    // In reverse order: when two contractions feed one addition, the later one takes it as epilogue and reads the
    // result of the earlier one.
    for (auto node = block_.nodes.rbegin(); node != block_.nodes.rend(); ++node) {
      const bool pools = is_pooling(**node) && is_float((*node)->result()) && !casts_for(**node).empty();
      if (pools || takes_epilogue(**node)) extended(**node);
      if (is_integer_contraction(**node)) integers(**node);
      if (((*node)->op->has(kReduction) || (*node)->is("layer_norm")) && (*node)->results.size() == 1)
        with_casts(**node);
    }
    for (const auto& node : block_.nodes)
      if (node->is("batch_norm_gradient")) gated(*node);
    for (const auto& node : block_.nodes)
      if (auto nodes = gated_pool_gradient(*node, uses_); !nodes.empty()) taken_where_right(in_order(std::move(nodes)));
    for (auto node = block_.nodes.rbegin(); node != block_.nodes.rend(); ++node)
      if (!taken(**node) && !(*node)->results.empty() && is_float((*node)->result(0))) row_chain(**node);
    for (const auto& node : block_.nodes) normalisation(*node);
    for (auto node = block_.nodes.rbegin(); node != block_.nodes.rend(); ++node)
      if (!taken(**node) && ElementwiseProgram::takes(**node) && (*node)->result()->type.dtype != kBool) region(**node);
    for (auto node = block_.nodes.rbegin(); node != block_.nodes.rend(); ++node)
      if (!(*node)->results.empty() && (*node)->result(0)->type.dtype == kF64 && !taken(**node) &&
          takes_doubles(**node))
        if (auto nodes = same_shape(**node, takes_doubles); nodes.size() > 1)
          taken_where_right(in_order(std::move(nodes)));
    for (const auto& node : block_.nodes)
      if (auto nodes = find_planes(*node, uses_); !nodes.empty()) taken_where_right(std::move(nodes));
    for (const auto& node : block_.nodes)
      if (node->is("concat") && node->result()->type.is_static()) joined(*node);
    return std::move(groups_);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  bool taken(const Node& node) const { return group_[places_.of(node)] != kNone; }

  void take(Group group) {
    size_t first = kNone, last = 0;
    for (const Node* node : group.nodes) {
      const size_t place = places_.of(*node);
      group_[place] = groups_.size();
      first = std::min(first, place);
      last = std::max(last, place);
    }
    for (; last > first && lowest_[last] > first; --last) lowest_[last] = first;
    groups_.push_back(std::move(group));
  }

  void attention(const Node& softmax) {
    const auto sole_user = [&](const Value* value) {
      return uses_.single(value) ? uses_.users(value).front() : nullptr;
    };
    const auto joins = [&](const Node* node) { return !taken(*node); };
    std::vector<const Node*> nodes = find_attention(softmax, {sole_user, joins});
    if (nodes.empty()) return;
    Group group = make_group(in_order(std::move(nodes)), uses_);
    if (!refuses_attention(group)) take(std::move(group));
  }

  // Whether the other operand of an addition is computed by an element-wise chain for this addition only: then the
  // addition is better fused with that chain (as in an optimiser's update).
  bool reads_chain(const Node& node, const Value* current) const {
    if (!is_add(node)) return false;
    const Value* other = other_operand(node, current);
    if (other->producer && is_widening(*other->producer)) other = other->producer->inputs[0];
    return other->producer && uses_.single(other) && other->type.shape == current->type.shape &&
           !taken(*other->producer) && ElementwiseProgram::takes(*other->producer);
  }

  static bool takes_epilogue(const Node& node) {
    return (node.op->has(kContraction) || node.is("batch_norm_training") || node.is("batch_norm")) &&
           is_float(node.result(0));
  }

  /// The casts around a contraction that join its group.
  enum class Casts : uint8_t { none, widening, rounding };

  // The node, casts of its operands, and all that follows it that can become its epilogue.
  struct Extended {
    std::vector<const Node*> nodes;
    size_t least = 0;  // of the nodes, without any epilogue
    const Value* result = nullptr;
  };
  Extended with_epilogue(const Node& node, Casts casts_taken) const {
    const bool with_casts = casts_taken != Casts::none;
    Contraction found = begin_with(node);
    std::vector<const Node*> nodes;
    if (with_casts) nodes = casts_for(node);
    if (const Node* rounding = casts_taken == Casts::rounding ? rounding_for(node) : nullptr) nodes.push_back(rounding);
    nodes.push_back(&node);
    const size_t least = nodes.size();
    while (uses_.single(found.result)) {
      const Node* next = uses_.users(found.result).front();
      if (taken(*next) || reads_chain(*next, found.result) || (next->is("cast") && !with_casts)) break;
      std::vector<const Node*> casts;
      if (with_casts) casts = casts_for(*next);
      if (!extend(found, *next)) break;
      // The residual may be computed after the contraction: the group runs at the position of its last node.
      for (const Node* cast : casts)
        if (!contains(nodes, cast) && cast != next && cast->result() != found.result) nodes.push_back(cast);
      nodes.push_back(next);
      found.result = next->result();
    }
    return {std::move(nodes), least, found.result};
  }

  // Groups the node with the longest epilogue that a kernel takes.
  void extended(const Node& node, Casts casts_taken = Casts::rounding) {
    if (taken(node)) return;
    auto [nodes, least, result] = with_epilogue(node, casts_taken);
    if (const Node* pool = pooling_after(result)) {
      nodes.push_back(pool);
      if (take_longest(nodes, nodes.size())) return;
      nodes.pop_back();
    }
    if (const Node* stored = stored_operand(node)) {
      nodes.insert(nodes.begin(), stored);
      if (take_longest(nodes, least + 1)) return;
      nodes.erase(nodes.begin());
    }
    if (take_longest(nodes, least) || casts_taken == Casts::none) return;
    const bool rounds = casts_taken == Casts::rounding && rounding_for(node);
    extended(node, rounds ? Casts::widening : Casts::none);
  }

  // Groups a reduction or normalisation with the casts around it, or with what makes floats of bytes for it alone.
  void with_casts(const Node& node) {
    if (taken(node) || !is_float(node.result())) return;
    if (const Node* made = node.inputs[0]->producer;
        made && made->is("dequantize_linear") && uses_.single(made->result()) && !taken(*made)) {
      Group group = make_group({made, &node}, uses_);
      return refuses_reduction(group) ? void() : take(std::move(group));
    }
    std::vector<const Node*> nodes = casts_for(node);
    nodes.push_back(&node);
    const Node* next = uses_.single(node.result()) ? uses_.users(node.result()).front() : nullptr;
    if (next && next->is("cast") && is_float(next->result()) && !taken(*next)) nodes.push_back(next);
    if (nodes.size() == 1) return;
    Group group = make_group(in_order(std::move(nodes)), uses_);
    if (!refuses_reduction(group) || !refuses_layer_norm(group)) take(std::move(group));
  }

  // The 1x1 convolution and its epilogue that make the value for its only user.
  std::vector<const Node*> product_before(const Value* value) const {
    constexpr int kMostSteps = 10;
    const Node* node = value->producer;
    for (int i = 0; i < kMostSteps && node && !node->op->has(kContraction); ++i)
      node = is_add(*node) || is_activation(*node) || node->is("cast") ? node->inputs[0]->producer : nullptr;
    if (!node || taken(*node) || !node->is("conv2d") || !is_pixel_product(*node)) return {};
    const auto [nodes, least, result] = with_epilogue(*node, Casts::widening);
    return result == value && uses_.single(value) ? nodes : std::vector<const Node*>();
  }

  // Groups a depthwise convolution with 1x1 convolutions before and behind it.
  void separable(const Node& node) {
    const auto [middle, least, made] = with_epilogue(node, Casts::widening);
    const std::vector<const Node*> before = product_before(node.inputs[0]);
    std::vector<const Node*> behind;
    if (uses_.single(made))
      if (const Node* next = uses_.users(made).front(); !taken(*next) && next->is("conv2d") && is_pixel_product(*next))
        behind = with_epilogue(*next, Casts::widening).nodes;
    for (const bool with_before : {true, false})
      for (const bool with_behind : {true, false}) {
        if (with_before ? before.empty() : !with_behind) continue;
        if (with_behind && behind.empty()) continue;
        std::vector<const Node*> nodes = with_before ? before : std::vector<const Node*>();
        const auto add = [&](const std::vector<const Node*>& more) {
          for (const Node* each : more)
            if (!contains(nodes, each)) nodes.push_back(each);
        };
        add(middle);
        if (with_behind) add(behind);
        while (is_widening(*nodes.back())) nodes.pop_back();  // for another reader
        Group group = make_group(in_order(std::move(nodes)), uses_);
        if (!refuses_separable(group)) return take(std::move(group));
      }
  }

  // Groups a contraction in 16 bits with the element-wise nodes that alone read its result, and each other's, to the one that others
  // read, and with those that make its left operand for it alone.
  void activated(const Node& node) {
    const std::vector<const Node*> before = made_for(node);
    if (before.empty() && casts_for(node).empty()) return;
    const std::vector<const Node*> nodes = activation_behind(node);
    if (!nodes.empty() && (take_activated(nodes, before) || (!before.empty() && take_activated(nodes, {})))) return;
    if (before.empty()) return;
    auto [epilogue, least, result] = with_epilogue(node, Casts::widening);
    if (const Node* stored = stored_operand(node)) epilogue.insert(epilogue.begin(), stored), ++least;
    for (; epilogue.size() >= least; epilogue.pop_back())
      if (!is_widening(*epilogue.back()) && take_activated(epilogue, before)) return;
  }

  bool take_activated(std::vector<const Node*> nodes, const std::vector<const Node*>& before) {
    for (const Node* each : before)
      if (!contains(nodes, each)) nodes.push_back(each);
    Group group = make_group(in_order(std::move(nodes)), uses_);
    if (refuses_activated(group)) return false;
    take(std::move(group));
    return true;
  }

  std::vector<const Node*> activation_behind(const Node& node) const {
    constexpr size_t kMost = 32;
    std::vector<const Node*> nodes = casts_for(node);
    if (const Node* stored = stored_operand(node)) nodes.push_back(stored);
    nodes.push_back(&node);
    const size_t before = nodes.size() - 1;
    std::vector<const Node*> whole;
    while (nodes.size() < kMost) {
      const Node* next = nullptr;  // the first that reads what the nodes make
      for (size_t i = before; i < nodes.size(); ++i)
        for (const Node* user : uses_.users(nodes[i]->result(0)))
          if (!contains(nodes, user) && (!next || places_.of(*user) < places_.of(*next))) next = user;
      if (!next || taken(*next) || !ElementwiseProgram::takes(*next) ||
          next->result()->type.shape != node.result()->type.shape)
        break;
      nodes.push_back(next);
      const auto stays = [&](const Node* each) { return each == next || !leaves(*each, nodes); };
      if (!is_widening(*next) && std::all_of(nodes.begin() + static_cast<std::ptrdiff_t>(before), nodes.end(), stays))
        whole = nodes;
    }
    if (!whole.empty() && contains(with_epilogue(node, Casts::widening).nodes, whole.back())) return {};
    return whole;
  }

  // The element-wise nodes that make the left operand for this node alone, unless another contraction can take them as its epilogue.
  std::vector<const Node*> made_for(const Node& node) const {
    constexpr size_t kMost = 16;
    const Value* left = node.inputs[0];
    std::vector<const Node*> nodes{&node};
    for (size_t i = 0; i < nodes.size() && nodes.size() < kMost; ++i)
      for (const Value* input : nodes[i]->inputs) {
        const Node* made = input->producer;
        if ((i == 0 && input != left) || !made || contains(nodes, made) || taken(*made)) continue;
        if (takes_epilogue(*made)) return {};
        if (!ElementwiseProgram::takes(*made) || !is_float(made->result()) || leaves(*made, nodes) ||
            made->result()->type.shape != left->type.shape)
          continue;
        nodes.push_back(made);
      }
    nodes.erase(nodes.begin());
    const bool computes = std::ranges::any_of(nodes, [](const Node* each) { return !each->is("cast"); });
    return computes ? nodes : std::vector<const Node*>();
  }

  // The maximum pooling that alone reads the value.
  const Node* pooling_after(const Value* value) const {
    const Node* user = uses_.single(value) ? uses_.users(value).front() : nullptr;
    return user && user->is("max_pool2d") && !taken(*user) && is_float(user->result()) ? user : nullptr;
  }

  // The cast that rounds the weights of this contraction alone.
  const Node* rounding_for(const Node& node) const {
    if (!node.op->has(kContraction) || node.inputs.size() < 2 || node.inputs[0] == node.inputs[1]) return nullptr;
    const Value* weights = node.inputs[1];
    if (weights->producer && is_widening(*weights->producer) && uses_.single(weights))
      weights = weights->producer->inputs[0];
    const Node* rounding = weights->producer;
    return rounding && is_rounding(*rounding) && uses_.single(weights) && !taken(*rounding) ? rounding : nullptr;
  }

  // The casts of 16-bit elements that this node alone reads.
  std::vector<const Node*> casts_for(const Node& node) const {
    std::vector<const Node*> casts;
    for (const Value* input : node.inputs)
      if (input->producer && is_widening(*input->producer) && uses_.single(input) && !taken(*input->producer) &&
          !contains(casts, input->producer))
        casts.push_back(input->producer);
    return casts;
  }

  // The node that makes the right operand of constants for this node alone.
  const Node* stored_operand(const Node& node) const {
    if (node.inputs.size() < 2 || !uses_.single(node.inputs[1])) return nullptr;
    const Node* producer = node.inputs[1]->producer;
    const bool stored = producer && !producer->inputs.empty() && !taken(*producer) &&
                        std::all_of(producer->inputs.begin(), producer->inputs.end(), constant_of);
    return stored ? producer : nullptr;
  }

  // As many of the nodes as a kernel takes, without casts of operands that are no longer read.
  bool take_longest(std::vector<const Node*> nodes, size_t least) {
    for (; nodes.size() >= least; nodes.pop_back()) {
      if (nodes.size() > least && is_widening(*nodes.back())) continue;
      Group group = make_group(in_order(nodes), uses_);
      if (refuses_(group)) continue;
      take(std::move(group));
      return true;
    }
    return false;
  }

  // Groups the product of integers with as much of what follows as a kernel takes.
  void integers(const Node& node) {
    auto groups = integer_groups(node, uses_, [&](const Node& other) { return !taken(other); });
    for (; !groups.empty(); groups.pop_back()) {
      Group group = make_group(in_order(std::move(groups.back())), uses_);
      if (refuses_(group)) continue;
      take(std::move(group));
      return;
    }
  }

  void gated(const Node& node) {
    std::vector<const Node*> nodes = relu_gate(node.inputs[0], uses_);
    const auto free = [&](const Node* each) { return !taken(*each); };
    if (!std::all_of(nodes.begin(), nodes.end(), free)) nodes.clear();
    const bool gates = !nodes.empty();
    nodes.push_back(&node);
    if (gates || !casts_for(node).empty()) take_gradient(node, std::move(nodes));
  }

  // Groups the gradient of a batch norm with casts around it.
  void take_gradient(const Node& node, std::vector<const Node*> nodes) {
    for (const Node* cast : casts_for(node))
      if (!contains(nodes, cast)) nodes.push_back(cast);
    if (uses_.single(node.result(0)))
      if (const Node* cast = uses_.users(node.result(0)).front(); cast->is("cast") && !taken(*cast)) {
        nodes.push_back(cast);
        Group group = make_group(in_order(nodes), uses_);
        if (!refuses_(group)) return take(std::move(group));
        nodes.pop_back();
      }
    taken_where_right(in_order(std::move(nodes)));
  }

  // The nearest node before this one, over element-wise nodes, that combines elements of rows.
  const Node* combining_before(const Node& root) const {
    constexpr size_t kMost = 16;
    std::vector<const Node*> nodes{&root};
    for (size_t i = 0; i < nodes.size() && nodes.size() < kMost; ++i) {
      if (row_axes(*nodes[i])) return nodes[i];
      if (!ElementwiseProgram::takes(*nodes[i])) continue;
      for (const Value* input : nodes[i]->inputs)
        if (input->producer && !contains(nodes, input->producer) && !taken(*input->producer))
          nodes.push_back(input->producer);
    }
    return nullptr;
  }

  // Groups the node with its producers that go by the same rows, if some combine elements of a row.
  void row_chain(const Node& root) {
    constexpr size_t kMost = 48;
    const Node* combining = combining_before(root);
    if (!combining) return;
    const Type& like = combining->inputs[0]->type;
    const size_t axes = *row_axes(*combining);
    if (!goes_by_rows(root, like, axes)) return;
    std::vector<const Node*> nodes{&root};
    for (size_t before = 0; before != nodes.size() && nodes.size() < kMost;) {
      before = nodes.size();
      for (size_t i = 0; i < nodes.size() && nodes.size() < kMost; ++i)
        for (const Value* input : nodes[i]->inputs) {
          const Node* node = input->producer;
          if (!node || contains(nodes, node) || taken(*node) || !goes_by_rows(*node, like, axes)) continue;
          if (!leaves(*node, nodes) || (is_float(node->result()) && !leads_back(*node, nodes))) nodes.push_back(node);
        }
    }
    Group group = make_group(in_order(std::move(nodes)), uses_);
    if (group.nodes.size() > 1 && !refuses_row_slices(group)) take(std::move(group));
  }

  void normalisation(const Node& last) {
    const std::vector<const Node*> nodes = find_normalisation(last);
    const auto is_inside = [&](const Node* node) { return !taken(*node) && (node == &last || !leaves(*node, nodes)); };
    if (!nodes.empty() && std::all_of(nodes.begin(), nodes.end(), is_inside)) taken_where_right(in_order(nodes));
  }

  // Groups the node with slices that nothing else reads.
  void joined(const Node& concat) {
    std::vector<const Node*> nodes{&concat};
    for (const Value* input : concat.inputs)
      if (const Node* node = input->producer;
          node && !contains(nodes, node) && !taken(*node) && joins_slice(concat, *node) && !leaves(*node, nodes))
        nodes.push_back(node);
    if (nodes.size() > 1) taken_where_right(in_order(std::move(nodes)));
  }

  void taken_where_right(std::vector<const Node*> nodes) {
    Group group = make_group(std::move(nodes), uses_);
    if (!refuses_(group)) take(std::move(group));
  }

  // Groups the element-wise node with its producers of the same shape. A producer's result that is used outside as well
  // becomes an output of the group, unless the group depends on such a user. Slices and rows gathered for this group only are read in place.
  void region(const Node& root) {
    std::vector<const Node*> nodes = same_shape(root, ElementwiseProgram::takes);
    const size_t computed = nodes.size();
    for (size_t i = 0; i < computed; ++i)
      for (const Value* input : nodes[i]->inputs) {
        const Node* node = input->producer;
        if (!node || !ElementwiseProgram::reads_part(*node) || contains(nodes, node) || taken(*node)) continue;
        if (node->is("gather") && node->result()->type.shape != root.result()->type.shape) continue;
        if (!leaves(*node, nodes)) nodes.push_back(node);
      }
    take(make_group(in_order(std::move(nodes)), uses_));
  }

  // The element-wise node and what a program of its kind computes with it.
  std::vector<const Node*> same_shape(const Node& root, bool (*takes)(const Node&)) {
    std::vector<const Node*> nodes{&root};
    size_t arithmetic = 0, instructions = 0;
    const auto count = [&](const Node& node) {
      arithmetic += !node.is("cast");
      instructions += ElementwiseProgram::instructions_of(node);
    };
    count(root);
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Value* input : nodes[i]->inputs) {
        const Node* node = input->producer;
        if (!node || contains(nodes, node) || taken(*node) || !takes(*node)) continue;
        if (arithmetic >= kMostNodes || instructions + 2 > kMostInstructions) continue;
        if (node->result()->type.shape != root.result()->type.shape) continue;
        const bool stored = is_float(node->result()) || node->result()->type.dtype == kF64;
        if (leaves(*node, nodes) && (!stored || leads_back(*node, nodes))) continue;
        nodes.push_back(node);
        inputs_of(nodes) > kMostInputs ? nodes.pop_back() : count(*node);
      }
    return nodes;
  }

  // Groups the gradient of a weight with the update that alone reads it: what the last node behind it needs.
  void updated(const Node& gradient) {
    const auto takes = [&](const Node& node) {
      return !taken(node) && ElementwiseProgram::takes(node) &&
             node.result()->type.shape == gradient.result()->type.shape;
    };
    const Node* root = &gradient;
    for (const Node* next = root; next;) {
      root = next, next = nullptr;
      for (const Node* user : uses_.users(root->result()))
        if (takes(*user) && (!next || places_.of(*user) > places_.of(*next))) next = user;
    }
    if (root == &gradient) return;
    std::vector<const Node*> nodes = same_shape(*root, ElementwiseProgram::takes);
    if (!leaves(gradient, nodes)) {
      nodes.push_back(&gradient);
      taken_where_right(in_order(std::move(nodes)));
    }
  }

  static bool contains(const std::vector<const Node*>& nodes, const Node* node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }

  static size_t inputs_of(const std::vector<const Node*>& nodes) {
    std::unordered_set<const Value*> inputs;
    for (const Node* node : nodes)
      for (const Value* input : node->inputs)
        if (!contains(nodes, input->producer)) inputs.insert(input);
    return inputs.size();
  }

  bool leaves(const Node& node, const std::vector<const Node*>& nodes) const {
    const auto& users = uses_.users(node.result());
    const auto outside = [&](const Node* user) { return !contains(nodes, user); };
    return uses_.is_result(node.result()) || std::any_of(users.begin(), users.end(), outside);
  }

  // Whether the group depends on a user of the node outside the group: then it could not run as one step.
  bool leads_back(const Node& node, const std::vector<const Node*>& nodes) {
    ++walks_;
    size_t end = 0;  // the last position in the group
    for (const Node* each : nodes) end = std::max(end, places_.of(*each));
    const auto inside = [&](size_t place) { return contains(nodes, places_.at(place)); };
    std::vector<size_t> pending;
    const auto follow = [&](size_t place, bool into) {
      for (size_t user : places_.users(place))
        if (seen_[user] != walks_ && may_lead_before(user, end) && (into || !inside(user))) {
          seen_[user] = walks_;
          pending.push_back(user);
        }
    };
    follow(places_.of(node), false);
    while (!pending.empty()) {
      const size_t place = pending.back();
      pending.pop_back();
      if (inside(place)) return true;
      if (group_[place] == kNone) {
        follow(place, true);
        continue;
      }
      for (const Node* each : groups_[group_[place]].nodes) follow(places_.of(*each), true);
    }
    return false;
  }

  // Prunes the search of leads_back(): users come later than their producers, so an earlier position can only be
  // reached through a group that spans it.
  bool may_lead_before(size_t place, size_t end) const {
    while (place > end && lowest_[place] < place) place = lowest_[place];
    return place <= end;
  }

  std::vector<const Node*> in_order(std::vector<const Node*> nodes) const {
    std::sort(nodes.begin(), nodes.end(),
              [&](const Node* a, const Node* b) { return places_.of(*a) < places_.of(*b); });
    return nodes;
  }

  const Block& block_;
  const Uses& uses_;
  Refuses refuses_;
  Places places_;
  std::vector<size_t> group_;   // by position: the group of the node, or kNone
  std::vector<size_t> lowest_;  // by position: the first position of the groups that span it, or itself
  std::vector<size_t> seen_;    // by position: the last search that visited it
  size_t walks_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

bool is_widening(const Node& node) {
  return node.is("cast") && is_narrow(node.inputs[0]->type.dtype) && node.result()->type.dtype == kF32 &&
         node.result()->type.is_static() && !constant_of(node.inputs[0]);
}

bool is_rounding(const Node& node) {
  return node.is("cast") && node.inputs[0]->type.dtype == kF32 && is_narrow(node.result()->type.dtype) &&
         !node.inputs[0]->producer && node.result()->type.is_static();
}

const Value* source_of(const Group& group, const Value* value) {
  const auto converted = [&](const Node* node) {
    return node && node->is("cast") && (is_narrow(node->inputs[0]->type.dtype) || is_rounding(*node)) &&
           std::find(group.nodes.begin(), group.nodes.end(), node) != group.nodes.end();
  };
  while (converted(value->producer)) value = value->producer->inputs[0];
  return value;
}

Form precision_in(const Group& group, const Value* value) {
  const Value* source = source_of(group, value);
  if (source == value) return Form::floats;
  while (value->producer->inputs[0] != source) value = value->producer->inputs[0];
  return form_of(value->type.dtype);
}

Form weights_precision(const Group& group, const Value* weights, Form x_form) {
  const Form precision = precision_in(group, weights);
  const Tensor* constant = constant_of(weights);
  if (precision != Form::floats || x_form != Form::brains || !constant || constant->dtype() != kF32) return precision;
  const auto fits = [](float value) { return (__builtin_bit_cast(uint32_t, value) & 0xffff) == 0; };
  return std::ranges::all_of(constant->values<float>(), fits) ? Form::brains : Form::floats;
}

size_t index_of(const Group& group, const Value* value) {
  const auto found = std::find(group.inputs.begin(), group.inputs.end(), source_of(group, value));
  return static_cast<size_t>(found - group.inputs.begin());
}

std::optional<std::string> not_f32(const Group& group) {
  for (const Node* node : group.nodes)
    if (is_rounding(*node)) return "an operand is rounded, takes f32";
  for (const Value* value : group.inputs)
    if (value->type.dtype != kF32) return fmt::format("input is {}, takes f32", to_string(value->type.dtype));
  for (const Value* value : group.outputs)
    if (value->type.dtype != kF32) return fmt::format("result is {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

std::optional<std::string> not_floats(const Group& group) {
  for (const Value* value : group.inputs)
    if (!is_float(value) && !(constant_of(value) && value->type.dtype.is_integer()))
      return fmt::format("input is {}, takes f32", to_string(value->type.dtype));
  for (const Value* value : group.outputs)
    if (!is_float(value)) return fmt::format("result is {}, takes f32", to_string(value->type.dtype));
  return std::nullopt;
}

NarrowEpilogue narrow_of(const Group& group, const Epilogue& epilogue) {
  NarrowEpilogue narrow{.result = form_of(epilogue.low)};
  narrow.rounds_sum = epilogue.rounds_sum, narrow.rounds_biased = epilogue.rounds_biased;
  if (epilogue.residual) narrow.residual = form_in(group, epilogue.residual);
  return narrow;
}

std::vector<int64_t> slice_begin(const Node& slice) {
  const auto from = slice.inputs[0]->type.shape.sizes();
  const auto& steps = slice.attr().integers("steps");
  std::vector<int64_t> begin = constant_of(slice.inputs[1])->as_i64();
  for (size_t i = 0; i < begin.size(); ++i) {
    const bool back = !steps.empty() && steps[i] < 0;
    begin[i] = std::clamp<int64_t>(begin[i] < 0 ? begin[i] + from[i] : begin[i], back ? -1 : 0, from[i] - back);
  }
  return begin;
}

Activation activation_of(const Epilogue& epilogue) {
  if (!epilogue.activation) return {};
  if (epilogue.activation->is("relu")) return {Activation::Kind::relu, 0, 0};
  const auto attr = epilogue.activation->attr();
  return {Activation::Kind::clip, static_cast<float>(attr.number("low")), static_cast<float>(attr.number("high"))};
}

std::vector<Group> propose_groups(const Block& block, const Uses& uses, Refuses refuses) {
  return Proposer(block, uses, refuses).run();
}

std::optional<Contraction> as_contraction(const Group& group) {
  const size_t start = start_of(group);
  if (!group.nodes[start]->op->has(kContraction) || group.outputs.size() != 1) return std::nullopt;
  const auto found = read_epilogue(group, start);
  return found && group.outputs[0] == found->result ? found : std::nullopt;
}

std::optional<Contraction> as_rounded(const Group& group) {
  const size_t start = start_of(group);
  if (group.outputs.size() != 1 || group.nodes[start]->results.size() != 1) return std::nullopt;
  const auto found = read_epilogue(group, start);
  const bool plain = found && group.outputs[0] == found->result && !found->epilogue.bias && !found->epilogue.residual &&
                     !found->epilogue.activation;
  return plain ? found : std::nullopt;
}

std::optional<Contraction> as_stored_contraction(const Group& group) {
  size_t start = 0;
  while (start < group.nodes.size() && !group.nodes[start]->op->has(kContraction)) ++start;
  if (start == group.nodes.size() || group.outputs.size() != 1) return std::nullopt;
  const Node& node = *group.nodes[start];
  const Node* stored = nullptr;
  for (size_t i = 0; i < start; ++i) {
    if (is_widening(*group.nodes[i])) continue;
    if (stored || group.nodes[i]->result(0) != node.inputs[1]) return std::nullopt;
    stored = group.nodes[i];
  }
  if (!stored || node.inputs[0] == node.inputs[1]) return std::nullopt;
  auto found = read_epilogue(group, start);
  if (!found || group.outputs[0] != found->result) return std::nullopt;
  found->stored = stored;
  return found;
}

std::optional<Contraction> as_extended(const Group& group, std::string_view op) {
  const size_t start = start_of(group);
  return group.nodes[start]->is(op) ? read_epilogue(group, start) : std::nullopt;
}

}  // namespace cairn
