// Modules in text form: what is read prints the same again, and goes through the passes.
#include "answers.h"
#include "ir/text.h"
#include "passes/pipeline.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::expect_answer([&] {
    Module module = parse(fuzz::text_of(data, size));
    const ModuleText printed = print(module);
    if (print(parse(printed.text, printed.weights)).text != printed.text) abort();
    verify(module);
    optimise(module);
  });
  return 0;
}
