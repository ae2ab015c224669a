// What the training code of a PyTorch script does, call by call, and the names that code reads and sets.
#include "migrate/torch_events.h"

#include <algorithm>

namespace cairn::migrate {

// ---- what a call is ----

bool has_word(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

NodeId object_of(const Syntax& syntax, NodeId call) {
  NodeId callee = syntax.child(call, Field::function);
  return syntax.kind(callee) == Kind::attribute ? syntax.child(callee, Field::object) : kNoNode;
}

std::string_view method_of(const Syntax& syntax, NodeId call) {
  NodeId callee = syntax.child(call, Field::function);
  return syntax.kind(callee) == Kind::attribute ? syntax.text(syntax.child(callee, Field::attribute)) : "";
}

static bool is_optimizer(TorchFile& torch, NodeId object) {
  const bool schedule = torch.file.resolver.is_instance(torch.file.module, object, "torch.optim.lr_scheduler");
  const bool optimizer = torch.file.resolver.is_instance(torch.file.module, object, "torch.optim.Optimizer");
  if (optimizer != schedule) return optimizer;  // one of both: the name tells
  std::string name = torch.file.text(object);
  if (has_word(name, "sched")) return false;
  return has_word(name, "opt") || torch.file.holds(name + ".zero_grad(");
}

static bool is_scaler(TorchFile& torch, NodeId object) {
  return torch.file.resolver.is_instance(torch.file.module, object, "torch.cuda.amp.GradScaler") ||
         has_word(torch.file.text(object), "scaler");
}

NodeId only_argument(const Syntax& syntax, NodeId call) {
  std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
  return arguments.size() == 1 && syntax.kind(arguments[0]) != Kind::keyword_argument ? arguments[0] : kNoNode;
}

Event event_of(TorchFile& torch, NodeId call) {
  const Syntax& syntax = torch.syntax;
  Event event{Does::nothing, call, syntax.statement(call), kNoNode, ""};
  NodeId object = object_of(syntax, call);
  std::string_view method = method_of(syntax, call);
  auto becomes = [&](Does does, NodeId subject) {
    event.does = does;
    event.subject = subject;
    if (subject != kNoNode && does != Does::backward) event.receiver = torch.file.text(subject);
    return event;
  };
  if (method == "clip_grad_norm_" || method == "clip_grad_norm" ||
      torch.file.calls(call, "torch.nn.utils.clip_grad_norm_"))
    return becomes(Does::clip, kNoNode);
  if (method == "clip_grad_value_" || torch.file.calls(call, "torch.nn.utils.clip_grad_value_"))
    return becomes(Does::clip_value, kNoNode);
  if (object == kNoNode) return event;
  if (method == "zero_grad") {
    bool optimizer = is_optimizer(torch, object) && !is_module(torch, object);
    return becomes(Does::zero, optimizer ? object : kNoNode);
  }
  if (method == "backward" && syntax.text(object) == "self") return event;  // a method of the class's own
  if (method == "backward") {
    NodeId subject = object;
    if (syntax.kind(object) == Kind::call && method_of(syntax, object) == "scale" &&
        only_argument(syntax, object) != kNoNode)
      subject = only_argument(syntax, object);
    return becomes(Does::backward, subject);
  }
  if (method == "step" && is_scaler(torch, object) && only_argument(syntax, call) != kNoNode)
    return becomes(Does::step, only_argument(syntax, call));
  if ((method == "update" || method == "unscale_") && is_scaler(torch, object)) return becomes(Does::idle, kNoNode);
  if (method == "step" && is_optimizer(torch, object)) return becomes(Does::step, object);
  return event;
}

// ---- names that code reads and sets ----

bool is_part_of_name(const Syntax& syntax, NodeId node) {
  NodeId up = syntax.parent(node);
  return syntax[node].field == Field::attribute ||
         (syntax.kind(up) == Kind::keyword_argument && syntax[node].field == Field::name);
}

// x in x = ..., x, y = ..., for x in ..., x += ...
bool is_target(const Syntax& syntax, NodeId node, bool with_augmented) {
  for (;;) {
    NodeId up = syntax.parent(node);
    Kind kind = syntax.kind(up);
    if (syntax[node].field == Field::left)
      return kind == Kind::assignment || kind == Kind::for_statement || kind == Kind::for_in_clause ||
             (with_augmented && kind == Kind::augmented_assignment);
    if (kind != Kind::pattern_list && kind != Kind::tuple_pattern && kind != Kind::list_pattern) return false;
    node = up;
  }
}

void add_targets(const Syntax& syntax, NodeId target, Names& names) {
  target = syntax.unwrap(target);
  if (syntax.kind(target) == Kind::identifier || syntax.kind(target) == Kind::attribute) {
    names.insert(std::string(syntax.text(target)));
    return;
  }
  for (NodeId part : syntax.children(target))
    if (syntax.kind(target) != Kind::subscript || syntax[part].field == Field::value) add_targets(syntax, part, names);
}

Names sets(const Syntax& syntax, NodeId within) {
  Names names;
  for (NodeId node = within; node < syntax[within].after; ++node) switch (syntax.kind(node)) {
      case Kind::assignment:
      case Kind::augmented_assignment:
      case Kind::for_statement: add_targets(syntax, syntax.child(node, Field::left), names); break;
      case Kind::as_pattern_target:
        for (NodeId part : syntax.children(node)) add_targets(syntax, part, names);
        break;
      case Kind::call:
        if (is_in_place(syntax, node) && syntax.kind(syntax.parent(node)) == Kind::expression_statement)
          add_targets(syntax, changed_in_place(syntax, node), names);
        break;
      default: break;
    }
  return names;
}

// `detached`: also what is only read inside x.detach() or (a + b).detach(), through which no gradients go.
static Names names_read(const Syntax& syntax, NodeId within, bool detached) {
  Names names;
  for (NodeId node = within; node < syntax[within].after; ++node) {
    const Kind kind = syntax.kind(node);
    if (!detached && kind == Kind::attribute && syntax.text(syntax.child(node, Field::attribute)) == "detach") {
      node = syntax[syntax.child(node, Field::object)].after - 1;
      continue;
    }
    const bool named = kind == Kind::attribute || (kind == Kind::identifier && !is_target(syntax, node, false));
    if (named && !is_part_of_name(syntax, node)) names.insert(std::string(syntax.text(node)));
  }
  return names;
}

Names reads(const Syntax& syntax, NodeId within) { return names_read(syntax, within, true); }
Names reads_with_gradient(const Syntax& syntax, NodeId within) { return names_read(syntax, within, false); }

bool meets(const Names& a, const Names& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

NodeId scope_of(const Syntax& syntax, NodeId node) {
  NodeId function = syntax.ancestor(node, Kind::function_definition);
  return function == kNoNode ? 0 : function;
}

}  // namespace cairn::migrate
