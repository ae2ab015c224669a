#include "plan/narrow_scans.h"

#include <algorithm>

#include "ir/builder.h"
#include "passes/facts.h"
#include "plan/keep_narrow.h"
#include "plan/scans.h"

namespace cairn {

namespace {

/// A constant of the type if that loses nothing, else nothing.
std::optional<Tensor> in_type(const Value* value, DType dtype) {
  const Tensor* constant = constant_of(value);
  if (!constant || !is_representable(*constant, dtype)) return std::nullopt;
  Tensor narrow = Tensor::uninitialized(dtype, constant->dims());
  std::ranges::transform(constant->values<float>(), narrow.mutable_values<uint16_t>().begin(),
                         [&](float each) { return dtype == kF16 ? float_to_half(each) : float_to_bfloat(each); });
  return narrow;
}

class ScanNarrowing {
 public:
  explicit ScanNarrowing(Block& block) : block_(block) {}

  bool run() {
    bool changed = false;
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& node : block_.nodes) {
      for (Value*& input : node->inputs) input = current(input);
      Block before, behind;
      if (scan_of(*node)) changed = narrow(*node, before, behind) || changed;
      for (auto& each : before.nodes) nodes.push_back(std::move(each));
      nodes.push_back(std::move(node));
      for (auto& each : behind.nodes) nodes.push_back(std::move(each));
    }
    block_.nodes = std::move(nodes);
    for (Value*& result : block_.results) result = current(result);
    return changed;
  }

 private:
  Value* current(Value* value) const {
    const auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  bool narrow(Node& node, Block& before, Block& behind) {
    const Scan scan = *scan_of(node);
    Block& body = *node.regions[0];
    Builder start(before), end(behind);
    start.sources = end.sources = node.sources;
    bool changed = false;
    for (size_t i = 0; i < scan.carried + scan.scanned; ++i) {
      const bool carried = i < scan.carried;
      const Value* source = narrow_source(carried ? body.results[i] : node.inputs[i]);
      if (!source || body.params[i]->type.dtype != kF32 || (carried && node.results[i]->type.dtype != kF32)) continue;
      const DType dtype = source->type.dtype;
      Value* first = narrow_source(node.inputs[i]);
      if (first && first->type.dtype != dtype) continue;
      if (!first) {
        auto constant = in_type(node.inputs[i], dtype);
        if (!constant) continue;
        first = start.constant(std::move(*constant));
      }
      node.inputs[i] = first;
      widen_param(body, *body.params[i], dtype);
      if (carried) narrow_result(node, i, end);
      changed = true;
    }
    for (size_t i = scan.carried; i < node.results.size(); ++i)
      if (narrow_source(body.results[i]) && node.results[i]->type.dtype == kF32)
        narrow_result(node, i, end), changed = true;
    return changed;
  }

  /// The body reads what the param is widened to.
  static void widen_param(Block& body, Value& param, DType dtype) {
    param.type.dtype = dtype;
    Block parts;
    Value* wide = Builder(parts).add("cast", {&param}, {{"dtype", kF32}});
    for (auto& node : body.nodes) std::ranges::replace(node->inputs, &param, wide);
    std::ranges::replace(body.results, &param, wide);
    body.nodes.insert(body.nodes.begin(), std::make_move_iterator(parts.nodes.begin()),
                      std::make_move_iterator(parts.nodes.end()));
  }

  /// The scan gives what the body's result is widened from; others read what that is widened to.
  void narrow_result(Node& node, size_t i, Builder& behind) {
    Value*& made = node.regions[0]->results[i];
    made = narrow_source(made);
    Value* result = node.result(i);
    result->type.dtype = made->type.dtype;
    replaced_[result] = behind.add("cast", {result}, {{"dtype", kF32}});
  }

  Block& block_;
  std::unordered_map<const Value*, Value*> replaced_;
};

}  // namespace

bool narrow_scans(Block& block) { return ScanNarrowing(block).run(); }

}  // namespace cairn
