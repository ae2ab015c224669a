#include "frontends/values.h"

namespace cairn {

namespace {

template <class Element>
void put(Tensor& tensor, const std::vector<int64_t>& from) {
  auto to = tensor.mutable_values<Element>();
  bool boolean = tensor.dtype() == kBool;
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<Element>(boolean ? from[i] != 0 : from[i]);
}

}  // namespace

void put_integers(Tensor& tensor, const std::vector<int64_t>& from) {
  switch (tensor.dtype().size()) {
    case 1: return put<uint8_t>(tensor, from);
    case 2: return put<uint16_t>(tensor, from);
    case 4: return put<uint32_t>(tensor, from);
    default: return put<uint64_t>(tensor, from);
  }
}

}  // namespace cairn
