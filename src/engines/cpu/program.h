// Element-wise programs: the nodes of a group as one loop of generated code, or one after the other on tiles of 256
// floats that stay in the first-level cache, which any machine can do and any operation. Bools are 0 and 1 inside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engines/cpu/element_jit.h"
#include "engines/cpu/odometer.h"

namespace cairn {

class ElementwiseProgram {
 public:
  /// Whether there is an instruction for the node: element-wise on f32 and bools of known dims.
  static bool takes(const Node& node);
  /// Why the interpreter does not take the group, or nothing.
  static std::optional<std::string> refuses(const Group& group);
  /// Requires refuses(group) to be nothing.
  explicit ElementwiseProgram(const Group& group, const GroupStrides& strides = {});

  void run(Executor& executor, const void* const* inputs, void* const* outputs) const;
  size_t instructions() const { return code_.size(); }
  /// Inputs that are read at the very element that is written, so that an output may take their place.
  std::vector<size_t> aligned_inputs() const;

  /// Whether so many elements of a view lie so far from each other that a copy by blocks and then whole rows are faster:
  /// adding a transposed view of 256x256 floats takes 47 us where it lies and 17 us with a copy, of 64x64 2.2 and 1.0 us.
  bool reads_far() const;

  static constexpr int64_t kTile = kElementTile;
  static constexpr int kMostRegisters = 40;

 private:
  using Op = ElementOp;
  struct Row {
    const char* name;
    Op op;
    const char *low = nullptr, *high = nullptr;  // attributes with the numbers of the formula
  };
  static const Row kRows[];
  static const Row* find(const Node& node);

  /// Where an input's elements lie: strides of dims_, 0 where broadcast.
  struct Operand {
    int buffer = 0;  // index into the group's inputs, or outputs
    bool boolean = false;
    bool full = false;             // same elements in the same order
    bool single = false;           // one number for all
    std::vector<int64_t> strides;  // in elements
    std::vector<int64_t> jumps;    // to the next row, by the dim whose index grows
    int64_t period = 0;            // so many elements repeat; 0: not, or more than a tile
    bool direct() const { return full && !boolean; }
    /// How generated code gets at it: all elements where they are, a row of them (or its one number) where that is, what
    /// was put into a tile, or into one of a period and a tile that serves all tiles.
    enum class Way : uint8_t { direct, row, tile, period } way = Way::direct;
  };

  Operand operand_of(size_t buffer, const Type& type, const std::vector<int64_t>* given) const;
  void merge_dims();
  void find_rows();
  void make_kernel();
  std::span<const int64_t> rows() const { return {dims_.data(), dims_.empty() ? 0 : dims_.size() - 1}; }
  /// run(offset of the operand's elements, how many, their stride) for each row that positions [first, first + count) touch.
  template <class Run>
  void walk(const Operand& operand, int64_t first, int64_t count, Run&& run) const;
  void load(const Operand& operand, const void* data, int64_t first, int64_t count, float* to) const;
  void store(const Operand& target, const float* from, int64_t first, int64_t count, float* data) const;
  /// Numbers that are the same on every tile.
  void load_singles(const void* const* inputs, float* registers) const;
  /// `direct`, bit by output: it shares no memory with an input, so that it may be written before the last is read.
  void run_tile(const void* const* inputs, void* const* outputs, uint64_t direct, int64_t first, int64_t count,
                float* registers) const;
  static void execute_one_by_one(Op op, const float* a, const float* b, float* to);

  void run_interpreted(Executor& executor, const void* const* inputs, void* const* outputs) const;
  void run_generated(Executor& executor, const void* const* inputs, void* const* outputs) const;
  int64_t inner() const { return dims_.empty() ? 1 : dims_.back(); }
  void run_chunk(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const;

  std::vector<int64_t> dims_;  // of the result, as few as describe how operands lie
  int64_t count_ = 0;
  std::vector<Operand> operands_;         // registers 0 .. operands
  std::vector<ElementInstruction> code_;  // registers behind them
  std::vector<int> outputs_;              // register of each output
  std::vector<Operand> targets_;          // where each output's elements go
  std::shared_ptr<const ElementKernel> kernel_;
  bool by_rows_ = false, by_tiles_ = false;  // generated code takes so much at a time
};

}  // namespace cairn
