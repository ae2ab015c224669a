// `cairn tf1 train.py args`: hands over to the Python package that runs TensorFlow 1 scripts (adapters/tensorflow).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "console.h"
#include "verbs.h"

namespace cairn::cli {

int tf1_main(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {find_python({}), "-m", "cairn_tf1"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fmt::print(stderr, "{} tf1: {} cannot be started: {}\n", red("error:"), words[0], std::strerror(errno));
  return 1;
}

}  // namespace cairn::cli
