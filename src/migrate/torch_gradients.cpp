// torch.autograd.grad of a value by what the function computed it from becomes the gradient of that computation.
#include <fmt/format.h>

#include <optional>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

struct Asked {
  NodeId value, input, seed;  // the expression, the variable by which its gradient is wanted, the gradient of the value
};

bool holds_name(const Syntax& syntax, NodeId tree, std::string_view name) {
  for (NodeId node = tree; node < syntax[tree].after; ++node)
    if (syntax.kind(node) == Kind::identifier && syntax.text(node) == name) return true;
  return false;
}

// What the function around a call last assigned to a variable before it; the node itself where it is no variable.
NodeId computed(const Syntax& syntax, NodeId node, NodeId call) {
  if (syntax.kind(node) != Kind::identifier) return node;
  NodeId scope = syntax.ancestor(call, Kind::function_definition), found = kNoNode;
  for (NodeId at = scope == kNoNode ? 0 : scope; at < call; ++at)
    if (syntax.kind(at) == Kind::assignment && syntax.text(syntax.child(at, Field::left)) == syntax.text(node))
      found = syntax.child(at, Field::right);
  return found;
}

std::optional<Asked> asked(TorchFile& torch, NodeId call) {
  if (!torch.file.calls(call, "torch.autograd.grad")) return std::nullopt;
  const Syntax& syntax = torch.syntax;
  Arguments bound = torch.file.bind(call, "outputs inputs grad_outputs retain_graph create_graph only_inputs");
  NodeId outputs = bound.value("outputs"), input = syntax.unwrap(bound.value("inputs"));
  if (!bound.plain || !bound.extra.empty() || outputs == kNoNode || input == kNoNode) return std::nullopt;
  if (Kind kind = syntax.kind(input); kind == Kind::list || kind == Kind::tuple) {
    std::vector<NodeId> parts = syntax.children(input);
    input = parts.size() == 1 ? parts[0] : kNoNode;
  }
  NodeId value = computed(syntax, outputs, call);
  if (syntax.kind(input) != Kind::identifier || value == kNoNode) return std::nullopt;
  if (!holds_name(syntax, value, syntax.text(input))) return std::nullopt;
  return Asked{value, input, bound.value("grad_outputs")};
}

}  // namespace

bool is_gradient_call(TorchFile& torch, NodeId call) { return asked(torch, call).has_value(); }

bool rewrite_leaf(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  const bool call = syntax.kind(node) == Kind::call;
  NodeId asked = call ? syntax.child(node, Field::function) : syntax.child(node, Field::left);
  std::string_view member = syntax.text(syntax.child(asked, Field::attribute));
  std::vector<NodeId> arguments = call ? syntax.children(syntax.child(node, Field::arguments)) : std::vector<NodeId>();
  NodeId value = call ? (arguments.empty() ? kNoNode : arguments[0]) : syntax.child(node, Field::right);
  if (member != (call ? "requires_grad_" : "requires_grad") || (value != kNoNode && syntax.text(value) != "True"))
    return false;
  NodeId object = syntax.child(asked, Field::object), statement = syntax.statement(node),
         assignment = syntax.first(statement);
  const bool alone = assignment == node;
  const std::string name = torch.file.text(alone ? object : syntax.child(assignment, Field::left));
  if (name.find_first_of("([") != name.npos || name.empty() || !keeps_gradients(torch)) return false;
  const bool read = torch.file.holds(name + ".grad.") || torch.file.holds(name + ".grad)") ||
                    torch.file.holds(name + ".grad\n") || torch.file.holds(name + ".grad ") ||
                    torch.file.holds(name + ".grad[") || torch.file.holds(name + ".grad,");
  if (!read || is_module(torch, object)) return false;
  const std::string text = torch.rendered(object);
  torch.replace(kTorchNames, node, (alone ? text + " = " : "") + "ms.Parameter(" + text + ")",
                "gradients are taken by a parameter");
  torch.note(node, "torch.Tensor.requires_grad_", "migrated by a combination");
  return true;
}

void rewrite_gradients(TorchFile& torch) {
  const Syntax& syntax = torch.syntax;
  for (NodeId call = 0; call < syntax.size(); ++call) {
    if (syntax.kind(call) != Kind::call) continue;
    std::optional<Asked> found = asked(torch, call);
    if (!found) continue;
    std::string seed = found->seed == kNoNode ? "" : ", " + torch.rendered(found->seed);
    torch.replace(kTorchNames, call,
                  fmt::format("gradients_of(lambda {0}: {1}, {0}{2})", syntax.text(found->input),
                              torch.rendered(found->value), seed),
                  "the gradient of what is computed from " + std::string(syntax.text(found->input)));
    torch.note(call, "torch.autograd.grad", "migrated by a combination");
  }
}

}  // namespace cairn::migrate
