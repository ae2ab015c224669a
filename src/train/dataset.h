// Training examples: an array for each input of a trainer, from which batches are taken.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/model.h"

namespace cairn {

class Dataset {
 public:
  /// Arrays by the names of the ports (the labels are the last port), with the examples along the first dim. Elements
  /// are cast to the ports' types. If there is one input only, its array may have any name. Throws Error
  /// invalid_argument, not_found.
  Dataset(const std::vector<Port>& ports, const std::map<std::string, Tensor>& arrays);

  int64_t count() const { return count_; }
  /// The examples with these numbers, one tensor per port.
  std::vector<Tensor> batch(std::span<const int64_t> places) const;
  /// Moves the examples with these numbers to a data set of their own.
  Dataset split_off(const std::vector<int64_t>& places);

 private:
  Dataset() = default;

  std::vector<Tensor> arrays_;
  int64_t count_ = 0;
};

/// The numbers 0 .. count - 1 in a random order that depends on the seed only.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed);

}  // namespace cairn
