// How a Conv cuts its output into tiles, and the code of these.
#include <algorithm>
#include <set>

#include "engines/cpu/conv.h"
#include "support/error.h"
#include "support/stop.h"

namespace cairn {

namespace {

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

// Cuts the output into tiles. A tile lies in one image, unless images are so small that one tile covers several; it is
// part of an output row, unless rows are short, in which case it spans several rows, and several slices when these are
// short as well.
void Conv::cut() {
  const int64_t kShort = matrix_registers_ ? kMatrixRows + 1 : 10;
  const int64_t slice = spec_.oh * spec_.ow, image = spec_.od * slice, together = most_pixels_ / image;
  if (!is_matrix() && together > 1 && slices_adjoin() && spec_.y_image == spec_.od * spec_.y_slice) {
    images_of_tile_ = spec_.n;
    for (int64_t first = 0; first < spec_.n; first += together)
      add_tile(first * image, std::min(together, spec_.n - first) * image, tiles_);
    return;
  }
  std::vector<Tile> tiles;
  auto split = [&](int64_t first, int64_t pixels) {
    if (matrix_registers_) {
      const int64_t end = first + pixels, most = pixels > spec_.ow && has_row_groups() ? 2 * spec_.ow : most_pixels_;
      for (; first < end; first += most) add_tile(first, std::min(most, end - first), tiles);
      return;
    }
    int64_t count = ceil_of(pixels, most_pixels_);
    for (int64_t i = 0; i < count; ++i) {  // of nearly equal size: 49 = 13 + 12 + 12 + 12
      int64_t size = pixels / count + (i < pixels % count);
      add_tile(first, size, tiles);
      first += size;
    }
  };
  const int64_t unit = is_matrix() || (slice < kShort && slices_adjoin()) ? image
                       : spec_.ow < kShort && rows_adjoin()               ? slice
                                                                          : spec_.ow;
  for (int64_t first = 0; first < image; first += unit) split(first, unit);
  const auto reads = std::exchange(reads_, {});
  for (int64_t i = 0; i < spec_.n; ++i) {
    const int64_t image = i * spec_.d * spec_.h * spec_.w * spec_.x_pixel;
    for (Tile tile : tiles) {
      tile.a += image;
      tile.c += i * spec_.y_image;
      tiles_.push_back(tile);
    }
    for (const auto& [first, last] : reads) reads_.emplace_back(first + image, last + image);
  }
}

// In x: of the pixel's first tap, as if there were no padding.
int64_t Conv::offset_of(int64_t pixel) const {
  const ConvSpec& s = spec_;
  const int64_t slice = s.oh * s.ow, image = s.od * slice;
  const int64_t z = pixel % image / slice * s.stride_d, y = pixel % slice / s.ow * s.stride_h;
  return (((pixel / image * s.d + z) * s.h + y) * s.w + pixel % s.ow * s.stride_w) * s.x_pixel;
}

// Whether two rows of the image are the two groups of a tile.
bool Conv::has_row_groups() const { return !is_matrix() && 2 * spec_.ow > kMatrixRows && spec_.ow <= kMatrixRows; }

// Registers have 16 rows: beside the pixels of a smaller group they read those that follow or else those before, if these are
// pixels of the image, or in the margin of a copy.
std::vector<PixelGroup> Conv::groups_of(int64_t first, int64_t pixels) const {
  const ConvSpec& s = spec_;
  if (!matrix_registers_) return {};
  const int64_t step = s.stride_w * s.x_pixel, padding = padding_offset();
  const int64_t end = images_of_tile_ * s.d * s.h * s.w * s.x_pixel - s.x_pixel + s.ic;
  std::vector<PixelGroup> groups;
  const int64_t most = has_row_groups() && pixels <= 2 * s.ow ? s.ow : kMatrixRows;
  for (int64_t at = 0; at < pixels; at += most) {
    const int64_t count = std::min(most, pixels - at), spare = kMatrixRows - count,
                  from = offset_of(first + at) - padding;
    const bool ahead = from + (kMatrixRows - 1) * step + reach() <= end, behind = from - spare * step >= 0;
    groups.push_back({static_cast<int>(at), static_cast<int>(count), static_cast<int>(!ahead && behind ? spare : 0),
                      spare == 0 || ahead || behind});
  }
  return groups;
}

// Of the pixel of x at which the taps of the first one begin.
int64_t Conv::padding_offset() const {
  return ((spec_.pad_front * spec_.h + spec_.pad_top) * spec_.w + spec_.pad_left) * spec_.x_pixel;
}
// From a pixel's first tap to the end of its last, in elements.
int64_t Conv::reach() const {
  const ConvSpec& s = spec_;
  return (((s.kd - 1) * s.dilation_d * s.h + (s.kh - 1) * s.dilation_h) * s.w + (s.kw - 1) * s.dilation_w) * s.x_pixel +
         s.ic;
}

// Tiles of one kind share code: they start in the same column, or lie within a row, and where they lie in one slice or row,
// the same taps along depth or height are inside the image.
Conv::Kind Conv::kind_of(int64_t first, int64_t pixels) const {
  const ConvSpec& s = spec_;
  const int64_t slice = s.oh * s.ow, last = first + pixels - 1;
  const auto inside = [](int64_t at, int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t pad) {
    int64_t low = 0, high = taps;  // the taps inside
    while (low < high && at * stride + low * dilation - pad < 0) ++low;
    while (low < high && at * stride + (high - 1) * dilation - pad >= in) --high;
    return low * (taps + 1) + high;
  };
  Kind kind{-1 - first / slice, -1 - first % slice / s.ow, first % s.ow, pixels, 0};
  for (const PixelGroup& group : groups_of(first, pixels))
    kind[4] = (kind[4] * kMatrixRows + group.shift) * 2 + group.reads;
  if (first / slice != last / slice) return kind;
  kind[0] = inside(first / slice % s.od, s.d, s.kd, s.stride_d, s.dilation_d, s.pad_front);
  const auto taps_of_row = [&](int64_t pixel) {
    return inside(pixel % slice / s.ow, s.h, s.kh, s.stride_h, s.dilation_h, s.pad_top);
  };
  bool equal = true;  // of the rows
  for (int64_t pixel = first; pixel <= last; pixel += s.ow) equal = equal && taps_of_row(pixel) == taps_of_row(last);
  if (equal) kind[1] = taps_of_row(first);
  if (first / s.ow != last / s.ow) return kind;
  const int64_t left = first % s.ow * s.stride_w - s.pad_left;
  const int64_t right = last % s.ow * s.stride_w + (s.kw - 1) * s.dilation_w - s.pad_left;
  if (left >= 0 && right < s.w) kind[2] = -1;  // all taps along the row are inside
  return kind;
}

void Conv::add_tile(int64_t first, int64_t pixels, std::vector<Tile>& tiles) {
  const ConvSpec& s = spec_;
  const auto kind = kind_of(first, pixels);
  auto found = made_.find(kind);
  if (found == made_.end()) found = made_.emplace(kind, make_functions(first, pixels)).first;
  const int64_t slice = s.oh * s.ow, image = s.od * slice;
  const int64_t padding = padding_offset();
  const int64_t c = first / image * s.y_image + first % image / slice * s.y_slice + first % slice / s.ow * s.y_row;
  tiles.push_back({found->second.first, found->second.second, s.transposed_x ? first : (offset_of(first) - padding),
                   c + first % s.ow * s.y_pixel});
  if (!widens()) return;
  int64_t end = 0;
  for (int64_t i = 0; i < pixels; ++i) end = std::max(end, offset_of(first + i));
  reads_.emplace_back(std::max<int64_t>(0, offset_of(first) - padding), std::min(x_size(), end - padding + reach()));
}

bool Conv::is_inside(int64_t pixel, int64_t tap) const {
  const ConvSpec& s = spec_;
  const int64_t slice = s.oh * s.ow, image = s.od * slice;
  const int64_t z = pixel % image / slice * s.stride_d + tap / (s.kh * s.kw) * s.dilation_d - s.pad_front;
  const int64_t y = pixel % slice / s.ow * s.stride_h + tap / s.kw % s.kh * s.dilation_h - s.pad_top;
  const int64_t x = pixel % s.ow * s.stride_w + tap % s.kw * s.dilation_w - s.pad_left;
  return z >= 0 && z < s.d && y >= 0 && y < s.h && x >= 0 && x < s.w;
}

std::string Conv::tap_set(int64_t pixel) const {
  std::string set(static_cast<size_t>(spec_.taps()), '0');
  for (const int64_t tap : turns(spec_.taps(), 8))
    if (is_inside(pixel, tap)) set[static_cast<size_t>(tap)] = '1';
  return set;
}

// Of pixels that differ in no dim in the taps inside, one stands for all.
void Conv::find_tap_sets() {
  const ConvSpec& s = spec_;
  std::set<std::string> sets;
  const auto differing = [](int64_t out, int64_t in, int64_t taps, int64_t stride, int64_t dilation, int64_t pad) {
    std::vector<int64_t> places;
    const int64_t reach = (taps - 1) * dilation;
    bool whole = false;  // a place whose taps are all inside
    for (int64_t i = 0; i < out; ++i) {
      const bool inside = i * stride >= pad && i * stride - pad + reach < in;
      if (!inside || !whole) places.push_back(i);
      whole = whole || inside;
    }
    return places;
  };
  for (int64_t z : differing(s.od, s.d, s.kd, s.stride_d, s.dilation_d, s.pad_front))
    for (int64_t y : differing(s.oh, s.h, s.kh, s.stride_h, s.dilation_h, s.pad_top))
      for (int64_t x : differing(s.ow, s.w, s.kw, s.stride_w, s.dilation_w, s.pad_left))
        sets.insert(tap_set((z * s.oh + y) * s.ow + x));
  tap_sets_.assign(sets.begin(), sets.end());
}

int Conv::row_of(const std::string& set) const {
  const auto found = std::lower_bound(tap_sets_.begin(), tap_sets_.end(), set);
  CHECK(found != tap_sets_.end() && *found == set, "pixels with taps {}", set);
  return static_cast<int>(found - tap_sets_.begin());
}

Conv::Functions Conv::make_functions(int64_t first, int64_t pixels) {
  const ConvSpec& s = spec_;
  TileSpec tile;
  tile.isa = isa_;
  tile.vectors = vectors_;
  if (s.transposed_x) tile.a_step_bytes = s.w * 4;
  const int64_t pixel_bytes = s.x_pixel * 4;
  if (s.kd * s.kh > 1) tile.a_row_bytes = s.dilation_h * s.w * pixel_bytes;  // else products of all sizes share code
  tile.b_row_rows = static_cast<int>(s.kw * s.ic);
  if (s.kd > 1) tile.plane_rows = static_cast<int>(s.kh), tile.a_plane_bytes = s.dilation_d * s.h * s.w * pixel_bytes;
  tile.c_stride = s.y_pixel;
  tile.groups = groups_of(first, pixels), tile.a_pixel_bytes = s.stride_w * pixel_bytes;
  tile.matrix_steps = matrix_steps_;
  // A sum of at most this length rounds as stock's does, in which it is one as well.
  constexpr int64_t kLongSum = 8192;
  if ((is_matrix() || s.taps() * s.ic > kLongSum) && !integers() && !matrix_registers_)
    tile.block_steps = block_steps(s.taps() * s.ic);
  tile.stored = s.stored, tile.zeros = s.zeros;
  if (panel_layout().scaled()) tile.block_steps = static_cast<int>(s.block);
  tile.residual = s.residual;
  tile.activation = s.activation;
  tile.arithmetic = s.arithmetic;
  tile.narrow = s.narrow, tile.brain_products = (s.narrow.acts() || pairs()) && machine_has_brain_products();
  if (integers()) {
    tile.epilogue = s.epilogue;
    tile.dot_products = machine_has_dot_products();
    tile.parameter_rows = static_cast<int>(tap_sets_.size());
    for (int64_t i = first; i < first + pixels; ++i) tile.start_rows.push_back(row_of(tap_set(i)));
  }
  tile.ahead_lines = static_cast<int>(lines_ahead());
  tile.rows.resize(static_cast<size_t>(s.kd * s.kh));
  for (int64_t i = first; i < first + pixels; ++i)
    tile.pixel_bytes.push_back(s.transposed_x ? (i - first) * 4 : (offset_of(i) - offset_of(first)) * 4);
  for (const int64_t k : turns(s.taps(), 8 * pixels)) {
    const int64_t kx = k % s.kw;
    uint32_t inside = 0;
    for (int64_t i = 0; i < pixels; ++i)
      if (is_inside(first + i, k)) inside |= 1u << i;
    if (!inside) continue;
    auto& row = tile.rows[static_cast<size_t>(k / s.kw)];
    bool adjoins = !row.empty() && s.dilation_w == 1 && s.x_pixel == s.ic && row.back().pixels == inside &&
                   row.back().b_row + row.back().length == kx * s.ic;
    if (adjoins)
      row.back().length += static_cast<int>(s.ic);
    else
      row.push_back({kx * s.dilation_w * pixel_bytes, static_cast<int>(kx * s.ic), static_cast<int>(s.ic), inside});
  }
  auto function = [&](int64_t columns) {
    tile.columns = static_cast<int>(columns);
    tile.b_step_bytes = reads_weights_ && columns % lanes(isa_) == 0 ? s.oc * 4 : 0;
    kernels_.push_back(TileKernel::make(tile));
    return kernels_.back()->function();
  };
  int64_t last = s.oc - (panels_ - 1) * width_;
  TileFunction tail = function(last);
  return {panels_ > 1 && last != width_ ? function(width_) : tail, tail};
}

}  // namespace cairn
