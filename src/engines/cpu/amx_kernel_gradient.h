// The gradient of a convolution by its kernel from bf16, on matrix registers (AMX), for any taps.
#pragma once

#include "engines/cpu/call_step.h"
#include "engines/cpu/tile_jit.h"
#include "engines/cpu/window.h"

namespace cairn {

/// dW[tap, i, o] = sum over pixels of x[pixel at the tap, i] * dy[pixel, o], of images. Blocks of pixels are packed, x with the pixels of
/// a channel side by side and 0 around the image, dy as pairs of pixels with 0 where the rows of x have more pixels: for each tap
/// a channel's pixels are then one run of memory, which begins somewhere else. Strides divide x into phases. A unit of work is a tile of rows (tap, i) by a panel of channels o.
class AmxKernelGradient {
 public:
  static bool suits(const SlideSpec& slide, int64_t out);

  AmxKernelGradient(const SlideSpec& slide, int64_t out);

  size_t workspace() const;  // bytes
  std::string describe() const;
  /// The bits do not depend on the number of workers.
  void run(Executor& executor, const uint16_t* x, const uint16_t* dy, float* gradient, char* workspace) const;

 private:
  /// Along one dim, for each tap: the phase of x that it reads, and how many elements of it further than the first tap.
  struct Taps {
    Taps(int64_t taps, int64_t stride, int64_t dilation, int64_t pad);
    std::vector<int64_t> phase, shift;  // by tap
    std::vector<int64_t> phases;        // those in use
    int64_t least = 0, reach = 0;       // the first tap's place in its phase; the largest shift
  };
  struct Tile {
    int64_t row, place;              // the first of (tap, i); its first pixel in packed x
    TileFunction first[2], next[2];  // by whether the panel is the last; the first block stores, others add
  };
  struct Block {
    int64_t image, row;  // the first of dy
  };

  int64_t block_count() const { return image_blocks_ * row_blocks_; }
  int64_t units() const { return static_cast<int64_t>(tiles_.size()) * panels_; }
  int64_t packed_x() const { return (channels() + kMatrixRows) * pitch_; }  // elements of 2 bytes
  int64_t packed_dy() const { return panels_ * panel_elements(); }          // of 4 bytes
  int64_t panel_elements() const { return block_images_ * positions_ / 2 * width_; }
  int64_t x_slots() const { return x_phases() * block_images_ * slots_; }
  int64_t x_phases() const { return std::ssize(rows_.phases) * std::ssize(columns_.phases); }
  int64_t channels() const { return (s_.channels + kMatrixRows - 1) / kMatrixRows * kMatrixRows; }
  size_t block_bytes() const;
  Block block_at(int64_t i) const { return {i / row_blocks_ * block_images_, i % row_blocks_ * block_rows_}; }
  void choose_blocks();
  void make_tiles();
  TileFunction make_function(int64_t first, int64_t rows, bool last_panel, bool adds);
  int64_t place_of(int64_t row) const;
  void pack_x(const Block& block, const uint16_t* x, int64_t batch, uint16_t* to) const;
  void pack_dy(const Block& block, const uint16_t* dy, int64_t batch, uint32_t* to) const;

  SlideSpec s_;
  int64_t out_, width_ = 0, panels_ = 0;
  Taps rows_, columns_;
  int64_t row_pixels_ = 0;                     // of packed rows
  int64_t block_images_ = 1, block_rows_ = 1;  // of dy
  int64_t image_blocks_ = 1, row_blocks_ = 1;
  int64_t parts_ = 1;                  // blocks that are computed side by side and have sums of their own
  int64_t positions_ = 0, slots_ = 0;  // pixels of an image of a block, in packed dy and in packed x
  int64_t pitch_ = 0;                  // elements between channels of packed x
  std::vector<Tile> tiles_;
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
};

/// A step that computes it, or null where matrix registers have no advantage or operands are not bf16. `x` and `dy` are the indices of
/// the group's inputs.
std::unique_ptr<Step> make_amx_kernel_gradient(const char* name, const SlideSpec& slide, int64_t out, size_t x,
                                               Form x_form, size_t dy, Form dy_form, CallOptions options);

}  // namespace cairn
