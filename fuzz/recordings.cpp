// Recordings of a profile whose checksums are right, read and analysed.
#include <fstream>

#include "answers.h"
#include "observe/event_file.h"
#include "profile/analysis.h"
#include "profile/reseal.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = [] {
    const std::string path = fuzz::folder() + "/PROF_000001_20240131120000123_0123456789ABCDEF";
    std::filesystem::create_directories(std::filesystem::path(path + "/" + kEventPath).parent_path());
    return path;
  }();
  std::string bytes(fuzz::text_of(data, size));
  profile::reseal(bytes);
  std::ofstream(folder + "/" + kEventPath, std::ios::binary) << bytes;
  fuzz::expect_answer([] {
    const profile::Recording recording = profile::read_recording(folder);
    profile::analyse(recording);
  });
  return 0;
}
