// Maps and sets of pointers that keep their entries in one array, in the order in which these came: inserting allocates only
// when the array grows. Entries move then, so that no reference to one outlives the next insertion. Nothing is erased.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "support/error.h"

namespace cairn {

/// The places of pointers in an array: open addressing, at most half full.
class PointerIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// The place of the pointer; kNone if it has none. `key_at` gives the pointer at a place.
  template <class KeyAt>
  uint32_t find(const void* key, const KeyAt& key_at) const {
    if (slots_.empty()) return kNone;
    for (size_t slot = home(key);; slot = (slot + 1) & mask()) {
      const uint32_t place = slots_[slot];
      if (place == kNone || key_at(place) == key) return place;
    }
  }
  /// Enters a pointer that has no place; the array held `size` before.
  template <class KeyAt>
  void insert(const void* key, uint32_t size, const KeyAt& key_at) {
    if (2 * (size_t{size} + 1) > slots_.size()) grow(2 * (size_t{size} + 1), size, key_at);
    enter(key, size);
  }
  template <class KeyAt>
  void reserve(size_t count, uint32_t size, const KeyAt& key_at) {
    if (2 * count > slots_.size()) grow(2 * count, size, key_at);
  }
  void clear() { slots_.clear(); }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t home(const void* key) const {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(key) >> 4) * 0x9e3779b97f4a7c15 >> 32) & mask();
  }
  void enter(const void* key, uint32_t place) {
    size_t slot = home(key);
    while (slots_[slot] != kNone) slot = (slot + 1) & mask();
    slots_[slot] = place;
  }
  template <class KeyAt>
  void grow(size_t least, uint32_t size, const KeyAt& key_at) {
    slots_.assign(std::bit_ceil(std::max<size_t>(least, 16)), kNone);
    for (uint32_t place = 0; place < size; ++place) enter(key_at(place), place);
  }

  std::vector<uint32_t> slots_;
};

template <class Key, class Value>
class PointerMap {
 public:
  using Entry = std::pair<Key, Value>;

  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void reserve(size_t count) {
    entries_.reserve(count);
    index_.reserve(count, places(), keys());
  }
  auto find(Key key) { return entries_.begin() + offset(key); }
  auto find(Key key) const { return entries_.begin() + offset(key); }
  size_t count(Key key) const { return index_.find(key, keys()) != PointerIndex::kNone; }
  const Value& at(Key key) const {
    const uint32_t place = index_.find(key, keys());
    CHECK(place != PointerIndex::kNone, "a pointer that is not in the map");
    return entries_[place].second;
  }
  /// Leaves an entry that is there as it is. The entry, and whether it is new.
  template <class... Args>
  std::pair<Entry*, bool> try_emplace(Key key, Args&&... args) {
    const uint32_t place = index_.find(key, keys());
    if (place != PointerIndex::kNone) return {&entries_[place], false};
    index_.insert(key, places(), keys());
    entries_.emplace_back(std::piecewise_construct, std::forward_as_tuple(key),
                          std::forward_as_tuple(std::forward<Args>(args)...));
    return {&entries_.back(), true};
  }
  Value& operator[](Key key) { return try_emplace(key).first->second; }

 private:
  uint32_t places() const { return static_cast<uint32_t>(entries_.size()); }
  auto keys() const {
    return [this](uint32_t place) -> const void* { return entries_[place].first; };
  }
  std::ptrdiff_t offset(Key key) const {
    const uint32_t place = index_.find(key, keys());
    return static_cast<std::ptrdiff_t>(place == PointerIndex::kNone ? entries_.size() : place);
  }

  std::vector<Entry> entries_;
  PointerIndex index_;
};

template <class Key>
class PointerSet {
 public:
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }
  size_t size() const { return keys_.size(); }
  bool empty() const { return keys_.empty(); }
  void reserve(size_t count) {
    keys_.reserve(count);
    index_.reserve(count, places(), keys());
  }
  size_t count(Key key) const { return index_.find(key, keys()) != PointerIndex::kNone; }
  /// Whether it was not there.
  bool insert(Key key) {
    if (count(key)) return false;
    index_.insert(key, places(), keys());
    keys_.push_back(key);
    return true;
  }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(*first);
  }

 private:
  uint32_t places() const { return static_cast<uint32_t>(keys_.size()); }
  auto keys() const {
    return [this](uint32_t place) -> const void* { return keys_[place]; };
  }

  std::vector<Key> keys_;
  PointerIndex index_;
};

}  // namespace cairn
