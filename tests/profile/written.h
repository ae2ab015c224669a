// Recordings written by hand, for tests that read them.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "profile/recording.h"
#include "support/crc32c.h"

namespace cairn::profile {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline Json step(const char* name, const char* op, const char* kind = "vector") {
  return {{"kernel", "cpu/k"},
          {"class", kind},
          {"ops", {"k"}},
          {"sources", Json::array({Json::array({name, op, "train.py:4"})})},
          {"inputs", {{{"dtype", "f32"}, {"dims", {2, 3}}}}},
          {"outputs", {{{"dtype", "f32"}, {"dims", Json::array()}}}},
          {"dynamic", false},
          {"flops", 100},
          {"bytes", 24},
          {"memory", {24, 4, 0, 0}}};
}

/// A PROF folder with a file written by hand.
class Written {
 public:
  /// `more`: further facts of the session.
  explicit Written(const Json& more = Json::object()) {
    fs::create_directories(fs::path(path()) / "host/data");
    EventHeader header{{}, kEventVersion, 0};
    std::memcpy(header.magic, kEventMagic, sizeof header.magic);
    bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
    Json session = {{"pid", 1},          {"host", "h"},        {"command", "c"},    {"processor", "p"},
                    {"threads", 1},      {"level", "ops"},     {"fp_point", ""},    {"bp_point", ""},
                    {"monotonic_ns", 0}, {"real_ns", 1000000}, {"step_cost_ns", 50}};
    session.update(more);
    chunk(ChunkKind::session, session.dump());
  }
  ~Written() { fs::remove_all(root_); }

  std::string path() const { return root_ + "/PROF_000001_20240131120000123_ABCDEFGH"; }
  std::string& bytes() { return bytes_; }
  size_t records_at() const { return records_at_; }
  void chunk(ChunkKind kind, std::string_view content, uint32_t count = 0) {
    ChunkHeader header{static_cast<uint32_t>(kind), static_cast<uint32_t>(content.size()), crc32c(content), count};
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header) += content;
  }
  void plan(std::vector<Json> steps, uint32_t serial = 1) {
    Json json = {{"serial", serial},
                 {"plan", "id"},
                 {"model", serial},
                 {"name", "net"},
                 {"arena_bytes", 128},
                 {"steps", steps},
                 {"buffers", Json::array({Json::array({"a", 64, 0, 0})})}};
    chunk(ChunkKind::plan, json.dump());
  }
  void records(const std::vector<Record>& list) {
    RecordPacker packer;
    for (const Record& record : list) packer.add(record);
    if (records_at_ == 0) records_at_ = bytes_.size();
    chunk(ChunkKind::records, packer.bytes(), packer.count());
  }
  Recording read(bool end = true) {
    if (end) chunk(ChunkKind::end, R"({"records": 0, "dropped": 0})");
    return read_file();
  }
  Recording read_file() {
    std::ofstream(path() + "/" + kEventPath, std::ios::binary) << bytes_;
    return read_recording(path());
  }

 private:
  static inline int count_ = 0;
  std::string root_ = (fs::temp_directory_path() / fmt::format("cairn_profile_{}_{}", ::getpid(), ++count_)).string();
  std::string bytes_;
  size_t records_at_ = 0;
};

inline Record op(int64_t begin, int64_t end, uint32_t number, uint32_t run, uint16_t thread = 0) {
  return {begin, end, 1, number, run, thread, RecordKind::op, 0};
}
inline Record whole_run(int64_t begin, int64_t end, uint32_t run) {
  return {begin, end, 1, 0, run, 0, RecordKind::run, 0};
}
inline Record host_step(int64_t step, uint32_t run) { return {step, 0, 1, 0, run, 0, RecordKind::host_step, 0}; }

}  // namespace cairn::profile
