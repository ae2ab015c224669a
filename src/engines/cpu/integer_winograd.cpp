#include "engines/cpu/integer_winograd.h"

#include <algorithm>
#include <map>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/integer_step.h"
#include "engines/cpu/integers.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/winograd.h"
#include "support/memory.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

constexpr double kWords = 0.85;      // of the time of floats that words take by the definition
constexpr int64_t kLeastTiles = 56;  // of a band, for which all weights are read

struct IntegerWinograd {
  IntegerContraction contraction;
  WinogradSpec spec;
  int64_t results = 0;
};

/// Both bounds of an epilogue as one.
Activation bounds_of(const IntegerEpilogue& e) {
  return {Activation::Kind::clip, std::clamp(e.first_low, e.low, e.high), std::clamp(e.first_high, e.low, e.high)};
}

Refusal read_integer_winograd(const Group& group, IntegerWinograd& w) {
  const auto found = as_integer_contraction(group);
  if (!found || !found->node->is("conv2d_integer")) return "is no convolution of integers";
  if (machine_has_dot_products()) return "the processor multiplies bytes";
  w.contraction = *found;
  const Node& node = *found->node;
  const IntegerEpilogue& e = found->epilogue;
  if (e.output == IntegerEpilogue::Output::sums || e.rounds || e.later_bias ||
      e.residual != IntegerEpilogue::Residual::none || !found->scale)
    return "has another epilogue than scale, bias and bounds";
  for (const Value* value :
       std::initializer_list<const Value*>{node.inputs[1], node.inputs[2], node.inputs[3], found->scale, found->bias})
    if (value && !constant_of(value)) return "weights or numbers are computed in the run";
  if (constant_of(node.inputs[2])->count() != 1) return "the left operand has several zero points";
  if (node.attr().integer("groups") != 1) return "has groups";
  const SlideSpec s = convolution_of(node, node.inputs[0], node.result(), node.inputs[1]);
  if (s.d * s.od * s.kd != 1 || s.kh != 3 || s.kw != 3) return "kernel is not 3 x 3";
  if (s.stride_h * s.stride_w * s.dilation_h * s.dilation_w != 1) return "has a stride or a dilation";
  w.spec = {s.n, s.h, s.w, s.channels, last_dim(node.inputs[1]), s.oh, s.ow, s.pad_top, s.pad_left};
  if (s.pad_top > 2 || s.pad_left > 2 || s.oh > s.h + 2) return "has wide padding";
  w.spec.most_results = WinogradSpec::most_results_of(w.spec.ic);
  w.spec.activation = bounds_of(e);
  if (s.n * s.oh * s.ow * w.spec.ic * w.spec.oc == 0) return "has no elements";
  w.results = Winograd::best_results(w.spec, machine_isa(), kWords * Winograd::kGain);
  if (w.results == 0) return "takes longer than the definition, by estimate";
  return refuses_integer_tile(group);  // which make_integer_winograd() may make
}

template <class Byte>
CAIRN_INLINE void widen_bytes(int64_t count, const void* bytes, float zero, float* to) {
  const auto* from = static_cast<const Byte*>(bytes);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) - zero;
}
/// The nearest whole numbers plus the zero point, of floats that a byte holds then: 1.5 2^23 makes them the lowest bits.
CAIRN_VECTORISED(void, round_bytes, (int64_t count, const float* from, int32_t zero, uint8_t* to)) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<uint8_t>(__builtin_bit_cast(int32_t, from[i] + 12582912.f) + zero);
}

std::vector<int32_t> integers_of(const Value* value) {
  std::vector<int32_t> all;
  for (double each : constant_of(value)->as_f64()) all.push_back(static_cast<int32_t>(each));
  return all;
}

class IntegerWinogradStep final : public Step {
 public:
  IntegerWinogradStep(const Group& group, const IntegerWinograd& w, MakeContext& context)
      : spec_(w.spec), epilogue_(w.contraction.epilogue), threads_(std::max(1, context.threads)),
        widen_(w.contraction.node->inputs[0]->type.dtype == kI8 ? Vectorised<widen_bytes<int8_t>>::chosen()
                                                                : Vectorised<widen_bytes<uint8_t>>::chosen()) {
    static const Tensor zero = Tensor::zeros(kF32, {1});
    const Node& node = *w.contraction.node;
    x_ = index_of(group, node.inputs[0]);
    x_zero_ = static_cast<float>(integers_of(node.inputs[2])[0]);
    cut(w.results);
    const Winograd& first = *codes_.begin()->second;
    const size_t zeros = first.zeros_size() * sizeof(float);
    zeros_ = context.packer.packed(zero, fmt::format("zeros{}", first.zeros_size()), zeros,
                                   [&](void* to) { std::fill_n(static_cast<char*>(to), zeros, 0); });
    pack(w.contraction, first, context);
  }

  void run(const StepArgs& args) const override {
    const auto bands = std::ssize(bands_);
    executor_for(args, threads_).run(static_cast<int>(spec_.n * bands), [&](int chunk, int worker) {
      const Band& band = bands_[static_cast<size_t>(chunk % bands)];
      const int64_t image = chunk / bands, row = spec_.w * spec_.ic, made_row = spec_.ow * spec_.oc;
      float* const x = static_cast<float*>(args.workspace) + static_cast<size_t>(worker) * scratch_floats();
      float* const y = x + read_floats_;
      const char* from = input<char>(args, x_) + (image * spec_.h + band.read) * row;
      widen_(band.reads * row, from, x_zero_, x);
      const int64_t at = (image * spec_.oh + band.first) * made_row;
      float* const made = bytes() ? y : output(args) + at;
      band.code->run(serial_executor(), x, static_cast<const float*>(packed_.get()), bias_.data(),
                     static_cast<const float*>(zeros_.get()), nullptr, made, y + made_floats_);
      if (bytes()) round_bytes(band.rows * made_row, y, epilogue_.zero_point, output<uint8_t>(args) + at);
    });
  }

  std::string kernel() const override {
    return fmt::format("cpu/integer_winograd {}, {} bands of an image", codes_.begin()->second->describe(),
                       bands_.size());
  }
  size_t workspace() const override { return scratch_floats() * sizeof(float) * static_cast<size_t>(threads_); }
  bool reads(size_t i) const override { return i == x_; }

 private:
  struct Band {
    int64_t first, rows, read, reads;  // rows of results, and of x
    const Winograd* code;
  };

  bool bytes() const { return epilogue_.output == IntegerEpilogue::Output::bytes; }
  static size_t whole(int64_t floats) { return static_cast<size_t>((floats + 15) / 16 * 16); }
  size_t scratch_floats() const { return read_floats_ + made_floats_ + code_floats_; }

  /// Cuts an image into bands of whole tiles, which are computed as in one piece.
  void cut(int64_t results) {
    const int64_t across = (spec_.ow + results - 1) / results, down = (spec_.oh + results - 1) / results;
    const int64_t wanted = std::clamp<int64_t>(down * across / kLeastTiles, 1, down);
    const int64_t count = std::max(wanted, std::min<int64_t>(down, (threads_ + spec_.n - 1) / spec_.n));
    for (int64_t i = 0; i < count; ++i) {
      Band band{i * down / count * results, 0, 0, 0, nullptr};
      band.rows = std::min(spec_.oh, (i + 1) * down / count * results) - band.first;
      band.read = std::clamp<int64_t>(band.first - spec_.pad_top, 0, spec_.h - 1);
      band.reads = std::clamp<int64_t>(band.first - spec_.pad_top + band.rows + 2 - band.read, 1, spec_.h - band.read);
      WinogradSpec part = spec_;
      part.n = 1, part.h = band.reads, part.oh = band.rows, part.pad_top = band.read - (band.first - spec_.pad_top);
      auto& code = codes_[{part.h, part.oh, part.pad_top}];
      if (!code) code = std::make_unique<Winograd>(part, results, machine_isa(), 1);
      band.code = code.get();
      read_floats_ = std::max(read_floats_, whole(band.reads * spec_.w * spec_.ic));
      if (bytes()) made_floats_ = std::max(made_floats_, whole(band.rows * spec_.ow * spec_.oc));
      code_floats_ = std::max(code_floats_, whole(static_cast<int64_t>(code->scratch_size())));
      bands_.push_back(band);
    }
  }

  /// Weights less their zero points, times the scales.
  void pack(const IntegerContraction& c, const Winograd& code, MakeContext& context) {
    const std::vector<int32_t> weights = integers_of(c.node->inputs[1]), zeros = integers_of(c.node->inputs[3]);
    const auto channels = static_cast<size_t>(spec_.oc);
    const auto of = [&](const auto& list, size_t channel) { return list[list.size() == 1 ? 0 : channel]; };
    const auto row = [&](const Value* value) {
      std::vector<float> floats(channels, 0.f);
      const std::vector<double> given = value ? constant_of(value)->as_f64() : std::vector<double>{0};
      for (size_t i = 0; i < channels; ++i) floats[i] = static_cast<float>(of(given, i)) * c.factor;
      return floats;
    };
    const std::vector<float> scales = row(c.scale), bias = row(c.bias);
    std::string name = code.layout() + " of integers";
    for (size_t i = 0; i < channels; ++i) name += fmt::format(" {} {}", of(zeros, i), scales[i]);
    packed_ =
        context.packer.packed(*constant_of(c.node->inputs[1]), name, code.packed_size() * sizeof(float), [&](void* to) {
          std::vector<float> kernel(weights.size());
          for (size_t i = 0; i < kernel.size(); ++i)
            kernel[i] = static_cast<float>(weights[i] - of(zeros, i % channels)) * scales[i % channels];
          code.pack(serial_executor(), kernel.data(), false, static_cast<float*>(to));
        });
    bias_.resize(code.bias_size());
    code.pack_bias(bias.data(), bias_.data());
  }

  WinogradSpec spec_;
  IntegerEpilogue epilogue_;
  int threads_;
  void (*widen_)(int64_t count, const void* bytes, float zero, float* to);  // x
  size_t x_ = 0;
  float x_zero_ = 0;
  std::vector<Band> bands_;
  std::map<std::array<int64_t, 3>, std::unique_ptr<Winograd>> codes_;  // by rows of x, rows of results and padding
  size_t read_floats_ = 0, made_floats_ = 0, code_floats_ = 0;
  std::shared_ptr<const void> packed_, zeros_;
  std::vector<float> bias_;
};

}  // namespace

Refusal refuses_integer_winograd(const Group& group) {
  IntegerWinograd w;
  return read_integer_winograd(group, w);
}

std::unique_ptr<Step> make_integer_winograd(const Group& group, MakeContext& context) {
  IntegerWinograd w;
  const Refusal refusal = read_integer_winograd(group, w);
  CHECK(!refusal, "{}", *refusal);
  if (!context.winograd) return make_integer_tile(group, context);
  return std::make_unique<IntegerWinogradStep>(group, w, context);
}

}  // namespace cairn
