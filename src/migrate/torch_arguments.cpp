// What data flow tells of the arguments of a PyTorch script's calls: of which kind they are, what a dictionary behind ** holds, what
// the rows of a dataset are.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "migrate/torch_file.h"

namespace cairn::migrate {
namespace {

bool is_dtype(TorchFile& torch, NodeId node) {
  static constexpr std::array words = {"float", "double", "half", "int", "long", "bool", "short", "uint8"};
  for (const ApiName& name : torch.file.resolver.names(torch.file.module, node)) {
    if (!name.name.starts_with("torch.")) continue;
    std::string_view last = std::string_view(name.name).substr(6);
    if (last.starts_with("float") || last.starts_with("int") || last.starts_with("bfloat") ||
        std::find(words.begin(), words.end(), last) != words.end())
      return true;
  }
  return false;
}

bool is_dictionary(const Syntax& syntax, NodeId node) {
  return syntax.kind(node) == Kind::dictionary ||
         (syntax.kind(node) == Kind::call && syntax.text(syntax.child(node, Field::function)) == "dict");
}

// The expressions that are assigned to a name, as far as the file tells; of other expressions themselves.
std::vector<NodeId> assigned(TorchFile& torch, NodeId node) {
  const Syntax& syntax = torch.syntax;
  node = syntax.unwrap(node);
  if (syntax.kind(node) != Kind::identifier) return {node};
  std::vector<NodeId> found;
  uint32_t scope = kNoScope;
  for (uint32_t index : torch.file.module.lookup(syntax.text(node), node, scope))
    found.push_back(torch.file.module.bindings()[index].value);
  return found;
}

// Adds what a dictionary, the sides of `a if c else b`, or a name of them holds; false when that is unknown.
bool add_entries(TorchFile& torch, NodeId node, Entries& entries, int depth = 0) {
  const Syntax& syntax = torch.syntax;
  node = syntax.unwrap(node);
  if (depth > 4) return false;
  if (syntax.kind(node) == Kind::conditional_expression) {
    std::vector<NodeId> sides = syntax.children(node);
    return sides.size() == 3 && add_entries(torch, sides[0], entries, depth + 1) &&
           add_entries(torch, sides[2], entries, depth + 1);
  }
  if (is_dictionary(syntax, node)) {
    const bool called = syntax.kind(node) == Kind::call;
    for (NodeId entry : syntax.children(called ? syntax.child(node, Field::arguments) : node)) {
      std::string name;
      if (syntax.kind(entry) == Kind::keyword_argument)
        name = syntax.text(syntax.child(entry, Field::name));
      else if (syntax.kind(entry) != Kind::pair || !string_value(syntax, syntax.child(entry, Field::key), name))
        return false;
      entries.emplace_back(name, syntax.child(entry, Field::value));
    }
    return true;
  }
  if (syntax.kind(node) != Kind::identifier) return false;
  std::vector<NodeId> values = assigned(torch, node);
  const bool known = !values.empty() && std::all_of(values.begin(), values.end(), [&](NodeId value) {
    return value != kNoNode && add_entries(torch, value, entries, depth + 1);
  });
  for (NodeId call : torch.file.module.calls_of("update")) {  // kwargs.update(more)
    NodeId object = syntax.child(syntax.child(call, Field::function), Field::object);
    if (syntax.text(object) != syntax.text(node)) continue;
    for (NodeId more : syntax.children(syntax.child(call, Field::arguments)))
      if (!add_entries(torch, more, entries, depth + 1)) return false;
  }
  return known;
}

// A dictionary of several things for torch.save, or what torch.load gives of one.
bool holds_states(TorchFile& torch, NodeId value) {
  const Syntax& syntax = torch.syntax;
  NodeId list = syntax.parent(value);
  if (syntax.kind(list) == Kind::keyword_argument) list = syntax.parent(list);
  NodeId call = syntax.parent(list);
  if (torch.file.calls(call, "torch.save")) {
    static constexpr std::array usual = {"state", "states", "checkpoint", "ckpt", "save_dict"};
    std::vector<NodeId> values = assigned(torch, value);
    return std::any_of(values.begin(), values.end(), [&](NodeId one) { return is_dictionary(syntax, one); }) ||
           std::find(usual.begin(), usual.end(), syntax.text(value)) != usual.end();
  }
  NodeId up = syntax.parent(call);
  if (syntax.kind(up) == Kind::subscript && syntax[call].field == Field::value) return true;
  std::string left(syntax.text(syntax.child(up, Field::left)));
  auto used = [&](const char* how) { return torch.file.holds(left + how); };
  return syntax.kind(up) == Kind::assignment && (used("['") || used("[\"") || used(".get("));
}

// A dictionary that the script itself fills: its values are tensors, and no parameters.
bool is_own_dictionary(TorchFile& torch, NodeId value) {
  std::vector<NodeId> values = assigned(torch, value);
  return std::any_of(values.begin(), values.end(), [&](NodeId one) {
    return torch.syntax.kind(one) == Kind::dictionary_comprehension || is_dictionary(torch.syntax, one);
  });
}

// What __getitem__ of a class returns.
std::vector<NodeId> returned_items(const Syntax& syntax, NodeId klass) {
  std::vector<NodeId> found;
  for (NodeId node = klass; node < syntax[klass].after; ++node) {
    if (syntax.kind(node) != Kind::return_statement) continue;
    NodeId method = syntax.ancestor(node, Kind::function_definition);
    std::vector<NodeId> parts = syntax.children(node);
    if (syntax.text(syntax.child(method, Field::name)) == "__getitem__" && !parts.empty()) found.push_back(parts[0]);
  }
  return found;
}

// What the loops over a dataset's loader take as a batch.
std::vector<NodeId> batches_of(TorchFile& torch, NodeId dataset) {
  const Syntax& syntax = torch.syntax;
  NodeId made = dataset;
  while (made != kNoNode && syntax.kind(made) != Kind::assignment) made = syntax.parent(made);
  std::string_view loader = syntax.text(syntax.child(made, Field::left));
  std::vector<NodeId> found;
  for (NodeId node = 0; node < syntax.size() && !loader.empty(); ++node) {
    std::string_view over = syntax.text(syntax.child(node, Field::right));
    if (syntax.kind(node) != Kind::for_statement || over.find(loader) == over.npos) continue;
    NodeId target = syntax.child(node, Field::left);
    std::vector<NodeId> parts = syntax.children(target);
    found.push_back(over.starts_with("enumerate(") && parts.size() == 2 ? syntax.unwrap(parts[1]) : target);
  }
  return found;
}

// The number of tensors that a call of TensorDataset takes.
void add_tensors(const Syntax& syntax, NodeId call, std::vector<size_t>& seen) {
  const std::vector<NodeId> tensors = syntax.children(syntax.child(call, Field::arguments));
  const bool open =
      std::any_of(tensors.begin(), tensors.end(), [&](NodeId one) { return syntax.kind(one) == Kind::list_splat; });
  seen.push_back(syntax.kind(call) == Kind::call && !open ? tensors.size() : 0);
}

// How many parts the rows of a dataset have, each an array or a number: as its __getitem__ writes them, else as the loops over its
// loader take them; 0 when that is not to be seen.
size_t flat_parts(TorchFile& torch, NodeId dataset) {
  const Syntax& syntax = torch.syntax;
  std::vector<size_t> seen;
  auto add = [&](const Syntax& its, NodeId row) {
    const Kind kind = its.kind(row);
    const std::vector<NodeId> parts = its.children(row);
    const bool several = kind == Kind::expression_list || kind == Kind::tuple || kind == Kind::pattern_list ||
                         kind == Kind::tuple_pattern;
    const bool plain = std::all_of(parts.begin(), parts.end(), [&](NodeId part) {
      const Kind inner = its.kind(its.unwrap(part));
      return inner != Kind::tuple && inner != Kind::list && inner != Kind::tuple_pattern && inner != Kind::list_splat &&
             !is_dictionary(its, part);
    });
    seen.push_back(several && plain ? parts.size() : 0);
  };
  for (const Value& value : Values(torch.file.resolver.values(torch.file.module, dataset))) {
    if (value.is == Value::Is::instance && value.name.starts_with("torchvision.datasets.")) seen.push_back(2);
    if (value.is == Value::Is::instance && value.name == "torch.utils.data.TensorDataset")
      for (NodeId call : assigned(torch, dataset)) add_tensors(syntax, call, seen);
    if (value.is != Value::Is::object) continue;
    const std::vector<NodeId> items = returned_items(value.module->syntax(), value.node);
    for (NodeId item : items) add(value.module->syntax(), item);
    if (items.empty()) return 0;
  }
  if (seen.empty())
    for (NodeId batch : batches_of(torch, dataset)) add(syntax, batch);
  const bool same = std::all_of(seen.begin(), seen.end(), [&](size_t count) { return count == seen[0]; });
  return !seen.empty() && same && seen[0] > 1 ? seen[0] : 0;
}

// loader.dataset.resample(): what a loader was made of is asked for more than its length.
bool asks_for_dataset(TorchFile& torch) {
  const Syntax& syntax = torch.syntax;
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) != Kind::attribute || syntax.text(syntax.child(node, Field::attribute)) != "dataset" ||
        syntax.text(node) == "self.dataset")
      continue;
    const NodeId call = syntax.parent(syntax.parent(node));
    if (syntax.text(syntax.child(call, Field::function)) != "len") return true;
  }
  return false;
}

}  // namespace

static bool is_deque(TorchFile& torch, NodeId value) {
  const std::vector<NodeId> made = assigned(torch, value);
  return std::any_of(made.begin(), made.end(), [&](NodeId one) {
    const NodeId callee = torch.syntax.child(one, Field::function);
    return torch.syntax.kind(one) == Kind::call && torch.syntax.text(callee).ends_with("deque");
  });
}

// A variable that got net.state_dict(), or a copy of it.
static bool holds_weights(TorchFile& torch, NodeId value) {
  const std::vector<NodeId> made = assigned(torch, value);
  return std::any_of(made.begin(), made.end(), [&](NodeId one) {
    const std::string_view text = torch.syntax.text(one);
    return text.ends_with(".state_dict()") || text.ends_with(".state_dict())");
  });
}

// A number of things: 3, -1, len(words), x.size(0), x.shape[1].
static bool is_count(const Syntax& syntax, NodeId value) {
  const NodeId node = syntax.unwrap(value), callee = syntax.child(node, Field::function);
  const std::string_view text = syntax.text(node);
  if (syntax.kind(node) == Kind::call)
    return syntax.text(callee) == "len" ||
           (syntax.text(syntax.child(callee, Field::attribute)) == "size" && !text.ends_with("()"));
  if (syntax.kind(node) == Kind::subscript)
    return syntax.text(syntax.child(node, Field::value)).ends_with(".shape") && text.find(':') == text.npos;
  return syntax.kind(node) == Kind::integer || text.starts_with('-');
}

// Whether all scripts write out the names of the files that they save and load: those then end as MindSpore has them.
static bool names_files(TorchFile& torch) {
  const auto& modules = torch.file.project.modules();
  return std::all_of(modules.begin(), modules.end(), [](const auto& module) {
    const Syntax& syntax = module->syntax();
    for (const char* verb : {"save", "load"})
      for (NodeId call : module->calls_of(verb)) {
        const NodeId list = syntax.child(call, Field::arguments);
        const std::vector<NodeId> given = syntax.children(list);
        const size_t place = verb[0] == 's' ? 1 : 0;
        if (syntax.text(syntax.child(call, Field::function)) == std::string("torch.") + verb && given.size() > place &&
            syntax.kind(given[place]) != Kind::string)
          return false;
      }
    return true;
  });
}

std::optional<Entries> entries_of(TorchFile& torch, NodeId splat) {
  Entries entries;
  std::vector<NodeId> inner = torch.syntax.children(splat);
  if (inner.size() != 1 || !add_entries(torch, inner[0], entries)) return std::nullopt;
  return entries;
}

bool fits(TorchFile& torch, const TorchParameter& parameter, NodeId value) {
  const Syntax& syntax = torch.syntax;
  if (parameter.only == "<dtype>") return is_dtype(torch, value);
  Kind kind = syntax.kind(syntax.unwrap(value));
  if (parameter.only == "<int>") return is_count(syntax, value);
  if (parameter.only == "<str>") return kind == Kind::string;
  if (parameter.only == "<file>") return kind == Kind::string && names_files(torch);
  if (parameter.only == "<tuple>") return kind == Kind::tuple || kind == Kind::list;
  if (parameter.only == "<size>") {
    static constexpr std::array words = {"features", "channels", "size", "dim", "hidden", "num", "width"};
    std::string_view name = syntax.text(value);
    return kind == Kind::integer || ((kind == Kind::identifier || kind == Kind::attribute) &&
                                     std::any_of(words.begin(), words.end(),
                                                 [&](std::string_view word) { return name.find(word) != name.npos; }));
  }
  if (parameter.only == "<class>") {
    std::vector<ApiName> names = torch.file.resolver.names(torch.file.module, value);
    return !names.empty() &&
           std::all_of(names.begin(), names.end(), [](const ApiName& name) { return name.name == "torch.Tensor"; });
  }
  if (parameter.only == "<module>") return is_module(torch, value);
  if (parameter.only == "<state>") return syntax.text(value).ends_with(".state_dict()");
  if (parameter.only == "<weights>") return holds_weights(torch, value);
  if (parameter.only == "<deque>") return is_deque(torch, value);
  if (parameter.only == "<states>") return holds_states(torch, value);
  if (parameter.only == "<kept>") return is_own_dictionary(torch, value);
  if (parameter.only == "<rows>") return flat_parts(torch, value) > 1 && !asks_for_dataset(torch);
  if (parameter.only == "<packed>")
    return torch.file.resolver.is_instance(torch.file.module, value, "torch.nn.utils.rnn.PackedSequence");
  if (parameter.only == "<tensor>") return torch.file.resolver.is_instance(torch.file.module, value, "torch.Tensor");
  return parameter.only.empty() || syntax.text(value) == parameter.only;
}

std::string columns_of(TorchFile& torch, NodeId dataset) {
  const size_t count = flat_parts(torch, dataset);
  if (count == 2) return "['data', 'label']";
  std::string names;
  for (size_t i = 0; i < count; ++i) names += fmt::format("{}'column{}'", i ? ", " : "", i);
  return "[" + names + "]";
}

bool is_in_place(const Syntax& syntax, NodeId call) {
  NodeId callee = syntax.child(call, Field::function);
  std::string_view method = syntax.text(syntax.child(callee, Field::attribute));
  return syntax.kind(call) == Kind::call && syntax.kind(callee) == Kind::attribute && method.size() > 2 &&
         method.ends_with('_') && !method.ends_with("__");
}

NodeId changed_in_place(const Syntax& syntax, NodeId call) {
  while (is_in_place(syntax, call)) call = syntax.child(syntax.child(call, Field::function), Field::object);
  return call;
}

bool is_iterated(const Syntax& syntax, NodeId call) {
  const NodeId outer = syntax.parent(syntax.parent(call));
  const std::string_view callee = syntax.text(syntax.child(outer, Field::function));
  if (callee == "zip" || callee == "enumerate" || callee == "list") call = outer;
  const NodeId loop = syntax.parent(call);
  return (syntax.kind(loop) == Kind::for_statement || syntax.kind(loop) == Kind::for_in_clause) &&
         syntax.child(loop, Field::right) == call;
}

bool is_module(TorchFile& torch, NodeId node) {
  return torch.file.resolver.is_instance(torch.file.module, node, "torch.nn.Module");
}

}  // namespace cairn::migrate
