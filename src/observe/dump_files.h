// The folder of a dump: where the files of a step go, how one is written so that a crash leaves only whole ones, the budget.
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
  /// Of a run of the model that is part of the host's step; runs of one host step share a place.
  Place place(const std::string& model, int64_t host_step);
  /// Made at the plan's first run.
  const StatisticsRows& statistics_rows(const Plan& plan, const Module& module);
  const std::vector<StepNames>& names(const Plan& plan, const Module& module);
  std::string exception_folder() const;
  /// The plan runs: which of the operators asked for it holds.
  void see(const Plan& plan, const Module& module);
  /// What was asked for and did not run.
  std::vector<std::string> layers_not_seen();

  /// Writes `folder`/`name` as a whole and adds `manifest` (JSON without its braces) behind its name to the folder's
  /// manifest. False when the budget is spent or the disk refuses, which is said once.
  bool write(const std::string& folder, const std::string& name, size_t bytes, const std::string& manifest,
             const std::function<void(const FileSink& sink)>& content);
  /// At the end of the statistics in `folder`, which must be a model's; written by a thread of the dump, or by this one when
  /// too many wait.
  void add_rows(const std::string& folder, std::vector<StatisticsRow> rows);
  /// None, in memory that earlier rows had.
  std::vector<StatisticsRow> take_rows();
  /// Around a fork, see OnInProcess.
  void hold();
  void release();
  /// Microseconds since 1970, each value once.
  uint64_t next_time();

  const DumpOptions options;
  const std::string& root() const { return root_; }
  /// "12 files (3 MB) in FOLDER", and what was left out.
  std::string summary();

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
  std::map<std::string, std::string> waiting_;                          // lines, by file
  std::atomic<uint64_t> time_{0};
  uint64_t bytes_ = 0, flushed_ = 0;
  size_t files_ = 0, dropped_ = 0;
  bool refused_ = false;
  std::unordered_set<uint32_t> seen_plans_;      // by serial, while layers are asked for
  std::unordered_set<std::string> seen_layers_;  // operators of those plans

  struct Batch {
    const std::string* folder;
    std::vector<StatisticsRow> rows;
  };
  std::mutex batches_mutex_, write_mutex_;  // the second is held while batches are written, which keeps their order
  std::condition_variable wake_;
  std::vector<Batch> batches_;
  std::vector<std::vector<StatisticsRow>> spare_;  // empty
  size_t rows_waiting_ = 0;
  bool closing_ = false;
  std::thread writer_;  // once there are rows
};

}  // namespace cairn::observe
