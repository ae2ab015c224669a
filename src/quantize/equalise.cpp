#include "quantize/equalise.h"

#include <cmath>
#include <numeric>

#include "passes/pipeline.h"

namespace cairn::quantize {

namespace {

// f(c x) = c f(x) for c > 0, channel by channel.
constexpr std::string_view kHomogeneous[] = {"relu",       "leaky_relu", "max_pool2d",
                                             "avg_pool2d", "max_pool3d", "avg_pool3d"};

struct Pair {
  Layer *first, *second;
  std::vector<std::pair<Node*, size_t>> biases;  // node and its constant operand
};

class Pairs {
 public:
  explicit Pairs(Module& module) : layers_(layers_of(module)) {
    Block& body = module.main().body;
    for (const auto& node : body.nodes)
      for (Value* input : node->inputs) users_[input].push_back(node.get());
    for (Value* result : body.results) users_[result].push_back(nullptr);
    for (Layer& layer : layers_) by_node_[layer.node] = &layer;
  }

  std::vector<Pair> find() {
    std::vector<Pair> pairs;
    for (Layer& layer : layers_)
      if (std::optional<Pair> pair = from(layer)) pairs.push_back(*pair);
    return pairs;
  }

 private:
  Node* only_user(const Value* value) const {
    const auto found = users_.find(value);
    return found != users_.end() && found->second.size() == 1 ? found->second[0] : nullptr;
  }

  std::optional<Pair> from(Layer& first) {
    if (!first.gathers) return {};
    Pair pair{&first, nullptr, {}};
    const int64_t channels = first.weights().dims()[first.outputs];
    const Value* value = first.node->result();
    for (Node* user = only_user(value); user; user = only_user(value)) {
      if (const auto found = by_node_.find(user); found != by_node_.end()) {
        Layer& second = *found->second;
        if (!second.gathers || second.data_value() != value) return {};
        const auto& dims = second.weights().dims();
        if (second.groups * dims[second.inputs] != channels) return {};
        pair.second = &second;
        return pair;
      }
      const bool homogeneous =
          std::find(std::begin(kHomogeneous), std::end(kHomogeneous), user->op->name) != std::end(kHomogeneous);
      const bool zeros =
          user->is("pad") && user->attr().text("mode") == "constant" && user->attr().number("value") == 0;
      if (user->is("add")) {
        const size_t operand = user->inputs[0] == value ? 1 : 0;
        const Tensor* bias = constant_of(user->inputs[operand]);
        if (!bias || bias->dtype() != kF32 || bias->count() != channels || bias->rank() == 0 ||
            bias->dims().back() != channels || user->result()->type.shape != value->type.shape)
          return {};
        pair.biases.emplace_back(user, operand);
      } else if (!homogeneous && !zeros) {
        return {};
      }
      value = user->result();
    }
    return {};
  }

  std::vector<Layer> layers_;
  std::unordered_map<const Value*, std::vector<Node*>> users_;
  std::unordered_map<const Node*, Layer*> by_node_;
};

std::vector<float> largest_by(const Tensor& kernel, size_t channels, const auto& channel) {
  std::vector<float> largest(channels);
  const auto values = kernel.values<float>();
  for (size_t i = 0; i < values.size(); ++i) largest[channel(i)] = std::max(largest[channel(i)], std::abs(values[i]));
  return largest;
}

Tensor scaled(const Tensor& tensor, const std::vector<float>& factors, const auto& channel, bool divide) {
  Tensor made = Tensor::uninitialized(kF32, tensor.dims());
  const auto from = tensor.values<float>();
  auto to = made.mutable_values<float>();
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = divide ? from[i] / factors[channel(i)] : from[i] * factors[channel(i)];
  return made;
}

/// Returns the largest change, as a logarithm.
double even_out(Module& module, const Pair& pair) {
  const Tensor first = pair.first->weights(), second = pair.second->weights();
  const Along out(first.dims(), pair.first->outputs);
  const auto in = [&](size_t i) { return data_channel(*pair.second, second.dims(), i); };
  const std::vector<float> a = largest_by(first, out.size, out), b = largest_by(second, out.size, in);
  std::vector<float> factors(out.size, 1.0F);
  double change = 0;
  for (size_t i = 0; i < out.size; ++i) {
    const double factor = std::sqrt(double{a[i]} / b[i]);
    if (!std::isfinite(factor) || factor == 0) continue;
    factors[i] = static_cast<float>(std::clamp(factor, 1e-4, 1e4));
    change = std::max(change, std::abs(std::log(factor)));
  }
  set_operand(module, *pair.first->node, pair.first->kernel, scaled(first, factors, out, true));
  set_operand(module, *pair.second->node, pair.second->kernel, scaled(second, factors, in, false));
  for (const auto& [node, operand] : pair.biases) {
    const Tensor bias = *constant_of(node->inputs[operand]);
    set_operand(module, *node, operand,
                scaled(
                    bias, factors, [](size_t i) { return i; }, true));
  }
  return change;
}

}  // namespace

size_t equalise(Module& module) {
  constexpr int kRounds = 10;
  constexpr double kEven = 0.01;
  Pairs all(module);
  const std::vector<Pair> pairs = all.find();
  double change = 1;
  for (int round = 0; round < kRounds && change > kEven; ++round) {
    change = 0;
    for (const Pair& pair : pairs) change = std::max(change, even_out(module, pair));
  }
  remove_dead(module.main().body, &module);
  return pairs.size();
}

std::vector<std::vector<float>> smoothing(const Module& module, const std::vector<Seen>& seen, double strength) {
  constexpr float kUneven = 4;  // times the mean of channels
  std::vector<std::vector<float>> factors(seen.size()), largest_weight(seen.size());
  std::vector<bool> fits(seen.size(), true);
  for (const Layer& layer : layers_of(module)) {
    const auto& dims = layer.weights().dims();
    const size_t channels = seen[layer.value].largest().size();
    if (layer.loop || !layer.gathers || layer.slides || channels != static_cast<size_t>(dims[layer.inputs])) {
      fits[layer.value] = false;
      continue;
    }
    auto& most = largest_weight[layer.value];
    const auto own = largest_by(layer.weights(), channels, Along(dims, layer.inputs));
    most.resize(channels);
    for (size_t i = 0; i < channels; ++i) most[i] = std::max(most[i], own[i]);
  }
  for (size_t value = 0; value < seen.size(); ++value) {
    const std::vector<float>& largest = seen[value].largest();
    if (!fits[value] || largest.empty()) continue;
    const float mean = std::accumulate(largest.begin(), largest.end(), 0.0F) / static_cast<float>(largest.size());
    if (*std::max_element(largest.begin(), largest.end()) < kUneven * mean) continue;
    for (size_t i = 0; i < largest.size(); ++i) {
      const double factor = std::pow(largest[i], strength) / std::pow(largest_weight[value][i], 1 - strength);
      factors[value].push_back(std::isfinite(factor) && factor > 0 ? static_cast<float>(std::clamp(factor, 1e-4, 1e4))
                                                                   : 1.0F);
    }
  }
  return factors;
}

}  // namespace cairn::quantize
