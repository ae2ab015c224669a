// Protocol buffer messages that are damaged in their meaning and sound in their form.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace cairn {

using Random = std::mt19937_64;

inline size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

inline std::string varint(uint64_t value) {
  std::string text;
  for (; value > 0x7f; value >>= 7) text += static_cast<char>(0x80 | (value & 0x7f));
  return text + static_cast<char>(value);
}

/// Some fields of a protocol buffer message, found by reading it: where each starts, where its value is.
struct Field {
  size_t start, value, end;
  int wire;
};
inline std::vector<Field> fields_of(const std::string& bytes, size_t from, size_t to) {
  std::vector<Field> fields;
  auto number = [&](size_t& at, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < to; shift += 7) {
      uint8_t byte = static_cast<uint8_t>(bytes[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  for (size_t at = from; at < to;) {
    Field field{at, 0, 0, 0};
    uint64_t tag = 0, length = 0;
    if (!number(at, tag)) return {};
    field.wire = tag & 7;
    field.value = at;
    if (field.wire == 0 && number(at, length)) {
      field.end = at;
    } else if (field.wire == 2 && number(at, length) && length <= to - at) {
      field.value = at;
      field.end = at + length;
    } else if (field.wire == 5 && to - at >= 4) {
      field.end = at + 4;
    } else if (field.wire == 1 && to - at >= 8) {
      field.end = at + 8;
    } else {
      return {};
    }
    at = field.end;
    fields.push_back(field);
  }
  return fields;
}

/// A message with one field changed, copied, removed or exchanged somewhere below; lengths around it stay right.
inline std::string mutate_structure(const std::string& bytes, Random& random, int depth = 0) {
  std::vector<Field> fields = fields_of(bytes, 0, bytes.size());
  if (fields.empty()) return bytes + "\x08\x01";
  const Field& field = fields[below(random, fields.size())];
  std::string tag = bytes.substr(field.start, 1);
  std::string before = bytes.substr(0, field.start), after = bytes.substr(field.end);
  std::string whole = bytes.substr(field.start, field.end - field.start);
  if (field.wire == 2 && depth < 12 && below(random, 5) != 0) {
    std::string inner = mutate_structure(bytes.substr(field.value, field.end - field.value), random, depth + 1);
    return before + tag + varint(inner.size()) + inner + after;
  }
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          0x7f,
                                          0xffff,
                                          0x7fffffff,
                                          0xffffffff,
                                          uint64_t{1} << 40,
                                          uint64_t{1} << 62,
                                          ~uint64_t{0},
                                          ~uint64_t{0} - 1};
  switch (below(random, 5)) {
    case 0: return before + after;
    case 1: return before + whole + whole + after;
    case 2: {  // another field in its place: references to other nodes, cycles
      const Field& other = fields[below(random, fields.size())];
      return before + bytes.substr(other.start, other.end - other.start) + after;
    }
    case 3:
      if (field.wire == 0) return before + tag + varint(kNumbers[below(random, std::size(kNumbers))]) + after;
      if (field.wire == 2) {
        std::string value = bytes.substr(field.value, field.end - field.value);
        value.resize(below(random, value.size() + 1));
        return before + tag + varint(value.size()) + value + after;
      }
      return before + after;
    default: {
      std::string packed;
      for (int i = 0; i < 4; ++i) packed += varint(kNumbers[below(random, std::size(kNumbers))]);
      return before + tag + varint(packed.size()) + packed + after;
    }
  }
}

}  // namespace cairn
