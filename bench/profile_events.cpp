// How long the files of a recording take: profile_events [EVENTS], ten million unless told, of steps like those of ResNet-50.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "profile/export.h"
#include "support/crc32c.h"

using namespace cairn;
namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint32_t kSteps = 56;

void chunk(std::ofstream& file, ChunkKind kind, std::string_view content, uint32_t count = 0) {
  ChunkHeader header{static_cast<uint32_t>(kind), static_cast<uint32_t>(content.size()), crc32c(content), count};
  file.write(reinterpret_cast<const char*>(&header), sizeof header)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

Json plan() {
  Json steps = Json::array();
  for (uint32_t i = 0; i < kSteps; ++i)
    steps.push_back(
        {{"kernel", "cpu/tile 6x64 avx512"},
         {"class", "contraction"},
         {"ops", {"conv2d", "relu"}},
         {"sources", Json::array({Json::array({fmt::format("resnet50/conv{}/Conv2D", i), "Conv2D", "train.py:41"})})},
         {"inputs", {{{"dtype", "f32"}, {"dims", {1, 56, 56, 64}}}}},
         {"outputs", {{{"dtype", "f32"}, {"dims", {1, 56, 56, 64}}}}},
         {"dynamic", false},
         {"flops", 1e8},
         {"bytes", 1e6},
         {"memory", {802816, 802816, 16384, 0}}});
  return {{"serial", 1},
          {"plan", "id"},
          {"model", 1},
          {"name", "resnet50"},
          {"arena_bytes", 5000000},
          {"steps", steps},
          {"buffers", Json::array()}};
}

void write_events(const fs::path& folder, size_t events) {
  fs::create_directories(folder / "host/data");
  std::ofstream file(folder / kEventPath, std::ios::binary);
  EventHeader header{{}, kEventVersion, 0};
  std::memcpy(header.magic, kEventMagic, sizeof header.magic);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  chunk(file, ChunkKind::session,
        Json{{"pid", 1},
             {"host", ""},
             {"command", "bench"},
             {"processor", ""},
             {"threads", 1},
             {"level", "ops"},
             {"monotonic_ns", 0},
             {"real_ns", 1700000000000000000},
             {"step_cost_ns", 50}}
            .dump());
  chunk(file, ChunkKind::plan, plan().dump());
  RecordPacker records;
  int64_t at = 1000;
  for (size_t i = 0; i < events; ++i) {
    auto run = static_cast<uint32_t>(i / kSteps);
    records.add({at, at + 50000, 1, static_cast<uint32_t>(i % kSteps), run, 0, RecordKind::op, 0});
    at += 50100;
    if (i % kSteps == kSteps - 1 || i + 1 == events)
      records.add({at - kSteps * 50100, at, 1, 0, run, 0, RecordKind::run, 0});
    if (records.count() < 4000 && i + 1 < events) continue;
    chunk(file, ChunkKind::records, records.bytes(), records.count());
    records = {};
  }
  chunk(file, ChunkKind::end, R"({"records": 0, "dropped": 0})");
}

void timed(const char* what, const std::function<void()>& body) {
  auto begin = Clock::now();
  std::clock_t spent = std::clock();
  body();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  double processor = static_cast<double>(std::clock() - spent) / CLOCKS_PER_SEC;
  fmt::print("{:<10} {:6.2f} s, {:6.2f} s of the processor\n", what, seconds, processor);
}

}  // namespace

int main(int count, char** words) {
  size_t events = count > 1 ? std::strtoull(words[1], nullptr, 10) : 10000000;
  fs::path folder = fs::temp_directory_path() / "PROF_000001_20240131120000000_BENCHMAR";
  write_events(folder, events);
  std::string path = folder.string();
  timed("read", [&] { profile::analyse(profile::read_recording(path)); });
  timed("tables", [&] { profile::export_recording(path, {.timelines = false, .database = false, .page = false}); });
  timed("timelines", [&] { profile::export_recording(path, {.tables = false, .database = false, .page = false}); });
  timed("database", [&] { profile::export_recording(path, {.tables = false, .timelines = false, .page = false}); });
  timed("all", [&] { profile::export_recording(path); });
  fs::remove_all(folder);
}
