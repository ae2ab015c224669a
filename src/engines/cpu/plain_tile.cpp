#include "engines/cpu/plain_tile.h"

#include <array>
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
Sums<vectors> sums_of(const TileSpec& s, size_t pixel, const char* a, const char* b, const void* bias) {
  Sums<vectors> sums, total{};
  if (s.narrow.rounds_sum)
    sums = {};
  else
    std::memcpy(&sums, bias, sizeof sums);
  if (s.block_steps) std::swap(sums, total);
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
      for (; s.block_steps && left > s.block_steps; left -= s.block_steps) {
        add_steps<vectors>(sums, s.block_steps, x, s.a_step_bytes, w, b_step);
        for (int j = 0; j < vectors; ++j) total[j] += sums[j];
        sums = {};
        x += s.block_steps * s.a_step_bytes, w += s.block_steps * b_step;
      }
      add_steps<vectors>(sums, left, x, s.a_step_bytes, w, b_step);
    }
  }
  if (s.block_steps)
    for (int j = 0; j < vectors; ++j) sums[j] += total[j];
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
void run_tile(const void* a, const void* b, void* c, const void* bias, const void* residual, const TileSpec* spec) {
  for (size_t i = 0; i < spec->pixel_bytes.size(); ++i) {
    auto sums = sums_of<vectors>(*spec, i, static_cast<const char*>(a), static_cast<const char*>(b), bias);
    const int64_t at = static_cast<int64_t>(i) * spec->c_stride;
    for (int column = 0; column < spec->columns; ++column) {
      const NarrowEpilogue& narrow = spec->narrow;
      float sum = sums[column / kLanes][column % kLanes];
      if (narrow.rounds_sum) sum = rounded(sum, narrow.result) + static_cast<const float*>(bias)[column];
      if (narrow.rounds_biased) sum = rounded(sum, narrow.result);
      if (spec->residual) sum += element(residual, at + column, narrow.residual);
      cairn::narrow(narrow.result, 1, std::array{activated(spec->activation, sum)}.data(),
                    static_cast<char*>(c) + (at + column) * bytes_of(narrow.result));
    }
  }
}

}  // namespace

PlainTile::PlainTile(const TileSpec& spec) : spec_(spec) {
  constexpr TileFunction::Code kCodes[kMostVectors] = {run_tile<1>, run_tile<2>, run_tile<3>, run_tile<4>};
  const int vectors = (spec.columns + kLanes - 1) / kLanes;
  CHECK(vectors >= 1 && vectors <= kMostVectors && lanes(spec.isa) == kLanes, "tile of {} columns", spec.columns);
  function_ = {kCodes[vectors - 1], &spec_};
}

}  // namespace cairn
