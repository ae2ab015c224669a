#include "frontends/keras/saved.h"

#include <algorithm>
#include <optional>

namespace cairn::keras {
namespace {

constexpr std::string_view kZip("PK\x03\x04", 4);

uint64_t little(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

/// A member of a zip archive (APPNOTE 6.3), through the directory at its end. Keras stores members as they are.
std::optional<std::string_view> member(const ModelBytes& model, std::string_view wanted) {
  constexpr size_t kEnd = 22, kEntry = 46, kHead = 30, kLongestComment = 65535;
  const std::string_view bytes = model.bytes();
  auto damaged = [&]() { fail(ErrorKind::invalid_model, model.name(), "the archive is damaged"); };
  const size_t from = bytes.size() - std::min(bytes.size(), kEnd + kLongestComment);
  const size_t end = bytes.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string_view::npos || end < from || bytes.size() - end < kEnd) damaged();
  size_t at = little(bytes, end + 16, 4);
  for (uint64_t left = little(bytes, end + 10, 2); left > 0; --left) {
    if (at > bytes.size() || bytes.size() - at < kEntry || !bytes.substr(at).starts_with("PK\x01\x02")) damaged();
    const uint64_t method = little(bytes, at + 10, 2), size = little(bytes, at + 20, 4);
    const size_t name = little(bytes, at + 28, 2), rest = little(bytes, at + 30, 2) + little(bytes, at + 32, 2);
    const size_t head = little(bytes, at + 42, 4);
    if (bytes.size() - at - kEntry < name) damaged();
    if (bytes.substr(at + kEntry, name) != wanted) {
      at += kEntry + name + rest;
      continue;
    }
    if (method != 0)
      fail(ErrorKind::unsupported, model.name(), "'{}' is compressed in the archive; Keras stores it plainly", wanted);
    if (head > bytes.size() || bytes.size() - head < kHead || !bytes.substr(head).starts_with(kZip)) damaged();
    const size_t start = head + kHead + little(bytes, head + 26, 2) + little(bytes, head + 28, 2);
    if (start > bytes.size() || bytes.size() - start < size) damaged();
    return bytes.substr(start, size);
  }
  return std::nullopt;
}

Json parse(ModelBytes& model, std::string_view text) {
  constexpr uint64_t kBytesEach = 24;  // of parsed JSON for a byte of text, at most in practice
  model.charge(kBytesEach * text.size());
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    fail(ErrorKind::invalid_model, model.name(), "the architecture is no JSON object");
  return json;
}

bool has_part(std::string_view path, std::string_view part) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == part) return true;
    begin = end + 1;
  }
  return false;
}

/// "BatchNormalization" as archives name the place of such a layer: "batch_normalization".
std::string snake_case(std::string_view name) {
  std::string text;
  auto upper = [&](size_t i) { return i < name.size() && std::isupper(static_cast<unsigned char>(name[i])) != 0; };
  auto lower = [&](size_t i) { return i < name.size() && std::islower(static_cast<unsigned char>(name[i])) != 0; };
  for (size_t i = 0; i < name.size(); ++i) {
    if (std::isalnum(static_cast<unsigned char>(name[i])) == 0 && name[i] != '_') continue;
    const bool starts = upper(i) && i > 0 && (lower(i - 1) || lower(i + 1));
    if (starts && !text.empty() && text.back() != '_') text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

}  // namespace

std::string next_place(std::string_view class_name, std::map<std::string, int>& used) {
  std::string place = snake_case(class_name);
  const int number = used[place]++;
  return number == 0 ? place : fmt::format("{}_{}", place, number);
}

Weights Weights::part(const std::string& name, const std::string& path) const {
  Weights inner = *this;
  inner.taken_ = 0;
  if (numbered_)
    inner.group_ += "/" + path;
  else if (!name.empty())
    inner.within_.push_back(name);
  return inner;
}

std::string Weights::path_of(const std::string& name) {
  if (numbered_) return fmt::format("{}/vars/{}", group_, taken_++);
  const auto paths = file_->texts(group_, "weight_names").value_or(std::vector<std::string>());
  std::vector<std::string> found;
  // A model made of layers that were built before it is no part of their names: the outer parts may be missing.
  for (size_t outer = 0; found.empty() && outer < std::max<size_t>(within_.size(), 1); ++outer)
    for (const std::string& path : paths) {
      const std::string own = path.substr(0, path.rfind(':'));
      bool inside = own.substr(own.rfind('/') + 1) == name;
      for (size_t i = outer; i < within_.size(); ++i) inside = inside && has_part(own, within_[i]);
      if (inside) found.push_back(path);
    }
  if (found.size() != 1)
    fail(ErrorKind::invalid_model, "", "has {} weights '{}' in the file, expected 1", found.size(), name);
  return group_ + "/" + found[0];
}

Tensor Weights::take(const std::string& name, const std::vector<int64_t>& dims) {
  Tensor tensor = file_->dataset(path_of(name));
  bool same = tensor.rank() == dims.size();
  for (size_t i = 0; same && i < dims.size(); ++i) same = dims[i] < 0 || dims[i] == tensor.dims()[i];
  if (!same)
    fail(ErrorKind::invalid_model, "", "weight '{}' is {}, expected [{}]", name, to_string(tensor.type()),
         fmt::join(dims, ", "));
  return tensor;
}

Weights Saved::weights(const std::string& layer, const std::string& place) const {
  return Weights(file, archive ? "layers/" + place : "model_weights/" + layer, archive);
}

bool looks_like_keras(std::string_view bytes) { return hdf5::looks_like_hdf5(bytes) || bytes.starts_with(kZip); }

Saved read(const std::string& path) {
  Saved saved;
  saved.model = ModelBytes::open(path);
  const std::string_view bytes = saved.model->bytes();
  saved.archive = bytes.starts_with(kZip);
  if (!saved.archive) {
    auto file = std::make_shared<hdf5::File>(saved.model, bytes);
    const std::optional<std::string> config = file->text("", "model_config");
    if (!config)
      fail(ErrorKind::invalid_model, path, "holds no architecture, weights alone; save the model with model.save()");
    saved.architecture = parse(*saved.model, *config);
    saved.file = file;
    return saved;
  }
  const auto config = member(*saved.model, "config.json"), weights = member(*saved.model, "model.weights.h5");
  if (!config || !weights)
    fail(ErrorKind::invalid_model, path, "is an archive without {}", config ? "model.weights.h5" : "config.json");
  saved.architecture = parse(*saved.model, *config);
  if (const auto metadata = member(*saved.model, "metadata.json")) {
    const Json version = parse(*saved.model, *metadata).value("keras_version", Json());
    saved.keras3 = version.is_string() && !version.get<std::string>().starts_with("2.");
  }
  saved.file = std::make_shared<hdf5::File>(saved.model, *weights);
  return saved;
}

}  // namespace cairn::keras
