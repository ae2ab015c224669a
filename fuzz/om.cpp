// .om files whose checksums are right: what an attacker would write.
#include <cstring>

#include "answers.h"
#include "frontends/crc32c.h"
#include "ir/text.h"
#include "model/om_file.h"
#include "model/om_layout.h"

using namespace cairn;

namespace {

void mend_checksums(std::string& bytes) {
  om::Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, om::kMagic, sizeof header.magic);
  header.version = om::kVersion;
  header.file_size = bytes.size();
  const size_t sections = std::min<size_t>(header.sections, (bytes.size() - sizeof header) / sizeof(om::Section));
  for (size_t i = 0; i < sections; ++i) {
    om::Section section;
    char* place = bytes.data() + sizeof header + i * sizeof section;
    std::memcpy(&section, place, sizeof section);
    if (section.offset <= bytes.size() && section.size <= bytes.size() - section.offset)
      section.checksum = crc32c({bytes.data() + section.offset, section.size});
    std::memcpy(place, &section, sizeof section);
  }
  header.table_checksum = crc32c({bytes.data() + sizeof header, sections * sizeof(om::Section)});
  header.header_checksum = crc32c(om::bytes_of(header, offsetof(om::Header, header_checksum)));
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(fuzz::text_of(data, size));
  mend_checksums(bytes);
  std::shared_ptr<char> owner(static_cast<char*>(std::aligned_alloc(64, om::align(size + 1))), std::free);
  std::memcpy(owner.get(), bytes.data(), size);
  fuzz::expect_answer([&] {
    const auto file = OmFile::from_bytes("fuzz.om", {owner.get(), size}, owner);
    file->check_weights();
    verify(file->module());
  });
  return 0;
}
