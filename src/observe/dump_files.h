// The folder of a dump: paths of a step's files, writing them so that a crash leaves only complete ones, and the
// budget.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "observe/dump_options.h"
#include "observe/statistics_rows.h"
#include "support/files.h"

namespace cairn::observe {

class Dump {
 public:
  /// Makes the folder. Throws Error io.
  explicit Dump(const DumpOptions& options);
  ~Dump();

  struct Place {
    const std::string* model;  // {root}/{model}/{model_id}; as long as the dump
    int64_t step;              // data_index

    std::string folder() const { return fmt::format("{}/{}", *model, step); }
  };
  /// The place for a run of the model in the host's step; all runs of one host step share a place.
  Place place(const std::string& model, int64_t host_step);
  /// The prepared rows of a plan; made at its first run.
  const StatisticsRows& statistics_rows(const Plan& plan, const Module& module);
  const std::vector<StepNames>& names(const Plan& plan, const Module& module);
  std::string exception_folder() const;
  /// Called when a plan runs: records which of the requested operators it contains.
  void see(const Plan& plan, const Module& module);
  /// The requested layers that have not run.
  std::vector<std::string> layers_not_seen();

  /// Writes `folder`/`name` atomically and adds its name with `manifest` (JSON without braces) to the folder's
  /// manifest. Returns false when the budget is used up or the disk fails, which is reported once.
  bool write(const std::string& folder, const std::string& name, size_t bytes, const std::string& manifest,
             const std::function<void(const FileSink& sink)>& content);
  /// Appends rows to the statistics in `folder`, the folder of a model; a thread of the dump writes them, or this one
  /// if too many are waiting.
  void add_rows(const std::string& folder, std::vector<StatisticsRow> rows);
  /// An empty list that reuses the memory of earlier rows.
  std::vector<StatisticsRow> take_rows();
  /// Called before and after a fork, see OnInProcess.
  void hold();
  void release();
  /// Microseconds since 1970; every call returns another value.
  uint64_t next_time();

  const DumpOptions options;
  const std::string& root() const { return root_; }
  /// "12 files (3 MB) in FOLDER", and a remark on what was left out.
  std::string summary();
  /// Whether a file of it could not be written.
  bool failed() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

 private:
  void write_loop();
  void write_rows();
  void append(const std::string& path, const std::string& lines);
  bool admit(size_t bytes);
  void refuse(const std::string& path, const std::string& why);
  bool create(const std::string& folder);
  void flush();

  struct Model {
    std::string path;
    int64_t host_step, index;
  };
  std::string root_;
  std::mutex mutex_;
  std::map<std::string, Model> models_;                                 // by the name of the folder
  std::unordered_map<std::string, Model*> known_as_;                    // by the model's name
  std::unordered_map<uint32_t, std::unique_ptr<StatisticsRows>> rows_;  // by the plan's serial
  std::unordered_map<uint32_t, std::vector<StepNames>> names_;          // by the plan's serial
  std::map<std::string, std::string> waiting_;                          // buffered lines, by file
  std::atomic<uint64_t> time_{0};
  uint64_t bytes_ = 0, flushed_ = 0;
  size_t files_ = 0, dropped_ = 0;
  bool refused_ = false;
  std::unordered_set<uint32_t> seen_plans_;      // by serial; only if layers were requested
  std::unordered_set<std::string> seen_layers_;  // operators of those plans

  struct Batch {
    const std::string* folder;
    std::vector<StatisticsRow> rows;
  };
  std::mutex batches_mutex_, write_mutex_;  // the second is held while batches are written, to keep their order
  std::condition_variable wake_;
  std::vector<Batch> batches_;
  std::vector<std::vector<StatisticsRow>> spare_;  // empty lists for reuse
  size_t rows_waiting_ = 0;
  bool closing_ = false;
  std::thread writer_;  // started with the first rows
};

}  // namespace cairn::observe
