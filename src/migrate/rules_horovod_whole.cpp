// A file's Horovod is replaced as a whole, or stays as a whole while one use of it has no peer: ranks of two libraries in one program would
// not know of each other. Here: what the rules for calls leave, and the imports.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

// The attribute chain around a name, and whether a rule takes care of any part of it.
NodeId chain_of(const Context& file, NodeId node, bool& mapped) {
  const Syntax& syntax = file.syntax;
  mapped = file.rewritten.contains(node);
  while (syntax.kind(syntax.parent(node)) == Kind::attribute && syntax[node].field == Field::object) {
    node = syntax.parent(node);
    mapped = mapped || file.rewritten.contains(node);
  }
  return node;
}

// Whether this mention of a name bound by an import is a use of it.
bool is_use_of_import(const Context& file, NodeId node) {
  const Syntax& syntax = file.syntax;
  if (syntax[node].field == Field::attribute || syntax.ancestor(node, Kind::import_statement) != kNoNode ||
      syntax.ancestor(node, Kind::import_from_statement) != kNoNode)
    return false;
  if (syntax.kind(syntax.parent(node)) == Kind::keyword_argument && syntax[node].field == Field::name) return false;
  uint32_t scope = kNoScope;
  for (uint32_t binding : file.module.lookup(syntax.text(node), node, scope)) {
    Bound how = file.module.bindings()[binding].how;
    if (how == Bound::import || how == Bound::from_import) return true;
  }
  return false;
}

// Another module of the project takes this name from the file.
bool is_exported(const Context& file, std::string_view name) {
  for (const auto& other : file.project.modules())
    for (const Import& import : other->imports())
      if (import.member == name && file.project.find(other->path(), import.module) == file.module.path()) return true;
  return false;
}

void report_use(Context& file, const Rule& rule, NodeId chain, const std::set<uint32_t>& reported) {
  std::string use;
  for (const ApiName& name : file.resolver.names(file.module, chain)) use = name.name;
  if (use.empty() || reported.contains(file.module.lines().at(file.syntax[chain].begin).line)) return;
  file.find(rule, chain, Severity::error, fmt::format("{} has no peer on the platform", use),
            use.ends_with("Compression")  ? "leave it out: compression is an option of the collectives"
            : use.ends_with("load_model") ? "load the model with Keras, and compile it again with the wrapped optimizer"
                                          : "rewrite it by hand; Horovod stays in this file until then");
}

// Whether the expression is Horovod's choice of a compression, or one of two.
bool is_compression(Context& file, NodeId node) {
  const std::vector<ApiName> names = file.resolver.names(file.module, node);
  return !names.empty() && std::all_of(names.begin(), names.end(), [](const ApiName& name) {
    return name.name.starts_with("hvd.") && name.name.find("Compression.") != std::string::npos;
  });
}

// A compression that is kept in a variable or handed to a function of the project: calls of the platform take none, so it is None.
bool leave_out_compression(Context& file, NodeId chain) {
  if (!is_compression(file, chain)) return false;
  NodeId whole = chain;
  for (NodeId up = file.syntax.parent(chain);
       file.syntax.kind(up) == Kind::conditional_expression && is_compression(file, up); up = file.syntax.parent(up))
    whole = up;
  const Kind around = file.syntax.kind(file.syntax.parent(whole));
  if (around == Kind::attribute || around == Kind::call) return false;
  for (NodeId node = whole; node < file.syntax[whole].after; ++node) file.rewritten[node] = kHorovodOptimizer.id;
  Rewrite(file, kHorovodOptimizer, whole, "compression is an option of the platform's collectives")
      .replace(whole, "None")
      .commit();
  return true;
}

// `hvd` itself, handed to a function or kept: those who get it use it by names that are replaced, or ask whether it is there.
bool hand_on(Context& file, NodeId node) {
  const std::vector<ApiName> names = file.resolver.names(file.module, node);
  const Kind around = file.syntax.kind(file.syntax.parent(node));
  const bool value = around == Kind::keyword_argument || around == Kind::argument_list || around == Kind::assignment ||
                     around == Kind::conditional_expression || around == Kind::boolean_operator ||
                     around == Kind::comparison_operator || around == Kind::return_statement;
  if (names.size() != 1 || names[0].name != "hvd" || !value || !file.facts.horovod_has_peers) return false;
  Rewrite rewrite(file, kHorovodOther, node, "what stands for Horovod stands for the platform's collectives");
  rewrite.replace(node, use_collectives(rewrite, file)).commit();
  return true;
}

bool is_horovod_rule(std::string_view id) { return id.starts_with("horovod-"); }

void take_back(Context& file, const Rule& rule, NodeId import) {
  size_t before = file.changes.size();
  std::erase_if(file.changes, [](const Change& change) { return is_horovod_rule(change.rule); });
  std::erase_if(file.rewritten, [](const auto& entry) { return is_horovod_rule(entry.second); });
  std::erase_if(file.result.findings, [](const Finding& finding) {
    return is_horovod_rule(finding.rule) && finding.severity == Severity::note;
  });
  if (size_t count = before - file.changes.size())
    file.find(rule, import, Severity::warning, "Horovod stays in this file",
              fmt::format("{} of its uses could be replaced, and are once the others are rewritten by hand", count));
}

void remove_import(Context& file, const Rule& rule, const std::vector<const Import*>& removed) {
  const Syntax& syntax = file.syntax;
  const NodeId statement = removed[0]->statement;
  Rewrite rewrite(file, rule, removed[0]->entry, "the import of Horovod goes: nothing of it is left");
  std::vector<NodeId> entries = syntax.children(statement);
  std::erase_if(entries, [&](NodeId entry) { return syntax[entry].field == Field::module_name; });
  if (entries.size() > removed.size()) {
    // Of several names each goes with the comma before it, the first ones with the comma behind.
    auto goes = [&](NodeId entry) {
      return std::any_of(removed.begin(), removed.end(), [&](const Import* import) { return import->entry == entry; });
    };
    size_t kept = 0;
    while (goes(entries[kept])) ++kept;
    if (kept) rewrite.replace(Span{syntax[entries[0]].begin, syntax[entries[kept]].begin}, "");
    for (size_t i = kept + 1; i < entries.size(); ++i)
      if (goes(entries[i])) rewrite.replace(Span{syntax[entries[i - 1]].end, syntax[entries[i]].end}, "");
    rewrite.commit();
    return;
  }
  // Alone: the whole line, unless its block would be empty.
  NodeId block = syntax.parent(statement);
  uint32_t line = file.module.lines().at(syntax[statement].begin).line;
  std::string_view text = file.module.lines().line(file.module.text(), line);
  bool whole_line = text.find_first_not_of(" \t") != text.npos &&
                    text.substr(text.find_first_not_of(" \t")) == syntax.text(statement);
  bool only = syntax.kind(block) == Kind::block && syntax.children(block).size() == 1;
  if (only || !whole_line || line == file.module.lines().count())
    rewrite.replace(statement, "pass");
  else
    rewrite.replace(Span{file.module.lines().start(line), file.module.lines().start(line + 1)}, "");
  rewrite.commit();
}

void whole_or_not(Context& file, const Rule& rule) {
  const Syntax& syntax = file.syntax;
  if (file.module.text().find("horovod") == std::string::npos) return;
  std::map<std::string_view, const Import*> imports;  // by the name they bind
  std::vector<const Import*> removable;
  const Import* first = nullptr;
  bool whole = true;
  for (const Import& import : file.module.imports()) {
    std::string dotted = import.member.empty() || import.star ? import.module : import.module + "." + import.member;
    std::string api = canonical(dotted).name;
    if (import.module.starts_with('.') ||
        !(api == "hvd" || api == "horovod" || api == "horovod.spark" || api.starts_with("hvd.")))
      continue;
    if (!file.project.find(file.module.path(), import.module).empty()) continue;  // inside Horovod's own source
    if (!first) first = &import;
    if (import.star) {
      file.find(rule, import.entry, Severity::warning, "a star import of Horovod", "import its names one by one");
      whole = false;
    } else {
      whole = whole && !is_exported(file, import.alias);
      imports[import.alias] = &import;
      removable.push_back(&import);
    }
  }
  if (!first) return;
  std::set<uint32_t> reported;
  for (const Finding& finding : file.result.findings)
    if (is_horovod_rule(finding.rule)) reported.insert(finding.line);
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) != Kind::identifier || !imports.contains(syntax.text(node)) || !is_use_of_import(file, node))
      continue;
    bool mapped = false;
    NodeId chain = chain_of(file, node, mapped);
    if (mapped || leave_out_compression(file, chain) || hand_on(file, chain)) continue;
    whole = false;
    report_use(file, rule, chain, reported);
  }
  if (!whole) return take_back(file, rule, first->entry);
  if (file.module.path().ends_with("__init__.py") && file.rewritten.empty()) return;
  std::map<NodeId, std::vector<const Import*>> statements;
  for (const Import* import : removable) statements[import->statement].push_back(import);
  for (const auto& [statement, removed] : statements) remove_import(file, rule, removed);
}

}  // namespace

bool all_have_peers(const std::vector<FileFacts>& files) {
  std::set<std::string_view> known = {"hvd.Average", "hvd.Sum",    "hvd.Min",         "hvd.Max",
                                      "hvd.Product", "hvd.Adasum", "hvd.Compression", "hvd.callbacks"};
  for (const Rule* rule : all_rules())
    for (std::string_view call : rule->calls)
      if (call.starts_with("hvd.")) known.insert(call);
  for (const FileFacts& file : files)
    for (const NameUse& use : file.names)
      if (use.name.name.starts_with("hvd.") && use.name.name.find("Compression.") == std::string::npos &&
          !known.contains(use.name.name))
        return false;
  return true;
}

const Rule kHorovodOther = {
    .id = "horovod-import",
    .tier = Tier::safe,
    .when = When::always,
    .title = "Horovod is replaced in a file as a whole, its import too, or left as a whole; what stops it is reported",
    .reason = "ranks of two libraries in one program would not know of each other",
    .calls = {},
    .at_file = whole_or_not,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nn = hvd.size()\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size\nn = get_npu_rank_size()\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nn = hvd.size()\ny = hvd.alltoall(x)\n", "",
             "tf=1"},
        },
};

}  // namespace cairn::migrate
