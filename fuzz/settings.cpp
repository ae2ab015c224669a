// What people write by hand: settings of dumps and profiles, AIPP configurations.
#include "answers.h"
#include "observe/dump_options.h"
#include "observe/profile_options.h"
#include "passes/aipp.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::expect_answer([&] { parse_dump_options(text); });
  fuzz::expect_answer([&] { parse_profile_options(text); });
  fuzz::expect_answer([&] { parse_aipp(text, "fuzz.cfg"); });
  return 0;
}
