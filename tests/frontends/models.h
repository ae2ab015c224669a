// Where the tests' models are: a few tiny ones in the repository, the rest made by stock TensorFlow when it is there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
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

/// The Python of an environment at the repository's root (".venv" with TensorFlow, ".venv-peers" with ONNX), or empty.
inline std::string python_of(const std::string& environment) {
  std::string path = std::string(CAIRN_SOURCE_DIR) + "/" + environment + "/bin/python";
  return std::filesystem::exists(path) ? path : std::string();
}
inline std::string tensorflow_python() { return python_of(".venv"); }

/// The folder that a script of this folder fills, on first use and when a script has changed; empty without its Python.
/// CAIRN_TEST_MODELS names a place to keep them between runs.
inline std::string made_by(const std::string& script, const std::string& environment = ".venv") {
  std::string python = python_of(environment);
  if (python.empty()) return {};
  const char* given = std::getenv("CAIRN_TEST_MODELS");
  std::filesystem::path root =
      given ? std::filesystem::path(given) : std::filesystem::temp_directory_path() / "cairn-test-models";
  std::filesystem::create_directories(root);
  std::string path = (root / script).string();
  std::set<std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE_DIR "/tests/frontends"))
    if (entry.path().extension() == ".py") contents.insert(read_file(entry.path()));
  std::string scripts;
  for (const std::string& content : contents) scripts += std::to_string(std::hash<std::string>()(content)) + " ";
  if (!std::filesystem::exists(path + ".key") || read_file(path + ".key") != scripts) std::filesystem::remove_all(path);
  std::string command = python + " " + CAIRN_SOURCE_DIR + "/tests/frontends/" + script + ".py " + path;
  if (std::system((command + " > " + path + ".log 2>&1").c_str()) != 0)
    throw std::runtime_error(read_file(path + ".log"));
  std::ofstream(path + ".key") << scripts;
  return path;
}

inline std::string tensorflow_models() {
  static const std::string folder = made_by("make_models");
  return folder;
}

}  // namespace cairn::test
