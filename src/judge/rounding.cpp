#include "judge/rounding.h"

#include <algorithm>
#include <cmath>

#include "judge/metrics.h"

namespace cairn::judge {

namespace {

/// The roundoff of additions: terms of narrow types are added in f32.
double roundoff_of_sums(double roundoff) { return std::min(roundoff, 0x1p-24); }

enum class OpKind { element, convolution, product, sum, average };

OpKind kind_of(std::string_view op_type) {
  std::string lower(op_type);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  auto has = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return lower.find(w) != std::string::npos; });
  };
  if (has({"conv"})) return OpKind::convolution;
  if (has({"matmul", "gemm", "fullyconnection", "dense", "linear"})) return OpKind::product;
  if (has({"softmax", "norm", "mean", "avg", "average"})) return OpKind::average;
  if (has({"sum", "reduce"})) return OpKind::sum;
  return OpKind::element;
}

/// The number of terms of an output element of a convolution: the kernel's elements divided by its output channels.
int64_t kernel_terms(const Tensor& kernel, const Tensor& output) {
  if (kernel.rank() < 3 || kernel.count() == 0) return 1;
  int64_t first = kernel.dims().front(), last = kernel.dims().back();
  bool channels_last = output.rank() > 1 && output.dims().back() == last;
  bool channels_first = output.rank() > 1 && output.dims()[1] == first;
  int64_t channels = channels_last ? last : channels_first ? first : std::min(first, last);
  return kernel.count() / std::max<int64_t>(channels, 1);
}

/// The inner dim K of a matrix product, from the numbers of elements: K*K = |a| |b| / |out| for each matrix of a batch.
int64_t shared_size(const Tensor& a, const Tensor& b, const Tensor& output) {
  double batch = 1;
  for (size_t i = 0; i + 2 < output.rank(); ++i) batch *= static_cast<double>(output.dims()[i]);
  if (b.rank() <= 2) batch = 1;
  double square = static_cast<double>(a.count()) * static_cast<double>(b.count()) /
                  (static_cast<double>(std::max<int64_t>(output.count(), 1)) * batch);
  return std::max<int64_t>(1, std::llround(std::sqrt(square)));
}

/// A pseudo-random uniform number in [-1, 1) for a seed (splitmix64).
double uniform(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15u;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((seed ^ (seed >> 31)) >> 11) * 0x1p-52 - 1;
}

template <class Read, class Write>
void move(size_t count, const Rounding& rounding, uint64_t seed, Read&& read, Write&& write) {
  double square = 0;
  size_t finite = 0;
  for (size_t i = 0; i < count; ++i)
    if (double value = read(i); std::isfinite(value)) square += value * value, ++finite;
  double size = finite > 0 ? std::sqrt(square / static_cast<double>(finite)) : 0;
  // The error of a sum of many terms is proportional to the size of the terms, also if these cancel; else to that of
  // the element.
  const bool narrow = rounding.roundoff > 0x1p-24;
  const double sums = rounding.terms > 1 ? roundoff_of_sums(rounding.roundoff) * std::sqrt(rounding.terms) +
                                               (narrow ? rounding.roundoff : 0)
                                         : 0;
  const double common = sums * std::min(size, rounding.sums);
  const double own = 2 * rounding.roundoff + (rounding.sums > 0 ? 0 : sums);
  const double most_exact = 1 / rounding.roundoff;
  for (size_t i = 0; i < count; ++i) {
    const double value = read(i);
    const bool exact = rounding.whole && std::abs(value) <= most_exact && value == std::trunc(value);
    if (std::isfinite(value) && !exact)
      write(i, value + (common + own * std::abs(value)) * uniform(seed * 0x100000001b3u + i));
  }
}

}  // namespace

int fraction_bits(DType dtype) {
  if (dtype == kF16) return 10;
  if (dtype == kBF16) return 7;
  return dtype == kF64 ? 52 : 23;
}

DType coarser(DType a, DType b) {
  if (!a.is_float()) return b.is_float() ? b : kF32;
  if (!b.is_float()) return a;
  return fraction_bits(a) < fraction_bits(b) ? a : b;
}

double unit_roundoff(DType dtype) { return std::ldexp(1.0, -fraction_bits(dtype) - 1); }

double last_place(DType mine, DType golden, double largest) {
  return mine.is_float() ? 2 * unit_roundoff(coarser(mine, golden)) * largest : 0;
}

double error_bound(const BoundFacts& facts) {
  const double storage = unit_roundoff(facts.storage);
  return 2 *
         (static_cast<double>(facts.reduction) * roundoff_of_sums(storage) * facts.magnitude + storage * facts.output);
}

std::optional<BoundFacts> bound_facts(std::string_view op_type, const std::vector<Tensor>& inputs, const Tensor& output,
                                      DType storage) {
  BoundFacts facts;
  facts.storage = storage;
  std::vector<float> floats;
  for (float value : as_floats(output, floats))
    if (std::isfinite(value)) facts.output = std::max<double>(facts.output, std::abs(value));
  OpKind kind = kind_of(op_type);
  bool product = kind == OpKind::convolution || kind == OpKind::product;
  if (kind != OpKind::element && inputs.size() < (product ? 2u : 1u)) return std::nullopt;
  if (product) {
    facts.reduction =
        kind == OpKind::product ? shared_size(inputs[0], inputs[1], output) : kernel_terms(inputs[1], output);
    facts.magnitude = static_cast<double>(facts.reduction) * root_mean_square(inputs[0]) * root_mean_square(inputs[1]);
  } else if (kind == OpKind::element) {
    facts.magnitude = facts.output;
  } else {
    bool keeps = inputs[0].count() == output.count() && output.rank() > 0;  // softmax and norms reduce the last axis
    facts.reduction =
        keeps ? output.dims().back() : std::max<int64_t>(1, inputs[0].count() / std::max<int64_t>(1, output.count()));
    double terms = kind == OpKind::sum ? static_cast<double>(facts.reduction) : 1;
    facts.magnitude = std::max(facts.output, terms * root_mean_square(inputs[0]));
  }
  return facts;
}

double root_mean_square(const Tensor& tensor) {
  std::vector<float> storage;
  double sum = 0;
  for (float value : as_floats(tensor, storage)) sum += static_cast<double>(value) * value;
  return tensor.count() == 0 ? 0 : std::sqrt(sum / static_cast<double>(tensor.count()));
}

bool is_whole(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == kBool || dtype.is_integer()) return true;
  if (!dtype.is_float() || dtype.bits < 16) return false;
  std::vector<float> storage;
  const auto values = as_floats(tensor, storage);
  return std::all_of(values.begin(), values.end(), [](float value) { return value == std::trunc(value); });
}

void add_noise(Tensor tensor, const Rounding& rounding, uint64_t seed) {
  auto count = static_cast<size_t>(tensor.count());
  if (tensor.dtype() == kF32) {
    auto values = tensor.mutable_values<float>();
    move(
        count, rounding, seed, [&](size_t i) { return values[i]; },
        [&](size_t i, double value) { values[i] = static_cast<float>(value); });
  } else if (tensor.dtype() == kF16 || tensor.dtype() == kBF16) {
    auto values = tensor.mutable_values<uint16_t>();
    bool half = tensor.dtype() == kF16;
    move(
        count, rounding, seed, [&](size_t i) { return half ? half_to_float(values[i]) : bfloat_to_float(values[i]); },
        [&](size_t i, double value) {
          values[i] = half ? float_to_half(static_cast<float>(value)) : float_to_bfloat(static_cast<float>(value));
        });
  } else if (tensor.dtype() == kF64) {
    auto values = tensor.mutable_values<double>();
    move(
        count, rounding, seed, [&](size_t i) { return values[i]; }, [&](size_t i, double value) { values[i] = value; });
  }
}

}  // namespace cairn::judge
