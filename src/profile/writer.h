// A file that is written front to back, fast enough for millions of rows; every function may throw Error io.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/part_file.h"

namespace cairn::profile {

/// "12.345" of 12345 ns: microseconds, exact. Appended to `text`.
void append_us(std::string& text, int64_t ns);
/// For a cell of a CSV file: quoted where it must be.
std::string csv_cell(std::string_view text);

class Writer {
 public:
  /// Throws Error io.
  explicit Writer(const std::string& path);

  Writer& text(std::string_view text);
  Writer& number(int64_t number);
  Writer& us(int64_t ns);
  /// The file is complete: it has its name from here on. Throws Error io.
  void close();

 private:
  void flush();
  PartFile file_;
  std::string buffer_;
};

}  // namespace cairn::profile
