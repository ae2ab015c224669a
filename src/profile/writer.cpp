#include "profile/writer.h"

#include <cerrno>
#include <charconv>
#include <cstring>

#include "support/error.h"

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

Writer::Writer(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wbe")) {
  if (!file_) fail(ErrorKind::io, path_, "cannot be written: {}", std::strerror(errno));
  std::setvbuf(file_, nullptr, _IONBF, 0);
  buffer_.reserve(kBuffer + 65536);
}

Writer::~Writer() {
  if (file_) std::fclose(file_);
}

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
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) error_ = errno ? errno : EIO;
  buffer_.clear();
}

void Writer::close() {
  flush();
  if (std::fclose(file_) != 0) error_ = errno;
  file_ = nullptr;
  if (error_) fail(ErrorKind::io, path_, "cannot be written: {}", std::strerror(error_));
}

}  // namespace cairn::profile
