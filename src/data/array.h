// What flows through a pipeline: rows of arrays, and where a row is in its pass.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace cairn::data {

/// `text` is UTF-8 and `bytes` is any; their elements have one width within an array and are filled up with zeros.
enum class Kind : uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, f32, f64, text, bytes };

struct Type {
  Kind kind = Kind::u8;
  uint32_t size = 1;  // bytes of an element

  bool operator==(const Type&) const = default;
  bool is_text() const { return kind >= Kind::text; }
};

Type type_of(Kind kind);
/// "uint8", as NumPy says it.
std::string name_of(Type type);
/// Throws Error invalid_argument.
Kind kind_of(std::string_view name);

/// Calls f with a value of the C++ type of a kind of number; f16 and texts are refused by returning false.
template <class F>
bool with_number(Kind kind, F&& f) {
  switch (kind) {
    case Kind::boolean: f(bool{}); return true;
    case Kind::u8: f(uint8_t{}); return true;
    case Kind::i8: f(int8_t{}); return true;
    case Kind::u16: f(uint16_t{}); return true;
    case Kind::i16: f(int16_t{}); return true;
    case Kind::u32: f(uint32_t{}); return true;
    case Kind::i32: f(int32_t{}); return true;
    case Kind::u64: f(uint64_t{}); return true;
    case Kind::i64: f(int64_t{}); return true;
    case Kind::f32: f(float{}); return true;
    case Kind::f64: f(double{}); return true;
    default: return false;
  }
}

using Shape = std::vector<int64_t>;
std::string text_of(const Shape& shape);

/// A dense array in row-major order. Its memory belongs to `owner`: an array of our own making may be written to as long as
/// nobody else has it, one of a source's memory (a mapped file, a user's array) never.
struct Array {
  Type type;
  Shape shape;
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  bool own = false;

  /// Not initialised. Throws Error out_of_memory.
  static Array make(Type type, Shape shape);
  static Array make(Kind kind, Shape shape) { return make(type_of(kind), std::move(shape)); }
  template <class T>
  static Array scalar(Kind kind, T value) {
    Array made = make(kind, {});
    std::memcpy(made.bytes(), &value, sizeof value);
    return made;
  }
  static Array of_text(std::string_view text, Kind kind = Kind::text);

  int64_t count() const {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    return count;
  }
  size_t size() const { return static_cast<size_t>(count()) * type.size; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
  template <class T>
  T* write() {
    return reinterpret_cast<T*>(bytes());
  }
  std::byte* bytes() { return const_cast<std::byte*>(data); }
  std::string_view view() const { return {reinterpret_cast<const char*>(data), size()}; }
};

using Row = std::vector<Array>;

/// While it lives, the next array of this thread with its type and shape is made in its memory: a row's largest column is made
/// where its batch wants it. Not to be used where two columns are that large.
class Slot {
 public:
  explicit Slot(Array place);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
};
/// From how many bytes on memory is kept for reuse, and rows are made in place.
inline constexpr size_t kLargeArray = 64 << 10;

size_t bytes_of(const Row& row);

/// An array for so many rows like this one, and the place of one of them.
Array for_rows(const Array& like, size_t rows);
Array place_of(const Array& batch, size_t row);

/// The rows of a column as one array. Throws Error invalid_argument naming the column where shapes or types differ.
Array stacked(std::span<const Array> values, const std::string& column);

/// How batches fill a column up: to `shape`, whose sizes of -1 are the longest row's; an empty optional shape is all longest.
struct Fill {
  std::string column;
  Shape shape;
  bool any_shape = true;
  double value = 0;
  std::string text;
};
/// Each value filled up, cut where it is longer.
void fill_up(std::vector<Array>& values, const Fill& fill);

}  // namespace cairn::data
