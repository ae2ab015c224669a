#include "model/foreign_om.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "support/error.h"

namespace cairn {

namespace {

constexpr std::string_view kMagic = "IMOD";
constexpr size_t kHeaderSize = 256;

template <class T>
T number_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string text_at(std::string_view bytes, size_t offset, size_t size) {
  std::string text;
  for (char c : bytes.substr(offset, size)) {
    if (c == 0) break;
    text += c >= ' ' && c < 0x7f ? c : '?';
  }
  return text;
}

std::string partition_name(uint32_t type) {
  constexpr const char* kNames[] = {"MODEL_DEF",          "WEIGHTS_DATA",     "TASK_INFO",         "TBE_KERNELS",
                                    "CUST_AICPU_KERNELS", "SO_BINS",          "FLOW_MODEL",        "FLOW_SUBMODEL",
                                    "MODEL_INOUT_INFO",   "STATIC_TASK_DESC", "DYNAMIC_TASK_DESC", "TASK_PARAM"};
  constexpr const char* kPreModel[] = {"PRE_MODEL_DESC", "PRE_MODEL_SQE", "PRE_KERNEL_ARGS"};
  if (type < std::size(kNames)) return kNames[type];
  if (type >= 20 && type < 20 + std::size(kPreModel)) return kPreModel[type - 20];
  return fmt::format("partition {}", type);
}

/// The table in its 32-bit form (12-byte entries after 4 bytes) or 64-bit form (24-byte entries after 8 bytes); nothing
/// when the sizes in it do not fit the file, or with `exact` do not fill it.
std::optional<std::vector<ForeignOm::Partition>> partitions(std::string_view bytes, bool wide, bool exact) {
  size_t head = wide ? 8 : 4, entry = wide ? 24 : 12;
  if (bytes.size() < head) return std::nullopt;
  auto count = number_at<uint32_t>(bytes, 0);
  if (count == 0 || count > 64 || (bytes.size() - head) / entry < count) return std::nullopt;
  uint64_t left = bytes.size() - head - count * entry;
  std::vector<ForeignOm::Partition> list;
  for (uint32_t i = 0; i < count; ++i) {
    size_t at = head + i * entry;
    auto type = number_at<uint32_t>(bytes, at);
    uint64_t size = wide ? number_at<uint64_t>(bytes, at + 16) : number_at<uint32_t>(bytes, at + 8);
    if (size > left) return std::nullopt;
    left -= size;
    list.push_back({type, partition_name(type), size});
  }
  if (exact && left != 0) return std::nullopt;
  return list;
}

}  // namespace

bool is_foreign_om(std::string_view bytes) { return bytes.starts_with(kMagic); }

ForeignOm read_foreign_om(std::string_view bytes, const std::string& file) {
  if (!is_foreign_om(bytes)) fail(ErrorKind::invalid_model, file, "is not a model of the original platform");
  if (bytes.size() < kHeaderSize) fail(ErrorKind::invalid_model, file, "is cut off: {} bytes", bytes.size());
  constexpr const char* kKinds[] = {"IR", "standard", "tiny", "flow", "lite"};
  ForeignOm om;
  om.version = number_at<uint32_t>(bytes, 8);
  om.encrypted = bytes[80] != 0;
  auto kind = static_cast<unsigned char>(bytes[82]);
  om.kind = kind < std::size(kKinds) ? kKinds[kind] : fmt::format("kind {}", kind);
  om.name = text_at(bytes, 84, 32);
  om.models = std::max(1u, number_at<uint32_t>(bytes, 156));
  om.platform = text_at(bytes, 160, 20);
  if (om.encrypted) return om;
  std::string_view rest = bytes.substr(kHeaderSize);
  std::optional<std::vector<ForeignOm::Partition>> list;
  for (bool exact : {true, false})
    for (bool wide : {true, false})
      if (!list) list = partitions(rest, wide, exact);
  if (!list)
    fail(ErrorKind::invalid_model, file, "is damaged: its partition table does not fit {} bytes", bytes.size());
  om.partitions = std::move(*list);
  return om;
}

}  // namespace cairn
