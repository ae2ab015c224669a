// Regular expressions with RE2's syntax and meaning (leftmost, first alternative first), on UTF-8, in time linear in the text.
// Unicode classes (\pL) are refused; ignoring case is for ASCII letters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class Pattern {
 public:
  /// Throws Error invalid_model, with the pattern in the message, when its syntax is wrong.
  explicit Pattern(std::string_view text);

  bool matches_whole(std::string_view text) const;
  /// The first match, or all that do not overlap, replaced; \1 in the rewrite is what group 1 matched, \\ a backslash.
  std::string replaced(std::string_view text, std::string_view rewrite, bool all) const;
  /// The fault of a rewrite; empty when it is valid.
  std::string fault_of(std::string_view rewrite) const;
  int groups() const { return groups_; }

  struct Range {
    uint32_t low, high;
  };
  enum class Op : uint8_t { set, split, jump, save, check, match };
  enum class Check : uint8_t { text_begin, text_end, line_begin, line_end, word_edge, no_word_edge };
  struct Step {
    Op op = Op::match;
    Check check = Check::text_begin;
    uint32_t to = 0, other = 0;  // split: tries `to` first, then `other`; save: which of Places
    std::vector<Range> ranges = {};
  };

 private:
  using Places = std::vector<size_t>;  // begin and end of each group; kNone: the group did not match
  static constexpr size_t kNone = SIZE_MAX;

  struct Threads;
  std::optional<Places> search(std::string_view text, size_t from, bool whole) const;
  void follow(Threads& threads, uint32_t step, std::string_view text, size_t at, Places places) const;

  std::vector<Step> steps_;
  int groups_ = 0;
};

}  // namespace cairn
