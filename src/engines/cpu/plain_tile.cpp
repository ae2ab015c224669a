#include "engines/cpu/plain_tile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "support/error.h"

namespace cairn {

namespace {

constexpr int kLanes = 8, kMostVectors = 4;
typedef float Lane __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

template <int vectors>
struct Sums {
  Lane lanes[vectors];
  Lane& operator[](int j) { return lanes[j]; }
};

template <int vectors>
void add_steps(Sums<vectors>& sums, int steps, const char* a, int64_t a_step, const char* b, int64_t b_step) {
  Sums<vectors> now = sums;  // in registers
  for (int step = 0; step < steps; ++step, a += a_step, b += b_step)
    for (int j = 0; j < vectors; ++j)
      now[j] += *reinterpret_cast<const float*>(a) * reinterpret_cast<const Lane*>(b)[j];
  sums = now;
}

template <int vectors>
Sums<vectors> sums_of(const TileSpec& s, size_t pixel, const char* a, const char* b) {
  Sums<vectors> sums{}, block_sums{}, total{};
  const auto move = [](Sums<vectors>& from, Sums<vectors>& to) {
    for (int j = 0; j < vectors; ++j) to[j] += from[j];
    from = {};
  };
  const int64_t b_step = s.b_step_bytes ? s.b_step_bytes : s.vectors * kLanes * 4;
  const size_t plane = s.plane_rows ? static_cast<size_t>(s.plane_rows) : s.rows.size();
  for (size_t y = 0; y < s.rows.size(); ++y, b += s.b_row_rows * b_step) {
    const char* row =
        a + static_cast<int64_t>(y / plane) * s.a_plane_bytes + static_cast<int64_t>(y % plane) * s.a_row_bytes;
    for (const TapRun& run : s.rows[y]) {
      if (!(run.pixels >> pixel & 1)) continue;
      const char* x = row + run.a_bytes + s.pixel_bytes[pixel];
      const char* w = b + run.b_row * b_step;
      int left = run.length;
      if (s.block_steps) move(sums, block_sums);
      for (int block = 1; s.block_steps && left > s.block_steps; left -= s.block_steps, ++block) {
        add_steps<vectors>(sums, s.block_steps, x, s.a_step_bytes, w, b_step);
        move(sums, block_sums);
        if (block % kBlocksTogether == 0) move(block_sums, total);
        x += s.block_steps * s.a_step_bytes, w += s.block_steps * b_step;
      }
      add_steps<vectors>(sums, left, x, s.a_step_bytes, w, b_step);
    }
  }
  if (s.block_steps) move(block_sums, total), move(total, sums);
  return sums;
}

float activated(const Activation& activation, float sum) {
  if (activation.kind == Activation::Kind::none) return sum;
  const bool clip = activation.kind == Activation::Kind::clip;
  const float low = clip ? activation.low : 0;
  sum = sum < low ? low : sum;  // keeps NaN
  return clip && sum > activation.high ? activation.high : sum;
}

float element(const void* data, int64_t at, Form form) {
  float value = 0;
  widen(form, 1, static_cast<const char*>(data) + at * bytes_of(form), &value);
  return value;
}

float rounded(float value, Form form) {
  uint16_t bits = 0;
  narrow(form, 1, &value, &bits);
  return element(&bits, 0, form);
}

template <int vectors>
void run_tile(const void* a, const void* b, void* c, const void* bias, const void* residual,
              const void* specification) {
  const auto* spec = static_cast<const TileSpec*>(specification);
  for (size_t i = 0; i < spec->pixel_bytes.size(); ++i) {
    auto sums = sums_of<vectors>(*spec, i, static_cast<const char*>(a), static_cast<const char*>(b));
    const int64_t at = static_cast<int64_t>(i) * spec->c_stride;
    for (int column = 0; column < spec->columns; ++column) {
      const NarrowEpilogue& narrow = spec->narrow;
      float sum = sums[column / kLanes][column % kLanes];
      if (narrow.rounds_sum) sum = rounded(sum, narrow.result);
      sum += static_cast<const float*>(bias)[column];
      if (narrow.rounds_biased) sum = rounded(sum, narrow.result);
      if (spec->residual) sum += element(residual, at + column, narrow.residual);
      cairn::narrow(narrow.result, 1, std::array{activated(spec->activation, sum)}.data(),
                    static_cast<char*>(c) + (at + column) * bytes_of(narrow.result));
    }
  }
}

// Products of words: two steps of k in an element of 4 bytes.
struct IntegerLanes {
  typedef int32_t Lane __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));
  Lane lanes[kMostVectors];
  int32_t operator[](int column) const { return lanes[column / kLanes][column % kLanes]; }
};

void add_words(IntegerLanes& sums, int vectors, int steps, const char* a, int64_t a_step, const char* b,
               int64_t b_step) {
  for (int step = 0; step < steps; ++step, a += a_step, b += b_step) {
    int16_t pair[2];
    std::memcpy(pair, a, sizeof pair);
    for (int j = 0; j < vectors; ++j) {
      const auto& row = reinterpret_cast<const IntegerLanes::Lane*>(b)[j];
      sums.lanes[j] += (row << 16 >> 16) * int32_t{pair[0]} + (row >> 16) * int32_t{pair[1]};
    }
  }
}

void sum_words(const TileSpec& s, size_t pixel, const char* a, const char* b, const float* parameters,
               IntegerLanes& sums) {
  const int width = s.vectors * kLanes;
  std::memcpy(&sums, parameters + s.start_rows[pixel] * width, static_cast<size_t>(width) * sizeof(int32_t));
  const int64_t b_step = s.b_step_bytes ? s.b_step_bytes : width * 4;
  const size_t plane = s.plane_rows ? static_cast<size_t>(s.plane_rows) : s.rows.size();
  for (size_t y = 0; y < s.rows.size(); ++y, b += s.b_row_rows * b_step)
    for (const TapRun& run : s.rows[y])
      if (run.pixels >> pixel & 1)
        add_words(sums, s.vectors, run.length,
                  a + static_cast<int64_t>(y / plane) * s.a_plane_bytes +
                      static_cast<int64_t>(y % plane) * s.a_row_bytes + run.a_bytes + s.pixel_bytes[pixel],
                  s.a_step_bytes, b + run.b_row * b_step, b_step);
}

/// x * y + z, rounded once but for ties of the rounding to double.
float times_plus(float x, float y, float z) {
  return static_cast<float>(static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z));
}

void finish_sum(const TileSpec& s, int32_t sum, int column, const float* parameters, const void* residual, int64_t at,
                void* c) {
  using Output = IntegerEpilogue::Output;
  using Residual = IntegerEpilogue::Residual;
  const IntegerEpilogue& e = s.epilogue;
  if (e.output == Output::sums) {
    static_cast<int32_t*>(c)[at] = sum;
    return;
  }
  const auto parameter = [&](int row) { return parameters[(s.parameter_rows + row) * s.vectors * kLanes + column]; };
  const auto clipped = [](float x, float low, float high) { return std::min(std::max(x, low), high); };
  float y = times_plus(static_cast<float>(sum), parameter(0), parameter(1));
  y = clipped(y, e.first_low, e.first_high);
  if (e.rounds) y = clipped(std::nearbyint(y), e.round_low, e.round_high) * e.round_scale;
  if (e.later_bias) y += parameter(2);
  if (e.residual != Residual::none) {
    const float other = e.residual == Residual::floats ? static_cast<const float*>(residual)[at]
                        : e.residual == Residual::u8   ? static_cast<float>(static_cast<const uint8_t*>(residual)[at])
                                                       : static_cast<float>(static_cast<const int8_t*>(residual)[at]);
    y = times_plus(other, e.residual_scale, y);
    if (e.residual_shift != 0) y += e.residual_shift;
  }
  y = clipped(y, e.low, e.high);
  if (e.output == Output::floats)
    static_cast<float*>(c)[at] = y;
  else
    static_cast<uint8_t*>(c)[at] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(y)) + e.zero_point);
}

void run_integer_tile(const void* a, const void* b, void* c, const void* parameters, const void* residual,
                      const void* specification) {
  const auto* spec = static_cast<const TileSpec*>(specification);
  const auto* rows = static_cast<const float*>(parameters);
  for (size_t i = 0; i < spec->pixel_bytes.size(); ++i) {
    IntegerLanes sums;
    sum_words(*spec, i, static_cast<const char*>(a), static_cast<const char*>(b), rows, sums);
    for (int column = 0; column < spec->columns; ++column)
      finish_sum(*spec, sums[column], column, rows, residual, static_cast<int64_t>(i) * spec->c_stride + column, c);
  }
}

}  // namespace

PlainTile::PlainTile(const TileSpec& spec) : spec_(spec) {
  constexpr TileFunction::Code kCodes[kMostVectors] = {run_tile<1>, run_tile<2>, run_tile<3>, run_tile<4>};
  const int vectors = (spec.columns + kLanes - 1) / kLanes;
  CHECK(vectors >= 1 && vectors <= kMostVectors && lanes(spec.isa) == kLanes, "tile of {} columns", spec.columns);
  function_ = {is_integer(spec.arithmetic) ? run_integer_tile : kCodes[vectors - 1], &spec_};
}

}  // namespace cairn
