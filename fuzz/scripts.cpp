// Python scripts, migrated: whatever stands in them, no byte but those of the edits changes.
#include "answers.h"
#include "migrate/migrate.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const migrate::FileResult file = migrate::migrate_text(text, {.jobs = 1});
  uint32_t at = 0;
  for (const migrate::Edit& edit : file.edits) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text.size()) abort();
    at = edit.end;
  }
  return 0;
}
