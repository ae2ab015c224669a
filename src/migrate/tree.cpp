// Walking, copying and replacing files; the manifest of edits made in place.
#include "migrate/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/fault.h"
#include "support/files.h"
#include "support/part_file.h"
#include "support/sha256.h"

namespace cairn::migrate {
namespace fs = std::filesystem;
namespace {

constexpr std::array kSkipped = {".git",        ".hg",           ".svn",        "__pycache__", ".ipynb_checkpoints",
                                 ".mypy_cache", ".pytest_cache", "node_modules"};
constexpr std::array kRead = {".py", ".pyw", ".ipynb", ".sh", ".bash", ".yaml", ".yml"};
constexpr std::string_view kWorkMark = ".cairn_work";  // in a folder of cairn port or cairn diff: copies of a project
constexpr std::string_view kManifest = ".cairn-migrate.json";

bool one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string digest(std::string_view bytes) {
  Sha256 sha;
  sha.add(bytes);
  return sha.digest();
}

bool matches_here(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    if (pattern.starts_with("**")) {
      std::string_view rest = pattern.substr(pattern.starts_with("**/") ? 3 : 2);
      for (size_t at = 0; at <= path.size(); ++at)
        if (matches_here(rest, path.substr(at))) return true;
      return false;
    }
    if (pattern[0] == '*') {
      for (size_t at = 0; at <= path.size(); ++at) {
        if (matches_here(pattern.substr(1), path.substr(at))) return true;
        if (at < path.size() && path[at] == '/') return false;
      }
      return false;
    }
    if (path.empty() || (pattern[0] != '?' && pattern[0] != path[0])) return false;
    pattern.remove_prefix(1);
    path.remove_prefix(1);
  }
  return path.empty();
}

Input read_input(const fs::path& path, const std::string& relative, const Options& options) {
  Input input{relative, "", ""};
  std::error_code error;
  uintmax_t size = fs::file_size(path, error);
  bool script = relative.ends_with(".py") || relative.ends_with(".ipynb") || relative.ends_with(".pyw");
  if (error) return input.problem = "cannot be read: " + reason(error.value()), input;
  if (size > options.max_file_bytes) {
    if (script) input.problem = fmt::format("is larger than {} MB", options.max_file_bytes >> 20);
    return input;
  }
  try {
    input.text = read_file(path, options.max_file_bytes + 1);
  } catch (const Error& failure) {
    return input.problem = failure.message(), input;
  }
  if (!script) return input;
  if (input.text.starts_with("\xFF\xFE") || input.text.starts_with("\xFE\xFF"))
    input.problem = "is UTF-16, which is no encoding of Python source";
  else if (input.text.find('\0') != std::string::npos)
    input.problem = "is no text: it holds a zero byte";
  if (!input.problem.empty()) input.text.clear();
  return input;
}

bool wanted(const std::string& relative, const Options& options) {
  auto any = [&](const std::vector<std::string>& globs) {
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return glob_matches(glob, relative); });
  };
  return (options.include.empty() || any(options.include)) && !any(options.exclude);
}

void walk(const fs::path& folder, const std::string& prefix, const Options& options, Tree& tree) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  if (error) tree.inputs.push_back({prefix.empty() ? "." : prefix, "", "cannot be listed: " + reason(error.value())});
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    std::string name = entry.path().filename().string(), relative = prefix + name,
                extension = entry.path().extension().string();
    std::error_code ignored;
    if (entry.is_symlink(ignored)) {
      tree.links.push_back(relative);
      if (one_of(extension, kRead) && !fs::exists(entry.path(), ignored))
        tree.inputs.push_back({relative, "", "is a symbolic link to nothing"});
    } else if (entry.is_directory(ignored)) {
      if (!one_of(name, kSkipped) && !fs::exists(entry.path() / kWorkMark, ignored))
        walk(entry.path(), relative + "/", options, tree);
    } else if (entry.is_regular_file(ignored)) {
      if (one_of(extension, kRead) && wanted(relative, options))
        tree.inputs.push_back(read_input(entry.path(), relative, options));
      else
        tree.rest.push_back(relative);
    }
  }
}

nlohmann::json read_manifest(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {{"version", 1}, {"runs", nlohmann::json::array()}};
  nlohmann::json manifest = nlohmann::json::parse(read_file(path, 1 << 30), nullptr, false);
  if (!manifest.is_object() || !manifest.contains("runs") || !manifest["runs"].is_array())
    fail(ErrorKind::invalid_argument, path, "is no manifest of cairn migrate");
  return manifest;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view path) {
  if (matches_here(pattern, path)) return true;
  // A pattern that names a folder takes all below it; one without a slash may stand for any part of the path.
  bool plain = pattern.find('/') == pattern.npos;
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('/', begin), path.size());
    if (plain && matches_here(pattern, path.substr(begin, end - begin))) return true;
    if (!plain && end < path.size() && matches_here(pattern, path.substr(0, end))) return true;
    begin = end + 1;
  }
  return false;
}

Tree read_tree(const std::string& path, const Options& options) {
  Tree tree;
  std::error_code error;
  fs::path at = fs::path(path).lexically_normal();
  if (!fs::exists(at, error)) fail(ErrorKind::not_found, path, "there is no such file or folder");
  if (fs::is_directory(at, error)) {
    tree.root = at.has_filename() ? at : at.parent_path();
    walk(tree.root, "", options, tree);
  } else {
    tree.single = true;
    tree.root = at.parent_path().empty() ? fs::path(".") : at.parent_path();
    tree.inputs.push_back(read_input(at, at.filename(), options));
    if (tree.inputs[0].text.find('\0') != std::string::npos)
      fail(ErrorKind::invalid_argument, path, "is no script: it holds zero bytes");
  }
  return tree;
}

namespace {

/// Of the exception that is being handled: told once for each file, while the others go on.
std::string problem_of(const std::string& path) {
  const Error fault = current_fault();
  return fmt::format("{}: {}", path, fault.where().ends_with(path) ? fault.message() : fault.what());
}

}  // namespace

std::vector<std::string> write_tree(const Tree& tree, const Result& result, const std::string& out) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(out, error), source = fs::weakly_canonical(tree.root, error);
  auto [differs, unused] = std::mismatch(source.begin(), source.end(), target.begin(), target.end());
  if (differs == source.end() && !tree.single)
    fail(ErrorKind::invalid_argument, out, "the output must not lie inside the scripts' own folder");
  if (fs::exists(target, error) && !fs::is_directory(target, error))
    fail(ErrorKind::invalid_argument, out, "is a file, where a folder is to be written");
  std::vector<std::string> problems;
  auto try_to = [&](const std::string& path, const std::function<void()>& action) {
    try {
      fs::create_directories((target / path).parent_path());
      action();
    } catch (...) {
      problems.push_back(problem_of(path));
    }
  };
  auto copy = [&](const std::string& path) {
    try_to(path, [&] {
      const fs::path from = fs::path(tree.root) / path;
      if (!fs::is_regular_file(fs::symlink_status(from)))
        return fs::copy(from, target / path, fs::copy_options::overwrite_existing | fs::copy_options::copy_symlinks);
      PartFile file(target / path, false);
      file.write(MappedFile::open(from)->bytes());
      file.commit();
      fs::permissions(target / path, fs::status(from).permissions());
    });
  };
  for (const std::string& path : tree.rest) copy(path);
  for (const std::string& path : tree.links)
    try_to(path, [&] {
      fs::remove(target / path);
      fs::copy_symlink(fs::path(tree.root) / path, target / path);
    });
  for (const FileResult& file : result.files) {
    if (file.state != FileState::changed) {
      if (fs::is_regular_file(fs::symlink_status(fs::path(tree.root) / file.path, error))) copy(file.path);
      continue;
    }
    try_to(file.path, [&] {
      write_file(target / file.path, file.after);
      fs::permissions(target / file.path, fs::status(fs::path(tree.root) / file.path).permissions());
    });
  }
  return problems;
}

std::vector<std::string> write_in_place(const Tree& tree, const Result& result) {
  std::vector<std::string> problems;
  fs::path manifest_path = fs::path(tree.root) / kManifest;
  nlohmann::json manifest = read_manifest(manifest_path), run = {{"files", nlohmann::json::array()}};
  for (const FileResult& file : result.files) {
    if (file.state != FileState::changed) continue;
    nlohmann::json edits = nlohmann::json::array();
    int64_t shift = 0;
    for (const Edit& edit : file.edits) {
      edits.push_back({{"at", edit.begin + shift},
                       {"length", edit.text.size()},
                       {"old", hex(std::string_view(file.before).substr(edit.begin, edit.end - edit.begin))}});
      shift += static_cast<int64_t>(edit.text.size()) - (edit.end - edit.begin);
    }
    run["files"].push_back(
        {{"path", file.path}, {"before", digest(file.before)}, {"after", digest(file.after)}, {"edits", edits}});
  }
  if (run["files"].empty()) return problems;
  // The manifest first: a run that is stopped half-way can be taken back.
  manifest["runs"].push_back(run);
  write_file(manifest_path, manifest.dump(1) + "\n");
  for (const FileResult& file : result.files) {
    if (file.state != FileState::changed) continue;
    try {
      fs::path path = fs::canonical(fs::path(tree.root) / file.path);
      fs::perms permissions = fs::status(path).permissions();
      if (read_file(path, file.before.size() + 1) != file.before) {
        problems.push_back(file.path + ": changed since it was read; left as it is");
        continue;
      }
      write_file(path, file.after);
      fs::permissions(path, permissions);
    } catch (...) {
      problems.push_back(problem_of(file.path));
    }
  }
  return problems;
}

std::vector<std::string> undo(const std::string& path, size_t& restored) {
  std::error_code error;
  fs::path manifest_path = fs::is_directory(path, error) ? fs::path(path) / kManifest : fs::path(path);
  if (!fs::exists(manifest_path, error)) fail(ErrorKind::not_found, manifest_path, "there is no manifest to undo");
  nlohmann::json manifest = read_manifest(manifest_path);
  std::vector<std::string> problems;
  restored = 0;
  if (manifest["runs"].empty()) return problems;
  try {
    nlohmann::json run = manifest["runs"].back();
    for (const auto& file : run.at("files")) {
      std::string name = file.at("path");
      fs::path relative = fs::path(name).lexically_normal();
      if (relative.is_absolute() || *relative.begin() == "..")
        fail(ErrorKind::invalid_argument, manifest_path, "names a file outside of its folder");
      fs::path target = manifest_path.parent_path() / relative;
      try {
        std::string text = read_file(target, 1 << 30);
        if (digest(text) == file.at("before").get<std::string>()) continue;
        if (digest(text) != file.at("after").get<std::string>()) {
          problems.push_back(name + ": changed since the migration; left as it is");
          continue;
        }
        std::vector<Edit> edits;
        for (const auto& edit : file.at("edits")) {
          uint32_t at = edit.at("at"), length = edit.at("length");
          if (at > text.size() || length > text.size() - at || (!edits.empty() && at < edits.back().end))
            fail(ErrorKind::invalid_argument, manifest_path, "holds an edit outside of {}", name);
          edits.push_back({at, at + length, from_hex(edit.at("old")), 0});
        }
        std::string old = apply_edits(text, edits);
        if (digest(old) != file.at("before").get<std::string>()) {
          problems.push_back(name + ": the manifest does not give back its bytes; left as it is");
          continue;
        }
        fs::perms permissions = fs::status(target).permissions();
        write_file(target, old);
        fs::permissions(target, permissions);
        ++restored;
      } catch (const fs::filesystem_error&) {
        problems.push_back(problem_of(name));
      }
    }
    if (problems.empty()) manifest["runs"].erase(manifest["runs"].size() - 1);
    if (manifest["runs"].empty())
      fs::remove(manifest_path);
    else
      write_file(manifest_path, manifest.dump(1) + "\n");
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::invalid_argument, manifest_path, "is no manifest of cairn migrate");
  }
  return problems;
}

}  // namespace cairn::migrate
