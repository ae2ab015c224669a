// Python's import search over the files of a project: the importer's folder first, then each folder above it.
#include "migrate/project.h"

#include <algorithm>
#include <array>

namespace cairn::migrate {

void Project::add_path(const std::string& path) {
  paths_[path] = true;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    paths_[path.substr(0, slash + 1)] = true;
}

void Project::add(std::unique_ptr<Module> module) {
  add_path(module->path());
  index_[module.get()] = modules_.size();
  by_path_[module->path()] = module.get();
  modules_.push_back(std::move(module));
}

void Project::link() {
  imports_.resize(modules_.size());
  importers_.resize(modules_.size());
  for (size_t i = 0; i < modules_.size(); ++i)
    for (const Import& import : modules_[i]->imports())
      for (const std::string& dotted :
           {import.module, import.module + (import.module.ends_with('.') ? "" : ".") + import.member}) {
        const Module* other = module(find(modules_[i]->path(), dotted));
        if (!other || other == modules_[i].get()) continue;
        const size_t index = index_of(other);
        if (std::find(imports_[i].begin(), imports_[i].end(), index) != imports_[i].end()) continue;
        imports_[i].push_back(index);
        importers_[index].push_back(i);
      }
}

const Module* Project::module(const std::string& path) const {
  auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

std::string Project::find_under(const std::string& folder, std::string_view dotted) const {
  std::string path = folder;
  for (char c : dotted) path += c == '.' ? '/' : c;
  if (paths_.contains(path + "/__init__.py")) return path + "/__init__.py";
  if (paths_.contains(path + ".py")) return path + ".py";
  return paths_.contains(path + "/") ? path + "/" : "";
}

std::string_view Project::top_package(std::string_view folder) const {
  std::string_view top;
  while (!folder.empty() && paths_.contains(std::string(folder) + "__init__.py")) {
    size_t above = folder.size() < 2 ? folder.npos : folder.rfind('/', folder.size() - 2);
    size_t begin = above == folder.npos ? 0 : above + 1;
    top = folder.substr(begin, folder.size() - 1 - begin);
    folder = folder.substr(0, begin);
  }
  return top;
}

std::string Project::find(const std::string& importer, std::string_view name) const {
  size_t slash = importer.rfind('/');
  std::string folder = slash == std::string::npos ? "" : importer.substr(0, slash + 1);
  if (name.starts_with('.')) {
    size_t dots = name.find_first_not_of('.');
    dots = dots == std::string_view::npos ? name.size() : dots;
    for (size_t up = 1; up < dots; ++up) {
      if (folder.empty()) return "";
      size_t above = folder.rfind('/', folder.size() - 2);
      folder = above == std::string::npos || folder.size() < 2 ? "" : folder.substr(0, above + 1);
    }
    if (dots == name.size()) return paths_.contains(folder + "__init__.py") ? folder + "__init__.py" : folder;
    return find_under(folder, name.substr(dots));
  }
  // A framework's name is the framework's, but not inside the package of that name: its own source.
  if (is_framework(name) && top_package(folder) != name.substr(0, name.find('.'))) return "";
  while (true) {
    std::string found = find_under(folder, name);
    if (!found.empty() || folder.empty()) return found;
    size_t above = folder.size() < 2 ? std::string::npos : folder.rfind('/', folder.size() - 2);
    folder = above == std::string::npos ? "" : folder.substr(0, above + 1);
  }
}

bool is_framework(std::string_view dotted) {
  static constexpr std::array roots = {"tensorflow",
                                       "tensorflow_core",
                                       "tensorflow_estimator",
                                       "keras",
                                       "horovod",
                                       "npu_bridge",
                                       "npu_device",
                                       "hccl",
                                       "torch",
                                       "mindspore",
                                       "numpy",
                                       "os",
                                       "sys",
                                       "math"};
  std::string_view root = dotted.substr(0, dotted.find('.'));
  return std::find(roots.begin(), roots.end(), root) != roots.end();
}

}  // namespace cairn::migrate
