// Image preprocessing in front of a model, as the platform's AIPP configuration describes it: crop, channel swap, colour
// conversion, mean, minimum and scale, padding. The input becomes 8-bit image bytes.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"
#include "support/error.h"

namespace cairn {

/// One aipp_op block: the given values by field name; enumerations and booleans are numbers.
struct AippOp {
  std::map<std::string, double, std::less<>> numbers;
  std::string input_name;  // related_input_name; empty: by rank
  std::string place;       // "line 2, column 1"

  bool has(std::string_view field) const { return numbers.find(field) != numbers.end(); }
  double number(std::string_view field, double missing = 0) const {
    auto found = numbers.find(field);
    return found == numbers.end() ? missing : found->second;
  }
  int64_t integer(std::string_view field) const { return static_cast<int64_t>(number(field)); }
  bool is_on(std::string_view field) const { return number(field) != 0; }
  template <class... Args>
  [[noreturn]] void refuse(const std::string& where, fmt::format_string<Args...> text, Args&&... args) const {
    fail(ErrorKind::invalid_argument, where, "{}: aipp_op: {}", place, fmt::format(text, std::forward<Args>(args)...));
  }
};

/// Reads the text of a configuration. Throws Error invalid_argument, invalid_model with line and column.
std::vector<AippOp> parse_aipp(std::string_view text, const std::string& file);

/// Numbers of the colour conversion: those given, else the platform's (YUV to BGR, RGB to YUV; BT.601).
struct AippColours {
  std::array<double, 9> matrix{};
  std::array<double, 3> input_bias{}, output_bias{};
};
AippColours colours_of(const AippOp& op);

/// An input that now takes image bytes; with dynamic preprocessing, another input takes the parameters.
struct AippInput {
  std::string name;
  std::string parameters;  // empty: static
};

/// Puts the blocks in front of their inputs; `channels_first` tells the order of the model's own image inputs. Throws
/// Error invalid_argument, unsupported.
std::vector<AippInput> insert_aipp(Module& module, const std::vector<AippOp>& ops, bool channels_first);

/// The content of a parameter input for dynamic preprocessing. `ops` has one block for all images, or one per image.
/// Throws Error invalid_argument.
std::string aipp_parameters(const std::vector<AippOp>& ops, int64_t images);

}  // namespace cairn
