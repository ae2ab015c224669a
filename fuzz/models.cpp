// Model files of every foreign format: GraphDef and ONNX, binary and text, Keras' files, Caffe's nets. What is read goes through the passes.
#include "frontends/import.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "structure.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_answer([&] {
    Module module = import_model(file.path());
    verify(module);
    optimise(module);
  });
  return 0;
}
