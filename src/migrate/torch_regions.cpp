// The statements that compute a loss (torch_regions.h).
#include "migrate/torch_regions.h"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::migrate {

NodeId Regions::block_of(NodeId statement) const { return syntax_.parent(statement); }

NodeId Regions::loop_of(NodeId node) const {
  for (NodeId up = syntax_.parent(node); up != kNoNode && up != scope_; up = syntax_.parent(up))
    if (syntax_.kind(up) == Kind::for_statement || syntax_.kind(up) == Kind::while_statement) return up;
  return kNoNode;
}

bool Regions::runs_module(NodeId within) const {
  for (NodeId node = within; node < syntax_[within].after; ++node) {
    if (syntax_.kind(node) != Kind::call) continue;
    NodeId callee = syntax_.child(node, Field::function);
    const Values values = torch_.file.resolver.values(torch_.file.module, callee);
    for (const Value& value : values) {
      if (value.is == Value::Is::instance && is_subclass(canonical(value.name).name, "torch.nn.Module")) return true;
      if (value.is == Value::Is::function || value.is == Value::Is::object) return true;
      if (value.is == Value::Is::method && is_subclass(canonical(value.name).name, "torch.nn.Module") &&
          torch_rows("torch.nn.Module:" + value.member).empty())
        return true;  // a method of a network that the script defines
    }
    if (!values.empty()) continue;
    if (syntax_.kind(callee) == Kind::attribute) {
      NodeId object = syntax_.child(callee, Field::object);
      if (syntax_.text(object) == "self") return true;
      bool module = is_module(torch_, object);
      if (module) return true;
    } else if (syntax_.kind(callee) == Kind::identifier) {
      uint32_t scope = kNoScope;
      torch_.file.module.lookup(syntax_.text(callee), callee, scope);
      if (scope != kNoScope) return true;  // a parameter: the model, the criterion
    } else {
      return true;  // self.layers[i](x)
    }
  }
  return false;
}

bool Regions::holds_event(NodeId statement) const {
  return std::any_of(events_.begin(), events_.end(), [&](const Event& event) {
    return (event.does == Does::backward || event.does == Does::step || event.does == Does::hand) &&
           event.call >= statement && event.call < syntax_[statement].after;
  });
}

Regions::Region Regions::region_of(NodeId before, const Names& wanted) const {
  Region region{before, {}, {}, {}, {}, {}};
  std::vector<NodeId> statements = syntax_.children(block_of(before));
  size_t end = std::find(statements.begin(), statements.end(), before) - statements.begin();
  size_t boundary = end;
  while (boundary > 0 && !holds_event(statements[boundary - 1])) --boundary;
  Names needed = wanted, through = wanted;  // of the statements from the boundary on, and before it
  size_t first = end, first_module = end;
  for (size_t i = end; i-- > 0;) {
    if (torch_.dropped(statements[i])) continue;
    Names made = sets(syntax_, statements[i]), used = reads(syntax_, statements[i]);
    if (!meets(made, i >= boundary ? needed : through)) continue;
    bool module = runs_module(statements[i]);
    const bool carries = meets(made, through);
    if (i >= boundary) {
      first = i;
      if (module) first_module = i;
    } else if (module) {
      Kind kind = syntax_.kind(statements[i]);
      if (kind == Kind::expression_statement) region.repeated.insert(region.repeated.begin(), statements[i]);
    }
    bool plain = syntax_.kind(statements[i]) == Kind::expression_statement &&
                 syntax_.kind(syntax_.first(statements[i])) == Kind::assignment;
    if (plain)
      for (const std::string& name : made) needed.erase(name), through.erase(name);
    if (!module && i < boundary) continue;
    needed.insert(used.begin(), used.end());
    if (carries) through.merge(reads_with_gradient(syntax_, statements[i]));
  }
  region.through = through;
  add_providers(region);
  if (first_module < end && region.calls.empty()) first = first_module;
  region.moved.assign(statements.begin() + first, statements.begin() + end);
  while (!region.moved.empty() && torch_.dropped(region.moved.back())) region.moved.pop_back();
  for (NodeId statement : region.moved) region.set.merge(sets(syntax_, statement));
  for (NodeId statement : region.repeated) region.set.merge(sets(syntax_, statement));
  return region;
}

// self.fake of another method, self.fake = self.net(x): that method is called again, so that gradients go through it.
void Regions::add_providers(Region& region) const {
  const NodeId owner = scope_ == 0 ? kNoNode : syntax_.ancestor(scope_, Kind::class_definition);
  for (const SelfAssignment& one : torch_.file.module.self_assignments()) {
    const NodeId method = syntax_.ancestor(one.value, Kind::function_definition);
    if (one.class_ != owner || owner == kNoNode || method == scope_ || method == kNoNode) continue;
    const std::string name = "self." + std::string(one.name);
    if (!region.through.contains(name) || syntax_.kind(one.value) != Kind::call || is_network(one.value)) continue;
    NodeId callee = syntax_.child(one.value, Field::function);
    if (!is_network(callee) || !sets_itself(name, method)) continue;
    const std::string_view called = syntax_.text(syntax_.child(method, Field::name));
    const bool plain = syntax_.children(syntax_.child(method, Field::parameters)).size() == 1 && called != "__init__";
    const std::string call = plain ? fmt::format("self.{}()", called) : "?" + name;
    if (std::find(region.calls.begin(), region.calls.end(), call) == region.calls.end()) region.calls.push_back(call);
  }
}

// Whether a method sets this attribute in its own body, not only in a function with events.
bool Regions::sets_itself(const std::string& name, NodeId method) const { return sets(syntax_, method).contains(name); }

// Whether a call may run a network: not a loss, not a function of a library, not a method of a list.
bool Regions::may_run_network(NodeId call) const {
  NodeId callee = syntax_.child(call, Field::function);
  if (is_network(callee)) return true;
  std::string text(syntax_.text(callee));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!torch_.file.resolver.names(torch_.file.module, callee).empty()) return false;
  const Values values = torch_.file.resolver.values(torch_.file.module, callee);
  if (std::any_of(values.begin(), values.end(), [](const Value& value) { return value.is == Value::Is::function; }))
    return true;
  if (has_word(text, "loss") || has_word(text, "crit") || has_word(text, "cross_entropy")) return false;
  if (syntax_.kind(callee) == Kind::identifier) {
    uint32_t scope = kNoScope;
    torch_.file.module.lookup(syntax_.text(callee), callee, scope);
    return scope != kNoScope;
  }
  return syntax_.kind(callee) != Kind::attribute || text.starts_with("self.") ||
         is_module(torch_, object_of(syntax_, call));
}

// Whether nothing that the loss is made of here has to do with parameters: a network ran elsewhere.
bool Regions::is_cut_off(const Region& region, NodeId subject) const {
  std::vector<NodeId> all = region.repeated;
  all.insert(all.end(), region.moved.begin(), region.moved.end());
  all.push_back(subject);
  for (NodeId statement : all)
    for (NodeId node = statement; node < syntax_[statement].after; ++node) {
      if (syntax_.kind(node) == Kind::call && may_run_network(node)) return false;
      if (syntax_.kind(node) != Kind::identifier && syntax_.kind(node) != Kind::attribute) continue;
      std::string_view name = syntax_.text(node);
      if (name.ends_with(".weight") || name.ends_with(".bias") || is_leaf(node)) return false;
    }
  return region.calls.empty();
}

// A variable that holds a parameter, or a list of them: made with requires_grad=True, or as nn.Parameter.
bool Regions::is_leaf(NodeId node) const {
  if (leaves(node).contains(std::string(syntax_.text(node)))) return true;
  auto made = [&](NodeId value) {
    std::string_view text = syntax_.text(value);
    return value != kNoNode && (has_word(text, "requires_grad") || has_word(text, "Parameter("));
  };
  uint32_t scope = kNoScope;
  if (syntax_.kind(node) == Kind::identifier)
    for (uint32_t index : torch_.file.module.lookup(syntax_.text(node), node, scope))
      if (made(torch_.file.module.bindings()[index].value)) return true;
  for (const SelfAssignment& one : torch_.file.module.self_assignments())
    if (syntax_.text(node) == "self." + std::string(one.name) && made(one.value)) return true;
  return torch_.file.holds(std::string(syntax_.text(node)) + ".requires_grad");
}

void Regions::walk_block(NodeId block, Walk& walk) const {
  for (NodeId inner : syntax_.children(block)) note_carried(inner, walk);
}

void Regions::note_reads(const Names& used, Walk& walk) const {
  for (const std::string& name : used) {
    if (!walk.region.set.contains(name) || walk.sure.contains(name) || name.find('.') != name.npos) continue;
    if (!walk.perhaps.contains(name) || is_set_before(name, walk.region)) walk.carried.insert(name);
  }
}

// Whether the function sets a name in front of the region, or has it as a parameter.
bool Regions::is_set_before(const std::string& name, const Region& region) const {
  const NodeId first = region.moved.empty() ? region.before : region.moved.front();
  const NodeId parameters = syntax_.child(scope_, Field::parameters);
  for (NodeId node = scope_; node < first; ++node) {
    const NodeId around = syntax_.ancestor(node, Kind::function_definition);
    if (syntax_.kind(node) != Kind::identifier || syntax_.text(node) != name ||
        (around == kNoNode ? 0 : around) != scope_)
      continue;
    if (is_target(syntax_, node, true) ||
        (parameters != kNoNode && node > parameters && node < syntax_[parameters].after))
      return true;
  }
  return false;
}

// The ways through an if statement; what all of them set is sure behind it.
void Regions::walk_branches(NodeId statement, Walk& walk) const {
  const Walk before = walk;
  std::vector<Walk> ends;
  bool otherwise = false;
  for (NodeId part : syntax_.children(statement)) {
    const Kind kind = syntax_.kind(part);
    Walk branch = before;
    if (kind == Kind::block) {
      walk_block(part, branch);
    } else if (kind == Kind::elif_clause) {
      note_reads(reads(syntax_, syntax_.child(part, Field::condition)), branch);
      walk_block(syntax_.child(part, Field::consequence), branch);
    } else if (kind == Kind::else_clause) {
      otherwise = true;
      walk_block(syntax_.child(part, Field::body), branch);
    } else {
      continue;
    }
    walk.carried.merge(Names(branch.carried));
    walk.perhaps.merge(sets(syntax_, part));
    ends.push_back(std::move(branch));
  }
  if (!otherwise || ends.empty()) return;
  for (const std::string& name : ends[0].sure)
    if (std::all_of(ends.begin(), ends.end(), [&](const Walk& one) { return one.sure.contains(name); }))
      walk.sure.insert(name);
}

void Regions::note_carried(NodeId statement, Walk& walk) const {
  const Kind kind = syntax_.kind(statement);
  const NodeId body = syntax_.child(statement, Field::body);
  const bool loop = kind == Kind::for_statement || kind == Kind::while_statement;
  if (kind == Kind::if_statement) {
    note_reads(reads(syntax_, syntax_.child(statement, Field::condition)), walk);
    return walk_branches(statement, walk);
  }
  if (body == kNoNode || (!loop && kind != Kind::with_statement)) {
    note_reads(reads(syntax_, statement), walk);
    walk.sure.merge(sets(syntax_, statement));
    return;
  }
  for (NodeId part : syntax_.children(statement))
    if (part != body && syntax_[part].field != Field::left) note_reads(reads(syntax_, part), walk);
  Walk inside = walk;
  if (kind == Kind::for_statement) add_targets(syntax_, syntax_.child(statement, Field::left), inside.sure);
  walk_block(body, inside);
  walk.carried.merge(inside.carried);
  (loop ? walk.perhaps : walk.sure).merge(sets(syntax_, statement));  // a loop may have no turn
}

// Names of the region that it reads before it sets them.
Names Regions::carried(const Region& region) const {
  Walk walk{region, {}, {}, {}};
  std::vector<NodeId> all = region.repeated;
  all.insert(all.end(), region.moved.begin(), region.moved.end());
  for (NodeId statement : all) note_carried(statement, walk);
  return walk.carried;
}

// Names of the region that other code reads: after it, or earlier in the next turn of a loop.
std::vector<std::string> Regions::results(const Region& region, NodeId backward, const Names& given) const {
  Names own, found;
  for (NodeId statement : region.moved) own.merge(sets(syntax_, statement));
  for (NodeId statement : region.repeated)
    for (const std::string& name : sets(syntax_, statement)) own.erase(name);
  NodeId loop = loop_of(backward);
  uint32_t first = region.moved.empty() ? 0 : syntax_[region.moved.front()].begin;
  for (NodeId node = scope_; node < syntax_[scope_].after; ++node) {
    Kind kind = syntax_.kind(node);
    if ((kind != Kind::identifier && kind != Kind::attribute) || is_part_of_name(syntax_, node)) continue;
    std::string name(syntax_.text(node));
    if (!own.contains(name)) continue;
    uint32_t at = syntax_[node].begin;
    if (is_target(syntax_, node, false)) continue;
    if (at > syntax_[backward].end || (loop != kNoNode && at > syntax_[loop].begin && at < first)) found.insert(name);
  }
  for (const std::string& name : given)
    if (own.contains(name) && loop != kNoNode) found.insert(name);
  std::vector<std::string> ordered;  // in the order in which they are set
  for (NodeId statement : region.moved)
    for (const std::string& name : sets(syntax_, statement))
      if (found.contains(name) && std::find(ordered.begin(), ordered.end(), name) == ordered.end())
        ordered.push_back(name);
  return ordered;
}

// A variable whose gradient the script reads: x of x.grad, where x is no variable of a loop over parameters.
Names Regions::leaves(NodeId backward) const {
  Names found;
  for (NodeId node = 0; node < syntax_.size(); ++node) {
    if (syntax_.kind(node) != Kind::attribute || syntax_.text(syntax_.child(node, Field::attribute)) != "grad")
      continue;
    NodeId object = syntax_.child(node, Field::object), up = node;
    while (up != kNoNode && syntax_.kind(up) != Kind::for_statement && syntax_.kind(up) != Kind::for_in_clause &&
           syntax_.kind(up) != Kind::list_comprehension && syntax_.kind(up) != Kind::generator_expression)
      up = syntax_.parent(up);
    const std::string name(syntax_.text(object));
    Names looped;
    for (; up != kNoNode; up = syntax_.parent(up)) {
      if (syntax_.kind(up) == Kind::for_statement) add_targets(syntax_, syntax_.child(up, Field::left), looped);
      for (NodeId part : syntax_.children(up))
        if (syntax_.kind(part) == Kind::for_in_clause) add_targets(syntax_, syntax_.child(part, Field::left), looped);
    }
    const bool plain = name.find_first_of("([") == name.npos && name.find('.') == name.rfind('.') &&
                       (loop_of(node) == loop_of(backward) || name.starts_with("self."));
    if (plain && !looped.contains(name)) found.insert(name);
  }
  return found;
}

// A variable that holds a network, not a loss function or a layer's output.
bool Regions::is_network(NodeId node) const {
  if (!is_module(torch_, node)) return false;
  for (const Value& value : Values(torch_.file.resolver.values(torch_.file.module, node)))
    if (value.is == Value::Is::instance && canonical(value.name).name.ends_with("Loss")) return false;
  return true;
}

bool Regions::is_network_text(const std::string& name) const {
  for (NodeId node = 0; node < syntax_.size(); ++node)
    if ((syntax_.kind(node) == Kind::identifier || syntax_.kind(node) == Kind::attribute) &&
        syntax_.text(node) == name && is_network(node))
      return true;
  return false;
}

}  // namespace cairn::migrate
