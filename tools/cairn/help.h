// What all options that CLI11 reads share: help wrapped at the columns of all output, and values that say something.
#pragma once

#include <CLI/CLI.hpp>

#include "console.h"
#include "support/options.h"

namespace cairn::cli {

/// What a shell makes of "$UNSET" is the name of no file, nor anything else.
inline CLI::Validator not_empty() {
  const auto check = [](const std::string& text) { return text.empty() ? "the value is empty" : ""; };
  return CLI::Validator(check, "", "");
}

class Help : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 0, 0, kColumns - get_column_width());
  }
};

}  // namespace cairn::cli
