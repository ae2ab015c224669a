// A workbook of one sheet (.xlsx), written row by row: only its compressed rows and its different texts are held.
#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "migrate/source.h"

namespace cairn::migrate {

class Spreadsheet {
 public:
  struct Column {
    std::string_view title;
    double width;  // in characters
  };

  /// The first row holds the titles, in bold, and stays in view.
  Spreadsheet(std::string_view sheet, const std::vector<Column>& columns);
  Spreadsheet(const Spreadsheet&) = delete;
  ~Spreadsheet() { deflateEnd(&stream_); }

  /// The next cell of the row. What is no UTF-8 or no character of XML becomes the replacement character.
  Spreadsheet& text(std::string_view content);
  Spreadsheet& number(uint64_t value);
  void end_row();

  /// The bytes of the file; the last call.
  std::string finish();

 private:
  void begin_row();
  size_t index_of(std::string_view content);
  void flush(bool last);

  std::string sheet_name_;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> indices_;
  std::string strings_;  // the elements of all different texts
  std::string rows_;     // what is not compressed yet
  std::string packed_;   // the sheet, compressed
  z_stream stream_{};
  uint32_t checksum_ = 0;
  uint64_t size_ = 0, cells_ = 0;  // of the sheet; texts in it
  bool in_row_ = false;
};

}  // namespace cairn::migrate
