// The import lines that new text needs: one edit, in the right place, with the names that are not there yet.
#include <algorithm>

#include "migrate/api_table.h"
#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

NodeId import_anchor(const Module& module) {
  // After the first statement that imports TensorFlow or Keras; else after the docstring, __future__ and the first imports.
  const Syntax& syntax = module.syntax();
  NodeId lead = kNoNode;
  bool leading = true;
  auto entry = module.imports().begin();  // in the order of the text
  for (NodeId statement : syntax.children(0)) {
    Kind kind = syntax.kind(statement);
    bool import = kind == Kind::import_statement || kind == Kind::import_from_statement;
    for (; entry != module.imports().end() && entry->statement < syntax[statement].after; ++entry) {
      if (entry->statement < statement || entry->module.starts_with('.')) continue;
      std::string api = canonical(entry->module).name;
      // Not the import of Horovod, which may go.
      if ((import || kind == Kind::try_statement) && (api == "tf" || api.starts_with("tf."))) return statement;
    }
    bool docstring = kind == Kind::expression_statement && syntax.kind(syntax.first(statement)) == Kind::string;
    if (kind == Kind::future_import_statement || (docstring && lead == kNoNode))
      lead = statement;
    else if (import && leading)
      lead = statement;
    else
      leading = false;
  }
  return lead;
}

}  // namespace

bool add_imports(Context& file, std::vector<Edit>& edits) {
  std::map<std::string, std::set<std::string>> from;
  bool exits = false;
  std::set<std::string> needs;
  for (const Change& change : file.changes) needs.insert(change.imports.begin(), change.imports.end());
  for (const std::string& need : needs) {
    size_t colon = need.find(':');
    std::string module = colon == std::string::npos ? "npu_bridge.npu_init" : need.substr(0, colon);
    std::string name = colon == std::string::npos ? need : need.substr(colon + 1);
    if (name == "atexit") {
      exits = exits || !file.module.scopes()[0].names.contains("atexit");
      continue;
    }
    bool present = false;
    for (const Import& import : file.module.imports())
      present = present || (import.module.starts_with(module.substr(0, 10)) &&
                            (import.member == name || (import.star && star_exports(import.module, name))));
    std::string spelled = colon == std::string::npos ? file.spelling(name) : name;
    if (!present) from[module].insert(spelled == name ? name : name + " as " + spelled);
  }
  std::vector<std::string> lines;
  if (exits) lines.push_back("import atexit");
  for (const auto& [module, names] : from) {
    std::string joined;
    for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
    lines.push_back("from " + module + " import " + joined);
  }
  if (lines.empty()) return true;
  static const Rule carrier = {.id = "imports", .tier = Tier::safe, .when = When::always};
  NodeId anchor = import_anchor(file.module);
  std::vector<NodeId> statements = file.syntax.children(0);
  if (anchor == kNoNode && statements.empty()) return false;
  Rewrite rewrite(file, carrier, anchor == kNoNode ? statements[0] : anchor);
  bool placed = anchor == kNoNode ? rewrite.insert_before(statements[0], lines) : rewrite.insert_after(anchor, lines);
  if (!placed && anchor != kNoNode) placed = rewrite.insert_before(anchor, lines);  // shares its line: go before it
  if (!placed) return false;
  size_t before = file.changes.size();
  rewrite.commit();
  if (file.changes.size() == before) return false;
  Edit edit = file.changes.back().edits[0];
  file.changes.pop_back();
  // Before whatever else starts there.
  auto at = std::lower_bound(edits.begin(), edits.end(), edit,
                             [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  for (const Edit& other : edits)
    if (other.begin < edit.begin && other.end > edit.begin) return false;
  edits.insert(at, edit);
  return true;
}

}  // namespace cairn::migrate
