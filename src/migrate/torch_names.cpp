// Names of PyTorch that are not called, forward() of modules, assignments in place; and the walk over a script's names and calls.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "migrate/torch_calls.h"

namespace cairn::migrate {
namespace {

// The new spelling of a name that is not called: a row of its own, or the callee of the row of its calls.
std::string value_target(const std::string& name) {
  for (const TorchRow& row : rows_of(name)) {
    if (row.how == TorchRow::How::missing) continue;
    if (!row.call) return row.target;
    size_t open = row.target.find('(');
    std::string callee = row.target.substr(0, open);
    const bool function = row.target.compare(open == callee.npos ? 0 : open, 7, "(lambda") == 0;  // needs its arguments
    if (open != callee.npos && callee.find_first_of("$ {") == callee.npos && !function) return callee;
  }
  return "";
}

bool is_topmost(const Syntax& syntax, NodeId node) {
  NodeId up = syntax.parent(node);
  return !(syntax.kind(up) == Kind::attribute && syntax.child(up, Field::object) == node) &&
         syntax[node].field != Field::attribute;
}

bool in_import(const Syntax& syntax, NodeId node) {
  for (NodeId up = syntax.parent(node); up != kNoNode; up = syntax.parent(up)) {
    Kind kind = syntax.kind(up);
    if (kind == Kind::import_statement || kind == Kind::import_from_statement) return true;
    if (kind == Kind::block || kind == Kind::module) return false;
  }
  return false;
}

// torch.backends.cudnn.benchmark = True
bool drop_switch(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  NodeId up = syntax.parent(node);
  if (syntax.kind(up) != Kind::assignment || syntax[node].field != Field::left) return false;
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, node))
    if (name.name.starts_with("torch.backends.")) {
      torch.drop(kTorchNames, syntax.statement(node), name.name + " has nothing to do");
      torch.note(node, name.name, "migrated");
      return true;
    }
  return false;
}

// x.data is x; x.grad stays, because training code keeps gradients there where a script reads them.
bool rewrite_inner_tensor(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  if (syntax.kind(node) != Kind::attribute) return false;
  std::string_view member = syntax.text(syntax.child(node, Field::attribute));
  NodeId object = syntax.child(node, Field::object);
  std::string_view inner = syntax.text(syntax.child(object, Field::attribute));
  const std::string text = torch.file.text(object);
  const bool sparse = torch.file.holds(text + ".row") || torch.file.holds(text + ".indptr");  // a matrix of SciPy
  const bool unknown = !sparse && (syntax.kind(object) == Kind::identifier || inner == "weight" || inner == "bias") &&
                       torch.file.resolver.values(torch.file.module, object).empty();
  if (member != "data" || begins_with_library(torch, object) ||
      !(unknown || is_gradient(syntax, object) ||
        torch.file.resolver.is_instance(torch.file.module, object, "torch.Tensor")))
    return false;
  Match found{nullptr, {{"self", syntax.span(object)}}, {}};
  // Where all calls are recorded, gradients must not go through what is read; what is changed in place is the tensor.
  const NodeId up = syntax.parent(node);
  const bool read = syntax[node].field != Field::left &&
                    !(syntax.kind(up) == Kind::attribute && is_in_place(syntax, syntax.parent(up))) &&
                    !is_gradient(syntax, object);
  const bool cut = torch.file.options.recorded && read && syntax.kind(up) != Kind::argument_list;
  write(torch, node, *expand(torch, found, cut ? "ops.stop_gradient($self)" : "$self"),
        "the data of a tensor is the tensor");
  return true;
}

void replace_attribute(TorchFile& torch, NodeId node, const TorchRow& row, const std::string& name) {
  Match found{&row, {{"self", torch.syntax.span(torch.syntax.child(node, Field::object))}}, {}};
  auto pieces = expand(torch, found, torch.own_names(row.target));
  if (!pieces) return;
  write(torch, node, *pieces, shown(name) + " has its counterpart");
  torch.note(node, shown(name), "migrated");
}

// x.max(1).values, x.topk(5).indices: parts of a tuple here.
bool rewrite_part(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  if (syntax.kind(node) != Kind::attribute || syntax[node].field == Field::function) return false;
  std::string_view member = syntax.text(syntax.child(node, Field::attribute));
  if (member != "values" && member != "indices") return false;
  NodeId object = syntax.child(node, Field::object), made = object;
  if (syntax.kind(object) == Kind::identifier) {
    uint32_t scope = kNoScope;
    for (uint32_t index : torch.file.module.lookup(syntax.text(object), object, scope))
      made = torch.file.module.bindings()[index].value;
  }
  static constexpr std::array pairs = {"max", "min", "topk", "sort", "cummax", "cummin", "median", "kthvalue"};
  NodeId callee = syntax.child(made, Field::function);
  if (syntax.kind(made) != Kind::call || syntax.kind(callee) != Kind::attribute ||
      std::find(pairs.begin(), pairs.end(), syntax.text(syntax.child(callee, Field::attribute))) == pairs.end())
    return false;
  torch.discard({syntax[object].end, syntax[node].end}, false, true);
  Rewrite(torch.file, kTorchNames, node, "a part of a tuple")
      .replace(Span{syntax[object].end, syntax[node].end}, member == "values" ? "[0]" : "[1]")
      .commit();
  return true;
}

void rewrite_name(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  if (rewrite_part(torch, node) || is_named_argument(torch, node)) return;
  if (syntax.kind(node) == Kind::attribute && syntax.text(syntax.child(node, Field::attribute)) == "device" &&
      syntax.text(node).starts_with("next("))  // next(net.parameters()).device
    return torch.replace(kTorchNames, node, "ms.get_context('device_target')", "one device here");
  if (rewrite_inner_tensor(torch, node) || rewrite_rate(torch, node) || drop_switch(torch, node)) return;
  if (!is_topmost(syntax, node) || in_import(syntax, node) || torch.file.rewritten.contains(node)) return;
  if (rewrite_recorded_name(torch, node)) return;
  NodeId up = syntax.parent(node);
  bool is_keyword = syntax.kind(up) == Kind::keyword_argument && syntax[node].field == Field::name;
  bool bound = syntax[node].field == Field::left || syntax[node].field == Field::name;
  if (is_keyword || (bound && syntax.kind(node) == Kind::identifier)) return;
  const bool called = syntax.kind(up) == Kind::call && syntax[node].field == Field::function;
  const bool set = syntax.kind(up) == Kind::assignment && syntax[node].field == Field::left;
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, node))) {
    bool method = value.is == Value::Is::method;
    if ((value.is != Value::Is::named && !method) || (method && syntax.kind(node) != Kind::attribute)) continue;
    std::string name = canonical(value.name).name + (method ? ":" + value.member : "");
    if (!name.starts_with("torch")) continue;
    if (name.starts_with("torchvision.models.") && name.find("_Weights") != name.npos &&
        syntax.text(syntax.child(up, Field::name)) == "weights") {
      torch.settle(node);
      return;  // goes with its call
    }
    // A variable that holds the thing keeps its own name.
    if (syntax.kind(node) == Kind::identifier && !is_imported(torch, node)) continue;
    if (!method && syntax.text(node).starts_with("self.")) continue;
    const std::vector<TorchRow>& own = rows_of(name);
    if (called && !method && (own.empty() || own.back().call)) return;  // the call decides
    if (method) {
      for (const std::string& one : lookups(name))
        for (const TorchRow& row : torch_rows(one))
          if (!row.call && !called && !set) return replace_attribute(torch, node, row, name);
      continue;
    }
    if (rewrite_handed_layer(torch, node, name)) return;
    std::string target = torch.own_names(value_target(name));
    if (!target.empty()) {
      torch.settle(node);
      if (target != syntax.text(node)) torch.replace(kTorchNames, node, target, name + " has its counterpart");
      torch.needing(target);
      torch.note(node, name, "migrated");
    } else {
      torch.leave(node, name, reason_of(name, rows_of(name).empty() ? nullptr : &rows_of(name)[0]));
    }
    return;
  }
  if (called || syntax.kind(node) != Kind::attribute) return;
  const std::string name = "torch.Tensor:" + std::string(syntax.text(syntax.child(node, Field::attribute)));
  for (const TorchRow& row : torch_rows(name))  // x.dtype.is_floating_point: what nothing else has
    if (!row.call && row.only_torch) return replace_attribute(torch, node, row, name);
}

// class Net(nn.Module): def forward -> def construct; super().forward(x), self.block.forward(x).
void rewrite_forward(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  if (syntax.kind(node) == Kind::function_definition) {
    NodeId name = syntax.child(node, Field::name), owner = syntax.ancestor(node, Kind::class_definition);
    if (owner == kNoNode || syntax.text(name) != "forward") return;
    for (const std::string& base : torch.file.resolver.external_bases(torch.file.module, owner))
      if (base.starts_with("torch.nn.")) {
        torch.replace(kTorchModule, name, "construct", kTorchModule.title.data());
        return;
      }
    return;
  }
  NodeId member = syntax.child(node, Field::attribute), object = syntax.child(node, Field::object);
  if (syntax.text(member) != "forward") return;
  bool super = false;
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, object)))
    super = super || value.is == Value::Is::super;
  if (super || is_module(torch, object)) torch.replace(kTorchModule, member, "construct", kTorchModule.title.data());
}

// v *= decay where v stands for a parameter: PyTorch changes the parameter itself.
void set_in_place(TorchFile& torch, NodeId statement) {
  const Syntax& syntax = torch.syntax;
  NodeId left = syntax.child(statement, Field::left), right = syntax.child(statement, Field::right);
  const bool by_gradient =
      torch.file.text(right).find(torch.file.text(left) + ".grad") != std::string::npos;  // w -= rate * w.grad
  if (!is_data_of_parameter(syntax, left) && !by_gradient) return;
  NodeId root = syntax.kind(left) == Kind::attribute ? syntax.child(left, Field::object) : left;
  std::string sign = torch.text.substr(syntax[left].end, syntax[right].begin - syntax[left].end);
  torch.replace(kTorchNames, statement,
                fmt::format("{0}.set_data({0}{1}{2})", torch.rendered(root), sign.replace(sign.find('='), 1, ""),
                            transformed(torch, "operand", right, torch.rendered(right))),
                "an assignment in place sets the parameter");
}

// p.data = value: PyTorch puts another value into the tensor itself.
bool set_data(TorchFile& torch, NodeId assignment) {
  const Syntax& syntax = torch.syntax;
  NodeId left = syntax.child(assignment, Field::left), right = syntax.child(assignment, Field::right);
  if (syntax.kind(left) != Kind::attribute || syntax.text(syntax.child(left, Field::attribute)) != "data" ||
      right == kNoNode || syntax.text(left).starts_with("self.data"))
    return false;
  NodeId object = syntax.child(left, Field::object);
  const std::string text = torch.rendered(object);
  if (torch.rendered(left) != text) return false;  // .data of something that is no tensor
  torch.replace(kTorchNames, assignment,
                is_gradient(syntax, object) ? text + " = " + torch.rendered(right)
                                            : fmt::format("{}.set_data({})", text, torch.rendered(right)),
                "another value for the same tensor");
  return true;
}

// net = torch.load(path), where net is a network: its weights go into the one that there is.
void load_whole(TorchFile& torch, NodeId assignment) {
  const Syntax& syntax = torch.syntax;
  const NodeId left = syntax.child(assignment, Field::left), right = syntax.child(assignment, Field::right);
  const std::string text = right == kNoNode ? "" : torch.rendered(right);
  if (text.starts_with("load_weights(") || (text.starts_with("ms.load_checkpoint(") && is_module(torch, left)))
    if (is_module(torch, left))
      torch.replace(kTorchNames, right, fmt::format("with_weights({}, {})", torch.file.text(left), text),
                    "checkpoints hold weights alone");
}

void join_subscripts(TorchFile& torch, NodeId target) {
  const Syntax& syntax = torch.syntax;
  NodeId inner = syntax.child(target, Field::value);
  if (syntax.kind(target) != Kind::subscript || syntax.kind(inner) != Kind::subscript ||
      !torch.file.resolver.is_instance(torch.file.module, inner, "torch.Tensor"))
    return;
  NodeId first = syntax.child(target, Field::subscript);
  Rewrite(torch.file, kTorchNames, target, "a part of a tensor is a copy: one index sets it")
      .replace(Span{syntax[inner].end - 1, syntax[first].begin}, ", ")
      .commit();
}

}  // namespace

void rewrite_calls(TorchFile& torch) {
  const Syntax& syntax = torch.syntax;
  // From the inside out: nodes are numbered in the order of the text, a child behind its parent.
  for (NodeId node = syntax.size(); node-- > 0;) {
    switch (syntax.kind(node)) {
      case Kind::call:
        if (!is_training_call(torch, node) && !is_gradient_call(torch, node)) rewrite_call(torch, node);
        break;
      case Kind::function_definition: rewrite_forward(torch, node); break;
      case Kind::attribute:
        rewrite_forward(torch, node);
        rewrite_parameter(torch, node);
        [[fallthrough]];
      case Kind::identifier: rewrite_name(torch, node); break;
      default: break;
    }
  }
  // x, y = x.to(device), y.to(device); t[0][i] = 1, where t[0] is a copy
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) == Kind::expression_statement && syntax.kind(syntax.first(node)) == Kind::call &&
        torch.rendered(node).find_first_of("(=") == std::string::npos)
      torch.drop(kTorchNames, node, "nothing is left to do");
    if (syntax.kind(node) == Kind::augmented_assignment) set_in_place(torch, node);
    std::string word;
    if (syntax.kind(node) == Kind::string && string_value(syntax, node, word) && word == "Linear" &&
        syntax.ancestor(node, Kind::comparison_operator) != kNoNode && torch.file.holds(".__class__.__name__"))
      torch.replace(kTorchNames, node, "'Dense'", "the name of a class");
    if (syntax.kind(node) != Kind::assignment) continue;
    if (rewrite_leaf(torch, node) || set_data(torch, node)) continue;
    join_subscripts(torch, syntax.child(node, Field::left));
    load_whole(torch, node);
    NodeId left = syntax.child(node, Field::left), right = syntax.child(node, Field::right);
    if (right != kNoNode && syntax.text(left) != syntax.text(right) && torch.rendered(left) == torch.rendered(right) &&
        syntax.kind(syntax.parent(node)) == Kind::expression_statement)
      torch.drop(kTorchNames, syntax.parent(node), "nothing is left to do");
  }
}

}  // namespace cairn::migrate
