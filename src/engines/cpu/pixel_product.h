// A convolution by pixels (or a product of rows) with constant weights, some pixels at a time: a part of steps that do more with them.
#pragma once

#include <fmt/format.h>

#include <map>

#include "engines/cpu/conv.h"
#include "engines/cpu/groups.h"

namespace cairn {

/// A constant as floats, or nothing for no value.
inline std::vector<float> floats_of(const Value* value) {
  const Tensor* constant = value ? constant_of(value) : nullptr;
  std::vector<float> floats(constant ? static_cast<size_t>(constant->count()) : 0);
  if (constant) widen(form_of(constant->dtype()), constant->count(), constant->data(), floats.data());
  return floats;
}

/// The constant weights of a contraction, as they are or in 16 bits; null where they are made in the run.
inline const Tensor* weights_of(const Contraction& contraction) {
  const Node* stored = contraction.stored;
  if (!stored) return constant_of(contraction.node->inputs[1]);
  return stored->is("cast") && is_narrow(stored->inputs[0]->type.dtype) ? constant_of(stored->inputs[0]) : nullptr;
}

/// Products of some pixels, of the numbers that came up while the step was made.
class PixelProduct {
 public:
  PixelProduct(const Contraction& part, const ConvSpec& spec, const Group& group, MakeContext& context) : spec_(spec) {
    if (part.epilogue.residual) residual_ = index_of(group, part.epilogue.residual);
    const Conv& conv = for_pixels(most_pixels(machine_isa(), 1) * 2);
    const Tensor& weights = *weights_of(part);
    packed_ = context.packer.packed(weights, conv.layout(), conv.packed_size() * sizeof(float),
                                    [&](void* to) { conv.pack(weights.data(), static_cast<float*>(to)); });
    const Tensor* bias = part.epilogue.bias ? constant_of(part.epilogue.bias) : nullptr;
    static const Tensor zero = Tensor::zeros(kF32, {1});
    const size_t floats = conv.bias_size();
    bias_ = context.packer.packed(bias ? *bias : zero, fmt::format("{}{}", bias ? "bias" : "zeros", floats),
                                  floats * sizeof(float), [&](void* to) {
                                    conv.pack_bias(bias ? floats_of(part.epilogue.bias).data() : nullptr,
                                                   static_cast<float*>(to));
                                  });
    layout_ = conv.layout();
  }

  const Conv& for_pixels(int64_t pixels) {
    auto& conv = convs_[pixels];
    if (!conv) {
      ConvSpec spec = spec_;
      spec.w = spec.ow = pixels;
      conv = std::make_unique<Conv>(spec, machine_isa(), 1);
      CHECK(layout_.empty() || conv->layout() == layout_, "{} and {}", conv->layout(), layout_);
    }
    return *conv;
  }

  /// The index of the group's input that is added, or nothing.
  std::optional<size_t> residual() const { return residual_; }
  /// Bytes of a pixel of y, of the residual and of x.
  int64_t made() const { return spec_.oc * bytes_of(spec_.narrow.result); }
  int64_t added() const { return spec_.oc * bytes_of(spec_.narrow.residual); }
  int64_t read() const { return spec_.ic * (spec_.arithmetic == Arithmetic::pairs ? 4 : bytes_of(spec_.x_form)); }
  /// Floats in which x is widened.
  size_t widened_size() const {
    size_t most = 0;
    for (const auto& [pixels, conv] : convs_) most = std::max(most, conv->widened_size(1));
    return most;
  }
  void run(int64_t pixels, const char* x, const char* residual, char* y, float* scratch) const {
    convs_.at(pixels)->run(serial_executor(), x, static_cast<const float*>(packed_.get()),
                           static_cast<const float*>(bias_.get()), residual ? residual : y, y, scratch);
  }

 private:
  ConvSpec spec_;
  std::string layout_;
  std::map<int64_t, std::unique_ptr<Conv>> convs_;
  std::shared_ptr<const void> packed_, bias_;
  std::optional<size_t> residual_;
};

}  // namespace cairn
