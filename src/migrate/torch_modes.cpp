// Networks that a script makes are put into training mode, in which modules of PyTorch begin and cells do not.
#include <algorithm>
#include <array>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

std::string_view called_method(const Syntax& syntax, NodeId call) {
  NodeId callee = syntax.child(call, Field::function);
  return syntax.kind(callee) == Kind::attribute ? syntax.text(syntax.child(callee, Field::attribute)) : "";
}

NodeId function_around(const Syntax& syntax, NodeId node) {
  NodeId function = syntax.ancestor(node, Kind::function_definition);
  return function == kNoNode ? 0 : function;
}

bool names_a_member(const Syntax& syntax, NodeId node) {
  return syntax[node].field == Field::attribute ||
         (syntax.kind(syntax.parent(node)) == Kind::keyword_argument && syntax[node].field == Field::name);
}

// models.Net(...): a class of the project by its module's name.
bool makes_named_class(TorchFile& torch, NodeId made) {
  for (const Value& value :
       Values(torch.file.resolver.values(torch.file.module, torch.syntax.child(made, Field::function))))
    if (value.is == Value::Is::class_ || value.is == Value::Is::function) return true;
  return false;
}

// Whether an expression makes a network: Net(...), nn.Sequential(...), one of them moved to a device.
bool makes_module(TorchFile& torch, NodeId made) {
  const Syntax& syntax = torch.syntax;
  if (syntax.kind(made) != Kind::call || !is_module(torch, made)) return false;
  bool module = false;
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, made))) {
    const std::string name = value.is == Value::Is::instance ? canonical(value.name).name : "";
    module = module || value.is == Value::Is::object || name == "torch.nn.Sequential" ||
             name.starts_with("torch.nn.Transformer");
  }
  std::string_view method = called_method(syntax, made);
  return module &&
         (syntax.kind(syntax.child(made, Field::function)) == Kind::identifier || method == "to" || method == "cuda" ||
          method == "Sequential" || syntax.text(made).starts_with("nn.") || makes_named_class(torch, made));
}

// Whether code is part of a module's class: what it makes follows the mode of the whole.
bool in_module(TorchFile& torch, NodeId node) {
  const NodeId owner = torch.syntax.ancestor(node, Kind::class_definition);
  if (owner == kNoNode) return false;
  const std::vector<std::string> bases = torch.file.resolver.external_bases(torch.file.module, owner);
  return std::any_of(bases.begin(), bases.end(), [](const std::string& base) { return base.starts_with("torch.nn."); });
}

// Whether the first use of a network that a variable got sets its mode: net.train() or net.eval() before any call.
bool mode_follows(TorchFile& torch, NodeId assignment, std::string_view name) {
  const Syntax& syntax = torch.syntax;
  static constexpr std::array idle = {"parameters", "named_parameters", "to", "cuda", "cpu", "apply",
                                      "state_dict", "load_state_dict"};
  const NodeId scope = function_around(syntax, assignment);
  for (NodeId node = syntax[assignment].after; node < syntax[scope].after; ++node) {
    if (syntax.text(node) != name || syntax.kind(node) != Kind::identifier || names_a_member(syntax, node)) continue;
    NodeId up = syntax.parent(node);
    if (function_around(syntax, node) != scope) continue;
    std::string_view member = syntax.kind(up) == Kind::attribute ? syntax.text(syntax.child(up, Field::attribute)) : "";
    if (std::find(idle.begin(), idle.end(), member) != idle.end()) continue;
    return (member == "train" || member == "eval") && syntax.kind(syntax.parent(up)) == Kind::call;
  }
  return false;
}

// The expression around a call that makes a network and is still that network: Net().to(device), nn.DataParallel(Net()).
NodeId whole_network(TorchFile& torch, NodeId made) {
  const Syntax& syntax = torch.syntax;
  for (;;) {
    NodeId up = syntax.parent(made);
    if (syntax.kind(up) == Kind::attribute)
      up = syntax.parent(up);
    else if (syntax.kind(up) == Kind::argument_list)
      up = syntax.parent(up);
    if (syntax.kind(up) != Kind::call || !is_module(torch, up)) return made;
    made = up;
  }
}

}  // namespace

// A module of PyTorch begins in training mode, a cell in inference mode.
void begin_in_training(TorchFile& torch) {
  const Syntax& syntax = torch.syntax;
  static constexpr std::array modes = {
      "Dropout", "dropout", "BatchNorm", ".training", "Transformer", "MultiheadAttention", "spectral_norm"};
  const bool matters = torch.file.project.modules().size() > 1 ||
                       std::any_of(modes.begin(), modes.end(), [&](const char* one) { return torch.file.holds(one); });
  std::set<NodeId> done;
  std::map<NodeId, std::vector<std::string>> lines;  // by assignment
  for (NodeId node = 0; node < syntax.size() && matters; ++node) {
    if (syntax.kind(node) != Kind::call || in_module(torch, node) || !makes_module(torch, node)) continue;
    const NodeId whole = whole_network(torch, node);
    if (!done.insert(whole).second) continue;
    const std::string_view last = called_method(syntax, whole);
    if (last == "eval" || last == "train") continue;  // Net().eval()
    NodeId up = syntax.parent(whole), target = syntax.child(up, Field::left);
    if (syntax.kind(up) == Kind::expression_list) {  // a, b = A(), B()
      const NodeId assignment = syntax.parent(up);
      std::vector<NodeId> names = syntax.children(syntax.child(assignment, Field::left)), values = syntax.children(up);
      size_t place = std::find(values.begin(), values.end(), whole) - values.begin();
      target = syntax.kind(assignment) == Kind::assignment && names.size() == values.size() ? names[place] : kNoNode;
      up = assignment;
    }
    const bool named = syntax.kind(up) == Kind::assignment && target != kNoNode;
    const bool variable = syntax.kind(target) == Kind::identifier || syntax.kind(target) == Kind::attribute;
    if (named && variable) {
      if (!mode_follows(torch, up, syntax.text(target))) lines[up].push_back(torch.file.text(target) + ".set_train()");
    } else if (!torch.dropped(syntax.statement(whole)) &&
               called_method(syntax, syntax.parent(syntax.parent(whole))) != "eval") {
      Rewrite(torch.file, kTorchTraining, whole, "a cell begins in inference mode")
          .insert(syntax[whole].end, ".set_train()", int64_t{1} << 44)
          .commit();
    }
  }
  for (const auto& [assignment, texts] : lines)
    torch.append_lines(kTorchTraining, syntax[assignment].end, syntax[assignment].begin, texts,
                       "a cell begins in inference mode");
}

}  // namespace cairn::migrate
