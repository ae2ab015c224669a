// What people write by hand or tools leave behind: settings of dumps, profiles and precision, AIPP, configurations and records of
// AMCT.
#include "answers.h"
#include "observe/dump_options.h"
#include "observe/profile_options.h"
#include "passes/aipp.h"
#include "passes/precision_lists.h"
#include "quantize/amct.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::text_of(data, size));
  fuzz::expect_answer([&] { parse_dump_options(text); });
  fuzz::expect_answer([&] { parse_profile_options(text); });
  fuzz::expect_answer([&] { parse_aipp(text, "fuzz.cfg"); });
  fuzz::expect_answer([&] { read_custom_types(text); });
  fuzz::expect_answer([&] {
    PrecisionOptions precision;
    read_mix_lists(text, precision);
  });
  fuzz::MemoryFile file(text);
  fuzz::expect_answer([&] {
    quantize::Options options;
    std::vector<std::string> notes;
    quantize::read_config(file.path(), options, notes);
  });
  fuzz::expect_answer([&] {
    quantize::Options options;
    quantize::read_record(file.path(), options);
  });
  return 0;
}
