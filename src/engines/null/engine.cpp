#include "engines/null/engine.h"

namespace cairn {

namespace {

class NullStep final : public Step {
 public:
  explicit NullStep(const Group& group) : op_(group.last().op->name) {
    for (const Value* output : group.outputs) bytes_.push_back(storage_bytes(output->type));
  }
  void run(const StepArgs& args) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) std::memset(args.outputs[i], 0, bytes_[i]);
  }
  std::string kernel() const override { return "null/" + op_; }
  bool reads(size_t) const override { return false; }

 private:
  std::string op_;
  std::vector<size_t> bytes_;
};

class NullEngine final : public Engine {
 public:
  const char* name() const override { return "null"; }
  std::vector<Group> propose(const Block&, const Uses&) const override { return {}; }

  std::optional<std::string> refuses(const Group& group) const override {
    for (const Node* node : group.nodes) {
      if (!node->op->pure()) return "has effects";
      for (const auto& result : node->results)
        if (is_host_object(result->type)) return "makes host objects";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Group& group) const override {
    return {{"null/" + std::string(group.last().op->name), refuses(group).value_or("")}};
  }

  std::unique_ptr<Step> make(const Group& group, MakeContext&) const override {
    return std::make_unique<NullStep>(group);
  }
};

}  // namespace

const Engine& null_engine() {
  static const NullEngine engine;
  return engine;
}

}  // namespace cairn
