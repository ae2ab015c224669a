// Reader of the .om container. Every number in the file is checked before it is used; a file that passes can be mapped
// and read without further checks.
#include <algorithm>
#include <filesystem>

#include "ir/text.h"
#include "model/om_file.h"
#include "model/om_layout.h"
#include "support/crc32c.h"
#include "support/files.h"
#include "support/sha256.h"

namespace cairn {

namespace {

const char* section_name(uint32_t kind) {
  switch (kind) {
    case om::kMetadata: return "metadata";
    case om::kModule: return "module";
    case om::kWeightTable: return "weight table";
    case om::kWeights: return "weights";
    default: return nullptr;
  }
}

}  // namespace

class OmReader {
 public:
  OmReader(std::string name, std::string_view bytes, std::shared_ptr<const void> owner, std::string folder = {})
      : file_(std::make_shared<OmFile>()), bytes_(bytes) {
    file_->name_ = std::move(name);
    file_->bytes_ = bytes;
    file_->owner_ = std::move(owner);
    file_->folder_ = std::move(folder);
  }

  std::shared_ptr<const OmFile> read() {
    header();
    sections();
    weights();
    return file_;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(ErrorKind::invalid_model, file_->name_, fmt::format(format, std::forward<Args>(args)...));
  }

  template <class Record>
  Record record_at(std::string_view bytes, uint64_t offset) const {
    Record record;
    std::memcpy(&record, bytes.data() + offset, sizeof record);
    return record;
  }

  void header() {
    if (!is_om(bytes_)) refuse("is not a Cairn model");
    if (bytes_.size() < sizeof(om::Header)) refuse("is cut off: {} bytes", bytes_.size());
    header_ = record_at<om::Header>(bytes_, 0);
    if (header_.version != om::kVersion)
      refuse("has format version {}, this program reads {}", header_.version, om::kVersion);
    if (crc32c(om::bytes_of(header_, offsetof(om::Header, header_checksum))) != header_.header_checksum)
      refuse("is damaged: the header's checksum differs");
    if (header_.file_size != bytes_.size())
      refuse("is {}: {} bytes, expected {}", header_.file_size > bytes_.size() ? "cut off" : "longer than written",
             bytes_.size(), header_.file_size);
    if (std::any_of(std::begin(header_.zero), std::end(header_.zero), [](char c) { return c != 0; }))
      refuse("is damaged: reserved bytes of the header are not zero");
  }

  void sections() {
    if (header_.sections > om::kMaxSections)
      refuse("has {} sections, expected at most {}", header_.sections, om::kMaxSections);
    uint64_t end = sizeof(om::Header) + header_.sections * sizeof(om::Section);
    if (end > bytes_.size()) refuse("is cut off in the section table");
    if (crc32c(bytes_.substr(sizeof(om::Header), end - sizeof(om::Header))) != header_.table_checksum)
      refuse("is damaged: the section table's checksum differs");
    for (uint32_t i = 0; i < header_.sections; ++i) {
      auto section = record_at<om::Section>(bytes_, sizeof(om::Header) + i * sizeof(om::Section));
      if (section.offset != om::align(end) || section.offset > bytes_.size() ||
          section.size > bytes_.size() - section.offset)
        refuse("section {} lies at {} with {} bytes, expected at {} within {} bytes", i, section.offset, section.size,
               om::align(end), bytes_.size());
      for (; end < section.offset; ++end)
        if (bytes_[end] != 0) refuse("is damaged: byte {} between sections is not zero", end);
      end += section.size;
      take(section);
    }
    if (end != bytes_.size()) refuse("has {} bytes that belong to no section", bytes_.size() - end);
    for (uint32_t kind : {om::kMetadata, om::kModule, om::kWeightTable, om::kWeights})
      if (!found_[kind]) refuse("has no {} section", section_name(kind));
  }

  void take(const om::Section& section) {
    const char* name = section_name(section.kind);
    std::string_view content = bytes_.substr(section.offset, section.size);
    file_->sections_.push_back(
        {name ? name : fmt::format("unknown {}", section.kind), section.offset, section.size, section.checksum});
    if (!name) return;  // a section kind of a later version, which is not needed
    if (found_[section.kind]) refuse("has two {} sections", name);
    found_[section.kind] = true;
    if (section.kind == om::kWeights) {
      file_->data_ = content;
      file_->data_checksum_ = section.checksum;
      return;
    }
    if (section.kind == om::kMetadata && section.size > om::kMaxMetadata)
      refuse("has {} bytes of metadata, expected at most {}", section.size, om::kMaxMetadata);
    if (crc32c(content) != section.checksum) refuse("is damaged: the checksum of the {} section differs", name);
    (section.kind == om::kMetadata ? file_->metadata_ : section.kind == om::kModule ? file_->text_ : table_) = content;
  }

  void weights() {
    uint64_t at = 0, end = 0;
    while (at < table_.size()) {
      size_t index = file_->weights_.size();
      if (table_.size() - at < sizeof(om::Weight)) refuse("weight {} is cut off", index);
      auto record = record_at<om::Weight>(table_, at);
      at += sizeof(om::Weight);
      if (record.rank > om::kMaxRank || table_.size() - at < record.rank * sizeof(int64_t))
        refuse("weight {} has rank {} that does not fit the table", index, record.rank);
      std::vector<int64_t> dims(record.rank);
      if (!dims.empty()) std::memcpy(dims.data(), table_.data() + at, record.rank * sizeof(int64_t));
      at += record.rank * sizeof(int64_t);
      bool external = std::memcmp(record.layout, om::kExternalLayout, sizeof record.layout) == 0;
      if (!external && std::memcmp(record.layout, om::kPlainLayout, sizeof record.layout) != 0)
        refuse("weight {} has a layout that this program does not know", index);
      std::string_view data = file_->data_;
      if (record.offset != om::align(end) || record.offset > data.size() || record.size > data.size() - record.offset)
        refuse("weight {} lies at {} with {} bytes, expected at {} within {}", index, record.offset, record.size,
               om::align(end), data.size());
      end = record.offset + record.size;
      std::string_view stored = data.substr(record.offset, record.size);
      std::shared_ptr<const void> owner = file_->owner_;
      if (external) stored = external_bytes(index, stored, owner);
      file_->weights_.push_back(tensor(index, record, std::move(dims), stored, std::move(owner)));
    }
    if (end != file_->data_.size()) refuse("has {} bytes of weights that belong to none", file_->data_.size() - end);
  }

  /// The bytes of an external file. Its name is its SHA-256, so that the file cannot refer to any other path.
  std::string_view external_bytes(size_t index, std::string_view digest, std::shared_ptr<const void>& owner) {
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string_view::npos)
      refuse("weight {} lies in a file whose name is no SHA-256", index);
    if (file_->folder_.empty()) refuse("has weights in files beside it; open it by its path");
    std::filesystem::path folder = std::filesystem::path(file_->folder_) / om::kExternalFolder;
    auto mapped = MappedFile::open(folder / (om::kExternalPrefix + std::string(digest)));
    owner = mapped;
    file_->external_.emplace_back(digest, mapped->bytes());
    return mapped->bytes();
  }

  Tensor tensor(size_t index, const om::Weight& record, std::vector<int64_t> dims, std::string_view data,
                std::shared_ptr<const void> owner) const {
    DType dtype{static_cast<DType::Kind>(record.kind), record.bits};
    if (record.kind > static_cast<uint8_t>(DType::Kind::string) || parse_dtype(to_string(dtype)) != dtype)
      refuse("weight {} has an unknown element type", index);
    auto count = element_count(dims);
    if (!count) refuse("weight {} has impossible dimensions", index);
    if (dtype == kString) return texts(index, std::move(dims), *count, data);
    if (*count > INT64_MAX / 16 || storage_bytes(dtype, *count) != data.size())
      refuse("weight {} has {} bytes, does not fit its type {}", index, data.size(),
             to_string(Type::tensor(dtype, Shape::of(dims))));
    if (dtype == kBool && std::any_of(data.begin(), data.end(), [](char c) { return c != 0 && c != 1; }))
      refuse("weight {} has a truth value that is neither 0 nor 1", index);
    return Tensor::view(dtype, std::move(dims), data.data(), std::move(owner));
  }

  Tensor texts(size_t index, std::vector<int64_t> dims, int64_t count, std::string_view data) const {
    if (static_cast<uint64_t>(count) > data.size() / sizeof(uint32_t))
      refuse("weight {} has {} bytes for {} texts", index, data.size(), count);
    Tensor tensor = Tensor::zeros(kString, std::move(dims));
    std::string_view rest = data.substr(static_cast<size_t>(count) * sizeof(uint32_t));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      auto size = record_at<uint32_t>(data, i * sizeof(uint32_t));
      if (size > rest.size()) refuse("weight {} is cut off at text {}", index, i);
      tensor.mutable_values<std::string>()[i] = rest.substr(0, size);
      rest.remove_prefix(size);
    }
    if (!rest.empty()) refuse("weight {} has {} bytes behind its texts", index, rest.size());
    return tensor;
  }

  std::shared_ptr<OmFile> file_;
  std::string_view bytes_, table_;
  om::Header header_{};
  bool found_[5] = {};
};

bool is_om(std::string_view bytes) { return bytes.starts_with(std::string_view(om::kMagic, sizeof om::kMagic)); }

std::shared_ptr<const OmFile> OmFile::open(const std::string& path) {
  auto mapped = MappedFile::open(path);
  std::string folder = std::filesystem::path(path).parent_path();
  return OmReader(path, mapped->bytes(), mapped, folder.empty() ? "." : folder).read();
}

std::shared_ptr<const OmFile> OmFile::from_bytes(std::string name, std::string_view bytes,
                                                 std::shared_ptr<const void> owner) {
  CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % om::kAlignment == 0, "{} is not aligned", name);
  return OmReader(std::move(name), bytes, std::move(owner)).read();
}

void OmFile::check_weights() const {
  if (crc32c(data_) != data_checksum_)
    fail(ErrorKind::invalid_model, name_, "is damaged: the weights' checksum differs");
  for (const auto& [digest, bytes] : external_) {
    Sha256 hash;
    hash.add(bytes);
    if (hash.digest() != digest)
      fail(ErrorKind::invalid_model, name_, "the file {}/{}{} is damaged: its checksum differs", om::kExternalFolder,
           om::kExternalPrefix, digest);
  }
}

size_t OmFile::external_bytes() const {
  size_t total = 0;
  for (const auto& [digest, bytes] : external_) total += bytes.size();
  return total;
}

Module OmFile::module() const {
  Module module = parse(text_, weights_, name_);
  verify(module);
  if (!module.find("main")) fail(ErrorKind::invalid_model, name_, "has no function @main");
  return module;
}

}  // namespace cairn
