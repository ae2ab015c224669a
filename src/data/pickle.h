// Python pickles of plain values and NumPy arrays, in which CIFAR is published.

#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/array.h"

namespace cairn::data {

struct PickledArray {
  std::string type;  // NumPy's name without byte order: u1, i8
  Shape shape;
  std::string_view bytes;  // row-major, little-endian
};

struct Pickled {
  enum class Is { none, mark, integer, text, sequence, dict, global, type, array } is = Is::none;
  int64_t integer = 0;
  std::string_view text;                  // text and bytes; module.name; the name of a type
  std::vector<Pickled>* items = nullptr;  // of a sequence; keys and values of a dict in turn
  PickledArray* array = nullptr;
};

/// What a pickle of Python (protocols 1 to 5) holds of integers, texts, lists, tuples, dicts and NumPy arrays. Nothing that it
/// asks for is run: what is not among these is refused. Values are views of `bytes` and of this object.
class Pickle {
 public:
  /// Throws Error, with `path` and the offset.
  Pickle(std::string_view bytes, std::string path);
  const Pickled& root() const { return root_; }
  /// The value of a dict's key, or null.
  const Pickled* find(std::string_view key) const;

 private:
  [[noreturn]] void refuse(std::string_view why) const;
  std::string_view take(uint64_t size);
  uint64_t number(int bytes);
  std::string_view line();
  Pickled pop();
  Pickled& top();
  std::vector<Pickled> since_mark();
  void put(Pickled value) { stack_.push_back(value); }
  std::string_view keep(std::string text);
  void put_sequence(std::vector<Pickled> items, Pickled::Is is = Pickled::Is::sequence);
  std::vector<Pickled> last(size_t count);
  void step(uint8_t code);
  void remember(uint64_t place) { memo_[place] = top(); }
  void recall(uint64_t place);
  void extend(std::vector<Pickled> items, Pickled::Is is);
  void call();
  void build();
  void fill(PickledArray& array, const Pickled& shape, const Pickled& type, const Pickled& bytes);
  const Pickled& argument(const std::vector<Pickled>& from, size_t index, Pickled::Is is) const;

  std::string_view bytes_;
  std::string path_;
  size_t at_ = 0;
  Pickled root_;
  std::vector<Pickled> stack_;
  std::unordered_map<uint64_t, Pickled> memo_;
  // What values point to, flat, so that deep nesting ends without recursion.
  std::deque<std::vector<Pickled>> sequences_;
  std::deque<PickledArray> arrays_;
  std::deque<std::string> texts_;
  size_t kept_ = 0;
};

}  // namespace cairn::data
