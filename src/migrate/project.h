// All parsed scripts of one run, and how their imports find each other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "migrate/migrate.h"
#include "migrate/module.h"

namespace cairn::migrate {

class Project {
 public:
  /// Every script's path counts for imports, parsed or not; paths are relative to the root with '/' between parts.
  void add_path(const std::string& path);
  void add(std::unique_ptr<Module> module);
  /// Finds out who imports whom, when all modules are there.
  void link();
  /// The modules that a module imports, and those that import it, by index.
  const std::vector<size_t>& imports(size_t index) const { return imports_[index]; }
  const std::vector<size_t>& importers(size_t index) const { return importers_[index]; }

  const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
  size_t index_of(const Module* module) const { return index_.at(module); }

  /// The project file that `name` (as written, leading dots relative) means in `importer`, "" when it is outside the
  /// project. Packages give their __init__.py; a folder without one counts too, as "folder/".
  std::string find(const std::string& importer, std::string_view name) const;
  /// The parsed module of a path, or nullptr.
  const Module* module(const std::string& path) const;

 private:
  /// The name of the outermost package that holds `folder` (with its final '/'), "" when it is no package.
  std::string_view top_package(std::string_view folder) const;
  std::string find_under(const std::string& folder, std::string_view dotted) const;

  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::vector<size_t>> imports_, importers_;
  std::unordered_map<const Module*, size_t> index_;
  std::unordered_map<std::string, const Module*> by_path_;
  std::unordered_map<std::string, bool> paths_;  // files and, with a final '/', folders
};

/// The files to parse, as indices: those that name a framework, and those that import one of them, directly or not
/// (selection.cpp); with `imported` also those that one of them imports.
std::vector<size_t> scripts_to_parse(const std::vector<FileResult>& files, const Project& paths, bool imported);

/// Frameworks and packages whose names are theirs even inside a tree that holds a folder of the same name.
bool is_framework(std::string_view dotted);

}  // namespace cairn::migrate
