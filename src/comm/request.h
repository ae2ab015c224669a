// One collective as a rank calls it, and what all ranks of its group must agree on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/types.h"

namespace cairn::comm {

enum class Kind : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier,
  send,
  receive
};
constexpr size_t kKinds = 11;
const char* to_string(Kind kind);  // the operator's name

enum class Reduction : uint8_t { sum, prod, max, min, mean };
/// Requires one of the names.
Reduction reduction_named(std::string_view name);
const char* to_string(Reduction reduction);

/// `dims` and `count` are those of the operand, but of the result for receive. For reduce_scatter and scatter the operand
/// has a part for each rank; all_to_all sends parts of send_counts elements from send_offsets on, and takes others likewise.
struct Request {
  Kind kind = Kind::barrier;
  std::string_view group = "world", name;
  DType dtype = kF32;
  std::span<const int64_t> dims;
  Reduction reduction = Reduction::sum;
  int64_t root = 0;  // of the group; for send and receive the other rank
  int64_t tag = 0;
  int64_t ranks = 0;  // that the group must have; 0: any
  const void* input = nullptr;
  void* output = nullptr;
  std::span<const int64_t> send_counts, send_offsets, receive_counts, receive_offsets;
  /// Of an all_reduce of several tensors, one after the other, instead of input and output: their elements; `dims` has one
  /// number, the sum of the counts.
  std::span<const void* const> inputs;
  std::span<void* const> outputs;
  std::span<const int64_t> counts;

  int64_t count() const;
  /// `all_reduce "gradients/conv1" f32[3, 3] sum`; long names are shortened.
  std::string text() const;
  /// Of all on which the ranks must agree.
  uint64_t digest() const;
};

/// While it lives, collectives of this thread say that they are called from here: node and script line.
class Place {
 public:
  explicit Place(std::string_view where);
  ~Place();
  Place(const Place&) = delete;
  static std::string_view current();

 private:
  std::string_view before_;
};

}  // namespace cairn::comm
