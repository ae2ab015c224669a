// Profiles at the C interface.
#include "capi/handles.h"
#include "observe/recorder.h"

using namespace cairn;
using namespace cairn::capi;

CairnStatus cairn_profile_start(const char* options) {
  return guarded([&] { start_profile(parse_profile_options(options ? options : "{}")); });
}

CairnStatus cairn_profile_stop(char** folder) {
  return guarded([&] {
    if (folder) *folder = nullptr;
    std::string path = stop_profile();
    if (folder) *folder = copy_text(path);
  });
}

CairnStatus cairn_profile_range_begin(const char* name) {
  return guarded([&] { begin_range(name ? name : ""); });
}

CairnStatus cairn_profile_range_end(void) {
  return guarded([] { end_range(); });
}
