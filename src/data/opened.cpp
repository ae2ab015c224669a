#include "data/opened.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/mindrecord.h"
#include "data/tfrecord.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kKinds[] = {"mindrecord", "tfrecord", "csv", "text", "mnist", "cifar10", "cifar100", "images"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<std::string> sorted_names(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) == folders) names.push_back(entry.path().filename().string());
  if (error) fail(ErrorKind::io, folder, "cannot be read: {}", reason(error.value()));
  std::sort(names.begin(), names.end());
  return names;
}

bool is_image(const std::string& name) {
  const std::string ending = lower(fs::path(name).extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png" || ending == ".bmp";
}

/// The files of these names that are there, in `folder` or one of `inner` below it.
std::vector<std::string> files_below(const std::string& folder, const std::vector<std::string>& inner,
                                     const std::vector<std::string>& names) {
  std::error_code error;
  for (size_t i = 0; i <= inner.size(); ++i) {
    std::vector<std::string> found;
    for (const std::string& name : names)
      if (const fs::path path = fs::path(folder) / (i ? inner[i - 1] : "") / name; fs::is_regular_file(path, error))
        found.push_back(path.string());
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> mnist_files(const std::string& folder, std::vector<std::string>& all) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const char* part : {"train", "t10k"}) {
    std::string found[2];
    for (int i = 0; i < 2; ++i)
      for (const char* form :
           {"{}-{}-idx{}-ubyte", "{}-{}-idx{}-ubyte.gz", "{}-{}.idx{}-ubyte", "{}-{}.idx{}-ubyte.gz"}) {
        const auto files =
            files_below(folder, {}, {fmt::format(fmt::runtime(form), part, i ? "labels" : "images", i ? 1 : 3)});
        if (found[i].empty() && !files.empty()) found[i] = files[0];
      }
    if (found[0].empty() || found[1].empty()) continue;
    pairs.emplace_back(found[0], found[1]);
    all.insert(all.end(), {found[0], found[1]});
  }
  return pairs;
}

OpenedData open_images(const std::string& folder, SamplerPtr sampler) {
  OpenedData opened{"images", {}, nullptr, sorted_names(folder, true)};
  std::erase_if(opened.classes, [](const std::string& name) { return name.starts_with("."); });
  std::vector<Array> labels, names;
  auto add = [&](const fs::path& below, int32_t label) {
    for (const std::string& name : sorted_names((fs::path(folder) / below).string(), false)) {
      if (!is_image(name)) continue;
      opened.files.push_back((fs::path(folder) / below / name).string());
      labels.push_back(Array::scalar<int32_t>(Kind::i32, label));
      names.push_back(Array::of_text((below / name).string()));
    }
  };
  for (size_t i = 0; i < opened.classes.size(); ++i) add(opened.classes[i], static_cast<int32_t>(i));
  if (opened.classes.empty()) add("", 0);
  if (opened.files.empty()) return opened;
  std::vector<TableColumn> columns{
      {"image", opened.files, false, {}, {}}, {"label", {}, false, labels, {}}, {"file_name", {}, false, names, {}}};
  opened.source =
      std::dynamic_pointer_cast<const Source>(table("image_folder", std::move(columns), std::move(sampler), ""));
  return opened;
}

std::string folder_kind(const std::string& folder) {
  std::vector<std::string> unused;
  if (!mnist_files(folder, unused).empty()) return "mnist";
  for (const bool hundred : {false, true}) {
    const std::vector<std::string> files = cifar_files(folder, hundred);
    if (files.empty()) continue;
    // The pickles' names are plain words: the file of class names beside them tells.
    const std::string beside = fs::path(files[0]).parent_path().string();
    if (files[0].ends_with(".bin") || !files_below(beside, {}, {hundred ? "meta" : "batches.meta"}).empty())
      return hundred ? "cifar100" : "cifar10";
  }
  return "images";
}

bool is_mindrecord(std::string_view bytes) {
  uint64_t size = 0;
  if (bytes.size() < 16) return false;
  std::memcpy(&size, bytes.data(), 8);
  return size < bytes.size() && bytes[8] == '{' && bytes.substr(8, 4096).find("\"") != std::string_view::npos;
}

std::string file_kind(const std::string& path) {
  const std::string name = lower(fs::path(path).filename().string());
  const auto file = MappedFile::open(path);
  std::error_code error;
  if (is_mindrecord(file->bytes()) || fs::exists(path + ".db", error)) return "mindrecord";
  if (name.find("tfrecord") != std::string::npos || name.ends_with(".record")) return "tfrecord";
  if (name.ends_with(".csv") || name.ends_with(".csv.gz")) return "csv";
  if (name.ends_with(".txt") || name.ends_with(".txt.gz")) return "text";
  fail(ErrorKind::invalid_argument, path, "its name does not tell what it holds; --from names it: {}",
       fmt::join(kKinds, ", "));
}

/// Columns of integers and of floats, where all of the first rows are; the others are texts.
std::vector<CsvColumn> csv_columns(const std::string& path) {
  const std::vector<std::string> names = csv_header(path, ',');
  std::vector<CsvColumn> columns;
  for (const std::string& name : names) columns.push_back({name, Kind::text, ""});
  auto texts =
      std::dynamic_pointer_cast<const Source>(csv_files({path}, ',', columns, true, sequential_sampler(0, 0), ""));
  auto all = [&](size_t column, auto&& parses) {
    for (int64_t row = 0; row < texts->count(); ++row) {
      const Array cell = texts->read(row)[column];
      const std::string text(cell.view());
      char* end = nullptr;
      if (text.empty() || !parses(text.c_str(), &end) || *end) return false;
    }
    return texts->count() > 0;
  };
  for (size_t i = 0; i < columns.size(); ++i) {
    if (all(i, [](const char* text, char** end) { return std::abs(std::strtoll(text, end, 10)) < (int64_t{1} << 31); }))
      columns[i].kind = Kind::i32;
    else if (all(i, [](const char* text, char** end) { return std::strtod(text, end), true; }))
      columns[i].kind = Kind::f64;
  }
  return columns;
}

/// A path stands for all files of its set: those that a header names, or those of a pattern NAME-00000-of-00004.
std::vector<std::string> shards_of(const std::string& path, const std::string& kind) {
  if (kind == "mindrecord") return mindrecord_shards(path);
  const size_t at = path.rfind("-of-");
  if (at == std::string::npos || at < 6 || path.size() != at + 9) return {path};
  std::vector<std::string> files;
  const std::string count = path.substr(at + 4);
  for (int i = 0; i < std::atoi(count.c_str()) && i < 100000; ++i)
    files.push_back(fmt::format("{}{:05}-of-{}", path.substr(0, at - 5), i, count));
  return files;
}

std::shared_ptr<const Source> as_source(const NodePtr& node) { return std::dynamic_pointer_cast<const Source>(node); }

}  // namespace

std::vector<std::string> cifar_files(const std::string& folder, bool hundred, const std::string& usage) {
  std::vector<std::string> names{"train", "test"}, binary;
  if (!hundred) names = {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"};
  if (!usage.empty())
    std::erase_if(names, [&](const auto& name) { return name.starts_with("test") != (usage == "test"); });
  for (const std::string& name : names) binary.push_back(name + ".bin");
  using Names = std::vector<std::string>;
  const Names with_binary = hundred ? Names{"cifar-100-binary"} : Names{"cifar-10-batches-bin", "cifar-10-verify-bin"};
  const Names found = files_below(folder, with_binary, binary);
  return found.empty() ? files_below(folder, {hundred ? "cifar-100-python" : "cifar-10-batches-py"}, names) : found;
}

std::vector<std::string> data_kinds() { return {std::begin(kKinds), std::end(kKinds)}; }

OpenedData open_data(const std::string& path, const std::string& told, SamplerPtr sampler) {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  if (!folder && !fs::exists(path, error)) fail(ErrorKind::not_found, path, "no such file or folder");
  const std::string kind = !told.empty() ? told : folder ? folder_kind(path) : file_kind(path);
  OpenedData opened{kind, {}, nullptr, {}};
  const bool of_folder = kind == "mnist" || kind.starts_with("cifar") || kind == "images";
  if (of_folder != folder)
    fail(ErrorKind::invalid_argument, path, "is a {}, but {} is read from a {}", folder ? "folder" : "file", kind,
         folder ? "file" : "folder");
  if (kind == "images") {
    opened = open_images(path, std::move(sampler));
  } else if (kind == "mnist") {
    auto pairs = mnist_files(path, opened.files);
    if (!pairs.empty()) opened.source = as_source(mnist(pairs, std::move(sampler), ""));
  } else if (kind == "cifar10") {
    opened.files = cifar_files(path, false);
    if (!opened.files.empty())
      opened.source = as_source(cifar(opened.files, 1, {"image", "label"}, std::move(sampler), ""));
  } else if (kind == "cifar100") {
    opened.files = cifar_files(path, true);
    if (!opened.files.empty())
      opened.source =
          as_source(cifar(opened.files, 2, {"image", "coarse_label", "fine_label"}, std::move(sampler), ""));
  } else {
    opened.files = shards_of(path, kind);
    if (kind == "mindrecord") opened.source = mindrecord(opened.files, {}, std::move(sampler), "");
    if (kind == "tfrecord") opened.source = tfrecord(opened.files, {}, std::move(sampler), "");
    if (kind == "csv")
      opened.source = as_source(csv_files(opened.files, ',', csv_columns(path), true, std::move(sampler), ""));
    if (kind == "text") opened.source = as_source(text_files(opened.files, std::move(sampler), ""));
  }
  if (!opened.source) {
    std::vector<std::string> held = sorted_names(path, false);
    if (held.size() > 8) held.resize(8);
    fail(ErrorKind::not_found, path,
         "holds no data set that is known (MNIST's idx files, CIFAR's files, images in folders of classes){}{}",
         held.empty() ? "" : "; it holds ", fmt::join(held, ", "));
  }
  return opened;
}

}  // namespace cairn::data
