// Where the tests' models are: a few tiny ones in the repository, the rest made by stock TensorFlow when it is there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace cairn::test {

inline std::string data(const std::string& name) {
  return std::string(CAIRN_SOURCE_DIR) + "/tests/frontends/data/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A Python with TensorFlow, or empty.
inline std::string tensorflow_python() {
  const char* given = std::getenv("CAIRN_TF_PYTHON");
  std::string path = given ? given : std::string(CAIRN_SOURCE_DIR) + "/.venv/bin/python";
  return std::filesystem::exists(path) ? path : std::string();
}

/// The folder of the models of make_models.py, made on first use; empty without TensorFlow. CAIRN_TEST_MODELS names one
/// to keep between runs.
inline std::string tensorflow_models() {
  static const std::string folder = [] {
    if (tensorflow_python().empty()) return std::string();
    const char* given = std::getenv("CAIRN_TEST_MODELS");
    std::string path = given ? given : (std::filesystem::temp_directory_path() / "cairn-test-models").string();
    std::string command = tensorflow_python() + " " + CAIRN_SOURCE_DIR + "/tests/frontends/make_models.py " + path;
    return std::system((command + " > " + path + ".log 2>&1").c_str()) == 0 ? path : std::string();
  }();
  return folder;
}

}  // namespace cairn::test
