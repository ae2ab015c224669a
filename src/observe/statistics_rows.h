// Rows of a statistics dump: what a row says of a step besides numbers is made once a plan, and its text later, so that a
// run pays little more than the look at the values.
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

/// Whether the options ask for the step: an operator, of the layers that are named if some are.
bool is_wanted(const PlannedStep& step, const Module& module, const DumpOptions& options);

struct StatisticsRow;

class StatisticsRows {
 public:
  StatisticsRows(const Plan& plan, const Module& module, const DumpOptions& options);
  /// Adds a row for each value of step `step` that is looked at before (inputs) or after it.
  void add(std::vector<StatisticsRow>& rows, size_t step, bool inputs, const Plan& plan, void* const* buffers,
           int64_t data_index, uint64_t time) const;
  bool has(size_t step, bool inputs) const { return !(inputs ? steps_[step].inputs : steps_[step].outputs).empty(); }

  struct Value {
    size_t buffer;
    std::string operation;  // "Relu,net/relu,3,0,"
    std::string place;      // "output,0,"
    std::string type;       // "1024,f32,\"(4,64)\",", empty: of each run its own
    size_t floats;          // so many f32 lie in the buffer itself; 0: ask tensor_at
  };

 private:
  struct Step {
    std::vector<Value> inputs, outputs;
  };
  std::vector<Step> steps_;
};

/// One value that was looked at.
struct StatisticsRow {
  const StatisticsRows::Value* value;
  std::unique_ptr<std::string> type;  // where the value has none
  int64_t data_index;
  uint64_t time;
  bool narrow;  // a float of at most 32 bits
  Statistics statistics;
};
/// Adds its line.
void write_row(const StatisticsRow& row, std::string& text);

}  // namespace cairn::observe
