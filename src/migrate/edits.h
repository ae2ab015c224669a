// Edits of a file's bytes, each with the rule it comes from, and how many of them become one new text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "migrate/syntax.h"

namespace cairn::migrate {

/// How much trust an edit needs. Safe: cannot change what the script computes. Review: applied, and worth a look, because
/// numbers or behaviour may differ. Advice: nothing is edited, a person decides.
enum class Tier : uint8_t { safe, review, advice };
std::string_view tier_name(Tier tier);

struct Edit {
  uint32_t begin;
  uint32_t end;
  std::string text;
  int64_t order = 0;      // among insertions at one place: ascending
  bool argument = false;  // adds the first or a further argument, or removes all: the comma depends on what is there
};

/// One rewritten spot: all of its edits are made or none.
struct Change {
  std::string rule;
  Tier tier;
  Span at;              // what it is about, in the old text
  std::string message;  // what and why
  std::vector<Edit> edits;
  std::vector<std::string> imports;  // names of npu_bridge.npu_init that the new text uses
};

/// The edits of all `changes`, sorted and free of overlap; a change that overlaps an earlier one is taken out of `changes`
/// and its index goes to `dropped`.
std::vector<Edit> merge(std::vector<Change>& changes, std::vector<Change>& dropped);

/// The text with the edits made; they are sorted and do not overlap.
std::string apply_edits(std::string_view text, const std::vector<Edit>& edits);

/// A unified diff of two texts of one file, with `context` lines around each hunk; "" when they are equal.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& path, int context = 3);

/// Old and new lines side by side: kind ' ' same, '-' only old, '+' only new.
struct DiffLine {
  char kind;
  uint32_t old_line, new_line;  // 0 when absent
  std::string_view text;
};
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

/// The same where the edits between the texts are known: linear in their size.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, const std::vector<Edit>& edits);
std::string unified_diff(std::string_view before, std::string_view after, const std::vector<Edit>& edits,
                         const std::string& path);

}  // namespace cairn::migrate
