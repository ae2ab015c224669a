// Winograd's convolution with kernels of 3 x 3 and stride 1: a tile of results is made of products at the points of
// polynomials, of which there are fewer than taps times results (A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural
// Networks, 2016). Products of all tiles at a point are a matrix product on the generated tile.
//
// Tiles of 4 x 4 results have the points 0, +-21/32, +-3/2 and infinity, of 3 x 3 results +-3/8, +-5/4 and infinity, of 2 x 2
// results 0, +-1 and infinity: near those that err least, and exact in f32 (docs/dev/performance.md).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engines/cpu/tile_jit.h"
#include "support/executor.h"

namespace cairn {

/// x [n, h, w, ic] with kernel [3, 3, ic, oc] to y [n, oh, ow, oc].
struct WinogradSpec {
  int64_t n = 1, h = 1, w = 1, ic = 1, oc = 1, oh = 1, ow = 1, pad_top = 0, pad_left = 0;
  bool residual = false;
  bool packed_in_run = false;  // the kernel is no constant
  int64_t most_results = 4;    // 2 to 4 along a side of a tile: larger ones err more
  Form x_form = Form::floats, kernel_form = Form::floats;
  Form precision = Form::floats;  // to which a kernel of floats is rounded
  NarrowEpilogue narrow;
  Activation activation;

  /// Of floats: sums by the definition of so many channels err nearly as much as tiles of 4 x 4 or 3 x 3 results.
  static int64_t most_results_of(int64_t channels) { return channels >= 64 ? 4 : channels >= 24 ? 3 : 2; }
  int64_t tiles(int64_t results) const { return n * ((oh + results - 1) / results) * ((ow + results - 1) / results); }
};

/// What the loops over tiles know: `v` are the values of x at the points, `m` their products with the kernel's.
struct WinogradLoops {
  int64_t h, w, ic, x_pixel;  // x_pixel: floats between pixels
  int64_t oc, oh, ow, pad_top, pad_left, tiles_y, tiles_x;
  int64_t v_point, v_tile, m_point, m_tile;  // floats between them
  float low, high;                           // of the activation
  Form x_form = Form::floats;
  NarrowEpilogue narrow;
};
struct WinogradCode {
  /// The values at each point of `count` elements of the kernel, whose taps lie one behind the other.
  void (*transform_kernel)(int64_t count, const float* taps, float* to, int64_t point_step);
  void (*transform)(const WinogradLoops&, int64_t first, int64_t last, const void* x, const float* zeros, float* v);
  void (*finish)(const WinogradLoops&, int64_t first, int64_t last, int64_t begin, int64_t end, const float* m,
                 const float* bias, const void* residual, void* y);
  // Of the gradient by the kernel:
  /// transform() of results in place of x, whose values at the points are those that meet x's.
  void (*transform_results)(const WinogradLoops&, int64_t first, int64_t last, const void* results, const float* zeros,
                            float* v);
  /// `count` elements of each tap, `tap_step` apart, from sums of products at the points that lie in `parts`.
  void (*finish_kernel)(int64_t count, int64_t parts, int64_t part_step, int64_t point_step, const float* m, float* to,
                        int64_t tap_step);
};
WinogradCode winograd_code(Isa isa, int64_t results);

/// The steps that products of tiles of 4 x 4, and those of gradients by the kernel, sum apart (TileSpec::block_steps): fewer than
/// products of the definition, since the way back from the points enlarges errors. It costs a twentieth of the time.
int winograd_block(int64_t steps);

class Winograd {
 public:
  static constexpr double kGain = 0.85;
  /// Results along a side of a tile that need least time, by estimate, or 0 where they need more than `gain` of the definition's.
  /// The same for any number of threads.
  static int64_t best_results(const WinogradSpec& spec, Isa isa, double gain = kGain);

  /// `results`: 2, 3 or 4 along a side of a tile.
  Winograd(const WinogradSpec& spec, int64_t results, Isa isa, int threads);

  /// Floats of the transformed kernel, of the bias with whole panels, and of zeros that run() reads.
  size_t packed_size() const { return static_cast<size_t>(panels_ * panel_floats()); }
  size_t bias_size() const { return static_cast<size_t>(panels_ * width_); }
  size_t zeros_size() const { return static_cast<size_t>(spec_.ic); }
  /// Distinguishes transformed kernels: "winograd 4 panel32 64x64".
  std::string layout() const;
  /// `turned`: the kernel [3, 3, oc, ic] of a convolution whose gradient by its image this is. Without allocation.
  void pack(Executor& executor, const void* kernel, bool turned, float* packed) const;
  void pack_bias(const float* bias, float* packed) const;  // bias null: zeros
  /// Floats of run()'s scratch, aligned to cache lines.
  size_t scratch_size() const;

  /// `residual` may be y itself. The executor has at most as many workers as were given. The bits of the result do not depend on
  /// their number.
  void run(Executor& executor, const void* x, const float* packed, const float* bias, const float* zeros,
           const void* residual, void* y, float* scratch) const;
  /// "F(4x4) 14x32 avx512, 98 of 196 tiles at once"
  std::string describe() const;

 private:
  struct Rows {
    int64_t first;
    TileFunction function;
  };

  void choose_blocks(int threads);
  void add_rows(int64_t tiles);
  void multiply(int64_t tiles, int64_t panel, const float* v, const float* packed, float* m) const;
  int64_t first_of(int64_t block) const { return block * tiles_ / blocks_; }
  int64_t points() const { return (results_ + 2) * (results_ + 2); }
  int64_t panel_floats() const { return points() * spec_.ic * width_; }
  int64_t v_floats() const { return most_tiles_ * loops_.v_tile; }
  int64_t m_floats() const { return most_tiles_ * loops_.m_tile; }

  WinogradSpec spec_;
  int64_t results_;
  Isa isa_;
  int threads_;
  int vectors_ = 1;
  int64_t width_ = 0, panels_ = 0, tiles_ = 0, most_rows_ = 0;
  int64_t blocks_ = 1, most_tiles_ = 0;  // of tiles; tiles of the largest
  bool alone_ = true;                    // each block is one worker's; else its panels are shared
  WinogradLoops loops_{};
  WinogradCode code_{};
  std::map<int64_t, std::vector<Rows>> rows_;  // by tiles of a block
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
};

}  // namespace cairn
