// The services that rules stand on: binding arguments, naming callees, building edits, suppression.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "migrate/api_table.h"
#include "migrate/rule.h"

namespace cairn::migrate {

Context::Context(const Project& project, const Module& module, Resolver& resolver, const Options& options,
                 const ProjectFacts& facts, const FileFacts& own, FileResult& result)
    : project(project), module(module), syntax(module.syntax()), resolver(resolver), options(options), facts(facts),
      own(own), result(result) {}

Arguments Context::bind(NodeId call, std::string_view parameters) const {
  Arguments bound;
  std::vector<std::string_view> names;
  for (size_t at = 0; at < parameters.size();) {
    size_t end = std::min(parameters.find(' ', at), parameters.size());
    names.push_back(parameters.substr(at, end - at));
    at = end + 1;
  }
  NodeId list = syntax.child(call, Field::arguments);
  if (syntax.kind(list) != Kind::argument_list) {
    bound.plain = false;
    return bound;
  }
  size_t position = 0;
  std::vector<NodeId> arguments = syntax.children(list);
  if (makes_partial(call) && !arguments.empty()) arguments.erase(arguments.begin());  // what it is to call
  for (NodeId argument : arguments) {
    switch (syntax.kind(argument)) {
      case Kind::list_splat:
      case Kind::parenthesized_list_splat:
        bound.stars.push_back(argument);
        position = names.size();  // what follows cannot be told
        break;
      case Kind::dictionary_splat: bound.double_stars.push_back(argument); break;
      case Kind::keyword_argument: {
        std::string_view name = syntax.text(syntax.child(argument, Field::name));
        auto known = std::find(names.begin(), names.end(), name);
        if (known == names.end())
          bound.extra.push_back(argument);
        else
          bound.given[*known] = {syntax.child(argument, Field::value), argument, true};
        break;
      }
      case Kind::generator_expression: bound.plain = syntax.text(list).starts_with("(("); [[fallthrough]];
      default:
        if (position < names.size())
          bound.given[names[position]] = {argument, argument, false};
        else
          bound.extra.push_back(argument);
        ++position;
    }
  }
  return bound;
}

namespace {

void add_targets(Resolver& resolver, const Values& callees, std::vector<ApiName>& found) {
  auto add = [&](ApiName name) {
    if (name.name.ends_with(":__init__"))
      name.name.resize(name.name.size() - 9);
    else if (name.name.ends_with(".__init__"))
      return;
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(std::move(name));
  };
  for (const Value& value : callees) {
    if (value.is == Value::Is::named) {
      add(canonical(value.name));
    } else if (value.is == Value::Is::method) {
      ApiName name = canonical(value.name);
      name.name += ":" + value.member;
      add(std::move(name));
    } else if (value.is == Value::Is::class_) {
      uint32_t scope = value.module->scope_opened_by(value.node);
      if (scope != kNoScope && value.module->scopes()[scope].names.contains("__init__")) continue;
      for (std::string& base : resolver.external_bases(*value.module, value.node)) add({std::move(base), 0});
    } else if (value.is == Value::Is::partial) {
      Values wrapped = resolver.wrapped_by(value);
      std::erase_if(wrapped, [](const Value& inner) { return inner.is == Value::Is::partial; });
      add_targets(resolver, wrapped, found);
    }
  }
}

}  // namespace

std::vector<ApiName> targets_of(Resolver& resolver, const Module& module, NodeId call) {
  std::vector<ApiName> found;
  if (NodeId callee = module.syntax().child(call, Field::function); callee != kNoNode)
    add_targets(resolver, Values(resolver.values(module, callee)), found);
  return found;
}

bool Context::makes_partial(NodeId call) const {
  const NodeId callee = syntax.child(call, Field::function);
  if (callee == kNoNode || !syntax.text(callee).ends_with("partial")) return false;
  const Values& values = resolver.values(module, callee);
  return values.size() == 1 && values[0].name == "functools.partial";
}

std::vector<ApiName> Context::targets_of_partial(NodeId call) const {
  std::vector<ApiName> found;
  add_targets(resolver, {{Value::Is::partial, {}, {}, &module, call}}, found);
  return found;
}

bool Context::calls_partial(NodeId call) const {
  const Values& values = resolver.values(module, syntax.child(call, Field::function));
  return std::any_of(values.begin(), values.end(), [](const Value& value) { return value.is == Value::Is::partial; });
}

bool Context::calls(NodeId call, std::string_view name) {
  for (const ApiName& target : targets(call))
    if (target.name == name) return true;
  return false;
}

std::string Context::tensorflow() {
  // The name most in use for the package itself.
  for (const Import& import : module.imports()) {
    if (import.star || syntax.ancestor(import.statement, Kind::function_definition) != kNoNode) continue;
    std::string dotted = import.member.empty() ? import.module : import.module + "." + import.member;
    if (!import.member.empty() && import.module.starts_with('.')) continue;
    if (canonical(dotted).name == "tf" &&
        (import.member.size() || import.alias == dotted || syntax.kind(import.entry) == Kind::aliased_import))
      return std::string(import.alias);
  }
  for (const Import& import : module.imports())
    if (import.star && star_exports(import.module, "tf")) return "tf";
  return "";
}

void Context::find(const Rule& rule, NodeId node, Severity severity, std::string message, std::string advice) {
  Position from = module.lines().at(syntax[node].begin), to = module.lines().at(syntax[node].end);
  result.findings.push_back({std::string(rule.id), severity, result.path, from.line, from.column, to.line, to.column,
                             std::move(message), std::move(advice), suppressed(node, rule.id)});
}

bool Context::holds(NodeId node, const std::string& words) {
  auto [known, fresh] = held_.try_emplace({node, words});
  std::string_view text = node == 0 ? std::string_view(module.text()) : syntax.text(node);
  if (fresh) known->second = memmem(text.data(), text.size(), words.data(), words.size()) != nullptr;
  return known->second;
}

bool Context::suppressed(NodeId node, std::string_view rule) {
  if (!holds("# cairn: ignore")) return false;
  // "# cairn: ignore" or "# cairn: ignore[rule, rule]" on a line of the spot or of its statement's first line.
  auto forbids = [&](std::string_view line) {
    size_t mark = line.find("# cairn: ignore");
    if (mark == std::string_view::npos) return false;
    std::string_view rest = line.substr(mark + 15);
    if (!rest.starts_with('[')) return true;
    return rest.substr(0, rest.find(']')).find(rule) != std::string_view::npos;
  };
  uint32_t first = module.lines().at(syntax[syntax.statement(node)].begin).line;
  uint32_t from = module.lines().at(syntax[node].begin).line, to = module.lines().at(syntax[node].end).line;
  if (forbids(module.lines().line(module.text(), first))) return true;
  for (uint32_t line = from; line <= to && line < from + 200; ++line)
    if (forbids(module.lines().line(module.text(), line))) return true;
  return false;
}

bool Context::sound(NodeId node) const {
  // Damage inside the spot, or next to it in the simple statement (or the head of the compound one) that holds it.
  if (syntax[node].broken) return false;
  NodeId statement = syntax.statement(node);
  for (NodeId child = syntax.first(statement); child != kNoNode; child = syntax.next(child))
    if (syntax[child].broken && syntax.kind(child) != Kind::block) return false;
  for (NodeId up = syntax.parent(node); up != kNoNode && up != statement; up = syntax.parent(up))
    if (syntax.is_error(up)) return false;
  if (syntax.is_error(statement)) return false;
  auto is_error_at = [&](NodeId sibling) { return sibling != kNoNode && syntax.is_error(sibling); };
  NodeId next = syntax.next(statement);
  if (is_error_at(next) && module.lines().at(syntax[next].begin).line == module.lines().at(syntax[statement].end).line)
    return false;
  return !is_error_at(syntax.parent(statement));
}

std::string Context::spelling(const std::string& name) {
  auto known = spelled_.find(name);
  if (known != spelled_.end()) return known->second;
  std::string plain = name;
  // Already there, by a star import or by name?
  bool bound = false, ours = false;
  for (const Import& import : module.imports()) {
    if (import.star && star_exports(import.module, name)) ours = true;
    if (!import.star && !import.member.empty() && import.member == name && import.module.starts_with("npu_bridge")) {
      ours = true;
      plain = std::string(import.alias);
    }
  }
  for (const Scope& scope : module.scopes()) bound = bound || scope.names.contains(name);
  if (!ours && bound) plain = "_" + name;
  return spelled_[name] = plain;
}

bool Context::is_enabled(const Rule& rule) const {
  auto listed = [&](const std::vector<std::string>& ids) {
    return std::find(ids.begin(), ids.end(), rule.id) != ids.end();
  };
  if ((rule.when == When::mindspore) != (options.to == Target::mindspore)) return false;
  if (rule.when == When::mindspore) return !listed(options.disable);
  if (listed(options.disable) || (own.tf == 0 && rule.tier != Tier::advice)) return false;
  if (listed(options.enable)) return true;
  switch (rule.when) {
    case When::always: return true;
    case When::tf1: return own.tf == 1;
    case When::tf2: return own.tf == 2;
    case When::strategy: return own.tf != 0 && own.distributed == Distribution::tf_strategy;
    case When::platform: return options.platform && own.tf == 1;
    case When::mindspore: return true;
  }
  return true;
}

std::vector<NodeId> Context::definitions_around(NodeId node) const {
  std::vector<NodeId> found;
  for (NodeId up = syntax.parent(node); up != kNoNode; up = syntax.parent(up))
    if (syntax.kind(up) == Kind::function_definition || syntax.kind(up) == Kind::class_definition) found.push_back(up);
  return found;
}

std::string Context::newline() const {
  size_t end = module.text().find_first_of("\r\n");
  if (end == std::string::npos) return "\n";
  if (module.text()[end] == '\n') return "\n";
  return end + 1 < module.text().size() && module.text()[end + 1] == '\n' ? "\r\n" : "\r";
}

// ---- Rewrite ----

Rewrite::Rewrite(Context& file, const Rule& rule, NodeId at, std::string message)
    : file_(file), rule_(rule), node_(at) {
  change_.rule = rule.id;
  change_.tier = rule.tier;
  change_.at = file.syntax.span(at);
  change_.message = message.empty() ? std::string(rule.title) : std::move(message);
  touched_.push_back(at);
}

Rewrite& Rewrite::tier(Tier tier) {
  change_.tier = tier;
  return *this;
}

Rewrite& Rewrite::insert(uint32_t offset, std::string text, int64_t order) {
  change_.edits.push_back({offset, offset, std::move(text), order});
  return *this;
}

Rewrite& Rewrite::replace(NodeId node, std::string text) {
  touched_.push_back(node);
  return replace(file_.syntax.span(node), std::move(text));
}

Rewrite& Rewrite::replace(Span span, std::string text) {
  change_.edits.push_back({span.begin, span.end, std::move(text), 0});
  return *this;
}

Rewrite& Rewrite::wrap(NodeId node, std::string before, std::string after) {
  Span span = file_.syntax.span(node);
  touched_.push_back(node);
  // At one offset the wider opening comes first, the wider closing last; openings follow what was inserted after the text before.
  insert(span.begin, std::move(before), (int64_t{1} << 40) - span.size());
  insert(span.end, std::move(after), -(int64_t{1} << 40) + span.size());
  return *this;
}

Rewrite& Rewrite::add_argument(NodeId call, const std::string& text) {
  const Syntax& syntax = file_.syntax;
  NodeId list = syntax.child(call, Field::arguments);
  std::vector<NodeId> arguments = syntax.children(list);
  // Before ** so that Python 2 reads it too.
  for (NodeId argument : arguments)
    if (syntax.kind(argument) == Kind::dictionary_splat) return insert(syntax[argument].begin, text + ", ");
  if (arguments.empty()) {
    insert(syntax[list].begin + 1, text);
    change_.edits.back().argument = true;
    return *this;
  }
  insert(syntax[arguments.back()].end, ", " + text, 1);
  change_.edits.back().argument = true;
  return *this;
}

Rewrite& Rewrite::remove_arguments(NodeId call, const std::vector<NodeId>& removed) {
  const Syntax& syntax = file_.syntax;
  const std::vector<NodeId> all = syntax.children(syntax.child(call, Field::arguments));
  const std::string_view text = file_.module.text();
  auto goes = [&](size_t i) { return std::find(removed.begin(), removed.end(), all[i]) != removed.end(); };
  for (size_t first = 0; first < all.size();) {
    if (!goes(first)) {
      ++first;
      continue;
    }
    // A run of neighbours goes at once, with the commas towards what stays.
    size_t last = first;
    while (last + 1 < all.size() && goes(last + 1) &&
           is_blank(text, syntax[all[last]].end, syntax[all[last + 1]].begin))
      ++last;
    const uint32_t begin = syntax[all[first]].begin, end = syntax[all[last]].end;
    if (last + 1 < all.size() && is_blank(text, end, syntax[all[last + 1]].begin)) {
      replace(Span{begin, syntax[all[last + 1]].begin}, "");
    } else if (first > 0 && !goes(first - 1) && is_blank(text, syntax[all[first - 1]].end, begin)) {
      replace(Span{syntax[all[first - 1]].end, end}, "");
    } else {
      // A comment stands beside it, or nothing is left: take the comma, leave the comment.
      uint32_t comma = end;
      while (comma < text.size() && (text[comma] == ' ' || text[comma] == '\t')) ++comma;
      replace(Span{begin, end}, "");
      change_.edits.back().argument = removed.size() == all.size();
      if (comma < text.size() && text[comma] == ',') replace(Span{end, comma + 1}, "");
    }
    first = last + 1;
  }
  return *this;
}

bool Rewrite::insert_lines(uint32_t offset, NodeId statement, const std::vector<std::string>& lines, bool after) {
  const std::string& text = file_.module.text();
  uint32_t line_start = file_.module.lines().start(file_.module.lines().at(file_.syntax[statement].begin).line);
  std::string indent = text.substr(line_start, file_.syntax[statement].begin - line_start);
  if (indent.find_first_not_of(" \t\f") != std::string::npos &&
      !(line_start == 0 && indent.starts_with("\xEF\xBB\xBF")))
    return false;
  if (indent.starts_with("\xEF\xBB\xBF")) {
    indent.erase(0, 3);
    line_start += 3;
  }
  std::string newline = file_.newline(), added;
  for (const std::string& line : lines) added += (line.empty() ? "" : indent + line) + newline;
  if (!after) return insert(line_start, added), true;
  // The end of the statement's last line; a comment behind it stays there, another statement forbids it.
  while (offset < text.size() && text[offset] != '\n' && text[offset] != '\r' && text[offset] != '#') {
    if (!std::isspace(static_cast<unsigned char>(text[offset]))) return false;
    ++offset;
  }
  while (offset < text.size() && text[offset] != '\n' && text[offset] != '\r') ++offset;
  if (offset == text.size()) {
    added = newline + added.substr(0, added.size() - newline.size());
    return insert(offset, added, 2), true;
  }
  offset += text[offset] == '\r' && offset + 1 < text.size() && text[offset + 1] == '\n' ? 2 : 1;
  return insert(offset, added, -(int64_t{1} << 50)), true;
}

bool Rewrite::insert_before(NodeId statement, const std::vector<std::string>& lines) {
  return insert_lines(file_.syntax[statement].begin, statement, lines, false);
}

bool Rewrite::insert_after(NodeId statement, const std::vector<std::string>& lines) {
  return insert_lines(file_.syntax[statement].end, statement, lines, true);
}

std::string Rewrite::use(const std::string& name) {
  change_.imports.push_back(name);
  size_t colon = name.find(':');  // "module:name" is never renamed
  return colon == std::string::npos ? file_.spelling(name) : name.substr(colon + 1);
}

bool Rewrite::commit() {
  for (NodeId node : touched_)
    if (!file_.sound(node)) {
      file_.find(rule_, node_, Severity::warning, change_.message,
                 "the code around it does not parse; rewrite it by hand");
      return false;
    }
  if (file_.suppressed(node_, rule_.id)) return false;
  if (file_.options.safe_only && change_.tier != Tier::safe) {
    file_.find(rule_, node_, Severity::warning, change_.message, "left as it is, because only safe edits are allowed");
    return false;
  }
  NodeId callee = file_.syntax.kind(node_) == Kind::call ? file_.syntax.child(node_, Field::function) : node_;
  if (file_.makes_partial(node_)) callee = file_.syntax.first(file_.syntax.child(node_, Field::arguments));
  if (callee != kNoNode) file_.rewritten[callee] = rule_.id;
  file_.changes.push_back(std::move(change_));
  return true;
}

}  // namespace cairn::migrate
