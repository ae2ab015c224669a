// A file that is written front to back, fast enough for millions of rows.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace cairn::profile {

/// "12.345" of 12345 ns: microseconds, exact. Appended to `text`.
void append_us(std::string& text, int64_t ns);
/// For a cell of a CSV file: quoted where it must be.
std::string csv_cell(std::string_view text);

class Writer {
 public:
  /// Throws Error io.
  explicit Writer(std::string path);
  ~Writer();
  Writer(const Writer&) = delete;

  Writer& text(std::string_view text);
  Writer& number(int64_t number);
  Writer& us(int64_t ns);
  /// Throws Error io when anything could not be written.
  void close();

 private:
  void flush();
  std::string path_, buffer_;
  FILE* file_;
  int error_ = 0;
};

}  // namespace cairn::profile
