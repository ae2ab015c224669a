// The options of script migration by name: one table for the command line, the configuration file, the examples and docs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "migrate/migrate.h"

namespace cairn::migrate {

struct OptionRow {
  std::string_view name;    // precision_mode; on the command line --precision-mode
  std::string_view values;  // "" for a switch; else what it takes
  std::string_view meaning;
  void (*set)(Options& options, std::string_view value);  // throws Error for a wrong value
};

const std::vector<OptionRow>& option_rows();
/// Sets one option; throws Error{invalid_argument} for an unknown name or a wrong value.
void set_option(Options& options, std::string_view name, std::string_view value);
/// A note for each option that was set and changed nothing, with what it needs.
std::vector<Finding> idle_options(const Result& result, const Options& options);
/// "tf=1 platform loss_scale=128"
void set_options(Options& options, std::string_view words);
/// The members of a JSON object: strings, numbers, booleans, lists of strings. `where` names the file in errors.
void set_options_json(Options& options, const std::string& text, const std::string& where);

}  // namespace cairn::migrate
