#include "engines/cpu/element_jit.h"

#include <xbyak/xbyak.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <string>

#include "engines/cpu/element_registers.h"
#include "engines/cpu/form_code.h"
#include "engines/cpu/kernel_store.h"
#include "support/error.h"

namespace cairn {

namespace {

using Kind = MachineOp::Kind;

struct Code final : Xbyak::CodeGenerator, ElementKernel {
  // Arguments: rdi = inputs, rsi = outputs, rdx = count. rcx: the elements done; rax: scratch. The pointers of the first streams are
  // kept in the registers kPointers, those of the others are loaded from the tables at each use.
  Code(Isa isa, const ElementSpec& spec)
      : Xbyak::CodeGenerator(4096, Xbyak::AutoGrow), isa_(isa), inputs_(spec.inputs), outputs_(spec.outputs),
        one_(record(spec, isa)) {
    choose_vectors();
    enter();
    set_up();
    emit_loop();
    leave();
    emit_library_calls();
    emit_data();
    readyRE();
    function_ = getCode<ElementFunction>();
  }

 private:
  using Register = Xbyak::Xmm;
  using Reg64 = Xbyak::Reg64;

  // Operations of a long chain wait for each other, and processors look too few operations ahead to begin the next vector meanwhile.
  // So several vectors go side by side, where all that is computed stays in registers.
  void choose_vectors() {
    constexpr int64_t kLongChain = 24;
    const auto calls = [](const MachineOp& op) { return op.kind == Kind::library; };
    const bool is_long = std::count_if(one_.begin(), one_.end(), [](const MachineOp& op) {
                           return op.kind != Kind::none && !op.is_fixed();
                         }) >= kLongChain;
    for (vectors_ = is_long && std::none_of(one_.begin(), one_.end(), calls) ? kMostVectors : 1; vectors_ > 1;
         vectors_ /= 2) {
      all_ = side_by_side(one_, vectors_);
      places_ = place_values(all_, isa_);
      places_of_one_ = place_values(one_, isa_, all_, places_);
      if (places_.fits && places_of_one_.fits && places_of_one_.registers <= places_.registers) return;
    }
    all_ = one_;
    places_ = places_of_one_ = place_values(one_, isa_);
    CHECK(places_.masks_fit, "masks of one operation");
  }

  bool wide() const { return isa_ == Isa::avx512; }
  int bytes() const { return lanes(isa_) * 4; }
  Register vector(int i) const { return wide() ? static_cast<Register>(Xbyak::Zmm(i)) : Xbyak::Ymm(i); }
  Register scratch(int i) const { return vector(vector_registers(isa_) - 1 - i); }
  const ValuePlace& place(int value) const { return now_->values[static_cast<size_t>(value)]; }

  Xbyak::Address address(int value) const {
    const int offset = place(value).index * bytes();
    return place(value).kind == ValuePlace::Kind::frame ? ptr[rsp + offset] : ptr[rip + pool_ + offset];
  }
  bool in_register(int value) const { return place(value).kind == ValuePlace::Kind::vector; }
  /// The register of the value: its own, or scratch register `spare` after loading it.
  Register in(int value, int spare) {
    if (in_register(value)) return vector(place(value).index);
    vmovups(scratch(spare), address(value));
    return scratch(spare);
  }
  /// Calls emit with the value's register or address.
  template <class Emit>
  void with(int value, Emit emit) {
    if (in_register(value))
      emit(vector(place(value).index));
    else
      emit(address(value));
  }

  struct Stream {
    bool output;
    int index;
    Reg64 pointer;
  };

  Form form_of(bool output, uint32_t index) const {
    const auto& forms = output ? outputs_ : inputs_;
    return index < forms.size() ? forms[index] : Form::floats;
  }

  void add_stream(bool output, uint32_t index) {
    static const Reg64 kPointers[] = {r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
    const size_t count = streams_.size();
    streams_.push_back({output, static_cast<int>(index), count < std::size(kPointers) ? kPointers[count] : rax});
  }

  Xbyak::RegExp stream_at(bool output, uint32_t index, int vector) {
    const auto is_it = [&](const Stream& each) {
      return each.output == output && each.index == static_cast<int>(index);
    };
    const Stream& found = *std::find_if(streams_.begin(), streams_.end(), is_it);
    if (found.pointer == rax) mov(rax, ptr[(output ? rsi : rdi) + 8 * found.index]);
    const int bytes = static_cast<int>(bytes_of(form_of(output, index)));
    return found.pointer + rcx * bytes + vector * lanes(isa_) * bytes;
  }

  void enter() {
    for (const MachineOp& op : one_)
      if (op.kind == Kind::input || op.kind == Kind::store) add_stream(op.kind == Kind::store, op.detail);
    for (const Reg64& saved : {rbx, rbp, r12, r13, r14, r15}) push(saved);
    mov(rax, rsp);
    sub(rsp, frame() + 64);
    and_(rsp, -64);
    mov(ptr[rsp + frame() + 32], rax);  // behind the mask of the tail
    for (const Stream& each : streams_)
      if (each.pointer != rax) mov(each.pointer, ptr[(each.output ? rsi : rdi) + 8 * each.index]);
  }

  void leave() {
    mov(rsp, ptr[rsp + frame() + 32]);
    for (const Reg64& saved : {r15, r14, r13, r12, rbp, rbx}) pop(saved);
    vzeroupper();
    ret();
  }

  int frame() const { return places_.frame * bytes(); }

  void set_up() {
    for (int value : places_.set_up) {
      const MachineOp& op = all_[static_cast<size_t>(value)];
      const Register target = in_register(value) ? vector(place(value).index) : scratch(0);
      if (op.kind == Kind::single) {
        mov(rax, ptr[rdi + 8 * static_cast<int>(op.detail)]);
        vbroadcastss(target, ptr[rax]);
      } else if (op.detail == 0) {
        vxorps(target, target, target);
      } else {
        vbroadcastss(target, ptr[rip + numbers_ + 4 * static_cast<int>(set_up_.size())]);
        set_up_.push_back(op.detail);
      }
      if (!in_register(value)) vmovups(address(value), target);
    }
    keep_brains();
  }

  // Registers that are left hold numbers that rounding to bf16 reads.
  void keep_brains() {
    const auto rounds = [&](const MachineOp& op) {
      return op.kind == Kind::round_brain || (op.kind == Kind::store && form_of(true, op.detail) == Form::brains);
    };
    if (!wide() || brain_products_ || std::none_of(one_.begin(), one_.end(), rounds)) return;
    int next = 0;
    for (const ElementPlaces* places : {&places_, &places_of_one_})
      for (const ValuePlace& each : places->values)
        if (each.kind == ValuePlace::Kind::vector) next = std::max(next, each.index + 1);
    for (size_t i = 0; i < kept_brains_.size() && next < vector_registers(isa_) - 2; ++i, ++next) {
      vmovups(vector(next), i == kUpperHalves ? ptr[rip + upper_halves_] : brains(static_cast<int>(i)));
      kept_brains_[i] = next;
    }
  }
  template <class Emit>
  void with_brains(size_t i, Emit emit) {
    kept_brains_[i] ? emit(Xbyak::Zmm(kept_brains_[i])) : emit(brains(static_cast<int>(i)));
  }

  void emit_loop() {
    Xbyak::Label tail, done;
    xor_(ecx, ecx);
    if (vectors_ > 1) emit_loop(all_, places_, vectors_);
    emit_loop(one_, places_of_one_, 1);
    sub(rdx, rcx);
    jz(done, T_NEAR);
    prepare_tail();
    emit(one_, true);
    L(done);
  }

  // While there are so many whole vectors.
  void emit_loop(const std::vector<MachineOp>& ops, const ElementPlaces& places, int vectors) {
    Xbyak::Label loop, end;
    now_ = &places;
    L(loop);
    lea(rax, ptr[rcx + vectors * lanes(isa_)]);
    cmp(rax, rdx);
    ja(end, T_NEAR);
    emit(ops, false);
    add(rcx, vectors * lanes(isa_));
    jmp(loop, T_NEAR);
    L(end);
  }

  // The mask lives in k1 (AVX-512), or in the frame (AVX2). rdx: the elements left.
  void prepare_tail() {
    if (wide()) {
      mov(eax, -1);
      bzhi(eax, eax, edx);
      kmovw(k1, eax);
    } else {
      lea(rax, ptr[rip + tails_ + 32]);
      neg(rdx);
      vmovups(scratch(0), ptr[rax + rdx * 4]);
      neg(rdx);
      vmovups(ptr[rsp + frame()], scratch(0));
    }
  }

  void load(const Register& target, const Xbyak::Address& from, bool tail) {
    if (!tail)
      vmovups(target, from);
    else if (wide())
      vmovups(Xbyak::Zmm(target.getIdx()) | k1 | T_z, from);
    else
      vmovups(scratch(1), ptr[rsp + frame()]), vmaskmovps(target, scratch(1), from);
  }

  void store(const Xbyak::Address& to, const Register& value, bool tail) {
    if (!tail)
      vmovups(to, value);
    else if (wide())
      vmovups(to | k1, value);
    else
      vmovups(scratch(1), ptr[rsp + frame()]), vmaskmovps(to, scratch(1), value);
  }

  // Widens elements of 16 or 8 bits. With AVX2 those of a tail come one by one.
  void load_narrow(const Register& target, const Xbyak::RegExp& at, Form form, bool tail) {
    const Xbyak::Xmm few(target.getIdx());
    if (tail && !wide())
      each_of_tail(few, [&](int i) {
        const auto place = static_cast<uint8_t>(i);
        is_byte(form) ? vpinsrb(few, few, ptr[at + i], place) : vpinsrw(few, few, ptr[at + 2 * i], place);
      });
    const auto widen = [&](const auto& to, const Xbyak::Operand& x) {
      switch (form) {
        case Form::halves: return vcvtph2ps(to, x);
        case Form::unsigned_bytes: return vpmovzxbd(to, x);
        case Form::signed_bytes: return vpmovsxbd(to, x);
        default: return vpmovzxwd(to, x);
      }
    };
    if (tail && wide())
      widen(Xbyak::Zmm(target.getIdx()) | k1 | T_z, ptr[at]);
    else if (tail)
      widen(target, few);
    else
      widen(target, ptr[at]);
    if (form == Form::brains) vpslld(target, target, 16);
    if (is_byte(form)) vcvtdq2ps(target, target);
  }

  // Stores numbers that are rounded already, or rounds to f16. `value` is a scratch register.
  void store_narrow(const Xbyak::RegExp& at, const Register& value, Form form, bool tail) {
    const Xbyak::Xmm few(value.getIdx());
    if (is_byte(form)) vcvtps2dq(value, value);
    if (wide()) {
      if (form == Form::brains) vpsrld(value, value, 16);
      const Xbyak::Address place = tail ? ptr[at] | k1 : ptr[at];
      if (is_byte(form)) return vpmovdb(place, value);
      return form == Form::halves ? vcvtps2ph(place, value, 0) : vpmovdw(place, value);
    }
    if (form == Form::halves) {
      vcvtps2ph(few, Xbyak::Ymm(value.getIdx()), 0);
    } else if (form == Form::brains) {
      vpshufb(value, value, ptr[rip + upper_halves_]);
      vpermq(Xbyak::Ymm(value.getIdx()), Xbyak::Ymm(value.getIdx()), kOuterQuarters);
    } else {
      const Xbyak::Xmm high(scratch(1).getIdx());
      vextracti128(high, Xbyak::Ymm(value.getIdx()), 1);
      vpackssdw(few, few, high);
    }
    if (form == Form::unsigned_bytes) vpackuswb(few, few, few);
    if (form == Form::signed_bytes) vpacksswb(few, few, few);
    if (!tail) return is_byte(form) ? vmovq(ptr[at], few) : vmovups(ptr[at], few);
    each_of_tail({}, [&](int i) {
      const auto place = static_cast<uint8_t>(i);
      is_byte(form) ? vpextrb(ptr[at + i], few, place) : vpextrw(ptr[at + 2 * i], few, place);
    });
  }

  // AVX2: emits the move of element i, done for those of the tail.
  template <class Move>
  void each_of_tail(std::optional<Xbyak::Xmm> cleared, Move move) {
    Xbyak::Label done;
    if (cleared) vpxor(*cleared, *cleared, *cleared);
    for (int i = 0; i < lanes(isa_) - 1; ++i) {
      cmp(edx, i + 1);
      jb(done, T_NEAR);
      move(i);
    }
    L(done);
  }

  void emit_store(const MachineOp& op, bool tail) {
    const int value = op.sources[0];
    const Form form = form_of(true, op.detail);
    const Xbyak::RegExp at = stream_at(true, op.detail, op.vector);
    if (form == Form::floats) return store(ptr[at], in(value, 0), tail);
    if (op.rounds && form == Form::brains) return store_brains(at, value, tail);
    with(value, [&](const auto& from) { vmovups(scratch(0), from); });
    store_narrow(at, scratch(0), form, tail);
  }

  void store_brains(const Xbyak::RegExp& at, int value, bool tail) {
    if (!wide()) return store_narrow(at, brain_bits(value, scratch(0)), Form::brains, tail);
    const Xbyak::Ymm half(scratch(0).getIdx());
    if (brain_products_) {
      vcvtneps2bf16(half, in(value, 0));
    } else {
      const Register bits = brain_bits(value, scratch(1));
      const int halves = kept_brains_[kUpperHalves];
      if (!halves) vmovups(scratch(0), ptr[rip + upper_halves_]);
      vpermw(scratch(0), halves ? vector(halves) : scratch(0), bits);
    }
    tail ? vmovdqu16(ptr[at] | k1, half) : vmovups(ptr[at], half);
  }

  void emit_load(const Register& to, uint32_t input, int vector_of, bool tail) {
    const Form form = form_of(false, input);
    const Xbyak::RegExp at = stream_at(false, input, vector_of);
    form == Form::floats ? load(to, ptr[at], tail) : load_narrow(to, at, form, tail);
  }

  void emit(const std::vector<MachineOp>& ops, bool tail) {
    for (size_t i = 0; i < ops.size(); ++i) emit(ops[i], static_cast<int>(i), tail);
  }

  void emit(const MachineOp& op, int value, bool tail) {
    if (op.kind == Kind::none || op.is_fixed()) return;
    const auto [a, b, c] = op.sources;
    if (op.kind == Kind::store) return emit_store(op, tail);
    if (op.is_mask() && wide()) return emit_mask(op, Xbyak::Opmask(place(value).index));
    const Register to = in_register(value) ? vector(place(value).index) : scratch(0);
    switch (op.kind) {
      case Kind::input: emit_load(to, op.detail, op.vector, tail); break;
      case Kind::library: emit_library(op, to); break;
      case Kind::round_half: emit_round_half(a, to); break;
      case Kind::round_brain: emit_round_brain(a, to); break;
      case Kind::fused_add:
      case Kind::fused_sub:
      case Kind::fused_sub_from: emit_fused(op, to); break;
      case Kind::choose: emit_choice(a, b, c, to); break;
      case Kind::sqrt:
      case Kind::round:
      case Kind::to_ints:
      case Kind::to_floats: emit_one(op, to); break;
      case Kind::shift_left: vpslld(to, in(a, 0), static_cast<uint8_t>(op.detail)); break;
      case Kind::shift_right: vpsrad(to, in(a, 0), static_cast<uint8_t>(op.detail)); break;
      default: emit_two(op, to);
    }
    if (!in_register(value)) vmovups(address(value), to);
  }

  void emit_mask(const MachineOp& op, const Xbyak::Opmask& to) {
    const int a = op.sources[0], b = op.sources[1];
    const auto mask = [&](int value) { return Xbyak::Opmask(place(value).index); };
    if (op.kind == Kind::either) return korw(to, mask(a), mask(b));
    if (op.kind == Kind::both) return kandw(to, mask(a), mask(b));
    const Register first = in(a, 0);
    with(b, [&](const auto& second) { vcmpps(to, first, second, static_cast<uint8_t>(op.detail)); });
  }

  void emit_one(const MachineOp& op, const Register& to) {
    with(op.sources[0], [&](const auto& from) {
      if (op.kind == Kind::sqrt) return vsqrtps(to, from);
      if (op.kind == Kind::to_ints) return vcvttps2dq(to, from);
      if (op.kind == Kind::to_floats) return vcvtdq2ps(to, from);
      if (wide()) return vrndscaleps(to, from, static_cast<uint8_t>(op.detail));
      vroundps(to, from, static_cast<uint8_t>(op.detail));
    });
  }

  void emit_round_half(int value, const Register& to) {
    const Register from = in(value, 0);
    if (wide()) {
      vcvtps2ph(Xbyak::Ymm(to.getIdx()), Xbyak::Zmm(from.getIdx()), 0);
      return vcvtph2ps(Xbyak::Zmm(to.getIdx()), Xbyak::Ymm(to.getIdx()));
    }
    vcvtps2ph(Xbyak::Xmm(to.getIdx()), Xbyak::Ymm(from.getIdx()), 0);
    vcvtph2ps(Xbyak::Ymm(to.getIdx()), Xbyak::Xmm(to.getIdx()));
  }

  void emit_round_brain(int value, const Register& to) {
    const Register bits = brain_bits(value, to);
    wide() ? vpandd(to, bits, brains(4)) : vandps(to, bits, brains(4));
  }

  // The upper halves of lanes rounded to nearest even, in `to` or in a scratch register; a NaN would be rounded to another number.
  Register brain_bits(int value, const Register& to) {
    const Register from = in(value, 0), sum = scratch(1);
    if (wide()) {
      with_brains(3, [&](const auto& bit) { vptestmd(k7, from, bit); });
      with_brains(0, [&](const auto& half) { vpaddd(sum, from, half); });
      with_brains(1, [&](const auto& half) { vpaddd(sum | k7, from, half); });
      with_brains(2, [&](const auto& nans) { vfixupimmps(sum, from, nans, 0); });
      return sum;
    }
    vpsrld(sum, from, 16);
    vandps(sum, sum, brains(5));
    vpaddd(sum, sum, brains(0));
    vpaddd(sum, sum, from);
    vcmpps(to, from, from, 3);
    vorps(to, sum, to);
    return to;
  }
  Xbyak::Address brains(int i) { return ptr[rip + brains_ + i * bytes()]; }

  void emit_two(const MachineOp& op, const Register& to) {
    const Register a = in(op.sources[0], 0);
    with(op.sources[1], [&](const auto& b) {
      switch (op.kind) {
        case Kind::add: return vaddps(to, a, b);
        case Kind::sub: return vsubps(to, a, b);
        case Kind::mul: return vmulps(to, a, b);
        case Kind::div: return vdivps(to, a, b);
        case Kind::smaller: return vminps(to, a, b);
        case Kind::larger: return vmaxps(to, a, b);
        case Kind::scale: return vscalefps(to, a, b);
        case Kind::compare: return vcmpps(to, a, b, static_cast<uint8_t>(op.detail));
        case Kind::either: return vorps(to, a, b);
        case Kind::both:
        case Kind::bits_and: return vandps(to, a, b);
        case Kind::bits_xor: return vxorps(to, a, b);
        case Kind::ints_add: return vpaddd(to, a, b);
        default: return vpsubd(to, a, b);
      }
    });
  }

  void emit_choice(int mask, int yes, int no, const Register& to) {
    const Register other = in(no, 0);
    if (wide()) {
      const Register masked = Xbyak::Zmm(to.getIdx()) | Xbyak::Opmask(place(mask).index);
      return with(yes, [&](const auto& chosen) { vblendmps(masked, other, chosen); });
    }
    const Register by = in(mask, 1);
    with(yes, [&](const auto& chosen) { vblendvps(to, other, chosen, by); });
  }

  // The instruction overwrites one of its three operands with the result; unless that register is already the result's,
  // the operand is copied there first.
  void emit_fused(const MachineOp& op, const Register& to) {
    int a = op.sources[0], b = op.sources[1];
    const int c = op.sources[2];
    const auto is_there = [&](int value) {
      return in_register(value) && vector(place(value).index).getIdx() == to.getIdx();
    };
    if (is_there(b)) std::swap(a, b);
    if (is_there(c) && !is_there(a)) {
      const Register first = in(a, 1);
      return with(b, [&](const auto& second) {
        if (op.kind == Kind::fused_add) return vfmadd231ps(to, first, second);
        if (op.kind == Kind::fused_sub) return vfmsub231ps(to, first, second);
        vfnmadd231ps(to, first, second);
      });
    }
    const Register second = in(b, 1);
    if (!is_there(a)) with(a, [&](const auto& first) { vmovups(to, first); });
    with(c, [&](const auto& third) {
      if (op.kind == Kind::fused_add) return vfmadd213ps(to, second, third);
      if (op.kind == Kind::fused_sub) return vfmsub213ps(to, second, third);
      vfnmadd213ps(to, second, third);
    });
  }

  // Lanes of the mask are rare: the call is behind the loop.
  void emit_library(const MachineOp& op, const Register& to) {
    LibraryCall& later = library_calls_.emplace_back(op, to);
    if (wide()) {
      const Xbyak::Opmask where(place(op.sources[2]).index);
      kortestw(where, where);
    } else {
      const Register where = in(op.sources[2], 0);
      vptest(where, where);
    }
    jnz(later.begin, T_NEAR);
    with(op.sources[0], [&](const auto& y) { vmovups(to, y); });
    L(later.end);
  }

  void emit_library_calls() {
    if (library_calls_.empty()) return;
    Xbyak::Label library;
    for (LibraryCall& each : library_calls_) {
      L(each.begin);
      with(each.op.sources[1], [&](const auto& x) { vmovups(scratch(1), x); });
      with(each.op.sources[0], [&](const auto& y) { vmovups(scratch(0), y); });
      mov(eax, each.op.detail);
      call(library);
      vmovups(each.to, scratch(0));
      jmp(each.end, T_NEAR);
    }
    L(library);
    emit_library_function();
  }

  static void of_library(uint32_t number, const float* x, float* y, int count) {
    const auto op = static_cast<ElementOp>(number);
    for (int i = 0; i < count; ++i)
      if (is_one_by_one(op, x[i])) y[i] = one_by_one(op, x[i], y[i]);
  }

  // eax: the operation; x and y are in the scratch registers 1 and 0, whose copies on the stack the function reads and changes. All
  // other registers are kept.
  void emit_library_function() {
    const int vectors = vector_registers(isa_), others = vectors * bytes(), masks = others + 64, size = masks + 64 + 56;
    const Reg64 changed[] = {rcx, rdx, rsi, rdi, r8, r9, r10, r11};
    const auto each = [&](auto&& move_vector, auto&& move_mask, auto&& move_other) {
      for (int i = 0; i < vectors; ++i) move_vector(vector(i), ptr[rsp + i * bytes()]);
      for (int i = 1; wide() && i < 8; ++i) move_mask(Xbyak::Opmask(i), ptr[rsp + masks + 8 * i]);
      for (size_t i = 0; i < std::size(changed); ++i)
        move_other(changed[i], ptr[rsp + others + 8 * static_cast<int>(i)]);
    };
    sub(rsp, size);  // with the address to return to, whole lines
    each([&](const auto& from, const auto& at) { vmovups(at, from); },
         [&](const auto& from, const auto& at) { kmovw(at, from); },
         [&](const auto& from, const auto& at) { mov(at, from); });
    mov(edi, eax);
    lea(rsi, ptr[rsp + (vectors - 2) * bytes()]);
    lea(rdx, ptr[rsp + (vectors - 1) * bytes()]);
    mov(ecx, lanes(isa_));
    mov(rax, reinterpret_cast<size_t>(&of_library));
    vzeroupper();
    call(rax);
    each([&](const auto& to, const auto& at) { vmovups(to, at); },
         [&](const auto& to, const auto& at) { kmovw(to, at); }, [&](const auto& to, const auto& at) { mov(to, at); });
    add(rsp, size);
    ret();
  }

  void emit_data() {
    align(64);
    L(pool_);
    for (uint32_t number : places_.pool)
      for (int lane = 0; lane < lanes(isa_); ++lane) dd(number);
    L(brains_);
    constexpr uint32_t kNansOfSource = 0x22;  // of vfixupimmps: all else stays as it is
    for (uint32_t number : {0x7fffU, 0x8000U, kNansOfSource, 0x10000U, 0xffff0000U, 1U})
      for (int lane = 0; lane < lanes(isa_); ++lane) dd(number);
    L(upper_halves_);
    emit_upper_halves(*this, wide());
    L(numbers_);
    for (uint32_t number : set_up_) dd(number);
    align(32);
    L(tails_);
    for (int lane = 0; lane < 16; ++lane) dd(lane < 8 ? ~0u : 0u);
  }

  struct LibraryCall {
    LibraryCall(const MachineOp& which, const Register& target) : op(which), to(target) {}
    MachineOp op;
    Register to;
    Xbyak::Label begin, end;
  };

  Isa isa_;
  const bool brain_products_ = wide() && machine_has_brain_products();
  std::vector<Form> inputs_, outputs_;
  static constexpr int kMostVectors = 4;
  int vectors_ = 1;                   // side by side
  std::vector<MachineOp> one_, all_;  // for one vector, and for these
  ElementPlaces places_of_one_, places_;
  const ElementPlaces* now_ = &places_;  // of what is emitted
  std::vector<Stream> streams_;
  static constexpr size_t kUpperHalves = 4;
  std::array<int, kUpperHalves + 1> kept_brains_{};  // the register of each, or 0
  std::deque<LibraryCall> library_calls_;
  std::vector<uint32_t> set_up_;  // constants that registers get before the loop
  Xbyak::Label pool_, brains_, upper_halves_, numbers_, tails_;
};

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string key_of(Isa isa, const ElementSpec& spec) {
  std::string key;
  append(key, isa);
  for (bool single : spec.single) key.push_back(single ? '1' : '0');
  for (const auto* forms : {&spec.inputs, &spec.outputs})
    for (Form form : *forms) append(key, form);
  for (const ElementInstruction& code : spec.code) {
    append(key, code.op);
    append(key, code.sources);
    append(key, code.low);
    append(key, code.high);
    append(key, code.output);
  }
  return key;
}

}  // namespace

std::shared_ptr<const ElementKernel> ElementKernel::make(Isa isa, const ElementSpec& spec) {
  static auto& store = *new KernelStore<ElementKernel>;  // never destroyed: it must outlive every kernel
  if (isa == Isa::none) return nullptr;
  return store.get(key_of(isa, spec), [&] { return std::make_unique<Code>(isa, spec); });
}

}  // namespace cairn
