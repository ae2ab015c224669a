#include "engines/cpu/element_registers.h"

#include <algorithm>

#include "support/error.h"

namespace cairn {

namespace {

using Place = ValuePlace::Kind;

constexpr int kFirstMask = 2, kMasks = 7;

/// Linear-scan register allocation: each value has one place for its whole live range. When registers run out, the
/// value with the latest last use goes to the frame.
class Placing {
 public:
  Placing(const std::vector<MachineOp>& ops, Isa isa)
      : ops_(ops), isa_(isa), last_(ops.size(), -1), uses_(ops.size(), 0),
        vectors_(static_cast<size_t>(vector_registers(isa) - 2), -1), masks_(kMasks - kFirstMask, -1) {
    found_.values.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i)
      for (int source : ops[i].sources)
        if (source >= 0) last_[static_cast<size_t>(source)] = static_cast<int>(i), ++uses_[static_cast<size_t>(source)];
  }

  void place_computed() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (auto* registers : {&vectors_, &masks_})
        for (int& holds : *registers)
          if (holds >= 0 && last_[static_cast<size_t>(holds)] <= static_cast<int>(i)) holds = -1;
      const MachineOp& op = ops_[i];
      if (op.kind == MachineOp::Kind::none || op.kind == MachineOp::Kind::store || op.is_fixed()) continue;
      if (op.is_mask() && isa_ == Isa::avx512)
        place_mask(static_cast<int>(i));
      else
        place_vector(static_cast<int>(i));
    }
    found_.registers = used_;
  }

  void place_fixed_like(const std::vector<MachineOp>& others, const ElementPlaces& fixed) {
    size_t other = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].is_fixed()) continue;
      while (!others[other].is_fixed()) ++other;
      found_.values[i] = fixed.values[other++];
    }
  }

  // Registers that stay unused hold the most frequently used fixed values.
  void place_fixed() {
    std::vector<int> fixed;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].is_fixed()) fixed.push_back(static_cast<int>(i));
    std::stable_sort(fixed.begin(), fixed.end(),
                     [&](int a, int b) { return uses_[static_cast<size_t>(a)] > uses_[static_cast<size_t>(b)]; });
    for (int value : fixed) {
      const MachineOp& op = ops_[static_cast<size_t>(value)];
      const bool constant = op.kind == MachineOp::Kind::constant;
      if (used_ < std::ssize(vectors_))
        place_of(value) = {Place::vector, used_++};
      else if (constant)
        place_of(value) = {Place::pool, static_cast<int>(std::ssize(found_.pool))};
      else
        place_of(value) = {Place::frame, found_.frame++};
      if (place_of(value).kind != Place::pool)
        found_.set_up.push_back(value);
      else
        found_.pool.push_back(op.detail);
    }
  }

  ElementPlaces take() { return std::move(found_); }

 private:
  ValuePlace& place_of(int value) { return found_.values[static_cast<size_t>(value)]; }

  void place_mask(int value) {
    const auto free = std::find(masks_.begin(), masks_.end(), -1);
    if (free == masks_.end()) {
      found_.fits = found_.masks_fit = false;
      return;
    }
    *free = value;
    place_of(value) = {Place::mask, kFirstMask + static_cast<int>(free - masks_.begin())};
  }

  void place_vector(int value) {
    auto where = std::find(vectors_.begin(), vectors_.end(), -1);
    if (where == vectors_.end()) {
      const auto ends_later = [&](int a, int b) {
        return last_[static_cast<size_t>(a)] < last_[static_cast<size_t>(b)];
      };
      where = std::max_element(vectors_.begin(), vectors_.end(), ends_later);
      const bool other = ends_later(value, *where);
      place_of(other ? *where : value) = {Place::frame, found_.frame++};
      found_.fits = false;
      if (!other) return;
    }
    *where = value;
    const int index = static_cast<int>(where - vectors_.begin());
    place_of(value) = {Place::vector, index};
    used_ = std::max(used_, index + 1);
  }

  const std::vector<MachineOp>& ops_;
  Isa isa_;
  std::vector<int> last_, uses_;
  std::vector<int> vectors_, masks_;  // the value that each register holds
  int used_ = 0;
  ElementPlaces found_;
};

}  // namespace

ElementPlaces place_values(const std::vector<MachineOp>& ops, Isa isa) {
  Placing placing(ops, isa);
  placing.place_computed();
  placing.place_fixed();
  return placing.take();
}

ElementPlaces place_values(const std::vector<MachineOp>& ops, Isa isa, const std::vector<MachineOp>& others,
                           const ElementPlaces& fixed) {
  Placing placing(ops, isa);
  placing.place_computed();
  placing.place_fixed_like(others, fixed);
  return placing.take();
}

}  // namespace cairn
