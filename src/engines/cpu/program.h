// Element-wise programs: the nodes of a group as one loop of generated code, or interpreted one after the other on
// tiles of 256 floats, which stay in the first-level cache. The interpreter works on any machine and for any operation.
// Bools are the numbers 0 and 1 inside a program, 16-bit floats are widened where they are read and rounded where they are made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engines/cpu/element_jit.h"
#include "engines/cpu/moving.h"
#include "engines/cpu/odometer.h"

namespace cairn {

class ElementwiseProgram {
 public:
  /// Whether there is an instruction for the node: element-wise on floats up to f32 and bools of known dims.
  static bool takes(const Node& node);
  static size_t instructions_of(const Node& node);
  /// Whether it is a slice or a gathering of rows whose elements a program may read where they are, instead of a copy of them.
  static bool reads_part(const Node& node);
  /// Why the interpreter does not take the group, or nothing.
  static std::optional<std::string> refuses(const Group& group);
  /// Requires refuses(group) to be nothing.
  explicit ElementwiseProgram(const Group& group, const GroupStrides& strides = {});

  void run(Executor& executor, const void* const* inputs, void* const* outputs) const;
  /// Elements [first, last) alone, by the calling thread. Requires goes_by_elements().
  void run_part(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const;
  /// That each element of the results is made of those at its own place, and of single numbers.
  bool goes_by_elements() const;
  size_t instructions() const { return code_.size(); }
  bool by_table() const { return by_table_.has_value(); }
  bool gathers() const;
  /// False for the bounds of slices.
  bool reads(size_t input) const;
  /// Inputs of which each element is read where it is written, so that an output may overwrite them.
  std::vector<size_t> aligned_inputs() const;

  /// Whether so many elements of a view have such a large stride that copying the view first is faster: adding a
  /// transposed view of 256x256 floats takes 47 us in place and 17 us with a copy, one of 64x64 2.2 and 1.0 us.
  bool reads_far() const;

  static constexpr int64_t kMostChunk = 1 << 20;  // elements, so that a run that has to end waits for no chunk
  static constexpr int64_t kTile = kElementTile, kLargeTile = 2 * kTile;
  static constexpr int kMostRegisters = 128;

 private:
  using Op = ElementOp;
  struct Row {
    const char* name;
    Op op;
    const char *low = nullptr, *high = nullptr;  // names of the attributes that the formula uses
  };
  static const Row kRows[];
  static const Row* find(const Node& node);
  static ElementInstruction instruction_of(const Node& node);

  /// What an operand of gathered rows reads in a run.
  struct GatherSource {
    const float* rows = nullptr;
    const void* indices = nullptr;
  };

  /// The layout of an operand over dims_; broadcast dims have stride 0.
  struct Operand {
    size_t buffer = 0;   // index into the group's inputs, or outputs
    bool part = false;   // a slice of the buffer's tensor
    int64_t offset = 0;  // of the first element, in elements
    Form form = Form::floats;
    bool full = false;             // same elements in the same order as the result
    bool single = false;           // one number for all
    std::vector<int64_t> strides;  // in elements
    // The same places with this operand's dims merged: items of `width` elements that lie side by side, and their strides.
    std::vector<int64_t> items, steps;
    int64_t width = 1;
    std::vector<int64_t> jumps;        // to the next block of rows of items, by the dim whose index grows
    int64_t period = 0;                // so many elements repeat; 0: not, or more than a tile
    std::optional<GatherRows> gather;  // full; its data is a GatherSource
    size_t indices = 0;                // of gathered rows: index into the group's inputs
    bool direct() const { return full && form != Form::bools && !gather; }
    /// How generated code gets at it: all elements where they are, a row of them (or its one number) where that is, what
    /// was put into a tile, or into one of a period and a tile that serves all tiles.
    enum class Way : uint8_t { direct, row, tile, period } way = Way::direct;
  };

  Operand operand_of(size_t buffer, const Type& type, const std::vector<int64_t>* given) const;
  Operand part_of(size_t buffer, const Node& slice) const;
  Operand gathered(const Group& group, const Node& node) const;
  static void load_gathered(const GatherRows& gather, const GatherSource& source, int64_t first, int64_t count,
                            float* to);
  void take_few_digits();
  void merge_dims();
  void find_rows();
  void make_kernel();
  void merge_items(Operand& operand) const;
  /// Rows along the last two dims of items, or a part of one row, and the distances between their items.
  struct Block {
    int64_t rows, step, columns, stride;
  };
  /// run(offset of the operand's elements, block) for the blocks that positions [first, first + count) consist of; these are
  /// whole items.
  template <class Run>
  void walk(const Operand& operand, int64_t first, int64_t count, Run&& run) const;
  void load(const Operand& operand, const void* data, int64_t first, int64_t count, float* to) const;
  void store(const Operand& target, const float* from, int64_t first, int64_t count, void* data) const;
  /// Loads the operands that are single numbers, which are the same for every tile.
  void load_singles(const void* const* inputs, float* registers) const;
  /// `direct` has a bit per output: set when it aliases no input, so that it may be written before all inputs are read.
  void run_tile(const void* const* inputs, void* const* outputs, uint64_t direct, int64_t first, int64_t count,
                float* registers) const;

  /// Tiles from `first` on, by the interpreter.
  void interpret(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const;
  void run_interpreted(Executor& executor, const void* const* inputs, void* const* outputs) const;
  void run_generated(Executor& executor, const void* const* inputs, void* const* outputs) const;
  void find_table();
  void run_by_table(Executor& executor, const void* const* inputs, void* const* outputs) const;
  int64_t inner() const { return dims_.empty() ? 1 : dims_.back(); }
  void run_chunk(const void* const* inputs, void* const* outputs, int64_t first, int64_t last) const;

  std::vector<int64_t> dims_;  // of the result, merged where all operands are contiguous
  int64_t count_ = 0;
  std::vector<Operand> operands_;         // in the first registers
  std::vector<ElementInstruction> code_;  // their results are in the registers after these
  std::vector<int> outputs_;              // register of each output
  std::vector<Operand> targets_;          // layout of each output
  std::shared_ptr<const ElementKernel> kernel_;
  int64_t tile_ = kTile;                     // elements of a call per tile: whole rows where they are short
  std::optional<size_t> by_table_;           // the operand of bytes that alone decides what byte is made
  bool by_rows_ = false, by_tiles_ = false;  // generated code is called per row or per tile, else for a whole chunk
};

}  // namespace cairn
