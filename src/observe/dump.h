// Dumps: operands and results of operators, written during runs. There is one dump per process, to which every run adds
// the files of its steps, with the platform's folders and names, and a manifest that maps each file to source node and
// script line.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "observe/dump_options.h"
#include "observe/step_values.h"
#include "runtime/model.h"

namespace cairn {

namespace observe {
class Dump;
class StatisticsRows;
struct StatisticsRow;
extern std::atomic<bool> dump_on;
}  // namespace observe

inline bool dumping() { return observe::dump_on.load(std::memory_order_relaxed); }

/// Starts a dump in a new folder below options.path, which is returned. A current dump is suspended until this one is
/// stopped. Throws Error io.
std::string start_dump(const DumpOptions& options);
/// Ends the current dump and resumes a suspended one; reports on standard error what was left out. Returns the ended
/// dump's folder. Throws Error invalid_argument when there is no dump; io when it has to be `whole` and a file of it
/// could not be written.
std::string stop_dump(bool whole = false);
/// At the first call in the process, starts the dump that CAIRN_DUMP describes (see parse_dump_options), until the
/// process ends. Throws Error.
void start_dump_from_environment();

/// Dumps one run of a model: constructed before the run, destroyed after it.
class RunDumper final : public Observer {
 public:
  /// `host_step`: the host's number of the step that the run is part of; 0: the run is a step of its own. All calls are
  /// forwarded to `next`, which may be null.
  RunDumper(const Module& module, int64_t host_step, Observer* next = nullptr);
  ~RunDumper() override;
  RunDumper(const RunDumper&) = delete;

  bool needs_values() const override { return true; }
  void plan_begins(const Plan& plan) override;
  void step_begins(const Plan& plan, size_t step, void* const* buffers) override;
  void step_ends(const Plan& plan, size_t step, void* const* buffers) override;
  void step_fails(const Plan& plan, size_t step, const Error& fault) override;

 private:
  struct Item;  // one operator, to be written
  struct Open {
    void* const* buffers;
    std::unique_ptr<Item> item;  // null when the operator is not dumped
  };
  std::unique_ptr<Item> item_of(const Plan& plan, size_t step) const;
  void add_inputs(Item& item, const Plan& plan, size_t step, void* const* buffers, bool copied) const;
  void add_outputs(Item& item, const Plan& plan, size_t step, void* const* buffers) const;
  bool is_wanted(const PlannedStep& step) const;
  void add_rows(const Plan& plan, size_t step, void* const* buffers, bool inputs);
  bool begins_overflow(const Plan& plan, const PlannedStep& step, void* const* buffers) const;
  static std::string held_by(const Item& item);
  void tell_overflow(const Plan& plan, size_t step, void* const* buffers);
  void write(const Item& item);
  void write_arrays(const Item& item, uint64_t time);
  void write_file(const Item& item, uint64_t time);
  std::string manifest(const Item& item, const Origin& of, const char* kind, size_t index) const;

  std::shared_ptr<observe::Dump> dump_;  // null when it ended meanwhile
  const Module& module_;
  Observer* next_;
  const std::string* model_folder_ = nullptr;
  int64_t step_ = 0;
  bool wanted_ = false;
  std::vector<Open> open_;
  const Plan* plan_ = nullptr;  // the plan of rows_
  const observe::StatisticsRows* rows_ = nullptr;
  std::vector<observe::StatisticsRow> statistics_;  // of this run
};

}  // namespace cairn
