// A script's bytes as they are on disk, with what a reader needs to know about them: encoding, line starts, whether the
// bytes are Python at all. Nothing is ever re-encoded; edits are made on these bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::migrate {

/// Lets maps by std::string be asked with views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t size() const { return end - begin; }
};

struct Position {
  uint32_t line = 1;    // from 1
  uint32_t column = 1;  // from 1, in bytes
};

/// Line starts of a text; \n, \r\n and a lone \r end a line, as for Python.
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);
  Position at(uint32_t offset) const;
  /// The line's bytes without its end; `line` from 1.
  std::string_view line(std::string_view text, uint32_t line) const;
  uint32_t count() const { return static_cast<uint32_t>(starts_.size()); }
  uint32_t start(uint32_t line) const { return starts_[line - 1]; }

 private:
  std::vector<uint32_t> starts_;
};

/// The name in a PEP 263 comment of the first two lines, lower case, "utf-8" without one or after a byte order mark.
std::string declared_encoding(std::string_view text);

/// A copy for the parser, byte for byte as long: in encodings other than UTF-8 each non-ASCII character becomes ASCII
/// letters, so that spans found in the copy hold in the original.
std::string parsable_copy(std::string_view text, const std::string& encoding);

/// Whether a text scan sees the name of a framework that migration is about; false means the file needs no parse.
bool names_a_framework(std::string_view text);

}  // namespace cairn::migrate
