#include "data/array.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include <pthread.h>

namespace cairn::data {

namespace {

constexpr std::pair<const char*, uint32_t> kTypes[] = {
    {"bool", 1},   {"uint8", 1}, {"int8", 1},    {"uint16", 2},  {"int16", 2},   {"uint32", 4}, {"int32", 4},
    {"uint64", 8}, {"int64", 8}, {"float16", 2}, {"float32", 4}, {"float64", 8}, {"str", 1},    {"bytes", 1}};

/// Large blocks that were given back, for the next batch: fresh pages cost more than copying into them.
class Blocks {
 public:
  static Blocks& get() {
    static Blocks* instance = new Blocks;  // arrays may outlive everything else at exit
    return *instance;
  }
  std::shared_ptr<const void> take(size_t bytes) {
    const size_t step =
        bytes < kLargeArray ? 64 : std::bit_floor(bytes) / 8;  // so that blocks of nearly a size are exchanged
    const size_t size = std::max<size_t>((bytes + step - 1) / step * step, 64);
    void* data = size < kLargeArray ? nullptr : idle(size);
    if (!data) data = std::aligned_alloc(64, size);
    if (!data) fail(ErrorKind::out_of_memory, "", "no memory for {} bytes of a row", bytes);
    if (size < kLargeArray) return {data, [](const void* block) { std::free(const_cast<void*>(block)); }};
    return {data, [this, size](const void* block) { give(const_cast<void*>(block), size); }};
  }

 private:
  static constexpr size_t kMost = size_t{128} << 20;

  Blocks() {  // the child of a fork finds the mutex free
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); }, [] { get().mutex_.unlock(); });
  }
  void* idle(size_t size) {
    std::lock_guard lock(mutex_);
    auto found = idle_.find(size);
    if (found == idle_.end()) return nullptr;
    void* data = found->second;
    idle_.erase(found);
    held_ -= size;
    return data;
  }
  void give(void* data, size_t size) {
    {
      std::lock_guard lock(mutex_);
      if (held_ + size <= kMost) {
        idle_.emplace(size, data);
        held_ += size;
        return;
      }
    }
    std::free(data);
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> idle_;
  size_t held_ = 0;
};

void fill_elements(Array& array, const Fill& fill) {
  if (array.type.is_text()) {
    std::memset(array.bytes(), 0, array.size());
    for (int64_t i = 0; i < array.count() && !fill.text.empty(); ++i)
      std::memcpy(array.bytes() + i * array.type.size, fill.text.data(),
                  std::min<size_t>(fill.text.size(), array.type.size));
    return;
  }
  const bool known = with_number(array.type.kind, [&](auto zero) {
    std::fill_n(array.write<decltype(zero)>(), array.count(), static_cast<decltype(zero)>(fill.value));
  });
  if (!known) std::memset(array.bytes(), 0, array.size());
}

void copy_corner(const std::byte* from, const Shape& from_shape, std::byte* to, const Shape& to_shape, size_t axis,
                 const Type& from_type, const Type& to_type) {
  if (axis == from_shape.size()) {
    std::memcpy(to, from, from_type.size);
    return;
  }
  int64_t from_step = from_type.size, to_step = to_type.size;
  for (size_t i = axis + 1; i < from_shape.size(); ++i) from_step *= from_shape[i], to_step *= to_shape[i];
  const int64_t rows = std::min(from_shape[axis], to_shape[axis]);
  if (from_step == to_step && from_type == to_type) {
    std::memcpy(to, from, static_cast<size_t>(rows * from_step));
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    copy_corner(from + i * from_step, from_shape, to + i * to_step, to_shape, axis + 1, from_type, to_type);
}

}  // namespace

Type type_of(Kind kind) { return {kind, kTypes[static_cast<size_t>(kind)].second}; }
std::string name_of(Type type) { return kTypes[static_cast<size_t>(type.kind)].first; }

Kind kind_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (name == kTypes[i].first) return static_cast<Kind>(i);
  fail(ErrorKind::invalid_argument, "", "'{}' is no type of an array's elements", name);
}

std::string text_of(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

namespace {
thread_local std::optional<Array> open_slot;
}

Slot::Slot(Array place) { open_slot = std::move(place); }
Slot::~Slot() { open_slot.reset(); }

Array Array::make(Type type, Shape shape) {
  if (open_slot && open_slot->type == type && open_slot->shape == shape) {
    Array made = std::move(*open_slot);
    open_slot.reset();
    return made;
  }
  Array made{type, std::move(shape), nullptr, nullptr, true};
  made.owner = Blocks::get().take(made.size());
  made.data = static_cast<const std::byte*>(made.owner.get());
  return made;
}

Array Array::of_text(std::string_view text, Kind kind) {
  Array made = make(Type{kind, static_cast<uint32_t>(std::max<size_t>(text.size(), 1))}, {});
  made.bytes()[0] = std::byte{0};
  std::memcpy(made.bytes(), text.data(), text.size());
  return made;
}

size_t bytes_of(const Row& row) {
  size_t bytes = 0;
  for (const Array& array : row) bytes += array.size();
  return bytes;
}

Array for_rows(const Array& like, size_t rows) {
  Shape shape{static_cast<int64_t>(rows)};
  shape.insert(shape.end(), like.shape.begin(), like.shape.end());
  return Array::make(like.type, std::move(shape));
}

Array place_of(const Array& batch, size_t row) {
  Array place{batch.type, {batch.shape.begin() + 1, batch.shape.end()}, batch.owner, nullptr, true};
  place.data = batch.data + row * place.size();
  return place;
}

Array stacked(std::span<const Array> values, const std::string& column) {
  const Array& first = values[0];
  Type type = first.type;
  for (const Array& value : values) {
    if (value.shape != first.shape)
      fail(ErrorKind::invalid_argument, "",
           "batch expects rows of the same shape, but column '{}' has {} and {}; pad_info fills rows up", column,
           text_of(first.shape), text_of(value.shape));
    if (value.type.kind != type.kind)
      fail(ErrorKind::invalid_argument, "", "batch expects rows of the same type, but column '{}' has {} and {}",
           column, name_of(type), name_of(value.type));
    type.size = std::max(type.size, value.type.size);
  }
  Shape shape{static_cast<int64_t>(values.size())};
  shape.insert(shape.end(), first.shape.begin(), first.shape.end());
  Array made = Array::make(type, std::move(shape));
  std::byte* to = made.bytes();
  for (const Array& value : values) {
    if (value.type.size == type.size) {
      std::memcpy(to, value.data, value.size());
      to += value.size();
      continue;
    }
    for (int64_t i = 0; i < value.count(); ++i, to += type.size) {
      std::memset(to, 0, type.size);
      std::memcpy(to, value.data + i * value.type.size, value.type.size);
    }
  }
  return made;
}

void fill_up(std::vector<Array>& values, const Fill& fill) {
  Shape longest = values[0].shape;
  uint32_t width = values[0].type.is_text() ? std::max<uint32_t>(1, fill.text.size()) : 0;
  for (const Array& value : values) {
    if (value.shape.size() != longest.size())
      fail(ErrorKind::invalid_argument, "", "pad_info: column '{}' has rows of rank {} and {}", fill.column,
           longest.size(), value.shape.size());
    for (size_t i = 0; i < longest.size(); ++i) longest[i] = std::max(longest[i], value.shape[i]);
    width = std::max(width, value.type.size);
  }
  if (!fill.any_shape) {
    if (fill.shape.size() != longest.size())
      fail(ErrorKind::invalid_argument, "", "pad_info of column '{}' has the shape {}, but its rows have {} dimensions",
           fill.column, text_of(fill.shape), longest.size());
    for (size_t i = 0; i < longest.size(); ++i)
      if (fill.shape[i] >= 0) longest[i] = fill.shape[i];
  }
  for (Array& value : values) {
    Array made = Array::make(Type{value.type.kind, width}, longest);
    fill_elements(made, fill);
    if (made.count() && value.count())
      copy_corner(value.data, value.shape, made.bytes(), made.shape, 0, value.type, made.type);
    value = std::move(made);
  }
}

}  // namespace cairn::data
