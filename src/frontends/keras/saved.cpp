#include "frontends/keras/saved.h"

#include <algorithm>
#include <optional>

#include "formats/zip.h"

namespace cairn::keras {
namespace {

/// Keras stores members as they are.
std::optional<std::string_view> member(const ModelBytes& model, const ZipArchive& archive, std::string_view wanted) {
  const ZipMember* found = archive.find(wanted);
  if (!found) return std::nullopt;
  if (found->method != 0)
    fail(ErrorKind::unsupported, model.name(), "'{}' is compressed in the archive; Keras stores it plainly", wanted);
  return archive.content(*found).bytes;
}

Json parse(ModelBytes& model, std::string_view text) {
  constexpr uint64_t kBytesEach = 24;  // estimate of the memory of parsed JSON per byte of text
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
  // The names of layers that were built before their model lack the model's name: the outer components may be missing.
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

bool looks_like_keras(std::string_view bytes) {
  return hdf5::looks_like_hdf5(bytes) || (ZipArchive::looks_like(bytes) && bytes.rfind("config.json") != bytes.npos);
}

Saved read(const std::string& path) {
  Saved saved;
  saved.model = ModelBytes::open(path);
  const std::string_view bytes = saved.model->bytes();
  saved.archive = ZipArchive::looks_like(bytes);
  if (!saved.archive) {
    auto file = std::make_shared<hdf5::File>(saved.model, bytes);
    const std::optional<std::string> config = file->text("", "model_config");
    if (!config)
      fail(ErrorKind::invalid_model, path, "holds no architecture, weights alone; save the model with model.save()");
    saved.architecture = parse(*saved.model, *config);
    saved.file = file;
    return saved;
  }
  const ZipArchive archive = ZipArchive::of(bytes, saved.model, path);
  auto part = [&](const char* name) { return member(*saved.model, archive, name); };
  const auto config = part("config.json"), weights = part("model.weights.h5");
  if (!config || !weights)
    fail(ErrorKind::invalid_model, path, "is an archive without {}", config ? "model.weights.h5" : "config.json");
  saved.architecture = parse(*saved.model, *config);
  if (const auto metadata = part("metadata.json")) {
    const Json version = parse(*saved.model, *metadata).value("keras_version", Json());
    saved.keras3 = version.is_string() && !version.get<std::string>().starts_with("2.");
  }
  saved.file = std::make_shared<hdf5::File>(saved.model, *weights);
  return saved;
}

}  // namespace cairn::keras
