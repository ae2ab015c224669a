#include "engines/cpu/form_code.h"

#include <algorithm>
#include <bit>

namespace cairn {

namespace {

constexpr uint32_t kNansOfSource = 0x22;  // of vfixupimmps: all else stays as it is

}  // namespace

void emit_upper_halves(Xbyak::CodeGenerator& code, bool wide) {
  for (uint32_t pair = 0; wide && pair < 16; ++pair) code.dd((4 * pair + 3) << 16 | (4 * pair + 1));
  for (int half = 0; !wide && half < 2; ++half)
    for (uint32_t bytes : {0x07060302U, 0x0f0e0b0aU, 0x80808080U, 0x80808080U}) code.dd(bytes);
}

void FormCode::clear(const Xbyak::Xmm& sum) {
  if (isa_ == Isa::avx512)
    vpxord(sum, sum, sum);
  else
    vxorps(sum, sum, sum);
}

void FormCode::set_number(const Xbyak::Xmm& target, float value) {
  mov(eax, std::bit_cast<uint32_t>(value));
  vmovd(Xbyak::Xmm(target.getIdx()), eax);
  vbroadcastss(target, Xbyak::Xmm(target.getIdx()));
}

// The mask is in k1 (AVX-512), or in a register that holds no accumulator, loaded through the stack (AVX2).
void FormCode::prepare_tail(const Xbyak::Xmm& spare) {
  if (isa_ == Isa::avx512) {
    mov(eax, (1 << tail_) - 1);
    kmovw(k1, eax);
    return;
  }
  mask_ = spare.getIdx();
  sub(rsp, 40);
  for (int lane = 0; lane < 8; ++lane) mov(dword[rsp + lane * 4], lane < tail_ ? -1 : 0);
  vmovups(Xbyak::Ymm(mask_), ptr[rsp]);
  add(rsp, 40);
}

void FormCode::keep_numbers(int first, int end) {
  if (isa_ != Isa::avx512 || brain_products_ || first == end) return;
  vmovups(Xbyak::Zmm(first), upper_halves());
  kept_halves_ = first++;
  for (uint32_t bits : {0x7fffU, 0x8000U, kNansOfSource, 0x10000U}) {
    if (first == end) return;
    vmovups(Xbyak::Zmm(first), number(bits));
    kept_.emplace_back(bits, first++);
  }
}

// Rounds floats to 16 bits and widens them again.
void FormCode::round(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, const Xbyak::Xmm& other, Form form) {
  const Xbyak::Xmm half = half_of(spare);
  if (form == Form::halves) {
    vcvtps2ph(half, sum, 0);
    return vcvtph2ps(sum, half);
  }
  if (brain_products_) {
    vcvtneps2bf16(half, sum);
    vpmovzxwd(sum, half);
    return vpslld(sum, sum, 16);
  }
  round_bits(sum, spare, other);
  isa_ == Isa::avx512 ? vpandd(sum, spare, number(0xffff0000U)) : vandps(sum, spare, number(0xffff0000U));
}

// The bits of bf16 in the upper half of each lane of `to`. A NaN would be rounded to another number.
void FormCode::round_bits(const Xbyak::Xmm& sum, const Xbyak::Xmm& to, const Xbyak::Xmm& other) {
  if (isa_ == Isa::avx512) {
    with_number(0x10000U, [&](const auto& bit) { vptestmd(k2, sum, bit); });
    with_number(0x7fffU, [&](const auto& half) { vpaddd(to, sum, half); });
    with_number(0x8000U, [&](const auto& half) { vpaddd(Xbyak::Zmm(to.getIdx()) | k2, sum, half); });
    return with_number(kNansOfSource, [&](const auto& nans) { vfixupimmps(to, sum, nans, 0); });
  }
  vpsrld(to, sum, 16);
  vandps(to, to, number(1U));
  vpaddd(to, to, number(0x7fffU));
  vpaddd(to, to, sum);
  vcmpps(other, sum, sum, 3);
  vorps(to, to, other);
}

/// The register for half as many bytes.
Xbyak::Xmm FormCode::half_of(const Xbyak::Xmm& whole) const {
  return isa_ == Isa::avx512 ? static_cast<Xbyak::Xmm>(Xbyak::Ymm(whole.getIdx())) : Xbyak::Xmm(whole.getIdx());
}

// Elements as floats; nothing beyond the tail is read.
void FormCode::load_elements(const Xbyak::Xmm& to, const Xbyak::RegExp& at, Form form, bool tail) {
  const bool wide = isa_ == Isa::avx512;
  const Xbyak::Xmm low(to.getIdx());
  const Xbyak::Xmm masked = tail && wide ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(to.getIdx()) | k1 | T_z) : to;
  if (form == Form::floats) {
    if (tail && !wide) return vmaskmovps(to, Xbyak::Ymm(mask_), ptr[at]);
    return vmovups(masked, ptr[at]);
  }
  if (tail && !wide) {
    vpxor(low, low, low);
    for (int lane = 0; lane < tail_; ++lane) vpinsrw(low, low, ptr[at + 2 * lane], static_cast<uint8_t>(lane));
    form == Form::halves ? vcvtph2ps(to, low) : vpmovzxwd(to, low);
  } else {
    form == Form::halves ? vcvtph2ps(masked, ptr[at]) : vpmovzxwd(masked, ptr[at]);
  }
  if (form == Form::brains) vpslld(to, to, 16);
}

void FormCode::store_elements(const Xbyak::RegExp& at, const Xbyak::Xmm& sum, const Xbyak::Xmm& spare,
                              const Xbyak::Xmm& other, Form form, bool tail) {
  const bool wide = isa_ == Isa::avx512;
  if (form == Form::floats) {
    if (tail && !wide) return vmaskmovps(ptr[at], Xbyak::Ymm(mask_), Xbyak::Ymm(sum.getIdx()));
    return vmovups(tail ? ptr[at] | k1 : ptr[at], sum);
  }
  const Xbyak::Xmm half = half_of(spare);
  if (form == Form::halves) {
    vcvtps2ph(half, sum, 0);
  } else if (brain_products_) {
    vcvtneps2bf16(half, sum);
  } else {
    round_bits(sum, spare, other);
    if (wide) {
      if (!kept_halves_) vmovups(other, upper_halves());
      vpermw(spare, kept_halves_ ? Xbyak::Zmm(kept_halves_) : Xbyak::Zmm(other.getIdx()), spare);
    } else {
      vpshufb(spare, spare, upper_halves());
      vpermq(Xbyak::Ymm(spare.getIdx()), Xbyak::Ymm(spare.getIdx()), kOuterQuarters);
    }
  }
  if (wide) return tail ? vmovdqu16(ptr[at] | k1, half) : vmovups(ptr[at], half);
  if (!tail) return vmovups(ptr[at], half);
  for (int lane = 0; lane < tail_; ++lane) vpextrw(ptr[at + 2 * lane], half, static_cast<uint8_t>(lane));
}

// The address of a vector of this number behind the code.
Xbyak::Address FormCode::number(uint32_t bits) {
  const auto found = std::find(numbers_.begin(), numbers_.end(), bits);
  const auto place = static_cast<int>(found - numbers_.begin());
  if (found == numbers_.end()) numbers_.push_back(bits);
  return ptr[rip + numbers_at_ + place * vector_bytes()];
}

Xbyak::Address FormCode::number(float value) { return number(std::bit_cast<uint32_t>(value)); }

// The places of the upper halves of lanes among words, or (AVX2) among the bytes of each half of a register.
Xbyak::Address FormCode::upper_halves() {
  needs_halves_ = true;
  return ptr[rip + halves_at_];
}

void FormCode::emit_numbers() {
  align(64);
  if (needs_halves_) {
    L(halves_at_);
    emit_upper_halves(*this, isa_ == Isa::avx512);
  }
  if (numbers_.empty()) return;
  L(numbers_at_);
  for (uint32_t bits : numbers_)
    for (int lane = 0; lane < lanes(isa_); ++lane) dd(bits);
}

}  // namespace cairn
