#include "model/open.h"

#include <algorithm>
#include <filesystem>

#include "frontends/tensorflow/cluster.h"
#include "frontends/tensorflow/saved_model.h"
#include "ir/text.h"
#include "model/foreign_om.h"
#include "support/files.h"
#include "support/sha256.h"

namespace cairn {

namespace {

constexpr size_t kLargestText = size_t{1} << 30;

/// Whether the bytes are our text form: "module @" after blanks and comments.
bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    if (!bytes.starts_with("//")) break;
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
  }
  return bytes.starts_with("module @");
}

FileKind kind_of_bytes(std::string_view bytes) {
  if (is_om(bytes)) return FileKind::om;
  if (is_foreign_om(bytes)) return FileKind::foreign_om;
  return is_text(bytes) ? FileKind::text : FileKind::foreign;
}

void refuse_options(const std::string& name, const ImportOptions& options) {
  if (!options.input_shapes.empty() || !options.out_nodes.empty() || !options.signature.empty() ||
      !options.tags.empty())
    fail(ErrorKind::invalid_argument, name,
         "is converted already; shapes, outputs and signatures are chosen while converting");
}

[[noreturn]] void refuse_foreign_om(const std::string& name) {
  fail(ErrorKind::unsupported, name,
       "is a model of the original platform, with machine code for its chips; convert the model that it was made from");
}

Module open_text(std::string_view text, const std::string& name) {
  if (text.size() > kLargestText)
    fail(ErrorKind::invalid_model, name, "has {} bytes of text, expected at most {}", text.size(), kLargestText);
  Module module = parse(text, {}, name);
  verify(module);
  if (!module.find("main")) fail(ErrorKind::invalid_model, name, "has no function @main");
  return module;
}

std::string sha256_of(const std::string& path) {
  auto file = MappedFile::open(path);
  Sha256 hash;
  hash.add(file->bytes());
  return hash.digest();
}

/// The files of a SavedModel, by their names in its folder, sorted.
std::vector<std::string> saved_model_parts(const std::filesystem::path& folder) {
  std::vector<std::string> parts;
  for (const char* part : {"saved_model.pb", "saved_model.pbtxt"})
    if (std::filesystem::exists(folder / part)) parts.push_back(part);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "variables", none))
    if (entry.is_regular_file(none)) parts.push_back("variables/" + entry.path().filename().string());
  std::sort(parts.begin(), parts.end());
  return parts;
}

/// The files of a checkpoint, by their names in its folder, sorted.
std::vector<std::string> checkpoint_parts(const std::filesystem::path& prefix) {
  const std::string name = prefix.filename().string();
  std::vector<std::string> parts = {name + ".index", name + ".meta"};
  const auto folder = prefix.has_parent_path() ? prefix.parent_path() : std::filesystem::path(".");
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().filename().string().starts_with(name + ".data-"))
      parts.push_back(entry.path().filename().string());
  std::sort(parts.begin(), parts.end());
  return parts;
}

}  // namespace

FileKind kind_of(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return FileKind::foreign;
  if (std::filesystem::exists(path + ".index", none)) return FileKind::foreign;  // the prefix of a checkpoint
  return kind_of_bytes(MappedFile::open(path)->bytes());
}

std::string format_name(const std::string& path) {
  switch (kind_of(path)) {
    case FileKind::om: return "Cairn model";
    case FileKind::text: return "Cairn text form";
    case FileKind::foreign_om: return "model of the original platform";
    case FileKind::foreign: break;
  }
  return to_string(detect_format(path));
}

Module open_model(const std::string& path, const ImportOptions& options) {
  FileKind kind = kind_of(path);
  if (kind == FileKind::foreign_om) refuse_foreign_om(path);
  if (kind == FileKind::foreign) return import_model(path, options);
  refuse_options(path, options);
  if (kind == FileKind::om) return OmFile::open(path)->module();
  return open_text(MappedFile::open(path)->bytes(), path);
}

Module open_bytes(BytesFormat format, const std::string& name, std::string_view bytes, const ImportOptions& options) {
  FileKind kind = kind_of_bytes(bytes);
  if (kind == FileKind::foreign_om) refuse_foreign_om(name);
  if (format == BytesFormat::any && kind == FileKind::foreign)
    fail(ErrorKind::invalid_argument, name, "does not tell its format; say whether it is a GraphDef or ONNX");
  if (format == BytesFormat::om || (format == BytesFormat::any && kind == FileKind::om)) {
    refuse_options(name, options);
    Tensor copy = Tensor::uninitialized(kU8, {static_cast<int64_t>(bytes.size())});
    if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
    return OmFile::from_bytes(name, {static_cast<const char*>(copy.data()), bytes.size()}, copy.owner())->module();
  }
  if (format == BytesFormat::text || format == BytesFormat::any) {
    refuse_options(name, options);
    return open_text(bytes, name);
  }
  auto model = ModelBytes::from_memory(name, std::string(bytes));
  if (format == BytesFormat::onnx) return import_onnx(onnx::read_model(model, ""), options);
  auto graph = tensorflow::read_graph_def(model, model->bytes());
  return format == BytesFormat::cluster ? import_cluster(graph, options) : import_tensorflow(graph, options);
}

OmOrigin origin_of(const std::string& path) {
  std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  if (file.filename().empty()) file = file.parent_path();
  OmOrigin origin;
  origin.source = file.filename().string();
  const std::string prefix = tensorflow::checkpoint_prefix(path);
  const bool folder = std::filesystem::is_directory(file);
  if (!folder && prefix.empty()) {
    origin.source_sha256 = sha256_of(path);
    return origin;
  }
  const std::filesystem::path root = folder ? file : std::filesystem::path(prefix).parent_path();
  Sha256 hash;
  for (const std::string& part : folder ? saved_model_parts(root) : checkpoint_parts(prefix))
    hash.add(fmt::format("{}  {}\n", sha256_of(root / part), part));
  origin.source_sha256 = hash.digest();
  return origin;
}

}  // namespace cairn
