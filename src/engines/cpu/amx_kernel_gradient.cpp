#include "engines/cpu/amx_kernel_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engines/cpu/call_step.h"
#include "engines/cpu/channels.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

namespace {

constexpr int64_t kBatch = 2 * kLanes;  // pixels that are packed together: a line of a channel
constexpr int64_t kSlice = 64;          // channels of them
constexpr int64_t kUnitsWanted = 16, kMostParts = 8;
constexpr int64_t kSumsInCache = 1 << 20;  // bytes
// Pixels of a block: sums that lie beyond caches are loaded and stored less often.
constexpr int64_t kNearPixels = 512, kFarPixels = 2048;

int64_t up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

/// Pairs of pixels: their elements side by side, for a batch.
CAIRN_VECTORISED(void, interleave_brains, (int64_t count, const uint16_t* const* pixels, uint32_t* to, int64_t step)) {
  for (int64_t pair = 0; pair < kBatch / 2; ++pair, to += step) {
    const uint16_t *a = pixels[2 * pair], *b = pixels[2 * pair + 1];
    for (int64_t i = 0; i < count; ++i) to[i] = a[i] | static_cast<uint32_t>(b[i]) << 16;
  }
}

}  // namespace

AmxKernelGradient::Taps::Taps(int64_t taps, int64_t stride, int64_t dilation, int64_t pad) {
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t at = tap * dilation - pad, rest = (at % stride + stride) % stride;
    phase.push_back(rest), places.push_back((at - rest) / stride);
    if (std::find(phases.begin(), phases.end(), rest) == phases.end()) phases.push_back(rest);
  }
  least = *std::min_element(places.begin(), places.end());
  reach = *std::max_element(places.begin(), places.end()) - least;
  for (int64_t& each : phase) each = std::find(phases.begin(), phases.end(), each) - phases.begin();
  for (int64_t each : places) shift.push_back(each - least);
}

bool AmxKernelGradient::suits(const SlideSpec& s, int64_t out) {
  constexpr int64_t kLeastPixels = 64, kLeastRows = 8, kLeastChannels = 8, kMostTaps = 121;
  return machine_has_matrix_registers() && s.kd == 1 && s.d == 1 && s.od == 1 && s.kh * s.kw <= kMostTaps &&
         s.kh * s.kw * s.channels >= kLeastRows && out >= kLeastChannels && s.n * s.oh * s.ow >= kLeastPixels;
}

AmxKernelGradient::AmxKernelGradient(const SlideSpec& slide, int64_t out)
    : s_(slide), out_(out), rows_(slide.kh, slide.stride_h, slide.dilation_h, slide.pad_top),
      columns_(slide.kw, slide.stride_w, slide.dilation_w, slide.pad_left) {
  SlideSpec& s = s_;
  if (s.kh * s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 && s.h == s.oh &&
      s.w == s.ow) {  // all pixels are one list
    s.h = s.oh = s.n * s.h * s.w;
    s.n = s.w = s.ow = 1;
  }
  width_ = std::min<int64_t>(2, (out + kLanes - 1) / kLanes) * kLanes;
  panels_ = (out + width_ - 1) / width_;
  row_pixels_ = s.ow + columns_.reach;
  choose_blocks();
  make_tiles();
  if (units() < kUnitsWanted)
    parts_ = std::clamp<int64_t>(kUnitsWanted / units(), 1, std::min(kMostParts, block_count()));
}

void AmxKernelGradient::choose_blocks() {
  const int64_t most = s_.kh * s_.kw * s_.channels * out_ * 4 > kSumsInCache ? kFarPixels : kNearPixels;
  row_blocks_ = (s_.oh * row_pixels_ + most - 1) / most;
  block_rows_ = (s_.oh + row_blocks_ - 1) / row_blocks_;
  row_blocks_ = (s_.oh + block_rows_ - 1) / block_rows_;
  if (row_blocks_ == 1) block_images_ = std::clamp<int64_t>(most / (s_.oh * row_pixels_), 1, s_.n);
  while (s_.n % block_images_ != 0) --block_images_;
  image_blocks_ = s_.n / block_images_;
  positions_ = up(block_rows_ * row_pixels_, kBatch);
  slots_ = up(positions_ + rows_.reach * row_pixels_ + columns_.reach, kBatch);
  pitch_ = x_slots();
  if (pitch_ / kBatch % 2 == 0) pitch_ += kBatch;  // rows of a tile lie in different sets of the first-level cache
}

/// In packed x: the element of the first pixel of dy, for a row (tap, i).
int64_t AmxKernelGradient::place_of(int64_t row) const {
  const int64_t channel = row % s_.channels, tap = row / s_.channels;
  const auto y = static_cast<size_t>(tap / s_.kw), x = static_cast<size_t>(tap % s_.kw);
  const int64_t phase = rows_.phase[y] * std::ssize(columns_.phases) + columns_.phase[x];
  return channel * pitch_ + phase * block_images_ * slots_ + rows_.shift[y] * row_pixels_ + columns_.shift[x];
}

// Tiles that read the same channels follow each other, unless they cover the channels of several taps.
void AmxKernelGradient::make_tiles() {
  constexpr int64_t kMostRows = 2 * kMatrixRows;
  const int64_t all = s_.kh * s_.kw * s_.channels;
  for (int64_t row = 0; row < all; row += kMostRows) {
    Tile tile{row, place_of(row), {}, {}};
    const int64_t rows = std::min(kMostRows, all - row);
    for (const bool last : {false, true}) {
      tile.first[last] = make_function(row, rows, last, false);
      tile.next[last] = make_function(row, rows, last, true);
    }
    tiles_.push_back(tile);
  }
  if (s_.channels % kMostRows == 0)
    std::stable_sort(tiles_.begin(), tiles_.end(),
                     [&](const Tile& a, const Tile& b) { return a.row % s_.channels < b.row % s_.channels; });
}

TileFunction AmxKernelGradient::make_function(int64_t first, int64_t rows, bool last_panel, bool adds) {
  TileSpec tile;
  tile.isa = machine_isa();
  tile.arithmetic = Arithmetic::pairs, tile.brain_products = true;
  tile.vectors = static_cast<int>(width_ / kLanes);
  tile.columns = static_cast<int>(last_panel ? out_ - (panels_ - 1) * width_ : width_);
  for (int64_t row = first; row < first + rows; ++row)
    tile.pixel_bytes.push_back((place_of(row) - place_of(first)) * 2);
  tile.matrix_steps = kMatrixRows;
  for (int64_t row = 0; row < rows; row += kMatrixRows)
    tile.groups.push_back({static_cast<int>(row), static_cast<int>(std::min<int64_t>(kMatrixRows, rows - row)), 0, 1});
  tile.a_pixel_bytes = pitch_ * 2;
  const auto all = static_cast<uint32_t>((uint64_t{1} << rows) - 1);
  const int pairs = static_cast<int>(positions_ / 2);
  tile.rows.assign(static_cast<size_t>(block_images_), {{0, 0, pairs, all}});
  tile.a_row_bytes = slots_ * 2;
  tile.b_row_rows = pairs;
  tile.c_stride = out_;
  tile.residual = adds;
  kernels_.push_back(TileKernel::make(tile));
  return kernels_.back()->function();
}

size_t AmxKernelGradient::block_bytes() const { return static_cast<size_t>(packed_x() * 2 + packed_dy() * 4); }

size_t AmxKernelGradient::workspace() const {
  const size_t sums = parts_ > 1 ? static_cast<size_t>(parts_ * s_.kh * s_.kw * s_.channels * out_) * 4 : 0;
  return static_cast<size_t>(parts_) * block_bytes() + sums;
}

std::string AmxKernelGradient::describe() const {
  return fmt::format("{}x{} amx, {} blocks of {} images and {} rows, {} at once", 2 * kMatrixRows, width_,
                     block_count(), block_images_, block_rows_, parts_);
}

/// A batch of pixels of one image of one phase.
void AmxKernelGradient::pack_x(const Block& block, const uint16_t* x, int64_t batch, uint16_t* to) const {
  static constexpr std::array<uint16_t, kSlice> kZeros{};
  const int64_t batches = slots_ / kBatch, columns = std::ssize(columns_.phases);
  const int64_t at = batch % batches * kBatch, image = batch / batches % block_images_,
                phase = batch / batches / block_images_;
  const int64_t phase_y = rows_.phases[static_cast<size_t>(phase / columns)] + rows_.least * s_.stride_h;
  const int64_t phase_x = columns_.phases[static_cast<size_t>(phase % columns)] + columns_.least * s_.stride_w;
  const uint16_t* pixels[kBatch];
  int64_t row = at / row_pixels_, column = at % row_pixels_;
  for (const uint16_t*& pixel : pixels) {
    const int64_t from_y = (block.row + row) * s_.stride_h + phase_y, from_x = column * s_.stride_w + phase_x;
    const bool inside = from_y >= 0 && from_y < s_.h && from_x >= 0 && from_x < s_.w;
    pixel = inside ? x + (((block.image + image) * s_.h + from_y) * s_.w + from_x) * s_.channels : nullptr;
    if (++column == row_pixels_) column = 0, ++row;
  }
  to += phase * block_images_ * slots_ + image * slots_ + at;
  alignas(64) uint32_t pairs[kBatch / 2 * kSlice];
  for (int64_t first = 0; first < s_.channels; first += kSlice) {
    const int64_t count = std::min(kSlice, s_.channels - first), whole = up(count, kLanes);
    const uint16_t* from[kBatch];
    for (size_t i = 0; i < kBatch; ++i) from[i] = pixels[i] ? pixels[i] + first : kZeros.data();
    interleave_brains(count, from, pairs, kSlice);
    for (int64_t row = 0; count < whole && row < kBatch / 2; ++row)
      std::fill(pairs + row * kSlice + count, pairs + row * kSlice + whole, 0);
    for (int64_t i = 0; i < whole; i += kLanes)
      vector_loops().transpose(reinterpret_cast<const float*>(pairs + i), kSlice,
                               reinterpret_cast<float*>(to + (first + i) * pitch_), pitch_ / 2);
  }
}

/// A batch of pixels of one image.
void AmxKernelGradient::pack_dy(const Block& block, const uint16_t* dy, int64_t batch, uint32_t* to) const {
  static constexpr std::array<uint16_t, 2 * kLanes> kZeros{};
  const int64_t batches = positions_ / kBatch, at = batch % batches * kBatch, image = batch / batches;
  const uint16_t* pixels[kBatch];
  int64_t row = at / row_pixels_, column = at % row_pixels_;
  for (const uint16_t*& pixel : pixels) {
    const bool inside = row < block_rows_ && block.row + row < s_.oh && column < s_.ow;
    pixel = inside ? dy + (((block.image + image) * s_.oh + block.row + row) * s_.ow + column) * out_ : nullptr;
    if (++column == row_pixels_) column = 0, ++row;
  }
  to += (image * positions_ + at) / 2 * width_;
  for (int64_t panel = 0; panel < panels_; ++panel, to += panel_elements()) {
    const int64_t first = panel * width_, count = std::min(width_, out_ - first);
    const uint16_t* from[kBatch];
    for (size_t i = 0; i < kBatch; ++i) from[i] = pixels[i] ? pixels[i] + first : kZeros.data();
    interleave_brains(count, from, to, width_);
    for (int64_t pair = 0; count < width_ && pair < kBatch / 2; ++pair)
      std::fill(to + pair * width_ + count, to + (pair + 1) * width_, 0);
  }
}

void AmxKernelGradient::run(Executor& executor, const uint16_t* x, const uint16_t* dy, float* gradient,
                            char* workspace) const {
  alignas(64) static constexpr float kNoBias[2 * kLanes] = {};
  const int64_t count = s_.kh * s_.kw * s_.channels * out_;
  auto* sums =
      parts_ > 1 ? reinterpret_cast<float*>(workspace + static_cast<size_t>(parts_) * block_bytes()) : gradient;
  const int64_t x_batches = x_slots() / kBatch, batches = x_batches + block_images_ * positions_ / kBatch;
  const auto part_x = [&](int64_t part) {
    return reinterpret_cast<uint16_t*>(workspace + static_cast<size_t>(part) * block_bytes());
  };
  for (int64_t round = 0; round < block_count(); round += parts_) {
    const int64_t parts = std::min(parts_, block_count() - round);
    for_ranges(executor, parts * batches, kBatch * (s_.channels + out_) / 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i / batches, batch = i % batches;
        const Block block = block_at(round + part);
        if (batch < x_batches)
          pack_x(block, x, batch, part_x(part));
        else
          pack_dy(block, dy, batch - x_batches, reinterpret_cast<uint32_t*>(part_x(part) + packed_x()));
      }
    });
    const auto tiles = std::ssize(tiles_);
    for_ranges(executor, parts * units(), block_images_ * positions_ * kLanes, [&](int64_t begin, int64_t end) {
      const MatrixRegisters registers(true);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i / units(), panel = i % units() / tiles;
        const Tile& tile = tiles_[static_cast<size_t>(i % tiles)];
        const bool last = panel + 1 == panels_;
        const auto* packed = part_x(part) + packed_x();
        float* to = sums + part * count + tile.row * out_ + panel * width_;
        (round == 0 ? tile.first : tile.next)[last](part_x(part) + tile.place,
                                                    reinterpret_cast<const float*>(packed) + panel * panel_elements(),
                                                    to, kNoBias, to);
      }
    });
  }
  if (parts_ > 1) reduce_middle(executor, false, 1, parts_, count, 1.F, sums, gradient, nullptr);
}

std::unique_ptr<Step> make_amx_kernel_gradient(const char* name, const SlideSpec& slide, int64_t out, size_t x,
                                               Form x_form, size_t dy, Form dy_form, CallOptions options) {
  if (x_form != Form::brains || dy_form != Form::brains || !AmxKernelGradient::suits(slide, out)) return nullptr;
  AmxKernelGradient gradient(slide, out);
  options.workspace = gradient.workspace();
  const std::string title = fmt::format("{} {}", name, gradient.describe());
  return call(
      title,
      [=, gradient = std::move(gradient)](const StepArgs& args) {
        gradient.run(args.executor, input<uint16_t>(args, x), input<uint16_t>(args, dy), output(args),
                     static_cast<char*>(args.workspace));
      },
      std::move(options));
}

}  // namespace cairn
