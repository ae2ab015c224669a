// Reading of the platform tools' arguments as people really write them.
#include "support/options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "support/files.h"
#include "support/nearest.h"

namespace cairn {

namespace {

constexpr std::string_view kOpeningQuotes[] = {"\u201c", "\u201d", "\u2018", "\u2019", "\u300c"};
constexpr std::string_view kClosingQuotes[] = {"\u201d", "\u201c", "\u2019", "\u2018", "\u300d"};
constexpr std::string_view kLongDashes[] = {"\u2014\u2014", "\u2013\u2013", "\u2014", "\u2013"};

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string canonical(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

/// Index into the quote lists of the curly quote that `value` opens with, or nothing.
std::optional<size_t> curly_quote(std::string_view value) {
  for (size_t i = 0; i < std::size(kOpeningQuotes); ++i)
    if (value.starts_with(kOpeningQuotes[i])) return i;
  return std::nullopt;
}

bool ends_with_curly(std::string_view value) {
  return std::any_of(std::begin(kClosingQuotes), std::end(kClosingQuotes),
                     [&](std::string_view quote) { return value.ends_with(quote); });
}

bool is_integer(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string joined(const std::vector<std::string_view>& values) {
  std::string text;
  for (std::string_view value : values) text += (text.empty() ? "" : ", ") + std::string(value);
  return text;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& arguments, Door door) : arguments_(arguments), door_(door) {}

  ParsedOptions read() {
    while (at_ < arguments_.size()) argument();
    for (const auto& [name, value] : options_.values) check(*find_option(name, door_), value);
    if (!report_.empty()) throw ReportError(ErrorKind::invalid_argument, "", "the command line is wrong", report_);
    return std::move(options_);
  }

 private:
  void problem(const char* code, std::string option, std::string message, std::string fix = {}) {
    report_.add({code, Severity::error, std::move(option), {}, std::move(message), std::move(fix)});
  }
  void repaired(std::string sentence) { options_.repairs.push_back(std::move(sentence)); }

  /// "--name" without its dashes, or nothing when the argument does not start with one.
  std::optional<std::string> option_text(const std::string& argument) {
    std::string_view text = argument;
    for (std::string_view dash : kLongDashes) {
      if (!text.starts_with(dash)) continue;
      repaired(fmt::format("{}: the long dash is read as --", argument));
      return std::string(text.substr(dash.size()));
    }
    if (!text.starts_with('-') || text.size() < 2 || is_integer(text)) return std::nullopt;
    text.remove_prefix(text.starts_with("--") ? 2 : 1);
    return std::string(text);
  }

  void argument() {
    const std::string& given = arguments_[at_++];
    if (trim(given).empty()) return;
    auto text = option_text(given);
    if (!text) {
      problem("E10053", given, fmt::format("'{}' belongs to no option", given),
              "a blank inside a value needs quotes around the whole value: --input_shape=\"a:1, 2\"");
      return;
    }
    size_t equals = text->find('=');
    std::string name = std::string(trim(std::string_view(*text).substr(0, equals)));
    const OptionDef* def = find_option(name, door_);
    if (!def) {
      unknown(name);
      // What follows is most likely its value.
      if (equals == std::string::npos && at_ < arguments_.size() && !arguments_[at_].starts_with('-')) ++at_;
      return;
    }
    if (canonical(name) != def->name && def->type != OptionType::flag)
      repaired(fmt::format("--{} is read as --{}", name, def->name));
    if (def->type == OptionType::flag) {
      options_.values[def->name] = "true";
      return;
    }
    std::optional<std::string> value = value_of(*def, *text, equals);
    if (value) options_.values[def->name] = std::move(*value);
  }

  void unknown(const std::string& name) {
    auto nearest = nearest_option(name, door_);
    problem("E10053", "--" + name, fmt::format("--{} is no option", name),
            nearest ? fmt::format("nearest: --{}", *nearest) : "--help lists all options");
  }

  /// The text after `=` or the next argument, with quotes and cut blanks mended.
  std::optional<std::string> value_of(const OptionDef& def, const std::string& text, size_t equals) {
    std::string value;
    if (equals != std::string::npos) {
      value = text.substr(equals + 1);
    } else if (at_ < arguments_.size() && (!arguments_[at_].starts_with('-') || is_integer(arguments_[at_]))) {
      value = arguments_[at_++];
      if (value == "=" && at_ < arguments_.size()) value = arguments_[at_++];
    } else {
      problem("E10004", fmt::format("--{}", def.name), fmt::format("--{} has no value", def.name),
              "give it behind '='; a value with ';' or a blank needs quotes");
      return std::nullopt;
    }
    value = trim(value);
    if (curly_quote(value)) return without_curly(def, value);
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
      value = trim(std::string_view(value).substr(1, value.size() - 2));
      repaired(fmt::format("--{}: quotes inside the value are left out", def.name));
    }
    join_cut_list(def, value);
    if (def.type == OptionType::path) value = expand_home(value);
    return value;
  }

  std::optional<std::string> without_curly(const OptionDef& def, std::string value) {
    std::string whole = value;
    size_t next = at_;
    size_t quote = *curly_quote(value);
    while (!(ends_with_curly(whole) && whole.size() > kOpeningQuotes[quote].size()) && next < arguments_.size() &&
           !arguments_[next].starts_with("--"))
      whole += " " + arguments_[next++];
    size_t opening = kOpeningQuotes[quote].size();
    if (!ends_with_curly(whole) || whole.size() <= opening) {
      std::string start = std::string(trim(std::string_view(value).substr(opening)));
      problem(
          "E10053", fmt::format("--{}", def.name),
          fmt::format("--{}: the value opens with a curly quote ({}) that never closes: the shell cut the command at "
                      "';' because curly quotes do not quote",
                      def.name, kOpeningQuotes[quote]),
          fmt::format("use straight quotes around the whole value: --{}=\"{};...\"", def.name, start));
      return std::nullopt;
    }
    at_ = next;
    repaired(fmt::format("--{}: curly quotes around the value are left out", def.name));
    std::string inner(trim(std::string_view(whole).substr(opening, whole.size() - opening - 3)));  // all are 3 bytes
    if (def.type == OptionType::path) inner = expand_home(inner);
    return inner;
  }

  /// "--input_shape=a:1, 224,224,3" without quotes arrives as two arguments.
  void join_cut_list(const OptionDef& def, std::string& value) {
    constexpr std::string_view kSeparators = ",;:";
    if (def.type != OptionType::text) return;
    bool joined = false;
    while (at_ < arguments_.size() && !value.empty() && !arguments_[at_].empty() &&
           !arguments_[at_].starts_with("--") &&
           (kSeparators.find(value.back()) != std::string_view::npos ||
            kSeparators.find(arguments_[at_][0]) != std::string_view::npos)) {
      value += arguments_[at_++];
      joined = true;
    }
    if (joined) repaired(fmt::format("--{}: the blank inside the value is left out: {}", def.name, value));
  }

  void check(const OptionDef& def, const std::string& value) {
    std::string option = fmt::format("--{}", def.name);
    if (def.status == OptionStatus::refused) {
      problem("E10055", option, fmt::format("{} cannot be used: {}", option, def.reason));
      return;
    }
    if (def.status == OptionStatus::noted)
      options_.notices.push_back(fmt::format("{} has no effect: {}", option, def.reason));
    auto invalid = [&](const char* code, const std::string& reason) {
      problem(code, option, fmt::format("Value [{}] for parameter [{}] is invalid. Reason: {}", value, option, reason));
    };
    if (def.type == OptionType::true_false && value != "true" && value != "false")
      invalid("E10005", "it must be true or false");
    if (def.type == OptionType::zero_one && value != "0" && value != "1") invalid("E10006", "it must be 1 or 0");
    if (def.type == OptionType::integer && !is_integer(value)) invalid("E10001", "it must be a number");
    if (def.type == OptionType::choice && std::find(def.values.begin(), def.values.end(), value) == def.values.end())
      bad_choice(def, value, invalid);
  }

  template <class Invalid>
  void bad_choice(const OptionDef& def, const std::string& value, Invalid&& invalid) {
    std::string_view name = def.name;
    if (name == "log")
      problem("E10010", "--log",
              fmt::format("invalid value for --log:{}, only support debug, info, warning, error, null", value));
    else if (name == "framework")
      problem("E10007", "--framework",
              fmt::format("Value [{}] for parameter [--framework] is invalid. Reason: it must be 0(Caffe) or "
                          "1(MindSpore) or 3(TensorFlow) or 5(Onnx)",
                          value));
    else
      invalid("E10001", fmt::format("it must be one of: {}", joined(def.values)));
  }

  const std::vector<std::string>& arguments_;
  Door door_;
  size_t at_ = 0;
  ParsedOptions options_;
  Report report_;
};

/// Adds `text` to `out` in lines of at most `width` columns, all but the first indented.
void wrap(std::string& out, std::string_view text, size_t indent, size_t width) {
  size_t column = indent;
  for (const std::string& word : split_list(text, ' ')) {
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

}  // namespace

const char* to_string(OptionStatus status) {
  constexpr const char* kNames[] = {"acts", "met", "noted", "refused"};
  return kNames[static_cast<int>(status)];
}

const OptionDef* find_option(std::string_view name, Door door) {
  std::string wanted = canonical(name);
  for (const OptionDef& def : option_table())
    if ((def.doors & door) != 0 && (wanted == def.name || std::count(def.aliases.begin(), def.aliases.end(), wanted)))
      return &def;
  return nullptr;
}

std::optional<std::string_view> nearest_option(std::string_view name, Door door) {
  std::vector<std::string_view> names;
  for (const OptionDef& def : option_table())
    if ((def.doors & door) != 0) names.push_back(def.name);
  return nearest(canonical(name), names);
}

std::string ParsedOptions::get(std::string_view name) const {
  auto found = values.find(name);
  if (found != values.end()) return found->second;
  for (const OptionDef& def : option_table())
    if (name == def.name) return def.fallback;
  CHECK(false, "no option {}", name);
  return {};
}

ParsedOptions parse_options(const std::vector<std::string>& arguments, Door door) {
  return Reader(arguments, door).read();
}

std::string options_help(Door door, const std::string& program) {
  std::string text = fmt::format("Usage: {} --model=MODEL --output=NAME [options]\n", program);
  constexpr std::array kGroups = {"General",   "Input",        "Output", "Target",
                                  "Precision", "Optimisation", "Tuning", "Debug"};
  for (const char* group : kGroups) {
    std::string lines;
    for (const OptionDef& def : option_table()) {
      if ((def.doors & door) == 0 || std::string_view(def.group) != group) continue;
      std::string meaning = def.meaning;
      if (!def.values.empty()) meaning += "; one of " + joined(def.values);
      if (*def.fallback) meaning += fmt::format(" (default {})", def.fallback);
      if (def.status == OptionStatus::met) meaning += fmt::format(" [always so: {}]", def.reason);
      if (def.status == OptionStatus::noted) meaning += fmt::format(" [no effect: {}]", def.reason);
      if (def.status == OptionStatus::refused) meaning += fmt::format(" [refused: {}]", def.reason);
      lines += fmt::format("  --{:<28} ", def.name);
      wrap(lines, meaning, 33, 100);
    }
    if (!lines.empty()) text += fmt::format("\n{}\n{}", group, lines);
  }
  return text;
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    std::string_view part = trim(text.substr(0, end));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace cairn
