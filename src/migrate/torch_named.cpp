// Names of PyTorch that only the run knows: getattr() of a module, and variables that hold one of several layers' classes. A helper has
// the same names, and makes a layer by PyTorch's own arguments.
#include <fmt/format.h>

#include <algorithm>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

// The helper that knows a module's names; "" of other modules.
std::string_view helper_for(std::string_view module) {
  if (module == "torch.optim") return "optimizer_named";
  if (module == "torch.optim.lr_scheduler") return "schedule_named";
  if (module == "torch.nn") return "layer_named";
  if (module == "torch.nn.functional" || module == "torch") return "function_named";
  return "";
}

// partial(nn.BatchNorm2d, affine=True) keeps PyTorch's words for a call that is to come.
bool is_partial(TorchFile& torch, NodeId call) {
  const std::vector<ApiName> names =
      torch.file.resolver.names(torch.file.module, torch.syntax.child(call, Field::function));
  return names.size() == 1 && names[0].name == "functools.partial";
}

// The helper for the class that a partial() is of, and the class's last name.
std::pair<std::string_view, std::string> partial_class(TorchFile& torch, NodeId call) {
  const std::vector<NodeId> arguments = torch.syntax.children(torch.syntax.child(call, Field::arguments));
  if (arguments.size() < 2) return {};
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, arguments[0]))
    if (const size_t dot = name.name.rfind('.'); dot != name.name.npos && name.name.starts_with("torch."))
      if (std::string_view helper = helper_for(name.name.substr(0, dot)); !helper.empty() && helper != "function_named")
        return {helper, name.name.substr(dot + 1)};
  return {};
}

bool is_known_layer(const std::string& name) {
  constexpr std::string_view prefix = "torch.nn.";
  return name.starts_with(prefix) &&
         torch_helper("layer_named").find("\"" + name.substr(prefix.size()) + "\"") != std::string_view::npos;
}

// Whether a call without arguments gives other numbers here: nn.GELU() approximates.
bool needs_arguments(const std::string& name) {
  const std::vector<TorchRow>& rows = torch_rows(name);
  return !rows.empty() && rows[0].call && !rows[0].target.ends_with("()") &&
         std::all_of(rows[0].parameters.begin(), rows[0].parameters.end(),
                     [](const TorchParameter& one) { return one.need == TorchParameter::Need::optional; });
}

// The layers that a variable may hold, dense of dense(8, 16): where it may hold another class, a partial() or a function as well.
std::set<std::string> layers_of_variable(Resolver& resolver, const Module& module, NodeId call) {
  const Syntax& syntax = module.syntax();
  const NodeId callee = syntax.child(call, Field::function);
  if (syntax.children(syntax.child(call, Field::arguments)).empty()) return {};
  NodeId root = callee;  // self.norm, LAYERS[name]
  while (syntax.kind(root) == Kind::attribute || syntax.kind(root) == Kind::subscript) root = syntax.first(root);
  uint32_t scope = kNoScope;
  if (syntax.kind(root) != Kind::identifier) return {};
  for (uint32_t index : module.lookup(syntax.text(root), root, scope))
    if (const Bound how = module.bindings()[index].how; how == Bound::import || how == Bound::from_import) return {};
  std::set<std::string> layers;
  bool others = false;
  for (const Value& value : Values(resolver.values(module, callee))) {
    const std::string name = value.is == Value::Is::named ? canonical(value.name).name : "";
    if (is_known_layer(name)) layers.insert(name);
    others =
        others || value.is == Value::Is::partial || value.is == Value::Is::class_ || value.is == Value::Is::function;
    if (!name.empty() && !is_known_layer(name)) return {};
  }
  return others || layers.size() > 1 ? layers : std::set<std::string>();
}

// Whether a name goes to a variable, an argument or a result, and is no class to compare with.
bool is_handed_on(const Syntax& syntax, NodeId node) {
  for (NodeId up = syntax.parent(node); up != kNoNode; node = up, up = syntax.parent(up)) switch (syntax.kind(up)) {
      case Kind::tuple:
      case Kind::list:
      case Kind::expression_list:
      case Kind::dictionary:
      case Kind::pair:
      case Kind::conditional_expression:
      case Kind::keyword_argument: break;
      case Kind::argument_list: {
        const std::string_view callee = syntax.text(syntax.child(syntax.parent(up), Field::function));
        return syntax.kind(syntax.parent(up)) == Kind::call && callee != "isinstance" && callee != "issubclass";
      }
      case Kind::assignment: return syntax[node].field == Field::right;
      case Kind::default_parameter:
      case Kind::typed_default_parameter: return syntax[node].field == Field::value;
      case Kind::return_statement: return true;
      default: return false;
    }
  return false;
}

// DataParallel and its like, as a class to compare with.
bool is_wrapper(TorchFile& torch, NodeId klass) {
  const std::vector<ApiName> names = torch.file.resolver.names(torch.file.module, klass);
  return names.size() == 1 && names[0].name.starts_with("torch.nn.") && names[0].name.ends_with("DataParallel");
}

}  // namespace

bool calls_layer_variable(TorchFile& torch, NodeId call) {
  return !layers_of_variable(torch.file.resolver, torch.file.module, call).empty();
}

bool rewrite_handed_layer(TorchFile& torch, NodeId node, const std::string& name) {
  if (!is_known_layer(name) || !is_handed_on(torch.syntax, node)) return false;
  if (!torch.layers_of_variables) {
    std::set<std::string>& found = torch.layers_of_variables.emplace();
    for (const auto& module : torch.file.project.modules())
      for (NodeId call = 0; call < module->syntax().size(); ++call)
        if (module->syntax().kind(call) == Kind::call)
          found.merge(layers_of_variable(torch.file.resolver, *module, call));
  }
  if (!torch.layers_of_variables->contains(name) && !needs_arguments(name)) return false;
  torch.settle(node);
  torch.replace(kTorchNames, node, fmt::format("layer_named('{}')", name.substr(9)), "by PyTorch's own arguments");
  torch.note(node, name, "migrated by a combination");
  return true;
}

bool is_named_argument(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  const NodeId list = syntax.parent(node), call = syntax.parent(list);
  const NodeId around = syntax.kind(list) == Kind::tuple ? syntax.parent(call) : call;
  if (syntax.text(syntax.child(around, Field::function)) == "isinstance" && is_wrapper(torch, node)) return true;
  if (syntax.kind(call) != Kind::call || syntax.kind(list) != Kind::argument_list || syntax.children(list)[0] != node)
    return false;
  if (is_partial(torch, call)) return !partial_class(torch, call).first.empty();
  if (syntax.text(syntax.child(call, Field::function)) == "hasattr") return true;
  if (syntax.text(syntax.child(call, Field::function)) != "getattr") return false;
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, node))
    if (!helper_for(name.name).empty()) return true;
  return false;
}

// hasattr(torch.nn.functional, "scaled_dot_product_attention"): whether there is something for it.
static bool rewrite_asked(TorchFile& torch, NodeId call) {
  const std::vector<NodeId> arguments = torch.syntax.children(torch.syntax.child(call, Field::arguments));
  std::string word;
  if (torch.syntax.text(torch.syntax.child(call, Field::function)) != "hasattr" || arguments.size() != 2 ||
      !string_value(torch.syntax, arguments[1], word))
    return false;
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, arguments[0])) {
    if (name.name != "torch" && !name.name.starts_with("torch.")) continue;
    const std::vector<TorchRow>& rows = torch_rows(name.name + "." + word);
    const bool there = !rows.empty() && rows[0].how != TorchRow::How::missing;
    torch.replace(kTorchNames, call, there ? "True" : "False", "whether there is something for the name");
    torch.settle(arguments[0]);
    return true;
  }
  return false;
}

// isinstance(model, DataParallel): networks are not wrapped here.
static bool rewrite_wrapped(TorchFile& torch, NodeId call) {
  const Syntax& syntax = torch.syntax;
  const std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
  if (syntax.text(syntax.child(call, Field::function)) != "isinstance" || arguments.size() != 2) return false;
  const bool several = syntax.kind(arguments[1]) == Kind::tuple;
  for (NodeId klass : several ? syntax.children(arguments[1]) : std::vector<NodeId>{arguments[1]})
    if (!is_wrapper(torch, klass)) return false;
  torch.settle(arguments[1]);
  torch.replace(kTorchNames, call, "False", "one device here: no network is wrapped");
  return true;
}

bool rewrite_named(TorchFile& torch, NodeId call) {
  if (rewrite_asked(torch, call) || rewrite_wrapped(torch, call)) return true;
  const Syntax& syntax = torch.syntax;
  const std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
  if (is_partial(torch, call)) {
    const auto [helper, name] = partial_class(torch, call);
    if (helper.empty()) return false;
    torch.settle(arguments[0]);
    torch.replace(kTorchNames, arguments[0], fmt::format("{}('{}')", helper, name), "by PyTorch's own arguments");
    torch.note(call, "functools.partial", "migrated by a combination");
    return true;
  }
  if (syntax.text(syntax.child(call, Field::function)) != "getattr" || arguments.size() < 2) return false;
  std::string word;
  const bool called = syntax.kind(syntax.parent(call)) == Kind::call && syntax[call].field == Field::function;
  if (called && string_value(syntax, arguments[1], word)) return true;  // a plain name: the call around it decides
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, arguments[0])) {
    const std::string_view helper = helper_for(name.name);
    if (helper.empty()) continue;
    torch.settle(arguments[0]);
    torch.replace(kTorchNames, call, fmt::format("{}({})", helper, torch.rendered(arguments[1])),
                  "names of " + name.name + " that only the run knows");
    torch.note(call, name.name, "migrated by a combination");
    return true;
  }
  return false;
}

}  // namespace cairn::migrate
