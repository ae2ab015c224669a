// Statements that share their line with backward(): rows of their own, which become lines.
#include <algorithm>

#include "migrate/torch_file.h"

namespace cairn::migrate {

Rows::Rows(const Module& module) {
  const Syntax& syntax = module.syntax();
  const LineIndex& lines = module.lines();
  std::map<uint32_t, std::vector<NodeId>> sharing;  // line -> its statements, where each is a whole one of one block
  for (NodeId block = 0; block < syntax.size(); ++block) {
    if (syntax.kind(block) != Kind::block && syntax.kind(block) != Kind::module) continue;
    for (NodeId statement : syntax.children(block))
      sharing[lines.at(syntax[statement].begin).line].push_back(statement);
  }
  for (uint32_t line = 1; line <= lines.count(); ++line) {
    starts_.push_back({lines.start(line), kNoNode});
    auto found = sharing.find(line);
    if (found == sharing.end() || found->second.size() < 2) continue;
    const std::vector<NodeId>& all = found->second;
    std::string_view before = module.text();
    before = before.substr(lines.start(line), syntax[all[0]].begin - lines.start(line));
    const bool whole =
        before.find_first_not_of(" \t") == before.npos &&
        std::all_of(all.begin(), all.end(), [&](NodeId one) { return syntax.parent(one) == syntax.parent(all[0]); });
    const bool trains = lines.line(module.text(), line).find(".backward(") != std::string_view::npos;
    for (size_t i = 1; i < all.size() && whole && trains; ++i) starts_.push_back({syntax[all[i]].begin, all[i]});
  }
}

uint32_t Rows::at(uint32_t offset) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), offset,
                                [](uint32_t at, const Start& start) { return at < start.offset; });
  return static_cast<uint32_t>(after - starts_.begin());
}

uint32_t Rows::head(uint32_t row) const {
  while (inner(row)) --row;
  return row;
}

// Each row that stays goes to a line of its own.
void TorchFile::split_rows() {
  for (uint32_t row = 1; row <= rows.count(); ++row) {
    if (!rows.inner(row)) continue;
    const uint32_t begin = rows.start(row), head = rows.head(row);
    uint32_t previous = begin;  // the end of the statement before
    for (NodeId one : syntax.children(syntax.parent(rows.statement(row))))
      if (one < rows.statement(row)) previous = syntax[one].end;
    const bool adds = std::any_of(lines_.begin(), lines_.end(), [&](const Lines& one) { return one.offset == begin; });
    bool first = true;  // nothing stays of the line before this row
    for (uint32_t before = head; before < row; ++before) first = first && gone_.contains(before);
    const bool stays = !gone_.contains(row);
    // What stands before the first row that stays goes with it: the line begins anew.
    const uint32_t from = first && (stays || adds) ? rows.start(head) : previous;
    if (from != previous) discard({from, begin}, false, false);
    Change change{std::string(kTorchTraining.id), Tier::safe, {begin, begin}, "each statement has its line", {}, {}};
    change.edits.push_back({from, begin, !first && (stays || adds) ? file.newline() : "", 0});
    std::string indent(line(head).substr(0, indent_of(head)));
    indent.resize(std::max(0, static_cast<int>(indent.size()) + moved(row)), ' ');
    if (stays) change.edits.push_back({begin, begin, indent, int64_t{1} << 45});
    file.changes.push_back(std::move(change));
  }
}

}  // namespace cairn::migrate
