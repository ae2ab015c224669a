// Naive loops in double that the CPU kernels are compared with, random data, and both instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engines/cpu/isa.h"
#include "ir/text.h"
#include "ops/cases.h"
#include "plan/plan.h"
#include "runtime/model.h"

namespace cairn {

inline std::vector<Isa> machine_isas() {
  if (machine_isa() == Isa::avx512) return {Isa::avx512, Isa::avx2};
  if (machine_isa() == Isa::avx2) return {Isa::avx2};
  return {};
}

/// The kernels of a model's steps, for a model whose input dims are all known, each followed by a blank.
inline std::string kernels_of(const Model& model) {
  std::vector<std::vector<int64_t>> dims;
  for (const Port& port : model.inputs()) dims.push_back(port.type.shape.sizes());
  std::string names;
  for (const PlannedStep& step : model.plan(dims)->steps) names += step.kernel + " ";
  return names;
}

/// The first result of the model in this text, with random inputs, is near that of the reference engine and has the same bits at
/// any number of threads. `check` looks at its kernels.
template <class Check>
void expect_reference_result(const std::string& text, std::mt19937_64& random, const Check& check) {
  const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  std::vector<Tensor> inputs;
  for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
  const Tensor wanted = expected->run(inputs)[0];
  Tensor one;
  for (int threads : {1, 3}) {
    const auto model = Model::make(parse(text), {.threads = threads});
    check(kernels_of(*model));
    const Tensor found = model->run(inputs)[0];
    const auto wrong = difference(wanted, found, Precision::accumulate_f32);
    EXPECT_FALSE(wrong) << *wrong;
    EXPECT_TRUE(!one.defined() || found.same_bits(one));
    one = found;
  }
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  int64_t one_of(std::vector<int64_t> values) {
    return values[static_cast<size_t>(between(0, std::ssize(values) - 1))];
  }
  bool coin() { return between(0, 1) == 1; }
  std::vector<float> floats(int64_t count, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> spread(low, high);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = spread(engine_);
    return values;
  }

 private:
  std::mt19937 engine_;
};

/// A buffer between two guards, so that writes outside it are seen; filled with a number no kernel leaves standing.
class Guarded {
 public:
  explicit Guarded(int64_t count) : values_(static_cast<size_t>(count) + 2 * kGuard, kMark) {}
  float* data() { return values_.data() + kGuard; }
  std::vector<float> values() const { return {values_.begin() + kGuard, values_.end() - kGuard}; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (values_[i] != kMark || values_[values_.size() - 1 - i] != kMark) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 80;
  static constexpr float kMark = 12345.75f;
  std::vector<float> values_;
};

/// Largest difference, relative to `scale` or to the expected value where that is larger.
inline double worst_difference(const std::vector<float>& found, const std::vector<double>& expected, double scale) {
  double worst = found.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < found.size() && i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    if (std::isnan(difference) && !(std::isnan(found[i]) && std::isnan(expected[i]))) return INFINITY;
    if (difference > 0) worst = std::max(worst, difference / std::max(scale, std::abs(expected[i])));
  }
  return worst;
}

}  // namespace cairn
