// Steps that call one function object, for kernels whose state is its captures.
#pragma once

#include <algorithm>

#include "engine/engine.h"

namespace cairn {

using Refusal = std::optional<std::string>;

struct CallOptions {
  std::vector<size_t> in_place = {};
  size_t workspace = 0;             // bytes
  std::vector<size_t> unread = {};  // constant inputs that were copied when the step was made
};

template <class Run>
class CallStep final : public Step {
 public:
  CallStep(std::string name, Run run, CallOptions options)
      : name_(std::move(name)), run_(std::move(run)), options_(std::move(options)) {}
  void run(const StepArgs& args) const override { run_(args); }
  std::string kernel() const override { return "cpu/" + name_; }
  size_t workspace() const override { return options_.workspace; }
  bool reads(size_t input) const override {
    for (size_t unread : options_.unread)
      if (unread == input) return false;
    return true;
  }
  std::vector<size_t> in_place() const override { return options_.in_place; }

 private:
  std::string name_;
  Run run_;
  CallOptions options_;
};

template <class Run>
std::unique_ptr<Step> call(std::string name, Run run, CallOptions options = {}) {
  return std::make_unique<CallStep<Run>>(std::move(name), std::move(run), std::move(options));
}

template <class T = float>
const T* input(const StepArgs& args, size_t i) {
  return static_cast<const T*>(args.inputs[i]);
}
template <class T = float>
T* output(const StepArgs& args, size_t i = 0) {
  return static_cast<T*>(args.outputs[i]);
}

constexpr size_t kNoOutput = SIZE_MAX;
/// The position of a value among the group's outputs, or kNoOutput when it is unused.
inline size_t index_of_output(const Group& group, const Value* value) {
  const auto at = std::find(group.outputs.begin(), group.outputs.end(), value);
  return at == group.outputs.end() ? kNoOutput : static_cast<size_t>(at - group.outputs.begin());
}

/// The group's inputs but these: for CallOptions::unread.
inline std::vector<size_t> inputs_but(const Group& group, std::initializer_list<size_t> read) {
  std::vector<size_t> others;
  for (size_t i = 0; i < group.inputs.size(); ++i)
    if (std::find(read.begin(), read.end(), i) == read.end()) others.push_back(i);
  return others;
}

/// The run's executor, or the caller's thread alone where it has more workers than the step has scratch for.
inline Executor& executor_for(const StepArgs& args, int workers) {
  return args.executor.width() > workers ? serial_executor() : args.executor;
}

/// The group's only node when it is the op of this name.
inline const Node* single_node(const Group& group, std::string_view name) {
  return group.nodes.size() == 1 && group.last().is(name) ? &group.last() : nullptr;
}

/// Calls body(first, last) for chunks of [0, count) that have work enough; `work` is that of one i in elements touched or
/// operations.
template <class Body>
void for_ranges(Executor& executor, int64_t count, int64_t work, Body&& body) {
  constexpr int64_t kLeastWork = 16 << 10, kMostWork = 4 << 20;  // a run that has to end waits for no chunk
  const int64_t least = std::max<int64_t>(1, kLeastWork / std::max<int64_t>(1, work));
  const int64_t most = std::max<int64_t>(least, kMostWork / std::max<int64_t>(1, work));
  const int64_t each = std::clamp((count + executor.width() * 8 - 1) / (executor.width() * 8), least, most);
  executor.run(static_cast<int>((count + each - 1) / each),
               [&](int chunk, int) { body(chunk * each, std::min(count, (chunk + 1) * each)); });
}

/// Calls body(i) for i in [0, count), several in a chunk.
template <class Body>
void for_each(Executor& executor, int64_t count, int64_t work, Body&& body) {
  for_ranges(executor, count, work, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i);
  });
}

}  // namespace cairn
