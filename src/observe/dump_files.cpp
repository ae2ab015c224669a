#include "observe/dump_files.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "formats/names.h"
#include "plan/context.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/part_file.h"

namespace cairn::observe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 255, kMostWaiting = 1 << 18, kMostRows = 1 << 17, kMostSpare = 1 << 12;
constexpr auto kWriteEvery = std::chrono::milliseconds(50);
constexpr uint64_t kFlushAfter = 500'000;  // microseconds

std::string folder_time() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &parts);
  return text;
}

uint64_t microseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000 + static_cast<uint64_t>(time.tv_nsec) / 1000;
}

/// Writes under another name and renames, so that a file with its own name is complete (unless the machine fails: it is
/// not synced, for speed).
void write_whole(const fs::path& path, const std::function<void(const FileSink& sink)>& content) {
  PartFile file(path.string(), false);
  content([&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

bool append_text(const fs::path& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "abe");
  if (!file) return false;
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && good;
}

}  // namespace

Dump::Dump(const DumpOptions& given) : options(given) {
  std::error_code error;
  fs::path path = fs::absolute(expand_home(options.path), error);
  std::string time = folder_time();
  fs::path folder = path / time;
  for (int i = 1; fs::exists(folder, error); ++i) folder = path / fmt::format("{}{:02}", time, i);
  folder /= "0";  // the device
  make_folders(folder);
  root_ = folder.string();
}

Dump::Place Dump::place(const std::string& model, int64_t host_step) {
  std::lock_guard lock(mutex_);
  Model*& known = known_as_[model];
  bool fresh = false;
  if (!known) {
    std::string name = plain_name(model.empty() ? "model" : model);
    auto [found, made] = models_.try_emplace(name, Model{"", host_step, 0});
    fresh = made, known = &found->second;
    if (made) known->path = fmt::format("{}/{}/{}", root_, name, models_.size());
  }
  if (!fresh && (host_step == 0 || host_step != known->host_step)) ++known->index;
  known->host_step = host_step;
  return {&known->path, known->index};
}

const StatisticsRows& Dump::statistics_rows(const Plan& plan, const Module& module) {
  std::lock_guard lock(mutex_);
  auto& rows = rows_[plan.contexts->serial()];
  if (!rows) rows = std::make_unique<StatisticsRows>(plan, module, options);
  return *rows;
}

const std::vector<StepNames>& Dump::names(const Plan& plan, const Module& module) {
  std::lock_guard lock(mutex_);
  auto [found, fresh] = names_.try_emplace(plan.contexts->serial());
  if (fresh) found->second = step_names(plan, module);
  return found->second;
}

void Dump::see(const Plan& plan, const Module& module) {
  std::lock_guard lock(mutex_);
  if (!seen_plans_.insert(plan.contexts->serial()).second) return;
  for (const PlannedStep& step : plan.steps)
    for (const Node* node : step.group.nodes)
      for (SourceId id : node->sources)
        if (id < module.sources.size()) seen_layers_.insert(module.sources[id].name);
}

std::vector<std::string> Dump::layers_not_seen() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> missing;
  std::copy_if(options.layers.begin(), options.layers.end(), std::back_inserter(missing),
               [&](const std::string& layer) { return !seen_layers_.contains(layer); });
  return missing;
}

std::string Dump::exception_folder() const { return fs::path(root_).parent_path() / "extra-info" / "data-dump" / "0"; }

uint64_t Dump::next_time() {
  const uint64_t now = microseconds();
  uint64_t last = time_.load(std::memory_order_relaxed), next;
  do next = std::max(now, last + 1);
  while (!time_.compare_exchange_weak(last, next, std::memory_order_relaxed));
  return next;
}

bool Dump::admit(size_t bytes) {
  std::lock_guard lock(mutex_);
  bool over = options.budget > 0 && bytes_ + bytes > options.budget;
  if (over && dropped_ == 0)
    cairn::note(fmt::format("dump: the budget of {} MB is spent; nothing more is kept", options.budget >> 20));
  if (over || refused_ || dropped_ > 0) {  // after a first gap nothing more is written: later steps could be incomplete
    ++dropped_;
    return false;
  }
  bytes_ += bytes;
  return true;
}

void Dump::refuse(const std::string& path, const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!refused_) cairn::note(fmt::format("dump: {}: {}; nothing more is dumped", path, why));
  refused_ = true;
  ++dropped_;
}

bool Dump::create(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(folder, reason(error.value()));
  return !error;
}

bool Dump::write(const std::string& folder, const std::string& name, size_t bytes, const std::string& manifest,
                 const std::function<void(const FileSink& sink)>& content) {
  if (!admit(bytes) || !create(folder)) return false;
  std::string file = name;
  if (name.size() > kLongestName) {
    size_t dot = name.rfind('.');
    bool npy = dot != std::string::npos && name.substr(dot) == ".npy";
    file = std::to_string(next_time()) + (npy ? ".npy" : "");
    std::lock_guard lock(mutex_);
    append_text(fs::path(folder) / "mapping.csv", fmt::format("{},{}\n", file, name));
  }
  try {
    write_whole(fs::path(folder) / file, content);
  } catch (...) {
    const Error fault = current_fault();
    refuse((fs::path(folder) / file).string(), fault.message());
    return false;
  }
  std::string quoted = nlohmann::json(file).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::lock_guard lock(mutex_);
  ++files_;
  return append_text(fs::path(folder) / "manifest.jsonl", fmt::format("{{\"file\":{},{}}}\n", quoted, manifest));
}

void Dump::add_rows(const std::string& folder, std::vector<StatisticsRow> rows) {
  bool many;
  {
    std::lock_guard lock(batches_mutex_);
    rows_waiting_ += rows.size();
    many = rows_waiting_ > kMostRows;
    batches_.push_back({&folder, std::move(rows)});
    try {
      if (!writer_.joinable()) writer_ = std::thread([this] { write_loop(); });
    } catch (const std::system_error&) {  // no thread could be started: this one writes
      many = true;
    }
  }
  if (many) write_rows();
}

std::vector<StatisticsRow> Dump::take_rows() {
  std::lock_guard lock(batches_mutex_);
  if (spare_.empty()) return {};
  std::vector<StatisticsRow> rows = std::move(spare_.back());
  spare_.pop_back();
  return rows;
}

void Dump::hold() {
  write_mutex_.lock();
  batches_mutex_.lock();
  mutex_.lock();
}

void Dump::release() {
  mutex_.unlock();
  batches_mutex_.unlock();
  write_mutex_.unlock();
}

void Dump::write_loop() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 10);  // of this thread alone
  std::unique_lock lock(batches_mutex_);
  while (!wake_.wait_for(lock, kWriteEvery, [&] { return closing_; })) {
    lock.unlock();
    try {
      write_rows();
    } catch (...) {
      refuse(root_, current_fault().message());
    }
    lock.lock();
  }
}

void Dump::write_rows() {
  std::lock_guard order(write_mutex_);
  std::vector<Batch> batches;
  {
    std::lock_guard lock(batches_mutex_);
    batches.swap(batches_);
    rows_waiting_ = 0;
  }
  std::string text;
  for (size_t i = 0; i < batches.size(); ++i) {
    size_t whole = text.size();
    for (const StatisticsRow& row : batches[i].rows) write_row(row, text);
    batches[i].rows.clear();
    if (!admit(text.size() - whole)) text.resize(whole);
    if (i + 1 < batches.size() && batches[i + 1].folder == batches[i].folder && text.size() < kMostWaiting) continue;
    append(*batches[i].folder + "/" + kStatisticsFile, text);
    text.clear();
  }
  std::lock_guard lock(batches_mutex_);
  for (Batch& batch : batches)
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(batch.rows));
}

/// Buffers lines; they are written when there are many, twice a second, and at the end.
void Dump::append(const std::string& path, const std::string& lines) {
  if (lines.empty()) return;
  std::lock_guard lock(mutex_);
  auto [waiting, fresh] = waiting_.try_emplace(path, kStatisticsHead);
  files_ += fresh;
  waiting->second += lines;
  uint64_t now = microseconds();
  if (waiting->second.size() < kMostWaiting && now - flushed_ < kFlushAfter) return;
  flush();
  flushed_ = now;
}

/// Requires the lock.
void Dump::flush() {
  for (auto& [path, lines] : waiting_) {
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    bool written = lines.empty() || append_text(path, lines);
    if (!written && !refused_) cairn::note(fmt::format("dump: {}: {}; nothing more is dumped", path, reason(errno)));
    refused_ = refused_ || !written;
    lines.clear();
  }
}

Dump::~Dump() {
  {
    std::lock_guard lock(batches_mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  if (writer_.joinable()) writer_.join();
  write_rows();
  std::lock_guard lock(mutex_);
  flush();
}

std::string Dump::summary() {
  write_rows();
  std::lock_guard lock(mutex_);
  flush();
  std::string text = fmt::format("{} files, {:.1f} MB in {}", files_, static_cast<double>(bytes_) / 1e6, root_);
  if (dropped_ > 0) text += fmt::format("; {} left out", dropped_);
  return text;
}

}  // namespace cairn::observe
