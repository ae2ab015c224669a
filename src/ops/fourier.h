// Discrete Fourier transforms of any length in f64: lengths of small prime factors by a mixed-radix transform, others by Bluestein's
// algorithm (IEEE Trans. Audio Electroacoustics 18, 1970). The transform itself is in fourier_body.h.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "ir/op_def.h"

namespace cairn {

/// exp(-pi i k / n)
struct Root {
  double re, im;
  static Root of(size_t k, size_t n);
};

/// What the forward transform of one length needs; immutable.
struct Fourier {
  static constexpr size_t kLargestRadix = 13;

  explicit Fourier(size_t n);

  struct Level {
    size_t radix, part;          // the level joins `radix` transforms of `part` elements
    std::vector<Root> twiddles;  // exp(-2 pi i r k / (radix part)) for k < part, 0 < r < radix
    std::vector<Root> turns;     // exp(-2 pi i r q / radix) for q, r <= radix / 2, of an odd radix
  };
  size_t length;
  std::vector<Level> levels;
  std::unique_ptr<Fourier> convolution;  // of a length with a large prime factor
  std::vector<Root> chirp, spectrum;
  /// Complex numbers of scratch for a run.
  size_t scratch() const { return convolution ? 2 * convolution->length : 0; }
};

/// A row of src/ops/fourier.cpp over many lines: which numbers of a tensor are transformed.
enum class FourierKind : uint8_t { complex, inverse_complex, real, inverse_real };
struct FourierLines {
  FourierKind kind;
  size_t length;        // of the transform, 1 at least
  int64_t given, made;  // numbers or pairs along the axis of x and y
  int64_t count;        // lines
  int64_t inner = 1;    // pairs between the elements of a line
  std::vector<Root> halves =
      {};  // exp(-2 pi i k / length) of an even real transform, which is a complex one of half the length

  /// `length` is that of a real transform. Both tensors have elements.
  static FourierLines of(const OpDef& op, const AttributeView& attributes, const std::vector<int64_t>& x,
                         const std::vector<int64_t>& y, int64_t length);
  bool half() const { return !halves.empty(); }
  /// The length of the complex transform.
  size_t worked() const { return half() ? length / 2 : length; }
  /// The first number of a line in a tensor with `size` numbers along the axis, `each` floats a number.
  int64_t start(int64_t line, int64_t size, int64_t each) const {
    return (line / inner * size * inner + line % inner) * each;
  }
};

}  // namespace cairn
