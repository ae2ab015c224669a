// Rows of a statistics dump. The constant part of a row is made once per plan and its text is formatted later, so that
// a run does little more than compute the statistics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "observe/dump_options.h"
#include "observe/statistics.h"
#include "observe/value_names.h"

namespace cairn::observe {

inline constexpr const char* kStatisticsFile = "statistic.csv";
inline constexpr const char* kStatisticsHead =
    "Step,Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,Avg Value,"
    "L2Norm Value,Count,NaN Count,Negative Inf Count,Positive Inf Count,Zero Count\n";

/// Whether the options select the step: an operator, and one of the requested layers if there are any.
bool is_wanted(const PlannedStep& step, const Module& module, const DumpOptions& options);

struct StatisticsRow;

class StatisticsRows {
 public:
  StatisticsRows(const Plan& plan, const Module& module, const DumpOptions& options);
  /// Adds a row for each value of step `step` that is dumped before it (`inputs`) or after it.
  void add(std::vector<StatisticsRow>& rows, size_t step, bool inputs, const Plan& plan, void* const* buffers,
           int64_t data_index, uint64_t time) const;
  bool has(size_t step, bool inputs) const { return !(inputs ? steps_[step].inputs : steps_[step].outputs).empty(); }

  struct Value {
    size_t buffer;
    std::string operation;  // "Relu,net/relu,3,0,"
    std::string place;      // "output,0,"
    std::string type;       // "1024,f32,\"(4,64)\","; empty when it depends on the run
    size_t floats;          // number of f32 elements in the buffer; 0: use tensor_at
  };

 private:
  struct Step {
    std::vector<Value> inputs, outputs;
  };
  std::vector<Step> steps_;
};

/// The row of one value.
struct StatisticsRow {
  const StatisticsRows::Value* value;
  std::unique_ptr<std::string> type;  // if the type depends on the run
  int64_t data_index;
  uint64_t time;
  bool narrow;  // a float of at most 32 bits
  Statistics statistics;
};
/// Adds its line.
void write_row(const StatisticsRow& row, std::string& text);

}  // namespace cairn::observe
