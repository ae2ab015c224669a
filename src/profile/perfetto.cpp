// The timeline in Perfetto's protobuf format: tracks, interned names, times of CLOCK_MONOTONIC tied to the wall clock.
#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <set>

#include "profile/files.h"
#include "profile/job.h"
#include "profile/writer.h"

namespace cairn::profile {
namespace {

using protozero::pbf_writer;

// Field numbers of perfetto.protos; the names there are in the comments.
namespace field {
constexpr uint32_t packet = 1;                                                    // Trace
constexpr uint32_t clock_snapshot = 6, timestamp = 8, sequence = 10, event = 11;  // TracePacket
constexpr uint32_t interned = 12, sequence_flags = 13, clock = 58, defaults = 59, track = 60;
}  // namespace field

constexpr uint32_t kClockMonotonic = 3, kClockReal = 1;
constexpr uint32_t kCleared = 1, kNeeds = 2;  // SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE
constexpr uint64_t kProcess = 1, kMemory = 2, kCommunication = 3, kFirstThread = 1000, kFirstModel = 100000,
                   kFirstRange = 1ull << 40;
enum EventType : int32_t { kBegin = 1, kEnd = 2, kCounter = 4 };

/// Where a recording stands in a trace: alone, or as one rank of a job.
struct Part {
  uint32_t number = 0;  // from 0, in the trace
  int64_t pid = 0, shift = 0;
  std::string name = "Cairn";
  const std::vector<Exchange>* exchanges = nullptr;  // in the order of the recording's collectives
};

class Trace {
 public:
  Trace(const Recording& recording, const Analysis& analysis, Writer& file, Part part)
      : recording_(recording), analysis_(analysis), file_(file), part_(std::move(part)), sequence_(part_.number + 1),
        first_track_(uint64_t{part_.number} << 44) {}

  void write() {
    if (part_.number == 0) write_clocks();
    write_names();
    write_tracks();
    write_runs_and_ops();
    write_ranges();
    write_iterations();
    write_memory();
  }

 private:
  void put(const std::string& body) {
    std::string head;
    pbf_writer(head).add_bytes(field::packet, body);
    file_.text(head);
  }

  void write_clocks() {
    std::string body;
    pbf_writer packet(body);
    std::string snapshot;
    pbf_writer clocks(snapshot);
    auto add = [&](uint32_t id, int64_t time) {
      std::string one;
      pbf_writer entry(one);
      entry.add_uint32(1, id);
      entry.add_uint64(2, static_cast<uint64_t>(time));
      clocks.add_message(1, one);
    };
    add(kClockMonotonic, recording_.session.monotonic_ns);
    add(kClockReal, recording_.session.real_ns);
    clocks.add_enum(2, kClockMonotonic);  // primary_trace_clock
    packet.add_uint64(field::timestamp, static_cast<uint64_t>(recording_.session.monotonic_ns));
    packet.add_uint32(field::clock, kClockMonotonic);
    packet.add_uint32(field::sequence, sequence_);
    packet.add_message(field::clock_snapshot, snapshot);
    put(body);
  }

  uint64_t intern(const std::string& name) {
    auto [entry, fresh] = names_.try_emplace(name, names_.size() + 1);
    if (fresh) order_.push_back(&entry->first);
    return entry->second;
  }

  /// All names at once, in the packet that starts the sequence's state.
  void write_names() {
    for (const PlanInfo& plan : recording_.plans) {
      auto& list = step_names_.emplace_back();
      for (const StepInfo& step : plan.steps) list.push_back(intern(step.name));
      run_names_.push_back(intern("run " + plan.name));
    }
    for (const std::string& name : recording_.range_names) range_names_.push_back(intern(name));
    for (const char* name : {"iteration", "FP to BP", "refresh", "data"}) intern(name);
    std::string body, list, fallback;
    pbf_writer interned(list);
    uint64_t id = 0;
    for (const std::string* name : order_) {
      std::string one;
      pbf_writer entry(one);
      entry.add_uint64(1, ++id);
      entry.add_string(2, *name);
      interned.add_message(2, one);  // event_names
    }
    pbf_writer packet(body);
    packet.add_uint64(field::timestamp, static_cast<uint64_t>(recording_.session.monotonic_ns + part_.shift));
    packet.add_uint32(field::sequence, sequence_);
    packet.add_uint32(field::sequence_flags, kCleared);
    pbf_writer(fallback).add_uint32(field::clock, kClockMonotonic);
    packet.add_message(field::defaults, fallback);
    packet.add_message(field::interned, list);
    put(body);
  }

  void put_track(uint64_t id, uint64_t parent, const std::string& name, std::string_view more = {},
                 uint32_t more_field = 0) {
    std::string body, descriptor;
    pbf_writer track(descriptor);
    track.add_uint64(1, first_track_ + id);
    track.add_string(2, name);
    if (parent) track.add_uint64(5, first_track_ + parent);
    if (more_field) track.add_message(more_field, more.data(), more.size());
    pbf_writer packet(body);
    packet.add_uint32(field::sequence, sequence_);
    packet.add_message(field::track, descriptor);
    put(body);
  }

  void write_tracks() {
    std::string process;
    pbf_writer writer(process);
    writer.add_int32(1, static_cast<int32_t>(part_.pid ? part_.pid : recording_.session.pid));
    writer.add_string(6, part_.pid ? part_.name : recording_.session.command.substr(0, 100));
    put_track(kProcess, 0, part_.name, process, 3);
    std::vector<bool> used(size_t{UINT16_MAX} + 1);
    for (const auto* list : {&recording_.runs, &recording_.ops})
      for (const Record& record : *list) used[record.thread] = true;
    std::set<uint16_t> ranged;
    for (const Record& range : recording_.ranges) ranged.insert(range.thread);
    for (uint16_t thread : ranged) put_track(kFirstRange + thread, kProcess, fmt::format("ranges, thread {}", thread));
    for (size_t thread = 0; thread < used.size(); ++thread)
      if (used[thread]) put_track(kFirstThread + thread, kProcess, fmt::format("steps, thread {}", thread));
    std::map<uint32_t, bool> models;
    for (const Iteration& each : analysis_.iterations) models[each.model] = true;
    for (const auto& [model, any] : models)
      put_track(kFirstModel + model, kProcess, fmt::format("iterations, model {}", model));
    std::string counter;
    pbf_writer(counter).add_enum(3, 3);  // UNIT_SIZE_BYTES
    put_track(kMemory, kProcess, "memory in use", counter, 8);
    const bool exchanges =
        std::any_of(recording_.ops.begin(), recording_.ops.end(), [&](auto& op) { return communicates(op); });
    if (exchanges) put_track(kCommunication, kProcess, "communication");
  }

  /// Two of these a step: written by hand, as protozero's writer takes five times as long. Both lengths stay below 128.
  void put_event(int64_t time, EventType type, uint64_t track, uint64_t name = 0, int64_t value = 0) {
    constexpr size_t kHead = 2;  // tag and length of the packet, written last
    char bytes[96];
    char* at = bytes + kHead;
    auto varint = [&](uint32_t number, uint64_t content) {
      at += protozero::write_varint(at, uint64_t{number} << 3);
      at += protozero::write_varint(at, content);
    };
    varint(field::timestamp, static_cast<uint64_t>(time + part_.shift));
    varint(field::sequence, sequence_);
    varint(field::sequence_flags, kNeeds);
    *at++ = static_cast<char>(field::event << 3 | 2);
    char* length = at++;
    varint(9, type);
    if (name) varint(10, name);
    varint(11, first_track_ + track);
    if (type == kCounter) varint(30, static_cast<uint64_t>(value));
    *length = static_cast<char>(at - length - 1);
    bytes[0] = static_cast<char>(field::packet << 3 | 2);
    bytes[1] = static_cast<char>(at - bytes - kHead);
    file_.text({bytes, static_cast<size_t>(at - bytes)});
  }

  bool communicates(const Record& op) const { return recording_.plans[op.plan].steps[op.step].kind == "communication"; }

  /// A collective with its bytes and, among the ranks of a job, how long it waited for them and how fast it was then.
  void put_exchange(const Record& op, size_t number) {
    const uint64_t bytes = recording_.plans[op.plan].steps[op.step].input_bytes;
    std::string event, body;
    pbf_writer writer(event);
    writer.add_enum(9, kBegin);
    writer.add_uint64(10, step_names_[op.plan][op.step]);
    writer.add_uint64(11, first_track_ + kCommunication);
    auto annotate = [&](const char* name, double value) {
      std::string one;
      pbf_writer annotation(one);
      annotation.add_string(10, name);
      annotation.add_double(5, value);
      writer.add_message(4, one);
    };
    annotate("bytes", static_cast<double>(bytes));
    if (part_.exchanges) {
      const int64_t waited = (*part_.exchanges)[number].waited, moving = op.end_ns - op.begin_ns - waited;
      annotate("waited for ranks, us", static_cast<double>(waited) / 1e3);
      if (moving > 0) annotate("GB/s", static_cast<double>(bytes) / static_cast<double>(moving));
    }
    pbf_writer packet(body);
    packet.add_uint64(field::timestamp, static_cast<uint64_t>(op.begin_ns + part_.shift));
    packet.add_uint32(field::sequence, sequence_);
    packet.add_uint32(field::sequence_flags, kNeeds);
    packet.add_message(field::event, event);
    put(body);
    put_event(op.end_ns, kEnd, kCommunication);
  }

  /// Slices of a track nest: what ends before the next begins is ended first, inner before outer.
  void begin_slice(uint64_t track, const Record& record, uint64_t name) {
    auto& ends = open_[track];
    while (!ends.empty() && ends.back() <= record.begin_ns) {
      put_event(ends.back(), kEnd, track);
      ends.pop_back();
    }
    put_event(record.begin_ns, kBegin, track, name);
    ends.push_back(ends.empty() ? record.end_ns : std::min(ends.back(), record.end_ns));
  }

  void end_slices() {
    for (auto& [track, ends] : open_)
      for (; !ends.empty(); ends.pop_back()) put_event(ends.back(), kEnd, track);
  }

  void write_ranges() {
    for (const Record& range : recording_.ranges)
      begin_slice(kFirstRange + range.thread, range, range_names_[range.step]);
    end_slices();
  }

  void write_runs_and_ops() {
    size_t run = 0, exchanges = 0;
    auto begin = [&](const Record& record, uint64_t name) { begin_slice(kFirstThread + record.thread, record, name); };
    for (const Record& op : recording_.ops) {
      for (; run < recording_.runs.size() && recording_.runs[run].begin_ns <= op.begin_ns; ++run)
        begin(recording_.runs[run], run_names_[recording_.runs[run].plan]);
      if (communicates(op))
        put_exchange(op, exchanges++);
      else
        begin(op, step_names_[op.plan][op.step]);
    }
    for (; run < recording_.runs.size(); ++run) begin(recording_.runs[run], run_names_[recording_.runs[run].plan]);
    end_slices();
  }

  void write_iterations() {
    std::map<uint32_t, int64_t> last;
    for (const Iteration& each : analysis_.iterations) {
      int64_t& end = last[each.model];
      if (each.fp_start < end) continue;  // overlaps the one before: slices of a track must not
      uint64_t track = kFirstModel + each.model;
      if (each.data_aug && *each.data_aug > 0) {
        put_event(end, kBegin, track, names_["data"]);
        put_event(each.fp_start, kEnd, track);
      }
      put_event(each.fp_start, kBegin, track, names_["iteration"]);
      if (each.trains) {
        put_event(each.fp_start, kBegin, track, names_["FP to BP"]);
        put_event(each.bp_end, kEnd, track);
        put_event(each.bp_end, kBegin, track, names_["refresh"]);
        put_event(each.end, kEnd, track);
      }
      put_event(each.end, kEnd, track);
      end = each.end;
    }
  }

  void write_memory() {
    std::vector<std::vector<int64_t>> live;
    for (const PlanInfo& plan : recording_.plans) live.push_back(live_bytes(plan));
    int64_t last = -1;
    for (const Record& op : recording_.ops) {
      int64_t bytes = live[op.plan][op.step];
      if (bytes != last) put_event(op.begin_ns, kCounter, kMemory, 0, bytes);
      last = bytes;
    }
  }

  const Recording& recording_;
  const Analysis& analysis_;
  Writer& file_;
  const Part part_;
  const uint32_t sequence_;  // trusted_packet_sequence_id
  const uint64_t first_track_;
  std::map<std::string, uint64_t> names_;
  std::vector<const std::string*> order_;
  std::vector<std::vector<uint64_t>> step_names_;
  std::vector<uint64_t> run_names_, range_names_;
  std::map<uint64_t, std::vector<int64_t>> open_;  // ends of slices, by track
};

}  // namespace

void write_perfetto(const Recording& recording, const Analysis& analysis, const std::string& path) {
  Writer file(path);
  Trace(recording, analysis, file, {}).write();
  file.close();
}

void write_job_trace(const Job& job, const std::string& path) {
  Writer file(path);
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const RankShare& rank = job.ranks[i];
    const SessionInfo& session = rank.recording.session;
    Part part{static_cast<uint32_t>(i), rank.rank + 1, rank.shift,
              fmt::format("rank {} ({}, process {})", rank.rank, session.host, session.pid), &rank.exchanges};
    Trace(rank.recording, rank.analysis, file, std::move(part)).write();
  }
  file.close();
}

}  // namespace cairn::profile
