// Tolerant parser of the platform tools' arguments.
#include "support/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>

#include "support/files.h"
#include "support/nearest.h"
#include "support/option_words.h"

namespace cairn {

namespace {

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Replaces dashes of any kind within a name by underscores.
std::string canonical(std::string_view name) {
  std::string text;
  while (!name.empty()) {
    const size_t dashes = leading_dashes(name);
    text += dashes > 0 ? '_' : name[0];
    name.remove_prefix(std::max<size_t>(dashes, 1));
  }
  return text;
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
  Reader(const std::vector<std::string>& arguments, Door door) : door_(door) {
    arguments_ = mended_words(arguments, door, options_.repairs);
  }

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
    const size_t dashes = leading_dashes(argument);
    if (dashes == 0 || dashes == argument.size() || is_integer(argument)) return std::nullopt;
    if (argument.substr(0, dashes).find_first_not_of('-') != std::string::npos || dashes > 2)
      repaired(fmt::format("{}: the dashes in front are read as --", argument));
    return argument.substr(dashes);
  }

  std::string_view next() const { return at_ < arguments_.size() ? std::string_view(arguments_[at_]) : ""; }
  bool next_is_option() const { return leading_dashes(next()) > 0 && !is_integer(next()); }

  void argument() {
    const std::string given = arguments_[at_++];
    if (trim(given).empty()) {
      if (!given.empty())
        repaired(
            fmt::format("a {} alone is a word of the command: a line that ends in a backslash has {} behind it, and "
                        "the command ends there",
                        given[0] == '\r' ? "line end of Windows" : "blank", given[0] == '\r' ? "one" : "blanks"));
      return;
    }
    auto text = option_text(std::string(trim(given)));
    if (!text) return stray(std::string(trim(given)));
    size_t equals = text->find('=');
    if (const size_t wide = text->find("\uff1d"); wide < equals) {  // a full-width equals sign
      repaired(fmt::format("{}: the full-width '=' is read as =", given));
      text->replace(wide, 3, "=");
      equals = wide;
    }
    std::string name = std::string(trim(std::string_view(*text).substr(0, equals)));
    const OptionDef* def = find_option(name, door_);
    if (!def) return unknown(name, equals != std::string::npos);
    if (name != def->name && def->type != OptionType::flag)
      repaired(fmt::format("--{} is read as --{}", name, def->name));
    if (def->type == OptionType::flag) {
      options_.values[def->name] = "true";
      return;
    }
    std::optional<std::string> value = value_of(*def, *text, equals);
    if (value) take(*def, std::move(*value));
  }

  void take(const OptionDef& def, std::string value) {
    if (value.empty() && std::string_view(def.name) != "input_shape") {
      repaired(fmt::format("--{} is empty, as if it were not given; a shell variable that is not set leaves it so",
                           def.name));
      return;
    }
    auto [known, fresh] = options_.values.try_emplace(def.name, value);
    if (fresh) return;
    repaired(known->second == value
                 ? fmt::format("--{} is given twice, with the same value", def.name)
                 : fmt::format("--{} is given again: {} counts, {} does not", def.name, value, known->second));
    known->second = std::move(value);
  }

  void stray(const std::string& word) {
    if (leading_dashes(word) == word.size() && at_ < arguments_.size())
      if (const std::string name = arguments_[at_].substr(0, arguments_[at_].find('=')); find_option(name, door_)) {
        repaired(fmt::format("the blank between {} and {} is left out", word, name));
        arguments_[at_].insert(0, "--");
        return;
      }
    std::string hint = hint_for_stray(word, std::string(next()), door_);
    if (at_ == 1 && hint.starts_with("a blank inside"))
      hint = fmt::format("every value stands behind an option: --model={}", word);
    problem("E10053", word, fmt::format("'{}' belongs to no option", word), hint);
    if (word.starts_with('#'))  // skip the other words of the comment
      while (at_ < arguments_.size() && !next_is_option()) ++at_;
  }

  void unknown(const std::string& name, bool has_value) {
    const Door other = door_ == kAtc ? kOmg : kAtc;
    problem("E10053", "--" + name, fmt::format("--{} is no option", name),
            find_option(name, other) ? fmt::format("{} has it, {} has not: leave it out", other == kOmg ? "omg" : "atc",
                                                   other == kOmg ? "atc" : "omg")
                                     : hint_for_unknown(name, has_value ? "" : std::string(next()), door_));
    // What follows is most likely its value.
    if (!has_value && at_ < arguments_.size() && !next_is_option()) ++at_;
  }

  /// The text after `=` or the next argument, with quotes removed and a value that the shell split joined again.
  std::optional<std::string> value_of(const OptionDef& def, const std::string& text, size_t equals) {
    const std::string option = fmt::format("--{}", def.name);
    std::string value;
    if (equals != std::string::npos) {
      value = trim(std::string_view(text).substr(equals + 1));
      if (value.starts_with('=')) {
        value = trim(std::string_view(value).substr(1));
        repaired(fmt::format("{}: the second '=' is left out", option));
      }
    } else if (at_ >= arguments_.size() || next_is_option()) {
      problem("E10004", option, fmt::format("{} has no value", option),
              "give it behind '='; a value with ';' or a blank needs quotes");
      return std::nullopt;
    } else {
      value = trim(arguments_[at_++]);
      if (value.starts_with('=')) value = trim(std::string_view(value).substr(1));
      const std::string whole = fmt::format("{}_{}", def.name, value.substr(0, value.find('=')));
      if (value.find('=') != std::string::npos && find_option(whole, door_)) {
        problem("E10053", option, fmt::format("{} cannot be '{}'", option, value),
                fmt::format("there is a blank in the name: --{}", whole));
        return std::nullopt;
      }
    }
    const bool may_follow = value.empty() && at_ < arguments_.size() && !next_is_option() && !trim(next()).empty() &&
                            next().find('=') == std::string::npos;
    if (may_follow) {
      value = trim(arguments_[at_++]);
      repaired(fmt::format("{}: the blank behind '=' is left out", option));
    }
    if (const size_t glued = glued_option(value, door_); glued != std::string::npos) {
      problem("E10053", option, fmt::format("{} cannot be '{}': another option runs into its value", option, value),
              glued == 0 ? fmt::format("{} has no value of its own; leave it out or give one", option)
                         : fmt::format("write a blank in front of {}", value.substr(glued)));
      return std::nullopt;
    }
    if (!without_quotes(def, value)) return std::nullopt;
    if (def.type != OptionType::path) {
      if (std::string plain = ascii_punctuation(value); plain != value) {
        repaired(fmt::format("{}: full-width characters are read as plain ones: {}", option, plain));
        value = std::move(plain);
      }
    }
    join_cut_list(def, value);
    if (value.find("${") != std::string::npos || (value.starts_with('$') && value.size() > 1)) {
      problem("E10001", option,
              fmt::format("Value [{}] for parameter [{}] is invalid. Reason: its shell variable is not replaced", value,
                          option),
              "single quotes keep variables as they are; use double quotes");
      return std::nullopt;
    }
    if (def.type == OptionType::path && value.find_last_not_of(",;") != std::string::npos &&
        value.find_last_not_of(",;") + 1 < value.size()) {
      repaired(fmt::format("{}: what hangs behind the path is left out: {}", option, value));
      value.resize(value.find_last_not_of(",;") + 1);
    }
    if (def.type == OptionType::path) value = expand_home(value);
    return value;
  }

  /// Removes quotes that the shell left, and joins the words of a value in typographic quotes, which the shell split.
  bool without_quotes(const OptionDef& def, std::string& value) {
    bool curly = false, plain = false;
    for (size_t open = opening_quote(value); open > 0; open = opening_quote(value)) {
      std::string whole = value;
      size_t next = at_;
      auto closes = [&] { return closing_quote(whole) > 0 && whole.size() >= open + closing_quote(whole); };
      while (open > 1 && !closes() && next < arguments_.size() && !arguments_[next].starts_with("--"))
        whole += " " + arguments_[next++];
      if (!closes()) return refuse_quote(def, value, open);
      at_ = next;
      (open > 1 ? curly : plain) = true;
      value = trim(std::string_view(whole).substr(open, whole.size() - open - closing_quote(whole)));
    }
    if (const size_t close = closing_quote(value); close > 0) {
      value = trim(std::string_view(value).substr(0, value.size() - close));
      (close > 1 ? curly : plain) = true;
    }
    if (curly) repaired(fmt::format("--{}: curly quotes around the value are left out", def.name));
    if (plain) repaired(fmt::format("--{}: quotes inside the value are left out", def.name));
    return true;
  }

  bool refuse_quote(const OptionDef& def, const std::string& value, size_t open) {
    const std::string mark = value.substr(0, open), start(trim(std::string_view(value).substr(open)));
    problem(
        "E10053", fmt::format("--{}", def.name),
        fmt::format("--{}: the value opens with a {}quote ({}) that never closes{}", def.name, open > 1 ? "curly " : "",
                    mark, open > 1 ? ": the shell cut the command at ';' because curly quotes do not quote" : ""),
        fmt::format("use straight quotes around the whole value: --{}=\"{};...\"", def.name, start));
    return false;
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
    if (!is_value(def, option, value)) return;
    if (def.status == OptionStatus::refused) {
      const std::vector<std::string> parts = split_list(value, ',');
      if (*def.fallback != 0 &&
          std::all_of(parts.begin(), parts.end(), [&](auto& each) { return each == def.fallback; }))
        return;  // asks for what is done anyway
      problem("E10055", option, fmt::format("{} cannot be used: {}", option, def.reason));
      return;
    }
    if (def.status == OptionStatus::noted)
      options_.notices.push_back(fmt::format("{} has no effect: {}", option, def.reason));
  }

  /// Whether the option takes the value; else the problem is noted.
  bool is_value(const OptionDef& def, const std::string& option, const std::string& value) {
    const size_t before = report_.problems().size();
    auto invalid = [&](const char* code, const std::string& reason, const std::string& fix = {}) {
      problem(code, option, fmt::format("Value [{}] for parameter [{}] is invalid. Reason: {}", value, option, reason),
              fix);
    };
    if (std::string_view(def.name) == "soc_version")
      if (const std::string fault = chip_fault(value); !fault.empty()) invalid("E10001", fault);
    if (def.type == OptionType::true_false && value != "true" && value != "false")
      invalid("E10005", "it must be true or false", one_of(value, "true", "false", option));
    if (def.type == OptionType::zero_one && value != "0" && value != "1")
      invalid("E10006", "it must be 1 or 0", one_of(value, "1", "0", option));
    if (def.type == OptionType::integer && !is_integer(value))
      invalid("E10001", "it must be a number");
    else if (def.form && !has_form(*def.form, value))
      invalid("E10001", fmt::format("it must be {}", def.form->words));
    if (def.type == OptionType::choice && std::find(def.values.begin(), def.values.end(), value) == def.values.end())
      bad_choice(def, value, invalid);
    return report_.problems().size() == before;
  }

  template <class Invalid>
  void bad_choice(const OptionDef& def, const std::string& value, Invalid&& invalid) {
    std::string_view name = def.name;
    std::string meant = meant_choice(def, value), fix = meant.empty() ? "" : fmt::format("--{}={}", name, meant);
    if (name == "log")
      problem("E10010", "--log",
              fmt::format("invalid value for --log:{}, only support debug, info, warning, error, null", value), fix);
    else if (name == "framework")
      problem("E10007", "--framework",
              fmt::format("Value [{}] for parameter [--framework] is invalid. Reason: it must be 0(Caffe) or "
                          "1(MindSpore) or 3(TensorFlow) or 5(Onnx)",
                          value),
              fix);
    else
      invalid("E10001", fmt::format("it must be one of: {}", joined(def.values)),
              fix.empty() ? of_other_version(def, value) : fix);
  }

  /// "--name_v2=value" for a value of the option's other version.
  static std::string of_other_version(const OptionDef& def, const std::string& value) {
    const std::string name = def.name;
    for (const OptionDef& other : option_table())
      if ((name + "_v2" == other.name || std::string(other.name) + "_v2" == name) &&
          std::ranges::count(other.values, value) > 0)
        return fmt::format("--{}={}", other.name, value);
    return "";
  }

  /// The allowed value nearest to a misspelt one, compared without letter case and without trailing text.
  static std::string meant_choice(const OptionDef& def, const std::string& value) {
    std::string small = value;
    std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
    small = small.substr(0, small.find_last_not_of(",;.") + 1);
    if (std::string_view(def.name) == "framework")
      for (auto [word, number] :
           {std::pair("caffe", "0"), {"mindspore", "1"}, {"tensorflow", "3"}, {"tf", "3"}, {"pb", "3"}, {"onnx", "5"}})
        if (small == word) return number;
    std::vector<std::string_view> longer;  // values of which this is the beginning
    for (std::string_view each : def.values) {
      std::string other(each);
      std::transform(other.begin(), other.end(), other.begin(), [](unsigned char c) { return std::tolower(c); });
      if (small == other) return std::string(each);
      if (small.size() > 2 && other.starts_with(small)) longer.push_back(each);
    }
    if (longer.size() == 1) return std::string(longer[0]);
    const auto close = value.size() > 2 ? nearest(value, def.values) : std::nullopt;
    return close ? std::string(*close) : "";
  }

  /// Suggests "--name=true" for a value that usually means true, likewise for false.
  static std::string one_of(const std::string& value, const char* yes, const char* no, const std::string& option) {
    std::string small = value;
    std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const char* word : {"true", "1", "yes", "y", "on", "t"})
      if (small == word) return fmt::format("{}={}", option, yes);
    for (const char* word : {"false", "0", "no", "n", "off", "f"})
      if (small == word) return fmt::format("{}={}", option, no);
    return "";
  }

  std::vector<std::string> arguments_;
  Door door_;
  size_t at_ = 0;
  ParsedOptions options_;
  Report report_;
};

}  // namespace

bool has_form(const ValueForm& form, const std::string& value) {
  constexpr size_t kLongest = 200;  // of which a form is matched
  return value.size() <= kLongest && std::regex_match(value, std::regex(form.pattern));
}

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
  const std::string wanted = canonical(name);
  std::vector<std::string_view> names, longer;  // those that begin with it or end in it, as `soc` and `batch_size` do
  for (const OptionDef& def : option_table()) {
    if ((def.doors & door) == 0) continue;
    names.push_back(def.name);
    if (names.back().starts_with(wanted) || names.back().ends_with("_" + wanted)) longer.push_back(def.name);
  }
  if (wanted.size() < 3 || longer.empty()) return nearest(wanted, names);
  return *std::ranges::min_element(longer, {}, &std::string_view::size);
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
      lines += fmt::format("  --{:<28} {}\n", def.name, wrapped(meaning, 33, 33, 100));
    }
    if (!lines.empty()) text += fmt::format("\n{}\n{}", group, lines);
  }
  return text;
}

std::string wrapped(std::string_view text, size_t used, size_t indent, size_t width) {
  std::string out;
  for (const std::string& word : split_list(text, ' ')) {
    if (!out.empty() && used + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
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
