#include "frontends/values.h"

#include <cstring>

#include "support/error.h"
#include "support/pages.h"

namespace cairn {

Tensor copy_of_elements(DType dtype, std::vector<int64_t> dims, std::string_view bytes) {
  Tensor tensor = Tensor::uninitialized(dtype, std::move(dims));
  CHECK(tensor.bytes() == bytes.size(), "{} bytes for {}", bytes.size(), tensor.bytes());
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  release_pages(bytes.data(), bytes.size());
  return tensor;
}

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

std::vector<int64_t> whole_numbers(const Tensor& tensor) {
  if (!tensor.dtype().is_integer() && tensor.dtype() != kBool)
    fail(ErrorKind::invalid_model, "", "a constant holds {}, expected integers", to_string(tensor.dtype()));
  return tensor.as_i64();
}

std::vector<double> real_numbers(const Tensor& tensor) {
  if (tensor.dtype() == kString || tensor.dtype() == kC64)
    fail(ErrorKind::invalid_model, "", "a constant holds {}, expected numbers", to_string(tensor.dtype()));
  return tensor.as_f64();
}

}  // namespace cairn
