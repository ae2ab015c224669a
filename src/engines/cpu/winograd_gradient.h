// The gradient of a convolution by its kernel, by Winograd's method (winograd.h).
#pragma once

#include "engines/cpu/call_step.h"
#include "engines/cpu/winograd.h"

namespace cairn {

/// x [n, h, w, ic] and the gradient dy [n, oh, ow, oc] of the result to that of the kernel [3, 3, ic, oc]: at each point the
/// product of the values of all tiles of x, transposed, with those of dy. Tiles are divided into parts with sums of their own;
/// the division depends on the shapes alone, so that bits do not depend on the number of workers. dy has the form of the spec's result.
class WinogradGradient {
 public:
  WinogradGradient(const WinogradSpec& spec, int64_t results, Isa isa, int threads);

  /// Floats of run()'s scratch, aligned to cache lines. The executor has at most as many workers as were given.
  size_t scratch_size() const;
  void run(Executor& executor, const void* x, const void* dy, float* gradient, float* scratch) const;
  /// "F(4x4) 14x32 avx512, 64 of 6272 tiles, 8 parts"
  std::string describe() const;

 private:
  struct Rows {  // of x's channels
    int64_t first;
    TileFunction begin, add;  // a part's sums
  };

  void add_rows(int64_t tiles);
  void run_chunk(int64_t chunk, const void* x, const void* dy, const float* zeros, float* sums, float* scratch) const;
  int64_t points() const { return (results_ + 2) * (results_ + 2); }
  int64_t m_point() const { return spec_.ic * m_row_; }
  int64_t m_part() const { return points() * m_point(); }
  int64_t first_of(int64_t block) const { return block * tiles_ / blocks_; }  // tile
  int64_t values() const { return points() * (x_loops_.v_point + dy_loops_.v_point); }

  WinogradSpec spec_;
  int64_t results_;
  Isa isa_;
  int threads_;
  int vectors_ = 1;
  int64_t width_ = 0, panels_ = 0, m_row_ = 0, tiles_ = 0, zeros_ = 0;
  int64_t blocks_ = 1, most_tiles_ = 0;  // of tiles; tiles of the largest
  int64_t parts_ = 1;                    // of blocks
  int64_t splits_ = 1;                   // of panels, among workers
  WinogradLoops x_loops_{}, dy_loops_{};
  WinogradCode code_{};
  std::map<int64_t, std::vector<Rows>> rows_;  // by tiles of a block
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
};

/// conv2d_kernel_gradient with kernels of 3 x 3 and stride 1, where that is faster; of elements of 16 bits as winograd_step.h. Where the context wants the definition,
/// the step is that of kernel_gradient.h.
Refusal refuses_winograd_gradient(const Group& group);
std::unique_ptr<Step> make_winograd_gradient(const Group& group, MakeContext& context);

}  // namespace cairn
