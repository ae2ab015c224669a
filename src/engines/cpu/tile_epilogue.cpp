// What stands behind the sums of a tile: bias, residual, activation, scales, rounding and stores.
#include <algorithm>
#include <bit>

#include "engines/cpu/tile_code.h"

namespace cairn {

TileCode::TileCode(const TileSpec& spec)
    : FormCode(spec.isa, spec.brain_products, spec.columns % lanes(spec.isa)), spec_(spec) {
  vectors_ = (spec.columns + lanes(spec.isa) - 1) / lanes(spec.isa);
  pixels_ = static_cast<int>(spec.pixel_bytes.size());
  bias_last_ = spec.narrow.rounds_sum;
}

void TileCode::emit_epilogue() { integers() ? finish_integers() : spec_.narrow.acts() ? finish_narrow() : finish(); }

void TileCode::emit_rows() {
  const size_t plane = spec_.plane_rows ? static_cast<size_t>(spec_.plane_rows) : spec_.rows.size();
  for (size_t y = 0; y < spec_.rows.size();) {
    const size_t end = y / plane * plane + plane;
    size_t equal = 1;
    while (y + equal < end && spec_.rows[y] == spec_.rows[y + equal]) ++equal;
    bool loop = equal > 1 && !spec_.rows[y].empty();
    int advance = loop ? 1 : static_cast<int>(equal);
    Xbyak::Label row;
    if (loop) {
      mov(ebx, static_cast<int>(equal));
      L(row);
    }
    for (const TapRun& run : spec_.rows[y]) emit_run(run);
    add(rdi, static_cast<int>(spec_.a_row_bytes * advance));
    add(rsi, spec_.b_row_rows * advance * panel_bytes());
    if (loop) {
      dec(ebx);
      jnz(row, T_NEAR);
    }
    y += equal;
    if (y == end && y < spec_.rows.size())
      add(rdi, static_cast<int>(spec_.a_plane_bytes - static_cast<int64_t>(plane) * spec_.a_row_bytes));
  }
}

// After the sums, the panel and broadcast registers are free: two hold the activation's bounds, one the tail's mask.
void TileCode::finish() {
  Xbyak::Xmm low = panel(0), high = broadcasts_ > 1 || vectors_ > 1 ? reg(panel(0).getIdx() + 1) : panel(0);
  bool clip = spec_.activation.kind == Activation::Kind::clip;
  if (spec_.activation.kind == Activation::Kind::relu)
    vxorps(Xbyak::Ymm(low.getIdx()), Xbyak::Ymm(low.getIdx()), Xbyak::Ymm(low.getIdx()));
  Xbyak::Xmm spare = reg(registers() - 1);
  if (tail_) prepare_tail(spare);
  if (clip) set_number(low, spec_.activation.low);
  for (int i = 0; i < pixels_; ++i) {
    for (int j = 0; j < vectors_; ++j) {
      Xbyak::Xmm sum = accumulator(i, j);
      auto offset = static_cast<int>(element(i, j) * 4);
      if (bias_last_) vaddps(sum, sum, ptr[rcx + j * vector_bytes()]);
      if (spec_.residual) add_residual(sum, offset, is_tail(j));
      if (spec_.activation.kind != Activation::Kind::none) vmaxps(sum, low, sum);  // keeps NaN: the second source
      if (clip) continue;
      store(sum, offset, is_tail(j));
    }
  }
  if (!clip) return;
  set_number(high, spec_.activation.high);
  for (int i = 0; i < pixels_; ++i)
    for (int j = 0; j < vectors_; ++j) {
      Xbyak::Xmm sum = accumulator(i, j);
      vminps(sum, high, sum);
      store(sum, static_cast<int>(element(i, j) * 4), is_tail(j));
    }
}

void TileCode::add_residual(const Xbyak::Xmm& sum, int offset, bool tail) {
  if (!tail) {
    vaddps(sum, sum, ptr[r8 + offset]);
  } else if (spec_.isa == Isa::avx512) {
    vaddps(Xbyak::Zmm(sum.getIdx()) | k1, Xbyak::Zmm(sum.getIdx()), ptr[r8 + offset]);
  } else {  // the mask is in the last broadcast register; the one before it is free as well
    Xbyak::Ymm loaded(mask_ - 1);
    vmaskmovps(loaded, Xbyak::Ymm(mask_), ptr[r8 + offset]);
    vaddps(sum, sum, loaded);
  }
}

void TileCode::store(const Xbyak::Xmm& sum, int offset, bool tail) {
  if (!tail)
    vmovups(ptr[rdx + offset], sum);
  else if (spec_.isa == Isa::avx512)
    vmovups(ptr[rdx + offset] | k1, Xbyak::Zmm(sum.getIdx()));
  else
    vmaskmovps(ptr[rdx + offset], Xbyak::Ymm(mask_), Xbyak::Ymm(sum.getIdx()));
}

// As finish(), but the bounds of a clip are in memory. Two registers are free for rounding.
void TileCode::finish_narrow() {
  const Form form = spec_.narrow.result, residual = spec_.narrow.residual;
  const Xbyak::Xmm low = panel(0), spare = reg(low.getIdx() + 1), other = reg(low.getIdx() + 2);
  if (spec_.activation.kind == Activation::Kind::relu) clear(low);
  if (tail_) prepare_tail(reg(registers() - 1));
  if (form == Form::brains) keep_numbers(other.getIdx() + 1, registers());
  for (int i = 0; i < pixels_; ++i)
    for (int j = 0; j < vectors_; ++j) {
      const Xbyak::Xmm sum = accumulator(i, j);
      const int64_t at = element(i, j);
      if (spec_.narrow.rounds_sum) round(sum, spare, other, form);
      if (bias_last_) vaddps(sum, sum, ptr[rcx + j * vector_bytes()]);
      if (spec_.residual) {
        if (spec_.narrow.rounds_biased) round(sum, spare, other, form);
        load_elements(spare, r8 + static_cast<int>(at * bytes_of(residual)), residual, is_tail(j));
        vaddps(sum, sum, spare);
      }
      if (spec_.activation.kind == Activation::Kind::relu) vmaxps(sum, low, sum);  // keeps NaN: the second source
      if (spec_.activation.kind == Activation::Kind::clip) {
        vmovups(spare, number(spec_.activation.low));
        vmaxps(sum, spare, sum);
        vmovups(spare, number(spec_.activation.high));
        vminps(sum, spare, sum);
      }
      store_elements(rdx + static_cast<int>(at * bytes_of(form)), sum, spare, other, form, is_tail(j));
    }
}

void TileCode::emit_numbers() {
  if (ordered_) {  // packed dwords stand by quarters of vectors, then by vector of the two pixels
    align(64);
    L(order_at_);
    for (uint32_t vector = 0; vector < 4; ++vector)
      for (uint32_t quarter = 0; quarter < 4; ++quarter) dd(4 * quarter + vector);
  }
  FormCode::emit_numbers();
}

void TileCode::clip(const Xbyak::Xmm& sum, float low, float high) {
  if (low != -IntegerEpilogue::kNone) vmaxps(sum, sum, number(low));
  if (high != IntegerEpilogue::kNone) vminps(sum, sum, number(high));
}

// After the sums, the panel and broadcast registers are free: the bias and two for steps. The mask of the tail is as in
// finish().
void TileCode::finish_integers() {
  using Output = IntegerEpilogue::Output;
  const IntegerEpilogue& e = spec_.epilogue;
  const Xbyak::Xmm bias = panel(0), spare = reg(panel(0).getIdx() + 1), other = reg(panel(0).getIdx() + 2);
  if (tail_) prepare_tail(reg(registers() - 1));
  if (packs_bytes()) return finish_packed_bytes();
  for (int j = 0; j < vectors_; ++j) {
    if (e.output != Output::sums) vmovups(bias, parameter(spec_.parameter_rows + 1, j));
    for (int i = 0; i < pixels_; ++i) {
      const Xbyak::Xmm sum = accumulator(i, j);
      const auto at = static_cast<int>(element(i, j) * e.output_bytes());
      if (e.output == Output::sums) {
        store(sum, at, is_tail(j));
        continue;
      }
      scale_sum(i, j, bias, spare);
      clip(sum, e.low, e.high);
      if (e.output == Output::floats) {
        store(sum, at, is_tail(j));
        continue;
      }
      vcvtps2dq(sum, sum);
      if (e.zero_point != 0) vpaddd(sum, sum, number(static_cast<uint32_t>(e.zero_point)));
      store_bytes(sum, other, at, is_tail(j));
    }
  }
}

// What a sum of integers becomes before it is clipped and rounded for the last time.
void TileCode::scale_sum(int pixel, int vector, const Xbyak::Xmm& bias, const Xbyak::Xmm& spare) {
  const IntegerEpilogue& e = spec_.epilogue;
  const Xbyak::Xmm sum = accumulator(pixel, vector);
  vcvtdq2ps(sum, sum);
  vfmadd132ps(sum, bias, parameter(spec_.parameter_rows, vector));
  clip(sum, e.first_low, e.first_high);
  if (e.rounds) {
    spec_.isa == Isa::avx512 ? vrndscaleps(sum, sum, 8) : vroundps(sum, sum, 8);
    clip(sum, e.round_low, e.round_high);
    vmulps(sum, sum, number(e.round_scale));
  }
  if (e.later_bias) vaddps(sum, sum, parameter(spec_.parameter_rows + 2, vector));
  if (e.residual == IntegerEpilogue::Residual::none) return;
  load_residual(spare, static_cast<int>(element(pixel, vector) * e.residual_bytes()), is_tail(vector));
  if (e.residual_scale != 1)
    vfmadd231ps(sum, spare, number(e.residual_scale));
  else
    vaddps(sum, sum, spare);
  if (e.residual_shift != 0) vaddps(sum, sum, number(e.residual_shift));
}

namespace {

struct ByteRange {
  float low, high;
};
/// That of the type of an epilogue's bytes, less the zero point. Types of which no number tells them apart serve as well.
ByteRange byte_range_of(const IntegerEpilogue& e) {
  const auto zero = static_cast<float>(e.zero_point);
  return e.low + zero < 0 ? ByteRange{-128 - zero, 127 - zero} : ByteRange{-zero, 255 - zero};
}

}  // namespace

/// Whether two vectors of each of two pixels become bytes together, by instructions that clip to the type's range.
bool TileCode::packs_bytes() const {
  return spec_.isa == Isa::avx512 && spec_.epilogue.output == IntegerEpilogue::Output::bytes && vectors_ == 2 &&
         !tail_ && panel(0).getIdx() + 6 < registers();
}

// Only the upper bound is needed before the conversion to integers, which gives the least one for floats that are too large; NaN
// stays NaN and becomes the lower bound, as in finish_integers().
void TileCode::finish_packed_bytes() {
  const IntegerEpilogue& e = spec_.epilogue;
  const auto at = [&](int i) { return Xbyak::Zmm(panel(0).getIdx() + i); };
  const Xbyak::Zmm spare = at(2), high = at(3), order = at(4), zero = at(5);
  const bool is_signed = e.low + static_cast<float>(e.zero_point) < 0;
  for (int j = 0; j < 2; ++j) vmovups(at(j), parameter(spec_.parameter_rows + 1, j));
  vmovups(high, number(e.high));
  vmovups(order, ptr[rip + order_at_]);
  ordered_ = true;
  const auto words = static_cast<uint32_t>(e.zero_point) & 0xffff;
  if (e.zero_point != 0) vmovups(zero, number(words << 16 | words));
  const auto pack_words = [&](int pixel) {
    for (int j = 0; j < 2; ++j) {
      const Xbyak::Zmm sum(accumulator(pixel, j).getIdx());
      scale_sum(pixel, j, at(j), spare);
      if (e.low != byte_range_of(e).low) vmaxps(sum, sum, number(e.low));
      vminps(sum, high, sum);
      vcvtps2dq(sum, sum);
    }
    const Xbyak::Zmm to(accumulator(pixel, 0).getIdx());
    vpackssdw(to, to, Xbyak::Zmm(accumulator(pixel, 1).getIdx()));
    if (e.zero_point != 0) vpaddsw(to, to, zero);
    return to;
  };
  for (int i = 0; i < pixels_; i += 2) {
    const bool alone = i + 1 == pixels_;
    const Xbyak::Zmm to = pack_words(i), other = alone ? to : pack_words(i + 1);
    is_signed ? vpacksswb(to, to, other) : vpackuswb(to, to, other);
    vpermd(to, order, to);
    vmovups(ptr[rdx + static_cast<int>(element(i, 0))], Xbyak::Ymm(to.getIdx()));
    if (!alone) vextracti64x4(ptr[rdx + static_cast<int>(element(i + 1, 0))], to, 1);
  }
}

// The elements of the residual as floats. Nothing beyond the tail is read.
void TileCode::load_residual(const Xbyak::Xmm& to, int offset, bool tail) {
  using Residual = IntegerEpilogue::Residual;
  const bool wide = spec_.isa == Isa::avx512, is_signed = spec_.epilogue.residual == Residual::i8;
  const Xbyak::Address from = ptr[r8 + offset];
  if (spec_.epilogue.residual == Residual::floats) {
    if (tail && !wide) return vmaskmovps(to, Xbyak::Ymm(mask_), from);
    return tail ? vmovups(Xbyak::Zmm(to.getIdx()) | k1 | T_z, from) : vmovups(to, from);
  }
  const Xbyak::Xmm low(to.getIdx());
  if (tail && wide) {
    const auto masked = Xbyak::Zmm(to.getIdx()) | k1 | T_z;
    is_signed ? vpmovsxbd(masked, from) : vpmovzxbd(masked, from);
  } else if (tail) {
    vpxor(low, low, low);
    for (int lane = 0; lane < tail_; ++lane) vpinsrb(low, low, ptr[r8 + offset + lane], static_cast<uint8_t>(lane));
    is_signed ? vpmovsxbd(to, low) : vpmovzxbd(to, low);
  } else {
    is_signed ? vpmovsxbd(to, from) : vpmovzxbd(to, from);
  }
  vcvtdq2ps(to, to);
}

// The lowest byte of each lane.
void TileCode::store_bytes(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, int offset, bool tail) {
  if (spec_.isa == Isa::avx512) {
    const Xbyak::Zmm from(sum.getIdx());
    return tail ? vpmovdb(ptr[rdx + offset] | k1, from) : vpmovdb(ptr[rdx + offset], from);
  }
  const Xbyak::Xmm low(sum.getIdx()), high(spare.getIdx());
  vandps(sum, sum, number(0xffU));
  vextracti128(high, Xbyak::Ymm(sum.getIdx()), 1);
  vpackusdw(low, low, high);
  vpackuswb(low, low, low);
  if (!tail) return vmovq(ptr[rdx + offset], low);
  for (int lane = 0; lane < tail_; ++lane) vpextrb(ptr[rdx + offset + lane], low, static_cast<uint8_t>(lane));
}

}  // namespace cairn
