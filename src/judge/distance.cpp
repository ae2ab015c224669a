#include "judge/distance.h"

#include <algorithm>

namespace cairn::judge {

namespace {

std::vector<int64_t> without_ones(std::vector<int64_t> dims) {
  std::erase(dims, 1);
  return dims;
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order) {
  std::vector<int64_t> dims, strides(tensor.rank(), 1);
  for (size_t axis = tensor.rank(); axis-- > 1;) strides[axis - 1] = strides[axis] * tensor.dims()[axis];
  for (size_t axis : order) dims.push_back(tensor.dims()[axis]);
  Tensor out = Tensor::uninitialized(tensor.dtype(), dims);
  size_t size = tensor.dtype().size();
  const char* from = static_cast<const char*>(tensor.data());
  char* to = static_cast<char*>(out.mutable_data());
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) at += index[axis] * strides[order[axis]];
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(at) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;)
      if (++index[axis] < dims[axis])
        break;
      else
        index[axis] = 0;
  }
  return out;
}

/// The permutations that move the channels behind the other axes and in front of them.
std::vector<std::vector<size_t>> channel_moves(size_t rank) {
  if (rank < 3) return {};
  std::vector<size_t> back = {0}, front = {0, rank - 1};
  for (size_t axis = 2; axis < rank; ++axis) back.push_back(axis);
  back.push_back(1);
  for (size_t axis = 1; axis + 1 < rank; ++axis) front.push_back(axis);
  return {back, front};
}

/// The elements as doubles; a complex number gives two.
std::vector<double> numbers_of(const Tensor& tensor) {
  if (tensor.dtype() != kC64) return tensor.as_f64();
  const float* parts = static_cast<const float*>(tensor.data());
  return {parts, parts + 2 * tensor.count()};
}

}  // namespace

bool is_measured(DType dtype) {
  return dtype.kind != DType::Kind::string && dtype.bits >= 8 && dtype.kind != DType::Kind::complex_float;
}

Distance together(std::span<const Distance> parts) {
  Distance out;
  double off = 0, square = 0;
  for (const Distance& part : parts) {
    const auto finite = static_cast<double>(part.finite);
    out.most = std::max(out.most, part.most), off += finite * part.rms * part.rms;
    out.largest = std::max(out.largest, part.largest), square += finite * part.size * part.size;
    out.unlike += part.unlike, out.finite += part.finite;
  }
  const auto finite = static_cast<double>(out.finite);
  if (out.finite > 0) out.rms = std::sqrt(off / finite), out.size = std::sqrt(square / finite);
  return out;
}

Distance distance(std::span<const double> x, std::span<const double> y) {
  CHECK(x.size() == y.size(), "{} and {} elements", x.size(), y.size());
  Distance out;
  double off = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
      out.unlike += is_unlike(x[i], y[i]);
      continue;
    }
    const double difference = std::abs(x[i] - y[i]), magnitude = std::abs(y[i]);
    out.most = std::max(out.most, difference), off += difference * difference;
    out.largest = std::max(out.largest, magnitude), square += magnitude * magnitude;
    ++out.finite;
  }
  const auto finite = static_cast<double>(out.finite);
  if (out.finite > 0) out.rms = std::sqrt(off / finite), out.size = std::sqrt(square / finite);
  return out;
}

Distance distance(const Tensor& x, const Tensor& y) {
  CHECK(x.count() == y.count(), "{} and {} elements", x.count(), y.count());
  if (x.dtype() != kString) return distance(numbers_of(x), numbers_of(y));
  auto mine = x.values<std::string>(), golden = y.values<std::string>();
  Distance out;
  for (size_t i = 0; i < mine.size(); ++i) out.unlike += mine[i] != golden[i];
  return out;
}

std::vector<Tensor> forms_of(const Tensor& golden, const Tensor& like) {
  std::vector<Tensor> forms;
  if (golden.count() != like.count()) return forms;
  if (without_ones(golden.dims()) == without_ones(like.dims())) forms.push_back(golden.reshaped(like.dims()));
  for (const auto& order : channel_moves(golden.rank())) {
    std::vector<int64_t> dims;
    for (size_t axis : order) dims.push_back(golden.dims()[axis]);
    if (dims == like.dims()) forms.push_back(permuted(golden, order));
  }
  if (forms.empty()) forms.push_back(golden.reshaped(like.dims()));
  return forms;
}

std::optional<Nearest> nearest(const Tensor& mine, const Tensor& golden) {
  std::optional<Nearest> best;
  for (const Tensor& form : forms_of(golden, mine)) {
    const Distance found = distance(mine, form);
    if (!best || std::pair(found.unlike, found.rms) < std::pair(best->distance.unlike, best->distance.rms))
      best = {form, found};
  }
  return best;
}

}  // namespace cairn::judge
