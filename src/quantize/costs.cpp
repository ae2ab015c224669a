#include "quantize/costs.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "engines/cpu/isa.h"
#include "ir/text.h"

namespace cairn::quantize {

namespace {

/// Nanoseconds that one thread takes.
struct Rates {
  double product, winograd_product, byte_product;
  double result, byte_result;                   // by element
  double tap, byte_tap, widened_tap;            // of depthwise filters; widened: to a float result
  double rounding, fused_rounding;              // by element; fused: into an element-wise step
  double rounding_step = 350, byte_step = 400;  // that a step more takes, that a product of bytes does
  double read_byte = 1.0 / 50;                  // of weights, from the cache of a core
};

// With AMX fitted to single products and chains of three (matrix products from 16x16 to 256x256, convolutions of 1x1 and 3x3,
// depthwise; 2048 pixels), which they predict roughly: products to about a fifth, the rest was not checked. For other processors
// the products of DenseNet's convolutions were measured, the rest is scaled by the width of vectors.
constexpr Rates kMatrices = {1.0 / 67, 1.0 / 100, 1.0 / 350, 0.1, 0.25, 0.05, 0.02, 0.1, 0.15, 0.1};
constexpr Rates kWideDots = {1.0 / 67, 1.0 / 100, 1.0 / 180, 0.1, 0.25, 0.05, 0.02, 0.1, 0.15, 0.1};
constexpr Rates kWide = {1.0 / 67, 1.0 / 100, 1.0 / 50, 0.1, 0.25, 0.05, 0.1, 0.1, 0.15, 0.1};
constexpr Rates kDots = {1.0 / 33, 1.0 / 50, 1.0 / 90, 0.15, 0.5, 0.1, 0.2, 0.2, 0.3, 0.2};
constexpr Rates kPlain = {1.0 / 33, 1.0 / 50, 1.0 / 35, 0.15, 0.5, 0.1, 0.2, 0.2, 0.3, 0.2};

const Rates& rates() {
  if (machine_has_matrix_registers()) return kMatrices;
  if (machine_isa() == Isa::avx512) return machine_has_dot_products() ? kWideDots : kWide;
  return machine_has_dot_products() ? kDots : kPlain;
}

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
  const Rates& r = rates();
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
    const double floats = results * r.result;
    return {products * r.tap + floats, products * r.byte_tap + floats, products * r.widened_tap + floats};
  }
  const double product = taps == 9 && inputs >= 32 ? r.winograd_product : r.product;
  const double bytes = products * r.byte_product * whole(inputs * taps, 64) * whole(outputs, 16);
  const double turns = turns_of(layer, elements), read = turns * static_cast<double>(layer.weights().count());
  const double all = std::max(bytes, read * r.read_byte) + results * r.byte_result + turns * r.byte_step;
  return {std::max(products * product * whole(outputs, 16), 4 * read * r.read_byte) + results * r.result, all, all};
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
    const double alone = rates().rounding * elements + turns_of(layer, elements) * rates().rounding_step;
    for (const Node* node = layer.data_value()->producer; node;) {
      if (const auto place = places_.find(node); place != places_.end()) {
        if (!moved) layers_[place->second].rounded_at_once = layer.value;
        return {alone, place->second};
      }
      const bool fuses = node->is("relu") || node->is("clip") || adds_constant(*node);
      const bool moves = node->op->has(kView) || node->is("transpose") || node->is("max_pool2d");
      if (!fuses && !moves && node->op->has(kElementwise)) return {rates().fused_rounding * elements, kNone};
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
