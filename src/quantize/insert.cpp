#include "quantize/insert.h"

#include <algorithm>
#include <unordered_set>

#include "ir/builder.h"
#include "ir/control.h"
#include "ir/evaluate.h"
#include "passes/facts.h"
#include "passes/pipeline.h"

namespace cairn::quantize {

namespace {

Value* divided(Builder& b, Value* x, const std::vector<float>& smooth) {
  if (smooth.empty()) return x;
  std::vector<float> factors;
  for (const float each : smooth) factors.push_back(1 / each);
  return b.add("mul", {x, b.constant(Tensor::of(kF32, {static_cast<int64_t>(factors.size())}, factors))});
}

Value* through_bytes(Builder& b, Value* x, const Affine& steps) {
  Value *scale = b.scalar(steps.scale), *zero = b.number(steps.zero, kU8);
  return b.add("dequantize_linear", {b.add("quantize_linear", {x, scale, zero}), scale, zero});
}

/// Two numbers of 4 bits in a byte: the first half of all elements is in the low ones.
Tensor packed_nibbles(const Tensor& integers) {
  const auto values = integers.values<int8_t>();
  const size_t half = (values.size() + 1) / 2;
  std::vector<uint8_t> bytes(half);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto nibble = static_cast<uint8_t>(values[i] + 8);
    bytes[i % half] = static_cast<uint8_t>(bytes[i % half] | (i < half ? nibble : nibble << 4));
  }
  return Tensor::of(kU8, {static_cast<int64_t>(half)}, bytes);
}

Value* unpacked(Builder& b, const SmallKernel& kernel) {
  Value* bytes = b.constant(packed_nibbles(kernel.integers));
  Value* low = b.add("bit_and", {bytes, b.number(15, kU8)});
  Value* high = b.add("shift_right", {bytes, b.number(4, kU8)});
  Value* all = b.add("concat", {low, high}, {{"axis", int64_t{0}}});
  const int64_t count = kernel.integers.count();
  return count % 2 == 0 ? all : b.add("slice", {all, b.ints({0}), b.ints({count})});
}

/// A matrix as codes by rows of output channels, with scales of blocks of these.
Value* matrix_of_codes(Builder& b, const Layer& layer, const SmallKernel& kernel) {
  const auto& dims = kernel.integers.dims();
  const bool nibbles = kernel.bits == 4, turned = layer.inputs == 0;
  const int64_t k = dims[layer.inputs], n = dims[1 - layer.inputs], bytes = nibbles ? (k + 1) / 2 : k;
  const int64_t block = kernel.grouped.empty() ? k : kernel.grouped[layer.inputs + 1], blocks = k / block;
  std::vector<uint8_t> codes(static_cast<size_t>(n * bytes));
  std::vector<float> scales;
  const auto integers = kernel.integers.values<int8_t>();
  const auto given = kernel.scales.values<float>();
  for (int64_t o = 0; o < n; ++o) {
    for (int64_t i = 0; i < k; ++i) {
      const int code = integers[static_cast<size_t>(turned ? i * n + o : o * k + i)] + (nibbles ? 8 : 128);
      uint8_t& byte = codes[static_cast<size_t>(o * bytes + (nibbles ? i / 2 : i))];
      byte = static_cast<uint8_t>(byte | code << (nibbles && i % 2 ? 4 : 0));
    }
    for (int64_t i = 0; i < blocks; ++i)
      scales.push_back(given[given.size() == 1 ? 0 : static_cast<size_t>(turned ? i * n + o : o * blocks + i)]);
  }
  Value* x = b.add("dequantize_blocks",
                   {b.constant(Tensor::of(kU8, {n, bytes}, codes)), b.constant(Tensor::of(kF32, {n, blocks}, scales)),
                    b.scalar(nibbles ? 8 : 128)},
                   {{"bits", int64_t{kernel.bits}}, {"block", block}, {"columns", k}});
  return turned ? b.add("transpose", {x}, {{"permutation", std::vector<int64_t>{1, 0}}}) : x;
}

Value* kernel_value(Builder& b, const Layer& layer, const SmallKernel& kernel) {
  if (kernel.integers.rank() == 2 && !layer.slides && (kernel.bits == 4 || !kernel.grouped.empty()))
    return matrix_of_codes(b, layer, kernel);
  const bool nibbles = kernel.bits == 4, grouped = !kernel.grouped.empty();
  const auto& dims = kernel.integers.dims();
  Value* x = nibbles ? unpacked(b, kernel) : b.constant(kernel.integers);
  if (nibbles || grouped) x = b.add("reshape", {x, b.ints(grouped ? kernel.grouped : dims)});
  x = b.add("dequantize_linear", {x, b.constant(kernel.scales), nibbles ? b.number(8, kU8) : b.number(0, kI8)});
  return grouped ? b.add("reshape", {x, b.ints(dims)}) : x;
}

/// Puts steps behind values while it walks over a function.
class Insertion {
 public:
  Insertion(Module& module, const Choices& choices, const std::vector<bool>& on) : module_(module), choices_(choices) {
    const std::vector<Layer> layers = layers_of(module);
    for (size_t i = 0; i < layers.size(); ++i) {
      if (!on[i]) continue;
      places_[layers[i].node] = i, layers_.emplace(layers[i].node, layers[i]), bodies_.insert(layers[i].loop);
      if (!choices.layers[i].rounds_data) continue;
      auto [use, fresh] = uses_.try_emplace(layers[i].data_value(), Use{layers[i].value, true});
      use->second.by_convolutions &= layers[i].slides;
    }
  }

  void run() {
    walk(module_.main().body);
    remove_dead(module_.main().body, &module_);
    module_.optimised_by.clear();
  }

 private:
  struct Use {
    size_t value;
    bool by_convolutions;
  };

  void walk(Block& block) {
    Builder builder(block);
    Builder* outer = std::exchange(builder_, &builder);
    find_biases(block);
    auto nodes = std::move(block.nodes);
    block.nodes.clear();
    for (const auto& param : block.params) follow(param.get());
    for (auto& node : nodes) {
      Node& known = *node;
      if (bodies_.count(&known)) walk(*loop_body(known));
      const auto layer = layers_.find(&known);
      builder.sources = known.sources;
      const std::vector<Value*> plain = known.inputs;
      for (Value*& input : known.inputs) input = replaced(input);
      if (layer != layers_.end()) enter(layer->second, plain, choices_.layers[places_[&known]]);
      block.nodes.push_back(std::move(node));
      if (layer != layers_.end()) leave(known, choices_.layers[places_[&known]]);
      for (const auto& result : known.results) follow(result.get());
    }
    for (Value*& result : block.results)
      if (const auto moved = shifted_.find(result); moved != shifted_.end()) result = moved->second;
    builder_ = outer;
  }

  Value* replaced(Value* value) const {
    if (const auto found = for_all_.find(value); found != for_all_.end()) return found->second;
    const auto moved = shifted_.find(value);
    return moved == shifted_.end() ? value : moved->second;
  }

  /// Additions of a constant by channel that alone read a layer's result: shifts are added to the constant.
  void find_biases(const Block& body) {
    std::unordered_map<const Value*, size_t> uses;
    for (const auto& node : body.nodes)
      for (const Value* input : node->inputs) ++uses[input];
    for (const Value* result : body.results) ++uses[result];
    for (const auto& node : body.nodes) {
      if (!node->is("add")) continue;
      for (const bool second : {false, true}) {
        const Tensor* bias = constant_of(node->inputs[second ? 0 : 1]);
        const Value* sum = node->inputs[second ? 1 : 0];
        if (sum->producer && layers_.count(sum->producer) && uses[sum] == 1 && bias && bias->rank() > 0 &&
            along_last_dim(*bias))
          biases_[sum] = {node.get(), second ? 0U : 1U};
      }
    }
  }

  void enter(const Layer& layer, const std::vector<Value*>& plain, const LayerChoice& choice) {
    if (choice.rounds_data) layer.node->inputs[layer.data] = for_layers_.at(plain[layer.data]);
    layer.node->inputs[layer.kernel] = kernel_value(*builder_, layer, choice.kernel);
  }

  void leave(const Node& node, const LayerChoice& choice) {
    if (choice.shift.empty()) return;
    Tensor shift = Tensor::of(kF32, {static_cast<int64_t>(choice.shift.size())}, choice.shift);
    if (const auto found = biases_.find(node.result()); found != biases_.end()) {
      const auto [add, operand] = found->second;
      add->inputs[operand] = builder_->constant(evaluate("add", {*constant_of(add->inputs[operand]), shift}));
      return;
    }
    shifted_[node.result()] = builder_->add("add", {node.result(), builder_->constant(std::move(shift))});
  }

  /// Images are bytes for all who read them, so that additions beside convolutions read bytes too; what matrix products read
  /// is exact for others.
  void follow(Value* value) {
    const auto use = uses_.find(value);
    if (use == uses_.end()) return;
    const ValueChoice& choice = choices_.values[use->second.value];
    Value* x = divided(*builder_, replaced(value), choice.smooth);
    if (choice.steps) x = through_bytes(*builder_, x, *choice.steps);
    for_layers_[value] = x;
    if (use->second.by_convolutions && choice.smooth.empty()) for_all_[value] = x;
  }

  Module& module_;
  const Choices& choices_;
  Builder* builder_ = nullptr;
  std::unordered_set<const Node*> bodies_;  // loops with layers
  std::unordered_map<const Node*, size_t> places_;
  std::unordered_map<const Node*, Layer> layers_;
  std::unordered_map<const Value*, Use> uses_;
  std::unordered_map<const Value*, std::pair<Node*, size_t>> biases_;
  std::unordered_map<const Value*, Value*> for_layers_, for_all_, shifted_;
};

/// What a value of the loop's body was in all turns, along a new first dim: the loop carries one more list.
Value* of_all_turns(Node& loop, Block& outside, Value* value) {
  Block before;
  Builder b(before);
  const size_t at = carried_count(loop);
  Value* list = b.add("list_make", {b.number(0, kI64)}, {{"element", value->type}});
  for (auto& node : outside.nodes) {
    if (node.get() != &loop) continue;
    const auto place = outside.nodes.begin() + (&node - outside.nodes.data());
    outside.nodes.insert(place, std::make_move_iterator(before.nodes.begin()),
                         std::make_move_iterator(before.nodes.end()));
    break;
  }
  loop.inputs.insert(loop.inputs.begin() + static_cast<long>(at), list);
  for (const auto& region : loop.regions) {
    region->add_param(list->type, "");
    std::rotate(region->params.begin() + static_cast<long>(at), region->params.end() - 1, region->params.end());
    for (size_t i = at; i < region->params.size(); ++i) region->params[i]->index = static_cast<uint32_t>(i);
  }
  Block& body = *loop_body(loop);
  Builder inner(body);
  body.results.insert(body.results.begin() + static_cast<long>(at),
                      inner.add("list_push", {body.params[at].get(), value}));
  loop.attributes.set(kCarried, static_cast<int64_t>(at + 1));
  auto result = std::make_unique<Value>(*loop.results.front());
  result->type = list->type, result->index = static_cast<uint32_t>(at), result->name.clear();
  loop.results.push_back(std::move(result));
  return Builder(outside).add("list_stack", {loop.results.back().get()});
}

}  // namespace

Tensor smoothed_kernel(const Layer& layer, const std::vector<float>& smooth) {
  const Tensor& kernel = layer.weights();
  if (smooth.empty()) return kernel;
  Tensor scaled = Tensor::uninitialized(kF32, kernel.dims());
  const auto from = kernel.values<float>();
  auto to = scaled.mutable_values<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = from[i] * smooth[data_channel(layer, kernel.dims(), i)];
  return scaled;
}

Module insert(const Module& base, const Choices& choices, const std::vector<bool>& on) {
  Module made = clone(base);
  Insertion(made, choices, on).run();
  return made;
}

Module watched(const Module& base, const std::vector<ValueChoice>& values) {
  Module made = clone(base);
  Function& main = made.main();
  Builder builder(main.body);
  size_t next = 0;
  for (const Layer& layer : layers_of(made)) {
    if (layer.value != next) continue;
    Value* value = layer.loop ? of_all_turns(*layer.loop, main.body, layer.data_value()) : layer.data_value();
    main.body.results.push_back(divided(builder, value, values[next].smooth));
    main.result_names.push_back(fmt::format("watched/{}", next++));
  }
  made.optimised_by.clear();
  return made;
}

uint64_t constant_bytes(const Module& module) {
  uint64_t bytes = 0;
  std::unordered_set<const void*> seen;
  for (const auto& function : module.functions)
    for_each_block(function->body, [&](Block& block) {
      for (const auto& node : block.nodes)
        for (const auto& result : node->results)
          if (const Tensor* constant = constant_of(result.get()); constant && seen.insert(constant->data()).second)
            bytes += constant->bytes();
    });
  return bytes;
}

}  // namespace cairn::quantize
