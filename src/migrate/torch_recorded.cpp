// Gradients by recorded calls: where a loss is made by several functions, no function of the loss can be written. Then all scripts
// of the project stand on cairn.ms.recorded, whose names are PyTorch's: backward(), grad(), no_grad().
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "migrate/torch_events.h"

namespace cairn::migrate {

bool leaves_gradients(const Result& result) {
  return std::any_of(result.files.begin(), result.files.end(), [](const FileResult& file) {
    return std::any_of(file.references.begin(), file.references.end(), [](const Reference& one) {
      return (one.name == "torch.Tensor.backward" || one.name == "torch.autograd.grad") &&
             !one.status.starts_with("migrated");
    });
  });
}

bool rewrite_recorded_name(TorchFile& torch, NodeId node) {
  if (!torch.file.options.recorded) return false;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names = {{
      {"torch.no_grad", "no_grad"},
      {"torch.autograd.no_grad", "no_grad"},
      {"torch.inference_mode", "no_grad"},
      {"torch.enable_grad", "enable_grad"},
      {"torch.set_grad_enabled", "set_grad_enabled"},
      {"torch.autograd.grad", "grad"},
  }};
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, node))
    for (const auto& [from, to] : names) {
      if (name.name != from) continue;
      torch.settle(node);
      torch.replace(kTorchTraining, node, fmt::format("recorded.{}", to), "calls are recorded for their gradients");
      torch.note(node, name.name, "migrated by a combination");
      torch.file.rewritten[node] = kTorchTraining.id;
      return true;
    }
  return false;
}

bool is_recorded_name(TorchFile& torch, NodeId node) {
  auto found = torch.file.rewritten.find(node);
  return found != torch.file.rewritten.end() && found->second == kTorchTraining.id;
}

bool rewrite_watched(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  const bool call = syntax.kind(node) == Kind::call;
  const NodeId asked = syntax.child(node, call ? Field::function : Field::left);
  const std::string_view member = syntax.text(syntax.child(asked, Field::attribute));
  if (member != (call ? "requires_grad_" : "requires_grad")) return false;
  const NodeId object = syntax.child(asked, Field::object), statement = syntax.statement(node);
  const NodeId value = call ? syntax.first(syntax.child(node, Field::arguments)) : syntax.child(node, Field::right);
  if ((value != kNoNode && syntax.text(value) != "True") || is_module(torch, object)) return false;
  const bool alone = syntax.first(statement) == node;
  const std::string text = torch.rendered(object), old = torch.file.text(object);
  const bool optimized = alone && torch.file.holds("([" + old + "]");  // optimizers take Parameters
  torch.replace(kTorchTraining, node,
                optimized ? fmt::format("{0} = ms.Parameter({0})", text) : fmt::format("recorded.watched({})", text),
                "gradients go to this tensor");
  torch.note(node, "torch.Tensor.requires_grad_", "migrated by a combination");
  return true;
}

void rewrite_recorded_backward(TorchFile& torch, NodeId call, NodeId subject) {
  const Syntax& syntax = torch.syntax;
  const std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
  std::string given = torch.rendered(subject);
  for (NodeId one : arguments) {
    if (syntax.text(syntax.child(one, Field::name)) == "inputs")
      return torch.leave(call, "torch.Tensor.backward",
                         "inputs= is missing: recorded.grad(loss, inputs) gives their gradients");
    given += ", " + torch.rendered(one);
  }
  torch.replace(kTorchTraining, call, fmt::format("recorded.backward({})", given),
                "the gradients of the recorded calls");
  torch.note(call, "torch.Tensor.backward", "migrated by a combination",
             "cairn.ms.recorded: runs under cairn ms, not on MindSpore itself");
}

}  // namespace cairn::migrate
