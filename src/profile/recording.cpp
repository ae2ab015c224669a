#include "profile/recording.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "support/crc32c.h"
#include "support/files.h"

namespace cairn::profile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostText = size_t{1} << 30;
/// Later times would overflow sums; a clock that counts from the start of the machine does not get there.
constexpr int64_t kMostTime = int64_t{1} << 60;
constexpr size_t kMostOpen = 10000;  // ranges of one thread

uint64_t size_of(const nlohmann::json& json) { return json.is_number_unsigned() ? json.get<uint64_t>() : 0; }
double number_of(const nlohmann::json& json) { return json.is_number() ? json.get<double>() : 0; }

/// Shape and types in the platform's form: tensors apart by ";", dims by ",".
Tensors tensors_of(const nlohmann::json& list) {
  Tensors text;
  for (size_t i = 0; i < list.size(); ++i) {
    const char* between = i ? ";" : "";
    text.shapes += between;
    text.types += between + list[i].at("dtype").get<std::string>();
    text.formats += fmt::format("{}ND", between);
    const nlohmann::json& dims = list[i].at("dims");
    for (size_t axis = 0; axis < dims.size(); ++axis)
      text.shapes += fmt::format("{}{}", axis ? "," : "", dims[axis].get<int64_t>());
  }
  return text;
}

/// MaxPoolGrad, FusedBatchNormGradV3; Conv2DBackpropFilter. The gradient by the input alone is also how a graph states a
/// transposed convolution, so it tells nothing.
bool is_gradient_op(std::string_view op) {
  if (op.find("BackpropFilter") != op.npos || op.find("BackpropV2") != op.npos) return true;
  size_t version = op.find_last_not_of("0123456789");
  if (version != op.npos && op[version] == 'V') op = op.substr(0, version);
  return op.ends_with("Grad");
}

/// Source nodes that TensorFlow made for gradients.
bool is_backward(const SourceNode& node) {
  std::string path = "/" + node.name;
  bool below = path.find("/gradients/") != std::string::npos || path.find("/gradient_tape/") != std::string::npos;
  for (size_t at = path.find("/gradients_"); !below && at != std::string::npos; at = path.find("/gradients_", at + 1)) {
    size_t end = path.find_first_not_of("0123456789", at + 11);
    below = end != std::string::npos && end > at + 11 && path[end] == '/';
  }
  return below || is_gradient_op(node.op);
}

StepInfo step_of(const nlohmann::json& json) {
  StepInfo step;
  step.kernel = json.at("kernel").get<std::string>();
  step.kind = json.at("class").get<std::string>();
  for (const nlohmann::json& op : json.at("ops")) step.ops += (step.ops.empty() ? "" : "+") + op.get<std::string>();
  for (const nlohmann::json& source : json.at("sources")) {
    step.sources.push_back({source.at(0), source.at(1), source.at(2)});
    step.backward |= is_backward(step.sources.back());
  }
  step.name = !step.sources.empty() ? step.sources[0].name : !step.ops.empty() ? step.ops : step.kernel;
  step.type = !step.sources.empty() ? step.sources[0].op : !step.ops.empty() ? step.ops : step.kernel;
  step.inputs = tensors_of(json.at("inputs"));
  step.outputs = tensors_of(json.at("outputs"));
  step.dynamic = json.at("dynamic").get<bool>();
  step.flops = number_of(json.at("flops"));
  step.bytes = number_of(json.at("bytes"));
  const nlohmann::json& memory = json.at("memory");
  step.input_bytes = size_of(memory.at(0));
  step.output_bytes = size_of(memory.at(1));
  step.weight_bytes = size_of(memory.at(2));
  step.workspace_bytes = size_of(memory.at(3));
  return step;
}

PlanInfo plan_of(const nlohmann::json& json) {
  PlanInfo plan;
  plan.serial = json.at("serial").get<uint32_t>();
  plan.model = json.at("model").get<uint32_t>();
  plan.id = json.at("plan").get<std::string>();
  plan.name = json.at("name").get<std::string>();
  plan.arena_bytes = size_of(json.at("arena_bytes"));
  for (const nlohmann::json& step : json.at("steps")) {
    plan.steps.push_back(step_of(step));
    for (const nlohmann::json& need : step.value("needs", nlohmann::json::array()))
      if (size_t maker = size_of(need.at(0)); maker + 1 < plan.steps.size())
        plan.steps.back().needs.push_back({static_cast<uint32_t>(maker), size_of(need.at(1)), need.at(2)});
    for (const nlohmann::json& bytes : step.value("updates", nlohmann::json::array()))
      plan.steps.back().updates.push_back(size_of(bytes));
  }
  for (const nlohmann::json& buffer : json.at("buffers")) {
    BufferInfo info{buffer.at(0), size_of(buffer.at(1)), buffer.at(2), buffer.at(3)};
    if (info.first <= info.last && info.last < plan.steps.size()) plan.buffers.push_back(std::move(info));
  }
  return plan;
}

SessionInfo session_of(const nlohmann::json& json) {
  SessionInfo session;
  session.pid = json.at("pid").get<int64_t>();
  session.threads = json.at("threads").get<int64_t>();
  session.monotonic_ns = json.at("monotonic_ns").get<int64_t>();
  session.real_ns = json.at("real_ns").get<int64_t>();
  session.host = json.at("host").get<std::string>();
  session.command = json.at("command").get<std::string>();
  session.processor = json.at("processor").get<std::string>();
  session.level = json.at("level").get<std::string>();
  session.fp_point = json.value("fp_point", "");
  session.bp_point = json.value("bp_point", "");
  session.counters = json.value("counters", "");
  session.rank = json.value("rank", int64_t{-1});
  session.ranks = json.value("ranks", int64_t{1});
  session.step_cost_ns = number_of(json.at("step_cost_ns"));
  for (int64_t time : {session.monotonic_ns, session.real_ns})
    if (time < 0) throw std::out_of_range("a time before the clock's start");
  return session;
}

class Reader {
 public:
  Reader(std::string folder, std::string path, std::string_view bytes) : path_(std::move(path)), bytes_(bytes) {
    recording_.folder = std::move(folder);
  }

  /// `parts`: further files of records, oldest first.
  Recording read(const std::vector<std::shared_ptr<const MappedFile>>& parts) {
    read_file();
    bool ended = ended_;
    for (const auto& part : parts) {
      bytes_ = part->bytes();
      if (!bytes_.empty()) read_file();  // an empty one was begun as the program stopped
    }
    ended_ = ended;
    if (!ended_ && recording_.remark.empty())
      recording_.remark = "the recording was not ended; its last moments may be missing";
    if (!has_session_) fail(ErrorKind::invalid_model, path_, "holds no description of its recording");
    sort_records();
    end_open_ranges();
    check_point("fp_point", recording_.session.fp_point);
    check_point("bp_point", recording_.session.bp_point);
    if (strange_) remark(fmt::format("{} records name no known step and are left out", strange_));
    if (recording_.dropped) remark(fmt::format("{} records were dropped at the storage limit", recording_.dropped));
    return std::move(recording_);
  }

 private:
  void remark(const std::string& text) {
    if (!recording_.remark.empty()) recording_.remark += "; ";
    recording_.remark += text;
  }

  void check_point(const char* key, const std::string& name) {
    auto named = [&](const SourceNode& node) { return node.name == name; };
    auto holds = [&](const StepInfo& step) { return std::any_of(step.sources.begin(), step.sources.end(), named); };
    auto has = [&](const PlanInfo& plan) { return std::any_of(plan.steps.begin(), plan.steps.end(), holds); };
    if (!name.empty() && !recording_.plans.empty() &&
        std::none_of(recording_.plans.begin(), recording_.plans.end(), has))
      remark(fmt::format("{} {} is no operator that ran, so it marks nothing", key, name));
  }

  void read_file() {
    read_header();
    while (at_ < bytes_.size() && read_chunk()) {
    }
  }

  void read_header() {
    EventHeader header;
    if (bytes_.size() < sizeof header || std::memcmp(bytes_.data(), kEventMagic, sizeof kEventMagic) != 0)
      fail(ErrorKind::invalid_model, path_, "is no recording");
    std::memcpy(&header, bytes_.data(), sizeof header);
    if (header.version != kEventVersion)
      fail(ErrorKind::unsupported, path_, "is of version {}, this program reads version {}", header.version,
           kEventVersion);
    at_ = sizeof header;
  }

  /// False at the end of what can be read.
  bool read_chunk() {
    ChunkHeader header;
    if (bytes_.size() - at_ < sizeof header) return cut_off();
    std::memcpy(&header, bytes_.data() + at_, sizeof header);
    if (bytes_.size() - at_ - sizeof header < header.bytes) return cut_off();
    std::string_view content = bytes_.substr(at_ + sizeof header, header.bytes);
    if (crc32c(content) != header.crc) {
      recording_.remark = fmt::format("damaged at byte {}; what follows is left out", at_);
      return false;
    }
    at_ += sizeof header + header.bytes;
    switch (static_cast<ChunkKind>(header.kind)) {
      case ChunkKind::records: read_records(content, header.count); break;
      case ChunkKind::session:
      case ChunkKind::plan:
      case ChunkKind::range:
      case ChunkKind::end: read_text(static_cast<ChunkKind>(header.kind), content); break;
      default: fail(ErrorKind::invalid_model, path_, "has a chunk of unknown kind {} at byte {}", header.kind, at_);
    }
    return true;
  }

  bool cut_off() {
    recording_.remark = fmt::format("cut off at byte {}", bytes_.size());
    return false;
  }

  void read_text(ChunkKind kind, std::string_view content) {
    if (content.size() > kMostText) fail(ErrorKind::invalid_model, path_, "has a text of {} bytes", content.size());
    try {
      nlohmann::json json = nlohmann::json::parse(content);
      if (kind == ChunkKind::session) {
        recording_.session = session_of(json);
        has_session_ = true;
      } else if (kind == ChunkKind::plan) {
        PlanInfo plan = plan_of(json);
        plans_.emplace(plan.serial, static_cast<uint32_t>(recording_.plans.size()));
        recording_.plans.push_back(std::move(plan));
      } else if (kind == ChunkKind::range) {
        recording_.range_names.push_back(json.at("name").get<std::string>());
      } else {
        recording_.dropped = size_of(json.at("dropped"));
        if (json.contains("monotonic_ns"))
          last_time_ = static_cast<int64_t>(std::min<uint64_t>(size_of(json["monotonic_ns"]), kMostTime - 1));
        ended_ = true;
      }
    } catch (const std::exception& fault) {  // of the JSON library
      fail(ErrorKind::invalid_model, path_, "has a description that cannot be read: {}", fault.what());
    }
  }

  void read_records(std::string_view content, uint32_t count) {
    if (count > content.size() / RecordPacker::kLeastBytes)
      fail(ErrorKind::invalid_model, path_, "has {} records in {} bytes", count, content.size());
    chunks_.push_back(content);
    count_ += count;
  }

  /// Records go to their lists once every plan is known.
  void sort_records() {
    recording_.ops.reserve(count_);
    for (std::string_view chunk : chunks_)
      for (RecordUnpacker unpacker(chunk); !unpacker.done();) {
        const Record* record = unpacker.next();
        if (!record) fail(ErrorKind::invalid_model, path_, "has records that cannot be read");
        take(*record);
      }
    if (!std::is_sorted(recording_.ops.begin(), recording_.ops.end(), earlier))
      std::stable_sort(recording_.ops.begin(), recording_.ops.end(), earlier);
    std::stable_sort(recording_.runs.begin(), recording_.runs.end(), earlier);
  }

  static bool has_sound_times(const Record& record) {
    return record.begin_ns >= 0 && record.end_ns >= record.begin_ns && record.end_ns < kMostTime;
  }

  /// Ranges of a thread nest: one that ends is the last of its name that began.
  void take_range(const Record& record) {
    if (!has_sound_times(record) || record.step >= recording_.range_names.size()) {
      ++strange_;
      return;
    }
    last_time_ = std::max(last_time_, record.end_ns);
    std::vector<Record>& open = open_ranges_[record.thread];
    if (record.kind == RecordKind::range_begin)
      return open.size() < kMostOpen ? open.push_back(record) : static_cast<void>(++strange_);
    auto begun = std::find_if(open.rbegin(), open.rend(), [&](const Record& each) { return each.step == record.step; });
    if (begun != open.rend()) open.erase(begun.base() - 1);
    recording_.ranges.push_back(record);
  }

  /// Those of programs that stopped, or still went on, in the middle of a range.
  void end_open_ranges() {
    for (const auto* list : {&recording_.runs, &recording_.ops})
      for (const Record& record : *list) last_time_ = std::max(last_time_, record.end_ns);
    for (auto& [thread, open] : open_ranges_)
      for (Record& range : open) {
        range.kind = RecordKind::range, range.end_ns = std::max(range.begin_ns, last_time_);
        recording_.ranges.push_back(range);
      }
    std::stable_sort(recording_.ranges.begin(), recording_.ranges.end(), earlier);
  }

  static bool earlier(const Record& a, const Record& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  }

  void take(Record record) {
    if (record.kind == RecordKind::range || record.kind == RecordKind::range_begin) return take_range(record);
    if (record.plan != last_serial_ || !last_known_) {
      auto found = plans_.find(record.plan);
      last_known_ = found != plans_.end();
      last_serial_ = record.plan;
      last_index_ = last_known_ ? found->second : 0;
    }
    bool timed = record.kind == RecordKind::run || record.kind == RecordKind::op;
    bool sound = last_known_ && (!timed || has_sound_times(record));
    if (sound && record.kind != RecordKind::run && record.kind != RecordKind::host_step)
      sound = record.step < recording_.plans[last_index_].steps.size();
    record.plan = last_index_;
    if (!sound) {
      ++strange_;
      return;
    }
    switch (record.kind) {
      case RecordKind::run: recording_.runs.push_back(record); break;
      case RecordKind::host_step: recording_.host_steps.push_back(record); break;
      case RecordKind::op: recording_.ops.push_back(record); break;
      case RecordKind::cycles:
      case RecordKind::cache: recording_.counts.push_back(record); break;
      default: ++strange_;
    }
  }

  std::string path_;
  std::string_view bytes_;
  size_t at_ = 0;
  Recording recording_;
  std::unordered_map<uint32_t, uint32_t> plans_;  // serial -> index
  std::vector<std::string_view> chunks_;
  size_t count_ = 0;  // of their records
  uint32_t last_serial_ = 0, last_index_ = 0;
  bool last_known_ = false, has_session_ = false, ended_ = false;
  std::map<uint16_t, std::vector<Record>> open_ranges_;  // by thread
  int64_t last_time_ = 0;
  uint64_t strange_ = 0;
};

}  // namespace

Recording read_recording(const std::string& folder) {
  std::string path = (fs::path(folder) / kEventPath).string();
  auto file = MappedFile::open(path);
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), error))
    if (entry.is_regular_file() && entry.path().filename().string().starts_with("cairn.events."))
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::vector<std::shared_ptr<const MappedFile>> parts;
  for (const std::string& part : names) parts.push_back(MappedFile::open(part));
  Recording recording = Reader(folder, path, file->bytes()).read(parts);
  recording.pipelines = read_data_pipelines(folder);
  std::string name = fs::path(folder).filename().string();
  size_t from = name.find('_', 5), to = name.rfind('_');
  recording.time = from != std::string::npos && to > from ? name.substr(from + 1, to - from - 1) : "0";
  return recording;
}

std::vector<std::string> find_recordings(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> found;
  fs::path given = fs::path(folder).lexically_normal();
  if (!given.has_filename()) given = given.parent_path();
  if (fs::exists(given / kEventPath, error)) return {given.string()};
  for (const auto& entry : fs::directory_iterator(given, error))
    if (entry.path().filename().string().starts_with("PROF_") && fs::exists(entry.path() / kEventPath, error))
      found.push_back(entry.path().string());
  if (found.empty()) fail(ErrorKind::not_found, folder, "holds no recording (a folder PROF_* with {})", kEventPath);
  auto key = [](const std::string& path) {  // the time, then which one of its process
    std::string name = fs::path(path).filename().string();
    return std::pair(name.substr(std::min(name.size(), name.find('_', 5))).substr(0, 18), name);
  };
  std::sort(found.begin(), found.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  return found;
}

}  // namespace cairn::profile
