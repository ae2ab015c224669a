#include "observe/recording.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "observe/describe.h"
#include "support/crc32c.h"
#include "support/executor.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::observe {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr auto kFlushEvery = std::chrono::milliseconds(200);
constexpr uint64_t kParts = 8;  // part files of a recording with a storage limit
constexpr size_t kBuffer = 1 << 17;

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

/// PROF_000001_20240131120000123_ABCDEFGH: number in the process, time, and random letters that make it unique.
std::string folder_name() {
  static std::atomic<int> count{0};
  int64_t now = clock_ns(CLOCK_REALTIME);
  std::time_t seconds = now / 1000000000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &parts);
  std::random_device random;
  std::string tail;
  for (int i = 0; i < 8; ++i) tail += static_cast<char>('A' + random() % 26);
  return fmt::format("PROF_{:06}_{}{:03}_{}", ++count, text, now / 1000000 % 1000, tail);
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  for (char& c : text)
    if (c == '\0') c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  return text.substr(0, 4096);
}

/// Rank and number of ranks, as whatever started this process tells; nothing of a process that is alone.
std::optional<std::pair<int64_t, int64_t>> rank_of_process() {
  auto number = [](const char* name) { return std::getenv(name) ? std::atoll(std::getenv(name)) : -1; };
  if (const char* job = std::getenv("CAIRN_JOB")) {
    const Json json = Json::parse(job, nullptr, false);
    if (json.is_object() && json.contains("rank") && json["rank"].is_number_integer() && json.contains("size") &&
        json["size"].is_number_integer())
      return std::pair(json["rank"].get<int64_t>(), json["size"].get<int64_t>());
  }
  for (const auto& [rank, size] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), {"RANK_ID", "RANK_SIZE"}})
    if (number(rank) >= 0 && number(size) > 1) return std::pair(number(rank), number(size));
  return std::nullopt;
}

/// The cost of one recorded step: two readings of the clock and a record.
double cost_of_step() {
  constexpr int kTimes = 2000;
  auto chunk = std::make_unique<Chunk>();
  int64_t begin = now_ns();
  for (int i = 0; i < kTimes; ++i) {
    int64_t opened = ticks();
    chunk->records[i] = {opened, ticks(), 0, 0, 0, 0, RecordKind::op, 0};
    chunk->filled.store(static_cast<uint32_t>(i), std::memory_order_release);
  }
  return static_cast<double>(now_ns() - begin) / kTimes;
}

/// Whether begin and end of the record are times.
bool is_timed(RecordKind kind) {
  return kind == RecordKind::run || kind == RecordKind::op || kind == RecordKind::range ||
         kind == RecordKind::range_begin;
}

/// Creates an event file with its header; null on failure, with the reason in errno.
FILE* open_events(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "wbe");
  if (!file) return nullptr;
  std::setvbuf(file, nullptr, _IOFBF, kBuffer);
  EventHeader header{{}, kEventVersion, 0};
  std::memcpy(header.magic, kEventMagic, sizeof header.magic);
  std::fwrite(&header, sizeof header, 1, file);  // only buffered, so it cannot fail
  return file;
}

}  // namespace

Lane::Lane(Recording& recording, uint16_t number)
    : thread(number), recording_(recording), chunk_(recording.exchange(nullptr)) {
  open.reserve(64);
}

void Lane::change_chunk() { chunk_ = recording_.exchange(chunk_); }

void Lane::begin_range(const std::string& name) {
  ranges.push_back({recording_.name_range(name), ticks()});
  const OpenRange& range = ranges.back();
  add({range.begin, range.begin, 0, range.name, 0, 0, RecordKind::range_begin, 0});
}

void Lane::end_range() {
  const OpenRange range = ranges.back();
  ranges.pop_back();
  add({range.begin, ticks(), 0, range.name, 0, 0, RecordKind::range, 0});
}

Recording::Recording(const ProfileOptions& options) : level_(options.level), limit_(options.storage_limit) {
  std::error_code error;
  fs::path output = fs::absolute(options.output, error);
  folder_ = (output / folder_name()).string();
  fs::path path = fs::path(folder_) / kEventPath;
  make_folders(path.parent_path());
  file_ = open_events(path);
  if (!file_) fail(ErrorKind::io, path.string(), "cannot be written: {}", reason(errno));
  put(file_, ChunkKind::session, session_json(options));
  std::fflush(file_);
  try {
    writer_ = std::thread([this] { write_loop(); });
  } catch (const std::system_error&) {  // the recorded threads write their full chunks themselves
    alone_ = true;
  }
}

Recording::~Recording() {
  if (writer_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }
  if (file_) std::fclose(file_);
  if (part_) std::fclose(part_);
}

std::string Recording::session_json(const ProfileOptions& options) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  int64_t monotonic = now_ns();
  int64_t real = clock_ns(CLOCK_REALTIME);
  Json json = {{"pid", ::getpid()},
               {"host", host},
               {"command", command_line()},
               {"processor", processor()},
               {"threads", available_threads()},
               {"level", to_string(options.level)},
               {"fp_point", options.fp_point},
               {"bp_point", options.bp_point},
               {"monotonic_ns", monotonic},
               {"real_ns", real},
               {"step_cost_ns", cost_of_step()}};
  if (const auto rank = rank_of_process()) json["rank"] = rank->first, json["ranks"] = rank->second;
  std::string refusal;
  if (options.level == ProfileLevel::counters) refusal = Counters().refusal();
  if (!refusal.empty()) json["counters"] = refusal;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Recording::raise(ProfileLevel level) {
  if (level > this->level()) level_.store(level, std::memory_order_relaxed);
}

Lane* Recording::take_lane() {
  size_t number;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Lane* lane = idle_.back();
      idle_.pop_back();
      lane->counters.reset();  // they counted for another thread
      return lane;
    }
    number = lanes_.size();
    lanes_.emplace_back();  // the number is taken
  }
  // The number of threads that record at the same time is far below the range of lane numbers.
  auto lane = std::make_unique<Lane>(*this, static_cast<uint16_t>(number));
  std::lock_guard lock(mutex_);
  return (lanes_[number] = std::move(lane)).get();
}

void Recording::give_lane(Lane* lane) {
  std::lock_guard lock(mutex_);
  idle_.push_back(lane);
}

void Recording::describe(const Plan& plan, const Module& module, uint32_t serial) {
  uint32_t model;
  {
    std::lock_guard lock(mutex_);
    if (!described_.insert(serial).second) return;
    auto& known = models_[&module];
    if (known.second == 0 || known.first != module.name) {  // another module may have been at this address before
      known = {module.name, ++last_model_};
    }
    model = known.second;
  }
  std::string text = describe_plan(plan, module, serial, model);
  std::lock_guard lock(mutex_);
  descriptions_.emplace_back(ChunkKind::plan, std::move(text));
}

uint32_t Recording::name_range(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto [known, fresh] = range_names_.try_emplace(name, static_cast<uint32_t>(range_names_.size()));
  if (fresh)
    descriptions_.emplace_back(ChunkKind::range,
                               Json{{"name", name}}.dump(-1, ' ', false, Json::error_handler_t::replace));
  return known->second;
}

Chunk* Recording::exchange(Chunk* full) {
  std::unique_lock lock(mutex_);
  if (full) {
    full_.push_back(full);
    wake_.notify_one();
    if (alone_) {
      lock.unlock();
      flush();
      lock.lock();
    }
  }
  if (!free_.empty()) {
    Chunk* chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  return chunks_.emplace_back(std::make_unique<Chunk>()).get();
}

void Recording::write_loop() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 10);  // of this thread alone
  std::unique_lock lock(mutex_);
  while (!closing_) {
    wake_.wait_for(lock, kFlushEvery, [&] { return closing_ || !full_.empty(); });
    lock.unlock();
    flush();
    lock.lock();
  }
  lock.unlock();
  flush();
}

void Recording::hold() {
  writing_.lock();
  mutex_.lock();
}

void Recording::release() {
  mutex_.unlock();
  writing_.unlock();
}

void Recording::flush() {
  std::lock_guard writing(writing_);
  std::vector<std::pair<ChunkKind, std::string>> descriptions;
  std::vector<Chunk*> chunks, full;
  {
    std::lock_guard lock(mutex_);
    full.swap(full_);
    chunks = full;  // in chronological order, in which a storage limit drops them
    for (auto& chunk : chunks_)
      if (std::find(full.begin(), full.end(), chunk.get()) == full.end()) chunks.push_back(chunk.get());
  }
  // The filled sizes are read before the descriptions: a record's plan is described before the record is made.
  std::vector<uint32_t> filled;
  for (Chunk* chunk : chunks) filled.push_back(chunk->filled.load(std::memory_order_acquire));
  clock_.look();
  {
    std::lock_guard lock(mutex_);
    descriptions.swap(descriptions_);
  }
  for (const auto& [kind, text] : descriptions) put(file_, kind, text);
  for (size_t i = 0; i < chunks.size(); ++i) {
    Chunk& chunk = *chunks[i];
    if (filled[i] > chunk.written) put_records(chunk.records + chunk.written, filled[i] - chunk.written);
    chunk.written = filled[i];
  }
  if (std::fflush(file_) != 0) error_ = errno;
  std::lock_guard lock(mutex_);
  for (Chunk* chunk : full) {
    chunk->written = 0;
    chunk->filled.store(0, std::memory_order_relaxed);
    free_.push_back(chunk);
  }
}

/// Writes records, converting ticks to nanoseconds.
void Recording::put_records(const Record* records, size_t count) {
  packer_.clear();
  for (size_t i = 0; i < count; ++i) {
    Record record = records[i];
    if (is_timed(record.kind)) record.begin_ns = clock_.ns(record.begin_ns), record.end_ns = clock_.ns(record.end_ns);
    packer_.add(record);
  }
  records_ += count;
  if (!limit_) return put(file_, ChunkKind::records, packer_.bytes(), packer_.count());
  if (parts_.empty() || parts_.back().bytes > limit_ / kParts) next_part();
  if (!part_) return;
  put(part_, ChunkKind::records, packer_.bytes(), packer_.count());
  if (std::fflush(part_) != 0) error_ = errno;
  parts_.back().bytes += sizeof(ChunkHeader) + packer_.bytes().size();
  parts_.back().records += count;
}

/// Begins a new part file; the oldest one is removed first, so that the limit is never exceeded.
void Recording::next_part() {
  if (part_ && std::fclose(part_) != 0) error_ = errno;
  while (parts_.size() >= kParts) {
    dropped_ += parts_.front().records;
    ::unlink(parts_.front().path.c_str());
    parts_.pop_front();
  }
  parts_.push_back({event_part(folder_, ++part_count_), 0, 0});
  part_ = open_events(parts_.back().path);
  if (!part_) error_ = errno;
}

void Recording::put(FILE* file, ChunkKind kind, std::string_view content, uint32_t count) {
  ChunkHeader header{static_cast<uint32_t>(kind), static_cast<uint32_t>(content.size()), crc32c(content), count};
  if (std::fwrite(&header, sizeof header, 1, file) != 1 ||
      std::fwrite(content.data(), 1, content.size(), file) != content.size())
    error_ = errno ? errno : EIO;
}

void Recording::close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (alone_)
    flush();
  else
    writer_.join();
  std::lock_guard writing(writing_);
  Json json = {{"records", records_}, {"dropped", dropped_}, {"monotonic_ns", now_ns()}};
  put(file_, ChunkKind::end, json.dump());
  if (std::fclose(file_) != 0) error_ = errno;
  file_ = nullptr;
  if (part_ && std::fclose(part_) != 0) error_ = errno;
  part_ = nullptr;
  if (error_) fail(ErrorKind::io, folder_, "the recording could not be written: {}", reason(error_));
}

}  // namespace cairn::observe
