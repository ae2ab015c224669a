#include "engines/cpu/tile_jit.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engines/cpu/amx_tile.h"
#include "engines/cpu/kernel_store.h"
#include "engines/cpu/plain_tile.h"
#include "engines/cpu/tile_code.h"
#include "support/error.h"
#include "support/stop.h"

namespace cairn {

constexpr int64_t kEmitWork = 256;  // nanoseconds to write a step's code

namespace {

constexpr int kUnroll = 4;  // most steps of k per loop iteration
// Runs up to this length are emitted without a loop: longer ones when a step has little work, beside which a loop would show.
constexpr int kLongestStraight = 24, kLongestOfMuchWork = 8, kMuchWork = 8;

// Bytes of B that products of integers fetch ahead, across pages, since they are four times as fast per byte as those of floats, and those
// of stored weights, which come from memory: GPT-2's at 8 bits took 1.5 times as long without, 1.15 times with 2048 bytes.
constexpr int kAhead = 2048, kAheadOfStored = 4096;

struct VectorTile final : TileCode {
  // r9: what is fetched ahead, or scales of the current run's block; eax, ebx, r12d: counters.
  explicit VectorTile(const TileSpec& spec) : TileCode(spec) {
    int free = registers() - (pixels_ + 1) * vectors_;
    CHECK(free >= 1, "tile of {} x {}", pixels_, vectors_);
    broadcasts_ = std::min(needs_product() || has_table() || has_pairs() ? free - 1 : free, 4);
    CHECK(broadcasts_ >= 1, "tile of {} x {}", pixels_, vectors_);
    push(rbx);
    if (has_table()) load_table();
    if (has_pairs()) vmovups(table(), number(0xffff0000U));
    bias_last_ = !integers();
    integers() ? start_integers() : for_accumulators([&](const Xbyak::Xmm& sum, auto&&) { clear(sum); });
    if (spec.block_steps) start_blocks();
    emit_rows();
    if (spec.block_steps) end_blocks();
    emit_epilogue();
    pop(rbx);
    vzeroupper();
    ret();
    emit_numbers();
    if (has_table()) emit_table();
    readyRE();
    function_ = {getCode<TileFunction::Code>()};
  }

 private:
  bool needs_product() const { return integers() && !spec_.dot_products; }
  /// Nibbles are looked up among 16 floats.
  bool has_table() const { return spec_.stored == Stored::nibbles && spec_.isa == Isa::avx512; }
  /// Of elements with two rows of bf16, the upper one is masked.
  bool has_pairs() const { return spec_.stored == Stored::brains; }
  Xbyak::Xmm table() const { return reg(registers() - 1); }
  Xbyak::Xmm broadcast() { return reg((pixels_ + 1) * vectors_ + next_broadcast_++ % broadcasts_); }

  void start_integers() {
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j)
        vmovups(accumulator(i, j), parameter(spec_.start_rows[static_cast<size_t>(i)], j));
  }

  int kept_bytes() const { return pixels_ * vectors_ * vector_bytes(); }
  Xbyak::Address kept(int pixel, int vector, int further = 0) const {
    return ptr[rsp + (pixel * vectors_ + vector) * vector_bytes() + further];
  }
  template <class Each>
  void for_accumulators(Each&& each, int further = 0) const {
    for (int i = 0; i < pixels_; ++i)
      for (int j = 0; j < vectors_; ++j) each(accumulator(i, j), kept(i, j, further));
  }

  bool is_single_run() const { return spec_.rows.size() == 1 && spec_.rows[0].size() == 1; }

  // The stack holds the sum of the blocks so far, of a single run from the first block on, and behind it that of whole groups of blocks.
  void start_blocks() {
    has_groups_ = !layout().scaled() && std::ranges::any_of(spec_.rows, [&](auto& row) {
      return std::ranges::any_of(row,
                                 [&](const TapRun& run) { return run.length > kBlocksTogether * spec_.block_steps; });
    });
    push(rbp);
    push(r12);
    mov(rbp, rsp);
    sub(rsp, (has_groups_ ? 2 : 1) * kept_bytes());
    and_(rsp, -64);
    const auto keep = [&](const Xbyak::Xmm& sum, const Xbyak::Address& at) { vmovups(at, sum); };
    in_first_block_ = is_single_run() && !layout().scaled();
    if (!in_first_block_) for_accumulators(keep);
    if (has_groups_) for_accumulators(keep, kept_bytes());
  }
  void end_block() {
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) {
      if (!in_first_block_) vaddps(sum, sum, at);
      vmovups(at, sum);
      clear(sum);
    });
    in_first_block_ = false;
  }
  // Behind end_block(), while the accumulators are free.
  void end_group() {
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) { vmovups(sum, at); });
    for_accumulators(
        [&](const Xbyak::Xmm& sum, const Xbyak::Address& at) {
          vaddps(sum, sum, at);
          vmovups(at, sum);
          clear(sum);
        },
        kept_bytes());
    for_accumulators([&](const Xbyak::Xmm& sum, const Xbyak::Address& at) { vmovups(at, sum); });
  }
  void end_blocks() {
    const auto add = [&](const Xbyak::Xmm& sum, const Xbyak::Address& at) { vaddps(sum, sum, at); };
    if (!in_first_block_) for_accumulators(add);
    if (has_groups_) for_accumulators(add, kept_bytes());
    mov(rsp, rbp);
    pop(r12);
    pop(rbp);
  }

  // Emits a loop over whole blocks, then the remainder, of which a single run's is left in the accumulators. Rows may be in a loop, so
  // what is emitted for a run knows nothing of those before.
  void emit_blocks(const TapRun& run) {
    const int all = (run.length - 1) / spec_.block_steps;
    int blocks = all;
    if (in_first_block_ && blocks) emit_block(run), --blocks;
    if (blocks) {
      Xbyak::Label block;
      mov(r12d, blocks);
      L(block);
      emit_block(run);
      if (blocks >= kBlocksTogether) {
        Xbyak::Label within;
        test(r12d, kBlocksTogether - 1);
        jnz(within, T_NEAR);
        end_group();
        L(within);
      }
      dec(r12d);
      jnz(block, T_NEAR);
    }
    emit_steps(run.length - all * spec_.block_steps, run.pixels);
    if (!is_single_run()) end_block();
  }
  void emit_block(const TapRun& run) {
    const int left = spec_.block_steps - emit_steps(spec_.block_steps, run.pixels);
    if (left) {
      add(r10, static_cast<int>(left * spec_.a_step_bytes));
      add(r11, left * panel_bytes());
    }
    end_block();
  }

  void load_table() { vmovups(table(), ptr[rip + table_at_]); }
  void emit_table() {
    align(64);
    L(table_at_);
    for (int i = 0; i < 16; ++i) dd(std::bit_cast<uint32_t>(static_cast<float>(spec_.zeros ? i : i - 8)));
  }

  // One vector of the row `step` of B, as floats.
  void load_row(int j, int step) {
    const Xbyak::Xmm to = panel(j);
    const int at = step * panel_bytes(), floats = j * vector_bytes();
    switch (spec_.stored) {
      case Stored::floats: vmovups(to, ptr[r11 + at + floats]); break;
      case Stored::halves: vcvtph2ps(to, ptr[r11 + at + floats / 2]); break;
      case Stored::brains: load_brains(to, ptr[r11 + step / 2 * 2 * panel_bytes() + floats], step % 2 != 0); break;
      case Stored::bytes:
        vpmovsxbd(to, ptr[r11 + at + floats / 4]);
        vcvtdq2ps(to, to);
        break;
      case Stored::nibbles: load_nibbles(to, ptr[r11 + floats], 4 * step); break;
    }
    if (spec_.zeros) vsubps(to, to, ptr[r9 + spec_.vectors * vector_bytes() + floats]);
  }

  void load_brains(const Xbyak::Xmm& to, const Xbyak::Address& pair, bool upper) {
    if (spec_.isa == Isa::avx512) return upper ? vpandd(to, table(), pair) : vpslld(to, pair, 16);
    if (upper) return vandps(to, table(), pair);
    vmovups(to, pair);
    vpslld(to, to, 16);
  }

  /// Lines of B that begin with this step, further on.
  void fetch_ahead(int step) {
    if ((!integers() && spec_.stored == Stored::floats) || spec_.ahead_lines) return;
    const int ahead = integers() ? kAhead : kAheadOfStored;
    const auto end = [&](int steps) { return static_cast<int>((layout().bytes_of(8) * steps / 8 + 63) / 64); };
    for (int line = end(step); line < end(step + 1); ++line) prefetcht0(ptr[r11 + line * 64 + ahead]);
  }

  void load_nibbles(const Xbyak::Xmm& to, const Xbyak::Address& from, int shift) {
    if (has_table()) {
      shift ? vpsrld(to, from, static_cast<uint8_t>(shift)) : vmovups(to, from);
      return vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(table().getIdx()));
    }
    vmovups(to, from);
    if (shift) vpsrld(to, to, static_cast<uint8_t>(shift));
    vandps(to, to, number(0xfU));
    vcvtdq2ps(to, to);
    if (!spec_.zeros) vsubps(to, to, number(8.f));
  }

  void emit_step(int step, uint32_t pixels) {
    stop_point_after(kEmitWork);
    for (int j = 0; j < vectors_; ++j) load_row(j, step);
    fetch_ahead(step);
    for (int i = 0; i < pixels_; ++i) {
      if (!(pixels >> i & 1)) continue;
      const auto at = r10 + static_cast<int>(spec_.pixel_bytes[static_cast<size_t>(i)] + step * spec_.a_step_bytes);
      if (spreads_while_multiplying()) {
        multiply(accumulator(i, 0), panel(0), ptr_b[at]);
        continue;
      }
      Xbyak::Xmm a = broadcast();
      vbroadcastss(a, ptr[at]);
      for (int j = 0; j < vectors_; ++j) multiply(accumulator(i, j), a, panel(j));
    }
  }

  /// An element of A that one product alone takes is spread by that instruction: on an AMD EPYC (Zen 4) spreading it into a register
  /// takes 1.3 times as long as multiplying.
  bool spreads_while_multiplying() const {
    return vectors_ == 1 && spec_.isa == Isa::avx512 &&
           (spec_.arithmetic == Arithmetic::floats || spec_.arithmetic == Arithmetic::pairs);
  }

  void multiply(const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Operand& b) {
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

  void emit_run(const TapRun& run) override {
    lea(r10, ptr[rdi + static_cast<int>(run.a_bytes)]);
    lea(r11, ptr[rsi + run.b_row * panel_bytes()]);
    if (layout().scaled())
      emit_scaled_blocks(run);
    else if (spec_.block_steps)
      emit_blocks(run);
    else
      emit_steps(run.length, run.pixels);
  }

  /// Steps of k per loop iteration: beside many products the loop's own instructions do not show, and less code is made sooner.
  int unroll_of(uint32_t pixels) const {
    const int products = std::popcount(pixels) * vectors_;
    if (integers() || spec_.stored != Stored::floats || spec_.ahead_lines)
      return kUnroll;  // which fetch a part of a line a step
    return products >= 12 ? 2 : kUnroll;
  }

  /// That an iteration of the loop over k fetches: none where one each would be more than twice as many as are wanted.
  int lines_ahead() const {
    int loops = 1;
    for (const auto& row : spec_.rows)
      for (const TapRun& run : row) loops += run.length / unroll_of(run.pixels);
    return 2 * spec_.ahead_lines < loops ? 0 : (spec_.ahead_lines + loops - 1) / loops;
  }

  // r10 and r11 advance by whole iterations of the loop, whose steps are the result.
  int emit_steps(int length, uint32_t pixels) {
    const int longest = std::popcount(pixels) * vectors_ >= kMuchWork ? kLongestOfMuchWork : kLongestStraight;
    const int unroll = unroll_of(pixels);
    int loops = length <= longest ? 0 : length / unroll;
    if (loops) {
      Xbyak::Label loop;
      mov(eax, loops);
      L(loop);
      const int fetched = lines_ahead();
      for (int step = 0; step < unroll; ++step) {
        emit_step(step, pixels);
        for (int line = fetched * step / unroll; line < fetched * (step + 1) / unroll; ++line)
          prefetcht1(ptr[r9 + line * 64]);
      }
      if (fetched) add(r9, fetched * 64);
      add(r10, static_cast<int>(unroll * spec_.a_step_bytes));
      add(r11, unroll * panel_bytes());
      dec(eax);
      jnz(loop, T_NEAR);
    }
    for (int step = 0; step < length - loops * unroll; ++step) emit_step(step, pixels);
    return loops * unroll;
  }

  Xbyak::Label table_at_;
  int next_broadcast_ = 0;
  bool in_first_block_ = false;  // of which no sum is on the stack yet
  bool has_groups_ = false;
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
  append(key, spec.ahead_lines);
  append(key, spec.matrix_steps);
  append(key, spec.activation.kind);
  append(key, spec.activation.low);
  append(key, spec.activation.high);
  append(key, spec.arithmetic);
  append(key, spec.dot_products);
  append(key, spec.parameter_rows);
  append(key, spec.a_pixel_bytes);
  for (const PixelGroup& group : spec.groups) append(key, group);
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
  return store.get(key_of(spec), [&]() -> std::unique_ptr<TileCode> {
    if (!spec.groups.empty()) return make_amx_tile(spec);
    return std::make_unique<VectorTile>(spec);
  });
}

}  // namespace cairn
