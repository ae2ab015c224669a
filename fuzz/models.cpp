// Model files of every foreign format: GraphDef and ONNX, binary and text, Keras' files, Caffe's nets. What is read goes through the passes.
#include "answers.h"
#include "frontends/import.h"
#include "frontends/mutants.h"
#include "ir/text.h"
#include "passes/pipeline.h"

using namespace cairn;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937_64 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string mutant = mutate_structure(std::string(fuzz::text_of(data, size)), random);
  if (mutant.size() > most) return size;
  std::copy(mutant.begin(), mutant.end(), data);
  return mutant.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::MemoryFile file(fuzz::text_of(data, size));
  fuzz::expect_answer([&] {
    Module module = import_model(file.path());
    verify(module);
    optimise(module);
  });
  return 0;
}
