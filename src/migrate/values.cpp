// Evaluates expressions to sets of possible values, memoised per expression; cycles and deep chains end in "unknown".
#include <algorithm>

#include "migrate/api_table.h"
#include "migrate/value_sets.h"

namespace cairn::migrate {
namespace {

constexpr int kMaxDepth = 60;  // of nested evaluation; beyond it nothing is claimed

}  // namespace

const Values& Resolver::values(const Module& module, NodeId expression) {
  uint64_t key = (static_cast<uint64_t>(project_.index_of(&module)) << 32) | expression;
  auto [entry, fresh] = known_.try_emplace(key);
  Values& found = entry->second;  // stays where it is while others are added
  if (!fresh || depth_ >= kMaxDepth) return found;
  ++depth_;
  found = evaluate(module, expression);  // whoever walks an entry walks a finished one, or an empty one
  --depth_;
  return found;
}

Values Resolver::evaluate(const Module& module, NodeId node) {
  const Syntax& syntax = module.syntax();
  switch (syntax.kind(node)) {
    case Kind::identifier: return of_identifier(module, node);
    case Kind::attribute: return of_attribute(module, node);
    case Kind::call: return of_call(module, node);
    case Kind::parenthesized_expression: {
      NodeId inner = syntax.unwrap(node);
      return inner == node ? Values{} : values(module, inner);
    }
    case Kind::await: {
      std::vector<NodeId> inner = syntax.children(node);
      return inner.empty() ? Values{} : values(module, inner[0]);
    }
    case Kind::named_expression: {
      NodeId value = syntax.child(node, Field::value);
      return value == kNoNode ? Values{} : values(module, value);
    }
    case Kind::conditional_expression: {
      std::vector<NodeId> parts = syntax.children(node);
      Values found;
      if (parts.size() == 3) {
        add_all(found, values(module, parts[0]));
        add_all(found, values(module, parts[2]));
      }
      return found;
    }
    case Kind::boolean_operator: {
      Values found;
      for (NodeId part : syntax.children(node)) add_all(found, values(module, part));
      return found;
    }
    case Kind::lambda: return {defined(Value::Is::function, module, node)};
    case Kind::binary_operator:
    case Kind::unary_operator:
    case Kind::comparison_operator: {
      // Arithmetic with a tensor of PyTorch gives one; of other values nothing is known.
      for (NodeId part : syntax.children(node))
        if (syntax.kind(part) != Kind::op && is_tensor(module, part)) return {instance(std::string(kTensor))};
      return {};
    }
    case Kind::subscript: return of_subscript(module, node);
    case Kind::string:
    case Kind::concatenated_string:
    case Kind::integer:
    case Kind::float_:
    case Kind::none:
    case Kind::true_:
    case Kind::false_:
    case Kind::list:
    case Kind::tuple:
    case Kind::dictionary:
    case Kind::set:
    case Kind::expression_list:
    case Kind::list_comprehension:
    case Kind::dictionary_comprehension:
    case Kind::set_comprehension: return {defined(Value::Is::literal, module, node)};
    default: return {};
  }
}

Values Resolver::of_identifier(const Module& module, NodeId node) {
  std::string_view name = module.syntax().text(node);
  uint32_t scope = kNoScope;
  Values found;
  for (uint32_t index : module.lookup(name, node, scope)) add_all(found, of_binding(module, module.bindings()[index]));
  if (scope == kNoScope || scope == 0) star_member(module, name, found);
  if (scope == kNoScope && found.empty() &&
      (name == "super" || name == "getattr" || name == "dict" || name == "list" || name == "tuple"))
    found.push_back(named("builtins." + std::string(name)));
  return found;
}

void Resolver::star_member(const Module& module, std::string_view name, Values& found) {
  for (const Import& import : module.imports()) {
    if (!import.star) continue;
    std::string path = project_.find(module.path(), import.module);
    if (path.empty()) {
      if (star_exports(import.module, name)) {
        // The star import of npu_init brings in TensorFlow under its usual name.
        if (import.module.starts_with("npu_") && name == "tf")
          add(found, named("tensorflow"));
        else
          add(found, named(import.module + "." + std::string(name)));
      }
    } else if (const Module* other = project_.module(path); other && other != &module && !name.starts_with('_')) {
      add_all(found, module_member(*other, std::string(name)));
    }
  }
}

Values Resolver::of_binding(const Module& module, const Binding& binding) {
  switch (binding.how) {
    case Bound::import:
    case Bound::from_import: {
      auto [entry, fresh] = imported_.try_emplace(&binding);
      Values& known = entry->second;
      if (fresh)
        known = binding.how == Bound::import ? of_import(module, binding.module)
                                             : of_member(module, binding.module, binding.member);
      return known;
    }
    case Bound::assigned:
    case Bound::with: return binding.value == kNoNode ? Values{} : values(module, binding.value);
    case Bound::function: {
      // A property or a wrapped function is not simply called; static and class methods and tf.function are.
      return {defined(Value::Is::function, module, binding.value)};
    }
    case Bound::class_: return {defined(Value::Is::class_, module, binding.value)};
    case Bound::parameter: return of_parameter(module, binding);
    case Bound::part: return parts_of(module, binding.value);
    case Bound::loop: return items_of(module, binding.value);
    default: return {};
  }
}

bool Resolver::is_tensor(const Module& module, NodeId node) {
  for (const Value& value : values(module, node))
    if (value.is == Value::Is::instance && value.name == kTensor) return true;
  return false;
}

NodeId Resolver::enclosing_class(const Module& module, NodeId function) const {
  const Syntax& syntax = module.syntax();
  for (NodeId up = syntax.parent(function); up != kNoNode; up = syntax.parent(up)) {
    if (syntax.kind(up) == Kind::class_definition) return up;
    if (syntax.kind(up) == Kind::function_definition) return kNoNode;
  }
  return kNoNode;
}

Values Resolver::of_parameter(const Module& module, const Binding& binding) {
  const Syntax& syntax = module.syntax();
  Values found;
  NodeId function = binding.owner;
  NodeId owner = syntax.kind(function) == Kind::function_definition ? enclosing_class(module, function) : kNoNode;
  NodeId decorated = syntax.parent(function);
  bool is_static = syntax.kind(decorated) == Kind::decorated_definition &&
                   syntax.text(decorated).find("@staticmethod") != std::string_view::npos;
  bool bound_self = owner != kNoNode && !is_static;
  if (bound_self && binding.index == 0) return {defined(Value::Is::object, module, owner)};
  if (owner != kNoNode && syntax.text(syntax.child(function, Field::name)) == "forward")
    for (const std::string& base : external_bases(module, owner))
      if (base.starts_with("torch.nn.")) return {instance(std::string(kTensor))};
  if (binding.value != kNoNode && syntax.kind(binding.value) != Kind::none)
    add_all(found, values(module, binding.value));
  NodeId annotation = syntax.kind(syntax.parent(binding.site)) == Kind::typed_parameter
                          ? syntax.child(syntax.parent(binding.site), Field::type)
                          : kNoNode;
  if (annotation != kNoNode && syntax.first(annotation) != kNoNode)
    for (const Value& value : values(module, syntax.first(annotation))) {
      if (value.is == Value::Is::named) add(found, instance(value.name));
      if (value.is == Value::Is::class_) add(found, defined(Value::Is::object, *value.module, value.node));
    }
  for (const auto& [caller, argument] : arguments_of(module, binding)) add_all(found, values(*caller, argument));
  return found;
}

std::vector<std::pair<const Module*, NodeId>> Resolver::arguments_of(const Module& module, const Binding& binding) {
  std::vector<std::pair<const Module*, NodeId>> found;
  const Syntax& syntax = module.syntax();
  const NodeId function = binding.owner, name = syntax.child(function, Field::name);
  if (name == kNoNode || binding.index < 0) return found;
  const NodeId owner = enclosing_class(module, function), decorated = syntax.parent(function);
  const bool is_static = syntax.kind(decorated) == Kind::decorated_definition &&
                         syntax.text(decorated).find("@staticmethod") != std::string_view::npos;
  const int position = binding.index - (owner != kNoNode && !is_static ? 1 : 0);
  std::string_view called = syntax.text(name);
  NodeId definition = function;
  if (called == "__init__" && owner != kNoNode && syntax.child(owner, Field::name) != kNoNode) {
    called = syntax.text(syntax.child(owner, Field::name));
    definition = owner;
  }
  const std::string_view parameter = syntax.text(binding.site);
  auto collect = [&](const Module& caller) {
    const Syntax& there = caller.syntax();
    const std::vector<NodeId>& calls = caller.calls_of(called);
    for (size_t i = 0; i < calls.size() && i < 8; ++i) {
      if (&caller != &module) {  // another file's function may have the same name
        const Values callees = values(caller, there.child(calls[i], Field::function));
        if (std::none_of(callees.begin(), callees.end(),
                         [&](const Value& value) { return value.module == &module && value.node == definition; }))
          continue;
      }
      const NodeId arguments = there.child(calls[i], Field::arguments);
      if (there.kind(arguments) != Kind::argument_list) continue;
      int at = 0;
      for (NodeId argument : there.children(arguments)) {
        const Kind kind = there.kind(argument);
        if (kind == Kind::list_splat || kind == Kind::dictionary_splat) break;
        if (kind != Kind::keyword_argument) {
          if (at++ == position) found.push_back({&caller, argument});
        } else if (const NodeId value = there.child(argument, Field::value);
                   value != kNoNode && there.text(there.child(argument, Field::name)) == parameter) {
          found.push_back({&caller, value});
        }
      }
    }
  };
  collect(module);
  if (found.empty())
    for (size_t importer : project_.importers(project_.index_of(&module))) collect(*project_.modules()[importer]);
  return found;
}

Values Resolver::of_import(const Module& module, const std::string& name) {
  std::string path = project_.find(module.path(), name);
  if (path.empty()) return {named(name)};
  if (const Module* found = project_.module(path)) return {defined(Value::Is::module, *found, 0)};
  return {};
}

Values Resolver::of_member(const Module& importer, const std::string& from, const std::string& member) {
  std::string path = project_.find(importer.path(), from);
  if (path.empty()) return from.starts_with('.') ? Values{} : Values{named(from + "." + member)};
  std::string dotted = from.ends_with('.') ? from + member : from + "." + member;
  std::string submodule = project_.find(importer.path(), dotted);
  if (const Module* module = project_.module(path); module && module != &importer) {
    Values found = module_member(*module, member);
    if (!found.empty()) return found;
  }
  if (const Module* module = project_.module(submodule)) return {defined(Value::Is::module, *module, 0)};
  return {};
}

const Values& Resolver::module_member(const Module& module, const std::string& member) {
  auto [entry, fresh] = members_.try_emplace(std::to_string(project_.index_of(&module)) + "." + member);
  Values& kept = entry->second;
  if (!fresh || depth_ >= kMaxDepth) return kept;
  ++depth_;
  Values found;
  const auto& names = module.scopes()[0].names;
  auto bound = names.find(member);
  if (bound != names.end()) {
    for (uint32_t index : bound->second) add_all(found, of_binding(module, module.bindings()[index]));
  } else {
    star_member(module, member, found);
    if (found.empty() && module.path().ends_with("__init__.py"))
      if (const Module* inner = project_.module(project_.find(module.path(), "." + member)))
        found.push_back(defined(Value::Is::module, *inner, 0));
  }
  --depth_;
  return kept = std::move(found);
}

Values Resolver::of_attribute(const Module& module, NodeId node) {
  const Syntax& syntax = module.syntax();
  NodeId object = syntax.child(node, Field::object), attribute = syntax.child(node, Field::attribute);
  if (object == kNoNode || attribute == kNoNode) return {};
  std::string name(syntax.text(attribute));
  Values found;
  // import tensorflow.compat.v1 also binds the chain below the first name; the project's packages likewise.
  for (const Value& value : values(module, object)) add_all(found, attribute_of(value, name));
  return found;
}

Values Resolver::attribute_of(const Value& value, const std::string& name) {
  switch (value.is) {
    case Value::Is::named: return {named(value.name + "." + name)};
    case Value::Is::instance:
      if (value.name == kTensor && (name == "data" || name == "grad" || name == "T" || name == "mT")) return {value};
      if (value.name.starts_with("torch.nn.") && (name == "weight" || name == "bias"))
        return {instance(std::string(kTensor))};
      return {{Value::Is::method, value.name, name, nullptr, kNoNode}};
    case Value::Is::module: return module_member(*value.module, name);
    case Value::Is::class_: return own_or_inherited(*value.module, value.node, name);
    case Value::Is::object: return read(own_or_inherited(*value.module, value.node, name));
    case Value::Is::super: return read(class_attribute(*value.module, value.node, name, true, 0));
    default: return {};
  }
}

const Values& Resolver::own_or_inherited(const Module& module, NodeId class_node, const std::string& name) {
  auto [entry, fresh] =
      members_.try_emplace(std::to_string(project_.index_of(&module)) + ":" + std::to_string(class_node) + "." + name);
  Values& kept = entry->second;
  if (!fresh || depth_ >= kMaxDepth) return kept;
  ++depth_;
  Values found = class_attribute(module, class_node, name, false, 0);
  --depth_;
  return kept = std::move(found);
}

Values Resolver::class_attribute(const Module& module, NodeId class_node, const std::string& name, bool skip_own,
                                 int depth) {
  Values found;
  if (depth > 20) return found;
  if (!skip_own) {
    uint32_t scope = module.scope_opened_by(class_node);
    if (scope != kNoScope) {
      auto bound = module.scopes()[scope].names.find(name);
      if (bound != module.scopes()[scope].names.end())
        for (uint32_t index : bound->second) add_all(found, of_binding(module, module.bindings()[index]));
    }
    for (const SelfAssignment& assignment : module.self_assignments())
      if (assignment.class_ == class_node && assignment.name == name && assignment.value != kNoNode)
        add_all(found, values(module, assignment.value));
    if (!found.empty()) return found;
  }
  const Syntax& syntax = module.syntax();
  NodeId bases = syntax.child(class_node, Field::superclasses);
  if (bases == kNoNode) return found;
  for (NodeId base : syntax.children(bases)) {
    if (syntax.kind(base) == Kind::keyword_argument) continue;
    for (const Value& value : values(module, base)) {
      if (value.is == Value::Is::class_ && !(value.module == &module && value.node == class_node))
        add_all(found, class_attribute(*value.module, value.node, name, false, depth + 1));
      else if (value.is == Value::Is::named)
        add(found, {Value::Is::method, value.name, name, nullptr, kNoNode});
    }
    if (!found.empty()) break;
  }
  return found;
}

Values Resolver::of_call(const Module& module, NodeId node) {
  Values found;
  if (NodeId callee = module.syntax().child(node, Field::function); callee != kNoNode)
    for (const Value& value : values(module, callee)) add_called(found, value, module, node);
  return found;
}

void Resolver::add_called(Values& found, const Value& value, const Module& module, NodeId node) {
  auto add_instance = [&](const std::string& callee) {
    if (std::string given = returned_class(callee); !given.empty()) add(found, instance(given));
  };
  switch (value.is) {
    case Value::Is::named:
      if (value.name == "builtins.super") {
        NodeId function = module.syntax().ancestor(node, Kind::function_definition);
        NodeId owner = function == kNoNode ? kNoNode : enclosing_class(module, function);
        if (owner != kNoNode) add(found, defined(Value::Is::super, module, owner));
      } else if (value.name == "builtins.getattr") {
        add_attribute_by_name(found, module, node);
      } else if (value.name == "copy.deepcopy" || value.name == "copy.copy") {
        const std::vector<NodeId> given = module.syntax().children(module.syntax().child(node, Field::arguments));
        if (!given.empty()) add_all(found, values(module, given[0]));
      } else if (value.name.starts_with("builtins.")) {
        add(found, defined(Value::Is::literal, module, node));
      } else if (value.name == "functools.partial") {
        add(found, defined(Value::Is::partial, module, node));
      } else {
        add_instance(canonical(value.name).name);
      }
      break;
    case Value::Is::method: add_instance(canonical(value.name).name + ":" + value.member); break;
    case Value::Is::instance: add_instance(canonical(value.name).name + ":__call__"); break;
    case Value::Is::object:
      // A module of PyTorch that is called runs its forward().
      for (const std::string& base : external_bases(*value.module, value.node)) {
        if (!base.starts_with("torch.nn.")) continue;
        for (const Value& forward : own_or_inherited(*value.module, value.node, "forward"))
          if (forward.is == Value::Is::function) add_all(found, returned(*forward.module, forward.node));
        if (found.empty()) add(found, instance(std::string(kTensor)));
      }
      break;
    case Value::Is::class_: add(found, defined(Value::Is::object, *value.module, value.node)); break;
    case Value::Is::function: add_all(found, returned(*value.module, value.node)); break;
    case Value::Is::partial:
      for (const Value& wrapped : wrapped_by(value))
        if (wrapped.is != Value::Is::partial) add_called(found, wrapped, module, node);
      break;
    default: break;
  }
}

const Values& Resolver::wrapped_by(const Value& partial) {
  static const Values none;
  const Syntax& syntax = partial.module->syntax();
  const std::vector<NodeId> arguments = syntax.children(syntax.child(partial.node, Field::arguments));
  return arguments.empty() ? none : values(*partial.module, arguments[0]);
}

/// getattr(tf.train, "AdamOptimizer"), the name written out there or kept in a variable.
void Resolver::add_attribute_by_name(Values& found, const Module& module, NodeId call) {
  const std::vector<NodeId> arguments = module.syntax().children(module.syntax().child(call, Field::arguments));
  if (arguments.size() < 2) return;
  std::string name;
  for (const auto& [there, literal] : literals(module, arguments[1]))
    if (string_value(there->syntax(), literal, name))
      for (const Value& object : values(module, arguments[0])) add_all(found, attribute_of(object, name));
}

const Values& Resolver::returned(const Module& module, NodeId function) {
  auto [entry, fresh] = returned_.try_emplace((static_cast<uint64_t>(project_.index_of(&module)) << 32) | function);
  Values& kept = entry->second;
  if (!fresh) return kept;
  const Syntax& syntax = module.syntax();
  NodeId body = syntax.child(function, Field::body);
  if (syntax.kind(function) == Kind::lambda) return kept = body == kNoNode ? Values{} : values(module, body);
  Values found;
  for (NodeId node = body; node < syntax[body].after;) {
    Kind kind = syntax.kind(node);
    if (kind == Kind::function_definition || kind == Kind::class_definition || kind == Kind::lambda) {
      node = syntax[node].after;
      continue;
    }
    if (kind == Kind::return_statement) {
      std::vector<NodeId> value = syntax.children(node);
      if (value.size() == 1) add_all(found, values(module, value[0]));
    }
    ++node;
  }
  return kept = std::move(found);
}

std::vector<ApiName> Resolver::names(const Module& module, NodeId expression) {
  std::vector<ApiName> found;
  for (const Value& value : values(module, expression)) {
    if (value.is != Value::Is::named && value.is != Value::Is::method) continue;
    ApiName name = canonical(value.name);
    if (value.is == Value::Is::method) name.name += ":" + value.member;
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(std::move(name));
  }
  return found;
}

std::vector<std::string> Resolver::external_bases(const Module& module, NodeId class_node) {
  std::vector<std::string> found;
  std::vector<std::pair<const Module*, NodeId>> todo = {{&module, class_node}};
  for (size_t i = 0; i < todo.size() && i < 64; ++i) {
    auto [at, node] = todo[i];
    NodeId bases = at->syntax().child(node, Field::superclasses);
    if (bases == kNoNode) continue;
    for (NodeId base : at->syntax().children(bases)) {
      if (at->syntax().kind(base) == Kind::keyword_argument) continue;
      for (const Value& value : values(*at, base)) {
        std::pair<const Module*, NodeId> next{value.module, value.node};
        if (value.is == Value::Is::named) found.push_back(canonical(value.name).name);
        if (value.is == Value::Is::class_ && std::find(todo.begin(), todo.end(), next) == todo.end())
          todo.push_back(next);
      }
    }
  }
  return found;
}

bool Resolver::is_instance(const Module& module, NodeId expression, std::string_view klass, bool* sure) {
  bool any = false, all = true;
  for (const Value& value : values(module, expression)) {
    bool matches = false;
    if (value.is == Value::Is::instance) {
      matches = is_subclass(canonical(value.name).name, klass);
    } else if (value.is == Value::Is::object) {
      for (const std::string& base : external_bases(*value.module, value.node))
        matches = matches || is_subclass(base, klass);
    } else if (value.is == Value::Is::literal && value.module->syntax().kind(value.node) == Kind::none) {
      continue;
    }
    any = any || matches;
    all = all && matches;
  }
  if (sure) *sure = any && all;
  return any;
}

std::vector<std::pair<const Module*, NodeId>> Resolver::literals(const Module& module, NodeId expression) {
  std::vector<std::pair<const Module*, NodeId>> found;
  for (const Value& value : values(module, expression))
    if (value.is == Value::Is::literal) found.push_back({value.module, value.node});
  return found;
}

}  // namespace cairn::migrate
