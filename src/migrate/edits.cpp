// Merging edits without overlap, and line diffs.
#include "migrate/edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace cairn::migrate {

std::string_view tier_name(Tier tier) {
  switch (tier) {
    case Tier::safe: return "safe";
    case Tier::review: return "review";
    case Tier::advice: return "advice";
  }
  return "advice";
}

namespace {

// The edits taken so far: whether a new one would overlap any of them.
class Taken {
 public:
  bool overlaps(const Edit& edit) const {
    auto next = replaced_.lower_bound(edit.begin);
    if (next != replaced_.begin() && std::prev(next)->second > edit.begin) return true;
    if (edit.begin == edit.end) return false;
    auto place = inserted_.upper_bound(edit.begin);
    return (next != replaced_.end() && next->first < edit.end) || (place != inserted_.end() && *place < edit.end);
  }
  void take(const Edit& edit) {
    if (edit.begin == edit.end)
      inserted_.insert(edit.begin);
    else
      replaced_[edit.begin] = edit.end;
  }

 private:
  std::map<uint32_t, uint32_t> replaced_;  // begin to end, apart from each other
  std::set<uint32_t> inserted_;
};

bool earlier(const Edit& a, const Edit& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  // At one place: what closes or follows the text before it, then what opens the text after it, then replacements.
  bool a_inserts = a.begin == a.end, b_inserts = b.begin == b.end;
  if (a_inserts != b_inserts) return a_inserts;
  return a.order < b.order;
}

}  // namespace

std::vector<Edit> merge(std::vector<Change>& changes, std::vector<Change>& dropped) {
  std::vector<Edit> merged;
  std::vector<Change> kept;
  Taken taken;
  for (Change& change : changes) {
    if (std::any_of(change.edits.begin(), change.edits.end(), [&](const Edit& edit) { return taken.overlaps(edit); })) {
      dropped.push_back(std::move(change));
      continue;
    }
    for (const Edit& edit : change.edits) taken.take(edit), merged.push_back(edit);
    kept.push_back(std::move(change));
  }
  std::stable_sort(merged.begin(), merged.end(), earlier);
  for (size_t i = 1; i < merged.size(); ++i) {
    Edit &edit = merged[i], &before = merged[i - 1];
    if (!edit.argument || !before.argument || edit.begin != edit.end || edit.begin != before.end) continue;
    const bool further = edit.text.starts_with(", "), emptied = before.begin != before.end;
    if (emptied && further) edit.text.erase(0, 2);
    if (!emptied && !further) edit.text.insert(0, ", ");
  }
  changes = std::move(kept);
  return merged;
}

std::string apply_edits(std::string_view text, const std::vector<Edit>& edits) {
  std::string result;
  result.reserve(text.size() + 64 * edits.size());
  uint32_t at = 0;
  for (const Edit& edit : edits) {
    result += text.substr(at, edit.begin - at);
    result += edit.text;
    at = edit.end;
  }
  result += text.substr(at);
  return result;
}

namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// Longest common subsequence of two short runs of lines; long runs count as replaced as a whole.
void diff_middle(const std::vector<std::string_view>& a, size_t a0, size_t a1, const std::vector<std::string_view>& b,
                 size_t b0, size_t b1, std::vector<DiffLine>& out) {
  size_t n = a1 - a0, m = b1 - b0;
  auto removed = [&](size_t i) { out.push_back({'-', static_cast<uint32_t>(i + 1), 0, a[i]}); };
  auto added = [&](size_t j) { out.push_back({'+', 0, static_cast<uint32_t>(j + 1), b[j]}); };
  if (n * m > 250'000) {
    for (size_t i = a0; i < a1; ++i) removed(i);
    for (size_t j = b0; j < b1; ++j) added(j);
    return;
  }
  std::vector<uint32_t> table((n + 1) * (m + 1), 0);
  auto at = [&](size_t i, size_t j) -> uint32_t& { return table[i * (m + 1) + j]; };
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      at(i, j) = a[a0 + i] == b[b0 + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[a0 + i] == b[b0 + j]) {
      out.push_back({' ', static_cast<uint32_t>(a0 + i + 1), static_cast<uint32_t>(b0 + j + 1), a[a0 + i]});
      ++i, ++j;
    } else if (i < n && (j == m || at(i + 1, j) >= at(i, j + 1))) {
      removed(a0 + i++);
    } else {
      added(b0 + j++);
    }
  }
}

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after) {
  std::vector<std::string_view> a = split_lines(before), b = split_lines(after);
  std::vector<DiffLine> out;
  // Edits are local: walk equal lines greedily, and resynchronise on the next three equal lines after a difference.
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', static_cast<uint32_t>(i + 1), static_cast<uint32_t>(j + 1), a[i]});
      ++i, ++j;
      continue;
    }
    size_t best_i = a.size(), best_j = b.size();
    for (size_t reach = 1; reach < 200 && best_i == a.size() && best_j == b.size(); ++reach) {
      for (size_t di = 0; di <= reach; ++di) {
        size_t x = i + di, y = j + (reach - di);
        bool same = x < a.size() && y < b.size();
        for (size_t k = 0; k < 3 && same; ++k) {
          bool both_end = x + k >= a.size() && y + k >= b.size();
          same = both_end || (x + k < a.size() && y + k < b.size() && a[x + k] == b[y + k]);
        }
        if (same) {
          best_i = x, best_j = y;
          break;
        }
      }
    }
    diff_middle(a, i, best_i, b, j, best_j, out);
    i = best_i, j = best_j;
  }
  return out;
}

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, const std::vector<Edit>& edits) {
  std::vector<std::string_view> a = split_lines(before), b = split_lines(after);
  std::vector<DiffLine> out;
  out.reserve(a.size() + edits.size());
  auto same = [&](size_t i, size_t j) {
    out.push_back({' ', static_cast<uint32_t>(i + 1), static_cast<uint32_t>(j + 1), a[i]});
  };
  size_t i = 0, j = 0;              // lines done
  uint32_t old_at = 0, new_at = 0;  // where they end
  int64_t shift = 0;
  for (size_t edit = 0; edit < edits.size();) {
    while (i < a.size() && old_at + a[i].size() <= edits[edit].begin && !(i + 1 == a.size() && !a[i].ends_with('\n')))
      new_at += a[i].size(), old_at += a[i].size(), same(i++, j++);
    // All edits that touch the lines from here on, as long as they hang together.
    size_t last = i;
    uint32_t end = old_at;
    for (; edit < edits.size() && (end == old_at || edits[edit].begin < end || last == a.size()); ++edit) {
      while (last < a.size() && (end <= edits[edit].end || end == old_at)) end += a[last++].size();
      shift += static_cast<int64_t>(edits[edit].text.size()) - (edits[edit].end - edits[edit].begin);
    }
    const uint32_t new_end = static_cast<uint32_t>(end + shift);
    size_t new_last = j;
    for (uint32_t at = new_at; at < new_end && new_last < b.size();) at += b[new_last++].size();
    while (i < last && j < new_last && a[i] == b[j]) same(i++, j++);
    size_t equal = 0;
    while (last - equal > i && new_last - equal > j && a[last - equal - 1] == b[new_last - equal - 1]) ++equal;
    diff_middle(a, i, last - equal, b, j, new_last - equal, out);
    for (i = last - equal, j = new_last - equal; i < last;) same(i++, j++);
    old_at = end;
    new_at = new_end;
  }
  while (i < a.size()) same(i++, j++);
  return out;
}

namespace {

std::string unified(const std::vector<DiffLine>& lines, const std::string& path, int context) {
  std::string text = fmt::format("--- a/{}\n+++ b/{}\n", path, path);
  size_t old_line = 1, new_line = 1;  // numbers of the line at `at`
  size_t at = 0;
  while (at < lines.size()) {
    if (lines[at].kind == ' ') {
      ++at, ++old_line, ++new_line;
      continue;
    }
    size_t lead = std::min<size_t>(at, context);
    size_t begin = at - lead;
    // Equal lines before a change are equal all the way to the previous hunk.
    size_t end = at, quiet = 0;
    while (end < lines.size() && quiet <= 2 * static_cast<size_t>(context))
      quiet = lines[end++].kind == ' ' ? quiet + 1 : 0;
    if (quiet > static_cast<size_t>(context)) end -= quiet - context;
    size_t old_count = 0, new_count = 0;
    std::string body;
    for (size_t i = begin; i < end; ++i) {
      old_count += lines[i].kind != '+';
      new_count += lines[i].kind != '-';
      body += lines[i].kind;
      body += lines[i].text;
      if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
    }
    text += fmt::format("@@ -{},{} +{},{} @@\n", old_count ? old_line - lead : old_line - lead - 1, old_count,
                        new_count ? new_line - lead : new_line - lead - 1, new_count);
    text += body;
    for (size_t i = at; i < end; ++i) {
      old_line += lines[i].kind != '+';
      new_line += lines[i].kind != '-';
    }
    at = end;
  }
  return text;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const std::string& path, int context) {
  return before == after ? "" : unified(diff_lines(before, after), path, context);
}

std::string unified_diff(std::string_view before, std::string_view after, const std::vector<Edit>& edits,
                         const std::string& path) {
  return before == after ? "" : unified(diff_lines(before, after, edits), path, 3);
}

}  // namespace cairn::migrate
