#include "compare/tree.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compare/formats/layout.h"
#include "formats/dump_data.h"
#include "formats/names.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "support/fault.h"
#include "support/files.h"

namespace cairn::compare {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 4'000'000;
constexpr std::string_view kManifest = "manifest.jsonl", kLongNames = "mapping.csv";

/// What our dumps say beside the files' names: one JSON object a line and file.
struct ManifestLine {
  std::string op, type, location;
  std::vector<std::string> sources;
  bool input = false;
  int index = 0;
};
using Manifest = std::map<std::string, ManifestLine>;  // by path

Manifest read_manifest(const fs::path& path) {
  Manifest manifest;
  std::string text = read_file(path.string(), size_t{1} << 30);
  for (size_t from = 0; from < text.size();) {
    size_t end = std::min(text.find('\n', from), text.size());
    auto json = nlohmann::json::parse(text.begin() + static_cast<ptrdiff_t>(from),
                                      text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    from = end + 1;
    // A line that a crash has cut off says nothing; the files before it stay readable.
    if (!json.is_object() || !json.contains("file") || !json["file"].is_string()) continue;
    auto word = [&](const char* key) {
      return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
    };
    ManifestLine line;
    line.op = word("op"), line.type = word("type"), line.location = word("location");
    line.input = word("kind") == "input";
    if (json.contains("index") && json["index"].is_number_integer()) line.index = json["index"].get<int>();
    if (json.contains("sources") && json["sources"].is_array())
      for (const auto& source : json["sources"])
        if (source.is_string()) line.sources.push_back(source.get<std::string>());
    manifest[(path.parent_path() / word("file")).lexically_normal().string()] = std::move(line);
  }
  return manifest;
}

/// Lines "digits,name" for names that were too long for the file system.
std::map<std::string, std::string> read_long_names(const fs::path& path) {
  std::map<std::string, std::string> names;
  std::string text = read_file(path.string(), size_t{256} << 20);
  for (size_t from = 0; from < text.size();) {
    size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line(text.data() + from, end - from);
    from = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (size_t comma = line.find(','); comma != std::string_view::npos)
      names[(path.parent_path() / line.substr(0, comma)).string()] =
          fs::path(line.substr(comma + 1)).filename().string();
  }
  return names;
}

/// "op:0", "op.0" or "op" of an .npz member.
void name_member(const std::string& member, DumpedOp& op, TensorSource& source) {
  op.name = member;
  size_t at = member.find_last_of(":.");
  if (at == std::string::npos || at == 0) return;
  auto [end, error] = std::from_chars(member.data() + at + 1, member.data() + member.size(), source.index);
  if (error == std::errc() && end == member.data() + member.size() && source.index >= 0)
    op.name = member.substr(0, at);
  else
    source.index = 0;
}

class TreeReader {
 public:
  TreeReader(const std::string& root, int version) : version_(version) { tree_.root = root; }

  DumpTree read() {
    std::error_code error;
    fs::file_status status = fs::status(tree_.root, error);
    if (!fs::exists(status)) fail(ErrorKind::not_found, tree_.root, "does not exist{}", near_file(tree_.root));
    if (fs::is_directory(status)) {
      read_folder();
    } else {
      add_file(fs::path(tree_.root), fs::path(tree_.root).filename().string(), steps_[""], true);
      require_readable(steps_[""]);
    }
    finish();
    return std::move(tree_);
  }

 private:
  using Ops = std::map<std::string, DumpedOp>;  // by what makes an execution of an operator one

  /// A damaged file among others is one operator that differs; the only one leaves nothing to compare.
  static void require_readable(const Ops& ops) {
    for (const auto& [key, op] : ops) {
      if (!op.fault.empty()) throw Error(ErrorKind::io, "", op.fault);
      for (const TensorSource& source : op.tensors)
        if (source.kind == TensorSource::Kind::npy) read_npy(source.path);
    }
  }

  void read_folder() {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(tree_.root, error), end; !error && at != end; at.increment(error)) {
      if (!at->is_regular_file()) continue;
      if (files.size() >= kMostFiles) fail(ErrorKind::unsupported, tree_.root, "holds more than {} files", kMostFiles);
      files.push_back(at->path());
    }
    if (error) fail(ErrorKind::io, tree_.root, "cannot be listed: {}", reason(error.value()));
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      if (file.filename() == kManifest) manifest_.merge(read_manifest(file));
      if (file.filename() == kLongNames) long_names_.merge(read_long_names(file));
    }
    for (const fs::path& file : files) archives_[file.parent_path()] += file.extension() == ".npz";
    tree_.plain = manifest_.empty() && has_plain_names(files);
    for (const fs::path& file : files) {
      if (file.filename() == kManifest || file.filename() == kLongNames) continue;
      if (tree_.plain && file.extension() == ".npy") {
        add_plain(file, file.lexically_relative(tree_.root).replace_extension().generic_string(), steps_[""]);
        continue;
      }
      auto named = long_names_.find(file.string());
      std::string folder = file.parent_path().lexically_relative(tree_.root).string();
      add_file(file, named == long_names_.end() ? file.filename().string() : named->second,
               steps_[folder == "." ? "" : folder], false);
    }
  }

  /// No dumps of a device, and more arrays with names of their own than with those of dumps.
  bool has_plain_names(const std::vector<fs::path>& files) const {
    size_t plain = 0, dumps = 0;
    for (const fs::path& file : files) {
      const auto long_name = long_names_.find(file.string());
      const auto parsed =
          parse_file_name(long_name == long_names_.end() ? file.filename().string() : long_name->second);
      if (parsed && parsed->kind != FileName::Kind::framework) return false;
      if (file.extension() == ".npz" || (file.extension() == ".npy" && !parsed)) ++plain;
      if (file.extension() == ".npy" && parsed) ++dumps;
    }
    return plain > dumps;
  }

  static void add_plain(const fs::path& file, const std::string& name, Ops& ops) {
    DumpedOp& op = ops[name];
    op.name = name, op.path = file.string();
    op.tensors.emplace_back().path = file.string();
  }

  /// `alone`: the file was named by the user, so that its name need not be a dump's.
  void add_file(const fs::path& file, const std::string& name, Ops& ops, bool alone) {
    if (file.extension() == ".npz")
      return add_archive(file, archives_[file.parent_path()] > 1 ? file.stem().string() + "/" : "", ops, alone);
    if (auto line = manifest_.find(file.lexically_normal().string()); line != manifest_.end())
      return add_listed(file, name, line->second, ops);
    std::optional<FileName> parsed = parse_file_name(name);
    if (!parsed && alone && file.extension() == ".npy") {
      tree_.plain = true;
      return add_plain(file, file.stem().string(), ops);
    }
    if (!parsed && alone) {
      parsed = FileName();
      parsed->op = file.stem().string();
    }
    if (!parsed) {
      ++tree_.other_files;
    } else if (parsed->kind == FileName::Kind::overflow) {
      tree_.overflow.push_back(file.string());
    } else {
      add_named(file, *parsed, ops);
    }
  }

  void add_named(const fs::path& file, const FileName& name, Ops& ops) {
    bool whole = name.kind != FileName::Kind::framework;
    DumpedOp& op = ops[whole ? fmt::format("{}.{}.{}.{}.{}", name.time, name.op_type, name.op, name.task, name.stream)
                             : fmt::format("{}.{}", name.time, name.op)];
    if (op.path.empty()) {
      op.name = name.op, op.type = name.op_type, op.path = file.string();
      op.time = name.time, op.task = name.task, op.stream = name.stream;
    }
    if (name.kind == FileName::Kind::dump) return add_dump(file, op);
    TensorSource source;
    source.kind = name.kind == FileName::Kind::raw ? TensorSource::Kind::raw : TensorSource::Kind::npy;
    source.path = file.string();
    source.input = name.input, source.index = name.index;
    source.dims = name.dims, source.dtype = name.dtype, source.layout = name.layout;
    op.tensors.push_back(std::move(source));
  }

  /// A file of our own dump: its manifest knows the operator's full name and where it comes from.
  void add_listed(const fs::path& file, const std::string& name, const ManifestLine& line, Ops& ops) {
    std::optional<FileName> parsed = parse_file_name(name);
    if (parsed && parsed->kind == FileName::Kind::overflow) return tree_.overflow.push_back(file.string());
    uint64_t time = parsed ? parsed->time : 0;
    std::string known = line.op.empty() && parsed ? parsed->op : line.op;
    DumpedOp& op = ops[fmt::format("{}.{}.{}", time, line.type, known)];
    if (op.path.empty()) {
      op.name = known, op.type = line.type, op.path = file.string(), op.time = time;
      op.sources = line.sources, op.location = line.location;
      if (parsed) op.task = parsed->task, op.stream = parsed->stream;
    }
    if (file.extension() != ".npy") return add_dump(file, op);
    TensorSource source;
    source.path = file.string();
    source.input = line.input, source.index = line.index;
    if (!line.input) source.origin = known, source.origin_index = line.index;
    op.tensors.push_back(std::move(source));
  }

  void add_dump(const fs::path& file, DumpedOp& op) try {
    DumpFile dump = read_dump(file.string(), version_);
    if (!dump.op_name.empty()) op.name = dump.op_name;
    auto add = [&](const DumpTensor& tensor, bool input, size_t index) {
      TensorSource source;
      source.kind = TensorSource::Kind::dump;
      source.path = file.string();
      source.input = input, source.index = static_cast<int>(index);
      source.origin = tensor.original_name, source.origin_index = tensor.original_index;
      op.tensors.push_back(std::move(source));
    };
    for (size_t i = 0; i < dump.inputs.size(); ++i) add(dump.inputs[i], true, i);
    for (size_t i = 0; i < dump.outputs.size(); ++i) add(dump.outputs[i], false, i);
  } catch (const Error& error) {
    op.fault = error.what();
  }

  /// `prefix`: in front of its members' names, of several archives in a folder.
  void add_archive(const fs::path& file, const std::string& prefix, Ops& ops, bool alone) try {
    auto archive = NpzFile::open(file.string());
    size_t position = 0;
    for (const std::string& member : archive->names()) {
      std::optional<FileName> parsed = parse_file_name(member + ".npy");
      DumpedOp named;
      TensorSource source;
      source.kind = TensorSource::Kind::npz;
      source.path = file.string(), source.member = member;
      if (parsed) {
        named.name = parsed->op, named.type = parsed->op_type, named.time = parsed->time;
        source.input = parsed->input, source.index = parsed->index;
      } else {
        tree_.plain = tree_.plain || alone;
        name_member(prefix + member, named, source);
        named.time = position;  // the archive's order is the order of execution
      }
      named.path = file.string();
      DumpedOp& op = ops.try_emplace(fmt::format("{}.{}", parsed ? named.time : 0, named.name), named).first->second;
      op.tensors.push_back(std::move(source));
      ++position;
    }
  } catch (const Error& error) {
    DumpedOp& op = ops[file.string()];
    op.name = file.stem().string(), op.path = file.string(), op.fault = error.what();
  }

  void finish() {
    for (auto& [folder, ops] : steps_) {
      if (ops.empty()) continue;
      DumpStep step;
      step.folder = folder;
      std::string last = fs::path(folder).filename().string();
      int64_t number = 0;
      auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), number);
      if (!last.empty() && error == std::errc() && end == last.data() + last.size()) step.number = number;
      for (auto& [key, op] : ops) {
        std::stable_sort(op.tensors.begin(), op.tensors.end(), [](const TensorSource& a, const TensorSource& b) {
          return std::pair(!a.input, a.index) < std::pair(!b.input, b.index);
        });
        step.ops.push_back(std::move(op));
      }
      std::stable_sort(step.ops.begin(), step.ops.end(), [](const DumpedOp& a, const DumpedOp& b) {
        return std::tie(a.time, a.task) < std::tie(b.time, b.task);
      });
      tree_.steps.push_back(std::move(step));
    }
    std::stable_sort(tree_.steps.begin(), tree_.steps.end(),
                     [](const DumpStep& a, const DumpStep& b) { return a.number < b.number; });
  }

  int version_;
  DumpTree tree_;
  Manifest manifest_;
  std::map<std::string, std::string> long_names_;
  std::map<std::string, Ops> steps_;
  std::map<fs::path, size_t> archives_;  // .npz files of a folder
};

struct RawType {
  const char* name;
  DType dtype;
};
constexpr RawType kRawTypes[] = {{"float32", kF32},   {"float", kF32},   {"float16", kF16}, {"fp16", kF16},
                                 {"bfloat16", kBF16}, {"float64", kF64}, {"int8", kI8},     {"int16", kI16},
                                 {"int32", kI32},     {"int64", kI64},   {"uint8", kU8},    {"uint16", kU16},
                                 {"uint32", kU32},    {"uint64", kU64},  {"bool", kBool}};

LoadedTensor load_raw(const TensorSource& source) {
  const RawType* type = std::find_if(std::begin(kRawTypes), std::end(kRawTypes),
                                     [&](const RawType& row) { return source.dtype == row.name; });
  if (type == std::end(kRawTypes))
    fail(ErrorKind::unsupported, source.path, "has elements of unknown type {}", source.dtype);
  auto file = MappedFile::open(source.path);
  std::optional<int64_t> count = element_count(source.dims);
  if (!count || storage_bytes(type->dtype, *count) != file->bytes().size())
    fail(ErrorKind::io, source.path, "holds {} bytes, which its name's shape does not need", file->bytes().size());
  LoadedTensor loaded;
  loaded.tensor = Tensor::view(type->dtype, source.dims, file->bytes().data(), file);
  loaded.dtype = source.dtype, loaded.layout = source.layout;
  return loaded;
}

LoadedTensor load_dump(const TensorSource& source, int version) {
  DumpFile file = read_dump(source.path, version);
  const auto& tensors = source.input ? file.inputs : file.outputs;
  if (static_cast<size_t>(source.index) >= tensors.size())
    fail(ErrorKind::io, source.path, "changed while it was read");
  const DumpTensor& dumped = tensors[static_cast<size_t>(source.index)];
  return {to_tensor(dumped, source.path, file.owner),
          dump_type_name(dumped.data_type),
          layout_name(dumped.format),
          dumped.format,
          dumped.original_dims,
          dumped.address};
}

/// numpy's name of a dtype.
std::string numpy_name(DType dtype) {
  for (const RawType& row : kRawTypes)
    if (row.dtype == dtype) return row.name;
  return to_string(dtype);
}

}  // namespace

DumpTree read_tree(const std::string& root, int version) { return TreeReader(root, version).read(); }

LoadedTensor load(const TensorSource& source, int version) {
  if (source.kind == TensorSource::Kind::dump) return load_dump(source, version);
  if (source.kind == TensorSource::Kind::raw) return load_raw(source);
  LoadedTensor loaded;
  loaded.tensor =
      source.kind == TensorSource::Kind::npz ? NpzFile::open(source.path)->read(source.member) : read_npy(source.path);
  loaded.dtype = numpy_name(loaded.tensor.dtype());
  return loaded;
}

}  // namespace cairn::compare
