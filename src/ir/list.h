// A list of tensors at run time (TensorArray, TensorList, sequence).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "ir/tensor.h"
#include "support/sole_owner.h"

namespace cairn {

/// The elements, in copy-on-write chunks: a loop that appends an element in each iteration copies at most one chunk,
/// not the whole list.
class ListElements {
 public:
  using Shared = std::shared_ptr<const Tensor>;  // null: never set

  size_t size() const { return size_; }
  const Shared& operator[](size_t i) const {
    static const Shared kUnset;
    const auto& chunk = chunks_[i / kChunk];
    return chunk ? (*chunk)[i % kChunk] : kUnset;
  }
  void set(size_t i, Shared x) {
    auto& chunk = chunks_[i / kChunk];
    if (!is_sole_owner(chunk)) chunk = chunk ? std::make_shared<Chunk>(*chunk) : std::make_shared<Chunk>();
    (*chunk)[i % kChunk] = std::move(x);
  }
  void set(size_t i, Tensor x) { set(i, std::make_shared<const Tensor>(std::move(x))); }
  void push_back(Tensor x) {
    resize(size_ + 1);
    set(size_ - 1, std::move(x));
  }
  /// New elements are unset.
  void resize(size_t size) {
    for (size_t i = size; i < size_ && i % kChunk != 0; ++i) set(i, nullptr);
    chunks_.resize((size + kChunk - 1) / kChunk);
    size_ = size;
  }

 private:
  static constexpr size_t kChunk = 32;
  using Chunk = std::array<Shared, kChunk>;
  std::vector<std::shared_ptr<Chunk>> chunks_;
  size_t size_ = 0;
};

struct List {
  ListElements elements;
  Type element = Type::tensor(kF32, Shape::unranked());  // holds for every element
};

}  // namespace cairn
