// Image preprocessing in front of a model, as the platform's AIPP configuration describes it: crop, channel swap, colour
// conversion, mean, minimum and scale, padding. The input becomes 8-bit image bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace cairn {

/// One aipp_op block: the numbers given, by the name of their field; enumerations and truth values as numbers.
struct AippOp {
  std::map<std::string, double, std::less<>> numbers;
  std::string input_name;  // related_input_name; empty: by rank

  bool has(std::string_view field) const { return numbers.find(field) != numbers.end(); }
  double number(std::string_view field, double missing = 0) const {
    auto found = numbers.find(field);
    return found == numbers.end() ? missing : found->second;
  }
  int64_t integer(std::string_view field) const { return static_cast<int64_t>(number(field)); }
  bool is_on(std::string_view field) const { return number(field) != 0; }
};

/// Reads the text of a configuration. Throws Error invalid_argument, invalid_model (with the line).
std::vector<AippOp> parse_aipp(std::string_view text, const std::string& file);

/// Puts the blocks in front of their inputs; `channels_first` tells the order of the model's own image inputs. Returns
/// the names of the inputs. Throws Error invalid_argument, unsupported.
std::vector<std::string> insert_aipp(Module& module, const std::vector<AippOp>& ops, bool channels_first);

}  // namespace cairn
