// One pass over the nodes of a file gives its scopes, bindings, imports and calls.
#include "migrate/module.h"

#include <algorithm>

namespace cairn::migrate {
namespace {

bool opens_scope(Kind kind) {
  return kind == Kind::module || kind == Kind::class_definition || kind == Kind::function_definition ||
         kind == Kind::lambda || kind == Kind::list_comprehension || kind == Kind::set_comprehension ||
         kind == Kind::dictionary_comprehension || kind == Kind::generator_expression;
}

ScopeKind scope_kind(Kind kind) {
  switch (kind) {
    case Kind::module: return ScopeKind::module;
    case Kind::class_definition: return ScopeKind::class_;
    case Kind::function_definition:
    case Kind::lambda: return ScopeKind::function;
    default: return ScopeKind::comprehension;
  }
}

std::string without_spaces(std::string_view text) {
  std::string kept;
  for (char c : text)
    if (!std::isspace(static_cast<unsigned char>(c)) && c != '\\') kept += c;
  return kept;
}

}  // namespace

Module::Module(std::string path, std::string text)
    : path_(std::move(path)), text_(std::move(text)), encoding_(declared_encoding(text_)), syntax_(text_, encoding_),
      lines_(text_) {
  build();
}

uint32_t Module::scope_opened_by(NodeId node) const {
  auto found = opened_.find(node);
  return found == opened_.end() ? kNoScope : found->second;
}

void Module::bind(std::string_view name, Binding binding, uint32_t scope) {
  const Scope* at = &scopes_[scope];
  auto listed = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (listed(at->globals)) {
    scope = 0;
  } else if (listed(at->nonlocals) && scope != 0) {
    do scope = scopes_[scope].parent;
    while (scope != 0 && scopes_[scope].kind == ScopeKind::class_);
  }
  scopes_[scope].names[name].push_back(static_cast<uint32_t>(bindings_.size()));
  bindings_.push_back(std::move(binding));
}

void Module::bind_target(NodeId target, NodeId value, Bound how, uint32_t since) {
  target = syntax_.unwrap(target);
  switch (syntax_.kind(target)) {
    case Kind::identifier: {
      // A walrus inside a comprehension binds outside of it.
      uint32_t scope = scope_of_[target];
      if (syntax_.kind(syntax_.parent(target)) == Kind::named_expression)
        while (scopes_[scope].kind == ScopeKind::comprehension) scope = scopes_[scope].parent;
      bind(syntax_.text(target), {how, target, value, kNoNode, since, 0, {}, {}}, scope);
      break;
    }
    case Kind::attribute: {
      NodeId object = syntax_.child(target, Field::object);
      if (how == Bound::assigned && syntax_.kind(object) == Kind::identifier) {
        NodeId function = syntax_.ancestor(target, Kind::function_definition);
        NodeId owner = function == kNoNode ? kNoNode : syntax_.ancestor(function, Kind::class_definition);
        if (owner != kNoNode && syntax_.text(object) == "self")
          self_assignments_.push_back({owner, syntax_.text(syntax_.child(target, Field::attribute)), value});
      }
      break;
    }
    case Kind::pattern_list:
    case Kind::tuple_pattern:
    case Kind::list_pattern:
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list: {
      std::vector<NodeId> targets = syntax_.children(target);
      NodeId source = value == kNoNode ? kNoNode : syntax_.unwrap(value);
      Kind given = syntax_.kind(source);
      std::vector<NodeId> values;
      if (how == Bound::assigned && (given == Kind::tuple || given == Kind::list || given == Kind::expression_list))
        values = syntax_.children(source);
      for (size_t i = 0; i < targets.size(); ++i) {
        bool paired = values.size() == targets.size();
        bind_target(targets[i], paired ? values[i] : value,
                    paired                   ? how
                    : how == Bound::assigned ? Bound::part
                    : how == Bound::loop     ? Bound::loop
                                             : Bound::unknown,
                    since);
      }
      break;
    }
    case Kind::list_splat_pattern:
    case Kind::as_pattern_target:
      for (NodeId inner : syntax_.children(target)) bind_target(inner, value, how, since);
      break;
    default: break;
  }
}

void Module::bind_import(NodeId statement) {
  for (NodeId entry : syntax_.children(statement)) {
    bool aliased = syntax_.kind(entry) == Kind::aliased_import;
    NodeId name = aliased ? syntax_.child(entry, Field::name) : entry;
    if (syntax_.kind(name) != Kind::dotted_name) continue;
    std::string module = without_spaces(syntax_.text(name));
    NodeId site = aliased ? syntax_.child(entry, Field::alias) : syntax_.first(name);
    if (site == kNoNode) continue;
    std::string bound = aliased ? module : module.substr(0, module.find('.'));
    imports_.push_back({statement, entry, module, "", syntax_.text(site), false});
    bind(syntax_.text(site), {Bound::import, site, kNoNode, kNoNode, syntax_[statement].end, 0, bound, ""},
         scope_of_[statement]);
  }
}

void Module::bind_from(NodeId statement) {
  NodeId from = syntax_.child(statement, Field::module_name);
  if (from == kNoNode) return;
  std::string module = without_spaces(syntax_.text(from));
  for (NodeId entry : syntax_.children(statement)) {
    if (entry == from) continue;
    if (syntax_.kind(entry) == Kind::wildcard_import) {
      imports_.push_back({statement, entry, module, "*", "*", true});
      continue;
    }
    bool aliased = syntax_.kind(entry) == Kind::aliased_import;
    NodeId name = aliased ? syntax_.child(entry, Field::name) : entry;
    NodeId site = aliased                                    ? syntax_.child(entry, Field::alias)
                  : syntax_.kind(entry) == Kind::dotted_name ? syntax_.first(name)
                                                             : kNoNode;
    if (site == kNoNode) continue;
    std::string member(syntax_.text(name));
    imports_.push_back({statement, entry, module, member, syntax_.text(site), false});
    bind(syntax_.text(site), {Bound::from_import, site, kNoNode, kNoNode, syntax_[statement].end, 0, module, member},
         scope_of_[statement]);
  }
}

std::vector<Parameter> Module::parameters(NodeId function) const {
  std::vector<Parameter> found;
  NodeId list = syntax_.child(function, Field::parameters);
  if (list == kNoNode) return found;
  int index = 0;
  bool keyword_only = false;
  for (NodeId entry : syntax_.children(list)) {
    NodeId site = entry, value = kNoNode;
    int position = keyword_only ? -3 : index;
    Kind kind = syntax_.kind(entry);
    if (kind == Kind::default_parameter || kind == Kind::typed_default_parameter) {
      site = syntax_.child(entry, Field::name);
      value = syntax_.child(entry, Field::value);
    } else if (kind == Kind::typed_parameter) {
      site = syntax_.first(entry);
      kind = syntax_.kind(site);
    }
    if (kind == Kind::list_splat_pattern || kind == Kind::dictionary_splat_pattern) {
      position = kind == Kind::list_splat_pattern ? -1 : -2;
      keyword_only = true;
      site = syntax_.first(site == entry ? entry : site);
    }
    if (site == kNoNode || syntax_.kind(site) != Kind::identifier) {
      if (kind == Kind::other) keyword_only = keyword_only || syntax_.text(entry) == "*";
      continue;
    }
    found.push_back({syntax_.text(site), site, value, position});
    if (position >= 0) ++index;
  }
  return found;
}

void Module::bind_parameters(NodeId function) {
  uint32_t scope = opened_.at(function);
  for (const Parameter& parameter : parameters(function))
    bind(
        parameter.name,
        {Bound::parameter, parameter.site, parameter.value, function, syntax_[function].begin, parameter.index, {}, {}},
        scope);
}

// The scope that a node's names are looked up in: its parent's, or the one that the parent opens for its inside.
uint32_t Module::scope_under_parent(NodeId node) const {
  const Node& at = syntax_[node];
  if (at.parent == kNoNode) return 0;
  uint32_t scope = scope_of_[at.parent];
  if (auto opened = opened_.find(at.parent); opened != opened_.end()) {
    Kind opener = syntax_.kind(at.parent);
    bool inside = at.field == Field::body || at.field == Field::parameters ||
                  (opener != Kind::function_definition && opener != Kind::class_definition && opener != Kind::lambda);
    if (inside) scope = opened->second;
  }
  Kind parent = syntax_.kind(at.parent);
  if (at.field == Field::value && (parent == Kind::default_parameter || parent == Kind::typed_default_parameter))
    scope = scopes_[scope].parent == kNoScope ? scope : scopes_[scope].parent;
  return scope;
}

void Module::build() {
  scope_of_.resize(syntax_.size());
  for (NodeId node = 0; node < syntax_.size(); ++node) {
    const Node& at = syntax_[node];
    const uint32_t scope = scope_of_[node] = scope_under_parent(node);
    if (opens_scope(at.kind) && (at.kind != Kind::module || node == 0)) {
      opened_[node] = static_cast<uint32_t>(scopes_.size());
      scopes_.push_back({scope_kind(at.kind), node, scopes_.empty() ? kNoScope : scope, {}, {}, {}});
      if (node == 0) scope_of_[0] = 0;
    }
    switch (at.kind) {
      case Kind::ERROR:
        if (node == 0) {  // a file that is one error still needs a module scope
          opened_[0] = 0;
          scopes_.push_back({ScopeKind::module, 0, kNoScope, {}, {}, {}});
        }
        break;
      case Kind::identifier: ++mentioned_[syntax_.text(node)]; break;
      case Kind::global_statement:
      case Kind::nonlocal_statement:
        for (NodeId name : syntax_.children(node)) {
          auto& list = at.kind == Kind::global_statement ? scopes_[scope].globals : scopes_[scope].nonlocals;
          list.push_back(syntax_.text(name));
        }
        break;
      case Kind::call: {
        NodeId callee = syntax_.child(node, Field::function);
        if (syntax_.text(callee) == "self.register_buffer") {  // PyTorch's way of setting an attribute
          std::vector<NodeId> arguments = syntax_.children(syntax_.child(node, Field::arguments));
          NodeId owner = syntax_.ancestor(node, Kind::class_definition);
          if (arguments.size() > 1 && syntax_.kind(arguments[0]) == Kind::string && owner != kNoNode) {
            std::string_view name = syntax_.text(arguments[0]);
            self_assignments_.push_back({owner, name.substr(1, name.size() - 2), arguments[1]});
          }
        }
        if (syntax_.kind(callee) == Kind::attribute) callee = syntax_.child(callee, Field::attribute);
        if (syntax_.kind(callee) == Kind::identifier) calls_[syntax_.text(callee)].push_back(node);
        break;
      }
      default: break;
    }
  }
  for (NodeId node = 0; node < syntax_.size(); ++node) {
    const Node& at = syntax_[node];
    switch (at.kind) {
      case Kind::import_statement: bind_import(node); break;
      case Kind::import_from_statement: bind_from(node); break;
      case Kind::function_definition:
      case Kind::class_definition: {
        NodeId name = syntax_.child(node, Field::name);
        if (name != kNoNode)
          bind(syntax_.text(name),
               {at.kind == Kind::class_definition ? Bound::class_ : Bound::function,
                name,
                node,
                kNoNode,
                at.begin,
                0,
                {},
                {}},
               scope_of_[node]);
        if (at.kind == Kind::function_definition) bind_parameters(node);
        break;
      }
      case Kind::lambda: bind_parameters(node); break;
      case Kind::assignment: {
        NodeId value = syntax_.child(node, Field::right);
        while (syntax_.kind(value) == Kind::assignment) value = syntax_.child(value, Field::right);
        NodeId left = syntax_.child(node, Field::left);
        if (left != kNoNode) bind_target(left, value, value == kNoNode ? Bound::unknown : Bound::assigned, at.end);
        break;
      }
      case Kind::augmented_assignment: {
        NodeId left = syntax_.child(node, Field::left);
        if (left != kNoNode) bind_target(left, syntax_.child(node, Field::right), Bound::unknown, at.end);
        break;
      }
      case Kind::named_expression: {
        NodeId name = syntax_.child(node, Field::name);
        if (name != kNoNode) bind_target(name, syntax_.child(node, Field::value), Bound::assigned, at.end);
        break;
      }
      case Kind::for_statement:
      case Kind::for_in_clause: {
        NodeId left = syntax_.child(node, Field::left), right = syntax_.child(node, Field::right);
        if (left != kNoNode) bind_target(left, right, Bound::loop, right == kNoNode ? at.begin : syntax_[right].end);
        break;
      }
      case Kind::as_pattern: {
        std::vector<NodeId> parts = syntax_.children(node);
        if (parts.size() == 2 && syntax_.kind(parts[1]) == Kind::as_pattern_target)
          bind_target(parts[1], parts[0], syntax_.kind(at.parent) == Kind::with_item ? Bound::with : Bound::unknown,
                      at.end);
        break;
      }
      default: break;
    }
  }
}

std::vector<uint32_t> Module::reaching(const std::vector<uint32_t>& all, NodeId use) const {
  if (all.size() <= 1) return all;
  constexpr size_t kMost = 64;  // more bindings than this say nothing anyway
  uint32_t at = syntax_[use].begin;
  auto later =
      std::partition_point(all.begin(), all.end(), [&](uint32_t index) { return bindings_[index].site < use; });
  // Backwards to the binding whose block holds the use: it hides all before it.
  std::vector<uint32_t> found, next_turn;
  for (auto i = later; i != all.begin() && found.size() < kMost;) {
    const Binding& binding = bindings_[*--i];
    if (binding.since > at) {
      next_turn.push_back(*i);
      continue;
    }
    found.push_back(*i);
    NodeId block = syntax_.parent(syntax_.statement(binding.site));
    if (binding.how == Bound::parameter || block == kNoNode || (use > block && use < syntax_[block].after)) break;
  }
  std::reverse(found.begin(), found.end());
  // Bindings later in a loop around the use reach it in the next turn.
  NodeId loop = kNoNode;
  for (NodeId up = syntax_.parent(use); up != kNoNode; up = syntax_.parent(up)) {
    if (syntax_.kind(up) == Kind::function_definition) break;
    if (syntax_.kind(up) == Kind::for_statement || syntax_.kind(up) == Kind::while_statement) loop = up;
  }
  const bool none = found.empty();
  if (!none && loop == kNoNode) return found;
  for (auto i = later; i != all.end() && next_turn.size() < kMost; ++i) next_turn.push_back(*i);
  for (uint32_t index : next_turn) {
    NodeId site = bindings_[index].site;
    if (none || (site > loop && site < syntax_[loop].after)) found.push_back(index);
  }
  return found;
}

std::vector<uint32_t> Module::lookup(std::string_view name, NodeId use, uint32_t& owner) const {
  uint32_t scope = scope_of_[use];
  const uint32_t start = scope;
  bool crossed_function = false;
  while (scope != kNoScope) {
    const Scope& at = scopes_[scope];
    bool visible = at.kind != ScopeKind::class_ || scope == start;
    if (scope != 0 && visible && std::find(at.globals.begin(), at.globals.end(), name) != at.globals.end()) {
      scope = 0;
      crossed_function = true;
      continue;
    }
    auto found = visible ? at.names.find(name) : at.names.end();
    if (found != at.names.end()) {
      owner = scope;
      if (!crossed_function) return reaching(found->second, use);
      return {found->second.begin(), found->second.begin() + std::min<size_t>(found->second.size(), 64)};
    }
    if (at.kind == ScopeKind::function) crossed_function = true;
    scope = at.parent;
  }
  owner = kNoScope;
  return {};
}

const std::vector<NodeId>& Module::calls_of(std::string_view name) const {
  static const std::vector<NodeId> none;
  auto found = calls_.find(name);
  return found == calls_.end() ? none : found->second;
}

}  // namespace cairn::migrate
