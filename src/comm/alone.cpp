#include "comm/alone.h"

#include <cstring>

#include "support/error.h"

namespace cairn::comm {

void run_alone(const Request& request) {
  if (request.kind == Kind::send || request.kind == Kind::receive)
    fail(ErrorKind::invalid_argument, to_string(request.kind), "rank {} is not in group {}, which has one rank",
         request.root, request.group);
  if (request.kind == Kind::barrier) return;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (const auto bytes = static_cast<size_t>(request.counts[i]) * request.dtype.size();
        request.inputs[i] != request.outputs[i])
      std::memmove(request.outputs[i], request.inputs[i], bytes);
  if (!request.inputs.empty()) return;
  const char* from = static_cast<const char*>(request.input);
  char* to = static_cast<char*>(request.output);
  size_t bytes = storage_bytes(request.dtype, request.count());
  if (request.kind == Kind::all_to_all) {
    const size_t width = request.dtype.size();
    if (request.send_counts[0] != request.receive_counts[0])
      fail(ErrorKind::invalid_argument, to_string(request.kind), "sends {} elements to itself, which expects {}",
           request.send_counts[0], request.receive_counts[0]);
    bytes = static_cast<size_t>(request.send_counts[0]) * width;
    from += static_cast<size_t>(request.send_offsets[0]) * width;
    to += static_cast<size_t>(request.receive_offsets[0]) * width;
  }
  if (bytes && from != to) std::memmove(to, from, bytes);
}

}  // namespace cairn::comm
