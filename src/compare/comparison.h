// Compares two dump trees: pairs their steps, operators and tensors, brings both to one layout, measures, and judges.
#pragma once

#include <bitset>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/mapping.h"
#include "compare/tree.h"
#include "judge/diagnosis.h"
#include "judge/metrics.h"
#include "judge/verdict.h"
#include "support/executor.h"

namespace cairn::compare {

using judge::as_floats;
using judge::Diagnosis;
using judge::kMetrics;
using judge::Metric;
using judge::Metrics;
using judge::Verdict;

struct Thresholds {
  double cosine = 0.99;              // at least
  double relative_euclidean = 0.05;  // at most
};

struct CompareOptions {
  Thresholds thresholds;
  int64_t limit = -1;                        // compare at most so many leading elements
  int mine_version = 0, golden_version = 0;  // of DumpData; 0 finds out
  bool only_names = false;                   // pair, do not measure
  std::optional<std::string> only_op;        // one operator of mine
  /// First and last operator in the order of execution, from 1, and the step between them; last 0: to the end.
  size_t first = 1, last = 0, every = 1;
  std::vector<size_t> selected;  // places in the order of execution; empty: by the range
  std::function<void(size_t done, size_t total)> progress;
};

/// One tensor, or an operator that only one side has ("*" on the other).
struct Row {
  std::optional<int64_t> step;  // when the trees hold several
  size_t sequence = 0;          // of the operator, from 1
  std::string op_type, mine = "*", golden = "*";
  std::string mine_type, golden_type;  // dtypes
  int64_t mine_address = 0, golden_address = 0;
  bool has_tensor = false;  // of mine
  bool input = false;
  int index = 0;
  std::vector<int64_t> dims;
  std::optional<bool> overflow;  // f16 only
  Metrics metrics;
  std::optional<Diagnosis> diagnosis;
  double bound = 0;  // largest error that this kind of operator may make by itself; 0: not known
  Verdict verdict = Verdict::none;
  std::string reason;    // CompareFailReason: why nothing was measured, or cosine's note
  std::string finding;   // what is odd, in words
  std::string location;  // of the script
  std::string mine_path, golden_path;

  std::string tensor_name() const;  // "conv1:output:0", "*" without a tensor
};

struct Comparison {
  std::string mine, golden;
  std::vector<Row> rows;  // in the order of execution
  size_t other_files = 0;
  std::vector<std::string> overflow_files;

  size_t count(Verdict verdict) const;
  /// The first failing output whose operator's compared inputs all pass; else the first failing row; none: nullptr.
  const Row* first_suspect() const;
};

/// `mapping` names the framework's operators behind mine, `golden_mapping` those behind golden (a compiled model too).
/// Throws Error: a tree cannot be read, or their steps cannot be paired.
Comparison compare_trees(const DumpTree& mine, const DumpTree& golden, const OpMapping& mapping,
                         const OpMapping& golden_mapping, const CompareOptions& options, Executor& executor);

/// The tensors of one output or input of `op`, mine in the form of the reference's. Throws Error not_found with what there
/// is, or why they cannot be brought together.
struct TensorPair {
  Tensor mine, golden;
};
TensorPair load_pair(const DumpTree& mine, const DumpTree& golden, const OpMapping& mapping,
                     const OpMapping& golden_mapping, const CompareOptions& options, const std::string& op, bool input,
                     int index);

/// "FP16 Overflow", "Input Inconsistent" or "Global Consistency", and what it says; the first that holds.
struct Advice {
  std::string kind, text;
};
Advice advise(const Comparison& comparison);

}  // namespace cairn::compare
