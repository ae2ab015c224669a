// A recording as it was written to a PROF_* folder, read back: what ran (plans with their steps) and when (records).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/event_file.h"

namespace cairn::profile {

struct SourceNode {
  std::string name, op, location;  // "conv1/Conv2D", "Conv2D", "train.py:41" or empty
};

struct Tensors {
  std::string shapes, types, formats;  // "1,3,224,224;64", as the platform's tables write them
};

/// A result of an earlier step that a step takes.
struct Need {
  uint32_t maker = 0;  // the step
  uint64_t bytes = 0;
  uint32_t buffer = 0;  // tells the results of one step apart
};

/// One step of a plan.
struct StepInfo {
  std::string name;    // first source node, else the operators
  std::string type;    // its type
  std::string kernel;  // "cpu/conv_brgemm 14x32"
  std::string kind;    // contraction, vector, control, copy, fallback
  std::string ops;     // ours: "conv2d+relu"
  std::vector<SourceNode> sources;
  Tensors inputs, outputs;
  bool dynamic = false, backward = false;
  double flops = 0, bytes = 0;
  uint64_t input_bytes = 0, output_bytes = 0, weight_bytes = 0, workspace_bytes = 0;
  std::vector<Need> needs;
  std::vector<uint64_t> updates;  // bytes of each state (weight, slot) that it gives new content
};

struct BufferInfo {
  std::string name;
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;  // steps that need it
};

struct PlanInfo {
  uint32_t serial = 0, model = 0;
  std::string id, name;  // of the plan, of the model
  uint64_t arena_bytes = 0;
  std::vector<StepInfo> steps;
  std::vector<BufferInfo> buffers;
};

struct SessionInfo {
  int64_t pid = 0, threads = 0, monotonic_ns = 0, real_ns = 0;
  int64_t rank = -1, ranks = 1;  // of the job, where the process is part of one
  std::string host, command, processor, level, fp_point, bp_point;
  std::string counters;     // why the processor's counters are missing
  double step_cost_ns = 0;  // of one recorded step
};

/// What one operation of a data pipeline did.
struct DataOperation {
  std::string operation, where;  // "map", "train.py:12" or empty
  int64_t rows = 0;
  double busy_s = 0, waited_s = 0;  // in the workers; for its rows, of what takes them
  double queue = 0, ahead = 0;      // rows or batches that lay ready on average, and how many might
};

/// An iterator over a data pipeline; the operations from the sources on.
struct DataPipeline {
  double seconds = 0;
  int64_t workers = 0;
  std::vector<DataOperation> operations;
};

struct Recording {
  std::string folder, time;  // "20240131120000123", from the folder's name
  SessionInfo session;
  std::vector<PlanInfo> plans;
  std::vector<Record> runs, host_steps, ops,
      counts;                  // `plan` is an index into plans; ops ordered by begin, outer first
  std::vector<Record> ranges;  // of the user's, in the same order; `step` is an index into range_names
  std::vector<std::string> range_names;
  std::vector<DataPipeline> pipelines;
  uint64_t dropped = 0;
  std::string remark;  // what is missing from the file, empty when nothing
};

/// Reads a PROF_* folder. Throws Error not_found, io, invalid_model; a file that was cut off is read as far as it goes.
Recording read_recording(const std::string& folder);
/// In a recording's folder; written by cairn.data.
inline constexpr const char* kDataPipelines = "host/data/data_pipelines.json";
/// None where the file is not there. Throws Error io.
std::vector<DataPipeline> read_data_pipelines(const std::string& folder);
/// The PROF_* folders at or directly below `folder`, oldest first. Throws Error not_found when there is none.
std::vector<std::string> find_recordings(const std::string& folder);

}  // namespace cairn::profile
