// The bias of a step whose kernel reads whole panels.
#pragma once

#include <algorithm>

#include "engine/engine.h"
#include "engines/cpu/groups.h"
#include "support/memory.h"

namespace cairn {

/// A bias padded to whole panels: packed once when it is a constant, else in each run.
class StepBias {
 public:
  static constexpr size_t kNone = SIZE_MAX;  // an input that a step does not have

  template <class Kernel>
  void read(const Group& group, const Kernel& kernel, const Epilogue& epilogue, MakeContext& context) {
    static const Tensor zero = Tensor::zeros(kF32, {1});
    floats_ = kernel.bias_size();
    const Tensor* bias = epilogue.bias ? constant_of(epilogue.bias) : nullptr;
    if (epilogue.bias && (!bias || bias->dtype() != kF32)) {
      input_ = index_of(group, epilogue.bias);
      form_ = form_in(group, epilogue.bias);
      count_ = static_cast<size_t>(epilogue.bias->type.shape.dims.back().size);
      return;
    }
    const std::string layout = fmt::format("{}{}", bias ? "bias" : "zeros", floats_);
    packed_ = context.packer.packed(bias ? *bias : zero, layout, floats_ * 4, [&](void* to) {
      kernel.pack_bias(bias ? bias->values<float>().data() : nullptr, static_cast<float*>(to));
    });
  }
  size_t input() const { return input_; }
  /// Bytes of the copy made in each run.
  size_t workspace() const { return input_ == kNone || is_whole() ? 0 : whole_lines(floats_ * 4); }
  const float* get(const StepArgs& args, char* workspace) const {
    if (input_ == kNone) return static_cast<const float*>(packed_.get());
    if (is_whole()) return static_cast<const float*>(args.inputs[input_]);
    auto* to = reinterpret_cast<float*>(workspace);
    widen(form_, static_cast<int64_t>(count_), args.inputs[input_], to);
    std::fill(to + count_, to + floats_, 0.f);
    return to;
  }

 private:
  bool is_whole() const { return count_ == floats_ && form_ == Form::floats; }

  Form form_ = Form::floats;
  std::shared_ptr<const void> packed_;
  size_t input_ = kNone, count_ = 0, floats_ = 0;
};

}  // namespace cairn
