// Recordings of a profile whose checksums are right, read and analysed.
#include <cstring>
#include <fstream>

#include "answers.h"
#include "frontends/crc32c.h"
#include "observe/event_file.h"
#include "profile/analysis.h"

using namespace cairn;

namespace {

void mend_checksums(std::string& bytes) {
  for (size_t at = sizeof(EventHeader); at + sizeof(ChunkHeader) <= bytes.size();) {
    ChunkHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    at += sizeof header;
    if (bytes.size() - at < header.bytes) return;
    header.crc = crc32c({bytes.data() + at, header.bytes});
    std::memcpy(bytes.data() + at - sizeof header, &header, sizeof header);
    at += header.bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = [] {
    const std::string path = fuzz::folder() + "/PROF_000001_20240131120000123_0123456789ABCDEF";
    std::filesystem::create_directories(std::filesystem::path(path + "/" + kEventPath).parent_path());
    return path;
  }();
  std::string bytes(fuzz::text_of(data, size));
  mend_checksums(bytes);
  std::ofstream(folder + "/" + kEventPath, std::ios::binary) << bytes;
  fuzz::expect_answer([] {
    const profile::Recording recording = profile::read_recording(folder);
    profile::analyse(recording);
  });
  return 0;
}
