// What the generators of tiles share: registers, the walk over kernel rows, and the code behind the sums (tile_epilogue.cpp).
#pragma once

#include "engines/cpu/form_code.h"
#include "engines/cpu/tile_jit.h"

namespace cairn {

/// Arguments of the code: rdi = a, rsi = b, rdx = c, rcx = bias, r8 = residual. r10, r11: current run; ebx: counter of rows.
class TileCode : public FormCode, public TileKernel {
 protected:
  explicit TileCode(const TileSpec& spec);

  virtual void emit_run(const TapRun& run) = 0;
  /// All runs; rdi and rsi advance by kernel rows.
  void emit_rows();
  /// From the sums of `pixels_` pixels in the accumulators, the tile's `first_` and following, to C.
  void emit_epilogue();
  /// Behind the code: the numbers that it reads.
  void emit_numbers();

  bool integers() const { return is_integer(spec_.arithmetic); }
  PanelLayout layout() const {
    return {spec_.stored, 0, spec_.vectors * lanes(spec_.isa), spec_.block_steps, spec_.zeros};
  }
  int panel_bytes() const {
    return static_cast<int>(spec_.b_step_bytes ? spec_.b_step_bytes : layout().bytes_of(8) / 8);
  }
  Xbyak::Xmm accumulator(int pixel, int vector) const { return reg(pixel * vectors_ + vector); }
  Xbyak::Xmm panel(int vector) const { return reg(pixels_ * vectors_ + vector); }
  Xbyak::Address parameter(int row, int vector) const {
    return ptr[rcx + row * spec_.vectors * vector_bytes() + vector * vector_bytes()];
  }

  const TileSpec spec_;
  int vectors_ = 0, pixels_ = 0, first_ = 0, broadcasts_ = 0;

  /// The bias is added behind the sum: a large one at its start would round every step to its own last place.
  bool bias_last_ = false;

 private:
  bool is_tail(int vector) const { return tail_ != 0 && vector == vectors_ - 1; }
  /// Of C and of the residual, in elements.
  int64_t element(int pixel, int vector) const { return (first_ + pixel) * spec_.c_stride + vector * lanes(spec_.isa); }
  void finish();
  void finish_narrow();
  void finish_integers();
  void scale_sum(int pixel, int vector, const Xbyak::Xmm& bias, const Xbyak::Xmm& spare);
  bool packs_bytes() const;
  void finish_packed_bytes();
  void clip(const Xbyak::Xmm& sum, float low, float high);
  void add_residual(const Xbyak::Xmm& sum, int offset, bool tail);
  void store(const Xbyak::Xmm& sum, int offset, bool tail);
  void load_residual(const Xbyak::Xmm& to, int offset, bool tail);
  void store_bytes(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, int offset, bool tail);

  Xbyak::Label order_at_;
  bool ordered_ = false;  // the order of packed bytes is in use
};

}  // namespace cairn
