#include "engines/cpu/element_jit.h"

#include <xbyak/xbyak.h>

#include <algorithm>
#include <string>

#include "engines/cpu/element_registers.h"
#include "engines/cpu/kernel_store.h"

namespace cairn {

namespace {

using Kind = MachineOp::Kind;

struct Code final : Xbyak::CodeGenerator, ElementKernel {
  // Arguments: rdi = inputs, rsi = outputs, rdx = count, later in bytes. rcx: bytes done; rax: scratch. The pointers of
  // the first streams are kept in the registers kPointers, those of the others are loaded from the tables at each use.
  Code(Isa isa, const ElementSpec& spec)
      : Xbyak::CodeGenerator(4096, Xbyak::AutoGrow), isa_(isa), ops_(record(spec, isa)),
        places_(place_values(ops_, isa)) {
    enter();
    set_up();
    emit_loop();
    leave();
    emit_data();
    readyRE();
    function_ = getCode<ElementFunction>();
  }

 private:
  using Register = Xbyak::Xmm;
  using Reg64 = Xbyak::Reg64;

  bool wide() const { return isa_ == Isa::avx512; }
  int bytes() const { return lanes(isa_) * 4; }
  Register vector(int i) const { return wide() ? static_cast<Register>(Xbyak::Zmm(i)) : Xbyak::Ymm(i); }
  Register scratch(int i) const { return vector(vector_registers(isa_) - 1 - i); }
  const ValuePlace& place(int value) const { return places_.values[static_cast<size_t>(value)]; }

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

  void add_stream(bool output, uint32_t index) {
    static const Reg64 kPointers[] = {r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
    const size_t count = streams_.size();
    streams_.push_back({output, static_cast<int>(index), count < std::size(kPointers) ? kPointers[count] : rax});
  }

  Xbyak::Address stream(bool output, uint32_t index) {
    const auto is_it = [&](const Stream& each) {
      return each.output == output && each.index == static_cast<int>(index);
    };
    const Stream& found = *std::find_if(streams_.begin(), streams_.end(), is_it);
    if (found.pointer == rax) mov(rax, ptr[(output ? rsi : rdi) + 8 * found.index]);
    return ptr[found.pointer + rcx];
  }

  void enter() {
    for (const MachineOp& op : ops_)
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
      const MachineOp& op = ops_[static_cast<size_t>(value)];
      const Register target = in_register(value) ? vector(place(value).index) : scratch(0);
      if (op.kind == Kind::single) {
        mov(rax, ptr[rdi + 8 * static_cast<int>(op.detail)]);
        vbroadcastss(target, ptr[rax]);
      } else if (op.detail == 0) {
        vxorps(target, target, target);
      } else {
        mov(eax, op.detail);
        vmovd(Register(scratch(0).getIdx()), eax);
        vbroadcastss(target, Register(scratch(0).getIdx()));
      }
      if (!in_register(value)) vmovups(address(value), target);
    }
  }

  void emit_loop() {
    Xbyak::Label loop, tail, done;
    xor_(ecx, ecx);
    shl(rdx, 2);
    L(loop);
    lea(rax, ptr[rcx + bytes()]);
    cmp(rax, rdx);
    ja(tail, T_NEAR);
    for (size_t i = 0; i < ops_.size(); ++i) emit(static_cast<int>(i), false);
    add(rcx, bytes());
    jmp(loop, T_NEAR);
    L(tail);
    sub(rdx, rcx);
    jz(done, T_NEAR);
    prepare_tail();
    for (size_t i = 0; i < ops_.size(); ++i) emit(static_cast<int>(i), true);
    L(done);
  }

  // The mask lives in k1 (AVX-512), or in the frame (AVX2). rdx: bytes left.
  void prepare_tail() {
    if (wide()) {
      shr(edx, 2);
      mov(eax, -1);
      bzhi(eax, eax, edx);
      kmovw(k1, eax);
    } else {
      lea(rax, ptr[rip + tails_]);
      sub(rax, rdx);
      vmovups(scratch(0), ptr[rax + 32]);
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

  void emit(int value, bool tail) {
    const MachineOp& op = ops_[static_cast<size_t>(value)];
    if (op.kind == Kind::none || op.is_fixed()) return;
    const auto [a, b, c] = op.sources;
    if (op.kind == Kind::store) return store(stream(true, op.detail), in(a, 0), tail);
    if (op.is_mask() && wide()) return emit_mask(op, Xbyak::Opmask(place(value).index));
    const Register to = in_register(value) ? vector(place(value).index) : scratch(0);
    switch (op.kind) {
      case Kind::input: load(to, stream(false, op.detail), tail); break;
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

  void emit_data() {
    align(64);
    L(pool_);
    for (uint32_t number : places_.pool)
      for (int lane = 0; lane < lanes(isa_); ++lane) dd(number);
    L(tails_);
    for (int lane = 0; lane < 16; ++lane) dd(lane < 8 ? ~0u : 0u);
  }

  Isa isa_;
  std::vector<MachineOp> ops_;
  ElementPlaces places_;
  std::vector<Stream> streams_;
  Xbyak::Label pool_, tails_;
};

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string key_of(Isa isa, const ElementSpec& spec) {
  std::string key;
  append(key, isa);
  for (bool single : spec.single) key.push_back(single ? '1' : '0');
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
  if (isa == Isa::none || !can_record(spec)) return nullptr;
  return store.get(key_of(isa, spec), [&] { return std::make_unique<Code>(isa, spec); });
}

}  // namespace cairn
