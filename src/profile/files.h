// The files made of a recording, one function each; `path` is replaced.
#pragma once

#include <string>

#include "profile/analysis.h"

namespace cairn::profile {

/// Executions of steps in op_summary and task_time; of longer recordings the first. The database and Perfetto have all.
inline constexpr size_t kMostRows = 1000000;

/// The platform's tables, into `folder`, with `suffix` after their names ("op_summary" + suffix).
void write_tables(const Recording& recording, const Analysis& analysis, const std::string& folder,
                  const std::string& suffix);
void write_op_summary(const Recording& recording, const Analysis& analysis, const std::string& path);
void write_task_time(const Recording& recording, const Analysis& analysis, const std::string& path);
/// A timeline for chrome://tracing and Perfetto: whole iterations, the first so many steps.
void write_chrome(const Recording& recording, const Analysis& analysis, const Tracks& tracks, const std::string& path);
void write_step_trace_timeline(const Recording& recording, const Analysis& analysis, const std::string& path);
/// The whole timeline in Perfetto's own format.
void write_perfetto(const Recording& recording, const Analysis& analysis, const std::string& path);
void write_database(const Recording& recording, const Analysis& analysis, const std::string& path);
void write_page(const Recording& recording, const Analysis& analysis, const Machine& machine, const std::string& path);

/// No file where there is no pipeline.
void write_data_pipelines(const Recording& recording, const std::string& path);

/// Task Type of a step's kind: AI_CORE, AI_VECTOR_CORE, AI_CPU.
const char* task_type(const StepInfo& step);
/// CLOCK_MONOTONIC ns as ns since 1970.
inline int64_t real_time(const Recording& recording, int64_t ns) {
  return ns - recording.session.monotonic_ns + recording.session.real_ns;
}

}  // namespace cairn::profile
