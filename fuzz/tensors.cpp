// Files of tensors: NumPy's arrays and archives, the platform's dumps.
#include "answers.h"
#include "formats/dump_data.h"
#include "formats/npy.h"
#include "formats/npz.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::expect_answer([&] { npy_bytes(parse_npy(bytes, "fuzz.npy", nullptr)); });
  fuzz::MemoryFile file(bytes);
  fuzz::expect_answer([&] {
    const auto archive = NpzFile::open(file.path());
    for (const std::string& name : archive->names()) fuzz::expect_answer([&] { archive->read(name); });
  });
  for (int version : {1, 2})
    fuzz::expect_answer([&] {
      const DumpFile dump = read_dump(file.path(), version);
      for (const auto* tensors : {&dump.inputs, &dump.outputs})
        for (const DumpTensor& tensor : *tensors) fuzz::expect_answer([&] { to_tensor(tensor, "fuzz", dump.owner); });
    });
  return 0;
}
