// The help of options that CLI11 prints: what they mean is wrapped at the columns of all output.
#pragma once

#include <CLI/CLI.hpp>

#include "console.h"
#include "support/options.h"

namespace cairn::cli {

class Help : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), 0, 0, kColumns - get_column_width());
  }
};

}  // namespace cairn::cli
