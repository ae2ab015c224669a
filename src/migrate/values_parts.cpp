// What the parts of a value may be: members by an index, targets of one assignment, what loops go through.
#include "migrate/value_sets.h"

namespace cairn::migrate {
namespace {

/// The dictionary of `dictionary.items()` and `dictionary.values()`, kNoNode for other expressions.
NodeId items_call(const Syntax& syntax, NodeId call) {
  const NodeId callee = syntax.kind(call) == Kind::call ? syntax.child(call, Field::function) : kNoNode;
  const std::string_view method = syntax.text(syntax.child(callee, Field::attribute));
  return method == "items" || method == "values" || method == "iteritems" ? syntax.child(callee, Field::object)
                                                                          : kNoNode;
}

/// Whether a method is written behind @property or its like: it is called where it is read.
bool is_property(const Syntax& syntax, NodeId function) {
  const NodeId decorated = syntax.parent(function);
  if (syntax.kind(decorated) != Kind::decorated_definition) return false;
  for (NodeId part : syntax.children(decorated)) {
    if (syntax.kind(part) != Kind::decorator) continue;
    const std::string_view name = syntax.text(syntax.first(part));
    if (name.ends_with("property") || name.ends_with(".setter") || name.ends_with(".getter")) return true;
  }
  return false;
}

}  // namespace

/// What members of an object give when they are read.
Values Resolver::read(const Values& members) {
  Values found;
  for (const Value& value : Values(members))
    if (value.is == Value::Is::function && is_property(value.module->syntax(), value.node))
      add_all(found, returned(*value.module, value.node));
    else
      add(found, value);
  return found;
}

/// A part of a tensor is a tensor, that of a dictionary, list or tuple written out is any of its members.
Values Resolver::of_subscript(const Module& module, NodeId node) {
  const NodeId whole = module.syntax().child(node, Field::value);
  if (is_tensor(module, whole)) return {instance(std::string(kTensor))};
  Values found;
  for (const Value& value : values(module, whole)) {
    if (value.is != Value::Is::literal) continue;
    const Syntax& syntax = value.module->syntax();
    const Kind kind = syntax.kind(value.node);
    if (kind != Kind::dictionary && kind != Kind::list && kind != Kind::tuple) continue;
    for (NodeId member : syntax.children(value.node)) {
      if (syntax.kind(member) == Kind::pair) member = syntax.child(member, Field::value);
      add_all(found, values(*value.module, member));
    }
  }
  return found;
}

Values Resolver::parts_of(const Module& module, NodeId whole) {
  Values found;
  if (whole == kNoNode) return found;
  for (const Value& value : values(module, whole)) {
    if (value.is == Value::Is::instance && value.name == kTensor) add(found, value);
    if (value.is != Value::Is::literal) continue;
    Kind kind = value.module->syntax().kind(value.node);
    if (kind == Kind::tuple || kind == Kind::expression_list || kind == Kind::list)
      for (NodeId part : value.module->syntax().children(value.node)) add_all(found, values(*value.module, part));
  }
  return found;
}

Values Resolver::items_of(const Module& module, NodeId iterable) {
  const Syntax& syntax = module.syntax();
  Values found;
  if (iterable == kNoNode) return found;
  if (syntax.kind(iterable) == Kind::call) {  // enumerate(loader), zip(a, b), tqdm(loader)
    std::string_view callee = syntax.text(syntax.child(iterable, Field::function));
    if (callee == "enumerate" || callee == "zip" || callee == "tqdm" || callee == "tqdm.tqdm" || callee == "reversed") {
      for (NodeId argument : syntax.children(syntax.child(iterable, Field::arguments)))
        if (syntax.kind(argument) != Kind::keyword_argument) add_all(found, items_of(module, argument));
      return found;
    }
  }
  if (const NodeId dictionary = items_call(syntax, iterable); dictionary != kNoNode) {
    for (const auto& [there, literal] : literals(module, dictionary)) add_members(found, *there, literal);
    return found;
  }
  for (const Value& value : values(module, iterable))
    if (value.is == Value::Is::instance && (value.name == kTensor || value.name == "torch.utils.data.DataLoader"))
      add(found, instance(std::string(kTensor)));
    else if (value.is == Value::Is::instance &&
             (value.name == "torch.nn.ModuleList" || value.name == "torch.nn.Sequential"))
      add(found, instance("torch.nn.Module"));
    else if (value.is == Value::Is::literal && value.module->syntax().kind(value.node) != Kind::dictionary)
      add_members(found, *value.module, value.node);
  return found;
}

/// What a loop over a list, tuple, set, or over the items of a dictionary that is written out may give: callables alone count, so that
/// data stay what they were. Pairs give both of their parts.
void Resolver::add_members(Values& found, const Module& module, NodeId literal) {
  const Syntax& syntax = module.syntax();
  const Kind kind = syntax.kind(literal);
  if (kind != Kind::list && kind != Kind::tuple && kind != Kind::set && kind != Kind::dictionary &&
      kind != Kind::expression_list)
    return;
  auto add_member = [&](NodeId member) {
    for (const Value& value : values(module, member))
      if (value.is != Value::Is::literal) add(found, value);
  };
  for (NodeId member : syntax.children(literal)) {
    if (syntax.kind(member) == Kind::pair) member = syntax.child(member, Field::value);
    if (member == kNoNode) continue;
    if (syntax.kind(member) == Kind::tuple || syntax.kind(member) == Kind::list)
      for (NodeId part : syntax.children(member)) add_member(part);
    else
      add_member(member);
  }
}

}  // namespace cairn::migrate
