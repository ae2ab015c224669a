#include "observe/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engines/cpu/isa.h"

namespace cairn {

namespace {

constexpr size_t kBlock = 2048, kLanes = 16;

/// Of a block of finite or other floats, in lanes, so that the loop is vectors on every processor that has them.
struct Lanes {
  std::array<float, kLanes> least, most;
  std::array<double, kLanes> sum, square;
  std::array<uint32_t, kLanes> odd, zero;  // not finite; zero
};

CAIRN_VECTORISED void add_block(const float* x, size_t count, Lanes& lanes) {
  Lanes at = lanes;
  size_t whole = count / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      float value = x[i + lane];
      bool odd = (std::bit_cast<uint32_t>(value) & 0x7f800000u) == 0x7f800000u;
      float least = odd ? at.least[lane] : value, most = odd ? at.most[lane] : value;
      at.least[lane] = least < at.least[lane] ? least : at.least[lane];
      at.most[lane] = most > at.most[lane] ? most : at.most[lane];
      double number = odd ? 0.0 : static_cast<double>(value);
      at.sum[lane] += number;
      at.square[lane] += number * number;
      at.odd[lane] += odd;
      at.zero[lane] += value == 0;
    }
  lanes = at;
}

CAIRN_VECTORISED bool any_above(const uint32_t* bits, size_t count, uint32_t mask) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<uint32_t>((bits[i] & mask) == mask);
  return found != 0;
}

CAIRN_VECTORISED bool any_above(const uint16_t* bits, size_t count, uint16_t least) {
  uint16_t found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<uint16_t>((bits[i] & 0x7fff) >= least);
  return found != 0;
}

void add_number(Statistics& out, double value) {
  if (std::isnan(value)) {
    ++out.nan;
  } else if (std::isinf(value)) {
    ++(value > 0 ? out.plus_infinite : out.minus_infinite);
  } else {
    out.least = std::min(out.least, value), out.most = std::max(out.most, value);
    out.mean += value, out.norm += value * value;  // sums until finish()
    out.zero += value == 0;
  }
}

void finish(Statistics& out) {
  if (out.finite() == 0) {
    out.least = out.most = out.mean = out.norm = 0;
    return;
  }
  out.mean /= static_cast<double>(out.finite());
  out.norm = std::sqrt(out.norm);
}

void add_floats(Statistics& out, const float* x, size_t count, Lanes& lanes) {
  auto before = lanes.odd;
  add_block(x, count, lanes);
  if (lanes.odd != before)
    for (size_t i = 0; i < count / kLanes * kLanes; ++i)
      if (!std::isfinite(x[i])) add_number(out, x[i]);
  for (size_t i = count / kLanes * kLanes; i < count; ++i) add_number(out, x[i]);
}

void add_lanes(Statistics& out, const Lanes& lanes) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    out.least = std::min<double>(out.least, lanes.least[lane]), out.most = std::max<double>(out.most, lanes.most[lane]);
    out.mean += lanes.sum[lane], out.norm += lanes.square[lane], out.zero += lanes.zero[lane];
  }
}

/// Elements as floats, block by block; those that are no floats yet are converted.
template <class Convert>
void each_block(size_t count, Statistics& out, Convert&& convert) {
  Lanes lanes{};
  lanes.least.fill(std::numeric_limits<float>::infinity()), lanes.most.fill(-std::numeric_limits<float>::infinity());
  for (size_t at = 0; at < count; at += kBlock) {
    size_t part = std::min(kBlock, count - at);
    add_floats(out, convert(at, part), part, lanes);
  }
  add_lanes(out, lanes);
}

}  // namespace

bool has_statistics(DType dtype) {
  bool number = dtype.kind == DType::Kind::boolean || dtype.is_float() || dtype.is_integer();
  return number && dtype.bits >= 8;
}

Statistics statistics_of(const Tensor& tensor) {
  Statistics out;
  out.count = static_cast<size_t>(tensor.count());
  out.least = std::numeric_limits<double>::infinity(), out.most = -out.least;
  std::array<float, kBlock> converted;
  if (tensor.dtype() == kF32) {
    const float* x = tensor.values<float>().data();
    each_block(out.count, out, [&](size_t at, size_t) { return x + at; });
  } else if (tensor.dtype() == kF16 || tensor.dtype() == kBF16) {
    const uint16_t* x = tensor.values<uint16_t>().data();
    bool half = tensor.dtype() == kF16;
    each_block(out.count, out, [&](size_t at, size_t part) {
      for (size_t i = 0; i < part; ++i) converted[i] = half ? half_to_float(x[at + i]) : bfloat_to_float(x[at + i]);
      return converted.data();
    });
  } else {
    for (double value : tensor.as_f64()) add_number(out, value);
  }
  finish(out);
  return out;
}

bool overflows(const Tensor& tensor) {
  auto count = static_cast<size_t>(tensor.count());
  const void* data = tensor.data();
  if (tensor.dtype() == kF32) return any_above(static_cast<const uint32_t*>(data), count, 0x7f800000u);
  if (tensor.dtype() == kF16) return any_above(static_cast<const uint16_t*>(data), count, uint16_t{0x7bff});
  if (tensor.dtype() == kBF16) return any_above(static_cast<const uint16_t*>(data), count, uint16_t{0x7f80});
  if (tensor.dtype() != kF64) return false;
  auto values = tensor.values<double>();
  return std::any_of(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
}

}  // namespace cairn
