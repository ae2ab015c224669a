// The options of a run: lent threads, observers, cancellation.
#pragma once

#include <optional>

#include "capi/handles.h"
#include "observe/watch.h"
#include "support/stop.h"

namespace cairn::capi {

/// An executor over a host's threads. Each thread keeps that of its last run, so that repeated runs reuse it.
class Lent {
 public:
  Executor& executor(const CairnRunOptions& options);
  ~Lent();

 private:
  struct Entry {
    CairnSchedule schedule = nullptr;
    void* host = nullptr;
    int32_t width = 0;
    std::unique_ptr<Executor> executor = nullptr;
  };
  static Entry& kept();
  Entry mine_;
};

/// Calls the caller's function for every step.
class Watcher final : public Observer {
 public:
  Watcher(const Module& module, CairnObserve observe, void* user) : module_(module), observe_(observe), user_(user) {}
  bool needs_values() const override { return true; }
  void step_begins(const Plan&, size_t, void* const*) override;
  void step_ends(const Plan& plan, size_t index, void* const* buffers) override;

 private:
  static CairnTensor tensor(const Buffer& buffer, void* data, std::vector<Dims>& dims);

  const Module& module_;
  CairnObserve observe_;
  void* user_;
  std::vector<int64_t> begins_;
};

/// The run options of a call, and the objects that they need during the call.
class RunSetup {
 public:
  /// Throws Error invalid_argument.
  RunSetup(const Module& module, const CairnRunOptions* given);
  RunSetup(const RunSetup&) = delete;
  const RunOptions& options() const { return options_; }

 private:
  struct Question {
    int32_t (*asked)(void* user) = nullptr;
    void* user = nullptr;
    static bool ask(void* self) {
      const auto& question = *static_cast<Question*>(self);
      return question.asked(question.user) != 0;
    }
  };

  RunOptions options_;
  Question question_;
  std::optional<StopScope> interruption_;  // around the run
  Lent lent_;
  std::optional<Watcher> watcher_;
  std::optional<RunWatch> watch_;
};

}  // namespace cairn::capi
