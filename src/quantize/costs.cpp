#include "quantize/costs.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ir/text.h"

namespace cairn::quantize {

namespace {

// Nanoseconds of one thread of a CPU with AVX-512, VNNI and AMX. Fitted to single products and chains of three (matrix
// products from 16x16 to 256x256, convolutions of 1x1 and 3x3, depthwise; 2048 pixels), which they predict
// roughly: products to about a fifth, the rest was not checked.
constexpr double kFloatProduct = 1.0 / 67, kWinogradProduct = 1.0 / 100, kByteProduct = 1.0 / 350;
constexpr double kFloatResult = 0.1, kByteResult = 0.25;                // by element
constexpr double kFloatTap = 0.05, kByteTap = 0.02, kWidenedTap = 0.1;  // of depthwise filters; widened: to a float result
constexpr double kRounding = 0.15, kFusedRounding = 0.1;                // by element; fused: into an element-wise step
constexpr double kRoundingStep = 350, kByteStep = 400;                  // that a step more takes, that a product of bytes does
constexpr double kReadByte = 1.0 / 50;           // of weights, from the cache of a core
constexpr size_t kNone = SIZE_MAX;

struct LayerCost {
  double floats = 0, bytes = 0, widened = 0;
  size_t rounded_at_once = kNone;  // the value that this layer's product, bias and activation make
};

struct ValueCost {
  double rounding = 0;
  size_t producer = kNone;  // the layer whose step may round it
};

double whole(double x, double step) { return std::ceil(x / step) * step / x; }

/// How often it runs for one example, which then is one row.
double turns_of(const Layer& layer, double elements) {
  return layer.loop ? elements / static_cast<double>(layer.weights().dims()[layer.inputs] * layer.groups) : 1;
}

LayerCost cost_of(const Layer& layer, double elements) {
  const auto& kernel = layer.weights().dims();
  const auto inputs = static_cast<double>(kernel[layer.inputs]), outputs = static_cast<double>(kernel[layer.outputs]);
  double taps = 1, products = elements / (inputs * static_cast<double>(layer.groups));
  products *= static_cast<double>(layer.weights().count());
  if (layer.slides) {
    for (size_t i = 0; i + 2 < kernel.size(); ++i) taps *= static_cast<double>(kernel[i]);
    for (const int64_t stride : layer.node->attr().integers("strides"))
      if (layer.gathers) products /= static_cast<double>(stride);
  }
  const double results = products / (taps * inputs);
  if (layer.groups > 1) {
    const double floats = results * kFloatResult;
    return {products * kFloatTap + floats, products * kByteTap + floats, products * kWidenedTap + floats};
  }
  const double product = taps == 9 && inputs >= 32 ? kWinogradProduct : kFloatProduct;
  const double bytes = products * kByteProduct * whole(inputs * taps, 64) * whole(outputs, 16);
  const double turns = turns_of(layer, elements), read = turns * static_cast<double>(layer.weights().count());
  const double all = std::max(bytes, read * kReadByte) + results * kByteResult + turns * kByteStep;
  return {std::max(products * product * whole(outputs, 16), 4 * read * kReadByte) + results * kFloatResult, all, all};
}

bool adds_constant(const Node& node) {
  return node.is("add") && (constant_of(node.inputs[0]) || constant_of(node.inputs[1]));
}

class Costs {
 public:
  Costs(const std::vector<Layer>& layers, const std::vector<double>& elements) : values_(elements.size()) {
    for (size_t i = 0; i < layers.size(); ++i) {
      places_[layers[i].node] = i;
      layers_.push_back(cost_of(layers[i], elements[layers[i].value]));
    }
    for (const Layer& layer : layers) values_[layer.value] = follow(layer, elements[layer.value]);
  }

  double total(const std::vector<Layer>& layers, const std::vector<bool>& rounds) const {
    double sum = 0;
    std::vector<bool> bytes(values_.size());
    for (size_t i = 0; i < layers.size(); ++i)
      if (rounds[i]) bytes[layers[i].value] = true;
    for (size_t i = 0; i < layers.size(); ++i) {
      const LayerCost& layer = layers_[i];
      const bool at_once = layer.rounded_at_once != kNone && bytes[layer.rounded_at_once];
      sum += !rounds[i] ? layer.floats : at_once ? layer.bytes : layer.widened;
    }
    for (size_t i = 0; i < values_.size(); ++i)
      if (bytes[i] && (values_[i].producer == kNone || !rounds[values_[i].producer])) sum += values_[i].rounding;
    return sum;
  }

 private:
  /// Up to what computes the value that the layer reads: what only moves or compares elements does so with bytes as well.
  ValueCost follow(const Layer& layer, double elements) {
    bool moved = false;
    const double alone = kRounding * elements + turns_of(layer, elements) * kRoundingStep;
    for (const Node* node = layer.data_value()->producer; node;) {
      if (const auto place = places_.find(node); place != places_.end()) {
        if (!moved) layers_[place->second].rounded_at_once = layer.value;
        return {alone, place->second};
      }
      const bool fuses = node->is("relu") || node->is("clip") || adds_constant(*node);
      const bool moves = node->op->has(kView) || node->is("transpose") || node->is("max_pool2d");
      if (!fuses && !moves && node->op->has(kElementwise)) return {kFusedRounding * elements, kNone};
      if (!fuses && !moves) break;
      moved |= moves;
      node = node->inputs[constant_of(node->inputs[0]) ? 1 : 0]->producer;
    }
    return {alone, kNone};
  }

  std::vector<LayerCost> layers_;
  std::vector<ValueCost> values_;
  std::unordered_map<const Node*, size_t> places_;
};

}  // namespace

std::vector<bool> worth_rounding(const std::vector<Layer>& layers, const std::vector<double>& elements,
                                 std::vector<bool> on) {
  Costs costs(layers, elements);
  for (size_t i = 0; i < layers.size(); ++i) on[i] = on[i] && layers[i].integers;
  double best = costs.total(layers, on);
  for (bool better = true; better;) {
    better = false;
    std::vector<bool> next;
    for (size_t value = 0; value < elements.size(); ++value) {
      std::vector<bool> without = on;
      for (size_t i = 0; i < layers.size(); ++i)
        if (layers[i].value == value) without[i] = false;
      if (const double total = without == on ? best : costs.total(layers, without); total < best)
        best = total, next = std::move(without), better = true;
    }
    if (better) on = std::move(next);
  }
  return on;
}

}  // namespace cairn::quantize
