// The recording that is on: lanes, one per thread, that records are put into, and the thread that writes them out.
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

constexpr uint32_t kRunsTogether = 1024;  // a lane takes so many numbers of runs at once

/// Records of one thread, times in ticks; that thread fills, the writer's thread empties.
struct Chunk {
  static constexpr uint32_t kRecords = 4096;
  std::atomic<uint32_t> filled{0};
  uint32_t written = 0;  // the writer's
  Record records[kRecords];
};

class Recording;

/// What one thread puts its records into.
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
  /// A number that no other run of the recording has.
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
  std::vector<OpenRange> ranges;       // of the user's, that have begun
  std::unordered_set<uint32_t> plans;  // that this thread knows to be described
  uint32_t last_plan = 0;              // of them
  int runs = 0;                        // that use it now
  std::unique_ptr<Counters> counters;  // at the level counters

 private:
  friend class Recording;
  void change_chunk();
  Recording& recording_;
  Chunk* chunk_;
  uint32_t run_ = 0;  // the next one; a multiple of kRunsTogether: there is none left
};

class Recording {
 public:
  /// Makes the folder and the file. Throws Error io.
  explicit Recording(const ProfileOptions& options);
  ~Recording();
  /// Writes what is left and ends the file; throws Error io when something could not be written.
  void close();
  /// Around a fork, see OnInProcess.
  void hold();
  void release();

  /// A lane that no running thread has; give it back when the thread ends.
  Lane* take_lane();
  void give_lane(Lane* lane);
  void describe(const Plan& plan, const Module& module, uint32_t serial);
  /// What ranges of this name have as their `step`.
  uint32_t name_range(const std::string& name);
  /// The first of kRunsTogether numbers that nothing else has.
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

  std::mutex writing_;  // held while the files change; taken before the other
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Chunk*> full_, free_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;  // of threads that ended
  std::vector<std::pair<ChunkKind, std::string>> descriptions_;
  std::unordered_map<std::string, uint32_t> range_names_;
  std::unordered_set<uint32_t> described_;
  std::unordered_map<const Module*, std::pair<std::string, uint32_t>> models_;
  uint32_t last_model_ = 0;

  // The writer's, like the rest. Under a limit records go to files of their own, of which the oldest is given up.
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
};

uint32_t Lane::next_run() {
  if (run_ % kRunsTogether == 0) run_ = recording_.take_runs();
  return run_++;
}

}  // namespace cairn::observe
