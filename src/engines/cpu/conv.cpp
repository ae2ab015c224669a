#include "engines/cpu/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "engines/cpu/vector_loops.h"
#include "support/error.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int64_t kFewTiles = 16, kFewRows = 64;
constexpr int64_t kChunkBytes = 192 << 10;  // bound of the input of a chunk's tiles: it stays in the second-level cache
constexpr int64_t kLeastTiles = 4;          // fewest tiles of a chunk that reads all weights
constexpr int64_t kPanelBytes = 768 << 10;  // bound of a panel's weights that stay in the second-level cache
constexpr int64_t kChunksPerThread = 6;
constexpr int64_t kFarPixels = 1 << 20;  // bytes of an image that no second-level cache holds beside others
constexpr size_t kApartBytes = 1 << 20;  // of packed weights, whose pieces of rows lie in too many pages

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The number of runs of taps in a tile's code: each row of taps inside the image is one run, and equal rows share a
// loop.
int64_t taps_in_code(const ConvSpec& s) {
  const auto inside = [](int64_t in, int64_t out, int64_t taps, int64_t stride, int64_t dilation, int64_t pad) {
    return pad <= 0 && (out - 1) * stride + (taps - 1) * dilation + 1 - pad <= in;
  };
  const bool dense = s.dilation_w == 1 && (s.x_pixel == 0 || s.x_pixel == s.ic);
  const bool whole = dense && inside(s.w, s.ow, s.kw, s.stride_w, s.dilation_w, s.pad_left);
  return s.kd * (whole ? 1 : s.kw) * (inside(s.h, s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top) ? 1 : s.kh);
}

/// Elements of k side by side in x: channels, or all taps of a row.
int64_t longest_run(const ConvSpec& s) {
  const bool joined = s.dilation_w == 1 && (s.x_pixel == 0 || s.x_pixel == s.ic);
  return (joined ? s.kw : 1) * s.ic;
}

/// How many elements of k are multiplied at once in a run of this length: a rest is gathered first, which takes as long as some steps.
int matrix_steps(int64_t length) {
  constexpr int64_t kGathering = 3;
  int best = kMatrixRows;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int steps = kMatrixRows; steps > 0; --steps)
    if (const int64_t cost = length / steps + (length % steps ? kGathering : 0); cost < least)
      least = cost, best = steps;
  return best;
}

/// How many pixels so many bytes apart the first-level cache holds a line of: those a multiple of a way's size apart share a set.
int64_t most_in_cache(int64_t step) {
  constexpr int64_t kWays = 8, kWayBytes = 4 << 10;
  return kWays * (kWayBytes / std::gcd(step, kWayBytes));
}

}  // namespace

// The number of steps that are summed before their sum is added to the total: the rounding error of one long sum grows
// with its length, that of a blocked sum with block length plus number of blocks. Blocks are multiples of the tile's
// unrolled steps, of nearly equal size.
int block_steps(int64_t steps) {
  constexpr int64_t kLongest = 256;
  if (steps <= kLongest + kLongest / 2) return 0;
  return static_cast<int>(ceil_div(ceil_div(steps, ceil_div(steps, kLongest)), 8) * 8);
}

ConvSpec conv_spec(const SlideSpec& slide, int64_t oc) {
  ConvSpec spec;
  spec.n = slide.n, spec.d = slide.d, spec.h = slide.h, spec.w = slide.w, spec.ic = slide.channels;
  spec.oc = oc, spec.od = slide.od, spec.oh = slide.oh, spec.ow = slide.ow;
  spec.kd = slide.kd, spec.kh = slide.kh, spec.kw = slide.kw;
  spec.stride_d = slide.stride_d, spec.stride_h = slide.stride_h, spec.stride_w = slide.stride_w;
  spec.dilation_d = slide.dilation_d, spec.dilation_h = slide.dilation_h, spec.dilation_w = slide.dilation_w;
  spec.pad_front = slide.pad_front, spec.pad_top = slide.pad_top, spec.pad_left = slide.pad_left;
  return spec;
}

std::optional<std::string> Conv::refuses(const ConvSpec& spec, Isa isa) {
  if (isa == Isa::none && spec.arithmetic != Arithmetic::floats && spec.arithmetic != Arithmetic::words)
    return "needs a processor with AVX2 and FMA";
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 4;
  const int64_t x_pixel = std::max(spec.x_pixel, spec.ic), y_pixel = std::max(spec.y_pixel, spec.oc);
  const int64_t y_slice = std::max(spec.y_slice, spec.oh * std::max(spec.y_row, spec.ow * y_pixel));
  if (spec.d * spec.h * spec.w * x_pixel > kMost || spec.taps() * spec.ic * 64 > kMost || spec.od * y_slice > kMost)
    return "one image is larger than 512 Mi elements";
  if (spec.transposed_x && spec.w > kMost / 64) return "first operand is transposed and has too many rows";
  CHECK(!spec.transposed_x || (spec.n * spec.d * spec.h * spec.taps() == 1 && spec.w == spec.ow),
        "only matrices are transposed");
  if (spec.ic == 0 || spec.oc == 0 || spec.taps() == 0) return "has no channels or no taps";
  if (taps_in_code(spec) > 225) return fmt::format("kernel of {} taps would be too much code", spec.taps());
  return std::nullopt;
}

Conv::Conv(const ConvSpec& spec, Isa isa, int threads) : spec_(spec), isa_(isa) {
  if (!spec_.x_pixel) spec_.x_pixel = spec_.ic;
  if (!spec_.y_pixel) spec_.y_pixel = spec_.oc;
  if (!spec_.y_row) spec_.y_row = spec_.ow * spec_.y_pixel;
  if (!spec_.y_slice) spec_.y_slice = spec_.oh * spec_.y_row;
  if (!spec_.y_image) spec_.y_image = spec_.od * spec_.y_slice;
  if (is_matrix()) {  // the pixels of all images and rows form one list
    spec_.w = spec_.ow = spec_.n * spec_.h * spec_.w;
    spec_.n = spec_.h = spec_.oh = 1;
    spec_.y_row = spec_.y_slice = spec_.y_image = spec_.ow * spec_.y_pixel;
  }
  matrix_registers_ = suits_matrix_registers(spec_, isa);
  if (matrix_registers_) matrix_steps_ = matrix_steps(longest_run(spec_));
  choose_panel(isa, threads);
  if (matrix_registers_ && integers() && spec_.ic % kMatrixRows != 0) spare_rows_ = kMatrixRows - 1;
  panels_ = ceil_div(spec_.oc, width_);
  const PanelLayout panel = panel_layout();
  panel_floats_ = static_cast<size_t>(panel.stored == Stored::floats ? (panel.rows + spare_rows_) * width_
                                                                     : ceil_div(panel.bytes(), 64) * 16);
  constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max();  // of a displacement in generated code
  reads_weights_ = spec_.weights_form == Form::floats && spec_.precision == Form::floats && spec_.packed_in_run &&
                   spec_.plain_weights && is_matrix() && spec_.ow <= most_pixels_ &&
                   spec_.ic * spec_.oc * 4 <= kMostBytes;
  brief_ = is_brief();
  if (integers()) find_tap_sets();
  cut();
  made_.clear();
  choose_chunks(threads);
}

bool Conv::is_matrix() const {
  return spec_.taps() == 1 && spec_.d == 1 && spec_.od == 1 && spec_.stride_h == 1 && spec_.stride_w == 1 &&
         spec_.pad_front == 0 && spec_.pad_top == 0 && spec_.pad_left == 0 && spec_.oh == spec_.h &&
         spec_.ow == spec_.w && slices_adjoin() && spec_.y_image == spec_.od * spec_.y_slice;
}

// Whether products of matrix registers, which cost as much for one pixel and one element of k as for 16 of each, take less time than
// those of vectors.
bool Conv::suits_matrix_registers(const ConvSpec& s, Isa isa) {
  constexpr int64_t kLeastPixels = 6, kLeastElements = 4;
  if (isa != Isa::avx512 || !machine_has_matrix_registers() || s.transposed_x) return false;
  if (s.arithmetic != Arithmetic::bytes && s.arithmetic != Arithmetic::pairs) return false;
  return s.n * s.od * s.oh * s.ow >= kLeastPixels && longest_run(s) >= kLeastElements;
}

bool Conv::rows_adjoin() const { return spec_.y_row == spec_.ow * spec_.y_pixel; }
bool Conv::slices_adjoin() const { return rows_adjoin() && spec_.y_slice == spec_.oh * spec_.y_row; }

// Chooses the widest panel that fits the channels, so that pixels are broadcast rarely. Exceptions, measured on whole
// networks: taller tiles when the channels divide better or when few pixels meet many taps, but not when adjacent
// pixels are 4 KiB apart (a tall tile would then map to one set of the first-level cache); and, with few rows, one
// panel per worker to pack.
void Conv::choose_panel(Isa isa, int threads) {
  const int64_t lane = lanes(isa), pixels = spec_.n * spec_.od * spec_.oh * spec_.ow;
  const bool crowded = spec_.stride_w * spec_.x_pixel * 4 % 4096 == 0;
  const auto divides = [&](int64_t vectors) { return spec_.oc % (vectors * lane) == 0; };
  if (spec_.widest_panel) {
    vectors_ = isa == Isa::avx512 ? 4 : 2;
  } else if (matrix_registers_) {
    vectors_ = 2;
  } else if (isa == Isa::avx512) {
    const bool long_product = is_matrix() && spec_.ic >= 512 && pixels > most_pixels(isa, 4);
    vectors_ = 4;
    if (divides(3) && (!divides(4) || long_product)) vectors_ = 3;
    if (!crowded && divides(2) && (spec_.taps() > 1 ? pixels <= 196 : !divides(4) && spec_.oc < 256)) vectors_ = 2;
  } else {
    vectors_ = divides(3) && !divides(2) ? 3 : 2;
  }
  vectors_ = static_cast<int>(std::min<int64_t>(vectors_, ceil_div(spec_.oc, lane)));
  if (spec_.packed_in_run && pixels <= kFewRows)
    while (vectors_ % 2 == 0 && ceil_div(spec_.oc, vectors_ * lane) < threads) vectors_ /= 2;
  width_ = vectors_ * lane;
  most_pixels_ = matrix_registers_ ? 2 * kMatrixRows : most_pixels(isa, vectors_);
  if (!matrix_registers_ && !spec_.transposed_x)
    most_pixels_ = std::min(most_pixels_, most_in_cache(spec_.stride_w * spec_.x_pixel * 4));
}

// Whether the work takes no more than some microseconds, which waking another worker takes as well; by what a core with
// AVX2 does at least.
bool Conv::is_brief() const {
  constexpr double kBrief = 4000, kFlops = 60, kBytes = 40;  // ns, per ns
  const double weights = static_cast<double>(packed_size()) * 4 * (spec_.packed_in_run && !reads_weights_ ? 3 : 1);
  const double flops =
      2. * static_cast<double>(spec_.n * spec_.od * spec_.oh * spec_.ow * spec_.oc * spec_.taps() * spec_.ic);
  return flops / kFlops + weights / kBytes < kBrief;
}

// The larger operand is read once: the input (outer loop over pixels, so that a worker gets its own pixels again in the
// next layer) or the weights (outer loop over panels). When a chunk has so few pixels that the weights would be read
// again and again from beyond the second-level cache, a panel of them is kept in that cache instead.
void Conv::choose_chunks(int threads) {
  const auto tiles = static_cast<int64_t>(tiles_.size());
  const int64_t wanted = threads == 1 ? 1 : threads * kChunksPerThread;
  const int64_t tile_bytes = most_pixels_ * spec_.ic * spec_.stride_h * spec_.stride_w * 4;
  const int64_t most = std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(1, tile_bytes));
  const auto panel_bytes = static_cast<int64_t>(panel_floats_ * sizeof(float));
  const bool long_pixels = is_matrix() && most < kLeastTiles && panel_bytes <= kPanelBytes && panels_ >= wanted;
  pixels_outermost_ =
      tiles > kFewTiles && spec_.taps() * spec_.oc <= spec_.n * spec_.d * spec_.h * spec_.w && !long_pixels;
  if (pixels_outermost_) {
    tiles_per_chunk_ = static_cast<int>(std::clamp<int64_t>(tiles / wanted, 1, most));
    panels_per_chunk_ = static_cast<int>(panels_);
  } else {
    const int64_t parts = ceil_div(wanted, panels_);  // the tiles are divided as well when there are too few panels
    tiles_per_chunk_ = static_cast<int>(std::max<int64_t>(1, ceil_div(tiles, parts)));
    panels_per_chunk_ = static_cast<int>(std::clamp<int64_t>(panels_ / wanted, 1, 4));
  }
  for (int64_t first = 0; widens() && widens_chunks() && first < tiles; first += tiles_per_chunk_) {
    const auto [begin, end] = elements_of(first, std::min(tiles, first + tiles_per_chunk_));
    chunk_floats_ = std::max(chunk_floats_, static_cast<size_t>(ceil_div(end - begin, 16) * 16));
  }
}

std::pair<int64_t, int64_t> Conv::elements_of(int64_t first_tile, int64_t last_tile) const {
  std::pair<int64_t, int64_t> all{x_size(), 0};
  for (int64_t i = first_tile; i < last_tile; ++i) {
    const auto& [first, last] = reads_[static_cast<size_t>(i)];
    all = {std::min(all.first, first), std::max(all.second, last)};
  }
  all.second = std::min(all.second, x_size());  // tiles of the last image reach beyond its end as those of others do
  return {std::min(all.first, all.second), all.second};
}

size_t Conv::widened_size(int threads) const {
  if (!widens()) return 0;
  // Weights that are packed or expanded while they are used meet the whole of x.
  const bool whole = !widens_chunks() || spec_.packed_in_run || spec_.expands;
  return std::max(whole ? static_cast<size_t>(x_size()) : 0, chunk_floats_ * static_cast<size_t>(threads));
}

void Conv::widen_x(const void* x, int64_t begin, int64_t end, float* to) const {
  widen(spec_.x_form, end - begin, static_cast<const uint16_t*>(x) + begin * steps(), to);
}

const float* Conv::widened(Executor& executor, const void* x, float* scratch) const {
  constexpr int64_t kBlock = 32 << 10;
  executor.run(static_cast<int>(ceil_div(x_size(), kBlock)), [&](int block, int) {
    widen_x(x, block * kBlock, std::min(x_size(), (block + 1) * kBlock), scratch + block * kBlock);
  });
  return scratch;
}

std::string Conv::layout() const {
  const auto stored = static_cast<int>(spec_.stored);
  return fmt::format(
      "panel{} {}x{}{}{}{}", width_, spec_.taps() * spec_.ic, spec_.oc, pairs() ? " in pairs" : "",
      spare_rows_ ? fmt::format(" and {} rows", spare_rows_) : "",
      stored ? fmt::format(" as {} by {}{}", stored, spec_.block, spec_.zeros ? " with zeros" : "") : "");
}

void Conv::pack(const void* kernel, float* packed, bool transposed) const {
  for (int panel = 0; panel < panels(); ++panel) pack_panel(panel, kernel, packed, transposed);
}

void Conv::pack_panel(int panel, const void* kernel, float* packed, bool transposed) const {
  pack_panel_to(start_panel(panel, packed), panel, kernel, transposed);
}

float* Conv::start_panel(int panel, float* packed) const {
  float* to = packed + static_cast<size_t>(panel) * panel_floats_;
  std::fill_n(to + panel_rows() * width_, spare_rows_ * width_, 0.f);
  return to;
}

// Rows of weights that lie apart in pieces of panels are packed a few at a time into all panels, since memory is fetched
// fast only along rows.
void Conv::pack_all(Executor& executor, const void* kernel, float* packed, bool transposed) const {
  const int64_t together = pairs() ? 16 : 64;
  if (transposed || panels_ == 1)
    return executor.run(panels(), [&](int panel, int) { pack_panel(panel, kernel, packed, transposed); });
  const int64_t rows = spec_.taps() * spec_.ic;
  for (int panel = 0; spare_rows_ && panel < panels(); ++panel) start_panel(panel, packed);
  executor.run(static_cast<int>(ceil_div(rows, together)), [&](int block, int) {
    const int64_t first = block * together, count = std::min(together, rows - first);
    for (int64_t panel = 0; panel < panels_; ++panel)
      pack_rows_at(kernel, first * steps() * spec_.oc + panel * width_, spec_.oc,
                   std::min(width_, spec_.oc - panel * width_), 1, count,
                   packed + static_cast<size_t>(panel) * panel_floats_ + first * width_);
  });
}

void Conv::pack_panel_to(float* to, int panel, const void* kernel, bool transposed) const {
  const int64_t rows = spec_.taps() * spec_.ic, first = panel * width_;
  const int64_t columns = std::min(width_, spec_.oc - first);
  const int64_t at = transposed ? first * rows * steps() : first, row_step = transposed ? 1 : spec_.oc,
                column_step = transposed ? rows * steps() : 1;
  pack_rows_at(kernel, at, row_step, columns, column_step, rows, to);
}

void Conv::pack_rows_at(const void* kernel, int64_t at, int64_t row_step, int64_t columns, int64_t column_step,
                        int64_t rows, float* to) const {
  const auto* from = static_cast<const char*>(kernel) + at * bytes_of(spec_.weights_form);
  if (!pairs())
    pack_rows(spec_.weights_form, from, rows, row_step, columns, column_step, width_, to, spec_.precision);
  else if (spec_.weights_form == Form::floats)
    pack_rounded_pairs(reinterpret_cast<const float*>(from), rows, row_step, columns, column_step, width_, to);
  else
    pack_pairs(reinterpret_cast<const uint16_t*>(from), rows, row_step, columns, column_step, width_, to);
}

void Conv::pack_taps(int panel, const void* kernel, const std::vector<int64_t>& taps, int64_t channel_step,
                     int64_t output_step, float* packed) const {
  const int64_t first = panel * width_, columns = std::min(width_, spec_.oc - first);
  float* to = start_panel(panel, packed);
  for (int64_t tap : taps) {
    pack_rows_at(kernel, tap + first * output_step, channel_step, columns, output_step, spec_.ic, to);
    to += spec_.ic * width_;
  }
}

void Conv::pack_parameters(const int32_t* starts, std::span<const Row> rows, float* packed) const {
  std::fill(packed, packed + bias_size(), 0.f);
  const int64_t sets = std::ssize(tap_sets_);
  CHECK(std::ssize(rows) == bias_rows() - sets, "{} rows", rows.size());
  for (int64_t o = 0; o < spec_.oc; ++o) {
    float* column = packed + o / width_ * width_ * bias_rows() + o % width_;
    for (int64_t set = 0; set < sets; ++set, column += width_)
      std::memcpy(column, starts + set * spec_.oc + o, sizeof(float));
    for (size_t row = 0; row < rows.size(); ++row, column += width_) *column = rows[row][o];
  }
}

void Conv::pack_bias(const float* bias, float* packed) const {
  std::fill(packed, packed + bias_size(), 0.f);
  if (bias) std::copy(bias, bias + spec_.oc, packed);
}

void Conv::run(Executor& executor, const void* x, const float* packed, const float* bias, const void* residual, void* y,
               float* scratch) const {
  const bool widens_here = widens() && widens_chunks();
  const float* floats = widens() && !widens_here ? widened(executor, x, scratch) : static_cast<const float*>(x);
  auto tiles = static_cast<int>(tiles_.size()), panels = static_cast<int>(panels_);
  int tile_chunks = static_cast<int>(ceil_div(tiles, tiles_per_chunk_)),
      panel_chunks = static_cast<int>(ceil_div(panels, panels_per_chunk_));
  auto chunk = [&](int index, int worker) {
    const MatrixRegisters registers(matrix_registers_, matrix_steps_);
    int tile_chunk = pixels_outermost_ ? index / panel_chunks : index % tile_chunks;
    int panel_chunk = pixels_outermost_ ? index % panel_chunks : index / tile_chunks;
    int first_tile = tile_chunk * tiles_per_chunk_, last_tile = std::min(tiles, first_tile + tiles_per_chunk_);
    int first_panel = panel_chunk * panels_per_chunk_, last_panel = std::min(panels, first_panel + panels_per_chunk_);
    const float* from = floats;
    if (widens_here) {
      float* here = scratch + static_cast<size_t>(worker) * chunk_floats_;
      const auto [begin, end] = elements_of(first_tile, last_tile);
      widen_x(x, begin, end, here);
      from = here - begin;
    }
    for (int panel = first_panel; panel < last_panel; ++panel)
      multiply(panel, first_tile, last_tile, from, packed + static_cast<size_t>(panel) * panel_floats_, bias, residual,
               y);
  };
  (brief_ ? serial_executor() : executor).run(tile_chunks * panel_chunks, chunk);
}

// The lines that each tile fetches while it multiplies: where the weights outweigh the pixels and come from far, some of the next
// panel, else the pixels of the next tile, where these are many and lie in one list. A single tile reads its panel but once, as
// fast as it comes.
int64_t Conv::lines_ahead() const {
  const int64_t tiles = ceil_div(spec_.n * spec_.od * spec_.oh * spec_.ow, most_pixels_);
  const auto bytes = static_cast<int64_t>(panel_floats_ * sizeof(float));
  const bool steps_of_floats = spec_.stored == Stored::floats || spec_.stored == Stored::brains;
  if ((spec_.arithmetic != Arithmetic::floats && !matrix_registers_) || !steps_of_floats || reads_weights_ ||
      spec_.expands)
    return 0;
  if (fetches_pixels()) return ceil_div(most_pixels_ * spec_.ic * 4, 64);
  const bool weights_outweigh = tiles <= kFewTiles || spec_.taps() * spec_.oc > spec_.n * spec_.d * spec_.h * spec_.w;
  if (panels_ == 1 || tiles == 1 || !weights_outweigh || bytes > kPanelBytes) return 0;
  return ceil_div(bytes, 64 * tiles);
}

bool Conv::fetches_pixels() const {
  return is_matrix() && !widens() && !spec_.transposed_x && spec_.x_pixel == spec_.ic && spec_.oc <= spec_.w &&
         spec_.w * spec_.ic * 4 > kFarPixels;
}

void Conv::multiply(int panel, int first_tile, int last_tile, const float* x, const float* b, const float* bias,
                    const void* residual, void* y) const {
  const bool tail = panel + 1 == panels_, far_pixels = fetches_pixels();
  const int64_t y_bytes = integers() ? spec_.epilogue.output_bytes() : bytes_of(spec_.narrow.result);
  const int64_t residual_bytes = integers() ? spec_.epilogue.residual_bytes() : bytes_of(spec_.narrow.residual);
  for (int i = first_tile; i < last_tile; ++i) {
    const Tile& tile = tiles_[static_cast<size_t>(i)];
    const int64_t c = tile.c + panel * width_;
    stop_point_after(spec_.taps() * spec_.ic);
    (tail ? tile.tail : tile.whole)(
        x + tile.a, b, static_cast<char*>(y) + c * y_bytes, bias + panel * width_ * bias_rows(),
        static_cast<const char*>(residual) + c * residual_bytes,
        far_pixels ? static_cast<const void*>(x + tiles_[static_cast<size_t>(std::min(i + 1, last_tile - 1))].a)
        : tail     ? b
                   : b + panel_floats_ * static_cast<size_t>(std::ssize(tiles_) + i) / tiles_.size());
  }
}

void Conv::pack_and_run(Executor& executor, const void* x, const void* weights, bool transposed, float* packed,
                        const float* bias, const void* residual, void* y, float* scratch) const {
  if (brief_ && executor.width() > 1)
    return pack_and_run(serial_executor(), x, weights, transposed, packed, bias, residual, y, scratch);
  const auto tiles = static_cast<int>(tiles_.size());
  const auto pack = [&](int panel, int) { pack_panel(panel, weights, packed, transposed); };
  // With few rows, the worker that packs a panel also uses it at once, without a barrier between the two phases.
  const bool apart = !transposed && packed_size() * sizeof(float) > kApartBytes;
  const bool at_once =
      tiles <= kFewTiles && !apart && (panels() % executor.width() == 0 || panels() >= 4 * executor.width());
  if (!reads_weights_ && !at_once) {
    pack_all(executor, weights, packed, transposed);
    return run(executor, x, packed, bias, residual, y, scratch);
  }
  const float* floats = widens() ? widened(executor, x, scratch) : static_cast<const float*>(x);
  if (reads_weights_)
    return executor.run(panels(), [&](int panel, int) {
      const bool part = std::min(width_, spec_.oc - panel * width_) % lanes(isa_) != 0;
      if (part) pack_panel_to(packed, panel, weights, false);
      multiply(panel, 0, tiles, floats, part ? packed : static_cast<const float*>(weights) + panel * width_, bias,
               residual, y);
    });
  executor.run(panels(), [&](int panel, int worker) {
    pack(panel, worker);
    const MatrixRegisters registers(matrix_registers_, matrix_steps_);
    multiply(panel, 0, tiles, floats, packed + static_cast<size_t>(panel) * panel_floats_, bias, residual, y);
  });
}

void Conv::expand_and_run(Executor& executor, const void* x, FunctionRef<void(int panel, float* to)> expand,
                          float* scratch, const float* bias, const void* residual, void* y, float* widened_x) const {
  constexpr int64_t kPixels = 128;  // that make up for expanding a panel once more
  const auto tiles = static_cast<int64_t>(tiles_.size());
  const int64_t wanted = pixels_outermost_ ? tiles / tiles_per_chunk_ : ceil_div(3 * executor.width(), panels_);
  const int64_t parts = std::clamp(wanted, int64_t{1}, std::max<int64_t>(1, tiles * most_pixels_ / kPixels));
  const float* floats = widens() ? widened(executor, x, widened_x) : static_cast<const float*>(x);
  executor.run(static_cast<int>(parts * panels_), [&](int i, int worker) {
    const int64_t part = i / panels_;
    const auto panel = static_cast<int>(i % panels_);
    float* weights = scratch + static_cast<size_t>(worker) * panel_floats_;
    expand(panel, weights);
    multiply(panel, static_cast<int>(part * tiles / parts), static_cast<int>((part + 1) * tiles / parts), floats,
             weights, bias, residual, y);
  });
}

std::string Conv::describe() const {
  const std::string narrow = is_narrow(spec_.x_form) || spec_.narrow.acts()
                                 ? fmt::format(", {}{} to {}", to_string(spec_.x_form), pairs() ? " in pairs" : "",
                                               to_string(spec_.narrow.result))
                                 : "";
  const std::string rounded = is_narrow(spec_.precision) ? ", weights rounded" : "";
  return fmt::format("{}x{} {}, {} of {} tiles and {} of {} panels a chunk{}{}", most_pixels_, width_,
                     matrix_registers_ ? "amx" : to_string(isa_), tiles_per_chunk_, tiles_.size(), panels_per_chunk_,
                     panels_, narrow, rounded);
}

}  // namespace cairn
