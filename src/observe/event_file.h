// The file that a recording is written to while the program runs: chunks with a checksum each, so that after a crash
// everything up to the last whole chunk can be read.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace cairn {

inline constexpr char kEventMagic[8] = {'C', 'A', 'I', 'R', 'N', 'E', 'V', 'T'};
inline constexpr uint32_t kEventVersion = 1;
/// Where it lies in a PROF_* folder.
inline constexpr const char* kEventPath = "host/data/cairn.events";

/// Under a limit records lie in parts beside it, of which only the last are kept; each opens with the header as well.
inline std::string event_part(const std::string& folder, uint64_t number) {
  return fmt::format("{}/{}.{:09}", folder, kEventPath, number);
}

/// The file opens with it; numbers are little-endian.
struct EventHeader {
  char magic[8];
  uint32_t version;
  uint32_t record_bytes;  // sizeof(Record)
};

/// session: JSON, once, first. plan: JSON, before the first record of the plan. records: Records. end: JSON, when the
/// recording was stopped in order.
enum class ChunkKind : uint32_t { session = 1, plan = 2, records = 3, end = 4 };

struct ChunkHeader {
  uint32_t kind;
  uint32_t bytes;  // that follow
  uint32_t crc;    // crc32c of them
  uint32_t reserved;
};

/// run: one run of a model, `plan` its first plan. host_step: the host's step id of a run, in begin_ns. op: step `step`
/// of plan `plan`. cycles: of the op before it, cycles in begin_ns and instructions in end_ns. cache: the same with
/// references and misses of the last-level cache.
enum class RecordKind : uint8_t { run = 1, host_step = 2, op = 3, cycles = 4, cache = 5 };

struct Record {
  int64_t begin_ns;  // CLOCK_MONOTONIC
  int64_t end_ns;
  uint32_t plan;
  uint32_t step;
  uint32_t run;
  uint16_t thread;
  RecordKind kind;
  uint8_t reserved;
};
static_assert(sizeof(Record) == 32);

}  // namespace cairn
