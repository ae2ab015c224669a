#include "engines/cpu/element_recorder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <tuple>

namespace cairn {

namespace {

using Kind = MachineOp::Kind;

class Recorder {
 public:
  Recorder(const ElementSpec& spec, Isa isa) : spec_(spec), isa_(isa), values_(spec.single.size(), -1) {}
  Isa isa() const { return isa_; }
  const MachineOp& op(int id) const { return ops_[static_cast<size_t>(id)]; }

  std::vector<MachineOp> run() {
    for (const ElementInstruction& code : spec_.code) {
      const size_t start = ops_.size();
      known_.clear();
      const int result = apply(code);
      contract(start, result);
      values_.push_back(result);
      if (code.output < 0) continue;
      for (size_t i = 0; i < spec_.single.size(); ++i) operand(static_cast<int>(i));
      store(result, static_cast<uint32_t>(code.output));
    }
    drop_unused();
    return std::move(ops_);
  }

  int append(Kind kind, int a, int b = -1, int c = -1, uint32_t detail = 0) {
    auto& known = kind <= Kind::input ? fixed_ : known_;
    const auto [place, is_new] = known.try_emplace({kind, a, b, c, detail}, static_cast<int>(ops_.size()));
    if (is_new) ops_.push_back({kind, {a, b, c}, detail});
    return place->second;
  }

 private:
  int operand(int index) {
    const auto place = static_cast<size_t>(index);
    if (values_[place] < 0)
      values_[place] =
          append(spec_.single[place] ? Kind::single : Kind::input, -1, -1, -1, static_cast<uint32_t>(index));
    return values_[place];
  }

  // What rounds a value for its store alone becomes part of the store.
  void store(int value, uint32_t output) {
    const Form form = output < spec_.outputs.size() ? spec_.outputs[output] : Form::floats;
    const bool rounds =
        is_narrow(form) && op(value).kind == (form == Form::halves ? Kind::round_half : Kind::round_brain);
    ops_.push_back({Kind::store, {rounds ? op(value).sources[0] : value, -1, -1}, output, 0, rounds});
  }

  int apply(const ElementInstruction& code);
  void contract(size_t start, int result);
  void contract_product(size_t product);
  void drop_unused();

  using Key = std::tuple<Kind, int, int, int, uint32_t>;
  const ElementSpec& spec_;
  const Isa isa_;
  std::vector<int> values_;  // of operands and instructions
  std::vector<MachineOp> ops_;
  std::map<Key, int> fixed_, known_;  // for reuse: constants and inputs; operations of the current instruction
};

namespace recorded {

/// A recorded value, or a number that has not been recorded yet.
template <class Number>
struct Value {
  Recorder* recorder = nullptr;
  int id = -1;
  Number number = 0;

  Value() = default;
  Value(Number fixed) : number(fixed) {}  // NOLINT: numbers stand for vectors of them
  Value(Recorder* owner, int place) : recorder(owner), id(place) {}
  int in(Recorder* owner) const {
    return recorder ? id : owner->append(Kind::constant, -1, -1, -1, std::bit_cast<uint32_t>(number));
  }
};
using Floats = Value<float>;
using Ints = Value<int32_t>;
struct Mask {
  Recorder* recorder;
  int id;
};

template <class Result, class A, class B>
Result two(Kind kind, const A& a, const B& b, uint32_t detail = 0) {
  Recorder* recorder = a.recorder ? a.recorder : b.recorder;
  const int first = a.in(recorder), second = b.in(recorder);
  return {recorder, recorder->append(kind, first, second, -1, detail)};
}

Floats operator+(Floats a, Floats b) { return two<Floats>(Kind::add, a, b); }
Floats operator-(Floats a, Floats b) { return two<Floats>(Kind::sub, a, b); }
Floats operator*(Floats a, Floats b) { return two<Floats>(Kind::mul, a, b); }
Floats operator/(Floats a, Floats b) { return two<Floats>(Kind::div, a, b); }
Floats operator-(Floats a) {
  return a.recorder ? two<Floats>(Kind::bits_xor, a, Ints(std::numeric_limits<int32_t>::min())) : Floats(-a.number);
}
Ints operator+(Ints a, Ints b) { return two<Ints>(Kind::ints_add, a, b); }
Ints operator-(Ints a, Ints b) { return two<Ints>(Kind::ints_sub, a, b); }
Ints operator&(Ints a, Ints b) { return two<Ints>(Kind::bits_and, a, b); }
Ints operator^(Ints a, Ints b) { return two<Ints>(Kind::bits_xor, a, b); }
Ints operator<<(Ints a, int by) {
  return {a.recorder, a.recorder->append(Kind::shift_left, a.id, -1, -1, static_cast<uint32_t>(by))};
}
Ints operator>>(Ints a, int by) {
  return {a.recorder, a.recorder->append(Kind::shift_right, a.id, -1, -1, static_cast<uint32_t>(by))};
}

constexpr uint32_t kLess = 0x11, kGreater = 0x1e;
// Predicates of vcmpps that give false (not_equal: true) for NaN and raise no exception.
Mask operator==(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, 0x00); }
Mask operator!=(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, 0x04); }
Mask operator<(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, kLess); }
Mask operator<=(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, 0x12); }
Mask operator>(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, kGreater); }
Mask operator>=(Floats a, Floats b) { return two<Mask>(Kind::compare, a, b, 0x1d); }
Mask operator|(Mask a, Mask b) { return {a.recorder, a.recorder->append(Kind::either, a.id, b.id)}; }
Mask operator&(Mask a, Mask b) { return {a.recorder, a.recorder->append(Kind::both, a.id, b.id)}; }

Floats choose(Mask mask, Floats yes, Floats no) {
  const int first = yes.in(mask.recorder), second = no.in(mask.recorder);
  const MachineOp& by = mask.recorder->op(mask.id);
  if (by.kind == Kind::compare && by.sources[0] == second && by.sources[1] == first &&
      (by.detail == kLess || by.detail == kGreater))
    return {mask.recorder, mask.recorder->append(by.detail == kLess ? Kind::larger : Kind::smaller, first, second)};
  return {mask.recorder, mask.recorder->append(Kind::choose, mask.id, first, second)};
}
Floats spread(float value) { return value; }
Ints bits_of(Floats x) { return {x.recorder, x.id}; }
Floats floats_of(Ints bits) { return {bits.recorder, bits.id}; }
Ints minus(Ints a, Ints b) { return a - b; }
Ints to_ints(Floats x) { return {x.recorder, x.recorder->append(Kind::to_ints, x.id)}; }
Floats to_floats(Ints x) { return {x.recorder, x.recorder->append(Kind::to_floats, x.id)}; }
Floats by_library(Mask where, ElementOp op, Floats x, Floats y) {
  return {x.recorder, x.recorder->append(Kind::library, y.id, x.id, where.id, static_cast<uint32_t>(op))};
}
Floats times_power(Floats x, Floats n) {
  if (x.recorder->isa() == Isa::avx512) return two<Floats>(Kind::scale, x, n);
  const Ints whole = to_ints(n), half = whole >> 1;
  return x * floats_of((half + 127) << 23) * floats_of((whole - half + 127) << 23);
}
Floats root_of(Floats x) { return {x.recorder, x.recorder->append(Kind::sqrt, x.id)}; }
// Modes of vroundps that raise no exception.
Floats rounded(Floats x, uint32_t mode) { return {x.recorder, x.recorder->append(Kind::round, x.id, -1, -1, mode)}; }
Floats floor_of(Floats x) { return rounded(x, 9); }
Floats ceil_of(Floats x) { return rounded(x, 10); }
Floats round_of(Floats x) { return rounded(x, 12); }
Floats half_of(Floats x) { return {x.recorder, x.recorder->append(Kind::round_half, x.id)}; }
Floats brain_of(Floats x) { return {x.recorder, x.recorder->append(Kind::round_brain, x.id)}; }

constexpr bool kContracts = true;

#include "engines/cpu/vector_math.h"

}  // namespace recorded

int Recorder::apply(const ElementInstruction& code) {
  const auto source = [&](int i) {
    const int index = code.sources[i];
    if (index < static_cast<int>(spec_.single.size())) return recorded::Floats(this, operand(index));
    return recorded::Floats(this, values_[static_cast<size_t>(index)]);
  };
  return recorded::element(code.op, code.low, code.high, source(0), source(1), source(2)).id;
}

// Contracts products into fused multiply-adds, as the compiler does for the loops: a product whose only uses are terms
// of sums becomes part of these.
void Recorder::contract(size_t start, int result) {
  for (size_t i = start; i < ops_.size(); ++i)
    if (ops_[i].kind == Kind::mul && static_cast<int>(i) != result) contract_product(i);
}

void Recorder::contract_product(size_t product) {
  const int id = static_cast<int>(product);
  std::vector<MachineOp*> sums;
  for (size_t i = product + 1; i < ops_.size(); ++i) {
    MachineOp& op = ops_[i];
    const auto uses = std::count(std::begin(op.sources), std::end(op.sources), id);
    if (uses == 0) continue;
    if (uses > 1 || (op.kind != Kind::add && op.kind != Kind::sub)) return;
    sums.push_back(&op);
  }
  for (MachineOp* sum : sums) {
    const bool first = sum->sources[0] == id;
    const int other = sum->sources[first ? 1 : 0];
    sum->kind = sum->kind == Kind::add ? Kind::fused_add : first ? Kind::fused_sub : Kind::fused_sub_from;
    sum->sources[0] = ops_[product].sources[0], sum->sources[1] = ops_[product].sources[1], sum->sources[2] = other;
  }
}

void Recorder::drop_unused() {
  std::vector<bool> used(ops_.size());
  for (size_t i = ops_.size(); i-- > 0;) {
    if (ops_[i].kind != Kind::store && !used[i]) ops_[i] = {Kind::none, {-1, -1, -1}, 0};
    for (int source : ops_[i].sources)
      if (source >= 0) used[static_cast<size_t>(source)] = true;
  }
}

}  // namespace

std::vector<MachineOp> record(const ElementSpec& spec, Isa isa) { return Recorder(spec, isa).run(); }

std::vector<MachineOp> side_by_side(const std::vector<MachineOp>& ops, int count) {
  std::vector<MachineOp> all;
  std::vector<std::vector<int>> places(static_cast<size_t>(count));
  for (const MachineOp& op : ops)
    for (int vector = 0; vector < count; ++vector) {
      std::vector<int>& own = places[static_cast<size_t>(vector)];
      if (vector > 0 && op.is_fixed()) {
        own.push_back(places[0].back());
        continue;
      }
      MachineOp copy = op;
      for (int& source : copy.sources)
        if (source >= 0) source = own[static_cast<size_t>(source)];
      copy.vector = vector;
      own.push_back(static_cast<int>(all.size()));
      all.push_back(copy);
    }
  return all;
}

}  // namespace cairn
