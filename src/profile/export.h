// A recording becomes its tree of files: tables, timelines, database and page.
#pragma once

#include <string>

#include "profile/analysis.h"

namespace cairn::profile {

struct ExportOptions {
  bool tables = true, timelines = true, database = true, page = true;
};

struct Exported {
  Recording recording;
  Analysis analysis;
  Machine machine;
  std::string page;      // its path
  std::string left_out;  // which tables do not hold everything; empty: all do
};

/// Reads the recording in `folder` (PROF_*) and writes mindstudio_profiler_output/, msprof_*.db and index.html into it.
/// The machine is measured once, when it is the one that recorded. Throws Error.
Exported export_recording(const std::string& folder, const ExportOptions& options = {});

}  // namespace cairn::profile
