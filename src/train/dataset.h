// Examples to train on: an array for each input of a trainer, cut into batches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/model.h"

namespace cairn {

class Dataset {
 public:
  /// Arrays by the names of the ports, the labels last, with the examples along the first dim. Elements are cast to the
  /// ports' types; the only array beside the labels serves the only input whatever its name. Throws Error invalid_argument,
  /// not_found.
  Dataset(const std::vector<Port>& ports, const std::map<std::string, Tensor>& arrays);

  int64_t count() const { return count_; }
  /// The examples at these places.
  std::vector<Tensor> batch(std::span<const int64_t> places) const;
  /// Takes examples away, at these places, into a data set of their own.
  Dataset split_off(const std::vector<int64_t>& places);

 private:
  Dataset() = default;

  std::vector<Tensor> arrays_;
  int64_t count_ = 0;
};

/// 0 .. count - 1 in an order that the seed gives.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed);

}  // namespace cairn
