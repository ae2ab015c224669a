#include "support/option_words.h"

#include <algorithm>

#include "support/nearest.h"

namespace cairn {
namespace {

constexpr std::string_view kDashes[] = {"-",      "\u2010", "\u2011", "\u2012", "\u2013", "\u2014",
                                        "\u2015", "\u2212", "\ufe58", "\ufe63", "\uff0d"};
constexpr std::string_view kQuotes[] = {"\"",     "'",      "\u2018", "\u2019", "\u201a", "\u201b", "\u201c",
                                        "\u201d", "\u201e", "\u201f", "\u00ab", "\u00bb", "\u2032", "\u2033",
                                        "\u300c", "\u300d", "\u300e", "\u300f", "\uff02", "\uff07"};
constexpr std::string_view kBlanks[] = {"\u00a0", "\u2002", "\u2003", "\u2009", "\u202f", "\u3000"};
constexpr std::string_view kInvisible[] = {"\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"};
constexpr std::pair<std::string_view, char> kFullWidth[] = {
    {"\uff0c", ','}, {"\u3001", ','}, {"\uff1a", ':'}, {"\uff1b", ';'}, {"\uff1d", '='}, {"\uff0e", '.'},
    {"\uff3b", '['}, {"\uff3d", ']'}, {"\u3010", '['}, {"\u3011", ']'}, {"\uff5e", '~'}, {"\uff0d", '-'},
    {"\u2212", '-'}, {"\uff10", '0'}, {"\uff11", '1'}, {"\uff12", '2'}, {"\uff13", '3'}, {"\uff14", '4'},
    {"\uff15", '5'}, {"\uff16", '6'}, {"\uff17", '7'}, {"\uff18", '8'}, {"\uff19", '9'}};

template <size_t kCount>
size_t starts_with_one(std::string_view text, const std::string_view (&marks)[kCount]) {
  for (std::string_view mark : marks)
    if (text.starts_with(mark)) return mark.size();
  return 0;
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

/// Splits the text behind the option name that it begins with.
std::pair<std::string_view, std::string_view> split_name(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  return {text.substr(0, end), text.substr(end)};
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

/// What other converters call an option, and ours.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {{"aipp", "insert_op_conf=FILE"},
                                                                         {"aipp_conf", "insert_op_conf=FILE"},
                                                                         {"aipp_config", "insert_op_conf=FILE"},
                                                                         {"fp16", "precision_mode=force_fp16"},
                                                                         {"input", "input_shape=\"name:dims\""},
                                                                         {"inputs", "input_shape=\"name:dims\""},
                                                                         {"outputs", "out_nodes=\"node:0\""},
                                                                         {"quiet", "log=error"},
                                                                         {"verbose", "log=info"},
                                                                         {"device", "device_id=0"}};

/// The option with the longest name that is a proper prefix of `name`, at least three characters long.
const OptionDef* option_in_front(std::string_view name, Door door) {
  for (size_t length = name.size(); length-- > 3;)
    if (const OptionDef* def = find_option(name.substr(0, length), door)) return def;
  return nullptr;
}

}  // namespace

size_t leading_dashes(std::string_view text) {
  size_t size = 0;
  while (const size_t more = starts_with_one(text.substr(size), kDashes)) size += more;
  return size;
}

size_t opening_quote(std::string_view text) { return starts_with_one(text, kQuotes); }

size_t closing_quote(std::string_view text) {
  for (std::string_view quote : kQuotes)
    if (text.ends_with(quote)) return quote.size();
  return 0;
}

std::string ascii_punctuation(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    auto found = std::find_if(std::begin(kFullWidth), std::end(kFullWidth),
                              [&](const auto& pair) { return text.starts_with(pair.first); });
    plain += found == std::end(kFullWidth) ? text[0] : found->second;
    text.remove_prefix(found == std::end(kFullWidth) ? 1 : found->first.size());
  }
  return plain;
}

std::vector<std::string> mended_words(const std::vector<std::string>& words, Door door,
                                      std::vector<std::string>& repairs) {
  std::vector<std::string> mended;
  bool line_ends = false;
  for (const std::string& word : words) {
    std::string plain;
    bool changed = false;
    for (std::string_view rest = word; !rest.empty();) {
      if (const size_t size = starts_with_one(rest, kInvisible)) {
        rest.remove_prefix(size), changed = true;
      } else if (const size_t blank = starts_with_one(rest, kBlanks)) {
        rest.remove_prefix(blank), changed = true;
        const auto [name, behind] = split_name(rest.substr(leading_dashes(rest)));
        const bool option = leading_dashes(rest) > 0 && find_option(name, door) != nullptr;
        if (option && !plain.empty()) mended.push_back(std::exchange(plain, ""));
        if (!option) plain += ' ';
      } else {
        plain += rest[0];
        rest.remove_prefix(1);
      }
    }
    if (changed)
      repairs.push_back(fmt::format("{}: no-break blanks and invisible characters are read as blanks", word));
    if (plain.size() > 1 && plain.ends_with('\r')) plain.pop_back(), line_ends = true;
    mended.push_back(std::move(plain));
  }
  if (line_ends) repairs.emplace_back("line ends of Windows (CR) are left out");
  return mended;
}

size_t glued_option(std::string_view value, Door door) {
  for (size_t i = 0; i < value.size(); ++i) {
    const size_t dashes = leading_dashes(value.substr(i));
    if (dashes == 0) continue;
    const auto [name, behind] = split_name(value.substr(i + dashes));
    const bool parted = i == 0 || std::isspace(static_cast<unsigned char>(value[i - 1])) != 0;
    if ((dashes > 1 || parted) && find_option(name, door) != nullptr &&
        (behind.starts_with('=') || behind.starts_with(' ')))
      return i;
    i += dashes - 1;
  }
  return std::string_view::npos;
}

std::string hint_for_stray(const std::string& word, const std::string& next, Door door) {
  if (word.starts_with('#'))
    return "a comment cannot stand behind the backslash of a continued line: the command ended there";
  if (word == "^" || word == "`")
    return fmt::format("'{}' continues lines in other shells; here it is a backslash at the very end of the line",
                       word);
  if (word.starts_with("\\")) return "a backslash continues a line only as its very last character";
  if (word == "=") return "write the option, '=' and the value without blanks: --name=value";
  if (word.find_first_of("<>&|;") < word.find_first_not_of("0123456789<>&|;"))
    return fmt::format("'{}' is the shell's, which did not read this line: a variable or a program held it", word);
  if (leading_dashes(word) == word.size())
    return find_option(split_name(next).first, door) ? fmt::format("there is a blank behind the dashes: --{}", next)
                                                     : "there is a blank behind the dashes";
  const auto [name, behind] = split_name(word);
  if (behind.starts_with('=') || behind.starts_with("\uff1d")) {
    if (find_option(name, door)) return fmt::format("two dashes are missing in front: --{}", word);
    if (auto close = nearest_option(name, door)) return fmt::format("nearest: --{}", *close);
  }
  if (word == "atc" || word == "omg") return "the name of the command is there twice";
  if (word.find(".om") == std::string::npos && word.find(':') != std::string::npos)
    return "it looks like a part of --input_shape or --out_nodes: a value with ';' or a blank needs quotes";
  return "a blank inside a value needs quotes around the whole value: --input_shape=\"a:1, 2\"";
}

std::string hint_for_unknown(const std::string& name, const std::string& next, Door door) {
  const std::string joined = fmt::format("{}_{}", name, split_name(next).first);
  if (!next.empty() && find_option(joined, door)) return fmt::format("write --{} in one word", joined);
  if (name.size() == 1) return "options have no short names; --help lists all";
  for (const auto& [word, option] : kOtherWords)
    if (lower(name) == word && find_option(option.substr(0, option.find('=')), door))
      return fmt::format("here it is --{}", option);
  if (find_option(lower(name), door)) return fmt::format("options are in small letters: --{}", lower(name));
  if (const size_t colon = name.find(':'); colon != std::string::npos && find_option(name.substr(0, colon), door))
    return fmt::format("write '=' in place of ':': --{}={}", name.substr(0, colon), name.substr(colon + 1));
  if (auto close = nearest_option(lower(name), door)) return fmt::format("nearest: --{}", *close);
  if (const size_t colon = name.find(':'); colon != std::string::npos)
    return hint_for_unknown(name.substr(0, colon), "", door);
  if (const OptionDef* def = option_in_front(name, door))
    return fmt::format("'=' is missing behind --{}, or a blank: --{}={}", def->name, def->name,
                       name.substr(std::string_view(def->name).size()));
  return "--help lists all options";
}

std::string chip_fault(const std::string& name) {
  constexpr std::string_view kFamilies[] = {
      "Ascend031", "Ascend035", "Ascend310", "Ascend320", "Ascend610", "Ascend615", "Ascend710",
      "Ascend910", "Ascend920", "Ascend950", "Hi35",      "Hi36",      "Hi37",      "SD3403",
      "BS9SX",     "AS31XM",    "MC61",      "MC62",      "Kirin",     "kirin",     "OPTG"};
  constexpr const char* kExamples = "the name of a chip, such as Ascend310, Ascend310P3 or Ascend910B1";
  const auto sound = [&](const std::string& chip) {
    return std::all_of(chip.begin(), chip.end(), is_name) &&
           std::any_of(std::begin(kFamilies), std::end(kFamilies), [&](std::string_view family) {
             return chip.starts_with(family) && chip.size() <= family.size() + 12 &&
                    !(chip.size() > family.size() && std::isdigit(chip[family.size()]) != 0 &&
                      family.starts_with("Ascend"));
           });
  };
  if (sound(name)) return "";
  const std::string small = lower(name);
  for (std::string_view family : kFamilies) {
    if (!small.starts_with(lower(family))) continue;
    std::string meant = std::string(family) + name.substr(family.size());
    if (meant.size() > family.size() && std::islower(static_cast<unsigned char>(name[family.size()])) != 0)
      meant[family.size()] -= 'a' - 'A';
    if (sound(meant)) return fmt::format("it must be {}; did you mean {}?", kExamples, meant);
  }
  return fmt::format("it must be {}", kExamples);
}

}  // namespace cairn
