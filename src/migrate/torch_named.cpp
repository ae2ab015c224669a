// getattr() of a module of PyTorch by a name that only the run knows: a helper that has the same names.
#include <fmt/format.h>

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

}  // namespace

bool is_named_argument(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  const NodeId list = syntax.parent(node), call = syntax.parent(list);
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

bool rewrite_named(TorchFile& torch, NodeId call) {
  if (rewrite_asked(torch, call)) return true;
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
