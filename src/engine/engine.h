// The interface of a device: which groups of nodes it takes, how it packs their constants, and the steps it makes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "support/executor.h"
#include "support/function_ref.h"

namespace cairn {

/// Nodes of one block that one step computes together. All tensor types are static, except what is_host_object().
struct Group {
  std::vector<const Node*> nodes;     // in program order; the group runs at the position of its last node
  std::vector<const Value*> inputs;   // defined outside of the group, in order of first use, each once
  std::vector<const Value*> outputs;  // defined in the group and used outside, in order of definition

  const Node& last() const { return *nodes.back(); }

  mutable const void* kernel = nullptr;  // that the engine which takes the group has found for it: a search less
};

/// The uses of each value of a block: by nodes, and as a block result.
class Uses {
 public:
  explicit Uses(const Block& block);
  const std::vector<const Node*>& users(const Value* value) const;
  bool is_result(const Value* value) const;
  /// Exactly one use, by a node.
  bool single(const Value* value) const { return users(value).size() == 1 && !is_result(value); }

 private:
  struct Entry {
    std::vector<const Node*> users;
    bool result = false;
  };
  std::unordered_map<const Value*, Entry> entries_;
};

/// The group of these nodes, with its inputs and outputs.
Group make_group(std::vector<const Node*> nodes, const Uses& uses);

/// True for values that are HostValue objects instead of plain buffers: lists, strings, tensors with dynamic dims.
bool is_host_object(const Type& type);

/// The memory of an engine's buffers. The CPU's is host_memory().
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  virtual const char* name() const = 0;
  virtual void* allocate(size_t bytes) = 0;  // 64-byte aligned; throws Error out_of_memory
  virtual void release(void* data, size_t bytes) = 0;
  virtual void copy_in(void* to, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from, size_t bytes) = 0;
  virtual bool is_host() const { return false; }
};
MemorySpace& host_memory();

/// Packed constants: each is made once per model and shared by all plans.
class Packer {
 public:
  virtual ~Packer() = default;
  /// The constant in the layout `layout`: `bytes` bytes, 64-byte aligned. Constant and layout together must determine
  /// the bytes; `fill` writes them when they do not exist yet.
  virtual std::shared_ptr<const void> packed(const Tensor& constant, const std::string& layout, size_t bytes,
                                             FunctionRef<void(void* to)> fill) = 0;
};

/// The arguments of one run: for each input and output a pointer to its buffer, or to a HostValue if
/// is_host_object(type). Constants are plain row-major buffers.
struct StepArgs {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;  // 64-byte aligned, workspace() bytes
  Executor& executor;
  void* kept = nullptr;  // 64-byte aligned, kept() bytes
};

/// A planned group. It is immutable: several threads may call run() at once with different buffers. run() neither
/// allocates nor locks, except for host objects.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const StepArgs& args) const = 0;
  /// The kernel's name, such as "cpu/conv_brgemm 14x32"; steps with equal names give equal bits.
  virtual std::string kernel() const = 0;
  virtual size_t workspace() const { return 0; }
  /// Bytes that keep() fills from inputs that stay the same (MakeContext::stays); run() finds them in every turn of a loop.
  virtual size_t kept() const { return 0; }
  virtual void keep(const StepArgs& /*args*/) const {}
  /// Whether run() reads inputs[i]; false for constants that were packed, whose pointer may then be null.
  virtual bool reads(size_t /*input*/) const { return true; }
  /// Inputs whose buffer any output may reuse when the input's live range ends at this step.
  virtual std::vector<size_t> in_place() const { return {}; }
};

/// Strides in elements of each input and output of a group; an empty list stands for row-major.
struct GroupStrides {
  std::vector<std::vector<int64_t>> inputs, outputs;
};

inline constexpr auto kNothingStays = [](const Value*) { return false; };

struct MakeContext {
  Packer& packer;
  int threads = 1;
  /// Whether a value is no constant but the same in every turn of the loop around it.
  FunctionRef<bool(const Value*)> stays = kNothingStays;
  /// Whether convolutions may go by Winograd's method, whose rounding differs from that of sums of products.
  bool winograd = false;
};

/// A kernel that was considered for a group; `refusal` is empty when it takes the group.
struct Candidate {
  std::string kernel;
  std::string refusal;
};

struct Cost {
  double flops = 0;
  double bytes = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  /// Disjoint groups of nodes that this engine would compute in one step each, best first. The other nodes are offered
  /// to the engine one by one.
  virtual std::vector<Group> propose(const Block& block, const Uses& uses) const = 0;
  /// Why this engine does not take the group, or nothing.
  virtual std::optional<std::string> refuses(const Group& group) const = 0;
  /// The same without the reason.
  virtual bool takes(const Group& group) const { return !refuses(group); }
  /// The same, by the kernel that `other` has if that takes this group as well: the same nodes at other dims.
  virtual bool takes_as(const Group& group, const Group& /*other*/) const { return takes(group); }
  /// All kernels that were considered for the group, best first; shown by `cairn why`.
  virtual std::vector<Candidate> candidates(const Group& group) const = 0;
  /// Requires that refuses(group) is nothing.
  virtual std::unique_ptr<Step> make(const Group& group, MakeContext& context) const = 0;
  /// The step for strided inputs and outputs, or null when it would need copies of them. Same requirement as make().
  virtual std::unique_ptr<Step> make_strided(const Group& /*group*/, const GroupStrides& /*strides*/) const {
    return nullptr;
  }
  virtual MemorySpace& memory() const { return host_memory(); }
};

/// The cost of a group: FLOPs of the nodes by their op rows, bytes of inputs and outputs.
Cost cost_of(const Group& group);

}  // namespace cairn
