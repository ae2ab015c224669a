// The contract of a device: which groups of nodes it takes, how it packs their constants, and the steps it makes.
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
  std::vector<const Node*> nodes;     // in program order; the group runs where its last node stands
  std::vector<const Value*> inputs;   // made outside the nodes, in order of first use, each once
  std::vector<const Value*> outputs;  // made inside and used outside, in order of making

  const Node& last() const { return *nodes.back(); }
};

/// How often each value of a block is used: by nodes, and as a block result.
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

/// A group of these nodes with inputs and outputs filled in.
Group make_group(std::vector<const Node*> nodes, const Uses& uses);

/// True for values that live as HostValue objects and not as plain buffers: lists, strings, tensors of dynamic dims.
bool is_host_object(const Type& type);

/// Where an engine's buffers live. The CPU's own space is host_memory().
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

/// Packed constants, made once per model whatever number of plans use them.
class Packer {
 public:
  virtual ~Packer() = default;
  /// `bytes` bytes, 64-byte aligned, in the layout named by `layout` (which must determine the bytes together with the
  /// constant); `fill` writes them when they do not exist yet.
  virtual std::shared_ptr<const void> packed(const Tensor& constant, const std::string& layout, size_t bytes,
                                             FunctionRef<void(void* to)> fill) = 0;
};

/// Pointers of one run: a buffer each, or a HostValue* where is_host_object(type). Constants are plain, row-major.
struct StepArgs {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;  // 64-byte aligned, workspace() bytes
  Executor& executor;
};

/// A planned group, immutable: run() may be called by several threads at once with different buffers. run() neither
/// allocates nor locks, except for host objects.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const StepArgs& args) const = 0;
  /// "cpu/conv_brgemm 14x32"; equal names mean equal bits.
  virtual std::string kernel() const = 0;
  virtual size_t workspace() const { return 0; }
  /// Whether run() looks at inputs[i]; false for constants that were packed, whose pointer may then be null.
  virtual bool reads(size_t /*input*/) const { return true; }
  /// Inputs whose buffer an output, any of them, may share when nobody needs them afterwards.
  virtual std::vector<size_t> in_place() const { return {}; }
};

/// Elements apart from one another along each dim, of each input and output of a group; none: row-major.
struct GroupStrides {
  std::vector<std::vector<int64_t>> inputs, outputs;
};

struct MakeContext {
  Packer& packer;
  int threads = 1;
};

/// One kernel that could run a group, best first; `refusal` is empty when it takes the group.
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
  /// Groups worth making one step of, best cuts first; they do not overlap. Nodes left out are offered one by one.
  virtual std::vector<Group> propose(const Block& block, const Uses& uses) const = 0;
  /// Why this engine does not take the group, or nothing.
  virtual std::optional<std::string> refuses(const Group& group) const = 0;
  /// Every kernel considered for the group, best first, for people (`cairn why`).
  virtual std::vector<Candidate> candidates(const Group& group) const = 0;
  /// Requires that refuses(group) is nothing.
  virtual std::unique_ptr<Step> make(const Group& group, MakeContext& context) const = 0;
  /// The step for tensors that are not all row-major, or null where it would need copies of them. Requires what make()
  /// does.
  virtual std::unique_ptr<Step> make_strided(const Group& /*group*/, const GroupStrides& /*strides*/) const {
    return nullptr;
  }
  virtual MemorySpace& memory() const { return host_memory(); }
};

/// FLOPs of the nodes by their rows, bytes of inputs and outputs.
Cost cost_of(const Group& group);

}  // namespace cairn
