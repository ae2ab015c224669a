// What generators of code share that load, round and store vectors of elements of any form.
#pragma once

#include <xbyak/xbyak.h>

#include <vector>

#include "engines/cpu/isa.h"
#include "engines/cpu/kernel_store.h"
#include "engines/cpu/narrow.h"

namespace cairn {

/// The upper halves of lanes: of AVX-512 as places for vpermw, of AVX2 as bytes of each half of a register for vpshufb, behind which
/// vpermq by kOuterQuarters joins them.
void emit_upper_halves(Xbyak::CodeGenerator& code, bool wide);
constexpr uint8_t kOuterQuarters = 0b1000;

class FormCode : public Xbyak::CodeGenerator {
 protected:
  /// `tail`: lanes of a vector that is not whole, or 0.
  FormCode(Isa isa, bool brain_products, int tail)
      : Xbyak::CodeGenerator(kUsualCodeBytes, Xbyak::AutoGrow), isa_(isa), brain_products_(brain_products),
        tail_(tail) {}

  int registers() const { return isa_ == Isa::avx512 ? 32 : 16; }
  int vector_bytes() const { return lanes(isa_) * 4; }
  Xbyak::Xmm reg(int i) const { return isa_ == Isa::avx512 ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i)) : Xbyak::Ymm(i); }
  void clear(const Xbyak::Xmm& sum);
  void set_number(const Xbyak::Xmm& target, float value);
  /// The address of a vector of this number behind the code.
  Xbyak::Address number(uint32_t bits);
  Xbyak::Address number(float value);
  /// Behind the code: the numbers that it reads.
  void emit_numbers();

  /// The mask of the tail: in k1 (AVX-512) or in `spare`.
  void prepare_tail(const Xbyak::Xmm& spare);
  void load_elements(const Xbyak::Xmm& to, const Xbyak::RegExp& at, Form form, bool tail);
  /// `spare` and `other` are overwritten.
  void store_elements(const Xbyak::RegExp& at, const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, const Xbyak::Xmm& other,
                      Form form, bool tail);
  void round(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, const Xbyak::Xmm& other, Form form);
  /// Keeps numbers that rounding to bf16 reads, as many as registers [first, end) hold: five loads of whole registers for each result take
  /// longer than the arithmetic. For AVX-512.
  void keep_numbers(int first, int end);

  const Isa isa_;
  const bool brain_products_;  // the processor has instructions for bf16
  const int tail_;
  int mask_ = 0;

 private:
  void round_bits(const Xbyak::Xmm& sum, const Xbyak::Xmm& to, const Xbyak::Xmm& other);
  Xbyak::Xmm half_of(const Xbyak::Xmm& whole) const;
  Xbyak::Address upper_halves();
  /// Calls emit with a register that holds the number, or its address.
  template <class Emit>
  void with_number(uint32_t bits, Emit emit) {
    for (const auto& [known, place] : kept_)
      if (known == bits) return emit(Xbyak::Zmm(place));
    emit(number(bits));
  }

  std::vector<uint32_t> numbers_;
  std::vector<std::pair<uint32_t, int>> kept_;  // and their registers
  int kept_halves_ = 0;                         // the register of upper_halves(), or 0
  Xbyak::Label numbers_at_, halves_at_;
  bool needs_halves_ = false;
};

}  // namespace cairn
