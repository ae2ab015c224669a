#include "plan/batch_slices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "engine/engine.h"
#include "ir/builder.h"
#include "passes/facts.h"
#include "plan/loop_scan.h"

namespace cairn {

namespace {

constexpr double kCacheBytes = 16 << 20;               // that the operands and results of one operator may take
constexpr double kBytesPerNs = 10, kFlopsPerNs = 100;  // of memory behind the caches, and of products
// Products of bytes take so little time that they wait for what one core's cache does not hold.
constexpr double kNearCacheBytes = 2 << 20, kIntegerFlopsPerNs = 1500;
constexpr double kTurnNs = 5e3;     // what a turn costs for each operator in it
constexpr size_t kMostBatches = 4;  // that are looked at
constexpr double kLeastGain = 0.1;  // of the part's estimated time

int64_t first_dim(const Value* value) {
  const auto& dims = value->type.shape.dims;
  return dims.empty() ? 1 : dims[0].size;
}
double bytes_of(const Value* value) { return static_cast<double>(storage_bytes(value->type)); }
bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return name.starts_with(start); });
}

/// Which values are slices one behind the other: memory in `batch` equal pieces along the first dim, piece i of which depends
/// on piece i of the batch alone.
class BatchRows {
 public:
  BatchRows(const Block& block, int64_t batch) : batch_(batch) {
    for (const auto& param : block.params)
      if (splits(param.get()) && first_dim(param.get()) == batch) sliced_.insert(param.get());
    for (const auto& node : block.nodes) {
      if (!takes_slices(*node) || !goes_by_slices(*node)) continue;
      by_slices_.insert(node.get());
      for (const auto& result : node->results) sliced_.insert(result.get());
    }
  }

  bool contains(const Value* value) const { return sliced_.contains(value); }
  bool by_slices(const Node& node) const { return by_slices_.contains(&node); }
  bool takes_slices(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* input) { return contains(input); });
  }

 private:
  bool splits(const Value* value) const {
    return value->type.is_tensor() && value->type.is_static() && !is_host_object(value->type) &&
           value->type.dtype.bits >= 8 && value->type.shape.rank() > 0 && first_dim(value) > 0 &&
           first_dim(value) % batch_ == 0;
  }
  static size_t rank(const Value* value) { return value->type.shape.rank(); }

  /// Whether the other operands of a node are the same for all slices.
  bool only_first_is_sliced(const Node& node) const {
    return contains(node.inputs[0]) &&
           std::none_of(node.inputs.begin() + 1, node.inputs.end(), [&](const Value* each) { return contains(each); });
  }
  /// Whether an operand is one of slices along with a result of this rank, or is repeated for all of them.
  bool broadcasts(const Value* operand, size_t result_rank, int64_t rows) const {
    if (contains(operand)) return rank(operand) == result_rank && first_dim(operand) == rows;
    return rank(operand) < result_rank || first_dim(operand) == 1;
  }

  bool goes_by_slices(const Node& node) const {
    if (!node.op->pure() || node.results.empty() || node.op->has(kControl | kHostValue | kDynamicResult)) return false;
    for (const auto& result : node.results)
      if (!splits(result.get())) return false;
    const Value& result = *node.result(0);
    if (node.op->has(kElementwise))
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](const Value* operand) { return broadcasts(operand, rank(&result), first_dim(&result)); });
    if (node.is("matmul")) return product_goes(node);
    if (node.is("concat")) {
      return axis_of(node.attr().integer("axis"), rank(&result)) > 0 &&
             std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value* each) { return contains(each); });
    }
    return only_first_is_sliced(node) && leaves_first_axis(node);
  }

  bool product_goes(const Node& node) const {
    const Value *a = node.inputs[0], *b = node.inputs[1], *y = node.result();
    if (rank(a) < 2 || rank(b) < 2) return false;
    if (rank(y) == 2) return contains(a) && !contains(b) && !node.attr().boolean("transpose_a");
    return broadcasts(a, rank(y), first_dim(y)) && broadcasts(b, rank(y), first_dim(y));
  }

  /// Of a node with slices in its first operand: whether pieces along the first dim of that are pieces of the result.
  static bool leaves_first_axis(const Node& node) {
    const size_t axes = rank(node.inputs[0]);
    const std::string_view name = node.op->name;
    const auto along = [&](const char* attribute) { return axis_of(node.attr().integer(attribute), axes); };
    if (name == "reshape") return constant_of(node.inputs[1]) != nullptr;
    if (name == "transpose") return permutation_of(node)[0] == 0;
    if (name == "softmax" || name == "log_softmax" || name == "layer_norm" || name == "cumsum" ||
        name == "batch_norm" || name == "arg_max" || name == "arg_min")
      return along("axis") > 0;
    if (name.starts_with("reduce_")) {
      const auto& reduced = node.attr().integers("axes");
      return !reduced.empty() &&
             std::all_of(reduced.begin(), reduced.end(), [&](int64_t axis) { return axis_of(axis, axes) > 0; });
    }
    if (name == "top_k") return axes > 1;
    if (name == "gather") return node.attr().integer("batch_dims") == 0 && along("axis") > 0;
    const bool windows = starts_with_any(name, {"conv", "max_pool", "avg_pool"}) &&
                         name.find("gradient") == name.npos && name.find("indices") == name.npos;
    if (windows || name == "resize2d") return first_dim(node.inputs[0]) == first_dim(node.result());
    return name == "pad" && pads_no_rows(node);
  }

  static bool pads_no_rows(const Node& node) {
    const Tensor* pads = constant_of(node.inputs[1]);
    return pads && pads->count() > 1 && pads->as_i64()[0] == 0 && pads->as_i64()[1] == 0;
  }

  int64_t batch_;
  std::unordered_set<const Value*> sliced_;
  std::unordered_set<const Node*> by_slices_;
};

/// What a node costs for the whole batch.
struct NodeCost {
  double moved = 0;    // bytes of rows read and written
  double between = 0;  // the part of it that comes from or goes to other nodes by slices
  double weights = 0;  // bytes of operands that all rows share
  double flops = 0;
  bool counts = false;   // is part of a chain that runs by slices
  bool is_near = false;  // computes with bytes
};

/// Nodes first .. last of the block, `rows` rows of the batch in each turn.
struct Part {
  size_t first = 0, last = 0;
  int64_t rows = 0;
  double gain = 0;  // ns
};

class BatchSlicer {
 public:
  BatchSlicer(Block& block, int64_t batch) : block_(block), batch_(batch), rows_(block, batch) {
    const Uses uses(block);
    for (const auto& node : block.nodes) costs_.push_back(cost(*node, uses));
  }

  size_t run() {
    choose(0, block_.nodes.size());
    std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.first > b.first; });
    size_t made = 0;
    for (const Part& part : parts_) made += make_scan(part);
    return made;
  }

 private:
  // Elementwise nodes become part of the step that makes their first operand.
  static bool joins(const Node& node, const Uses& uses) {
    return node.op->has(kElementwise) && uses.single(node.inputs[0]);
  }

  NodeCost cost(const Node& node, const Uses& uses) const {
    if (!rows_.by_slices(node)) return {};
    NodeCost cost{.counts = true};
    for (const Value* input : node.inputs) {
      if (joins(node, uses) && input == node.inputs[0]) continue;
      (rows_.contains(input) ? cost.moved : cost.weights) += bytes_of(input);
      if (rows_.contains(input) && input->producer) cost.between += bytes_of(input);
    }
    for (const auto& result : node.results) {
      const auto takes = [&](const Node* user) {
        return rows_.by_slices(*user) && !(joins(*user, uses) && user->inputs[0] == result.get());
      };
      const auto& users = uses.users(result.get());
      if (!joins(node, uses)) cost.moved += bytes_of(result.get());
      if (std::any_of(users.begin(), users.end(), takes)) cost.between += bytes_of(result.get());
    }
    if (node.op->has(kView)) cost.moved = cost.between = 0;
    cost.flops = cost_of(make_group({&node}, uses)).flops;
    cost.is_near = node.inputs[0]->type.dtype.bits == 8 || node.result()->type.dtype.bits == 8;
    return cost;
  }

  bool is_barrier(size_t i) const {
    const Node& node = *block_.nodes[i];
    return rows_.takes_slices(node) && !rows_.by_slices(node);
  }

  /// What slices of so many rows save at the node, in ns.
  double gain(const NodeCost& cost, int64_t rows) const {
    if (!cost.counts) return 0;
    const double turns = static_cast<double>(batch_ / rows);
    double gain = -kTurnNs * (turns - 1) * (cost.flops > 0);
    const double cache = cost.is_near ? kNearCacheBytes : kCacheBytes;
    if (cost.moved > cache && cost.moved / turns <= cache) gain += cost.between / kBytesPerNs;
    return gain - cost.weights * (turns - 1) / kBytesPerNs;
  }

  /// The best part within [begin, end), then the best ones before and behind it.
  void choose(size_t begin, size_t end) {
    Part best;
    for (int64_t rows = batch_ / 2; rows > 0; --rows) {
      if (batch_ % rows) continue;
      Part now{begin, begin, rows, 0};
      for (size_t i = begin; i < end; ++i) {
        now.gain = is_barrier(i) ? 0 : now.gain + gain(costs_[i], rows);
        now.last = i;
        if (now.gain <= 0) now = {i + 1, i + 1, rows, 0};
        if (now.gain > best.gain) best = now;
      }
    }
    if (best.gain <= 0) return;
    double time = 0;
    for (size_t i = best.first; i <= best.last; ++i)
      time += costs_[i].flops / (costs_[i].is_near ? kIntegerFlopsPerNs : kFlopsPerNs) + costs_[i].moved / kBytesPerNs;
    if (best.gain < kLeastGain * time) return;
    best.last = with_smaller_results(best.last, end);
    parts_.push_back(best);
    choose(begin, best.first);
    choose(best.last + 1, end);
  }

  /// The end of a part with the elementwise nodes behind it that make no more bytes than they read: what leaves it is small.
  size_t with_smaller_results(size_t last, size_t end) const {
    for (size_t i = last + 1; i < end; ++i) {
      const Node& node = *block_.nodes[i];
      if (!rows_.takes_slices(node)) continue;
      if (!costs_[i].counts || !node.op->has(kElementwise) || bytes_of(node.result()) > bytes_of(node.inputs[0])) break;
      last = i;
    }
    return last;
  }

  /// Puts the part's nodes into the body of a scan, which stands where the last of them stood.
  bool make_scan(const Part& part) {
    std::vector<const Node*> nodes;
    for (size_t i = part.first; i <= part.last; ++i)
      if (rows_.by_slices(*block_.nodes[i])) nodes.push_back(block_.nodes[i].get());
    const Group group = make_group(std::move(nodes), Uses(block_));
    const int64_t turns = batch_ / part.rows;
    auto region = std::make_unique<Block>();
    std::unordered_map<const Value*, Value*> map;
    std::vector<Value*> inputs;
    for (const bool sliced : {true, false})
      for (const Value* input : group.inputs) {
        if (rows_.contains(input) != sliced) continue;
        if (constant_of(input)) {
          region->nodes.push_back(clone(*input->producer, map));
          continue;
        }
        map[input] = region->add_param(sliced ? slice_type(input->type, turns) : input->type, input->name);
        inputs.push_back(const_cast<Value*>(input));
      }
    for (const Node* node : group.nodes)
      if (!add_slice(*node, turns, *region, map)) return false;
    for (const Value* result : group.outputs) region->results.push_back(map.at(result));
    replace(part, group, std::move(region), std::move(inputs), turns);
    return true;
  }

  static Type slice_type(Type type, int64_t turns) {
    type.shape.dims[0] = Dim(type.shape.dims[0].size / turns);
    return type;
  }

  /// Adds the node for one slice; false where its shape rule does not give a slice of the result.
  static bool add_slice(const Node& node, int64_t turns, Block& region, std::unordered_map<const Value*, Value*>& map) {
    auto copy = clone(node, map);
    if (node.is("reshape")) {
      auto dims = node.result()->type.shape.sizes();
      dims[0] /= turns;
      Block sizes;
      copy->inputs[1] = Builder(sizes).constant(integers_like(node.inputs[1]->type, dims));
      std::move(sizes.nodes.begin(), sizes.nodes.end(), std::back_inserter(region.nodes));
    }
    const auto types = infer_types(*copy->op, copy->inputs, copy->attributes);
    for (size_t i = 0; i < copy->results.size(); ++i) {
      if (types[i] != slice_type(node.result(i)->type, turns)) return false;
      copy->results[i]->type = types[i];
    }
    region.nodes.push_back(std::move(copy));
    return true;
  }

  void replace(const Part& part, const Group& group, std::unique_ptr<Block> region, std::vector<Value*> inputs,
               int64_t turns) {
    auto scan = std::make_unique<Node>();
    const auto sliced = static_cast<size_t>(
        std::count_if(inputs.begin(), inputs.end(), [&](const Value* input) { return rows_.contains(input); }));
    const size_t rows = sliced + group.outputs.size();
    set_scan(*scan, {0, sliced, turns, std::vector<int64_t>(rows, 0), std::vector<int64_t>(rows, 1), true});
    scan->inputs = std::move(inputs);
    scan->sources = group.last().sources;
    Block after;
    Builder builder(after);
    std::unordered_map<const Value*, Value*> replaced;
    for (const Value* result : group.outputs) {
      auto stacked = std::make_unique<Value>();
      stacked->type = stacked_type(turns, region->results[scan->results.size()]->type);
      stacked->producer = scan.get();
      stacked->index = static_cast<uint32_t>(scan->results.size());
      replaced[result] = builder.add("reshape", {stacked.get(), builder.ints(result->type.shape.sizes())});
      scan->results.push_back(std::move(stacked));
    }
    scan->regions.push_back(std::move(region));
    const auto follow = [&](Value*& value) {
      if (const auto found = replaced.find(value); found != replaced.end()) value = found->second;
    };
    std::vector<std::unique_ptr<Node>> nodes;
    const std::unordered_set<const Node*> inside(group.nodes.begin(), group.nodes.end());
    for (size_t i = 0; i < block_.nodes.size(); ++i) {
      auto& node = block_.nodes[i];
      if (i > part.last) std::for_each(node->inputs.begin(), node->inputs.end(), follow);
      (inside.contains(node.get()) ? gone_ : nodes).push_back(std::move(node));
      if (i != part.last) continue;
      nodes.push_back(std::move(scan));
      std::move(after.nodes.begin(), after.nodes.end(), std::back_inserter(nodes));
    }
    block_.nodes = std::move(nodes);
    std::for_each(block_.results.begin(), block_.results.end(), follow);
  }

  Block& block_;
  const int64_t batch_;
  const BatchRows rows_;
  std::vector<NodeCost> costs_;  // by node
  std::vector<Part> parts_;      // disjoint
  std::vector<std::unique_ptr<Node>> gone_;
};

/// False where no operator can move more than fits into the cache, which spares most plans the rest.
bool may_exceed_cache(const Block& block) {
  double bytes = 0;
  const auto add = [&](const auto& value) {
    if (value->type.is_static()) bytes += bytes_of(value.get());
  };
  std::for_each(block.params.begin(), block.params.end(), add);
  for (const auto& node : block.nodes) std::for_each(node->results.begin(), node->results.end(), add);
  return bytes > kCacheBytes;
}

}  // namespace

size_t slice_batches(Block& block) {
  if (!may_exceed_cache(block)) return 0;
  std::map<int64_t, double> batches;  // bytes of the params that may have so many rows
  for (const auto& param : block.params)
    if (param->type.is_tensor() && param->type.is_static() && param->type.shape.rank() > 1 &&
        first_dim(param.get()) > 1)
      batches[first_dim(param.get())] += bytes_of(param.get());
  for (size_t looks = 0; looks < kMostBatches && !batches.empty(); ++looks) {
    const auto largest = std::max_element(batches.begin(), batches.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (const size_t made = BatchSlicer(block, largest->first).run()) return made;
    batches.erase(largest);
  }
  return 0;
}

}  // namespace cairn
