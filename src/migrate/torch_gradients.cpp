// torch.autograd.grad of a value by what it was computed from becomes the gradient of that computation as a function. A function
// of the script that is given both, derivative(y, x), is given the computation itself in place of its value.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

// One call of torch.autograd.grad, or of a function of the script that takes a computation.
struct Asked {
  NodeId call, value, seed;    // the expression, the gradient of its value
  std::vector<NodeId> inputs;  // the variables by which its gradient is wanted
  bool own = false;            // of the script: only the argument is rewritten
};

// A function of the script whose parameter `value` is a computation by its parameter `input`.
struct Taking {
  NodeId function;
  std::string value, input;
};

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The text with each use of a name, dotted or not, replaced; nothing where a string might hold it.
std::optional<std::string> substituted(const std::string& text, std::string_view name, const std::string& by) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(name, at);
    if (found == text.npos) return made + text.substr(at);
    const size_t end = found + name.size(), next = text.find_first_not_of(' ', end);
    const bool whole = (found == 0 || (!is_name_char(text[found - 1]) && text[found - 1] != '.')) &&
                       (end == text.size() || !is_name_char(text[end]));
    const bool keyword = next != text.npos && text[next] == '=' && text[next + 1] != '=' && name != by;
    if (whole && text.find_first_of("'\"") < found) return std::nullopt;
    made += text.substr(at, found - at) + (whole && !keyword ? by : std::string(name));
    at = end;
  }
  return made;
}

bool names(const Syntax& syntax, NodeId tree, std::string_view name) {
  for (NodeId node = tree; node != kNoNode && node < syntax[tree].after; ++node) {
    const Kind kind = syntax.kind(node);
    if ((kind != Kind::identifier && kind != Kind::attribute) || syntax.text(node) != name) continue;
    const bool keyword =
        syntax.kind(syntax.parent(node)) == Kind::keyword_argument && syntax[node].field == Field::name;
    if (!keyword && syntax[node].field != Field::attribute) return true;
  }
  return false;
}

NodeId enclosing_function(const Syntax& syntax, NodeId node) {
  const NodeId function = syntax.ancestor(node, Kind::function_definition);
  return function == kNoNode ? 0 : function;
}

// What a variable got last before a place: a whole expression, or one part of it.
struct Made {
  NodeId value = kNoNode;
  int part = -1;
  bool known = true;  // false: on one of several paths, or changed in place
};

Made made_before(const Syntax& syntax, std::string_view name, NodeId place) {
  Made found;
  for (NodeId at = enclosing_function(syntax, place); at < place; ++at) {
    const Kind kind = syntax.kind(at);
    if (kind != Kind::assignment && kind != Kind::augmented_assignment && kind != Kind::for_statement) continue;
    const NodeId left = syntax.child(at, Field::left), right = syntax.child(at, Field::right);
    if (left == kNoNode || !names(syntax, left, name) || syntax[at].after > place) continue;
    const NodeId block = syntax.parent(syntax.statement(at));
    found = {right, -1, kind == Kind::assignment && place > block && place < syntax[block].after};
    if (syntax.kind(left) == Kind::pattern_list || syntax.kind(left) == Kind::tuple_pattern) {
      const std::vector<NodeId> parts = syntax.children(left);
      for (size_t i = 0; i < parts.size(); ++i)
        if (syntax.text(parts[i]) == name) found.part = static_cast<int>(i);
      found.known = found.known && found.part >= 0;
    } else if (syntax.text(left) != name) {
      found.known = false;  // x[0] = ...
    }
  }
  return found;
}

class Gradients {
 public:
  explicit Gradients(TorchFile& torch) : torch_(torch), syntax_(torch.syntax) {
    for (NodeId call = 0; call < syntax_.size(); ++call)
      if (syntax_.kind(call) == Kind::call)
        if (std::optional<Asked> one = asked(call)) asked_.push_back(*one);
    for (size_t before = 0; before != taking_.size() + asked_.size();) {
      before = taking_.size() + asked_.size();
      for (const Asked& one : asked_) note_taking(one);
      note_calls();
    }
    std::sort(asked_.begin(), asked_.end(), [&](const Asked& a, const Asked& b) {  // what is inside another one first
      return syntax_[a.call].end < syntax_[b.call].end;
    });
  }

  bool rewrites(NodeId call) {
    for (const Asked& one : asked_)
      if (one.call == call) return expression(one).has_value();
    return false;
  }

  void rewrite() {
    for (const Asked& one : asked_) {
      std::optional<std::string> value = expression(one);
      if (!value) {
        if (one.own)
          torch_.leave(one.call, "torch.autograd.grad",
                       "what it is given is computed elsewhere: give it a function of " +
                           std::string(syntax_.text(one.inputs[0])));
        continue;
      }
      const std::string message = "the gradient of what is computed from " + torch_.file.text(one.inputs[0]);
      if (one.own) {
        if (syntax_.text(one.value) != *value) torch_.replace(kTorchNames, one.value, *value, message);
        continue;
      }
      std::string given = torch_.rendered(one.inputs[0]);
      for (size_t i = 1; i < one.inputs.size(); ++i) given += ", " + torch_.rendered(one.inputs[i]);
      if (one.inputs.size() > 1) given = "(" + given + ")";
      const std::string_view seed = syntax_.text(one.seed);
      const bool plain = one.seed == kNoNode || seed.starts_with("torch.ones") || is_own_value(one);
      torch_.replace(
          kTorchNames, one.call,
          fmt::format("gradients_of({}, {}{})", *value, given, plain ? "" : ", " + torch_.rendered(one.seed)), message);
      torch_.note(one.call, "torch.autograd.grad", "migrated by a combination");
    }
    for (const Taking& one : taking_) call_values(one);
  }

 private:
  std::optional<Asked> asked(NodeId call) const {
    if (!torch_.file.calls(call, "torch.autograd.grad")) return std::nullopt;
    Arguments bound = torch_.file.bind(call, "outputs inputs grad_outputs retain_graph create_graph only_inputs");
    NodeId outputs = bound.value("outputs"), input = syntax_.unwrap(bound.value("inputs"));
    if (!bound.plain || !bound.extra.empty() || outputs == kNoNode || input == kNoNode) return std::nullopt;
    auto single = [&](NodeId node) {  // [y] is y
      const Kind kind = syntax_.kind(node);
      std::vector<NodeId> parts = syntax_.children(node);
      return (kind == Kind::list || kind == Kind::tuple) && parts.size() == 1 ? parts[0] : node;
    };
    Asked found{call, single(outputs), bound.value("grad_outputs"), {single(input)}};
    if (found.seed != kNoNode) found.seed = single(found.seed);
    if (Kind kind = syntax_.kind(input); (kind == Kind::list || kind == Kind::tuple) && single(input) == input)
      found.inputs = syntax_.children(input);
    const bool plain = std::all_of(found.inputs.begin(), found.inputs.end(), [&](NodeId one) {
      return syntax_.kind(one) == Kind::identifier || syntax_.kind(one) == Kind::attribute;
    });
    return plain && !found.inputs.empty() ? std::optional(found) : std::nullopt;
  }

  // A seed of ones that stands in a variable or a parameter of the function.
  bool is_own_value(const Asked& one) const {
    const Made made = made_before(syntax_, syntax_.text(one.seed), one.call);
    return made.value != kNoNode && syntax_.text(made.value).starts_with("torch.ones");
  }

  // The expression with all that it was made of by the inputs put in place; nothing where that is unknown.
  std::optional<std::string> in_terms_of(NodeId node, const Asked& one, NodeId place, bool& depends, int depth) const {
    std::string text = torch_.rendered(node);
    std::set<std::string> seen;
    for (NodeId at = node; at < syntax_[node].after; ++at) {
      if (syntax_.kind(at) != Kind::identifier || syntax_[at].field == Field::attribute) continue;
      const std::string name(syntax_.text(at));
      if (!names(syntax_, node, name) || !seen.insert(name).second) continue;
      if (std::any_of(one.inputs.begin(), one.inputs.end(), [&](NodeId in) { return syntax_.text(in) == name; })) {
        depends = true;
        continue;
      }
      if (const size_t handed = handed_on(node, name)) {  // a function that takes the computation is given it
        if (handed != uses(node, name)) return std::nullopt;
        depends = true;
        continue;
      }
      if (const Taking* taking = taken_by(name, place); taking && syntax_.text(one.inputs[0]) == taking->input) {
        auto called = substituted(text, name, name + "(" + taking->input + ")");
        if (!called) return std::nullopt;
        text = *called, depends = true;
        continue;
      }
      const Made made = made_before(syntax_, name, place);
      if (made.value == kNoNode || depth > 12) continue;
      bool through = false;
      std::optional<std::string> inner = in_terms_of(made.value, one, made.value, through, depth + 1);
      if (!through) continue;
      if (!inner || !made.known) return std::nullopt;
      if (made.part >= 0) *inner = fmt::format("({})[{}]", *inner, made.part);
      const bool bare = inner->find_first_of(" ") == inner->npos || made.part >= 0;
      auto put = substituted(text, name, bare ? *inner : "(" + *inner + ")");
      if (!put) return std::nullopt;
      text = *put, depends = true;
    }
    for (NodeId input : one.inputs)
      if (syntax_.kind(input) == Kind::attribute && names(syntax_, node, syntax_.text(input))) {
        depends = true;
        auto put = substituted(text, syntax_.text(input), variable(input));
        if (!put) return std::nullopt;
        text = *put;
      }
    return text;
  }

  size_t uses(NodeId tree, std::string_view name) const {
    size_t count = 0;
    for (NodeId at = tree; at < syntax_[tree].after; ++at)
      count +=
          syntax_.kind(at) == Kind::identifier && syntax_.text(at) == name && syntax_[at].field != Field::attribute;
    return count;
  }

  // How many times an expression gives a computation to a function that takes one.
  size_t handed_on(NodeId tree, std::string_view name) const {
    return std::count_if(asked_.begin(), asked_.end(), [&](const Asked& one) {
      return one.own && one.value >= tree && one.value < syntax_[tree].after && syntax_.text(one.value) == name &&
             taken_by(name, one.call);
    });
  }

  std::string variable(NodeId input) const {
    const NodeId member = syntax_.child(input, Field::attribute);
    return std::string(syntax_.text(member == kNoNode ? input : member));
  }

  // `lambda x: ...`, or the name of a computation itself.
  std::optional<std::string> expression(const Asked& one) const {
    const Taking* taken =
        syntax_.kind(one.value) == Kind::identifier ? taken_by(syntax_.text(one.value), one.call) : nullptr;
    if (taken && syntax_.text(one.inputs[0]) == taken->input) return std::string(syntax_.text(one.value));
    bool depends = false;
    std::optional<std::string> text = in_terms_of(one.value, one, one.call, depends, 0);
    if (!text || !depends) return std::nullopt;
    if (one.inputs.size() == 1) return fmt::format("lambda {}: {}", variable(one.inputs[0]), *text);
    std::string joined;
    for (NodeId input : one.inputs) joined += (joined.empty() ? "" : ", ") + variable(input);
    return fmt::format("lambda given: (lambda {}: {})(*given)", joined, *text);
  }

  const Taking* taken_by(std::string_view name, NodeId place) const {
    const NodeId function = enclosing_function(syntax_, place);
    for (const Taking& one : taking_)
      if (one.function == function && one.value == name) return &one;
    return nullptr;
  }

  bool is_parameter(NodeId function, std::string_view name) const {
    if (function == 0) return false;
    for (const Parameter& one : torch_.file.module.parameters(function))
      if (one.name == name) return true;
    return false;
  }

  // Its value and its input are parameters: the value becomes the computation.
  void note_taking(const Asked& one) {
    const NodeId function = enclosing_function(syntax_, one.call);
    const std::string input(syntax_.text(one.inputs[0]));
    if (one.inputs.size() != 1 || !is_parameter(function, input)) return;
    // Callers in other files would give it a value.
    if (torch_.file.module.calls_of(syntax_.text(syntax_.child(function, Field::name))).empty()) return;
    bool depends = false;
    in_terms_of(one.value, one, one.call, depends, 0);
    if (depends) return;
    for (NodeId at = one.value; at < syntax_[one.value].after; ++at) {
      const std::string name(syntax_.text(at));
      if (syntax_.kind(at) != Kind::identifier || syntax_[at].field == Field::attribute) continue;
      if (is_parameter(function, name) && made_before(syntax_, name, one.call).value == kNoNode && name != "self") {
        taking_.push_back({function, name, input});
        return;
      }
    }
  }

  // Calls of functions that take a computation.
  void note_calls() {
    for (size_t i = 0; i < taking_.size(); ++i) {
      const Taking taking = taking_[i];
      const std::string_view called = syntax_.text(syntax_.child(taking.function, Field::name));
      std::string parameters;
      bool method = false;
      for (const Parameter& each : torch_.file.module.parameters(taking.function)) {
        if (each.name == "self")
          method = true;
        else
          parameters += (parameters.empty() ? "" : " ") + std::string(each.name);
      }
      for (NodeId call : torch_.file.module.calls_of(called)) {
        if (std::any_of(asked_.begin(), asked_.end(), [&](const Asked& one) { return one.call == call; })) continue;
        if ((syntax_.kind(syntax_.child(call, Field::function)) == Kind::attribute) != method) continue;
        Arguments bound = torch_.file.bind(call, parameters);
        NodeId value = bound.value(taking.value), input = syntax_.unwrap(bound.value(taking.input));
        if (value != kNoNode && input != kNoNode) asked_.push_back({call, value, kNoNode, {input}, true});
      }
    }
  }

  // Other uses of the value in a function that takes its computation: the computation is called.
  void call_values(const Taking& one) {
    const NodeId body = syntax_.child(one.function, Field::body);
    for (NodeId at = body; at < syntax_[body].after; ++at) {
      if (syntax_.kind(at) != Kind::identifier || syntax_.text(at) != one.value ||
          syntax_[at].field == Field::attribute)
        continue;
      const bool inside = std::any_of(asked_.begin(), asked_.end(), [&](const Asked& each) {
        return at >= (each.own ? each.value : each.call) && at < syntax_[each.own ? each.value : each.call].after;
      });
      const bool keyword =
          syntax_.kind(syntax_.parent(at)) == Kind::keyword_argument && syntax_[at].field == Field::name;
      if (!inside && !keyword)
        torch_.replace(kTorchNames, at, one.value + "(" + one.input + ")", "the value of a computation");
    }
  }

  TorchFile& torch_;
  const Syntax& syntax_;
  std::vector<Asked> asked_;
  std::vector<Taking> taking_;
};

}  // namespace

bool is_gradient_call(TorchFile& torch, NodeId call) {
  return !torch.file.options.recorded && torch.file.calls(call, "torch.autograd.grad") &&
         Gradients(torch).rewrites(call);
}
bool rewrite_leaf(TorchFile& torch, NodeId node) {
  if (torch.file.options.recorded) return rewrite_watched(torch, node);
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
  if (!torch.file.options.recorded) Gradients(torch).rewrite();
}

}  // namespace cairn::migrate
