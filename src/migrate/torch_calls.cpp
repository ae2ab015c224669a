// Calls of PyTorch by the table: each becomes the text of its row, with the arguments left where they stand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "migrate/torch_calls.h"

namespace cairn::migrate {
namespace {

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

}  // namespace

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

namespace {

// ---- names ----

bool is_statement(const Syntax& syntax, NodeId node) {
  return syntax.kind(syntax.parent(node)) == Kind::expression_statement;
}

}  // namespace

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

namespace {

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

}  // namespace

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

namespace {

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

// nn.Sequential(nn.ReLU(inplace=True), ...): what the sequence is given changes.
bool begins_in_place(const Syntax& syntax, NodeId call) {
  const NodeId list = syntax.parent(call), sequence = syntax.parent(list);
  if (syntax.kind(sequence) != Kind::call || syntax.first(list) != call ||
      !syntax.text(syntax.child(sequence, Field::function)).ends_with("Sequential") ||
      syntax.text(syntax.child(call, Field::function)).find("LU") == std::string_view::npos)
    return false;
  const std::vector<NodeId> arguments = syntax.children(syntax.child(call, Field::arguments));
  return !arguments.empty() &&
         (syntax.text(arguments.back()) == "True" || syntax.text(arguments.back()) == "inplace=True");
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
    std::string target = torch.own_names(row.target);
    if (begins_in_place(syntax, call)) target = "InPlace(" + target + ")";
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

}  // namespace

// self.labels[i], where all that the class assigns to self.labels is of such a library.
static bool is_library_attribute(TorchFile& torch, NodeId attribute, int depth) {
  const Syntax& syntax = torch.syntax;
  const NodeId owner = syntax.ancestor(attribute, Kind::class_definition);
  bool any = false;
  for (const SelfAssignment& one : torch.file.module.self_assignments()) {
    if (one.class_ != owner || one.name != syntax.text(syntax.child(attribute, Field::attribute))) continue;
    if (!begins_with_library(torch, one.value, depth + 1)) return false;
    any = true;
  }
  return any;
}

// np.finfo(x).eps, digits.data of digits = load_digits(): what a library other than PyTorch gives.
bool begins_with_library(TorchFile& torch, NodeId node, int depth) {
  const Syntax& syntax = torch.syntax;
  if (depth > 3) return false;
  for (;;) {
    node = syntax.unwrap(node);
    Kind kind = syntax.kind(node);
    if (kind == Kind::attribute && syntax.text(syntax.child(node, Field::object)) == "self")
      return is_library_attribute(torch, node, depth);
    if (kind == Kind::attribute)
      node = syntax.child(node, Field::object);
    else if (kind == Kind::call)
      node = syntax.child(node, Field::function);
    else if (kind == Kind::subscript)
      node = syntax.child(node, Field::value);
    else if (kind == Kind::binary_operator)
      node = syntax.child(node, Field::left);
    else
      break;
  }
  if (syntax.kind(node) != Kind::identifier) return false;
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
                      (syntax.kind(one.value) == Kind::call || syntax.kind(one.value) == Kind::attribute ||
                       syntax.kind(one.value) == Kind::subscript);
    return made && begins_with_library(torch, one.value, depth + 1);
  });
}

namespace {

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

}  // namespace

bool is_imported(TorchFile& torch, NodeId name) {
  uint32_t scope = kNoScope;
  std::vector<uint32_t> bindings = torch.file.module.lookup(torch.syntax.text(name), name, scope);
  return std::any_of(bindings.begin(), bindings.end(),
                     [&](uint32_t index) { return torch.file.module.bindings()[index].how == Bound::from_import; });
}

namespace {

// act() of a variable that may hold one of several classes: they are translated where the variable gets them.
bool keeps_variable(TorchFile& torch, NodeId call, const std::vector<std::string>& names) {
  const Syntax& syntax = torch.syntax;
  NodeId callee = syntax.child(call, Field::function);
  const bool variable = syntax.kind(callee) == Kind::identifier && !is_imported(torch, callee);
  if ((!variable && syntax.kind(callee) != Kind::subscript) || names.size() < 2) return false;
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

// criterion(prediction, target=y): MindSpore's losses have other names for what they take.
void drop_keywords(TorchFile& torch, NodeId call, const std::vector<std::string>& names) {
  const Syntax& syntax = torch.syntax;
  static constexpr std::array words = {"input", "target", "input1", "input2", "anchor", "positive", "negative"};
  if (std::none_of(names.begin(), names.end(), [](const std::string& name) { return name.ends_with("Loss:__call__"); }))
    return;
  for (NodeId one : syntax.children(syntax.child(call, Field::arguments)))
    if (std::find(words.begin(), words.end(), syntax.text(syntax.child(one, Field::name))) != words.end())
      Rewrite(torch.file, kTorchNames, one, "by its place")
          .replace(Span{syntax[one].begin, syntax[syntax.child(one, Field::value)].begin}, "")
          .commit();
}

}  // namespace

void rewrite_call(TorchFile& torch, NodeId call) {
  if (is_recorded_name(torch, torch.syntax.child(call, Field::function))) return;
  if (rewrite_leaf(torch, call) || rewrite_named(torch, call) || calls_layer_variable(torch, call)) return;
  const std::vector<std::string> names = call_names(torch, call);
  drop_keywords(torch, call, names);
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

}  // namespace cairn::migrate
