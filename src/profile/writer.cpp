#include "profile/writer.h"

#include <charconv>

namespace cairn::profile {
namespace {

constexpr size_t kBuffer = 1 << 20;

void append_number(std::string& text, int64_t number) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text.append(digits, end);
}

}  // namespace

void append_us(std::string& text, int64_t ns) {
  if (ns < 0) {
    text += '-';
    ns = -ns;
  }
  append_number(text, ns / 1000);
  auto part = static_cast<int>(ns % 1000);
  char tail[4] = {'.', static_cast<char>('0' + part / 100), static_cast<char>('0' + part / 10 % 10),
                  static_cast<char>('0' + part % 10)};
  text.append(tail, 4);
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

Writer::Writer(const std::string& path) : file_(path, false) { buffer_.reserve(kBuffer + 65536); }

Writer& Writer::text(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBuffer) flush();
  return *this;
}

Writer& Writer::number(int64_t number) {
  append_number(buffer_, number);
  return *this;
}

Writer& Writer::us(int64_t ns) {
  append_us(buffer_, ns);
  return *this;
}

void Writer::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void Writer::close() {
  flush();
  file_.commit();
}

}  // namespace cairn::profile
