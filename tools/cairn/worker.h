// Programs of other makers that a verb runs beside itself: frameworks in Python, in a folder that goes with them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cairn::cli {

class TemporaryFolder {
 public:
  /// Throws Error io.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The one asked for, the one beside this program (a virtual environment), or the first python3.
std::string find_python(const std::string& asked);

/// Exit status of the program, its output going to `log`; 127 when it cannot be started.
int run_program(const std::vector<std::string>& words, const std::string& log);

}  // namespace cairn::cli
