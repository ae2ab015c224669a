#include "observe/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engines/cpu/isa.h"

namespace cairn {

namespace {

constexpr size_t kBlock = 2048, kLanes = 16;

using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
constexpr size_t kParts = 2, kPart = kLanes / kParts;  // in doubles
using Part = float __attribute__((vector_size(kPart * sizeof(float))));
using Doubles = double __attribute__((vector_size(kPart * sizeof(double))));

/// Statistics of a block with a whole number of lanes.
struct Block {
  float least, most;
  double sum, square;  // the square is finite if all elements are; else the other members are meaningless
  size_t zero;
};

CAIRN_VECTORISED(Block, look_at, (const float* x, size_t count)) {
  Floats least = Floats{} + std::numeric_limits<float>::infinity(), most = -least;
  Doubles sums[kParts] = {}, squares[kParts] = {};
  Words zero = {};
  for (size_t i = 0; i < count; i += kLanes) {
    Floats value;
    std::memcpy(&value, x + i, sizeof value);
    zero += value == 0;
    least = value < least ? value : least;
    most = value > most ? value : most;
    for (size_t part = 0; part < kParts; ++part) {
      Part narrow;
      std::memcpy(&narrow, x + i + part * kPart, sizeof narrow);
      const Doubles wide = __builtin_convertvector(narrow, Doubles);
      sums[part] += wide, squares[part] += wide * wide;
    }
  }
  Block block{least[0], most[0], 0, 0, 0};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    block.least = least[lane] < block.least ? least[lane] : block.least;  // calls would use another instruction set
    block.most = most[lane] > block.most ? most[lane] : block.most;
    block.sum += sums[lane / kPart][lane % kPart], block.square += squares[lane / kPart][lane % kPart];
    block.zero += static_cast<size_t>(-zero[lane]);
  }
  return block;
}

CAIRN_VECTORISED(bool, any_word_above, (const uint32_t* bits, size_t count, uint32_t mask)) {
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) found |= static_cast<uint32_t>((bits[i] & mask) == mask);
  return found != 0;
}

CAIRN_VECTORISED(bool, any_half_above, (const uint16_t* bits, size_t count, uint16_t least)) {
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

Statistics begin(size_t count) {
  Statistics out;
  out.count = count;
  out.least = std::numeric_limits<double>::infinity(), out.most = -out.least;
  return out;
}

void finish(Statistics& out) {
  if (out.finite() == 0) {
    out.least = out.most = out.mean = out.norm = 0;
    return;
  }
  out.mean /= static_cast<double>(out.finite());
  out.norm = std::sqrt(out.norm);
}

void add_floats(Statistics& out, const float* x, size_t count) {
  size_t whole = count / kLanes * kLanes;
  if (whole > 0) {
    Block block = look_at(x, whole);
    if (!std::isfinite(block.square)) {
      whole = 0;
    } else {
      out.least = std::min<double>(out.least, block.least), out.most = std::max<double>(out.most, block.most);
      out.mean += block.sum, out.norm += block.square, out.zero += block.zero;
    }
  }
  for (size_t i = whole; i < count; ++i) add_number(out, x[i]);
}

/// Processes the elements as floats, block by block, converting other types.
template <class Convert>
void each_block(size_t count, Statistics& out, Convert&& convert) {
  for (size_t at = 0; at < count; at += kBlock) {
    size_t part = std::min(kBlock, count - at);
    add_floats(out, convert(at, part), part);
  }
}

}  // namespace

bool has_statistics(DType dtype) {
  bool number = dtype.kind == DType::Kind::boolean || dtype.is_float() || dtype.is_integer();
  return number && dtype.bits >= 8;
}

Statistics statistics_of(const float* x, size_t count) {
  Statistics out = begin(count);
  each_block(count, out, [&](size_t at, size_t) { return x + at; });
  finish(out);
  return out;
}

Statistics statistics_of(const Tensor& tensor) {
  if (tensor.dtype() == kF32) {
    auto values = tensor.values<float>();
    return statistics_of(values.data(), values.size());
  }
  Statistics out = begin(static_cast<size_t>(tensor.count()));
  std::array<float, kBlock> converted;
  if (tensor.dtype() == kF16 || tensor.dtype() == kBF16) {
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
  if (tensor.dtype() == kF32) return any_word_above(static_cast<const uint32_t*>(data), count, 0x7f800000u);
  if (tensor.dtype() == kF16) return any_half_above(static_cast<const uint16_t*>(data), count, uint16_t{0x7bff});
  if (tensor.dtype() == kBF16) return any_half_above(static_cast<const uint16_t*>(data), count, uint16_t{0x7f80});
  if (tensor.dtype() != kF64) return false;
  auto values = tensor.values<double>();
  return std::any_of(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
}

}  // namespace cairn
