// Element-wise programs: the nodes of a group run one after the other on tiles of 256 floats that stay in the
// first-level cache. Bools are 0 and 1 inside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engines/cpu/vector_loops.h"

namespace cairn {

class ElementwiseProgram {
 public:
  /// Whether there is an instruction for the node: element-wise on f32 and bools of known dims.
  static bool takes(const Node& node);
  /// Why the interpreter does not take the group, or nothing.
  static std::optional<std::string> refuses(const Group& group);
  /// Requires refuses(group) to be nothing.
  explicit ElementwiseProgram(const Group& group);

  void run(Executor& executor, const void* const* inputs, void* const* outputs) const;
  size_t instructions() const { return code_.size(); }
  /// Inputs that are read at the very element that is written, so that an output may take their place.
  std::vector<size_t> aligned_inputs() const;

  static constexpr int64_t kTile = kElementTile;
  static constexpr int kMostRegisters = 40;

 private:
  using Op = ElementOp;
  struct Row {
    const char* name;
    Op op;
  };
  static const Row kRows[];
  static const Row* find(const Node& node);

  /// Where an input's elements lie: strides of the result's dims, 0 where broadcast.
  struct Operand {
    int buffer = 0;  // index into the group's inputs
    bool boolean = false;
    bool full = false;             // same elements in the same order
    bool single = false;           // one number for all
    std::vector<int64_t> strides;  // in elements
  };
  struct Instruction {
    Op op;
    int target = 0;
    int output = -1;  // that is its target
    int sources[3] = {0, 0, 0};
    float low = 0, high = 0;
  };

  void load(const Operand& operand, const void* data, int64_t first, int64_t count, float* to) const;
  /// Numbers that are the same on every tile.
  void load_singles(const void* const* inputs, float* registers) const;
  /// `direct`, bit by output: it shares no memory with an input, so that it may be written before the last is read.
  void run_tile(const void* const* inputs, void* const* outputs, uint64_t direct, int64_t first, int64_t count,
                float* registers) const;
  static void execute_one_by_one(Op op, const float* a, const float* b, float* to);

  std::vector<int64_t> dims_;
  int64_t count_ = 0;
  std::vector<Operand> operands_;  // registers 0 .. operands
  std::vector<Instruction> code_;
  std::vector<int> outputs_;  // register of each output
};

}  // namespace cairn
