// Edits of a PyTorch script: text with edits in it, lines that go or move, imports.
#include "migrate/torch_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::migrate {
namespace {

constexpr std::string_view kMark = "  # cairn: by hand";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string quoted(const std::string& text) {
  std::string made = "'";
  for (char c : text) made += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return made + "'";
}

// Other modules before MindSpore.
std::vector<std::string> sorted_imports(const std::set<std::string>& lines) {
  std::vector<std::string> rows(lines.rbegin(), lines.rend());
  std::stable_sort(rows.begin(), rows.end(), [](const std::string& a, const std::string& b) {
    return (a.find("mindspore") == a.npos) > (b.find("mindspore") == b.npos);
  });
  return rows;
}

// The first statement of a file that is no text and no import of the future.
NodeId first_statement(const Syntax& syntax) {
  for (NodeId statement : syntax.children(0))
    if (syntax.kind(statement) != Kind::future_import_statement && syntax.kind(syntax.first(statement)) != Kind::string)
      return statement;
  return kNoNode;
}

// Whether a file imports a module by this name outside of functions.
bool imports_at_top(const Module& module, std::string_view name, std::string_view line) {
  return std::any_of(module.imports().begin(), module.imports().end(), [&](const Import& import) {
    return import.alias == name && line.starts_with(import.module) && import.member.empty() &&
           module.syntax().parent(import.statement) == 0;
  });
}

bool before(const Edit& a, const Edit& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  if ((a.begin == a.end) != (b.begin == b.end)) return a.begin == a.end;
  return a.order < b.order;
}

}  // namespace

std::string TorchFile::rendered(Span span) const {
  std::vector<Edit> inside;
  for (const Change& change : file.changes)
    for (const Edit& edit : change.edits)
      if (edit.begin >= span.begin && edit.end <= span.end) inside.push_back(edit);
  std::stable_sort(inside.begin(), inside.end(), before);
  for (Edit& edit : inside) edit.begin -= span.begin, edit.end -= span.begin;
  return apply_edits(std::string_view(text).substr(span.begin, span.size()), inside);
}

void TorchFile::discard(Span span, bool with_begin, bool with_end) {
  for (Change& change : file.changes)
    std::erase_if(change.edits, [&](const Edit& edit) {
      if (edit.begin < span.begin || edit.end > span.end) return false;
      bool inserts = edit.begin == edit.end;
      return !(inserts && ((edit.begin == span.begin && !with_begin) || (edit.end == span.end && !with_end)));
    });
}

void TorchFile::replace(const Rule& rule, NodeId node, std::string by, std::string message) {
  discard(syntax.span(node), true, true);
  Rewrite(file, rule, node, std::move(message)).replace(node, needing(by)).commit();
}

// Whether the script binds the name of one of our definitions at its top, but not by an import.
static bool is_taken(const Module& module, const std::string& name) {
  return module.scopes()[0].names.contains(name) && !torch_helper(name).empty() &&
         std::none_of(module.imports().begin(), module.imports().end(),
                      [&](const Import& import) { return import.alias == name; });
}

std::string TorchFile::own_names(std::string_view text) const {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    const bool free = made.empty() || (made.back() != '.' && made.back() != '$');
    made += (free && is_taken(file.module, word) ? "torch_" : "") + word;
    if (end == at) made += text[end++];
    at = end;
  }
  return made;
}

// The text of one of our definitions by the name that it has in this file; "" of other names.
std::string TorchFile::definition(const std::string& name) const {
  constexpr std::string_view prefix = "torch_";
  if (name.starts_with(prefix) && is_taken(file.module, name.substr(prefix.size())))
    return own_names(torch_helper(name.substr(prefix.size())));
  return is_taken(file.module, name) ? "" : own_names(torch_helper(name));
}

const std::string& TorchFile::needing(const std::string& new_text) {
  for (size_t at = 0; at < new_text.size();) {
    if (!is_word(new_text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < new_text.size() && is_word(new_text[end])) ++end;
    std::string word = new_text.substr(at, end - at);
    bool member = at > 0 && new_text[at - 1] == '.';
    if (!member && (!mindspore_module(word).empty() || !definition(word).empty())) needs_.insert(word);
    at = end;
  }
  return new_text;
}

void TorchFile::drop(const Rule& rule, NodeId statement, std::string message) {
  drops_.try_emplace(statement, &rule, std::move(message));
}

void TorchFile::insert_lines(const Rule& rule, uint32_t offset, uint32_t like, int further,
                             std::vector<std::string> lines, std::string message, int order) {
  for (const std::string& line : lines) needing(line);
  uint32_t start = rows.start(line_of(offset));
  lines_.push_back({&rule, start, line_of(like), further, order, std::move(lines), std::move(message)});
}

void TorchFile::append_lines(const Rule& rule, uint32_t offset, uint32_t like, std::vector<std::string> lines,
                             std::string message) {
  for (const std::string& line : lines) needing(line);
  const uint32_t row = line_of(offset);
  uint32_t end = static_cast<uint32_t>(std::min(text.find('\n', offset), text.size() - 1) + 1);
  if (rows.inner(row + 1)) end = rows.start(row + 1);
  lines_.push_back({&rule, end, line_of(like), 0, -1, std::move(lines), std::move(message)});
}

void TorchFile::leave(NodeId node, const std::string& name, const std::string& reason) {
  note(node, name, "missing", reason);
  left_.emplace(name, reason);
  file.find(kTorchMissing, node, Severity::warning, name + " is left as it is", reason);
  if (!file.is_enabled(kTorchMissing) || file.suppressed(node, kTorchMissing.id)) return;
  uint32_t line = file.module.lines().at(syntax[node].end).line;
  std::string_view row = file.module.lines().line(text, line);
  while (!row.empty() && std::isspace(static_cast<unsigned char>(row.back()))) row.remove_suffix(1);
  uint32_t end = file.module.lines().start(line) + static_cast<uint32_t>(row.size());
  if (row.ends_with('\\') || row.find('#') != row.npos || in_string(end) || !marked_.insert(line).second) return;
  Rewrite rewrite(file, kTorchMissing, node, name + " has to be rewritten by hand");
  rewrite.insert(end, fmt::format("{}: {}", kMark, name), int64_t{1} << 50).commit();
}

void TorchFile::note(NodeId node, std::string_view name, std::string_view status, std::string advice) {
  Position at = file.module.lines().at(syntax[node].begin);
  std::string_view use = syntax.kind(node) == Kind::call ? "call" : "value";
  file.result.references.push_back({at.line, at.column, std::string(name), use, status, "", std::move(advice)});
}

int TorchFile::unit() const {
  for (NodeId node = 0; node < syntax.size(); ++node)
    if (syntax.kind(node) == Kind::block) {
      NodeId owner = syntax.parent(node);
      int columns = indent_of(line_of(syntax[node].begin)) - indent_of(line_of(syntax[owner].begin));
      if (columns > 0) return columns;
    }
  return 4;
}

std::string_view TorchFile::line(uint32_t row) const {
  return file.module.lines().line(text, file.module.lines().at(rows.start(row)).line);
}

int TorchFile::indent_of(uint32_t line_number) const {
  std::string_view row = line(line_number);
  return static_cast<int>(std::min(row.find_first_not_of(" \t"), row.size()));
}

int TorchFile::moved(uint32_t line) const {
  int columns = 0;
  for (const Shift& shift : shifts_) columns += line >= shift.first && line <= shift.last ? shift.columns : 0;
  return columns;
}

bool TorchFile::in_string(uint32_t offset) const {
  for (NodeId node = 0; node < syntax.size(); ++node)
    if (syntax.kind(node) == Kind::string && syntax[node].begin < offset && offset < syntax[node].end) return true;
  return false;
}

void TorchFile::write_drops() {
  std::map<NodeId, std::vector<NodeId>> by_block;
  for (const auto& [statement, why] : drops_) by_block[syntax.parent(statement)].push_back(statement);
  for (const auto& [block, statements] : by_block) {
    const bool emptied = syntax.kind(block) == Kind::block && syntax.children(block).size() == statements.size();
    bool kept = std::any_of(lines_.begin(), lines_.end(), [&](const Lines& lines) {
      return lines.offset > syntax[block].begin && lines.offset <= syntax[block].end;
    });
    for (NodeId statement : statements) {
      const auto& [rule, message] = drops_.at(statement);
      Span span = syntax.span(statement);
      if (const uint32_t row = line_of(span.begin); rows.shared(row) && !(emptied && !kept)) {
        gone_.insert(row);
        discard(span, true, false);
        Rewrite(file, *rule, statement, message).replace(span, "").commit();
        continue;
      }
      uint32_t start = file.module.lines().start(file.module.lines().at(span.begin).line);
      uint32_t end = span.end;
      while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == ';')) ++end;
      bool alone = text.find_first_not_of(" \t", start) == span.begin;
      const bool pass = emptied && !kept && statement == statements[0];
      if (alone && !pass && (end == text.size() || text[end] == '\n' || text[end] == '\r')) {
        span.begin = start;
        while (end < text.size() && text[end] != '\n') ++end;
        span.end = std::min<uint32_t>(end + 1, static_cast<uint32_t>(text.size()));
      } else {
        span.end = end;
      }
      for (uint32_t line = line_of(span.begin); line <= line_of(syntax[statement].end) && span.begin == start; ++line)
        gone_.insert(line);
      discard(span, true, false);
      Rewrite(file, *rule, statement, message).replace(span, pass ? "pass" : "").commit();
    }
  }
  drops_.clear();
}

void TorchFile::write_lines() {
  const std::string newline = file.newline();
  static const Rule& rule = kTorchTraining;
  std::set<uint32_t> lines;
  for (const Shift& shift : shifts_)
    for (uint32_t line = shift.first; line <= shift.last; ++line) lines.insert(line);
  std::set<uint32_t> inside;  // lines that begin in a string
  for (NodeId node = 0; node < syntax.size() && !lines.empty(); ++node)
    if (syntax.kind(node) == Kind::string)
      for (uint32_t line = line_of(syntax[node].begin) + 1; line <= line_of(syntax[node].end); ++line)
        inside.insert(line);
  Change change{std::string(rule.id), Tier::safe, {0, 0}, "lines move with the code around them", {}, {}};
  for (uint32_t line : lines) {
    int columns = moved(line);
    std::string_view row = this->line(line);
    if (rows.inner(line)) continue;
    if (columns == 0 || gone_.contains(line) || inside.contains(line) || row.find_first_not_of(" \t\r\n") == row.npos)
      continue;
    uint32_t start = rows.start(line);
    if (change.edits.empty()) change.at = {start, start};
    if (columns > 0)
      change.edits.push_back({start, start, std::string(columns, row[0] == '\t' ? '\t' : ' '), int64_t{1} << 45});
    else
      change.edits.push_back({start, start + std::min(-columns, indent_of(line)), "", 0});
  }
  if (!change.edits.empty()) file.changes.push_back(std::move(change));
  for (const Lines& row : lines_) {
    std::string first(line(row.like));
    std::string indent(std::max(0, indent_of(row.like) + moved(row.like) + row.further),
                       first.starts_with('\t') ? '\t' : ' ');
    std::string added;
    for (const std::string& line : row.lines) added += (line.empty() ? "" : indent + line) + newline;
    if (row.offset == text.size() && !text.ends_with('\n')) added = newline + added;
    Change one{std::string(row.rule->id), row.rule->tier, {row.offset, row.offset}, row.message, {}, {}};
    one.edits.push_back({row.offset, row.offset, std::move(added), row.order});
    file.changes.push_back(std::move(one));
  }
}

bool TorchFile::still_used(const Import& import) const {
  if (needs_.contains(std::string(import.alias))) return false;  // the name is MindSpore's from now on
  std::vector<Span> replaced;
  for (const Change& change : file.changes)
    for (const Edit& edit : change.edits)
      if (edit.begin != edit.end) replaced.push_back({edit.begin, edit.end});
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) != Kind::identifier || syntax.text(node) != import.alias || settled_.contains(node)) continue;
    if (syntax[node].field == Field::attribute || syntax.ancestor(node, Kind::import_statement) != kNoNode ||
        syntax.ancestor(node, Kind::import_from_statement) != kNoNode)
      continue;
    if (syntax.kind(syntax.parent(node)) == Kind::keyword_argument && syntax[node].field == Field::name) continue;
    uint32_t scope = kNoScope;
    bool ours = false;
    for (uint32_t index : file.module.lookup(import.alias, node, scope)) {
      Bound how = file.module.bindings()[index].how;
      ours = ours || how == Bound::import || how == Bound::from_import;
    }
    if (!ours) continue;
    bool gone = std::any_of(replaced.begin(), replaced.end(), [&](Span span) {
      return span.begin <= syntax[node].begin && syntax[node].end <= span.end;
    });
    if (!gone) return true;
  }
  return false;
}

// An import of which something is left goes behind the definitions: without PyTorch its name tells at the line that uses it what
// has to be rewritten. Its entry joins those that go from the statement.
std::vector<std::string> TorchFile::guard_imports(std::map<NodeId, std::vector<NodeId>>& unused) {
  std::vector<std::string> imports, stands;
  const std::string indent(unit(), ' ');
  for (const Import& import : file.module.imports()) {
    std::vector<NodeId>& gone = unused[import.statement];
    const bool ours = import.module == "torch" || import.module == "torchvision" ||
                      import.module.starts_with("torch.") || import.module.starts_with("torchvision.");
    if (!ours || import.star || left_.empty() || needs_.empty() || syntax.parent(import.statement) != 0 ||
        std::find(gone.begin(), gone.end(), import.entry) != gone.end())
      continue;
    gone.push_back(import.entry);
    const std::string alias(import.alias);
    std::string name = import.module + (import.member.empty() ? "" : "." + import.member);
    std::string line = "import " + name;
    if (!import.member.empty()) line = "from " + import.module + " import " + import.member;
    const bool head = import.member.empty() && alias == name.substr(0, name.find('.'));  // import a.b binds a
    if (head) name = alias;
    if (!head && alias != import.member) line += " as " + alias;
    if (std::find(imports.begin(), imports.end(), indent + line) != imports.end()) continue;
    imports.push_back(indent + line);
    std::string advice;
    for (const auto& [left, reason] : left_)
      if (left.starts_with(name) || name.starts_with(left))
        advice += fmt::format("{}'{}': {}", advice.empty() ? "" : ", ", left, quoted(reason));
    stands.push_back(fmt::format("{}{} = LeftOfPyTorch('{}', {{{}}})", indent, alias, name, advice));
  }
  std::erase_if(unused, [](const auto& one) { return one.second.empty(); });
  if (imports.empty()) return {};
  needs_.insert("LeftOfPyTorch");
  std::vector<std::string> body = {"", "", "try:"};
  body.insert(body.end(), imports.begin(), imports.end());
  body.push_back("except ModuleNotFoundError:");
  body.insert(body.end(), stands.begin(), stands.end());
  return body;
}

void TorchFile::write_imports() {
  NodeId place = kNoNode;
  std::map<NodeId, std::vector<NodeId>> unused;  // statement -> entries
  for (const Import& import : file.module.imports()) {
    if (import.module != "torch" && import.module != "torchvision" && !import.module.starts_with("torch.") &&
        !import.module.starts_with("torchvision."))
      continue;
    bool top = syntax.parent(import.statement) == 0;
    if (place == kNoNode && top) place = import.statement;
    if (!import.star && !still_used(import)) unused[import.statement].push_back(import.entry);
  }
  std::set<std::string> lines;
  const std::vector<std::string> guarded = guard_imports(unused);
  std::map<std::string, std::set<std::string>> from;
  std::vector<std::string> helpers;
  const bool runs = main_guard(syntax) != kNoNode ||
                    std::any_of(file.changes.begin(), file.changes.end(),
                                [&](const Change& change) { return change.rule == kTorchTraining.id; });
  if (runs && file.options.recorded) needs_.insert("recorded");
  std::set<std::string> todo = needs_, done;
  while (!todo.empty()) {
    std::string name = *todo.begin();
    todo.erase(todo.begin());
    if (!done.insert(name).second) continue;
    if (const std::string helper = definition(name); !helper.empty()) {
      helpers.push_back(name);
      std::set<std::string> before = std::exchange(needs_, {});
      needing(helper);
      todo.insert(needs_.begin(), needs_.end());
      needs_ = std::move(before);
    } else if (std::string_view module = mindspore_module(name); module.find(" as ") != module.npos || module == name) {
      if (!imports_at_top(file.module, name, module)) lines.insert("import " + std::string(module));
    } else {
      from[std::string(module)].insert(name);
    }
  }
  if (place == kNoNode) place = first_statement(syntax);
  if (place == kNoNode) return;
  if (runs) lines.insert("import mindspore as ms");
  std::vector<std::string> rows = sorted_imports(lines);
  for (const auto& [module, names] : from) {
    std::string joined;
    for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
    rows.push_back("from " + module + " import " + joined);
  }
  if (!rows.empty())
    insert_lines(kTorchImports, syntax[place].begin, syntax[place].begin, 0, rows, "MindSpore in place of PyTorch");
  for (const auto& [statement, entries] : unused) {
    size_t all = std::count_if(file.module.imports().begin(), file.module.imports().end(),
                               [&, at = statement](const Import& import) { return import.statement == at; });
    if (entries.size() == all) {
      drop(kTorchImports, statement, "the import has no use left");
      continue;
    }
    std::vector<NodeId> others;
    for (const Import& import : file.module.imports())
      if (import.statement == statement && std::find(entries.begin(), entries.end(), import.entry) == entries.end())
        others.push_back(import.entry);
    std::string kept;
    for (NodeId entry : others) kept += (kept.empty() ? "" : ", ") + file.text(entry);
    std::vector<NodeId> parts = syntax.children(statement);
    NodeId from_name = syntax.child(statement, Field::module_name);
    NodeId first = from_name == kNoNode ? parts[0] : parts[1];
    Rewrite(file, kTorchImports, statement, "the import has no use left")
        .replace(Span{syntax[first].begin, syntax[parts.back()].end}, kept)
        .commit();
  }
  if (helpers.empty() && !runs && guarded.empty()) return;
  NodeId after = place;  // the last import at the top
  for (const Import& import : file.module.imports())
    if (syntax.parent(import.statement) == 0) after = std::max(after, import.statement);
  std::vector<std::string> body;
  std::stable_partition(helpers.begin(), helpers.end(), [&](const std::string& name) {  // classes behind their bases
    const std::string text = definition(name), head = text.substr(0, text.find('\n'));
    return std::none_of(helpers.begin(), helpers.end(),
                        [&](const std::string& base) { return head.ends_with("(" + base + "):"); });
  });
  for (const std::string& name : helpers) {
    body.insert(body.end(), {"", ""});
    const std::string text = definition(name);
    std::string_view block = text;
    while (!block.empty()) {
      size_t end = std::min(block.find('\n'), block.size());
      body.emplace_back(block.substr(0, end));
      block.remove_prefix(std::min(end + 1, block.size()));
    }
  }
  body.insert(body.end(), guarded.begin(), guarded.end());
  if (runs) body.insert(body.end(), {"", "ms.set_context(mode=ms.PYNATIVE_MODE)"});
  if (runs && file.options.recorded) body.push_back("recorded.start()");
  const uint32_t next = line_of(syntax[after].end) + 1;
  std::string_view following = next <= this->rows.count() ? line(next) : "";
  body.insert(body.end(), following.find_first_not_of(" \t\r\n") == following.npos ? 1 : 2, "");
  append_lines(kTorchImports, syntax[after].end, syntax[after].begin, body,
               "what MindSpore lacks, in terms of what it has");
}

void TorchFile::finish() {
  write_drops();
  write_imports();  // which are unused shows when all else is written
  write_drops();
  split_rows();
  write_lines();
  std::erase_if(file.changes, [](const Change& change) { return change.edits.empty(); });
}

}  // namespace cairn::migrate
