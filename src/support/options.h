// The one table of the platform tools' command-line options, and their tolerant parser. Help, checks, notices and
// documentation are derived from the rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/report.h"

namespace cairn {

enum class OptionType : uint8_t {
  flag,        // no value
  text,        // any
  path,        // "~" is expanded
  integer,     // digits, a sign
  true_false,  // "true" or "false"
  zero_one,    // "0" or "1"
  choice,      // one of `values`
};

/// What giving the option does in this version.
enum class OptionStatus : uint8_t {
  acts,
  met,      // always satisfied: what it asks for is the only behaviour
  noted,    // parsed and checked, but without effect; a notice gives the reason once
  refused,  // would change the result in a way that is not supported yet; the run stops with the reason
};
const char* to_string(OptionStatus status);

enum Door : uint8_t { kAtc = 1 << 0, kOmg = 1 << 1 };

/// What a value has to look like: a regular expression, the same in words ("a number of cores"), and one that does.
struct ValueForm {
  const char* pattern;
  const char* words;
  const char* example;
};

struct OptionDef {
  const char* name;
  const char* group;
  OptionType type;
  std::vector<std::string_view> values;  // allowed values of a choice
  const char* fallback;                  // default value as text; empty: none
  const char* meaning;
  OptionStatus status;
  const char* reason = "";  // for every status but `acts`: why, and what to do instead
  uint8_t doors = kAtc | kOmg;
  std::vector<std::string_view> aliases = {};
  std::optional<ValueForm> form = {};  // of a text, or of a number within bounds
};

std::span<const OptionDef> option_table();
bool has_form(const ValueForm& form, const std::string& value);
/// Row by name or alias, `-` read as `_`; null when there is none for that door.
const OptionDef* find_option(std::string_view name, Door door);
/// The closest name within a third of its length, or nothing.
std::optional<std::string_view> nearest_option(std::string_view name, Door door);

struct ParsedOptions {
  std::map<std::string, std::string, std::less<>> values;  // by name; the last one given counts
  std::vector<std::string> repairs;                        // corrections made while parsing, a sentence each
  std::vector<std::string> notices;                        // options without effect, a sentence each

  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  /// The value given, else the table's default.
  std::string get(std::string_view name) const;
};

/// Reads `--k=v`, `--k v`, `-k=v`, dashes in names, curly and doubled quotes, blanks after separators and `~`.
/// Throws ReportError with every problem: E10001 (value), E10004 (value missing), E10005, E10006, E10053 (unknown
/// option, stray word, quote that never closes).
ParsedOptions parse_options(const std::vector<std::string>& arguments, Door door);
/// The help text of a door, 100 columns.
std::string options_help(Door door, const std::string& program);

/// Wraps the text into lines of at most `width` columns and indents those after the first; `used` columns of the first
/// line are taken already.
std::string wrapped(std::string_view text, size_t used, size_t indent, size_t width);
/// The parts between separators, trimmed; empty parts are left out.
std::vector<std::string> split_list(std::string_view text, char separator);

}  // namespace cairn
