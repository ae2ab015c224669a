// A parser that compiles a pattern to the steps of a machine, and the machine, which follows all alternatives
// simultaneously (Thompson 1968, Pike).
#include "ops/pattern.h"

#include <algorithm>

#include "support/error.h"
#include "support/stop.h"
#include "support/utf8.h"

namespace cairn {

namespace {

using Step = Pattern::Step;
using Chars = Pattern::Range;
using Op = Pattern::Op;
using Check = Pattern::Check;

constexpr uint32_t kLast = 0x10ffff;
constexpr size_t kMostSteps = 20000, kMostRepeats = 1000, kDeepest = 200;

/// The first character of a text and its size in bytes; an invalid byte is taken as a character, as in RE2.
std::pair<uint32_t, size_t> character(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t size = utf8_size(text);
  if (size == 0) return {0xfffd, 1};
  uint32_t value = size == 1 ? lead : lead & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) value = value << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
  return {value, size};
}

std::vector<Chars> inverted(std::vector<Chars> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Chars& a, const Chars& b) { return a.low < b.low; });
  std::vector<Chars> result;
  uint32_t next = 0;
  for (const Chars& range : ranges) {
    if (range.low > next) result.push_back({next, range.low - 1});
    next = std::max(next, range.high + 1);
  }
  if (next <= kLast) result.push_back({next, kLast});
  return result;
}

/// Adds the other case of every ASCII letter in the ranges.
void add_cases(std::vector<Chars>& ranges) {
  const size_t count = ranges.size();
  for (size_t i = 0; i < count; ++i)
    for (auto [first, shift] : {std::pair{'a', -32}, std::pair{'A', 32}}) {
      const auto low = std::max<uint32_t>(ranges[i].low, static_cast<uint32_t>(first)),
                 high = std::min<uint32_t>(ranges[i].high, static_cast<uint32_t>(first) + 25);
      if (low <= high)
        ranges.push_back({static_cast<uint32_t>(static_cast<int>(low) + shift),
                          static_cast<uint32_t>(static_cast<int>(high) + shift)});
    }
}

struct NamedSet {
  std::string_view name;
  std::vector<Chars> ranges;
};

const std::vector<Chars>* named_set(std::string_view name) {
  static const std::vector<NamedSet> kSets = {
      {"d", {{'0', '9'}}},
      {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  for (const NamedSet& set : kSets)
    if (set.name == name) return &set.ranges;
  return nullptr;
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<Step>& steps) : whole_(text), text_(text), steps_(steps) {}

  /// Compiles the pattern as group 0, the whole match. Returns the number of other groups.
  int run() {
    save(0);
    alternatives();
    if (!text_.empty()) fail("')' has no '('");
    save(1);
    add({Op::match});
    return groups_;
  }

 private:
  struct Flags {
    bool fold = false, dot_all = false, lines = false, lazy = false;
  };

  [[noreturn]] void fail(const std::string& reason) const {
    cairn::fail(ErrorKind::invalid_model, "", "pattern '{}' cannot be read: {}", printable(whole_), reason);
  }

  uint32_t here() const { return static_cast<uint32_t>(steps_.size()); }
  uint32_t add(Step step) {
    if (steps_.size() >= kMostSteps) fail("it is too large");
    steps_.push_back(std::move(step));
    return here() - 1;
  }
  void save(int place) { add({.op = Op::save, .to = static_cast<uint32_t>(place)}); }
  void add_set(std::vector<Chars> ranges) {
    if (flags_.fold) add_cases(ranges);
    add({.op = Op::set, .ranges = std::move(ranges)});
  }
  void add_check(Check check) { add({.op = Op::check, .check = check}); }

  bool eat(std::string_view start) {
    if (!text_.starts_with(start)) return false;
    text_.remove_prefix(start.size());
    return true;
  }
  uint32_t next() {
    if (text_.empty()) fail("it ends too early");
    auto [value, size] = character(text_);
    text_.remove_prefix(size);
    return value;
  }

  /// Moves the steps from `first` on by one and puts a split before them.
  void insert_split(uint32_t first) {
    add({});
    std::rotate(steps_.begin() + first, steps_.end() - 1, steps_.end());
    for (size_t i = first + 1; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      if (step.op != Op::split && step.op != Op::jump) continue;
      if (step.to >= first) ++step.to;
      if (step.op == Op::split && step.other >= first) ++step.other;
    }
    steps_[first].op = Op::split;
  }

  void alternatives() {
    if (++depth_ > kDeepest) fail("its groups are nested too deep");
    const Flags before = flags_;
    uint32_t first = here();
    std::vector<uint32_t> ends;
    sequence();
    while (eat("|")) {
      insert_split(first);
      ends.push_back(add({.op = Op::jump}));
      steps_[first].to = first + 1;
      steps_[first].other = here();
      first = here();
      sequence();
    }
    for (uint32_t end : ends) steps_[end].to = here();
    flags_ = before;
    --depth_;
  }

  void sequence() {
    while (!text_.empty() && text_[0] != '|' && text_[0] != ')') {
      const uint32_t first = here();
      atom();
      repeat(first);
    }
  }

  void atom() {
    if (eat("(")) return group();
    if (eat("[")) return bracket();
    if (eat(".")) return flags_.dot_all ? add_set({{0, kLast}}) : add_set({{0, '\n' - 1}, {'\n' + 1, kLast}});
    if (eat("^")) return add_check(flags_.lines ? Check::line_begin : Check::text_begin);
    if (eat("$")) return add_check(flags_.lines ? Check::line_end : Check::text_end);
    if (eat("\\")) return escape();
    if (text_[0] == '*' || text_[0] == '+' || text_[0] == '?') fail("nothing stands before a repetition");
    const uint32_t value = next();
    add_set({{value, value}});
  }

  void group() {
    bool captures = true;
    if (eat("?P<") ||
        (text_.starts_with("?<") && !text_.starts_with("?<=") && !text_.starts_with("?<!") && eat("?<"))) {
      const size_t end = text_.find('>');
      if (end == 0 || end == std::string_view::npos) fail("a group has no name");
      text_.remove_prefix(end + 1);
    } else if (eat("?")) {
      const Flags before = flags_;
      if (read_flags()) return;  // they apply to the rest of the enclosing group
      captures = false;
      alternatives();
      flags_ = before;
    }
    if (captures) {
      const int group = ++groups_;
      save(2 * group);
      alternatives();
      save(2 * group + 1);
    }
    if (!eat(")")) fail("'(' has no ')'");
  }

  /// Reads the flags behind "(?". Returns whether it was "(?flags)"; else a group follows.
  bool read_flags() {
    for (bool on = true;;) {
      if (eat(")")) return true;
      if (eat(":")) return false;
      const uint32_t flag = next();
      if (flag == '-')
        on = false;
      else if (flag == 'i')
        flags_.fold = on;
      else if (flag == 's')
        flags_.dot_all = on;
      else if (flag == 'm')
        flags_.lines = on;
      else if (flag == 'U')
        flags_.lazy = on;
      else
        fail("'(?' is followed by what RE2 does not have");
    }
  }

  std::optional<uint32_t> number() {
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits)
      value = std::min<uint32_t>(value * 10 + static_cast<uint32_t>(text_[digits] - '0'), 100000);
    text_.remove_prefix(digits);
    return digits ? std::optional(value) : std::nullopt;
  }

  void repeat(uint32_t first) {
    bool repeated = false;
    for (;;) {
      const std::string_view before = text_;
      uint32_t least = 0, most = 1;
      bool bounded = true;
      if (eat("*")) {
        bounded = false;
      } else if (eat("+")) {
        least = 1, bounded = false;
      } else if (eat("{")) {
        const auto low = number();
        const bool comma = eat(",");
        const auto high = comma ? number() : low;
        if (!low || !eat("}")) return literal_brace(before);
        least = *low, most = high.value_or(least), bounded = high.has_value();
        if (least > kMostRepeats || most > kMostRepeats || most < least) fail("a repetition has wrong bounds");
      } else if (!eat("?")) {
        return;
      }
      if (repeated) fail("a repetition is repeated");
      repeated = true;
      copies(first, least, most, bounded, eat("?") != flags_.lazy);
    }
  }

  /// Takes a "{" that begins no repetition as a character.
  void literal_brace(std::string_view before) {
    text_ = before;
    next();
    const uint32_t first = here();
    add_set({{'{', '{'}});
    repeat(first);
  }

  void copies(uint32_t first, uint32_t least, uint32_t most, bool bounded, bool lazy) {
    const std::vector<Step> body(steps_.begin() + first, steps_.end());
    steps_.resize(first);
    auto append = [&] {
      const uint32_t shift = here() - first;
      for (Step step : body) {
        if (step.op == Op::split || step.op == Op::jump) step.to += shift, step.other += shift;
        add(std::move(step));
      }
    };
    auto choose = [&](uint32_t split, uint32_t on, uint32_t out) {
      steps_[split].to = lazy ? out : on;
      steps_[split].other = lazy ? on : out;
    };
    uint32_t last = first;
    for (uint32_t i = 0; i < least; ++i) last = here(), append();
    if (bounded) {
      std::vector<uint32_t> splits;
      for (uint32_t i = least; i < most; ++i) splits.push_back(add({.op = Op::split})), append();
      for (uint32_t split : splits) choose(split, split + 1, here());
    } else if (least > 0) {
      const uint32_t split = add({.op = Op::split});
      choose(split, last, here());
    } else {
      const uint32_t split = add({.op = Op::split});
      append();
      add({.op = Op::jump, .to = split});
      choose(split, split + 1, here());
    }
  }

  /// The ranges of \d and similar classes, in a bracket or not; nothing when the letter is not a class.
  std::optional<std::vector<Chars>> perl_class() {
    if (text_.empty()) fail("it ends with a backslash");
    const char letter = text_[0];
    if (letter == 'p' || letter == 'P') fail("Unicode classes are not supported");
    const char low = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    if (low != 'd' && low != 'w' && low != 's') return std::nullopt;
    text_.remove_prefix(1);
    std::vector<Chars> set = *named_set(std::string_view(&low, 1));
    return letter == low ? set : inverted(set);
  }

  uint32_t hexadecimal(size_t digits) {
    uint32_t value = 0;
    size_t read = 0;
    for (; read < digits && !text_.empty(); ++read) {
      const char c = text_[0];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<uint32_t>(digit);
      text_.remove_prefix(1);
    }
    if (read == 0 || value > kLast) fail("\\x has no number");
    return value;
  }

  /// Reads one escaped character behind a backslash.
  uint32_t escaped() {
    if (eat("x{")) {
      const uint32_t value = hexadecimal(6);
      if (!eat("}")) fail("\\x{ has no }");
      return value;
    }
    const uint32_t c = next();
    switch (c) {
      case 'a': return '\a';
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'v': return '\v';
      case 'x': return hexadecimal(2);
      case '0': return 0;
      default: break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (letter) fail(fmt::format("\\{} is not supported", static_cast<char>(c)));
    return c;
  }

  void escape() {
    if (auto set = perl_class()) return add_set(*set);
    if (eat("b")) return add_check(Check::word_edge);
    if (eat("B")) return add_check(Check::no_word_edge);
    if (eat("A")) return add_check(Check::text_begin);
    if (eat("z")) return add_check(Check::text_end);
    if (eat("Q")) {
      while (!text_.empty() && !eat("\\E")) {
        const uint32_t value = next();
        add_set({{value, value}});
      }
      return;
    }
    const uint32_t value = escaped();
    add_set({{value, value}});
  }

  void bracket() {
    const bool negative = eat("^");
    std::vector<Chars> set;
    for (bool first = true; first || !text_.starts_with(']'); first = false) {
      if (text_.empty()) fail("'[' has no ']'");
      if (eat("[:")) {
        const size_t end = text_.find(":]");
        const bool inverse = eat("^");
        const auto* named = end == std::string_view::npos ? nullptr : named_set(text_.substr(0, end - inverse));
        if (named == nullptr) fail("a class has no such name");
        text_.remove_prefix(end - inverse + 2);
        const std::vector<Chars> ranges = inverse ? inverted(*named) : *named;
        set.insert(set.end(), ranges.begin(), ranges.end());
        continue;
      }
      const bool backslash = eat("\\");
      if (backslash)
        if (auto ranges = perl_class()) {
          set.insert(set.end(), ranges->begin(), ranges->end());
          continue;
        }
      Chars range{backslash ? escaped() : next(), 0};
      range.high = range.low;
      if (text_.size() > 1 && text_[0] == '-' && text_[1] != ']') {
        eat("-");
        range.high = eat("\\") ? escaped() : next();
        if (range.high < range.low) fail("a range ends before it begins");
      }
      set.push_back(range);
    }
    eat("]");
    if (flags_.fold) add_cases(set);
    add({.op = Op::set, .ranges = negative ? inverted(set) : set});
  }

  std::string_view whole_, text_;
  std::vector<Step>& steps_;
  Flags flags_;
  int groups_ = 0;
  size_t depth_ = 0;
};

bool is_word(std::string_view text, size_t at) {
  return at < text.size() && (std::isalnum(static_cast<uint8_t>(text[at])) != 0 || text[at] == '_');
}

bool holds(Check check, std::string_view text, size_t at) {
  const bool edge = is_word(text, at - 1) != is_word(text, at);  // at - 1 of 0 is beyond the end
  switch (check) {
    case Check::text_begin: return at == 0;
    case Check::text_end: return at == text.size();
    case Check::line_begin: return at == 0 || text[at - 1] == '\n';
    case Check::line_end: return at == text.size() || text[at] == '\n';
    case Check::word_edge: return edge;
    default: return !edge;
  }
}

}  // namespace

/// Steps that wait for the next character, in order of preference.
struct Pattern::Threads {
  std::vector<std::pair<uint32_t, Places>> list;
  std::vector<bool> seen;
};

Pattern::Pattern(std::string_view text) { groups_ = Parser(text, steps_).run(); }

void Pattern::follow(Threads& threads, uint32_t step, std::string_view text, size_t at, Places places) const {
  std::vector<std::pair<uint32_t, Places>> pending;
  pending.emplace_back(step, std::move(places));
  while (!pending.empty()) {
    auto [number, own] = std::move(pending.back());
    pending.pop_back();
    if (threads.seen[number]) continue;
    threads.seen[number] = true;
    const Step& now = steps_[number];
    switch (now.op) {
      case Op::jump: pending.emplace_back(now.to, std::move(own)); break;
      case Op::split:
        pending.emplace_back(now.other, own);
        pending.emplace_back(now.to, std::move(own));
        break;
      case Op::save:
        own[now.to] = at;
        pending.emplace_back(number + 1, std::move(own));
        break;
      case Op::check:
        if (holds(now.check, text, at)) pending.emplace_back(number + 1, std::move(own));
        break;
      default: threads.list.emplace_back(number, std::move(own));
    }
  }
}

std::optional<Pattern::Places> Pattern::search(std::string_view text, size_t from, bool whole) const {
  std::optional<Places> found;
  Threads now, next;
  now.seen.assign(steps_.size(), false);
  for (size_t at = from;;) {
    if (!found && (!whole || at == from)) follow(now, 0, text, at, Places(2 * static_cast<size_t>(groups_ + 1), kNone));
    if (now.list.empty() && (found || whole)) break;
    const auto [value, size] = at < text.size() ? character(text.substr(at)) : std::pair<uint32_t, size_t>{0, 1};
    stop_point_after(32 + std::ssize(steps_) / 64 + 64 * std::ssize(now.list));
    next.list.clear();
    next.seen.assign(steps_.size(), false);
    for (auto& [number, places] : now.list) {
      const Step& step = steps_[number];
      if (step.op == Op::match) {
        if (whole && at != text.size()) continue;
        found = std::move(places);
        break;  // the remaining threads have lower preference
      }
      const bool fits = at < text.size() &&
                        std::any_of(step.ranges.begin(), step.ranges.end(),
                                    [v = value](const Chars& range) { return v >= range.low && v <= range.high; });
      if (fits) follow(next, number + 1, text, at + size, std::move(places));
    }
    std::swap(now, next);
    if (at >= text.size()) break;
    at += size;
  }
  return found;
}

bool Pattern::matches_whole(std::string_view text) const { return search(text, 0, true).has_value(); }

std::string Pattern::fault_of(std::string_view rewrite) const {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    if (++i == rewrite.size()) return "it ends with a backslash";
    if (rewrite[i] == '\\') continue;
    if (rewrite[i] < '0' || rewrite[i] > '9') return "a backslash must be followed by a digit or a backslash";
    if (rewrite[i] - '0' > groups_) return fmt::format("it names group {}, there are {}", rewrite[i], groups_);
  }
  return "";
}

std::string Pattern::replaced(std::string_view text, std::string_view rewrite, bool all) const {
  std::string result;
  size_t at = 0, last_end = kNone;
  while (at <= text.size()) {
    const auto match = search(text, at, false);
    if (!match) break;
    const size_t begin = (*match)[0], end = (*match)[1];
    result += text.substr(at, begin - at);
    if (begin == end && begin == last_end) {  // an empty match right behind another does not count
      const size_t size = begin < text.size() ? character(text.substr(begin)).second : 1;
      result += text.substr(std::min(begin, text.size()), size);
      at = begin + size;
      continue;
    }
    for (size_t i = 0; i < rewrite.size(); ++i) {
      if (rewrite[i] != '\\') {
        result += rewrite[i];
      } else if (rewrite[++i] == '\\') {
        result += '\\';
      } else {
        const auto group = static_cast<size_t>(rewrite[i] - '0');
        if ((*match)[2 * group] != kNone && (*match)[2 * group + 1] != kNone)
          result += text.substr((*match)[2 * group], (*match)[2 * group + 1] - (*match)[2 * group]);
      }
    }
    at = last_end = end;
    if (!all) break;
  }
  if (at < text.size()) result += text.substr(at);
  return result;
}

}  // namespace cairn
