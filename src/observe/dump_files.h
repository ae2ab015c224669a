// The folder of a dump: where the files of a step go, how one is written so that a crash leaves only whole ones, the budget.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "observe/dump_options.h"
#include "support/files.h"

namespace cairn::observe {

class Dump {
 public:
  /// Makes the folder. Throws Error io.
  explicit Dump(const DumpOptions& options);
  ~Dump();

  struct Place {
    std::string folder;  // {root}/{model}/{model_id}/{data_index}
    std::string model;   // {root}/{model}/{model_id}
    int64_t step;        // data_index
  };
  /// Of a run of the model that is part of the host's step; runs of one host step share a place.
  Place place(const std::string& model, int64_t host_step);
  std::string exception_folder() const;

  /// Writes `folder`/`name` as a whole and adds `manifest` (JSON without its braces) behind its name to the folder's
  /// manifest. False when the budget is spent or the disk refuses, which is said once.
  bool write(const std::string& folder, const std::string& name, size_t bytes, const std::string& manifest,
             const std::function<void(const FileSink& sink)>& content);
  /// Lines at the end of `folder`/`name`, which starts with `head`; written when many wait, twice a second, and at the end.
  void append(const std::string& folder, const std::string& name, const std::string& head, const std::string& lines);
  /// Microseconds since 1970, each value once.
  uint64_t next_time();

  const DumpOptions options;
  const std::string& root() const { return root_; }
  /// "12 files (3 MB) in FOLDER", and what was left out.
  std::string summary();

 private:
  bool admit(size_t bytes);
  void refuse(const std::string& path, const std::string& why);
  bool create(const std::string& folder);
  void flush();

  struct Model {
    size_t id;
    int64_t host_step, index;
  };
  std::string root_;
  std::mutex mutex_;
  std::map<std::string, Model> models_;
  std::map<std::string, std::string> waiting_;  // lines, by file
  uint64_t time_ = 0, bytes_ = 0, flushed_ = 0;
  size_t files_ = 0, dropped_ = 0;
  bool refused_ = false;
};

}  // namespace cairn::observe
