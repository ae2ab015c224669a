// A recording becomes its tree of files: tables, timelines, database and page.
#pragma once

#include <string>

#include "profile/analysis.h"

namespace cairn::profile {

/// Some iterations of one model, by its Model ID.
struct Selection {
  uint32_t model = 0;  // kMainModel: the one that trains, or takes the most time
  uint32_t first = 1, count = 1;
};
inline constexpr uint32_t kMainModel = UINT32_MAX;

struct ExportOptions {
  bool tables = true, timelines = true, database = true, page = true;
  Tracks tracks;
  std::optional<Selection> only;  // all, when not set
};

struct Exported {
  Recording recording;
  Analysis analysis;
  Machine machine;
  std::string page;      // its path
  std::string left_out;  // which tables do not hold everything; empty: all do
};

/// Reads the recording in `folder` (PROF_*) and writes mindstudio_profiler_output/, msprof_*.db and index.html into it.
/// The machine is measured once, when it is the one that recorded. Throws Error, not_found for a selection of nothing.
Exported export_recording(const std::string& folder, const ExportOptions& options = {});

}  // namespace cairn::profile
