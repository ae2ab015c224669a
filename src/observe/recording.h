// The current recording: lanes, one per thread, that collect records, and the thread that writes them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "observe/counters.h"
#include "observe/event_file.h"
#include "observe/profile_options.h"
#include "observe/ticks.h"
#include "plan/plan.h"

namespace cairn::observe {

constexpr uint32_t kRunsTogether = 1024;  // run numbers that a lane reserves at once

/// Records of one thread, with times in ticks; filled by that thread, emptied by the writer thread.
struct Chunk {
  static constexpr uint32_t kRecords = 4096;
  std::atomic<uint32_t> filled{0};
  uint32_t written = 0;  // used by the writer thread only
  Record records[kRecords];
};

class Recording;

/// Collects the records of one thread.
class Lane {
 public:
  Lane(Recording& recording, uint16_t thread);
  void add(Record record) {
    uint32_t at = chunk_->filled.load(std::memory_order_relaxed);
    if (at == Chunk::kRecords) {
      change_chunk();
      at = 0;
    }
    record.thread = thread;
    chunk_->records[at] = record;
    chunk_->filled.store(at + 1, std::memory_order_release);
  }

  Recording& recording() const { return recording_; }
  /// A run number that is unique in the recording.
  inline uint32_t next_run();
  void begin_range(const std::string& name);
  void end_range();  // the last of `ranges`

  struct Open {
    int64_t begin;       // ticks
    uint64_t counts[4];  // at the level counters
  };
  struct OpenRange {
    uint32_t name;
    int64_t begin;  // ticks
  };
  const uint16_t thread;
  std::vector<Open> open;              // steps that have begun
  std::vector<OpenRange> ranges;       // the user's ranges that have begun
  std::unordered_set<uint32_t> plans;  // plans that this thread knows to be described
  uint32_t last_plan = 0;              // the one used last
  int runs = 0;                        // number of runs that use the lane now
  std::unique_ptr<Counters> counters;  // at the level counters

 private:
  friend class Recording;
  void change_chunk();
  Recording& recording_;
  Chunk* chunk_;
  uint32_t run_ = 0;  // the next number; a multiple of kRunsTogether: none is left
};

class Recording {
 public:
  /// Makes the folder and the file. Throws Error io.
  explicit Recording(const ProfileOptions& options);
  ~Recording();
  /// Writes buffered records and ends the file; throws Error io when something could not be written.
  void close();
  /// Called before and after a fork, see OnInProcess.
  void hold();
  void release();

  /// A lane that no running thread uses; return it when the thread ends.
  Lane* take_lane();
  void give_lane(Lane* lane);
  void describe(const Plan& plan, const Module& module, uint32_t serial);
  /// The number of the range name, which is the `step` of its records.
  uint32_t name_range(const std::string& name);
  /// Reserves kRunsTogether run numbers; returns the first.
  uint32_t take_runs() { return runs_.fetch_add(kRunsTogether, std::memory_order_relaxed); }
  ProfileLevel level() const { return level_.load(std::memory_order_relaxed); }
  void raise(ProfileLevel level);
  const std::string& folder() const { return folder_; }

 private:
  friend class Lane;
  Chunk* exchange(Chunk* full);
  void write_loop();
  void flush();
  void put(FILE* file, ChunkKind kind, std::string_view content, uint32_t count = 0);
  void put_records(const Record* records, size_t count);
  std::string session_json(const ProfileOptions& options);

  std::string folder_;
  std::atomic<ProfileLevel> level_;
  std::atomic<uint32_t> runs_{0};
  const uint64_t limit_;

  std::mutex writing_;  // held while the files change; locked before the other mutex
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Chunk*> full_, free_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;  // lanes of threads that ended
  std::vector<std::pair<ChunkKind, std::string>> descriptions_;
  std::unordered_map<std::string, uint32_t> range_names_;
  std::unordered_set<uint32_t> described_;
  std::unordered_map<const Module*, std::pair<std::string, uint32_t>> models_;
  uint32_t last_model_ = 0;

  // Used by the writer only, like the members below. With a storage limit, records go to part files, of which the
  // oldest is dropped.
  struct Part {
    std::string path;
    uint64_t bytes = 0, records = 0;
  };
  void next_part();
  TickClock clock_;
  RecordPacker packer_;
  FILE* file_ = nullptr;
  FILE* part_ = nullptr;
  std::deque<Part> parts_;  // the last is written to
  uint64_t records_ = 0, dropped_ = 0, part_count_ = 0;
  int error_ = 0;
  std::thread writer_;
  bool alone_ = false;  // no thread could be started
};

uint32_t Lane::next_run() {
  if (run_ % kRunsTogether == 0) run_ = recording_.take_runs();
  return run_++;
}

}  // namespace cairn::observe
