#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cairn::cli {

namespace {

bool coloured() {
  static const bool yes = ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return yes;
}

std::string scaled(double value, double step, const char* const* units, size_t count) {
  size_t unit = 0;
  while (std::abs(value) >= step * 0.99995 && unit + 1 < count) value /= step, ++unit;
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}{}", value, units[0]);
  return fmt::format("{:.{}f}{}", value, std::abs(value) < 10 ? 2 : 1, units[unit]);
}

/// Columns that UTF-8 text takes, counting one per code point.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// The text cut to `width` columns, in the middle, so that both ends of a long name stay readable.
std::string cut(const std::string& text, size_t width) {
  if (width_of(text) <= width || width < 5) return text;
  size_t head = (width - 2) / 2, tail = width - 2 - head;
  auto boundary = [&](size_t at) {
    while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
    return at;
  };
  return text.substr(0, boundary(head)) + ".." + text.substr(boundary(text.size() - tail));
}

}  // namespace

void print_json(const Json& json) { fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace)); }

std::string bold(std::string_view text) {
  return coloured() ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}
std::string red(std::string_view text) {
  return ::isatty(STDERR_FILENO) && !std::getenv("NO_COLOR") ? fmt::format("\033[31m{}\033[0m", text)
                                                             : std::string(text);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB"};
  return scaled(bytes, 1000, kUnits, std::size(kUnits));
}

std::string count_text(double count, std::string_view unit) {
  constexpr const char* kPrefixes[] = {" ", " k", " M", " G", " T"};
  std::string text = scaled(count, 1000, kPrefixes, std::size(kPrefixes)) + std::string(unit);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string seconds_text(double seconds) {
  constexpr const char* kUnits[] = {" us", " ms", " s"};
  return scaled(seconds * 1e6, 1000, kUnits, std::size(kUnits));
}

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {
  for (std::string& header : headers_) {
    right_.push_back(header.starts_with('>'));
    if (right_.back()) header.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headers_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(size_t indent) const {
  std::vector<size_t> widths;
  size_t total = indent;
  for (size_t i = 0; i < headers_.size(); ++i) {
    size_t width = width_of(headers_[i]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
    total += width + (i ? 2 : 0);
  }
  for (; total > kColumns; --total) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= 8) break;
    --*widest;
  }
  auto line = [&](const std::vector<std::string>& cells) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string cell = cut(cells[i], widths[i]);
      std::string pad(widths[i] - std::min(widths[i], width_of(cell)), ' ');
      text += (i ? "  " : "") + (right_[i] ? pad + cell : cell + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  fmt::print("{}\n", bold(line(headers_)));
  for (const auto& row : rows_) fmt::print("{}\n", line(row));
}

Progress::Progress(std::string what, double total) : what_(std::move(what)), total_(total) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void Progress::at(double done) {
  static const bool terminal = ::isatty(STDERR_FILENO);
  auto now = Clock::now();
  if (!terminal || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  double part = total_ > 0 ? std::clamp(done / total_, 0.0, 1.0) : 0;
  double seconds = std::chrono::duration<double>(now - start_).count();
  std::string bar(static_cast<size_t>(30 * part), '#');
  fmt::print(stderr, "\r\033[K{} [{:<30}] {:3.0f}%  {} left", what_, bar, part * 100,
             part > 0 ? seconds_text(seconds / part - seconds) : "?");
  std::fflush(stderr);
}

}  // namespace cairn::cli
