// Merging edits without overlap, and line diffs.
#include "migrate/edits.h"

#include <fmt/format.h>

#include <algorithm>

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

bool overlap(const Edit& a, const Edit& b) {
  if (a.begin == a.end && b.begin == b.end) return false;
  if (a.begin == a.end) return a.begin > b.begin && a.begin < b.end;
  if (b.begin == b.end) return b.begin > a.begin && b.begin < a.end;
  return a.begin < b.end && b.begin < a.end;
}

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
  for (Change& change : changes) {
    bool clash = false;
    for (const Edit& edit : change.edits) {
      // `merged` is sorted by begin, and its edits do not overlap, so only neighbours can clash.
      auto next = std::lower_bound(merged.begin(), merged.end(), edit,
                                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
      for (auto at = next; at != merged.end() && at->begin <= edit.end; ++at) clash = clash || overlap(*at, edit);
      for (auto at = next; at != merged.begin() && !clash;) {
        --at;
        clash = overlap(*at, edit);
        if (at->begin != at->end) break;
      }
    }
    if (clash) {
      dropped.push_back(std::move(change));
      continue;
    }
    for (const Edit& edit : change.edits)
      merged.insert(std::upper_bound(merged.begin(), merged.end(), edit, earlier), edit);
    kept.push_back(std::move(change));
  }
  for (size_t i = 1; i < merged.size(); ++i)
    if (merged[i].argument && merged[i - 1].argument && merged[i].begin == merged[i - 1].begin)
      merged[i].text.insert(0, ", ");
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
  if (n * m > 4'000'000) {
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

std::string unified_diff(std::string_view before, std::string_view after, const std::string& path, int context) {
  if (before == after) return "";
  std::vector<DiffLine> lines = diff_lines(before, after);
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

}  // namespace cairn::migrate
