// Which files of a run are parsed at all: a scan of their text for imports decides, so that most files cost little.
#include <algorithm>
#include <unordered_map>

#include "migrate/project.h"
#include "migrate/source.h"

namespace cairn::migrate {
namespace {

// Modules (as written) that a text's import lines name; good enough to decide what to parse.
std::vector<std::string> imported_modules(std::string_view text) {
  std::vector<std::string> found;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) continue;
    line.remove_prefix(start);
    bool from = line.starts_with("from ");
    if (!from && !line.starts_with("import ")) continue;
    line.remove_prefix(from ? 5 : 7);
    auto word_end = [](std::string_view text) { return std::min(text.find_first_of(" \t,;#("), text.size()); };
    if (from) {
      std::string module(line.substr(0, word_end(line)));
      found.push_back(module);
      size_t import = line.find(" import ");
      if (import == std::string_view::npos) continue;
      for (std::string_view rest = line.substr(import + 8); !rest.empty();) {  // from package import module
        size_t begin = rest.find_first_not_of(" \t,()");
        if (begin == std::string_view::npos || rest[begin] == '#' || rest[begin] == '\\') break;
        rest.remove_prefix(begin);
        size_t size = word_end(rest.substr(0, rest.find(')')));
        found.push_back(module + (module.ends_with('.') ? "" : ".") + std::string(rest.substr(0, size)));
        rest.remove_prefix(std::min(rest.size(), std::max<size_t>(size, 1)));
      }
    } else {
      while (!line.empty()) {
        size_t begin = line.find_first_not_of(" \t,");
        if (begin == std::string_view::npos) break;
        line.remove_prefix(begin);
        found.emplace_back(line.substr(0, word_end(line)));
        size_t comma = line.find(',');
        line.remove_prefix(comma == std::string_view::npos ? line.size() : comma);
      }
    }
  }
  return found;
}

}  // namespace

std::vector<size_t> scripts_to_parse(const std::vector<FileResult>& files, const Project& paths, bool imported) {
  std::vector<size_t> chosen, candidates;
  std::vector<std::vector<std::string>> imports(files.size());
  std::unordered_map<std::string, size_t> index;
  std::vector<char> taken(files.size(), 0);
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].before.empty()) continue;
    index[files[i].path] = i;
    taken[i] = names_a_framework(files[i].before);
    if (taken[i])
      chosen.push_back(i);
    else if (files[i].path.ends_with(".py"))
      candidates.push_back(i);
  }
  for (size_t i : candidates)
    for (const std::string& module : imported_modules(files[i].before))
      if (std::string path = paths.find(files[i].path, module); !path.empty()) imports[i].push_back(std::move(path));
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i : candidates) {
      if (taken[i]) continue;
      for (const std::string& path : imports[i])
        if (auto found = index.find(path); found != index.end() && taken[found->second]) {
          taken[i] = 1;
          chosen.push_back(i);
          grew = true;
          break;
        }
    }
  }
  for (size_t k = 0; imported && k < chosen.size(); ++k)
    for (const std::string& module : imported_modules(files[chosen[k]].before))
      if (auto found = index.find(paths.find(files[chosen[k]].path, module));
          found != index.end() && !taken[found->second] && files[found->second].path.ends_with(".py")) {
        taken[found->second] = 1;
        chosen.push_back(found->second);
      }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace cairn::migrate
