// The gradient of a convolution's kernel by tiles of positions and output channels: which pixels a block packs, which units a
// chunk computes, and their code.
#pragma once

#include <array>
#include <map>
#include <span>

#include "engines/cpu/call_step.h"
#include "engines/cpu/channels.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/pixel_packing.h"
#include "engines/cpu/slides.h"
#include "engines/cpu/tile_jit.h"
#include "ops/shapes.h"
#include "support/function_ref.h"
#include "support/stop.h"

namespace cairn {

/// dW[tap, i, o] = sum over pixels of x[pixel at the tap, i] * dy[pixel, o]. A unit of work is a tile of positions
/// (channels i of a tap; with few channels those of a row of taps, which are adjacent in x) by a panel of channels o.
/// It accumulates over blocks of rows, or of whole small images. When dW is small, the blocks are divided into parts
/// with sums of their own, which are added at the end; the division depends on the shapes only, so that bits do not
/// depend on the number of workers. A chunk of units packs the channels of its tiles and panels for each block, so that
/// the units read contiguous memory. Of volumes every slice of dy is an image, which each tap of the depth pairs with
/// another slice of x, or with none.
class KernelGradient {
 public:
  /// Takes `count` finished elements of the gradient from the element `first` on.
  using Finish = FunctionRef<void(const float* made, int64_t first, int64_t count)>;

  /// `finishes`: for run_and_finish().
  KernelGradient(const Node& node, Form x_form, Form dy_form, int threads, bool finishes = false)
      : threads_(threads), finishes_(finishes), x_form_(x_form), dy_form_(dy_form) {
    const Value *x = node.inputs[0], *dy = node.inputs[1];
    SlideSpec slide = convolution_of(node, x, dy, node.result());
    groups_ = node.attr().integer("groups");
    images_ = slide.n * slide.od, in_ = slide.channels, out_ = last_dim(dy);
    depth_ = slide.d, out_depth_ = slide.od, depth_taps_ = slide.kd;
    depth_stride_ = slide.stride_d, depth_dilation_ = slide.dilation_d, depth_pad_ = slide.pad_front;
    x_pixel_ = in_, x_row_ = slide.w * x_pixel_, x_image_ = slide.h * x_row_;
    if (slide.kh * slide.kw == 1 && meets_image_everywhere(slide)) {
      skip_pixels(slide);
      pair_pixels(slide);
    }
    plan(slide, slide.kh, slide.kw);
  }
  /// The product of x [rows, in], transposed, with dy [rows, out]: the case of one tap.
  KernelGradient(int64_t rows, int64_t in, int64_t out, Form x_form, Form dy_form, int threads, bool finishes = false)
      : threads_(threads), finishes_(finishes), x_form_(x_form), dy_form_(dy_form), groups_(1), images_(1), in_(in),
        out_(out), x_pixel_(in), x_row_(in), x_image_(rows * in) {
    SlideSpec slide;
    slide.h = slide.oh = rows;
    pair_pixels(slide);
    plan(slide, 1, 1);
  }

  size_t workspace() const {
    const int64_t sums = parts_ > 1 ? parts_ * count_ : 0, made = finishes_ && parts_ > 1 ? count_ : 0;
    return (widened_x_ + scratch() * static_cast<size_t>(threads_) + static_cast<size_t>(sums + made)) * sizeof(float);
  }
  std::string describe() const {
    const std::string blocks =
        block_images_ > 1 ? fmt::format("{} images", block_images_) : fmt::format("{} rows", block_rows_);
    return fmt::format("{}x{} {}, {}blocks of {}, {} chunks", tile_size(0), width_, to_string(machine_isa()),
                       by_rows_  ? "rows of taps, "
                       : paired_ ? "pairs of pixels, "
                                 : "",
                       blocks, chunks());
  }

  void run(Executor& executor, const void* x, const void* dy, float* gradient, float* workspace) const {
    run_chunks(executor, x, dy, gradient, workspace, nullptr);
  }
  /// The same, of a gradient that is kept nowhere: workers hand over the pieces that they make while these are in their caches.
  void run_and_finish(Executor& executor, const void* x, const void* dy, float* workspace, Finish finish) const {
    float* made = workspace + widened_x_ + scratch() * static_cast<size_t>(threads_) + parts_ * count_;
    run_chunks(executor, x, dy, parts_ > 1 ? made : nullptr, workspace, &finish);
    if (parts_ > 1)
      for_ranges(executor, count_, 1, [&](int64_t first, int64_t last) { finish(made + first, first, last - first); });
  }

 private:
  static constexpr int64_t kBlockPixels =
      448;                              // pixels of dy in a block, which stay in caches; sums are loaded once a block
  static constexpr int64_t kParts = 8;  // most parts of the blocks that have sums of their own
  static constexpr int64_t kSumBytes = 2 << 20;  // bound of the sums of all parts
  static constexpr int64_t kCacheBytes =
      512 << 10;  // of a chunk's packed data and sums, which stay in the second-level cache

  static size_t lines(int64_t floats) { return static_cast<size_t>(ceil_div(floats, 16) * 16); }

  /// The work of one tap in a block.
  struct Call {
    int64_t x = 0, dy = 0;                // the index in the block of the tap's first pixel
    std::vector<TileFunction> functions;  // by kind of tile and whether it is in the last panel; null: no work
  };
  struct Chunk {
    int64_t depth_tap, part, group;
    Range panels, tiles, taps;
  };

  void run_chunks(Executor& executor, const void* x, const void* dy, float* gradient, float* workspace,
                  const Finish* finish) const {
    if (widened_x_) {  // rows of taps are read where they are
      widen(x_form_, images_ / out_depth_ * depth_ * x_image_, x, workspace);
      x = workspace, workspace += widened_x_;
    }
    float* sums = parts_ == 1 ? gradient : workspace + scratch() * static_cast<size_t>(threads_);
    if (executor.width() > threads_)
      for (int64_t chunk = 0; chunk < chunks(); ++chunk) run_chunk(chunk, x, dy, sums, workspace, finish);
    else
      executor.run(static_cast<int>(chunks()), [&](int chunk, int worker) {
        run_chunk(chunk, x, dy, sums, workspace + static_cast<size_t>(worker) * scratch(), finish);
      });
    if (parts_ > 1) reduce_middle(executor, false, 1, parts_, count_, 1.f, sums, gradient, nullptr);
  }

  static bool meets_image_everywhere(const SlideSpec& slide) {
    return slide.pad_top == 0 && slide.pad_left == 0 && (slide.oh - 1) * slide.stride_h < slide.h &&
           (slide.ow - 1) * slide.stride_w < slide.w;
  }
  /// A kernel of one tap reads only the pixels at its strides; if these are all pixels, all rows of all images form one
  /// list.
  void skip_pixels(SlideSpec& slide) {
    x_pixel_ *= slide.stride_w, x_row_ *= slide.stride_h;
    if (!deep() && slide.stride_h == 1 && slide.stride_w == 1 && slide.h == slide.oh && slide.w == slide.ow) {
      slide.oh *= images_ * slide.ow, slide.ow = images_ = 1;
      x_row_ = in_;
    }
    slide.h = slide.oh, slide.w = slide.ow, slide.stride_h = slide.stride_w = 1;
  }

  /// Where the processor multiplies pairs of bf16, two adjacent pixels count as one, for the only tap.
  void pair_pixels(SlideSpec& slide) {
    if (!machine_has_brain_products() || x_form_ != Form::brains || dy_form_ != Form::brains) return;
    const bool column = slide.w == 1 && slide.ow == 1;
    int64_t &in = column ? slide.h : slide.w, &out = column ? slide.oh : slide.ow;
    if (in != out || in % 2 != 0) return;
    paired_ = true, in /= 2, out /= 2;
    if (column) x_pixel_ = x_row_;
    x_pixel_ *= 2;
    if (column) x_row_ = x_pixel_;
  }

  void plan(const SlideSpec& slide, int64_t kh, int64_t kw) {
    h_ = slide.h, w_ = slide.w, oh_ = slide.oh, ow_ = slide.ow;
    choose_units(slide, kh, kw);
    choose_blocks(slide, kh);
    choose_chunks();
    make_calls(slide, kh, kw);
  }

  void choose_units(const SlideSpec& slide, int64_t kh, int64_t kw) {
    const int64_t lane = lanes(machine_isa());
    out_each_ = out_ / groups_, in_each_ = in_ / groups_;
    vectors_ = static_cast<int>(std::min<int64_t>(2, ceil_div(out_each_, lane)));
    width_ = vectors_ * lane;
    panels_ = ceil_div(out_each_, width_);
    const int64_t most = most_pixels(machine_isa(), vectors_);
    by_rows_ = groups_ == 1 && kw > 1 && slide.dilation_w == 1 && 2 * in_ <= most;
    taps_ = by_rows_ ? kh : kh * kw;
    positions_ = by_rows_ ? kw * in_ : in_each_;
    tiles_ = ceil_div(positions_, most);
    for (int64_t i = 0; i < tiles_; ++i) tile_channels_.push_back(part_of(positions_, tiles_, i));
    for (int64_t i = 0; i < panels_; ++i)
      panel_channels_.push_back({i * width_, std::min(out_each_, (i + 1) * width_)});
    direct_x_ = by_rows_ || (!deep() && tiles_ == 1 && groups_ == 1 && x_pixel_ == in_ && x_row_ == w_ * in_);
    if (is_narrow(x_form_) && by_rows_) {
      widened_x_ = lines(images_ / out_depth_ * depth_ * x_image_);
      x_form_kept_ = Form::floats;
    } else {
      x_form_kept_ = x_form_;
    }
    direct_x_ = direct_x_ && x_form_kept_ == Form::floats;
    direct_dy_ = groups_ == 1 && width_ == out_ && dy_form_ == Form::floats;
    pitch_ = direct_x_ ? in_ : tile_size(0);
  }

  void choose_blocks(const SlideSpec& slide, int64_t kh) {
    const int64_t beyond = (kh - 1) * slide.dilation_h;  // rows of x that adjacent blocks share
    const int64_t most = std::max({int64_t{1}, kBlockPixels / ow_, beyond / slide.stride_h / 2});
    block_rows_ = ceil_div(oh_, ceil_div(oh_, most));
    const int64_t together = deep() ? direct_x_ ? 1 : out_depth_ : images_;  // images of a block lie in one volume
    if (block_rows_ == oh_) block_images_ = std::clamp<int64_t>(kBlockPixels / (oh_ * ow_), 1, together);
    while (together % block_images_ != 0) --block_images_;
    once_ = all_blocks() == 1 && !deep();
    count_ = depth_taps_ * taps_ * positions_ * out_;
    parts_ = std::clamp<int64_t>(kSumBytes / 4 / count_, 1, std::min(kParts, all_blocks()));
    const int64_t rows = std::min(h_, (block_rows_ - 1) * slide.stride_h + beyond + 1);
    x_pixels_ = block_images_ * rows * w_, dy_pixels_ = block_images_ * block_rows_ * ow_;
    for (int64_t block = 0; block < blocks(); ++block) {
      const int64_t first = block * block_rows_ * slide.stride_h - slide.pad_top;
      const int64_t last = (std::min(oh_, (block + 1) * block_rows_) - 1) * slide.stride_h - slide.pad_top + beyond + 1;
      rows_.push_back(direct_x_ ? Range{0, h_}
                                : Range{std::clamp<int64_t>(first, 0, h_), std::clamp<int64_t>(last, 0, h_)});
    }
  }

  /// Chooses the division into chunks with the least estimated time, from the measured costs of packing and loading
  /// relative to the products of a unit (in cycles per pixel of dy).
  void choose_chunks() {
    constexpr double kTile = 6, kPanel = 8, kNear = 80, kFar = 350;
    const double product = static_cast<double>(tile_size(0) * vectors_) / 2;
    double best = 0;
    for (int64_t t : {int64_t{1}, taps_})
      for (int64_t p = 1; p <= panels_; ++p)
        for (int64_t i = 1; i <= tiles_; ++i) {
          const int64_t taps = ceil_div(taps_, t), panels = ceil_div(panels_, p), tiles = ceil_div(tiles_, i);
          const int64_t units = taps * panels * tiles;
          const bool far = units * tile_size(0) * width_ * 4 > kCacheBytes ||
                           (tiles * x_pixels_ * pitch_ + panels * dy_pixels_ * width_) * 4 > kCacheBytes;
          const double cost =
              static_cast<double>(units) * (product + (far ? kFar : kNear) / static_cast<double>(dy_pixels_)) +
              kTile * static_cast<double>(tiles) + kPanel * static_cast<double>(panels);
          const double rounds = static_cast<double>(ceil_div(depth_taps_ * parts_ * groups_ * t * p * i, threads_));
          if (best != 0 && cost * rounds >= best) continue;
          best = cost * rounds;
          tap_parts_ = t, panel_parts_ = p, tile_parts_ = i;
        }
    if (!direct_x_) packed_x_ = lines(ceil_div(tiles_, tile_parts_) * x_pixels_ * pitch_);
    if (!direct_dy_) packed_dy_ = lines(ceil_div(panels_, panel_parts_) * dy_pixels_ * width_);
    sums_apart_ = finishes_ && parts_ == 1;
    sum_row_ = sums_apart_ ? std::min(out_each_, ceil_div(panels_, panel_parts_) * width_) : out_;
    if (sums_apart_)
      own_sums_ = lines(ceil_div(taps_, tap_parts_) * ceil_div(tiles_, tile_parts_) * tile_size(0) * sum_row_);
  }

  size_t scratch() const { return packed_x_ + packed_dy_ + own_sums_; }  // floats per worker
  int64_t blocks() const { return ceil_div(oh_, block_rows_); }
  int64_t all_blocks() const { return images_ / block_images_ * blocks(); }
  int64_t chunks() const { return depth_taps_ * parts_ * groups_ * tap_parts_ * panel_parts_ * tile_parts_; }
  Chunk chunk_of(int64_t i) const {
    const int64_t tile = i % tile_parts_, panel = i / tile_parts_ % panel_parts_;
    const int64_t tap = i / tile_parts_ / panel_parts_ % tap_parts_;
    const int64_t group = i / tile_parts_ / panel_parts_ / tap_parts_;
    return {group / groups_ / parts_,
            group / groups_ % parts_,
            group % groups_,
            part_of(panels_, panel_parts_, panel),
            part_of(tiles_, tile_parts_, tile),
            part_of(taps_, tap_parts_, tap)};
  }
  bool deep() const { return depth_ > 1 || depth_taps_ > 1; }
  /// The slice of x, counted over all volumes, that a tap of the depth pairs with an image of dy; nothing beyond the volume.
  std::optional<int64_t> slice_of(int64_t depth_tap, int64_t image) const {
    const int64_t slice = image % out_depth_ * depth_stride_ + depth_tap * depth_dilation_ - depth_pad_;
    if (slice < 0 || slice >= depth_) return std::nullopt;
    return image / out_depth_ * depth_ + slice;
  }
  /// Those images of a block, from its first, that a tap of the depth pairs with slices.
  Range met_by(int64_t depth_tap, int64_t first_image) const {
    Range met{0, block_images_};
    while (met.size() > 0 && !slice_of(depth_tap, first_image + met.first)) ++met.first;
    while (met.size() > 0 && !slice_of(depth_tap, first_image + met.last - 1)) --met.last;
    return met;
  }
  Range tile_at(int64_t tile) const { return tile_channels_[static_cast<size_t>(tile)]; }
  int64_t tile_size(int64_t tile) const { return tile_at(tile).size(); }
  int64_t columns_of(int64_t panel) const { return panel_channels_[static_cast<size_t>(panel)].size(); }
  // The number of kinds of tiles, which differ in code. With rows of taps every tile is a kind, since each meets the
  // image's border at other pixels.
  int64_t kinds() const { return by_rows_ ? tiles_ : 2; }
  size_t function_of(int64_t tile, bool last) const {
    const int64_t kind = by_rows_ ? tile : tile_size(tile) != tile_size(0);
    return static_cast<size_t>(2 * kind + last);
  }
  Range rows_of(const Chunk& chunk) const {  // of each tap
    return {tile_at(chunk.tiles.first).first, tile_at(chunk.tiles.last - 1).last};
  }
  /// Of a unit's sums.
  int64_t place(const Chunk& chunk, int64_t panel, int64_t tile, int64_t tap) const {
    if (!sums_apart_) return (tap * positions_ + tile_at(tile).first) * out_ + chunk.group * out_each_ + panel * width_;
    const Range rows = rows_of(chunk);
    return ((tap - chunk.taps.first) * rows.size() + tile_at(tile).first - rows.first) * sum_row_ +
           (panel - chunk.panels.first) * width_;
  }

  void run_chunk(int64_t number, const void* x, const void* dy, float* sums, float* scratch,
                 const Finish* finish) const {
    const Chunk chunk = chunk_of(number);
    if (sums_apart_)
      sums = scratch + packed_x_ + packed_dy_;
    else
      sums += chunk.part * count_ + chunk.depth_tap * (count_ / depth_taps_);
    if (!once_) clear(chunk, sums);
    const Range all = part_of(all_blocks(), parts_, chunk.part);
    for (int64_t i = all.first; i < all.last; ++i) {
      const int64_t image = i / blocks() * block_images_, block = i % blocks();
      const Range met = met_by(chunk.depth_tap, image);
      if (met.size() == 0) continue;
      const Range images{image + met.first, image + met.last};
      const float* block_x = direct_x_
                                 ? static_cast<const float*>(x) + *slice_of(chunk.depth_tap, images.first) * x_image_
                                 : pack_x(chunk, images, block, x, scratch);
      const void* from = element_at(dy_form_, dy, (images.first * oh_ + block * block_rows_) * ow_ * dy_pixel());
      const float* block_dy = direct_dy_ ? static_cast<const float*>(from)
                                         : pack_dy(chunk, images.size(), block, from, scratch + packed_x_);
      add(chunk, images.size(), block, block_x, block_dy, sums);
    }
    if (sums_apart_) hand_over(chunk, sums, *finish);
  }

  void hand_over(const Chunk& chunk, const float* sums, const Finish& finish) const {
    const Range rows = rows_of(chunk);
    const int64_t columns = std::min(out_each_, chunk.panels.last * width_) - chunk.panels.first * width_;
    const bool whole = columns == out_;
    for (int64_t tap = chunk.taps.first; tap < chunk.taps.last; ++tap) {
      int64_t first = chunk.depth_tap * (count_ / depth_taps_) + (tap * positions_ + rows.first) * out_ +
                      chunk.group * out_each_ + chunk.panels.first * width_;
      for (int64_t row = 0; row < (whole ? 1 : rows.size()); ++row, first += out_)
        finish(sums + row * sum_row_, first, whole ? rows.size() * out_ : columns);
      sums += rows.size() * sum_row_;
    }
  }

  void clear(const Chunk& chunk, float* gradient) const {
    for (int64_t tap = chunk.taps.first; tap < chunk.taps.last; ++tap)
      for (int64_t tile = chunk.tiles.first; tile < chunk.tiles.last; ++tile)
        for (int64_t panel = chunk.panels.first; panel < chunk.panels.last; ++panel)
          clear(tile_size(tile), columns_of(panel), gradient + place(chunk, panel, tile, tap));
  }
  void clear(int64_t rows, int64_t columns, float* to) const {
    for (int64_t row = 0; row < rows; ++row) std::fill_n(to + row * sum_row_, columns, 0.f);
  }

  const float* pack_x(const Chunk& chunk, const Range& images, int64_t block, const void* x, float* to) const {
    const std::span<const Range> channels = of(tile_channels_, chunk.tiles);
    const Range rows = rows_[static_cast<size_t>(block)];
    const int64_t at_once = x_row_ == w_ * x_pixel_ ? rows.size() : 1;
    float* next = to;
    for (int64_t i = images.first; i < images.last; ++i) {
      const int64_t from = *slice_of(chunk.depth_tap, i) * x_image_ + chunk.group * in_each_;
      for (int64_t row = rows.first; row < rows.last; row += at_once, next += at_once * w_ * pitch_)
        pack(x_form_kept_, at_once * w_, element_at(x_form_kept_, x, from + row * x_row_), x_pixel_, channels,
             x_pixels_ * pitch_, pitch_, next);
    }
    return to;
  }
  const float* pack_dy(const Chunk& chunk, int64_t images, int64_t block, const void* dy, float* to) const {
    const int64_t rows = std::min(oh_ - block * block_rows_, block_rows_);
    pack(dy_form_, images * rows * ow_, element_at(dy_form_, dy, chunk.group * out_each_), dy_pixel(),
         of(panel_channels_, chunk.panels), dy_pixels_ * width_, width_, to);
    return to;
  }
  int64_t dy_pixel() const { return paired_ ? 2 * out_ : out_; }
  void pack(Form form, int64_t count, const void* from, int64_t step, std::span<const Range> channels,
            int64_t range_floats, int64_t pitch, float* to) const {
    if (!paired_) return pack_pixels(form, count, from, step, channels, range_floats, pitch, to);
    pack_pairs_of_pixels(count, static_cast<const uint16_t*>(from), step, channels, range_floats, pitch, to);
  }
  static std::span<const Range> of(const std::vector<Range>& list, const Range& range) {
    return std::span(list).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.size()));
  }

  /// Adds a block's products to the gradient; x and dy are the block's pixels, packed or in place.
  void add(const Chunk& chunk, int64_t images, int64_t block, const float* x, const float* dy, float* gradient) const {
    const int64_t kind = std::find(image_counts_.begin(), image_counts_.end(), images) - image_counts_.begin();
    alignas(64) static constexpr float kZeros[64] = {};
    for (int64_t panel = chunk.panels.first; panel < chunk.panels.last; ++panel)
      for (int64_t tile = chunk.tiles.first; tile < chunk.tiles.last; ++tile)
        for (int64_t tap = chunk.taps.first; tap < chunk.taps.last; ++tap) {
          const Call& call = calls_[static_cast<size_t>((kind * taps_ + tap) * blocks() + block)];
          float* to = gradient + place(chunk, panel, tile, tap);
          const int64_t tile_x = direct_x_ ? tile_at(tile).first : (tile - chunk.tiles.first) * x_pixels_ * pitch_;
          const TileFunction function = call.functions[function_of(tile, panel + 1 == panels_)];
          if (function)
            function(x + tile_x + call.x * pitch_, dy + ((panel - chunk.panels.first) * dy_pixels_ + call.dy) * width_,
                     to, kZeros, to);
          else if (once_)
            clear(tile_size(tile), columns_of(panel), to);
        }
  }

  void make_calls(const SlideSpec& slide, int64_t kh, int64_t kw) {
    for (int64_t tap = 0; tap < depth_taps_; ++tap)
      for (int64_t image = 0; image < out_depth_; image += block_images_)
        if (const int64_t count = met_by(tap, image).size();
            count > 0 && std::find(image_counts_.begin(), image_counts_.end(), count) == image_counts_.end())
          image_counts_.push_back(count);
    for (int64_t images : image_counts_) make_calls(slide, kh, kw, images);
  }
  void make_calls(const SlideSpec& slide, int64_t kh, int64_t kw, int64_t images) {
    std::map<std::array<int64_t, 3>, std::vector<TileFunction>> made;  // by the tap's column and the rows
    for (int64_t ky = 0; ky < kh; ++ky)
      for (int64_t kx = 0; kx < (by_rows_ ? 1 : kw); ++kx)
        for (const int64_t block : turns(blocks(), 64)) {
          const Range x_rows = rows_[static_cast<size_t>(block)];
          const Reach rows = reach_of(block * block_rows_, std::min(oh_, (block + 1) * block_rows_), h_, slide.stride_h,
                                      ky * slide.dilation_h - slide.pad_top);
          const int64_t shift = kx * slide.dilation_w - slide.pad_left;
          const Reach columns = by_rows_ ? Reach{0, ow_, shift} : reach_of(0, ow_, w_, slide.stride_w, shift);
          auto& functions = made[{kx, rows.last - rows.first, x_rows.size()}];
          functions.resize(static_cast<size_t>(2 * kinds()));
          for (int64_t tile = 0; tile < tiles_ && rows.first < rows.last; ++tile)
            for (bool last : {false, true})
              if (TileFunction& function = functions[function_of(tile, last)]; !function)
                function = make_function(slide, images, rows.last - rows.first, x_rows.size(),
                                         runs_of(slide, columns, tile), tile, last);
          calls_.push_back({(rows.at - x_rows.first) * w_ + columns.at,
                            (rows.first - block * block_rows_) * ow_ + columns.first, functions});
        }
  }

  /// The columns of one row of dy, with the positions of the tile for which the tap is inside the image.
  std::vector<TapRun> runs_of(const SlideSpec& slide, const Reach& columns, int64_t tile) const {
    const int64_t size = tile_size(tile);
    const auto all = static_cast<uint32_t>((uint64_t{1} << size) - 1);
    std::vector<TapRun> runs;
    if (!by_rows_) {
      if (columns.first < columns.last) runs.push_back({0, 0, static_cast<int>(columns.last - columns.first), all});
      return runs;
    }
    for (int64_t column = 0; column < ow_; ++column) {
      uint32_t inside = 0;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t x = column * slide.stride_w - slide.pad_left + (tile_at(tile).first + i) / in_;
        if (x >= 0 && x < w_) inside |= 1u << i;
      }
      if (!runs.empty() && runs.back().pixels == inside && runs.back().b_row + runs.back().length == column)
        ++runs.back().length;
      else if (inside)
        runs.push_back({column * slide.stride_w * in_ * 4, static_cast<int>(column), 1, inside});
    }
    return runs;
  }

  TileFunction make_function(const SlideSpec& slide, int64_t images, int64_t rows, int64_t image_rows,
                             std::vector<TapRun> runs, int64_t number, bool last) {
    if (runs.empty()) return {};
    TileSpec tile;
    tile.isa = machine_isa();
    if (paired_) tile.arithmetic = Arithmetic::pairs;
    tile.brain_products = paired_;
    tile.vectors = vectors_;
    tile.columns = static_cast<int>(last ? columns_of(panels_ - 1) : width_);
    for (int64_t i = 0; i < tile_size(number); ++i) tile.pixel_bytes.push_back(i * 4);
    tile.a_step_bytes = slide.stride_w * pitch_ * 4;
    tile.a_row_bytes = slide.stride_h * w_ * pitch_ * 4;
    tile.b_row_rows = static_cast<int>(ow_);
    if (!by_rows_ && runs[0].length == ow_ && slide.stride_h == 1 && slide.stride_w == 1 && w_ == ow_) {
      runs[0].length *= static_cast<int>(rows);  // the rows are contiguous
      rows = 1;
    }
    if (images > 1) {  // each row of the tile's code is an image
      const size_t each = runs.size();
      for (int64_t row = 1; row < rows; ++row)
        for (size_t i = 0; i < each; ++i)
          runs.push_back({runs[i].a_bytes + row * tile.a_row_bytes,
                          runs[i].b_row + static_cast<int>(row) * tile.b_row_rows, runs[i].length, runs[i].pixels});
      tile.a_row_bytes = image_rows * w_ * pitch_ * 4;
      tile.b_row_rows = static_cast<int>(oh_ * ow_);
      rows = images;
    }
    tile.rows.assign(static_cast<size_t>(rows), runs);
    tile.c_stride = sum_row_;
    tile.residual = !once_;
    kernels_.push_back(TileKernel::make(tile));
    return kernels_.back()->function();
  }

  int threads_;
  bool finishes_, sums_apart_ = false;  // sums_apart_: those of a chunk lie in the worker's scratch
  int64_t sum_row_ = 0;                 // floats between rows of sums
  size_t own_sums_ = 0;                 // floats
  Form x_form_ = Form::floats, dy_form_ = Form::floats;
  Form x_form_kept_ = Form::floats;  // of what is packed
  size_t widened_x_ = 0;             // floats
  int64_t groups_, images_, h_, w_, oh_, ow_, in_, out_;
  int64_t depth_ = 1, out_depth_ = 1, depth_taps_ = 1;  // slices of a volume of x and of dy
  int64_t depth_stride_ = 1, depth_dilation_ = 1, depth_pad_ = 0;
  int64_t in_each_, out_each_;         // channels of a group
  int64_t x_pixel_, x_row_, x_image_;  // strides of x in floats between the pixels, rows and images that are read
  int vectors_ = 1;
  bool by_rows_ = false, once_ = false;        // by_rows_: tiles cover rows of taps; once_: each unit has one block
  bool direct_x_ = false, direct_dy_ = false;  // read in place, not packed
  bool paired_ = false;                        // a pixel is two of bf16
  int64_t taps_, positions_, tiles_, width_, panels_;
  int64_t pitch_;  // floats between pixels of x as kernels read them
  int64_t block_rows_, block_images_ = 1;
  int64_t x_pixels_ = 0, dy_pixels_ = 0;               // in a block
  std::vector<Range> tile_channels_, panel_channels_;  // of a group
  std::vector<Range> rows_;                            // by block: the rows of x that it reads
  int64_t tap_parts_ = 1, panel_parts_ = 1, tile_parts_ = 1;
  int64_t parts_ = 1;                    // parts of the blocks that have sums of their own
  int64_t count_ = 0;                    // elements of dW
  size_t packed_x_ = 0, packed_dy_ = 0;  // floats
  std::vector<int64_t> image_counts_;    // how many images of a block meet slices of x
  std::vector<Call> calls_;              // by number of images, tap and block
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
};

}  // namespace cairn
