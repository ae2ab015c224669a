// The index of a TensorFlow checkpoint, over sound data.
#include <fstream>

#include "answers.h"
#include "frontends/tensorflow/tensor_bundle.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string prefix = [] {
    const std::string path = fuzz::folder() + "/variables";
    std::ofstream(path + ".data-00000-of-00001", std::ios::binary) << std::string(4096, '\1');
    return path;
  }();
  std::ofstream(prefix + ".index", std::ios::binary) << fuzz::text_of(data, size);
  fuzz::expect_answer([] {
    tensorflow::TensorBundle bundle(prefix);
    for (const auto& [name, entry] : bundle.entries()) fuzz::expect_answer([&] { bundle.read(name); });
  });
  return 0;
}
