// cairn tf1, cairn port and cairn ms: the verbs that run training scripts. They stand in the adapters' Python packages and run
// with the Python beside this program.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "support/fault.h"
#include "verbs.h"

namespace cairn::cli {

int run_script_verb(const std::string& module, const std::vector<std::string>& arguments) {
  std::error_code ignored;
  auto python = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python";
  if (!std::filesystem::exists(python, ignored)) {
    // The build tree has no Python of its own: the one that PATH names.
    python = "python3";
  }
  std::vector<std::string> words{python.string(), "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fail(ErrorKind::not_found, python.string(), "cannot be started: {}", reason(errno));
}

}  // namespace cairn::cli
