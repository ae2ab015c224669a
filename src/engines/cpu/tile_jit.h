// The generated micro-kernel: one tile of a convolution or matrix product, up to `rows` output pixels by one panel of
// channels. The displacements of pixels and taps are constants in the code, and a tap that is in the padding for a
// pixel is not emitted for it: strides, padding and tiles across image rows need no copies and no special cases.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "engines/cpu/isa.h"
#include "engines/cpu/narrow.h"

namespace cairn {

struct Activation {
  enum class Kind : uint8_t { none, relu, clip } kind = Kind::none;
  float low = 0, high = 0;  // clip
  friend bool operator==(const Activation&, const Activation&) = default;
};

/// Consecutive taps that are inside the image for the same pixels.
struct TapRun {
  int64_t a_bytes;  // from the start of the kernel row in A
  int b_row;        // first row of B in this kernel row
  int length;       // steps of k
  uint32_t pixels;  // bit i: the taps apply to pixel i
  friend bool operator==(const TapRun&, const TapRun&) = default;
};

/// What one 4-byte element of A and B holds and how two are multiplied.
enum class Arithmetic : uint8_t {
  floats,
  bytes,  // 4 steps of k: u8 of A by i8 of B, summed to i32; needs dot products of integers (VNNI)
  words,  // 2 steps of k: i16 by i16, summed to i32
  pairs,  // 2 steps of k: bf16 by bf16, summed to f32; needs dot products of bf16
};
constexpr bool is_integer(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::bytes || arithmetic == Arithmetic::words;
}

/// How floats of B lie in memory.
enum class Stored : uint8_t {
  floats,
  halves,   // f16
  brains,   // pairs of rows of bf16 to an element of 4 bytes, the first below
  bytes,    // i8 steps
  nibbles,  // 8 rows of u4 steps, less 8, to an element of 4 bytes
};

/// A panel of B. Bytes and nibbles stand in blocks of rows, each behind the size of a step, and with `zeros` behind the zero
/// points as well, of each column; nibbles are then not less 8.
struct PanelLayout {
  Stored stored = Stored::floats;
  int64_t rows = 0, width = 0, block = 0;
  bool zeros = false;

  bool scaled() const { return stored == Stored::bytes || stored == Stored::nibbles; }
  int64_t header_bytes() const { return scaled() ? (zeros ? 8 : 4) * width : 0; }
  int64_t bytes_of(int64_t count) const {  // rows of one block
    if (stored == Stored::nibbles) return (count + 7) / 8 * 4 * width;
    if (stored == Stored::brains) return (count + 1) / 2 * 4 * width;
    return count * width * (stored == Stored::bytes ? 1 : stored == Stored::floats ? 4 : 2);
  }
  int64_t bytes() const {
    if (!scaled()) return bytes_of(rows);
    return rows / block * (header_bytes() + bytes_of(block)) +
           (rows % block ? header_bytes() + bytes_of(rows % block) : 0);
  }
};

/// What is made of a sum of integers: y = sum * scale[channel] + bias[channel] and, in this order, the steps below.
struct IntegerEpilogue {
  static constexpr float kNone = std::numeric_limits<float>::infinity();
  enum class Output : uint8_t { sums, floats, bytes } output = Output::sums;
  float first_low = -kNone, first_high = kNone;  // clip
  bool rounds = false;                           // y = clip(round(y), low, high) * scale
  float round_low = 0, round_high = 0, round_scale = 1;
  bool later_bias = false;  // y += a second bias of each channel
  enum class Residual : uint8_t { none, floats, u8, i8 } residual = Residual::none;
  float residual_scale = 1, residual_shift = 0;  // y += residual * scale + shift
  float low = -kNone, high = kNone;              // clip, for bytes to their range without the zero point
  int32_t zero_point = 0;                        // bytes: round(y) + zero_point

  int64_t output_bytes() const { return output == Output::bytes ? 1 : 4; }
  int64_t residual_bytes() const { return residual == Residual::u8 || residual == Residual::i8 ? 1 : 4; }
  friend bool operator==(const IntegerEpilogue&, const IntegerEpilogue&) = default;
};

/// Adjacent pixels of a tile whose sums are rows of one matrix register, of 16 rows.
struct PixelGroup {
  int first = 0, count = 0;  // pixels
  int shift = 0;             // the row of the first
  int reads = 0;  // 1: the register's 16 rows, spec.a_pixel_bytes apart, are in memory wherever all pixels' taps are
  friend bool operator==(const PixelGroup&, const PixelGroup&) = default;
};

struct TileSpec {
  Isa isa = Isa::none;
  Arithmetic arithmetic = Arithmetic::floats;
  bool dot_products = false;              // integers: with VNNI
  int vectors = 1;                        // panel width in registers
  int columns = 0;                        // valid channels of the panel: fewer than vectors * lanes in the tail
  std::vector<int64_t> pixel_bytes;       // displacement of each pixel in A
  std::vector<std::vector<TapRun>> rows;  // per kernel row
  int64_t a_step_bytes = 4;               // between the steps of a run in A; larger when A is transposed
  int64_t a_row_bytes = 0;                // between kernel rows in A
  int plane_rows = 0;                     // kernel rows in a plane of a kernel with depth; 0: all
  int64_t a_plane_bytes = 0;              // between these planes in A
  int b_row_rows = 0;                     // between kernel rows in B, in rows
  int64_t b_step_bytes = 0;               // between rows in B; 0: one panel width
  int block_steps = 0;                    // steps summed separately before adding to the total; 0: all in one sum
  Stored stored = Stored::floats;         // B; scaled blocks of a single run of taps have block_steps
  bool zeros = false;                     // as in PanelLayout
  int64_t c_stride = 0;                   // elements between pixels in C and in the residual
  bool residual = false;
  Activation activation;
  NarrowEpilogue narrow;
  bool brain_products = false;  // the processor has instructions for bf16
  // With matrix registers (AMX): one or two groups of all pixels, for bytes and pairs. Of bytes, 15 more rows of B must be readable behind
  // runs that are no whole 16 elements.
  std::vector<PixelGroup> groups;
  int64_t a_pixel_bytes = 0;  // between pixels in one row of the image
  int matrix_steps = 0;       // of k that registers of A and B have
  int ahead_lines = 0;        // floats: lines of memory that the code fetches meanwhile, for later tiles
  // Integers: the start value of pixel i is row start_rows[i] of the parameters; scale and bias are the rows from `rows` on.
  std::vector<int> start_rows;
  int parameter_rows = 0;
  IntegerEpilogue epilogue;
  friend bool operator==(const TileSpec&, const TileSpec&) = default;
};

/// Rows of a matrix register, and of B in one, of 4-byte elements.
inline constexpr int kMatrixRows = 16;

/// The most rows of a tile for which accumulators, a panel row and some broadcast pixels fit the registers.
int most_pixels(Isa isa, int vectors);

/// C[pixel, :columns] = activation(bias + sum A * B + residual). A and B may be unaligned; bias has a whole panel. For integers
/// `bias` is the panel's parameters: rows of start values, the scale, the bias and the later bias. From `ahead` on, memory is
/// fetched as the tile's specification says.
struct TileFunction {
  /// The last parameter is the specification for code that serves all tiles, else `ahead`.
  using Code = void (*)(const void* a, const void* b, void* c, const void* bias, const void* residual, const void*);
  Code code = nullptr;
  const TileSpec* spec = nullptr;

  explicit operator bool() const { return code != nullptr; }
  void operator()(const void* a, const void* b, void* c, const void* bias, const void* residual,
                  const void* ahead = nullptr) const {
    code(a, b, c, bias, residual, spec ? spec : ahead);
  }
};

/// Generated code, shared by all tiles of the process with an equal specification; for Isa::none a PlainTile.
class TileKernel {
 public:
  static std::shared_ptr<const TileKernel> make(const TileSpec& spec);
  virtual ~TileKernel() = default;
  TileFunction function() const { return function_; }

 protected:
  TileFunction function_;
};

}  // namespace cairn
