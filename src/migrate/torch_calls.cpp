// Names and calls of PyTorch by the table: each becomes the text of its row, with the arguments left where they stand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

using Need = TorchParameter::Need;

struct Piece {
  bool source;  // a span of the old text; otherwise new text
  Span span;
  std::string text;
  NodeId node = kNoNode;
};

// How one call meets one row.
struct Match {
  const TorchRow* row;
  std::map<std::string_view, Span>
      given;  // parameter -> its argument; "self"; the rest parameter spans all its arguments
  std::map<std::string_view, NodeId> nodes;
};

// ---- which row ----

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

// Arguments about how PyTorch computes, and not what.
bool has_no_meaning(std::string_view row, std::string_view argument, std::string_view value) {
  static constexpr std::array idle = {"foreach", "fused", "capturable", "differentiable", "verbose"};
  if (argument == "last_epoch" && value == "-1") return true;
  return row.starts_with("torch.optim.") && std::find(idle.begin(), idle.end(), argument) != idle.end();
}

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

bool some_script_holds(TorchFile& torch, std::string_view words) {
  const auto& modules = torch.file.project.modules();
  return std::any_of(modules.begin(), modules.end(),
                     [&](const auto& one) { return one->text().find(words) != std::string::npos; });
}

// Whether an optimizer's parameters come from several networks, whose names may meet.
bool of_several_networks(TorchFile& torch, NodeId node, int depth = 0) {
  const Syntax& syntax = torch.syntax;
  std::set<std::string_view> owners, loops;
  for (NodeId at = node; node != kNoNode && at < syntax[node].after; ++at) {
    NodeId callee = syntax.child(at, Field::function);
    if (syntax.kind(at) == Kind::call && syntax.text(syntax.child(callee, Field::attribute)) == "parameters")
      owners.insert(syntax.text(syntax.child(callee, Field::object)));
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

// ---- edits ----

// The text between two arguments becomes `by`; line breaks and comments at its comma stay.
void write_gap(TorchFile& torch, Rewrite& rewrite, Span gap, std::string by, bool first, bool last, uint32_t size) {
  std::string_view old = std::string_view(torch.text).substr(gap.begin, gap.size());
  torch.discard(gap, first, last);
  if (old == by) return;
  torch.needing(by);
  if (gap.size() == 0) {
    rewrite.insert(gap.begin, by, first ? (int64_t{1} << 40) - size : -(int64_t{1} << 40) + size);
    return;
  }
  const bool breaks = old.find_first_of("#\n") != old.npos;
  if (size_t open = old.rfind('('); breaks && first && !last && open != old.npos && by.ends_with('(') &&
                                    old.find_first_not_of(" \t\r\n", open + 1) == old.npos) {
    rewrite.replace(Span{gap.begin, gap.begin + static_cast<uint32_t>(open) + 1}, std::move(by));
    return;
  }
  size_t comma = old.find(',');
  if (comma != old.rfind(',')) comma = old.npos;  // an argument between goes
  if (breaks && !first && !last && comma != old.npos && old.substr(0, comma).find_first_not_of(" ") == old.npos) {
    size_t keyword = old.find_last_of("\n ,") + 1;  // "name=" of the old argument
    size_t split = by.rfind(", ");
    if (split != by.npos) {
      if (split > 0) rewrite.insert(gap.begin, by.substr(0, split), -(int64_t{1} << 40) + size);
      std::string name = by.substr(split + 2);
      if (old.substr(keyword) != name) rewrite.replace(Span{gap.begin + static_cast<uint32_t>(keyword), gap.end}, name);
      return;
    }
  }
  size_t close = by.rfind(')');
  if (breaks && !first && last && close != by.npos && old.find(')') != old.npos && old.find('=') == old.npos) {
    if (close > 0) rewrite.insert(gap.begin, by.substr(0, close), -(int64_t{1} << 40) + size);
    if (close + 1 < by.size()) rewrite.insert(gap.end, by.substr(close + 1), -(int64_t{1} << 40) + size);
    return;
  }
  rewrite.replace(gap, std::move(by));
}

void write(TorchFile& torch, NodeId node, const std::vector<Piece>& pieces, const std::string& message) {
  const Node& at = torch.syntax[node];
  NodeId callee = torch.syntax.kind(node) == Kind::call ? torch.syntax.child(node, Field::function) : node;
  torch.settle(callee);
  Rewrite rewrite(torch.file, kTorchNames, node, message);
  rewrite.tier(kTorchNames.tier);
  uint32_t cursor = at.begin;
  std::string pending;
  for (const Piece& piece : pieces) {
    if (!piece.source || piece.span.begin < cursor || piece.span.end > at.end) {
      pending += piece.text;
      torch.needing(piece.source ? std::string() : piece.text);
      continue;
    }
    write_gap(torch, rewrite, {cursor, piece.span.begin}, std::exchange(pending, {}), cursor == at.begin, false,
              at.end - at.begin);
    cursor = piece.span.end;
  }
  write_gap(torch, rewrite, {cursor, at.end}, pending, cursor == at.begin, true, at.end - at.begin);
  rewrite.commit();
}

// ---- names ----

bool is_statement(const Syntax& syntax, NodeId node) {
  return syntax.kind(syntax.parent(node)) == Kind::expression_statement;
}

std::string shown(const std::string& name) {
  size_t colon = name.find(':');
  return colon == name.npos ? name : name.substr(0, colon) + "." + name.substr(colon + 1);
}

std::string reason_of(const std::string& name, const TorchRow* row) {
  if (row && row->how == TorchRow::How::missing) return row->target;
  std::string dotted = shown(name);
  std::string_view nearest = torch_nearest(dotted);
  if (row) return "its arguments here have no counterpart: write it by hand";
  if (nearest.empty()) return "MindSpore has nothing by which it could be replaced";
  return "the nearest in MindSpore is " + std::string(nearest);
}

// Operators get parentheses where the new text binds tighter than they do.
void enclose(const Syntax& syntax, std::vector<Piece>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    Kind kind = syntax.kind(pieces[i].node);
    bool loose = kind == Kind::binary_operator || kind == Kind::unary_operator || kind == Kind::comparison_operator ||
                 kind == Kind::boolean_operator || kind == Kind::not_operator || kind == Kind::conditional_expression ||
                 kind == Kind::lambda || kind == Kind::integer || kind == Kind::float_;
    if (!pieces[i].source || pieces[i].node == kNoNode || !loose) continue;
    const std::string next = i + 1 < pieces.size() && !pieces[i + 1].source ? pieces[i + 1].text : "";
    const std::string last = i > 0 && !pieces[i - 1].source ? pieces[i - 1].text : "";
    auto operates = [](char c) { return std::string_view("+-*/<@").find(c) != std::string_view::npos; };
    bool number = kind == Kind::integer || kind == Kind::float_;
    bool binds = next.starts_with('.') || next.starts_with('[') ||
                 (!number && ((next.size() > 1 && next[0] == ' ' && operates(next[1])) ||
                              (last.size() > 1 && last.ends_with(' ') && operates(last[last.size() - 2]))));
    if (!binds) continue;
    if (i == 0 || pieces[i - 1].source) pieces.insert(pieces.begin() + i++, {false, {}, "", kNoNode});
    pieces[i - 1].text += "(";
    if (i + 1 == pieces.size() || pieces[i + 1].source) pieces.insert(pieces.begin() + i + 1, {false, {}, "", kNoNode});
    pieces[i + 1].text.insert(0, ")");
  }
}

// The last call of the chain x.mul_(a).add_(b) in which this one stands.
NodeId last_in_place(const Syntax& syntax, NodeId call) {
  for (NodeId next = syntax.parent(syntax.parent(call));
       is_in_place(syntax, next) && syntax.child(syntax.child(next, Field::function), Field::object) == call;
       next = syntax.parent(syntax.parent(call)))
    call = next;
  return call;
}

// The iterable of the loop that sets a variable; "" of others.
std::string_view loop_over(const Syntax& syntax, NodeId variable) {
  if (syntax.kind(variable) != Kind::identifier) return "";
  for (NodeId up = syntax.parent(variable); up != kNoNode; up = syntax.parent(up)) {
    if (syntax.kind(up) != Kind::for_statement) continue;
    NodeId left = syntax.child(up, Field::left);
    for (NodeId node = left; node < syntax[left].after; ++node)
      if (syntax.kind(node) == Kind::identifier && syntax.text(node) == syntax.text(variable))
        return syntax.text(syntax.child(up, Field::right));
  }
  return "";
}

bool is_loop_variable(const Syntax& syntax, NodeId node) { return !loop_over(syntax, node).empty(); }

// A variable of a function or script around the one that changes it in place.
bool is_outer_variable(TorchFile& torch, NodeId node) {
  uint32_t scope = kNoScope;
  if (torch.syntax.kind(node) != Kind::identifier) return false;
  torch.file.module.lookup(torch.syntax.text(node), node, scope);
  const NodeId function = torch.syntax.ancestor(node, Kind::function_definition);
  return scope != kNoScope && function != kNoNode && torch.file.module.scopes()[scope].node != function &&
         torch.file.module.scopes()[scope].node < function;
}

// A variable that stands for an entry of a dictionary of states: buffer = state["momentum"].
bool is_entry(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  uint32_t scope = kNoScope;
  if (syntax.kind(node) != Kind::identifier) return false;
  for (uint32_t index : torch.file.module.lookup(syntax.text(node), node, scope)) {
    NodeId made = torch.file.module.bindings()[index].value;
    if (syntax.kind(made) == Kind::expression_list || syntax.kind(made) == Kind::tuple) made = syntax.first(made);
    std::string key;
    if (syntax.kind(made) == Kind::subscript && string_value(syntax, syntax.child(made, Field::subscript), key) &&
        syntax.text(syntax.child(made, Field::value)).find("state") != std::string_view::npos)
      return true;
  }
  return false;
}

bool is_data_of_parameter(const Syntax& syntax, NodeId node) {
  if (syntax.kind(node) == Kind::attribute)
    return syntax.text(syntax.child(node, Field::attribute)) == "data" &&
           syntax.text(syntax.child(syntax.child(node, Field::object), Field::attribute)) != "grad";
  static constexpr std::array sources = {"parameters()", "state_dict()", "buffers()"};
  std::string_view over = loop_over(syntax, node);
  return std::any_of(sources.begin(), sources.end(), [&](std::string_view one) { return over.find(one) != over.npos; });
}

bool is_gradient(const Syntax& syntax, NodeId node) {
  return syntax.kind(node) == Kind::attribute && syntax.text(syntax.child(node, Field::attribute)) == "grad";
}

// p.grad of p.grad, p.grad.data and p.grad.detach().
NodeId owner_of_gradient(const Syntax& syntax, NodeId node) {
  if (syntax.kind(node) == Kind::call) node = syntax.child(node, Field::function);
  if (is_gradient(syntax, node)) return node;
  std::string_view member = syntax.text(syntax.child(node, Field::attribute));
  NodeId object = syntax.child(node, Field::object);
  return (member == "data" || member == "detach") && is_gradient(syntax, object) ? object : kNoNode;
}

// A variable that holds a tensor and no parameter: made by a function as torch.empty.
bool is_plain_tensor(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  uint32_t scope = kNoScope;
  if (syntax.kind(node) != Kind::identifier) return false;
  const std::vector<uint32_t> bindings = torch.file.module.lookup(syntax.text(node), node, scope);
  return !bindings.empty() && std::all_of(bindings.begin(), bindings.end(), [&](uint32_t index) {
    const NodeId made = torch.file.module.bindings()[index].value;
    if (made == kNoNode || syntax.kind(made) != Kind::call ||
        syntax.text(made).find("requires_grad") != std::string::npos)
      return false;
    for (const ApiName& name : torch.file.resolver.names(torch.file.module, syntax.child(made, Field::function)))
      if (name.name.starts_with("torch.") && name.name.find('.', 6) == name.name.npos) return true;
    return false;
  });
}

// Applies a row's target to a call; the words `drop` and `pass` stand for the statement that goes.
bool apply(TorchFile& torch, NodeId call, const std::string& name, Match found) {
  const TorchRow& row = *found.row;
  const Syntax& syntax = torch.syntax;
  std::string message = shown(name) + (row.how == TorchRow::How::direct ? " has its counterpart" : " by a combination");
  if (row.target == "drop") {
    if (!is_statement(syntax, call)) {
      torch.replace(kTorchNames, call, "None", shown(name) + " has nothing to do");
    } else {
      torch.drop(kTorchNames, syntax.statement(call), shown(name) + " has nothing to do");
    }
  } else {
    bool assigns = row.target.find(" = ") != row.target.npos && row.target.find('(') > row.target.find(" = ");
    std::string target = row.target;
    NodeId outer = syntax.parent(syntax.parent(call));
    if (name.ends_with(":parameters") && syntax.text(syntax.child(outer, Field::function)) == "next")
      target = "iter(" + target + ")";
    else if (name.ends_with(":requires_grad_") && is_statement(syntax, call) &&
             is_loop_variable(syntax, syntax.child(syntax.child(call, Field::function), Field::object))) {
      const std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
      target = "$self.requires_grad = " + (arguments.empty() ? "True" : torch.rendered(arguments[0]));
    } else if (name.ends_with(":parameters") && is_iterated(syntax, call) && some_script_holds(torch, "requires_grad"))
      target = "parameters_of($self)";
    if (assigns && !is_statement(syntax, call)) {  // its value alone; a variable that it changes stays as it was
      if (!target.starts_with("$self = ")) return false;
      target.erase(0, 8);
      NodeId object = syntax.child(syntax.child(call, Field::function), Field::object);
      if (syntax.kind(object) != Kind::call && !is_statement(syntax, last_in_place(syntax, call)))
        torch.file.find(kTorchNames, call, Severity::note, shown(name) + " inside an expression",
                        "what it changed in place stays as it was: see whether it is read afterwards");
    } else if (target.starts_with("$self.set_data(") &&
               syntax.kind(changed_in_place(syntax, call)) == Kind::call) {  // of a new tensor: the value alone
      target = target.substr(15, target.size() - 16);
    } else if (assigns && target.starts_with("$self = ")) {
      NodeId root = changed_in_place(syntax, call);
      if (NodeId owner = owner_of_gradient(syntax, root); owner != kNoNode) root = owner;
      found.given["root"] = syntax.span(root);
      const char* set = is_gradient(syntax, root)            ? ""
                        : is_data_of_parameter(syntax, root) ? ".set_data("
                        : is_loop_variable(syntax, root) || is_entry(torch, root) || is_outer_variable(torch, root)
                            ? ".assign_value("
                            : "";
      target = *set ? "$root" + (set + target.substr(8)) + ")" : "$root" + target.substr(5);
    }
    for (std::string_view owner : {"$self", "$tensor"})
      if (const std::string set = std::string(owner) + ".set_data("; target.starts_with(set)) {
        auto node = found.nodes.find(owner.substr(1));
        const NodeId changed =
            node == found.nodes.end() ? syntax.child(syntax.child(call, Field::function), Field::object) : node->second;
        if (!is_plain_tensor(torch, changed)) continue;
        const bool lazy = target.find("initializer(") != target.npos;
        target = std::string(owner) + ".assign_value(" + target.substr(set.size());
        if (lazy) target.insert(target.size() - 1, ".init_data()");
      }
    auto pieces = expand(torch, found, target);
    if (!pieces) return false;
    enclose(syntax, *pieces);
    for (Piece& piece : *pieces)
      for (size_t at = piece.text.find("(, "); !piece.source && at != std::string::npos; at = piece.text.find("(, "))
        piece.text.erase(at + 1, 2);
    write(torch, call, *pieces, message);
  }
  if (!row.note.empty()) torch.file.find(kTorchNames, call, Severity::note, shown(name), row.note);
  torch.note(call, shown(name), row.how == TorchRow::How::direct ? "migrated" : "migrated by a combination", row.note);
  torch.file.rewritten[syntax.child(call, Field::function)] = kTorchNames.id;
  return true;
}

// np.finfo(x).eps, digits.data of digits = load_digits(): what a library other than PyTorch gives.
bool begins_with_library(TorchFile& torch, NodeId node, int depth = 0) {
  const Syntax& syntax = torch.syntax;
  for (;;) {
    Kind kind = syntax.kind(node);
    if (kind == Kind::attribute)
      node = syntax.child(node, Field::object);
    else if (kind == Kind::call)
      node = syntax.child(node, Field::function);
    else if (kind == Kind::subscript)
      node = syntax.child(node, Field::value);
    else
      break;
  }
  if (syntax.kind(node) != Kind::identifier || depth > 3) return false;
  uint32_t scope = kNoScope;
  const std::vector<uint32_t> bindings = torch.file.module.lookup(syntax.text(node), node, scope);
  return !bindings.empty() && std::all_of(bindings.begin(), bindings.end(), [&](uint32_t index) {
    const Binding& one = torch.file.module.bindings()[index];
    const std::string& from = one.module;
    if (one.how == Bound::import || one.how == Bound::from_import) {
      static constexpr std::array libraries = {"numpy", "math",       "pandas", "scipy", "sklearn",  "PIL",
                                               "cv2",   "matplotlib", "json",   "os",    "argparse", "re"};
      const std::string first = from.substr(0, from.find('.'));
      return (depth == 0 && first == "random") ||
             std::find(libraries.begin(), libraries.end(), first) != libraries.end();
    }
    const bool made = one.how == Bound::assigned &&
                      (syntax.kind(one.value) == Kind::call || syntax.kind(one.value) == Kind::attribute);
    return made && begins_with_library(torch, one.value, depth + 1);
  });
}

// The names by which a call may be known in the table: by what it calls, by the class of its receiver, by a method that only
// tensors and modules of PyTorch have.
std::vector<std::string> call_names(TorchFile& torch, NodeId call) {
  const Syntax& syntax = torch.syntax;
  NodeId callee = syntax.child(call, Field::function);
  std::vector<std::string> found;
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, callee))) {
    if (value.is == Value::Is::function) return {};  // a method of the project's own
    if (value.is == Value::Is::named) found.push_back(canonical(value.name).name);
    if (value.is == Value::Is::method) found.push_back(canonical(value.name).name + ":" + value.member);
    if (value.is == Value::Is::instance && value.name.starts_with("torch."))
      found.push_back(canonical(value.name).name + ":__call__");
  }
  std::erase_if(found, [](const std::string& name) { return !name.starts_with("torch"); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (syntax.kind(callee) != Kind::attribute) return found;
  const bool listed =
      std::any_of(found.begin(), found.end(), [](const std::string& name) { return !rows_of(name).empty(); });
  if (!found.empty() && (listed || !is_torch_method(syntax.text(syntax.child(callee, Field::attribute))))) return found;
  found.clear();  // names that the table lacks, of a method that only tensors have
  NodeId object = syntax.child(callee, Field::object);
  std::string method(syntax.text(syntax.child(callee, Field::attribute)));
  const Values known = torch.file.resolver.values(torch.file.module, object);
  bool tensor = torch.file.resolver.is_instance(torch.file.module, object, "torch.Tensor") ||
                owner_of_gradient(syntax, object) != kNoNode;
  if (!tensor && begins_with_library(torch, object)) return found;
  bool foreign = !known.empty() && !tensor && std::none_of(known.begin(), known.end(), [](const Value& value) {
    const bool buffer =
        value.is == Value::Is::method && value.name.starts_with("torch.nn.");  // self.mean of register_buffer
    return value.is == Value::Is::literal || value.is == Value::Is::object || buffer;
  });
  if (foreign) return found;
  bool keyword = false;  // dim= and keepdim= are PyTorch's words
  for (NodeId argument : syntax.children(syntax.child(call, Field::arguments)))
    if (syntax.kind(argument) == Kind::keyword_argument) {
      std::string_view word = syntax.text(syntax.child(argument, Field::name));
      keyword =
          keyword || word == "dim" || word == "keepdim" || (word == "alpha" && (method == "add" || method == "sub"));
    }
  if (tensor || keyword || is_torch_method(method)) {
    found.push_back("torch.Tensor:" + method);
  } else if (const auto& rows = torch_rows("torch.nn.Module:" + method); !rows.empty() && rows[0].only_torch) {
    found.push_back("torch.nn.Module:" + method);
  }
  return found;
}

bool is_imported(TorchFile& torch, NodeId name) {
  uint32_t scope = kNoScope;
  std::vector<uint32_t> bindings = torch.file.module.lookup(torch.syntax.text(name), name, scope);
  return std::any_of(bindings.begin(), bindings.end(),
                     [&](uint32_t index) { return torch.file.module.bindings()[index].how == Bound::from_import; });
}

// act() of a variable that may hold one of several classes: they are translated where the variable gets them.
bool keeps_variable(TorchFile& torch, NodeId call, const std::vector<std::string>& names) {
  const Syntax& syntax = torch.syntax;
  NodeId callee = syntax.child(call, Field::function);
  if (syntax.kind(callee) != Kind::identifier || names.size() < 2 || is_imported(torch, callee)) return false;
  const std::vector<NodeId> given = syntax.children(syntax.child(call, Field::arguments));
  if (given.size() == 2 && std::all_of(names.begin(), names.end(), [](const std::string& name) {
        return name.ends_with("Loss:__call__");
      })) {  // some of them take labels
    torch.replace(kTorchNames, given[1], "as_labels(" + torch.rendered(given[1]) + ")", "labels have 32 bits");
    return true;
  }
  if (!syntax.children(syntax.child(call, Field::arguments)).empty())
    torch.leave(call, shown(names[0]), "it may be " + shown(names[1]) + " as well: write a call for each");
  return true;
}

void rewrite_call(TorchFile& torch, NodeId call) {
  if (rewrite_leaf(torch, call) || rewrite_named(torch, call)) return;
  const std::vector<std::string> names = call_names(torch, call);
  if (keeps_variable(torch, call, names)) return;
  for (const std::string& name : names) {
    const std::vector<TorchRow>& rows = rows_of(name);
    const TorchRow* refused = nullptr;
    bool done = false;
    for (const TorchRow& row : rows) {
      if (!row.call) continue;
      refused = &row;
      auto found = match(torch, call, row);
      if (!found) continue;
      if (row.how == TorchRow::How::missing) break;
      if ((done = apply(torch, call, name, *found))) break;
    }
    if (done) return;
    // A plain method that is alike on both sides, or a tensor's that the table does not speak about.
    if (rows.empty() && name.find(':') != name.npos) continue;
    if (rows.empty() && !name.starts_with("torch")) continue;
    bool just_name = !rows.empty() && !rows.back().call;
    if (just_name) continue;  // the name alone is rewritten
    torch.leave(call, shown(name), reason_of(name, refused));
    torch.file.rewritten[torch.syntax.child(call, Field::function)] = kTorchMissing.id;
    return;
  }
}

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
  const bool unknown = (syntax.kind(object) == Kind::identifier || inner == "weight" || inner == "bias") &&
                       torch.file.resolver.values(torch.file.module, object).empty();
  if (member != "data" || begins_with_library(torch, object) ||
      !(unknown || is_gradient(syntax, object) ||
        torch.file.resolver.is_instance(torch.file.module, object, "torch.Tensor")))
    return false;
  Match found{nullptr, {{"self", syntax.span(object)}}, {}};
  write(torch, node, *expand(torch, found, "$self"), "the data of a tensor is the tensor");
  return true;
}

void replace_attribute(TorchFile& torch, NodeId node, const TorchRow& row, const std::string& name) {
  Match found{&row, {{"self", torch.syntax.span(torch.syntax.child(node, Field::object))}}, {}};
  auto pieces = expand(torch, found, row.target);
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
    const std::vector<TorchRow>& own = rows_of(name);
    if (called && !method && (own.empty() || own.back().call)) return;  // the call decides
    if (method) {
      for (const std::string& one : lookups(name))
        for (const TorchRow& row : torch_rows(one))
          if (!row.call && !called && !set) return replace_attribute(torch, node, row, name);
      continue;
    }
    std::string target = value_target(name);
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
    NodeId left = syntax.child(node, Field::left), right = syntax.child(node, Field::right);
    if (right != kNoNode && syntax.text(left) != syntax.text(right) && torch.rendered(left) == torch.rendered(right) &&
        syntax.kind(syntax.parent(node)) == Kind::expression_statement)
      torch.drop(kTorchNames, syntax.parent(node), "nothing is left to do");
  }
}

}  // namespace cairn::migrate
