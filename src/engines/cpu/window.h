// Kernels that slide a window over each channel of images or volumes (NHWC, NDHWC): depthwise convolution, maximum and mean
// pooling. They are generated, or in plain C++ without AVX2.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engines/cpu/tile_jit.h"
#include "support/executor.h"

namespace cairn {

struct SlideTile;

enum class WindowWork : uint8_t { multiply_add, maximum, mean };

/// x [n, d, h, w, channels / multiplier] to y [n, od, oh, ow, channels]. Taps outside the volume are skipped.
struct SlideSpec {
  WindowWork work = WindowWork::multiply_add;
  int64_t n = 1, d = 1, h = 1, w = 1, channels = 1, od = 1, oh = 1, ow = 1;
  int64_t multiplier = 1;  // adjacent channels of y that read the same channel of x; multiply_add only
  int64_t kd = 1, kh = 1, kw = 1;
  int64_t stride_d = 1, stride_h = 1, stride_w = 1, dilation_d = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_front = 0, pad_top = 0, pad_left = 0;
  /// For the mean: divides by the size of the window's part inside the padded volume, which extends the volume by
  /// pad_back, pad_bottom and pad_right at the end.
  bool count_padding = false;
  int64_t pad_back = 0, pad_bottom = 0, pad_right = 0;
  bool residual = false;  // like the activation, for multiply_add only
  Activation activation;
  Form x_form = Form::floats;  // another, like a narrow epilogue, with as many channels of x as of y
  NarrowEpilogue narrow;

  bool is_narrow() const { return x_form != Form::floats || narrow.acts(); }
  int64_t taps() const { return kd * kh * kw; }
  int64_t in_channels() const { return channels / multiplier; }
  int64_t pixels() const { return d * h * w; }  // of one volume
  int64_t out_pixels() const { return od * oh * ow; }
};

class Slide {
 public:
  /// Why the generated kernel does not take this, or nothing.
  static std::optional<std::string> refuses(const SlideSpec& spec, Isa isa);

  Slide(const SlideSpec& spec, Isa isa);
  ~Slide();

  /// Floats of the packed kernel, and of the bias with the channels rounded up; 0 for maximum and mean.
  size_t packed_size() const;
  size_t bias_size() const;
  /// Distinguishes packed layouts: "channels16 9x144".
  std::string layout() const;
  /// kernel [kd, kh, kw, channels], of elements of this form.
  void pack(const void* kernel, Form form, float* packed) const;
  void pack_bias(const float* bias, float* packed) const;  // bias null: zeros

  /// `residual` may be y itself. A NaN at any tap gives NaN. The bits of the result do not depend on the number of
  /// workers.
  void run(Executor& executor, const void* x, const float* packed, const float* bias, const void* residual,
           void* y) const;
  /// Whether no tile spans several rows.
  static bool goes_by_rows(const SlideSpec& spec);
  /// Rows [first, last) of the results of one image, on the caller's thread, for such a slide: without residual.
  void run_rows(int64_t first, int64_t last, const void* x, const float* packed, const float* bias, void* y) const;
  /// "12 pixels x 16 channels avx512"
  std::string describe() const;

 private:
  class Code;
  /// Computes whole vectors of channels, then the remaining channels if `rest` is set.
  using Function = void (*)(const void* x, const float* packed, void* y, const void* residual, int64_t vectors,
                            int64_t rest, const float* bias);
  struct Tile {
    Function function;  // null without AVX2: in plain C++
    const SlideTile* plain;
    int64_t x, y;  // offsets in elements inside one volume
  };

  void run_tile(const Tile& tile, const void* x, const float* packed, const float* bias, const void* residual, void* y,
                int64_t vectors, bool rest) const;
  void add_tile(int64_t first, int64_t pixels, std::unordered_map<std::string, Tile>& known);

  SlideSpec spec_;
  Isa isa_;
  int64_t pixels_ = 0;  // most pixels of a tile
  std::vector<Tile> tiles_;
  std::vector<std::shared_ptr<const Code>> codes_;
  std::vector<std::unique_ptr<SlideTile>> plain_;
};

}  // namespace cairn
