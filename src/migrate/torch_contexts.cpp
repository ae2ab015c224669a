// Contexts and decorators of PyTorch that have nothing to do where gradients are only taken when they are asked for.
#include <algorithm>
#include <array>

#include "migrate/torch_file.h"

namespace cairn::migrate {

bool is_idle_context(TorchFile& torch, NodeId expression) {
  static constexpr std::array idle = {
      "torch.cuda.amp.autocast", "torch.autocast",    "torch.amp.autocast",     "torch.autograd.set_detect_anomaly",
      "torch.no_grad",           "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode",
      "torch.autograd.no_grad"};
  const auto end = idle.begin() + (torch.file.options.recorded ? 4 : idle.size());  // the rest is about gradients
  NodeId callee =
      torch.syntax.kind(expression) == Kind::call ? torch.syntax.child(expression, Field::function) : expression;
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, callee))
    if (std::find(idle.begin(), end, name.name) != end) return true;
  return false;
}

void drop_context(TorchFile& torch, NodeId statement) {
  const Syntax& syntax = torch.syntax;
  NodeId body = syntax.child(statement, Field::body);
  if (body == kNoNode) return;
  NodeId clause = syntax.children(statement)[0];
  for (NodeId item : syntax.children(clause)) {
    NodeId value = syntax.kind(item) == Kind::with_item ? syntax.children(item)[0] : item;
    if (!is_idle_context(torch, value)) return;
  }
  uint32_t begin = syntax[statement].begin, colon = begin;
  colon = static_cast<uint32_t>(torch.text.find(':', syntax[clause].end));
  uint32_t line_end = static_cast<uint32_t>(std::min(torch.text.find('\n', colon), torch.text.size()));
  bool same_line = torch.line_of(syntax[body].begin) == torch.line_of(colon);
  Span head{begin, same_line ? syntax[body].begin : colon + 1};
  if (!same_line && torch.text.find_first_not_of(" \t\r", colon + 1) == line_end) {
    head.begin = torch.rows.start(torch.line_of(begin));
    for (uint32_t line = torch.line_of(begin); line <= torch.line_of(colon); ++line) torch.take_line(line);
    head.end = std::min<uint32_t>(line_end + 1, static_cast<uint32_t>(torch.text.size()));
  }
  torch.discard(head, true, false);
  Rewrite(torch.file, kTorchTraining, clause, "gradients are only taken where they are asked for")
      .replace(head, "")
      .commit();
  if (!same_line) {
    int columns = torch.indent_of(torch.line_of(syntax[body].begin)) - torch.indent_of(torch.line_of(begin));
    torch.shift(line_end + 1, syntax[body].end, -columns);
  }
  torch.note(clause, "torch.no_grad", "migrated");
}

void drop_decorator(TorchFile& torch, NodeId decorator) {
  std::vector<NodeId> parts = torch.syntax.children(decorator);
  if (parts.empty() || !is_idle_context(torch, parts[0])) return;
  Span span = torch.syntax.span(decorator);
  span.begin = torch.rows.start(torch.line_of(span.begin));
  span.end = static_cast<uint32_t>(std::min(torch.text.find('\n', span.end), torch.text.size() - 1) + 1);
  torch.discard(span, true, false);
  Rewrite(torch.file, kTorchTraining, decorator, "gradients are only taken where they are asked for")
      .replace(span, "")
      .commit();
  torch.note(decorator, "torch.no_grad", "migrated");
}

}  // namespace cairn::migrate
