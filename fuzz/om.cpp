// .om files whose checksums are right: what an attacker would write.
#include "answers.h"
#include "ir/text.h"
#include "model/om_file.h"
#include "model/om_layout.h"
#include "model/reseal.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(fuzz::text_of(data, size));
  reseal(bytes);
  std::shared_ptr<char> owner(static_cast<char*>(std::aligned_alloc(64, om::align(size + 1))), std::free);
  std::memcpy(owner.get(), bytes.data(), size);
  fuzz::expect_answer([&] {
    const auto file = OmFile::from_bytes("fuzz.om", {owner.get(), size}, owner);
    file->check_weights();
    verify(file->module());
  });
  return 0;
}
