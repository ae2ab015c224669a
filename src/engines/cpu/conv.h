// Convolution (one group) and matrix product on the generated tile: packs the weights, cuts the output into tiles and
// these into chunks.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/cpu/window.h"
#include "support/executor.h"
#include "support/function_ref.h"

namespace cairn {

/// x [n, d, h, w, ic] (dense NDHWC) with kernel [kd, kh, kw, ic, oc] to y [n, od, oh, ow, oc]. A matrix product
/// [m, k] x [k, oc] is w = ow = m, ic = k, and 1 otherwise.
struct ConvSpec {
  int64_t n = 1, d = 1, h = 1, w = 1, ic = 1;
  int64_t oc = 1, od = 1, oh = 1, ow = 1;
  int64_t kd = 1, kh = 1, kw = 1;
  int64_t stride_d = 1, stride_h = 1, stride_w = 1, dilation_d = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_front = 0, pad_top = 0, pad_left = 0;
  bool residual = false;
  Activation activation;
  // Integers: channels are counted in 4-byte elements of A and B, and strides of y in elements of its type.
  Arithmetic arithmetic = Arithmetic::floats;
  IntegerEpilogue epilogue;
  bool transposed_x = false;  // matrix products only: x is [k, m]
  // Elements of 16 bits: x is widened a chunk at a time, but for pairs of bf16, of which channels of x are counted. Weights
  // are packed from elements of the form `weights`, floats are rounded to `precision`.
  Form x_form = Form::floats, weights_form = Form::floats, precision = Form::floats;
  NarrowEpilogue narrow;
  // Weights in fewer bits than floats: a product's, whose blocks have so many rows.
  Stored stored = Stored::floats;
  int64_t block = 0;
  bool zeros = false;
  bool expands = false;        // they are, a panel at a time, by expand_and_run()
  bool widest_panel = false;   // for any number of rows
  bool packed_in_run = false;  // the weights are not constant and are packed in every run
  bool plain_weights = false;  // such weights of a product are [ic, oc]: for few rows they are read where they are
  // Strides in floats, for views of larger tensors; 0 for dense tensors.
  int64_t x_pixel = 0;  // between pixels of x, whose rows, slices and images are contiguous
  int64_t y_pixel = 0, y_row = 0, y_slice = 0, y_image = 0;  // of y and of the residual

  int64_t taps() const { return kd * kh * kw; }
  friend bool operator==(const ConvSpec&, const ConvSpec&) = default;
};

/// The steps that a tile of a long product sums apart (TileSpec::block_steps).
int block_steps(int64_t steps);

/// The windows of a plain convolution with `oc` output channels.
ConvSpec conv_spec(const SlideSpec& slide, int64_t oc);

class Conv {
 public:
  /// Why the generated kernel does not take this, or nothing.
  static std::optional<std::string> refuses(const ConvSpec& spec, Isa isa);

  Conv(const ConvSpec& spec, Isa isa, int threads);

  /// Whether products of bytes or pairs run on matrix registers, which have an advantage and are at hand.
  static bool suits_matrix_registers(const ConvSpec& spec, Isa isa);

  /// Floats of the packed kernel and of the packed bias (whole panels).
  size_t packed_size() const { return static_cast<size_t>(panels_) * panel_floats_; }
  /// Floats that pack_and_run() packs into.
  size_t scratch_size() const { return reads_weights_ ? panel_floats_ : packed_size(); }
  size_t bias_size() const { return static_cast<size_t>(panels_ * width_ * bias_rows()); }
  /// Distinguishes packed layouts: "panel32 576x64".
  std::string layout() const;
  /// Floats of run()'s scratch for `threads` workers, in which it widens x.
  size_t widened_size(int threads) const;
  /// kernel[(tap * ic + i) * oc + o] when `transposed` is false; for a matrix [oc, ic] when it is true.
  void pack(const void* kernel, float* packed, bool transposed = false) const;
  /// The same, panel by panel, for weights that are known only at run time.
  int panels() const { return static_cast<int>(panels_); }
  void pack_panel(int panel, const void* kernel, float* packed, bool transposed) const;
  /// The same for a kernel with any strides: element (channel i, output channel o) of tap t is
  /// kernel[taps[t] + i * channel_step + o * output_step].
  void pack_taps(int panel, const void* kernel, const std::vector<int64_t>& taps, int64_t channel_step,
                 int64_t output_step, float* packed) const;
  void pack_bias(const float* bias, float* packed) const;  // bias null: zeros

  /// Integers: a panel's channels; the sets of taps ('1': inside the image) that pixels have; and what replaces the bias: the start
  /// value of each set and channel, and rows of one number or one a channel, times a factor.
  int64_t panel_width() const { return width_; }
  PanelLayout panel_layout() const { return {spec_.stored, spec_.taps() * spec_.ic, width_, spec_.block, spec_.zeros}; }
  const std::vector<std::string>& tap_sets() const { return tap_sets_; }
  struct Row {
    const float* data;
    bool one;
    float factor;
    float operator[](int64_t i) const { return data[one ? 0 : i] * factor; }
  };
  void pack_parameters(const int32_t* starts, std::span<const Row> rows, float* packed) const;

  /// `residual` may be y itself. The bits of the result do not depend on the number of workers. `scratch` has
  /// widened_size() floats for as many workers as the executor has.
  void run(Executor& executor, const void* x, const float* packed, const float* bias, const void* residual, void* y,
           float* scratch = nullptr) const;
  /// The same for unpacked weights, which are packed into `packed` first.
  void pack_and_run(Executor& executor, const void* x, const void* weights, bool transposed, float* packed,
                    const float* bias, const void* residual, void* y, float* scratch = nullptr) const;
  /// The same for weights whose panels are made as they are needed, by `expand`. `scratch` has a panel for each worker.
  void expand_and_run(Executor& executor, const void* x, FunctionRef<void(int panel, float* to)> expand, float* scratch,
                      const float* bias, const void* residual, void* y, float* widened = nullptr) const;
  size_t panel_size() const { return panel_floats_; }
  /// The address of a panel that is packed next; rows that tiles read behind its own are 0 then.
  float* start_panel(int panel, float* packed) const;
  /// "14x32, 3 panels of 7 tiles a chunk"
  std::string describe() const;

 private:
  struct Tile {
    TileFunction whole, tail;  // for full panels and for a partial last one
    int64_t a, c;              // offsets in elements
  };

  using Kind = std::array<int64_t, 5>;

  void choose_panel(Isa isa, int threads);
  bool is_brief() const;
  void pack_all(Executor& executor, const void* kernel, float* packed, bool transposed) const;
  void pack_panel_to(float* to, int panel, const void* kernel, bool transposed) const;
  /// `b`: the panel's weights.
  void multiply(int panel, int first_tile, int last_tile, const float* x, const float* b, const float* bias,
                const void* residual, void* y) const;
  int64_t lines_ahead() const;
  bool fetches_pixels() const;
  int64_t bias_rows() const { return integers() ? std::ssize(tap_sets_) + 2 + spec_.epilogue.later_bias : 1; }
  bool integers() const { return is_integer(spec_.arithmetic); }
  bool widens() const { return is_narrow(spec_.x_form) && spec_.arithmetic == Arithmetic::floats; }
  int64_t panel_rows() const { return spec_.taps() * spec_.ic; }
  bool widens_chunks() const { return pixels_outermost_ && !spec_.transposed_x; }
  int64_t x_size() const {
    return spec_.transposed_x ? spec_.ic * spec_.w
                              : (spec_.n * spec_.d * spec_.h * spec_.w - 1) * spec_.x_pixel + spec_.ic;
  }
  int64_t steps() const { return pairs() ? 2 : 1; }  // of k in an element of 4 bytes
  bool pairs() const { return spec_.arithmetic == Arithmetic::pairs; }
  /// `at`: in elements of the weights.
  void pack_rows_at(const void* kernel, int64_t at, int64_t row_step, int64_t columns, int64_t column_step,
                    int64_t rows, float* to) const;
  /// The elements of x, from the first to behind the last, that tiles read.
  std::pair<int64_t, int64_t> elements_of(int64_t first_tile, int64_t last_tile) const;
  /// Elements [begin, end) of x, for tiles.
  void widen_x(const void* x, int64_t begin, int64_t end, float* to) const;
  /// The whole of x as floats.
  const float* widened(Executor& executor, const void* x, float* scratch) const;
  void cut();
  void add_tile(int64_t first, int64_t pixels, std::vector<Tile>& tiles);
  using Functions = std::pair<TileFunction, TileFunction>;  // of a tile for whole panels and for a partial last one
  Functions make_functions(int64_t first, int64_t pixels);
  bool is_inside(int64_t pixel, int64_t tap) const;
  std::string tap_set(int64_t pixel) const;
  void find_tap_sets();
  int row_of(const std::string& set) const;
  int64_t offset_of(int64_t pixel) const;
  Kind kind_of(int64_t first, int64_t pixels) const;
  bool has_row_groups() const;
  std::vector<PixelGroup> groups_of(int64_t first, int64_t pixels) const;
  int64_t padding_offset() const;
  int64_t reach() const;
  void choose_chunks(int threads);
  bool is_matrix() const;
  bool rows_adjoin() const;
  bool slices_adjoin() const;

  ConvSpec spec_;
  Isa isa_;
  int vectors_ = 1;
  int64_t width_ = 0, panels_ = 0, most_pixels_ = 0;
  bool matrix_registers_ = false;
  int matrix_steps_ = 0;        // TileSpec::matrix_steps
  int64_t spare_rows_ = 0;      // of 0 behind the rows of a panel, which matrix registers read
  int64_t images_of_tile_ = 1;  // in which a tile may read: the tiles of one image are those of all
  size_t panel_floats_ = 0, chunk_floats_ = 0;
  std::vector<Tile> tiles_;
  std::vector<std::pair<int64_t, int64_t>>
      reads_;  // where x is widened: the elements, first to last, that each tile reads
  std::vector<std::shared_ptr<const TileKernel>> kernels_;
  std::map<Kind, Functions> made_;  // by kind of tile
  std::vector<std::string> tap_sets_;
  int tiles_per_chunk_ = 1, panels_per_chunk_ = 1;
  bool pixels_outermost_ = true;
  bool reads_weights_ = false;  // whole panels are not packed
  bool brief_ = false;          // done sooner than other workers could help
};

}  // namespace cairn
