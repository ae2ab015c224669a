#include "engines/cpu/winograd.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "engines/cpu/conv.h"
#include "support/error.h"
#include "support/target.h"

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")

namespace cairn {

namespace {

CAIRN_TARGET_BEGIN("arch=x86-64-v3")
namespace winograd_avx2 {
#define CAIRN_FLOATS 8
#include "engines/cpu/winograd_body.h"
#undef CAIRN_FLOATS
}  // namespace winograd_avx2
CAIRN_TARGET_END

CAIRN_TARGET_BEGIN("arch=x86-64-v4")
namespace winograd_avx512 {
#define CAIRN_FLOATS 16
#include "engines/cpu/winograd_body.h"
#undef CAIRN_FLOATS
}  // namespace winograd_avx512
CAIRN_TARGET_END

constexpr int64_t kApart = 16;  // floats that keep rows out of one set of the first-level cache
constexpr int64_t kValuesBytes = 640 << 10, kLeastBlock = 56;  // of a block: its values stay in the second-level cache
constexpr int64_t kFewestTiles = 24;                           // of a block that is made for another worker
constexpr int64_t kNearWeights = 1 << 20;                      // bytes that each block may read again
constexpr int64_t kChunksPerWorker = 4;

int64_t rounded_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

}  // namespace

WinogradCode winograd_code(Isa isa, int64_t results) {
  return isa == Isa::avx512 ? winograd_avx512::code_for(results) : winograd_avx2::code_for(results);
}

int winograd_block(int64_t steps) {
  constexpr int kApart = 16;
  return steps >= 2 * kApart ? kApart : 0;
}

namespace {

// The more channels, the longer the sums by the definition: four parts err little more than many, and take less time.
int channels_apart(int64_t channels) {
  constexpr int64_t kMany = 128;
  return channels < kMany ? winograd_block(channels) : static_cast<int>(rounded_up(channels / 4, 8));
}

}  // namespace

// The constants are of one core of an Intel server with AVX-512 (docs/dev/performance.md); with AVX2 half as much is done at a
// time, and the parts keep their proportions.
int64_t Winograd::best_results(const WinogradSpec& s, Isa isa, double gain) {
  constexpr double kFlopsPerLane = 10, kBytes = 10, kPackedBytes = 8;  // per ns
  constexpr double kVector[] = {31, 58, 90};                           // ns, for 2 to 4 results
  if (isa == Isa::none) return 0;
  const auto lane = static_cast<double>(lanes(isa));
  const double channels = static_cast<double>(s.ic * s.oc), weights = 4 * channels;
  const auto time = [&](double products, double transforms, double copies) {
    const double packing = s.packed_in_run ? copies * weights / kPackedBytes : 0;
    return std::max(2 * products * channels / (kFlopsPerLane * lane), copies * weights / kBytes) + transforms + packing;
  };
  // Taps outside the image cost nothing.
  const auto inside = [](int64_t out, int64_t in, int64_t pad) {
    int64_t taps = 0;
    for (int64_t tap = 0; tap < 3; ++tap)
      taps += std::max<int64_t>(0, std::min(out, in + pad - tap) - std::max<int64_t>(0, pad - tap));
    return static_cast<double>(taps);
  };
  double best =
      gain * time(static_cast<double>(s.n) * inside(s.oh, s.h, s.pad_top) * inside(s.ow, s.w, s.pad_left), 0, 9);
  int64_t results = 0;
  for (int64_t each = 2; each <= s.most_results; ++each) {
    const auto tiles = static_cast<double>(s.tiles(each)), points = static_cast<double>((each + 2) * (each + 2));
    const double vectors = std::ceil(static_cast<double>(s.ic) / lane) + std::ceil(static_cast<double>(s.oc) / lane);
    const double found = time(points * tiles, tiles * vectors * kVector[each - 2], points);
    if (found < best)
      best = found * (each == 2 ? gain : 1), results = each;  // tiles of 2 x 2 need less memory, and err less
  }
  return results;
}

Winograd::Winograd(const WinogradSpec& spec, int64_t results, Isa isa, int threads)
    : spec_(spec), results_(results), isa_(isa), threads_(threads) {
  CHECK(isa != Isa::none && results >= 2 && results <= 4, "tiles of {} results", results);
  vectors_ = spec.oc > lanes(isa) ? 2 : 1;
  width_ = vectors_ * lanes(isa);
  panels_ = (spec.oc + width_ - 1) / width_;
  most_rows_ = most_pixels(isa, vectors_);
  tiles_ = spec.tiles(results);
  WinogradLoops& s = loops_;
  s.h = spec.h, s.w = spec.w, s.ic = s.x_pixel = spec.ic, s.oc = spec.oc, s.oh = spec.oh, s.ow = spec.ow;
  s.pad_top = spec.pad_top, s.pad_left = spec.pad_left;
  s.x_form = spec.x_form, s.narrow = spec.narrow;
  s.tiles_y = (spec.oh + results - 1) / results, s.tiles_x = (spec.ow + results - 1) / results;
  s.v_point = rounded_up(spec.ic, 16) + kApart, s.v_tile = points() * s.v_point + kApart;
  s.m_point = width_, s.m_tile = points() * width_ + kApart;
  choose_blocks(threads);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  using Kind = Activation::Kind;
  const Activation& activation = spec.activation;
  s.low = activation.kind == Kind::clip ? activation.low : activation.kind == Kind::relu ? 0.f : -kInfinity;
  s.high = activation.kind == Kind::clip ? activation.high : kInfinity;
  code_ = winograd_code(isa, results);
  for (int64_t block = 0; block < blocks_; ++block) add_rows(first_of(block + 1) - first_of(block));
}

// As many tiles as have their values in the second-level cache, so that weights are read rarely. Each worker takes whole
// blocks where there are enough, or small ones that read near weights again; else all share the panels of each block.
void Winograd::choose_blocks(int threads) {
  const int64_t most = std::max(kLeastBlock, kValuesBytes / (loops_.v_tile * 4));
  const int64_t wanted = threads == 1 ? 1 : threads * kChunksPerWorker;
  blocks_ = (tiles_ + most - 1) / most;
  if (blocks_ < wanted && tiles_ >= wanted * kFewestTiles && points() * spec_.ic * spec_.oc * 4 <= kNearWeights)
    blocks_ = wanted;
  alone_ = blocks_ >= wanted;
  if (!alone_ && blocks_ * panels_ < wanted)
    blocks_ = std::clamp((wanted + panels_ - 1) / panels_, blocks_, std::max(blocks_, tiles_ / kFewestTiles));
  most_tiles_ = (tiles_ + blocks_ - 1) / blocks_;
}

void Winograd::add_rows(int64_t tiles) {
  auto [place, is_new] = rows_.try_emplace(tiles);
  if (!is_new) return;
  const int64_t count = (tiles + most_rows_ - 1) / most_rows_;
  for (int64_t i = 0, first = 0; i < count; ++i) {
    const int64_t rows = tiles / count + (i < tiles % count);
    TileSpec tile;
    tile.isa = isa_, tile.vectors = vectors_, tile.columns = static_cast<int>(width_);
    for (int64_t row = 0; row < rows; ++row) tile.pixel_bytes.push_back(row * loops_.v_tile * 4);
    tile.rows = {{{0, 0, static_cast<int>(spec_.ic), static_cast<uint32_t>((uint64_t{1} << rows) - 1)}}};
    tile.a_row_bytes = loops_.v_tile * 4, tile.b_row_rows = static_cast<int>(spec_.ic);
    tile.block_steps = results_ < 4 || is_narrow(spec_.x_form) ? block_steps(spec_.ic) : channels_apart(spec_.ic);
    tile.c_stride = loops_.m_tile;
    tile.ahead_lines = static_cast<int>((spec_.ic * width_ / 16 + count - 1) / count);
    kernels_.push_back(TileKernel::make(tile));
    place->second.push_back({first, kernels_.back()->function()});
    first += rows;
  }
}

std::string Winograd::layout() const {
  return fmt::format("winograd {} panel{} {}x{} rounded {}", results_, width_, spec_.ic, spec_.oc,
                     static_cast<int>(spec_.precision));
}

// [panel][point][ic][width], some channels of a panel at a time.
void Winograd::pack(Executor& executor, const void* kernel, bool turned, float* packed) const {
  constexpr int64_t kRows = 16, kMostWidth = 32;
  const int64_t blocks = (spec_.ic + kRows - 1) / kRows, taps_step = spec_.ic * spec_.oc;
  const int64_t row_step = turned ? 1 : spec_.oc, column_step = turned ? spec_.ic : 1;
  executor.run(static_cast<int>(panels_ * blocks), [&](int chunk, int) {
    const int64_t panel = chunk / blocks, first = chunk % blocks * kRows;
    const int64_t rows = std::min(kRows, spec_.ic - first), columns = std::min(width_, spec_.oc - panel * width_);
    alignas(64) float taps[9 * kRows * kMostWidth];
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t at = (turned ? 8 - tap : tap) * taps_step + first * row_step + panel * width_ * column_step;
      pack_rows(spec_.kernel_form, static_cast<const char*>(kernel) + at * bytes_of(spec_.kernel_form), rows, row_step,
                columns, column_step, width_, taps + tap * rows * width_, spec_.precision);
    }
    code_.transform_kernel(rows * width_, taps, packed + panel * panel_floats() + first * width_, spec_.ic * width_);
  });
}

void Winograd::pack_bias(const float* bias, float* packed) const {
  std::fill_n(packed, bias_size(), 0.f);
  if (bias) std::copy_n(bias, spec_.oc, packed);
}

size_t Winograd::scratch_size() const {
  return static_cast<size_t>((alone_ ? threads_ : blocks_) * v_floats() + threads_ * m_floats());
}

void Winograd::multiply(int64_t tiles, int64_t panel, const float* v, const float* packed, float* m) const {
  alignas(64) static constexpr float kNoBias[64] = {};
  const std::vector<Rows>& rows = rows_.find(tiles)->second;
  const int64_t point_floats = spec_.ic * width_;
  const float* b = packed + panel * panel_floats();
  for (int64_t point = 0; point < points(); ++point, b += point_floats)
    for (size_t i = 0; i < rows.size(); ++i) {  // which fetch a part each of the next point's panel
      float* to = m + point * loops_.m_point + rows[i].first * loops_.m_tile;
      rows[i].function(v + point * loops_.v_point + rows[i].first * loops_.v_tile, b, to, kNoBias, to,
                       b + point_floats * (rows.size() + i) / rows.size());
    }
}

void Winograd::run(Executor& executor, const void* x, const float* packed, const float* bias, const float* zeros,
                   const void* residual, void* y, float* scratch) const {
  if (!spec_.residual) residual = nullptr;
  float* products = scratch + (alone_ ? threads_ : blocks_) * v_floats();
  const auto make_panel = [&](int64_t block, int64_t panel, const float* v, int worker) {
    const int64_t first = first_of(block), last = first_of(block + 1), begin = panel * width_;
    float* m = products + worker * m_floats();
    multiply(last - first, panel, v, packed, m);
    code_.finish(loops_, first, last, begin, std::min(spec_.oc, begin + width_), m, bias, residual, y);
  };
  if (alone_)
    return executor.run(static_cast<int>(blocks_), [&](int block, int worker) {
      float* v = scratch + worker * v_floats();
      code_.transform(loops_, first_of(block), first_of(block + 1), x, zeros, v);
      for (int64_t panel = 0; panel < panels_; ++panel) make_panel(block, panel, v, worker);
    });
  constexpr int64_t kTogether = 4;  // tiles
  const int64_t parts = (most_tiles_ + kTogether - 1) / kTogether;
  executor.run(static_cast<int>(blocks_ * parts), [&](int chunk, int) {
    const int64_t block = chunk / parts, first = first_of(block) + chunk % parts * kTogether;
    const int64_t last = std::min(first + kTogether, first_of(block + 1));
    if (first >= last) return;
    code_.transform(loops_, first, last, x, zeros,
                    scratch + block * v_floats() + chunk % parts * kTogether * loops_.v_tile);
  });
  executor.run(static_cast<int>(blocks_ * panels_), [&](int chunk, int worker) {
    const int64_t block = chunk / panels_;
    make_panel(block, chunk % panels_, scratch + block * v_floats(), worker);
  });
}

std::string Winograd::describe() const {
  return fmt::format("F({}x{},3x3) {}x{} {}, {} of {} tiles{}{}", results_, results_, most_rows_, width_,
                     to_string(isa_), most_tiles_, tiles_, alone_ ? "" : " by panels",
                     is_narrow(spec_.x_form) || spec_.narrow.acts()
                         ? fmt::format(", {} to {}", to_string(spec_.x_form), to_string(spec_.narrow.result))
                         : "");
}

}  // namespace cairn
