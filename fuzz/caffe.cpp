// A Caffe net in its two files: the bytes as text beside sound weights, and as weights beside a sound net.
#include "frontends/import.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "structure.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string sound = CAIRN_SOURCE_DIR "/tests/frontends/data/caffe/tiny.";
  fuzz::MemoryFile file(fuzz::text_of(data, size));
  const auto read = [](const std::string& net, const std::string& weights) {
    fuzz::expect_answer([&] {
      ImportOptions options;
      options.weights = weights;
      Module module = import_caffe(net, options);
      verify(module);
      optimise(module);
    });
  };
  read(file.path(), sound + "caffemodel");
  read(sound + "prototxt", file.path());
  return 0;
}
