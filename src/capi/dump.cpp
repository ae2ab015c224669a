// Dumps at the C interface.
#include "observe/dump.h"

#include "capi/handles.h"

using namespace cairn;
using namespace cairn::capi;

CairnStatus cairn_dump_start(const char* options) {
  return guarded([&] {
    require(options, "options");
    start_dump(parse_dump_options(options));
  });
}

CairnStatus cairn_dump_stop(char** folder) {
  return guarded([&] {
    if (folder) *folder = nullptr;
    std::string path = stop_dump();
    if (folder) *folder = copy_text(path);
  });
}

CairnStatus cairn_set_script_lines(const CairnLocation* locations, size_t count) {
  return guarded([&] {
    if (count) require(locations, "locations");
    for (size_t i = 0; i < count; ++i) {
      require(locations[i].node, "node");
      require(locations[i].location, "location");
      set_script_line(locations[i].node, locations[i].location);
    }
  });
}
