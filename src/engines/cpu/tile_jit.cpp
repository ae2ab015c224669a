#include "engines/cpu/tile_jit.h"

#include <xbyak/xbyak.h>

#include <algorithm>
#include <bit>
#include <string>

#include "engines/cpu/kernel_store.h"
#include "engines/cpu/plain_tile.h"
#include "support/error.h"

namespace cairn {

namespace {

constexpr int kUnroll = 4;  // steps of k per loop iteration
// Runs up to this length are emitted without a loop: longer ones when a step has little work, beside which a loop would show.
constexpr int kLongestStraight = 24, kLongestOfMuchWork = 8, kMuchWork = 8;

// Bytes of B that products of integers fetch ahead, across pages: they are four times as fast per byte as those of floats.
constexpr int kAhead = 2048;

struct Code final : Xbyak::CodeGenerator, TileKernel {
  // Arguments: rdi = a, rsi = b, rdx = c, rcx = bias, r8 = residual. r10, r11: current run; r9: scales of its block; eax, ebx:
  // counters.
  explicit Code(const TileSpec& spec) : Xbyak::CodeGenerator(4096, Xbyak::AutoGrow), spec_(spec) {
    vectors_ = (spec.columns + lanes(spec.isa) - 1) / lanes(spec.isa);
    tail_ = spec.columns % lanes(spec.isa);
    pixels_ = static_cast<int>(spec.pixel_bytes.size());
    int free = registers() - (pixels_ + 1) * vectors_;
    CHECK(free >= 1, "tile of {} x {}", pixels_, vectors_);
    broadcasts_ = std::min(needs_product() || has_table() ? free - 1 : free, 4);
    CHECK(broadcasts_ >= 1, "tile of {} x {}", pixels_, vectors_);
    push(rbx);
    if (has_table()) load_table();
    integers()               ? start_integers()
    : spec.narrow.rounds_sum ? for_accumulators([&](const Xbyak::Xmm& sum, auto&&) { clear(sum); })
                             : start_with_bias();
    if (spec.block_steps) start_blocks();
    if (spec.ahead_lines) lea(r9, ptr[rsi + static_cast<int>(spec.ahead_bytes)]);
    emit_rows();
    if (spec.block_steps) end_blocks();
    integers() ? finish_integers() : spec.narrow.acts() ? finish_narrow() : finish();
    pop(rbx);
    vzeroupper();
    ret();
    emit_numbers();
    readyRE();
    function_ = {getCode<TileFunction::Code>()};
  }

 private:
  bool integers() const { return is_integer(spec_.arithmetic); }
  bool needs_product() const { return integers() && !spec_.dot_products; }
  int registers() const { return spec_.isa == Isa::avx512 ? 32 : 16; }
  int vector_bytes() const { return lanes(spec_.isa) * 4; }
  PanelLayout layout() const {
    return {spec_.stored, 0, spec_.vectors * lanes(spec_.isa), spec_.block_steps, spec_.zeros};
  }
  int panel_bytes() const { return static_cast<int>(spec_.b_step_bytes ? spec_.b_step_bytes : layout().bytes_of(1)); }
  /// Nibbles are looked up among 16 floats.
  bool has_table() const { return spec_.stored == Stored::nibbles && spec_.isa == Isa::avx512; }
  Xbyak::Zmm table() const { return Xbyak::Zmm(registers() - 1); }
  Xbyak::Xmm reg(int i) const {
    return spec_.isa == Isa::avx512 ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i)) : Xbyak::Ymm(i);
  }
  Xbyak::Xmm accumulator(int pixel, int vector) const { return reg(pixel * vectors_ + vector); }
  Xbyak::Xmm panel(int vector) const { return reg(pixels_ * vectors_ + vector); }
  Xbyak::Xmm broadcast() { return reg((pixels_ + 1) * vectors_ + next_broadcast_++ % broadcasts_); }

  void start_with_bias() {
    for (int j = 0; j < vectors_; ++j) vmovups(accumulator(0, j), ptr[rcx + j * vector_bytes()]);
    for (int i = 1; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j) vmovaps(accumulator(i, j), accumulator(0, j));
  }

  void start_integers() {
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j)
        vmovups(accumulator(i, j), parameter(spec_.start_rows[static_cast<size_t>(i)], j));
  }
  Xbyak::Address parameter(int row, int vector) const {
    return ptr[rcx + row * spec_.vectors * vector_bytes() + vector * vector_bytes()];
  }

  Xbyak::Address kept(int pixel, int vector) const { return ptr[rsp + (pixel * vectors_ + vector) * vector_bytes()]; }
  template <class Each>
  void for_accumulators(Each&& each) const {
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j) each(accumulator(i, j), kept(i, j));
  }
  void clear(const Xbyak::Xmm& sum) {
    if (spec_.isa == Isa::avx512)
      vpxord(sum, sum, sum);
    else
      vxorps(sum, sum, sum);
  }

  // The stack holds the sum of the blocks so far, starting with the bias.
  void start_blocks() {
    push(rbp);
    mov(rbp, rsp);
    sub(rsp, pixels_ * vectors_ * vector_bytes());
    and_(rsp, -64);
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) {
      vmovups(at, sum);
      clear(sum);
    });
  }
  void end_block() {
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) {
      vaddps(sum, sum, at);
      vmovups(at, sum);
      clear(sum);
    });
  }
  void end_blocks() {
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) { vaddps(sum, sum, at); });
    mov(rsp, rbp);
    pop(rbp);
  }

  // Emits a loop over whole blocks, then the remainder.
  void emit_blocks(const TapRun& run) {
    const int blocks = (run.length - 1) / spec_.block_steps;
    if (blocks > 0) {
      Xbyak::Label block;
      mov(ebx, blocks);
      L(block);
      emit_steps(spec_.block_steps, run.pixels);
      end_block();
      dec(ebx);
      jnz(block, T_NEAR);
    }
    emit_steps(run.length - blocks * spec_.block_steps, run.pixels);
  }

  void load_table() { vmovups(table(), ptr[rip + table_at_]); }

  // One vector of the row `step` of B, as floats.
  void load_row(int j, int step) {
    const Xbyak::Xmm to = panel(j);
    const int at = step * panel_bytes(), floats = j * vector_bytes();
    switch (spec_.stored) {
      case Stored::floats: vmovups(to, ptr[r11 + at + floats]); break;
      case Stored::halves: vcvtph2ps(to, ptr[r11 + at + floats / 2]); break;
      case Stored::brains:
        vpmovzxwd(to, ptr[r11 + at + floats / 2]);
        vpslld(to, to, 16);
        break;
      case Stored::bytes:
        vpmovsxbd(to, ptr[r11 + at + floats / 4]);
        vcvtdq2ps(to, to);
        break;
      case Stored::nibbles: load_nibbles(to, ptr[r11 + floats], 4 * step); break;
    }
    if (spec_.zeros) vsubps(to, to, ptr[r9 + spec_.vectors * vector_bytes() + floats]);
    if (integers()) prefetcht0(ptr[r11 + at + floats + kAhead]);
  }

  void load_nibbles(const Xbyak::Xmm& to, const Xbyak::Address& from, int shift) {
    if (has_table()) {
      shift ? vpsrld(to, from, static_cast<uint8_t>(shift)) : vmovups(to, from);
      return vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(to.getIdx()), table());
    }
    vmovups(to, from);
    if (shift) vpsrld(to, to, static_cast<uint8_t>(shift));
    vandps(to, to, number(0xfU));
    vcvtdq2ps(to, to);
    if (!spec_.zeros) vsubps(to, to, number(8.f));
  }

  void emit_step(int step, uint32_t pixels) {
    for (int j = 0; j < vectors_; ++j) load_row(j, step);
    for (int i = 0; i < pixels_; ++i) {
      if (!(pixels >> i & 1)) continue;
      Xbyak::Xmm a = broadcast();
      vbroadcastss(a,
                   ptr[r10 + static_cast<int>(spec_.pixel_bytes[static_cast<size_t>(i)] + step * spec_.a_step_bytes)]);
      for (int j = 0; j < vectors_; ++j) multiply(accumulator(i, j), a, panel(j));
    }
  }

  void multiply(const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
    const auto encoding = spec_.isa == Isa::avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
    if (spec_.arithmetic == Arithmetic::pairs) return vdpbf16ps(sum, a, b);
    if (!integers()) return vfmadd231ps(sum, a, b);
    if (spec_.arithmetic == Arithmetic::bytes) return vpdpbusd(sum, a, b, encoding);
    if (spec_.dot_products) return vpdpwssd(sum, a, b, encoding);
    const Xbyak::Xmm product = reg((pixels_ + 1) * vectors_ + broadcasts_);
    vpmaddwd(product, a, b);
    vpaddd(sum, sum, product);
  }

  // Blocks whose sums are scaled.
  void emit_scaled_blocks(const TapRun& run) {
    const int blocks = run.length / spec_.block_steps;
    Xbyak::Label block;
    if (blocks > 1) {
      mov(ebx, blocks);
      L(block);
    }
    if (blocks) emit_scaled_block(spec_.block_steps, run.pixels);
    if (blocks > 1) {
      dec(ebx);
      jnz(block, T_NEAR);
    }
    if (run.length % spec_.block_steps) emit_scaled_block(run.length % spec_.block_steps, run.pixels);
  }

  void emit_scaled_block(int length, uint32_t pixels) {
    mov(r9, r11);
    add(r11, static_cast<int>(layout().header_bytes()));
    const int unroll = spec_.stored == Stored::nibbles ? 8 : kUnroll, loops = length / unroll;
    const auto steps = [&](int count) {
      for (int step = 0; step < count; ++step) emit_step(step, pixels);
      add(r10, static_cast<int>(count * spec_.a_step_bytes));
      add(r11, static_cast<int>(layout().bytes_of(count)));
    };
    Xbyak::Label loop;
    if (loops > 1) {
      mov(eax, loops);
      L(loop);
    }
    if (loops) steps(unroll);
    if (loops > 1) {
      dec(eax);
      jnz(loop, T_NEAR);
    }
    if (length % unroll) steps(length % unroll);
    for (int j = 0; j < vectors_; ++j) vmovups(panel(j), ptr[r9 + j * vector_bytes()]);
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j) {
        vfmadd213ps(accumulator(i, j), panel(j), kept(i, j));
        vmovups(kept(i, j), accumulator(i, j));
        clear(accumulator(i, j));
      }
  }

  void emit_run(const TapRun& run) {
    lea(r10, ptr[rdi + static_cast<int>(run.a_bytes)]);
    lea(r11, ptr[rsi + run.b_row * panel_bytes()]);
    if (layout().scaled())
      emit_scaled_blocks(run);
    else if (spec_.block_steps)
      emit_blocks(run);
    else
      emit_steps(run.length, run.pixels);
  }

  /// Of B, that an iteration of the loop fetches.
  int lines_ahead() const {
    if (!spec_.ahead_lines) return 0;
    const int loops = std::max(1, spec_.rows[0][0].length / kUnroll);
    return (spec_.ahead_lines + loops - 1) / loops;
  }

  // r10 and r11 advance by whole iterations of the loop.
  void emit_steps(int length, uint32_t pixels) {
    const int longest = std::popcount(pixels) * vectors_ >= kMuchWork ? kLongestOfMuchWork : kLongestStraight;
    int loops = length <= longest ? 0 : length / kUnroll;
    if (loops) {
      Xbyak::Label loop;
      mov(eax, loops);
      L(loop);
      const int fetched = lines_ahead();
      for (int step = 0; step < kUnroll; ++step) {
        emit_step(step, pixels);
        for (int line = fetched * step / kUnroll; line < fetched * (step + 1) / kUnroll; ++line)
          prefetcht1(ptr[r9 + line * 64]);
      }
      if (fetched) add(r9, fetched * 64);
      add(r10, static_cast<int>(kUnroll * spec_.a_step_bytes));
      add(r11, kUnroll * panel_bytes());
      dec(eax);
      jnz(loop, T_NEAR);
    }
    for (int step = 0; step < length - loops * kUnroll; ++step) emit_step(step, pixels);
  }

  void emit_rows() {
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

  bool is_tail(int vector) const { return tail_ != 0 && vector == vectors_ - 1; }

  void set_number(const Xbyak::Xmm& target, float value) {
    mov(eax, std::bit_cast<uint32_t>(value));
    vmovd(Xbyak::Xmm(target.getIdx()), eax);
    vbroadcastss(target, Xbyak::Xmm(target.getIdx()));
  }

  // After the sums, the panel and broadcast registers are free: two hold the activation's bounds, one the tail's mask.
  void finish() {
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
        auto offset = static_cast<int>(static_cast<int64_t>(i) * spec_.c_stride * 4 + j * vector_bytes());
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
        store(sum, static_cast<int>(static_cast<int64_t>(i) * spec_.c_stride * 4 + j * vector_bytes()), is_tail(j));
      }
  }

  // The mask is in k1 (AVX-512), or in a register that holds no accumulator, loaded through the stack (AVX2).
  void prepare_tail(const Xbyak::Xmm& spare) {
    if (spec_.isa == Isa::avx512) {
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

  void add_residual(const Xbyak::Xmm& sum, int offset, bool tail) {
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

  void store(const Xbyak::Xmm& sum, int offset, bool tail) {
    if (!tail)
      vmovups(ptr[rdx + offset], sum);
    else if (spec_.isa == Isa::avx512)
      vmovups(ptr[rdx + offset] | k1, Xbyak::Zmm(sum.getIdx()));
    else
      vmaskmovps(ptr[rdx + offset], Xbyak::Ymm(mask_), Xbyak::Ymm(sum.getIdx()));
  }

  // As finish(), but the bounds of a clip are in memory. Two registers are free for rounding.
  void finish_narrow() {
    const Form form = spec_.narrow.result, residual = spec_.narrow.residual;
    const Xbyak::Xmm low = panel(0), spare = reg(low.getIdx() + 1), other = reg(low.getIdx() + 2);
    if (spec_.activation.kind == Activation::Kind::relu) clear(low);
    if (tail_) prepare_tail(reg(registers() - 1));
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j) {
        const Xbyak::Xmm sum = accumulator(i, j);
        const int64_t at = static_cast<int64_t>(i) * spec_.c_stride + j * lanes(spec_.isa);
        if (spec_.narrow.rounds_sum) {
          round(sum, spare, other, form);
          vaddps(sum, sum, ptr[rcx + j * vector_bytes()]);
        }
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

  // Rounds floats to 16 bits and widens them again.
  void round(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, const Xbyak::Xmm& other, Form form) {
    const Xbyak::Xmm half = half_of(spare);
    if (form == Form::halves) {
      vcvtps2ph(half, sum, 0);
      return vcvtph2ps(sum, half);
    }
    if (spec_.brain_products) {
      vcvtneps2bf16(half, sum);
      vpmovzxwd(sum, half);
      return vpslld(sum, sum, 16);
    }
    round_bits(sum, spare, other);
    spec_.isa == Isa::avx512 ? vpandd(sum, spare, number(0xffff0000U)) : vandps(sum, spare, number(0xffff0000U));
  }

  // The bits of bf16 in the upper half of each lane of `to`.
  void round_bits(const Xbyak::Xmm& sum, const Xbyak::Xmm& to, const Xbyak::Xmm& other) {
    const bool wide = spec_.isa == Isa::avx512;
    vpsrld(to, sum, 16);
    wide ? vpandd(to, to, number(1U)) : vandps(to, to, number(1U));
    vpaddd(to, to, number(0x7fffU));
    vpaddd(to, to, sum);
    if (wide) {  // a NaN would be rounded to another number
      vcmpps(k2, sum, sum, 3);
      return vmovaps(Xbyak::Zmm(to.getIdx()) | k2, Xbyak::Zmm(sum.getIdx()));
    }
    vcmpps(other, sum, sum, 3);
    vblendvps(to, to, sum, other);
  }

  /// The register for half as many bytes.
  Xbyak::Xmm half_of(const Xbyak::Xmm& whole) const {
    return spec_.isa == Isa::avx512 ? static_cast<Xbyak::Xmm>(Xbyak::Ymm(whole.getIdx())) : Xbyak::Xmm(whole.getIdx());
  }

  // Elements as floats; nothing beyond the tail is read.
  void load_elements(const Xbyak::Xmm& to, const Xbyak::RegExp& at, Form form, bool tail) {
    const bool wide = spec_.isa == Isa::avx512;
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

  void store_elements(const Xbyak::RegExp& at, const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, const Xbyak::Xmm& other,
                      Form form, bool tail) {
    const bool wide = spec_.isa == Isa::avx512;
    if (form == Form::floats) {
      if (tail && !wide) return vmaskmovps(ptr[at], Xbyak::Ymm(mask_), Xbyak::Ymm(sum.getIdx()));
      return vmovups(tail ? ptr[at] | k1 : ptr[at], sum);
    }
    const Xbyak::Xmm half = half_of(spare), high(other.getIdx());
    if (form == Form::halves) {
      vcvtps2ph(half, sum, 0);
    } else if (spec_.brain_products) {
      vcvtneps2bf16(half, sum);
    } else {
      round_bits(sum, spare, other);
      vpsrld(spare, spare, 16);
      if (wide) {
        vpmovdw(half, Xbyak::Zmm(spare.getIdx()));
      } else {
        vextracti128(high, Xbyak::Ymm(spare.getIdx()), 1);
        vpackusdw(half, half, high);
      }
    }
    if (wide) return tail ? vmovdqu16(ptr[at] | k1, half) : vmovups(ptr[at], half);
    if (!tail) return vmovups(ptr[at], half);
    for (int lane = 0; lane < tail_; ++lane) vpextrw(ptr[at + 2 * lane], half, static_cast<uint8_t>(lane));
  }

  // The address of a vector of this number behind the code.
  Xbyak::Address number(uint32_t bits) {
    const auto found = std::find(numbers_.begin(), numbers_.end(), bits);
    const auto place = static_cast<int>(found - numbers_.begin());
    if (found == numbers_.end()) numbers_.push_back(bits);
    return ptr[rip + numbers_at_ + place * vector_bytes()];
  }
  Xbyak::Address number(float value) { return number(std::bit_cast<uint32_t>(value)); }
  void emit_numbers() {
    if (has_table()) {
      align(64);
      L(table_at_);
      for (int i = 0; i < 16; ++i) dd(std::bit_cast<uint32_t>(static_cast<float>(spec_.zeros ? i : i - 8)));
    }
    if (numbers_.empty()) return;
    align(64);
    L(numbers_at_);
    for (uint32_t bits : numbers_)
      for (int lane = 0; lane < lanes(spec_.isa); ++lane) dd(bits);
  }

  void clip(const Xbyak::Xmm& sum, float low, float high) {
    if (low != -IntegerEpilogue::kNone) vmaxps(sum, sum, number(low));
    if (high != IntegerEpilogue::kNone) vminps(sum, sum, number(high));
  }

  // After the sums, the panel and broadcast registers are free: the bias and two for steps. The mask of the tail is as in
  // finish().
  void finish_integers() {
    using Output = IntegerEpilogue::Output;
    const IntegerEpilogue& e = spec_.epilogue;
    const Xbyak::Xmm bias = panel(0), spare = reg(panel(0).getIdx() + 1), other = reg(panel(0).getIdx() + 2);
    if (tail_) prepare_tail(reg(registers() - 1));
    for (int j = 0; j < vectors_; ++j) {
      if (e.output != Output::sums) vmovups(bias, parameter(spec_.parameter_rows + 1, j));
      for (int i = 0; i < pixels_; ++i) {
        const Xbyak::Xmm sum = accumulator(i, j);
        const int64_t element = static_cast<int64_t>(i) * spec_.c_stride + j * lanes(spec_.isa);
        const auto at = static_cast<int>(element * e.output_bytes());
        if (e.output == Output::sums) {
          store(sum, at, is_tail(j));
          continue;
        }
        vcvtdq2ps(sum, sum);
        vfmadd132ps(sum, bias, parameter(spec_.parameter_rows, j));
        clip(sum, e.first_low, e.first_high);
        if (e.rounds) {
          spec_.isa == Isa::avx512 ? vrndscaleps(sum, sum, 8) : vroundps(sum, sum, 8);
          clip(sum, e.round_low, e.round_high);
          vmulps(sum, sum, number(e.round_scale));
        }
        if (e.later_bias) vaddps(sum, sum, parameter(spec_.parameter_rows + 2, j));
        if (e.residual != IntegerEpilogue::Residual::none) {
          load_residual(spare, static_cast<int>(element * e.residual_bytes()), is_tail(j));
          if (e.residual_scale != 1)
            vfmadd231ps(sum, spare, number(e.residual_scale));
          else
            vaddps(sum, sum, spare);
          if (e.residual_shift != 0) vaddps(sum, sum, number(e.residual_shift));
        }
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

  // The elements of the residual as floats. Nothing beyond the tail is read.
  void load_residual(const Xbyak::Xmm& to, int offset, bool tail) {
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
  void store_bytes(const Xbyak::Xmm& sum, const Xbyak::Xmm& spare, int offset, bool tail) {
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

  TileSpec spec_;
  std::vector<uint32_t> numbers_;
  Xbyak::Label numbers_at_, table_at_;
  int vectors_ = 0, tail_ = 0, pixels_ = 0, broadcasts_ = 0, next_broadcast_ = 0, mask_ = 0;
};

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_epilogue(std::string& key, const IntegerEpilogue& e) {
  append(key, e.output);
  append(key, e.rounds);
  append(key, e.later_bias);
  append(key, e.residual);
  append(key, e.zero_point);
  for (float number : {e.first_low, e.first_high, e.round_low, e.round_high, e.round_scale, e.residual_scale,
                       e.residual_shift, e.low, e.high})
    append(key, number);
}

std::string key_of(const TileSpec& spec) {
  std::string key;
  append(key, spec.isa);
  append(key, spec.vectors);
  append(key, spec.columns);
  append(key, spec.a_step_bytes);
  append(key, spec.a_row_bytes);
  append(key, spec.plane_rows);
  append(key, spec.a_plane_bytes);
  append(key, spec.b_row_rows);
  append(key, spec.b_step_bytes);
  append(key, spec.c_stride);
  append(key, spec.block_steps);
  append(key, spec.stored);
  append(key, spec.zeros);
  append(key, spec.residual);
  append(key, spec.narrow);
  append(key, spec.brain_products);
  append(key, spec.ahead_bytes);
  append(key, spec.ahead_lines);
  append(key, spec.activation.kind);
  append(key, spec.activation.low);
  append(key, spec.activation.high);
  append(key, spec.arithmetic);
  append(key, spec.dot_products);
  append(key, spec.parameter_rows);
  for (int row : spec.start_rows) append(key, row);
  append_epilogue(key, spec.epilogue);
  append(key, spec.pixel_bytes.size());
  for (int64_t bytes : spec.pixel_bytes) append(key, bytes);
  for (const auto& row : spec.rows) {
    append(key, row.size());
    for (const TapRun& run : row) {
      append(key, run.a_bytes);
      append(key, run.b_row);
      append(key, run.length);
      append(key, run.pixels);
    }
  }
  return key;
}

}  // namespace

int most_pixels(Isa isa, int vectors) {
  if (isa == Isa::avx512) return vectors == 1 ? 24 : vectors == 2 ? 14 : vectors == 3 ? 9 : 6;
  return vectors == 1 ? 12 : vectors == 2 ? 6 : 3;  // leaves two registers besides the panel
}

std::shared_ptr<const TileKernel> TileKernel::make(const TileSpec& spec) {
  if (spec.isa == Isa::none) return std::make_shared<PlainTile>(spec);
  static auto& store = *new KernelStore<TileKernel>;  // never destroyed: it must outlive every kernel
  return store.get(key_of(spec), [&] { return std::make_unique<Code>(spec); });
}

}  // namespace cairn
