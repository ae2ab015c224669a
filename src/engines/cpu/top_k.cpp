// The k largest elements of rows, by integer keys that order elements by value and then by index.
#include <algorithm>
#include <bit>
#include <functional>

#include "engines/cpu/groups.h"
#include "engines/cpu/results.h"
#include "engines/cpu/rows.h"

namespace cairn {

namespace {

template <int kBytes>
struct Words;
template <>
struct Words<4> {
  using Word = uint32_t;
  using Key = uint64_t;
};
template <>
struct Words<8> {
  using Word = uint64_t;
  using Key = unsigned __int128;
};

/// The element with the larger key comes first: the larger value, NaN before all numbers, of equal values the lower index.
template <class T>
struct Order {
  using Number = std::conditional_t<kIsFloat<T>, Compute<T>, T>;
  using Wide = std::conditional_t<sizeof(Number) <= 4, Words<4>, Words<8>>;
  using Word = typename Wide::Word;
  using Key = typename Wide::Key;
  static constexpr int kBits = 8 * sizeof(Word);

  static Word word_of(T x) {
    if constexpr (kIsFloat<T>) {
      const auto number = static_cast<Number>(x) + Number(0);  // one zero
      if (number != number) return ~Word(0);
      const auto bits = std::bit_cast<Word>(number);
      const Word negative = Word(0) - (bits >> (kBits - 1));  // without a branch, which the processor could not predict
      return bits ^ (negative | Word(1) << (kBits - 1));
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<Word>(x) ^ Word(1) << (kBits - 1);
    } else {
      return static_cast<Word>(x);
    }
  }
  static Key key_of(T x, int64_t index) {
    return static_cast<Key>(word_of(x)) << kBits | static_cast<Word>(~static_cast<Word>(index));
  }
  static int64_t index_of(Key key) { return static_cast<int64_t>(static_cast<Word>(~static_cast<Word>(key))); }
};

/// Writes the `k` largest keys of a row in descending order. `keys` has room for `size` keys if `all`, else for k.
template <class T>
void largest_keys(const T* x, int64_t size, int64_t k, bool all, typename Order<T>::Key* keys) {
  using Key = typename Order<T>::Key;
  const int64_t first = all ? size : k;
  for (int64_t i = 0; i < first; ++i) keys[i] = Order<T>::key_of(x[i], i);
  if (all) {
    if (k < size) std::nth_element(keys, keys + k, keys + size, std::greater<Key>());
  } else {
    std::make_heap(keys, keys + k, std::greater<Key>());
    auto least = static_cast<typename Order<T>::Number>(x[Order<T>::index_of(keys[0])]);
    for (int64_t i = first; i < size; ++i) {
      if (static_cast<typename Order<T>::Number>(x[i]) < least) continue;
      const Key key = Order<T>::key_of(x[i], i);
      if (key < keys[0]) continue;
      std::pop_heap(keys, keys + k, std::greater<Key>());
      keys[k - 1] = key;
      std::push_heap(keys, keys + k, std::greater<Key>());
      least = static_cast<typename Order<T>::Number>(x[Order<T>::index_of(keys[0])]);
    }
  }
  std::sort(keys, keys + k, std::greater<Key>());
}

}  // namespace

Refusal refuses_top_k(const Group& group) {
  const Node* node = single_node(group, "top_k");
  if (!node) return "is another operation";
  if (node->inputs[0]->type.shape.sizes().back() >= int64_t{1} << 31) return "has too many elements";
  return std::nullopt;
}

std::unique_ptr<Step> make_top_k(const Group& group, MakeContext&) {
  const Node& node = group.last();
  const DType dtype = node.inputs[0]->type.dtype;
  const int64_t size = node.inputs[0]->type.shape.sizes().back(), k = node.result()->type.shape.sizes().back();
  const int64_t rows = k > 0 ? count_of(node.result()->type.shape.sizes()) / k : 0;
  const bool all = k > size / 16;  // else a heap of k, which few elements enter
  const int64_t room = all ? size : k;
  size_t bytes = 0;
  with_numbers(dtype, [&](auto tag) { bytes = sizeof(typename Order<decltype(tag)>::Key); });
  const Results results(group, node, static_cast<size_t>(rows * room) * bytes);
  const size_t x = index_of(group, node.inputs[0]);
  const auto run = [=](const StepArgs& args) {
    with_numbers(dtype, [&](auto tag) {
      using T = decltype(tag);
      for_each(args.executor, rows, size * 4, [&](int64_t row) {
        const T* from = input<T>(args, x) + row * size;
        auto* keys = static_cast<typename Order<T>::Key*>(args.workspace) + row * room;
        largest_keys(from, size, k, all, keys);
        for (int64_t i = 0; i < k; ++i) {
          const int64_t index = Order<T>::index_of(keys[i]);
          results.at<T>(args, 0)[row * k + i] = from[index];
          results.at<int64_t>(args, 1)[row * k + i] = index;
        }
      });
    });
  };
  return call("top_k", run, {.workspace = results.workspace()});
}

}  // namespace cairn
