// What the commands print: tables that fit 100 columns, numbers with units, a progress bar, colour on a terminal only.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::cli {

using Json = nlohmann::ordered_json;

inline constexpr size_t kColumns = 100;

/// Prints the value with two blanks of indent; bytes that are not UTF-8 are replaced.
void print_json(const Json& json);
std::string bold(std::string_view text);
std::string red(std::string_view text);

/// "1.2 MB", "25.6 M", "3.1 GFLOPs", "12.3 ms"; units are decimal.
std::string bytes_text(double bytes);
std::string count_text(double count, std::string_view unit = {});
std::string seconds_text(double seconds);

/// Columns as wide as their widest cell; the widest column gives way until a line fits kColumns.
class Table {
 public:
  /// A header that starts with '>' is of a right-aligned column.
  explicit Table(std::vector<std::string> headers);
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(size_t indent = 0) const;

 private:
  std::vector<std::string> headers_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar with rate and time left on standard error, drawn on a terminal only and gone when done.
class Progress {
 public:
  Progress(std::string what, double total);
  ~Progress();
  void at(double done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  double total_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace cairn::cli
