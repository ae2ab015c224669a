#include "engines/cpu/amx_tile.h"

#include <algorithm>

#include "support/error.h"

namespace cairn {

namespace {

constexpr int kRowBytes = 64, kRegisterBytes = kMatrixRows * kRowBytes;
constexpr int kMostGroups = 2, kMostVectors = 2;
constexpr int kSumRowBytes = kMostVectors * kRowBytes;
constexpr int kSumBytes = kMostGroups * kMatrixRows * kSumRowBytes;
constexpr int kGatheredB = kSumBytes + kMostGroups * kRegisterBytes;
constexpr int kStackBytes = kGatheredB + kMatrixRows * kSumRowBytes;
constexpr int kMostStraight = 2;  // steps that are emitted without a loop
constexpr int kMostHeld = 12;     // pixels whose sums are in vector registers at a time

/// A step is up to 16 elements of k: 64 bytes of a pixel by 16 rows of B. Rows of A are loaded where they are if all pixels of a
/// group take part and lie equally far apart; otherwise, and for the rest of a run, they are gathered on the stack, with rows of 0
/// for pixels whose taps are outside the image. What stands in the rows beside a group's pixels adds to sums that nobody reads.
class AmxTile final : public TileCode {
  // Stack: sums (pixels by channels), then gathered rows of A and of B. r12: bytes between pixels of A, r13: between rows of B, r14: between rows
  // of sums, r15: of gathered rows; rax: counter and 0; k2: elements of the rest of a run.
 public:
  explicit AmxTile(const TileSpec& spec) : TileCode(spec) {
    const auto groups = static_cast<int>(spec.groups.size());
    CHECK(groups <= kMostGroups && vectors_ <= kMostVectors && spec.isa == Isa::avx512, "{} x {}", groups, vectors_);
    CHECK(spec.arithmetic == Arithmetic::bytes || spec.arithmetic == Arithmetic::pairs, "arithmetic");
    CHECK(spec.matrix_steps > 0 && spec.matrix_steps <= kMatrixRows, "{} steps", spec.matrix_steps);
    CHECK(spec.a_step_bytes == 4 && spec.stored == Stored::floats && !spec.block_steps, "operands");
    broadcasts_ = 4;
    enter();
    start_sums();
    emit_rows();
    for_sums([&](int group, int j) { tilestored(sum_register_at(group, j), sum(group, j)); });
    finish_pixels();
    leave();
    emit_numbers();
    readyRE();
    function_ = {getCode<TileFunction::Code>()};
  }

 private:
  static Xbyak::Tmm sum(int group, int j) { return Xbyak::Tmm(group * kMostVectors + j); }
  static Xbyak::Tmm a_of(int group) { return Xbyak::Tmm(4 + group); }
  static Xbyak::Tmm b_of(int j) { return Xbyak::Tmm(6 + j); }
  const PixelGroup& group_at(int i) const { return spec_.groups[static_cast<size_t>(i)]; }
  int elements() const { return spec_.matrix_steps; }
  int step_bytes() const { return 4 * elements(); }
  int groups() const { return static_cast<int>(spec_.groups.size()); }
  int64_t place(int pixel) const { return spec_.pixel_bytes[static_cast<size_t>(pixel)]; }
  template <class Each>
  void for_sums(Each&& each) const {
    for (int group = 0; group < groups(); ++group)
      for (int j = 0; j < vectors_; ++j) each(group, j);
  }
  static int row_of(const PixelGroup& group, int pixel) { return group.shift + pixel - group.first; }
  Xbyak::Address sum_register_at(int group, int j) const {
    return ptr[rsp + r14 + group * kMatrixRows * kSumRowBytes + j * kRowBytes];
  }
  Xbyak::Address gathered(int group, int row) const {
    return ptr[rsp + kSumBytes + group * kRegisterBytes + row * kRowBytes];
  }

  void enter() {
    for (const auto& each : {rbx, rbp, r12, r13, r14, r15}) push(each);
    mov(rbp, rsp);
    sub(rsp, kStackBytes);
    and_(rsp, -64);
    mov(r12, spec_.a_pixel_bytes);
    mov(r13d, panel_bytes());
    mov(r14d, kSumRowBytes);
    mov(r15d, kRowBytes);
    if (elements() < kMatrixRows) {  // nothing behind a step is read
      mov(eax, (1 << elements()) - 1);
      kmovw(k3, eax);
    }
  }
  void leave() {
    mov(rsp, rbp);
    for (const auto& each : {r15, r14, r13, r12, rbp, rbx}) pop(each);
    vzeroupper();
    ret();
  }

  /// The row of parameters with which the sums of all pixels of a group start, or none.
  int start_row(const PixelGroup& group) const {
    if (!integers()) return spec_.narrow.rounds_sum ? -1 : 0;
    const auto first = spec_.start_rows.begin() + group.first, last = first + group.count;
    return std::all_of(first, last, [&](int row) { return row == *first; }) ? *first : -1;
  }

  // A register whose rows are 0 bytes apart has the same in all of them.
  void start_sums() {
    xor_(eax, eax);
    for_sums([&](int group, int j) {
      const int row = start_row(group_at(group));
      if (row < 0) return tilezero(sum(group, j));
      tileloadd(sum(group, j), ptr[rcx + rax + row * spec_.vectors * vector_bytes() + j * vector_bytes()]);
    });
  }

  static uint32_t bits_of(const PixelGroup& group) {
    return static_cast<uint32_t>((uint64_t{1} << group.count) - 1) << group.first;
  }
  bool takes_part(int i, uint32_t pixels) const { return (bits_of(group_at(i)) & pixels) != 0; }
  bool reads_in_place(int i, uint32_t pixels) const {
    const PixelGroup& group = group_at(i);
    if (!group.reads || (bits_of(group) & ~pixels) != 0) return false;
    for (int pixel = group.first + 1; pixel < group.first + group.count; ++pixel)
      if (place(pixel) - place(pixel - 1) != spec_.a_pixel_bytes) return false;
    return true;
  }

  void emit_run(const TapRun& run) override {
    lea(r10, ptr[rdi + static_cast<int>(run.a_bytes)]);
    lea(r11, ptr[rsi + run.b_row * panel_bytes()]);
    const int steps = run.length / elements(), rest = run.length % elements();
    clear_rows(run, rest != 0);
    const int loops = steps <= kMostStraight ? 0 : steps;
    const int fetched = lines_ahead();
    if (loops) {
      Xbyak::Label loop;
      mov(eax, loops);
      L(loop);
      emit_step(0, run.pixels, 0);
      for (int line = 0; line < fetched; ++line) prefetcht1(ptr[r9 + line * 64]);
      if (fetched) add(r9, fetched * 64);
      add(r10, step_bytes());
      add(r11, elements() * panel_bytes());
      dec(eax);
      jnz(loop, T_NEAR);
    }
    for (int step = 0; step < steps - loops; ++step) emit_step(step, run.pixels, 0);
    if (rest) emit_step(steps - loops, run.pixels, rest);
  }

  /// Of the lines to fetch, with each turn of a loop over steps; none if these turns are few.
  int lines_ahead() const {
    int turns = 0;
    for (const auto& row : spec_.rows)
      for (const TapRun& run : row)
        if (run.length / elements() > kMostStraight) turns += run.length / elements();
    return 2 * spec_.ahead_lines < turns ? 0 : (spec_.ahead_lines + turns - 1) / std::max(1, turns);
  }

  // Gathered rows of pixels that take no part.
  void clear_rows(const TapRun& run, bool has_rest) {
    bool zero = false;
    for (int i = 0; i < groups(); ++i) {
      if (!takes_part(i, run.pixels) || (reads_in_place(i, run.pixels) && !has_rest)) continue;
      const PixelGroup& group = group_at(i);
      for (int pixel = group.first; pixel < group.first + group.count; ++pixel) {
        if (run.pixels >> pixel & 1) continue;
        if (!zero) vpxord(Xbyak::Zmm(31), Xbyak::Zmm(31), Xbyak::Zmm(31));
        zero = true;
        vmovups(gathered(i, row_of(group, pixel)), Xbyak::Zmm(31));
      }
    }
  }

  /// `rest`: elements of a step that is not whole.
  void emit_step(int step, uint32_t pixels, int rest) {
    if (rest) {
      mov(eax, (1 << rest) - 1);
      kmovw(k2, eax);
    }
    for (int i = 0; i < groups(); ++i)
      if (takes_part(i, pixels) && (rest || !reads_in_place(i, pixels))) gather(i, step, pixels, rest);
    if (rest && !integers()) gather_b(step, rest);
    for (int j = 0; j < vectors_; ++j) load_b(j, step, rest);
    for (int i = 0; i < groups(); ++i) {
      if (!takes_part(i, pixels)) continue;
      load_a(i, step, pixels, rest);
      for (int j = 0; j < vectors_; ++j) multiply(sum(i, j), a_of(i), b_of(j));
    }
  }

  void gather(int i, int step, uint32_t pixels, int rest) {
    const PixelGroup& group = group_at(i);
    for (int pixel = group.first, next = 0; pixel < group.first + group.count; ++pixel) {
      if (!(pixels >> pixel & 1)) continue;
      const Xbyak::Zmm row(next++ % 8);
      const auto from = ptr[r10 + static_cast<int>(place(pixel) + step * step_bytes())];
      if (rest || elements() < kMatrixRows)
        vmovups(row | (rest ? k2 : k3) | T_z, from);
      else
        vmovups(row, from);
      vmovups(gathered(i, row_of(group, pixel)), row);
    }
  }

  void load_a(int i, int step, uint32_t pixels, int rest) {
    if (rest || !reads_in_place(i, pixels)) return tileloadd(a_of(i), ptr[rsp + r15 + kSumBytes + i * kRegisterBytes]);
    const PixelGroup& group = group_at(i);
    const int64_t from = place(group.first) - group.shift * spec_.a_pixel_bytes;
    tileloadd(a_of(i), ptr[r10 + r12 + static_cast<int>(from + step * step_bytes())]);
  }

  // Rows behind a run, which meet zeros of A: they add nothing to sums of integers, but could be infinite.
  void gather_b(int step, int rest) {
    const Xbyak::Zmm zero(31);
    vpxord(zero, zero, zero);
    for (int row = 0; row < kMatrixRows; ++row)
      for (int j = 0; j < vectors_; ++j) {
        const Xbyak::Zmm held(row % 8);
        if (row < rest) vmovups(held, ptr[r11 + (step * elements() + row) * panel_bytes() + j * kRowBytes]);
        vmovups(ptr[rsp + kGatheredB + row * kSumRowBytes + j * kRowBytes], row < rest ? held : zero);
      }
  }

  void load_b(int j, int step, int rest) {
    if (rest && !integers()) return tileloadd(b_of(j), ptr[rsp + r14 + kGatheredB + j * kRowBytes]);
    tileloadd(b_of(j), ptr[r11 + r13 + step * elements() * panel_bytes() + j * kRowBytes]);
  }

  void multiply(const Xbyak::Tmm& to, const Xbyak::Tmm& a, const Xbyak::Tmm& b) {
    integers() ? tdpbusd(to, a, b) : tdpbf16ps(to, a, b);
  }

  // The sums come from the stack, some pixels at a time.
  void finish_pixels() {
    for (int i = 0; i < groups(); ++i) {
      const PixelGroup& group = group_at(i);
      const bool started = start_row(group) >= 0 || !integers();
      for (int at = 0; at < group.count; at += kMostHeld) {
        first_ = group.first + at, pixels_ = std::min(kMostHeld, group.count - at);
        for (int pixel = 0; pixel < pixels_; ++pixel)
          for (int j = 0; j < vectors_; ++j) load_sum(i, pixel, j, started);
        emit_epilogue();
      }
    }
  }
  void load_sum(int i, int pixel, int j, bool started) {
    const int row = i * kMatrixRows + row_of(group_at(i), first_ + pixel);
    const auto from = ptr[rsp + row * kSumRowBytes + j * kRowBytes];
    if (started) return vmovups(accumulator(pixel, j), from);
    vmovups(accumulator(pixel, j), parameter(spec_.start_rows[static_cast<size_t>(first_ + pixel)], j));
    vpaddd(accumulator(pixel, j), accumulator(pixel, j), from);
  }
};

}  // namespace

std::unique_ptr<TileCode> make_amx_tile(const TileSpec& spec) { return std::make_unique<AmxTile>(spec); }

}  // namespace cairn
