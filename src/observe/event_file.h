// The file that a recording is written to while the program runs: chunks with checksums, so that after a crash
// everything up to the last complete chunk can be read. Records are packed, because writing bytes is the main cost of a
// recording.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

inline constexpr char kEventMagic[8] = {'C', 'A', 'I', 'R', 'N', 'E', 'V', 'T'};
inline constexpr uint32_t kEventVersion = 2;
/// The path of the file in a PROF_* folder.
inline constexpr const char* kEventPath = "host/data/cairn.events";

/// With a storage limit, records are written to part files beside it, of which only the last ones are kept; each part
/// starts with the header as well.
inline std::string event_part(const std::string& folder, uint64_t number) {
  return fmt::format("{}/{}.{:09}", folder, kEventPath, number);
}

/// The header of the file; numbers are little-endian.
struct EventHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
};

/// session: JSON, once, at the start. plan: JSON, before the first record of the plan. records: packed Records. end:
/// JSON, if the recording was stopped regularly. range: JSON, the name of a user's range, before its first record;
/// names are numbered from 0.
enum class ChunkKind : uint32_t { session = 1, plan = 2, records = 3, end = 4, range = 5 };

struct ChunkHeader {
  uint32_t kind;
  uint32_t bytes;  // size of the content that follows
  uint32_t crc;    // crc32c of the content
  uint32_t count;  // number of records
};

/// run: one run of a model; `plan` is its first plan. host_step: the host's step id of a run, in begin_ns. op: step
/// `step` of plan `plan`. cycles: for the op record before it, cycles in begin_ns and instructions in end_ns. cache:
/// the same with references and misses of the last-level cache. range: a range of the user; `step` is the number of its
/// name. range_begin: the begin of a range whose end was not recorded.
enum class RecordKind : uint8_t { run = 1, host_step = 2, op = 3, cycles = 4, cache = 5, range = 6, range_begin = 7 };

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

/// Packs the records of one chunk, each relative to the one before it: a byte of kind and flags, then numbers in groups
/// of seven bits, lowest first, with the top bit set when more follow (LEB128); differences have their sign in the
/// lowest bit.
class RecordPacker {
 public:
  void add(const Record& record) {
    if (bytes_.size() - used_ < kMostBytes) bytes_.resize(2 * bytes_.size() + 64 * kMostBytes);
    const bool same = record.plan == last_.plan && record.run == last_.run && record.thread == last_.thread;
    const uint32_t further = record.step - last_.step;
    uint8_t flags = same ? kSame : 0;
    if (further <= 1) flags |= further == 1 ? kNextStep : kSameStep;
    bytes_[used_++] = static_cast<char>(flags | static_cast<uint8_t>(record.kind));
    if (!same) put(record.plan), put(record.run), put(record.thread);
    if (further > 1) put(record.step);
    put_signed(difference(record.begin_ns, last_.end_ns));
    put_signed(difference(record.end_ns, record.begin_ns));
    last_ = record;
    ++count_;
  }
  void clear() { used_ = 0, count_ = 0, last_ = {}; }
  std::string_view bytes() const { return {bytes_.data(), used_}; }
  uint32_t count() const { return count_; }

  static constexpr size_t kLeastBytes = 3;
  static constexpr uint8_t kKinds = 7, kSame = 8, kNextStep = 16, kSameStep = 32;
  static int64_t difference(int64_t a, int64_t b) {  // wraps instead of overflowing
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }

 private:
  static constexpr size_t kMostBytes = 1 + 5 + 5 + 3 + 5 + 10 + 10;
  void put(uint64_t number) {
    for (; number >= 128; number >>= 7) bytes_[used_++] = static_cast<char>(number | 128);
    bytes_[used_++] = static_cast<char>(number);
  }
  void put_signed(int64_t number) { put(static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63)); }

  std::string bytes_;
  size_t used_ = 0;
  uint32_t count_ = 0;
  Record last_{};
};

/// Unpacks records one by one.
class RecordUnpacker {
 public:
  explicit RecordUnpacker(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  bool done() const { return at_ == end_; }
  /// The next record; null when the remaining bytes are not a record.
  const Record* next() {
    const auto flags = static_cast<uint8_t>(*at_++);
    last_.kind = static_cast<RecordKind>(flags & RecordPacker::kKinds);
    if (!(flags & RecordPacker::kSame)) {
      last_.plan = static_cast<uint32_t>(number(UINT32_MAX));
      last_.run = static_cast<uint32_t>(number(UINT32_MAX));
      last_.thread = static_cast<uint16_t>(number(UINT16_MAX));
    }
    if (flags & RecordPacker::kNextStep)
      ++last_.step;
    else if (!(flags & RecordPacker::kSameStep))
      last_.step = static_cast<uint32_t>(number(UINT32_MAX));
    last_.begin_ns = later(last_.end_ns);
    last_.end_ns = later(last_.begin_ns);
    return sound_ ? &last_ : nullptr;
  }

 private:
  uint64_t number(uint64_t most) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte >= 128) continue;
      sound_ = sound_ && value <= most;
      return value;
    }
    sound_ = false;
    return 0;
  }
  int64_t later(int64_t time) {
    uint64_t coded = number(UINT64_MAX);
    return static_cast<int64_t>(static_cast<uint64_t>(time) + (coded >> 1 ^ (0 - (coded & 1))));
  }

  const char* at_;
  const char* end_;
  bool sound_ = true;
  Record last_{};
};

}  // namespace cairn
