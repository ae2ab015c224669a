// Which row of the table a call of PyTorch meets, and what the row's template makes of its arguments.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "migrate/torch_calls.h"

namespace cairn::migrate {
namespace {

using Need = TorchParameter::Need;

// ---- which row ----

}  // namespace

std::vector<std::string> lookups(const std::string& name) {
  std::vector<std::string> found = {name};
  size_t colon = name.find(':');
  if (colon == name.npos) {  // torch.distributions.normal.Normal is torch.distributions.Normal
    size_t last = name.rfind('.'), before = last == name.npos ? last : name.rfind('.', last - 1);
    if (before != name.npos && std::isupper(static_cast<unsigned char>(name[last + 1])))
      found.push_back(name.substr(0, before) + name.substr(last));
    return found;
  }
  std::string klass = name.substr(0, colon), method = name.substr(colon);
  for (std::string_view base :
       {"torch.nn.Module", "torch.optim.Optimizer", "torch.optim.lr_scheduler", "torch.distributions"})
    if (klass != base && is_subclass(klass, base)) found.push_back(std::string(base) + method);
  if (klass == "torch.nn.Parameter") found.push_back("torch.Tensor" + method);
  return found;
}

const std::vector<TorchRow>& rows_of(const std::string& name) {
  for (const std::string& one : lookups(name))
    if (const std::vector<TorchRow>& rows = torch_rows(one); !rows.empty()) return rows;
  static const std::vector<TorchRow> none;
  return none;
}

namespace {

// Arguments about how PyTorch computes, and not what.
bool has_no_meaning(std::string_view row, std::string_view argument, std::string_view value) {
  static constexpr std::array idle = {"foreach", "fused", "capturable", "differentiable", "verbose"};
  if (argument == "last_epoch" && value == "-1") return true;
  return row.starts_with("torch.optim.") && std::find(idle.begin(), idle.end(), argument) != idle.end();
}

}  // namespace

std::optional<Match> match(TorchFile& torch, NodeId call, const TorchRow& row) {
  const Syntax& syntax = torch.syntax;
  std::string names;  // what stands behind the rest parameter goes by keyword
  const TorchParameter* rest = nullptr;
  for (const TorchParameter& parameter : row.parameters) {
    if (parameter.need == Need::rest) rest = &parameter;
    static constexpr std::array by_keyword = {"dtype", "device", "requires_grad", "generator"};
    bool named = row.name.starts_with("torch.") && row.name.find_first_of(".:", 6) == row.name.npos &&
                 std::find(by_keyword.begin(), by_keyword.end(), parameter.name) != by_keyword.end();
    if (!rest && !named) names += (names.empty() ? "" : " ") + std::string(parameter.name);
  }
  Arguments bound = torch.file.bind(call, names);
  const NodeId list = syntax.child(call, Field::arguments);
  if (row.parameters.size() == 1 && row.parameters[0].only == "<all>") {  // the arguments as they are, **named too
    std::vector<NodeId> all = syntax.children(list);
    if (std::none_of(all.begin(), all.end(), [&](NodeId one) {
          return syntax.kind(one) == Kind::dictionary_splat || syntax.kind(one) == Kind::list_splat;
        }))
      return std::nullopt;
    return Match{&row, {{row.parameters[0].name, {syntax[all.front()].begin, syntax[all.back()].end}}}, {}};
  }
  if (syntax.kind(list) == Kind::generator_expression && !row.parameters.empty())  // f(x for x in y): one argument
    bound.given[row.parameters[0].name] = {list, list, false};
  else if (!bound.plain)
    return std::nullopt;
  std::vector<NodeId> others = bound.stars;
  auto keyword = [&](std::string_view name, NodeId value, NodeId argument) {
    const std::string_view also = name == "axis" ? "dim" : name == "keepdims" ? "keepdim" : name;  // NumPy's names
    auto known = std::find_if(row.parameters.begin(), row.parameters.end(), [&](const TorchParameter& one) {
      return (one.name == name || one.name == also) && one.need != Need::rest;
    });
    if (known != row.parameters.end()) bound.given.try_emplace(known->name, Arguments::Given{value, argument, true});
    return known != row.parameters.end() || has_no_meaning(row.name, name, syntax.text(value)) ||
           (rest && rest->only == "<any>");
  };
  for (NodeId extra : bound.extra) {
    NodeId name = syntax.kind(extra) == Kind::keyword_argument ? syntax.child(extra, Field::name) : kNoNode;
    if (name == kNoNode)
      others.push_back(extra);
    else if (!keyword(syntax.text(name), syntax.child(extra, Field::value), extra))
      return std::nullopt;
  }
  for (NodeId splat : bound.double_stars) {
    auto entries = entries_of(torch, splat);
    if (!entries) return std::nullopt;
    for (const auto& [name, value] : *entries)
      if (!keyword(name, value, splat)) return std::nullopt;
  }
  if (!rest && !others.empty()) return std::nullopt;
  Match found{&row, {}, {}};
  for (const TorchParameter& parameter : row.parameters) {
    if (parameter.need == Need::rest) continue;
    NodeId value = bound.value(parameter.name);
    if (value == kNoNode && parameter.need == Need::required) return std::nullopt;
    if (value == kNoNode) continue;
    if (parameter.need == Need::absent || !fits(torch, parameter, value)) return std::nullopt;
    found.given[parameter.name] = syntax.span(value);
    found.nodes[parameter.name] = value;
  }
  if (rest && others.empty() && rest->only != "<any>") return std::nullopt;
  if (!others.empty()) {
    std::sort(others.begin(), others.end());
    found.given[rest->name] = {syntax[others.front()].begin, syntax[others.back()].end};
    if (others.size() == 1) found.nodes[rest->name] = others[0];
  }
  NodeId callee = syntax.child(call, Field::function);
  found.given["call"] = syntax.span(callee);
  if (syntax.kind(callee) == Kind::attribute) found.given["self"] = syntax.span(syntax.child(callee, Field::object));
  return found;
}

namespace {

// ---- templates ----

// a * b, but not f(a, b)
bool has_outer_space(std::string_view text) {
  int depth = 0;
  for (char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ' ' && depth == 0) return true;
  }
  return false;
}

// with open("net.pt", "wb") as f: checkpoints are written by name.
bool is_open_file(TorchFile& torch, NodeId node) {
  uint32_t scope = kNoScope;
  if (torch.syntax.kind(node) != Kind::identifier) return false;
  std::vector<uint32_t> bindings = torch.file.module.lookup(torch.syntax.text(node), node, scope);
  return std::any_of(bindings.begin(), bindings.end(),
                     [&](uint32_t index) { return torch.file.module.bindings()[index].how == Bound::with; });
}

}  // namespace

bool some_script_holds(TorchFile& torch, std::string_view words) {
  const auto& modules = torch.file.project.modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const auto& one) { return one->text().find(words) != std::string::npos; });
}

namespace {

// A list of two or more variables: of an optimizer's parameters those that are made alone.
bool names_alone(const Syntax& syntax, NodeId list) {
  const std::vector<NodeId> items = syntax.children(list);
  return items.size() > 1 && std::all_of(items.begin(), items.end(), [&](NodeId item) {
           return syntax.kind(item) == Kind::identifier || syntax.kind(item) == Kind::attribute;
         });
}

// Whether an optimizer's parameters come from several networks, whose names may meet.
bool of_several_networks(TorchFile& torch, NodeId node, int depth = 0) {
  const Syntax& syntax = torch.syntax;
  std::set<std::string_view> owners, loops;
  for (NodeId at = node; node != kNoNode && at < syntax[node].after; ++at) {
    NodeId callee = syntax.child(at, Field::function);
    if (syntax.kind(at) == Kind::call && syntax.text(syntax.child(callee, Field::attribute)) == "parameters")
      owners.insert(syntax.text(syntax.child(callee, Field::object)));
    if (syntax.kind(at) == Kind::list && names_alone(syntax, at)) return true;  // [w1, w2]
    if (syntax.kind(at) == Kind::for_in_clause) loops.insert(syntax.text(syntax.child(at, Field::left)));
  }
  // Parameters that are made alone, or in cells that are added by name, have one name until they are told apart.
  const bool single =
      node != kNoNode && (torch.file.holds(node, "Parameter(") || some_script_holds(torch, ".add_module("));
  const bool several = owners.size() > 1 || std::any_of(loops.begin(), loops.end(), [&](std::string_view name) {
                         return owners.contains(name);  // p for net in nets for p in net.parameters()
                       });
  if (several || single || syntax.kind(node) != Kind::identifier || depth > 2) return several || single;
  uint32_t scope = kNoScope;
  for (uint32_t index : torch.file.module.lookup(syntax.text(node), node, scope))
    if (of_several_networks(torch, torch.file.module.bindings()[index].value, depth + 1)) return true;
  return false;
}

// A sum of lists or shapes: list(x.shape[:-1]) + [n].
bool is_listed(const Syntax& syntax, NodeId sum) {
  for (NodeId part : syntax.children(sum)) {
    const Kind kind = syntax.kind(part);
    const std::string_view callee = syntax.text(syntax.child(part, Field::function));
    const std::string_view text = syntax.text(part);
    if (kind == Kind::list || kind == Kind::tuple || callee == "list" || callee == "tuple" ||
        callee.ends_with(".size") ||
        (kind == Kind::subscript && text.find(".shape[") != text.npos && text.find(':') != text.npos) ||
        (kind == Kind::binary_operator && is_listed(syntax, part)) || text.ends_with(".shape"))
      return !text.starts_with("len(");
  }
  return false;
}

// Whether a size may be a tuple as well as a number.
bool may_be_tuple(TorchFile& torch, NodeId node) {
  const auto known = torch.file.resolver.literals(torch.file.module, node);
  return std::any_of(known.begin(), known.end(), [](const auto& one) {
    const Kind kind = one.first->syntax().kind(one.second);
    return kind == Kind::tuple || kind == Kind::list;
  });
}

}  // namespace

// What a transform makes of an argument; the plain text where it does not apply.
std::string transformed(TorchFile& torch, std::string_view how, NodeId node, const std::string& text) {
  const Syntax& syntax = torch.syntax;
  NodeId inner = node == kNoNode ? kNoNode : syntax.unwrap(node);
  Kind kind = syntax.kind(inner);
  std::vector<NodeId> parts;
  if (kind == Kind::tuple || kind == Kind::list) parts = syntax.children(inner);
  auto part = [&](size_t i) { return torch.rendered(parts[i]); };
  if (how == "keep") return one_minus(syntax, node);
  if (how == "operand") {
    bool plain = node == kNoNode || as_operand(syntax, node) == torch.file.text(node);
    return plain && !has_outer_space(text) ? text : "(" + text + ")";
  }
  if (how == "bare") {
    std::string value;
    return string_value(syntax, inner, value) ? value : text;
  }
  if (how == "pads") {  // (height, width) -> (top, bottom, left, right)
    if (parts.size() == 2) return fmt::format("({0}, {0}, {1}, {1})", part(0), part(1));
    return text;
  }
  if (how == "single") return parts.size() == 1 ? part(0) : text;
  if (how == "tuple") return parts.empty() && kind != Kind::tuple && kind != Kind::list ? "(" + text + ",)" : text;
  if (how == "shape") {  // the arguments of torch.zeros(2, 3) as one tuple
    if (kind == Kind::tuple || kind == Kind::list) return text;
    if (kind == Kind::attribute || kind == Kind::identifier) return text;  // x.shape, size
    if (kind == Kind::call) return text;                                   // x.size()
    if (kind == Kind::binary_operator && is_listed(syntax, inner)) return text;
    if (node != kNoNode && kind != Kind::list_splat) return "(" + text + ",)";
    if (kind == Kind::list_splat) return "(" + text + ",)";
    return "(" + text + ")";
  }
  if (how == "listed" && kind == Kind::generator_expression) return "[" + text.substr(1, text.size() - 2) + "]";
  if (how == "listed") return text.starts_with("range(") ? "list(" + text + ")" : text;
  if (how == "spread") {  // the shape of torch.randn(shape) as arguments
    bool shape = kind == Kind::tuple || kind == Kind::list || text.ends_with(".shape");
    return shape ? "*" + text : text;
  }
  if (how == "square") {
    if (parts.size() == 2) return part(0) + " * " + part(1);
    if (node != kNoNode && may_be_tuple(torch, inner)) return "area_of(" + text + ")";
    std::string operand = kind == Kind::integer || kind == Kind::identifier ? text : "(" + text + ")";
    return operand + " * " + operand;
  }
  if (how == "first" || how == "second") {
    size_t which = how == "first" ? 0 : 1;
    double number = 1;  // of the betas of Adam, which are above 0 in MindSpore: 1e-30 computes the same
    if (parts.size() == 2 && number_value(syntax, parts[which], number) && number == 0) return "1e-30";
    return parts.size() == 2 ? part(which) : fmt::format("{}[{}]", text, which);
  }
  if (how == "power")
    return (kind == Kind::integer || kind == Kind::identifier || kind == Kind::attribute ? text : "(" + text + ")") +
           " ** -0.5";
  if (how == "label") {
    std::string_view wide = ".astype(ms.int64)";
    std::string plain = text.ends_with(wide) ? text.substr(0, text.size() - wide.size()) : text;
    return (kind == Kind::binary_operator ? "(" + plain + ")" : plain) + ".astype(ms.int32)";
  }
  if (how == "cell") return torch.rendered(syntax.child(syntax.child(inner, Field::function), Field::object));
  if (how == "group") return kind == Kind::list ? text : "[{'params': " + text + "}]";
  if (how == "columns") return columns_of(torch, node);
  if (how == "checkpoint" && is_open_file(torch, inner)) return text + ".name";
  if (how == "path") return is_open_file(torch, inner) ? text + ".name" : text;
  if (how == "checkpoint") {
    for (std::string_view ending : {".pth.tar", ".pth", ".pt", ".bin"})
      if (size_t at = text.rfind(ending);
          kind == Kind::string && at != text.npos && at + ending.size() + 1 >= text.size())
        return text.substr(0, at) + ".ckpt" + text.substr(at + ending.size());
    const bool may_be_path = kind == Kind::identifier || kind == Kind::attribute || kind == Kind::binary_operator;
    return may_be_path && torch.file.holds("pathlib") ? "str(" + text + ")" : text;  // which MindSpore refuses
  }
  return text;
}

// The names of parameters in a template: $name, $name:transform, $name|default. {...} stays when all it names is given.
std::optional<std::vector<Piece>> expand(TorchFile& torch, const Match& match, std::string_view target) {
  std::vector<Piece> pieces;
  auto literal = [&](std::string_view text) {
    if (pieces.empty() || pieces.back().source) pieces.push_back({false, {}, ""});
    pieces.back().text += text;
  };
  auto word_end = [&](size_t at) {
    while (at < target.size() && (std::isalnum(static_cast<unsigned char>(target[at])) || target[at] == '_')) ++at;
    return at;
  };
  for (size_t at = 0; at < target.size();) {
    if (target[at] == '{') {
      size_t end = target.find('}', at);
      std::string_view group = target.substr(at + 1, end - at - 1);
      auto inner = expand(torch, match, group);
      for (const Piece& piece : inner ? *inner : std::vector<Piece>{}) {
        if (piece.source)
          pieces.push_back(piece);
        else
          literal(piece.text);
      }
      at = end + 1;
      continue;
    }
    if (target[at] != '$') {
      literal(target.substr(at, 1));
      ++at;
      continue;
    }
    size_t end = word_end(at + 1);
    std::string_view name = target.substr(at + 1, end - at - 1), how, otherwise;
    bool has_default = false;
    if (end < target.size() && target[end] == ':') {
      size_t from = end + 1;
      end = word_end(from);
      how = target.substr(from, end - from);
    }
    if (end < target.size() && target[end] == '|') {
      size_t from = end + 1;
      end = std::min(target.find_first_of(",){} ", from), target.size());
      otherwise = target.substr(from, end - from);
      has_default = true;
    }
    at = end;
    auto given = match.given.find(name);
    if (given == match.given.end()) {
      if (!has_default) return std::nullopt;
      if (auto other = match.given.find(otherwise.substr(otherwise.starts_with('$'))); other != match.given.end())
        literal(torch.rendered(other->second));
      else
        literal(otherwise);
      continue;
    }
    auto node = match.nodes.find(name);
    std::string text = torch.rendered(given->second);
    if (name == "params" && node != match.nodes.end() && of_several_networks(torch, node->second)) {
      std::string made = "distinct(" + text + ")";
      const bool groups = torch.syntax.kind(node->second) == Kind::list;
      literal(how == "group" && !groups ? "[{'params': " + made + "}]" : made);
      continue;
    }
    std::string made =
        how.empty() ? text : transformed(torch, how, node == match.nodes.end() ? kNoNode : node->second, text);
    if (made == text)
      pieces.push_back({true, given->second, text, node == match.nodes.end() ? kNoNode : node->second});
    else
      literal(made);
  }
  return pieces;
}

}  // namespace cairn::migrate
