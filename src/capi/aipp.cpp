// Parameters of dynamic image preprocessing at the C interface.
#include "passes/aipp.h"

#include "capi/handles.h"

using namespace cairn;
using namespace cairn::capi;

CairnStatus cairn_aipp_parameters(const char* config, int64_t images, void* bytes, size_t* size) {
  return guarded([&] {
    require(config, "config");
    require(size, "size");
    const std::string block = aipp_parameters(parse_aipp(config, "config"), images);
    if (bytes && *size < block.size())
      fail(ErrorKind::invalid_argument, "size", "is {}, the parameters have {} bytes", *size, block.size());
    *size = block.size();
    if (bytes) std::memcpy(bytes, block.data(), block.size());
  });
}
