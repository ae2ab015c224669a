// The interface of script migration: what to migrate and how, what was found, what was changed. Commands and reports stand
// on this header; rules and parsing lie behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "migrate/edits.h"
#include "support/report.h"

namespace cairn::migrate {

/// What scripts are migrated to: TensorFlow scripts for the Ascend platform, or PyTorch scripts to MindSpore.
enum class Target : uint8_t { ascend, mindspore };

enum class Distribution : uint8_t { automatic, none, horovod, tf_strategy };

/// The interface of TensorFlow that a script is written for, by its own imports and uses. Both: it runs under either, or it
/// asks which one it has.
enum class Generation : uint8_t { none, tf1, tf2, both };

/// How scripts are migrated. The same names are the keys of the configuration file and, with -- and hyphens, the options.
struct Options {
  Target to = Target::ascend;
  int tf = 0;  // 1 or 2: the interface generation of all scripts; 0: detected for each
  Distribution distributed = Distribution::automatic;
  std::string main;              // entry script relative to the root; "": detected
  bool platform = false;         // also the rewrites that only the Ascend hardware needs
  bool safe_only = false;        // leave out edits of tier review
  bool npu_estimator = false;    // NPUEstimator and NPURunConfig instead of wrappers
  bool control_flow_v2 = false;  // switch v1 control flow to v2 after the TensorFlow import
  std::string precision_mode;    // templates people add by hand; "" and 0 leave them out
  int iterations_per_loop = 0;
  std::string loss_scale;  // "dynamic" or a number
  std::string dump_path;
  std::string profiling_options;
  std::vector<std::string> disable, enable;   // rule ids
  std::vector<std::string> include, exclude;  // globs over relative paths
  int jobs = 0;                               // threads; 0: all processors
  uint64_t max_file_bytes = 10u << 20;        // larger files are reported and left
  bool recorded = false;  // PyTorch's gradients by recorded calls: set where no function of a loss can be written
};

/// Something a person should know, at a place.
struct Finding {
  std::string rule;
  Severity severity = Severity::note;
  std::string path;
  uint32_t line = 0, column = 0;  // from 1, bytes; 0 for a whole file
  uint32_t end_line = 0, end_column = 0;
  std::string message;  // what
  std::string advice;   // the way out
  bool suppressed = false;
};

/// One rewritten spot of the old text.
struct AppliedChange {
  Change change;
  uint32_t line, column;
  std::string old_text, new_text;  // the lines it touches, before and after (of this change alone)
};

/// One use of a framework's name.
struct Reference {
  uint32_t line, column;
  std::string name;           // canonical
  std::string_view use;       // call, value, base, decorator, import
  std::string_view status;    // runs on the engine, migrated, needs hand work, missing, unknown ...
  std::string_view platform;  // the platform's class
  std::string advice;
};

enum class FileState : uint8_t { unchanged, changed, copied, failed };

struct FileResult {
  std::string path;
  FileState state = FileState::copied;  // copied: not a script, or one that names no framework
  std::string before, after;            // empty unless the file is a script that was read
  std::vector<AppliedChange> changes;
  std::vector<Finding> findings;
  std::vector<Reference> references;
  std::vector<Edit> edits;  // before -> after, sorted
  uint32_t lines = 0;
  Generation generation = Generation::none;
  int tf = 0;  // the interface whose rules were applied; 0: none, because TensorFlow is not used
  bool entry = false;
};

struct Result {
  std::vector<FileResult> files;  // sorted by path
  std::vector<Finding> findings;  // about the run as a whole; their path is ""
  Target to = Target::ascend;
  int tf = 1;  // of most scripts
  Distribution distributed = Distribution::none;
  std::vector<std::string> entries;
  uint64_t lines = 0;
  double seconds = 0;

  size_t changed() const;
  size_t failed() const;
  /// 0 to 100: share of framework references that run or were migrated.
  int readiness() const;
};

/// A file handed in: its path relative to the root, and its bytes or why they cannot be had.
struct Input {
  std::string path;
  std::string text;
  std::string problem;
};

/// Migrates these files as one project. Never throws for what a file holds.
Result migrate(std::vector<Input> inputs, const Options& options);

/// Migrates one script's text (tests, editors): its result with the path "script.py".
FileResult migrate_text(std::string text, const Options& options = {});

}  // namespace cairn::migrate
