// Walks through the operands of an element-wise node and its result together.
#pragma once

#include <array>
#include <cstring>

#include "engines/cpu/call_step.h"
#include "engines/cpu/elements.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/odometer.h"

namespace cairn {

inline constexpr size_t kMostOperands = 3;

template <class T>
void copy_short_row(int64_t count, const T* from, int64_t step, T* to) {
  int64_t i = 0;
  if (step == 1)
    for (; i + 8 <= count; i += 8) std::memcpy(to + i, from + i, 8 * sizeof(T));
  for (; i < count; ++i) to[i] = from[i * step];
}

/// Iterates over the operands of one node and its result together; adjacent dims that are contiguous in all of them are
/// merged.
class ElementWalk {
  static constexpr int64_t kBlock = 4096;  // positions of a chunk
  static constexpr int64_t kShortRow = 32;

 public:
  ElementWalk(const Node& node, const Group& group, const GroupStrides* given = nullptr) {
    const Dims to = node.result()->type.shape.sizes();
    count_ = count_of(to);
    std::vector<Dims> strides;
    for (const Value* value : node.inputs) {
      inputs_.push_back(index_of(group, value));
      strides.push_back(walked_strides(value->type.shape.sizes(), given ? given->inputs[inputs_.back()] : Dims(), to));
    }
    strides.push_back(walked_strides(to, given ? given->outputs[0] : Dims(), to));
    steps_.resize(strides.size());
    for (size_t d = 0; d < to.size(); ++d) {
      if (to[d] == 1) continue;
      bool adjoins = !dims_.empty();
      for (size_t k = 0; k < strides.size(); ++k) adjoins = adjoins && steps_[k].back() == strides[k][d] * to[d];
      for (size_t k = 0; k < strides.size(); ++k) {
        if (adjoins) steps_[k].pop_back();
        steps_[k].push_back(strides[k][d]);
      }
      adjoins ? void(dims_.back() *= to[d]) : dims_.push_back(to[d]);
    }
    if (!dims_.empty()) return;
    dims_.push_back(1);
    for (Dims& steps : steps_) steps.push_back(0);
    steps_.back().back() = 1;
  }

  size_t input(size_t k) const { return inputs_[k]; }
  bool has_short_rows() const {
    return dims_.size() > 1 && dims_.back() < kShortRow && steps_.back() == strides_of(dims_);
  }
  bool is_aligned(size_t k) const { return steps_[k] == steps_.back(); }
  bool is_single(size_t k) const {
    return std::all_of(steps_[k].begin(), steps_[k].end(), [](int64_t step) { return step == 0; });
  }
  /// Copies elements [first, first + count) of an operand of so many bytes each, in the result's order.
  void gather(size_t k, size_t width, int64_t first, int64_t count, const void* from, void* to) const {
    const auto as = [&](auto tag) {
      using T = decltype(tag);
      gather_elements(k, first, count, static_cast<const T*>(from), static_cast<T*>(to));
    };
    width == 1 ? as(uint8_t()) : width == 2 ? as(uint16_t()) : width == 4 ? as(uint32_t()) : as(uint64_t());
  }
  int64_t count() const { return count_; }
  size_t operands() const { return inputs_.size(); }
  /// Operands with the same strides as the result, which may overwrite them.
  std::vector<size_t> aligned_operands() const {
    std::vector<size_t> aligned;
    for (size_t k = 0; k < operands(); ++k)
      if (is_aligned(k)) aligned.push_back(k);
    return aligned;
  }

  /// Calls run(count, offsets, steps) for runs along the last dim, in parallel; offsets and steps are those of each
  /// operand, then of the result.
  template <class Run>
  void each(Executor& executor, Run&& run) const {
    const int64_t inner = dims_.back();
    for_each(executor, (count_ + kBlock - 1) / kBlock, kBlock, [&](int64_t block) {
      const int64_t last = std::min(count_, (block + 1) * kBlock);
      Odometer row({dims_.data(), dims_.size() - 1}, block * kBlock / inner);
      int64_t column = block * kBlock % inner;
      for (int64_t at = block * kBlock, many = 0; at < last; at += many, column = 0, row.next()) {
        many = std::min(inner - column, last - at);
        std::array<int64_t, kMostOperands + 1> offsets, steps;
        for (size_t k = 0; k < steps_.size(); ++k) {
          steps[k] = steps_[k].back();
          offsets[k] = row.offset(steps_[k]) + column * steps[k];
        }
        run(many, offsets, steps);
      }
    });
  }

 private:
  template <class T>
  void gather_elements(size_t k, int64_t first, int64_t count, const T* from, T* to) const {
    const Dims& steps = steps_[k];
    const size_t last = dims_.size() - 1;
    const int64_t inner = dims_[last], rows = dims_[last - 1], step = steps[last];
    int64_t column = first % inner, row = first / inner % rows;
    Odometer plane({dims_.data(), last - 1}, first / inner / rows);
    while (count > 0) {
      const T* x = from + plane.offset(steps) + row * steps[last - 1];
      for (; row < rows && count > 0; ++row, x += steps[last - 1], column = 0) {
        const int64_t many = std::min(inner - column, count);
        copy_short_row(many, x + column * step, step, to);
        to += many, count -= many;
      }
      row = 0;
      plane.next();
    }
  }

  Dims dims_;
  std::vector<Dims> steps_;  // of each operand, then of the result
  std::vector<size_t> inputs_;
  int64_t count_ = 0;
};

}  // namespace cairn
