#include "train/dataset.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/evaluate.h"
#include "support/nearest.h"

namespace cairn {
namespace {

Tensor as_type(const Tensor& x, DType dtype, const std::string& name) {
  if (x.dtype() == dtype) return x;
  if (x.dtype() == kString || dtype == kString || (dtype.is_integer() && x.dtype().is_float()))
    fail(ErrorKind::invalid_argument, name, "holds {}, the model takes {}", to_string(x.dtype()), to_string(dtype));
  return evaluate("cast", {x}, {{"dtype", dtype}});
}

/// Adds or removes dims of size 1 to match the port's rank, as for labels [n] with answers [n, 1].
Tensor in_rank(const Tensor& x, const Port& port) {
  const Shape& shape = port.type.shape;
  if (!shape.ranked || x.rank() == shape.rank() || x.rank() == 0) return x;
  std::vector<int64_t> dims = {x.dims()[0]};
  for (size_t i = 1; i < shape.rank(); ++i) dims.push_back(shape.dims[i].known() ? shape.dims[i].size : -1);
  if (std::count(dims.begin(), dims.end(), -1) > 0 || *element_count(dims) != x.count()) return x;
  return x.reshaped(dims);
}

Tensor found(const Port& port, const std::map<std::string, Tensor>& arrays, const std::vector<Port>& ports) {
  auto entry = arrays.find(port.name);
  if (entry == arrays.end() && ports.size() == 2 && arrays.size() == 2 && arrays.contains(ports[1].name))
    entry = std::find_if(arrays.begin(), arrays.end(), [&](const auto& each) { return each.first != ports[1].name; });
  if (entry != arrays.end()) return entry->second;
  std::vector<std::string_view> known;
  for (const auto& each : arrays) known.emplace_back(each.first);
  fail(ErrorKind::not_found, port.name, "is not in the data{}; it has {}", did_you_mean(port.name, known),
       fmt::join(known, ", "));
}

}  // namespace

Dataset::Dataset(const std::vector<Port>& ports, const std::map<std::string, Tensor>& arrays) {
  for (const Port& port : ports) {
    const Tensor given = found(port, arrays, ports);
    const Tensor array = in_rank(as_type(given, port.type.dtype, port.name), port);
    if (array.rank() == 0) fail(ErrorKind::invalid_argument, port.name, "is one number, expected examples");
    if (!arrays_.empty() && array.dims()[0] != count_)
      fail(ErrorKind::invalid_argument, port.name, "has {} examples, {} has {}", array.dims()[0], ports[0].name,
           count_);
    Type batch = port.type;
    if (batch.shape.ranked && batch.shape.rank() > 0) batch.shape.dims[0] = Dim();
    if (!compatible(batch, array.type()))
      fail(ErrorKind::invalid_argument, port.name, "is {}, the model takes {}", to_string(given.type()),
           to_string(port.type));
    count_ = array.dims()[0];
    arrays_.push_back(array);
  }
  if (count_ == 0) fail(ErrorKind::invalid_argument, "data", "has no examples");
}

std::vector<Tensor> Dataset::batch(std::span<const int64_t> places) const {
  std::vector<Tensor> batch;
  for (const Tensor& array : arrays_) {
    std::vector<int64_t> dims = array.dims();
    dims[0] = static_cast<int64_t>(places.size());
    Tensor rows = Tensor::uninitialized(array.dtype(), dims);
    const size_t row = array.bytes() / static_cast<size_t>(count_);
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(static_cast<char*>(rows.mutable_data()) + i * row,
                  static_cast<const char*>(array.data()) + static_cast<size_t>(places[i]) * row, row);
    batch.push_back(std::move(rows));
  }
  return batch;
}

Dataset Dataset::split_off(const std::vector<int64_t>& places) {
  const std::set<int64_t> taken(places.begin(), places.end());
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < count_; ++i)
    if (!taken.contains(i)) kept.push_back(i);
  Dataset other;
  other.arrays_ = batch(places);
  other.count_ = static_cast<int64_t>(places.size());
  arrays_ = batch(kept);
  count_ = static_cast<int64_t>(kept.size());
  return other;
}

std::vector<int64_t> shuffled(int64_t count, uint64_t seed) {
  std::vector<int64_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  uint64_t state = seed;
  auto next = [&] {  // SplitMix64, so that a seed gives the same order everywhere
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[next() % i]);
  return places;
}

}  // namespace cairn
