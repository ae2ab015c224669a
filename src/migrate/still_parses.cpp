// The statements of the module that hold an edit are parsed together, apart from the others; of those of one shape the first.
#include "migrate/still_parses.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace cairn::migrate {
namespace {

constexpr std::array kWords = {  // sorted: what the grammar knows by name, in Python 2 and 3
    "False",  "None",     "True",   "_",   "and",  "as",     "assert", "async",    "await",   "break", "case",
    "class",  "continue", "def",    "del", "elif", "else",   "except", "exec",     "finally", "for",   "from",
    "global", "if",       "import", "in",  "is",   "lambda", "match",  "nonlocal", "not",     "or",    "pass",
    "print",  "raise",    "return", "try", "type", "while",  "with",   "yield"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// The offsets at which the module's statements begin, where they begin a line: what lies between two parses by itself.
std::vector<uint32_t> statement_begins(const Module& module) {
  std::vector<uint32_t> begins;
  const std::string& text = module.text();
  for (NodeId statement : module.syntax().children(0)) {
    const uint32_t begin = module.syntax()[statement].begin;
    if (begin > 0 && (text[begin - 1] == '\n' || text[begin - 1] == '\r')) begins.push_back(begin);
  }
  begins.push_back(static_cast<uint32_t>(text.size()) + 1);  // what is inserted at the end belongs to the last
  return begins;
}

/// The statements that edits touch with the edits made, each shape once.
std::string edited_statements(const Module& module, const std::vector<Edit>& edits) {
  const std::string_view text = module.text();
  const std::vector<uint32_t> begins = statement_begins(module);
  std::unordered_set<std::string> shapes;
  std::string all, statement;
  size_t next = 0;  // index of the statement after the one at hand
  for (size_t edit = 0; edit < edits.size();) {
    while (begins[next] <= edits[edit].begin) ++next;
    uint32_t at = next ? begins[next - 1] : 0;
    statement.clear();
    for (; edit < edits.size() && edits[edit].begin < begins[next]; ++edit) {
      statement += text.substr(at, edits[edit].begin - at);
      statement += edits[edit].text;
      at = edits[edit].end;
      while (begins[next] <= at) ++next;
    }
    statement += text.substr(at, begins[next] - at);
    if (!statement.ends_with('\n')) statement += '\n';
    if (shapes.insert(shape_of(statement)).second) all += statement;
  }
  return all;
}

}  // namespace

std::string shape_of(std::string_view statement) {
  std::string shape;
  shape.reserve(statement.size());
  for (size_t at = 0; at < statement.size();) {
    size_t end = at;
    bool number = true;
    for (; end < statement.size() && is_of_word(statement[end]); ++end) number = number && is_digit(statement[end]);
    if (end == at) {
      shape += statement[at++];
      continue;
    }
    const std::string_view word = statement.substr(at, end - at);
    const bool opens_string = end < statement.size() && (statement[end] == '"' || statement[end] == '\'');
    const bool escaped =
        at > 0 && (statement[at - 1] == '\\' || statement[at - 1] == '!');  // of a string, of an f-string
    number = number && (word.size() == 1 || word[0] != '0');
    const bool name = !is_digit(word[0]) && !std::binary_search(kWords.begin(), kWords.end(), word);
    if (opens_string || escaped || !(name || number))
      shape += word;
    else
      shape += number ? '0' : 'a';
    at = end;
  }
  return shape;
}

bool still_parses(const Module& module, const std::vector<Edit>& edits) {
  const size_t errors = module.syntax().error_count();
  if (errors == 0) return Syntax::errors_in(edited_statements(module, edits), module.encoding()) == 0;
  return Syntax::errors_in(apply_edits(module.text(), edits), module.encoding()) <= errors;
}

}  // namespace cairn::migrate
