// Attributes of PyTorch's layers and optimizers that have other names in MindSpore.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

// The class names that an isinstance(), or a condition on the name of its class, gives the object whose text this is.
std::vector<std::string> narrowed(TorchFile& torch, NodeId node, std::string_view object) {
  const Syntax& syntax = torch.syntax;
  const bool by_name = torch.file.holds(std::string(object) + ".__class__.__name__");  // classname.find("BatchNorm")
  std::vector<std::string> found;
  for (NodeId up = syntax.parent(node); up != kNoNode && found.empty(); up = syntax.parent(up)) {
    if (syntax.kind(up) != Kind::if_statement && syntax.kind(up) != Kind::elif_clause) continue;
    NodeId condition = syntax.child(up, Field::condition), body = syntax.child(up, Field::consequence);
    if (body == kNoNode || node < body || node >= syntax[body].after) continue;
    for (NodeId at = condition; at < syntax[condition].after; ++at) {
      std::string word;
      if (by_name && syntax.kind(at) == Kind::string && string_value(syntax, at, word))
        found.push_back("torch.nn." + word);
      if (syntax.kind(at) != Kind::call || syntax.text(syntax.child(at, Field::function)) != "isinstance") continue;
      std::vector<NodeId> arguments = syntax.children(syntax.child(at, Field::arguments));
      if (arguments.size() != 2 || syntax.text(arguments[0]) != object) continue;
      std::vector<NodeId> classes = {arguments[1]};
      if (syntax.kind(arguments[1]) == Kind::tuple) classes = syntax.children(arguments[1]);
      for (NodeId klass : classes)
        for (const ApiName& name : torch.file.resolver.names(torch.file.module, klass)) found.push_back(name.name);
    }
  }
  return found;
}

// The classes of what a ModuleDict of the file holds under a name: self.transformer.wte.
std::vector<std::string> classes_in_dictionaries(TorchFile& torch, NodeId object) {
  const Syntax& syntax = torch.syntax;
  const std::string_view name = syntax.text(syntax.child(object, Field::attribute));
  std::vector<std::string> found;
  if (name.empty() || !torch.file.holds("ModuleDict(")) return found;
  for (NodeId at = 0; at < syntax.size(); ++at) {
    std::string key;
    if (syntax.kind(at) == Kind::keyword_argument)
      key = syntax.text(syntax.child(at, Field::name));
    else if (syntax.kind(at) != Kind::pair || !string_value(syntax, syntax.child(at, Field::key), key))
      continue;
    if (key != name) continue;
    for (const Value& value : Values(torch.file.resolver.values(torch.file.module, syntax.child(at, Field::value))))
      if (value.is == Value::Is::instance) found.push_back(canonical(value.name).name);
  }
  return found;
}

}  // namespace

bool is_own_optimizer(TorchFile& torch, NodeId object) {
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, object))) {
    if (value.is != Value::Is::object) continue;
    for (const std::string& base : torch.file.resolver.external_bases(*value.module, value.node))
      if (base.starts_with("torch.optim.") && base.ends_with(".Optimizer")) return true;
  }
  return false;
}

// The name of a layer's parameter: gamma of a normalisation's weight, embedding_table of an embedding's.
void rewrite_parameter(TorchFile& torch, NodeId attribute) {
  struct Row {
    std::string_view klass, old_name, new_name;
  };
  static constexpr Row rows[] = {
      {"Norm", "weight", "gamma"},
      {"Norm", "bias", "beta"},
      {"Norm", "running_mean", "moving_mean"},
      {"Norm", "running_var", "moving_variance"},
      {"Embedding", "weight", "embedding_table"},
      {"PReLU", "weight", "w"},
  };
  const Syntax& syntax = torch.syntax;
  NodeId object = syntax.child(attribute, Field::object), member = syntax.child(attribute, Field::attribute);
  std::string_view name = syntax.text(member);
  static constexpr std::string_view others[] = {"Norm", "Embedding", "PReLU"};
  if (name == "in_features" || name == "out_features") {  // of a Linear, which a network of others may hold as well
    const Values values = torch.file.resolver.values(torch.file.module, object);
    const bool own =
        std::any_of(values.begin(), values.end(), [](const Value& v) { return v.is == Value::Is::object; });
    if (syntax.text(object) != "self" && !own)
      torch.replace(kTorchNames, member, name == "in_features" ? "in_channels" : "out_channels",
                    "a layer's attribute has another name");
    return;
  }
  if (name != "weight" && name != "bias" && name != "running_mean" && name != "running_var") return;
  std::vector<std::string> classes = narrowed(torch, attribute, syntax.text(object));
  if (classes.empty())
    for (const Value& value : Values(torch.file.resolver.values(torch.file.module, object)))
      if (value.is == Value::Is::instance) classes.push_back(canonical(value.name).name);
  if (classes.empty()) classes = classes_in_dictionaries(torch, object);
  for (const Row& row : rows)
    if (row.old_name == name && !classes.empty() &&
        std::all_of(classes.begin(), classes.end(), [&](const std::string& one) {
          return one.starts_with("torch.nn.") && one.find(row.klass) != one.npos;
        })) {
      torch.replace(kTorchNames, member, std::string(row.new_name), "a layer's parameter has another name");
      return;
    }
  const bool mixed = std::any_of(classes.begin(), classes.end(), [](const std::string& one) {
    return std::any_of(std::begin(others), std::end(others),
                       [&](std::string_view each) { return one.find(each) != one.npos; });
  });
  if (mixed && (name == "weight" || name == "bias") && syntax[attribute].field != Field::left)
    torch.replace(kTorchNames, attribute, fmt::format("{}_of({})", name, torch.rendered(object)),
                  "layers of several classes name this parameter each in their way");
}

// optimizer.param_groups[0]["lr"], read or set.
bool rewrite_rate(TorchFile& torch, NodeId attribute) {
  const Syntax& syntax = torch.syntax;
  if (syntax.kind(attribute) != Kind::attribute ||
      syntax.text(syntax.child(attribute, Field::attribute)) != "param_groups")
    return false;
  if (is_own_optimizer(torch, syntax.child(attribute, Field::object))) return true;  // it keeps its groups as it likes
  NodeId group = syntax.parent(attribute), rate = syntax.parent(group);
  std::string optimizer = torch.rendered(syntax.child(attribute, Field::object));
  if (syntax.kind(group) == Kind::for_statement && syntax[attribute].field == Field::right) {
    // for group in optimizer.param_groups: group["lr"] = rate
    std::vector<NodeId> body = syntax.children(syntax.child(group, Field::body));
    std::string target = torch.file.text(syntax.child(group, Field::left));
    NodeId assignment = body.size() == 1 ? syntax.first(body[0]) : kNoNode;
    std::string_view left = syntax.text(syntax.child(assignment, Field::left));
    if (syntax.kind(assignment) == Kind::assignment && (left == target + "['lr']" || left == target + "[\"lr\"]")) {
      std::string value = torch.rendered(syntax.child(assignment, Field::right));
      torch.replace(kTorchNames, group, fmt::format("set_rates({}, {})", optimizer, value),
                    "the learning rates are parameters of the optimizer");
      torch.note(attribute, "torch.optim.Optimizer.param_groups", "migrated by a combination");
      return true;
    }
  }
  std::string_view ending = syntax.text(rate).substr(syntax[attribute].end - syntax[attribute].begin);
  if (syntax.kind(rate) != Kind::subscript || (ending != "[0]['lr']" && ending != "[0][\"lr\"]")) {
    torch.leave(attribute, "torch.optim.Optimizer.param_groups",
                "the learning rate is " + optimizer + ".learning_rate, a parameter that set_data() changes");
    return true;
  }
  NodeId up = syntax.parent(rate);
  if (syntax.kind(up) == Kind::assignment && syntax[rate].field == Field::left) {
    std::string value = torch.rendered(syntax.child(up, Field::right));
    torch.replace(kTorchNames, up,
                  fmt::format("{}.learning_rate.set_data(ms.Tensor({}, ms.float32))", optimizer, value),
                  "the learning rate is a parameter of the optimizer");
  } else {
    torch.replace(kTorchNames, rate, optimizer + ".learning_rate.asnumpy().item()",
                  "the learning rate is a parameter of the optimizer");
  }
  torch.note(attribute, "torch.optim.Optimizer.param_groups", "migrated by a combination");
  return true;
}

}  // namespace cairn::migrate
