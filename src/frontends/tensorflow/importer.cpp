#include "frontends/tensorflow/importer.h"

#include <algorithm>

#include "frontends/fold.h"
#include "frontends/tensorflow/complex.h"
#include "frontends/tensorflow/cut.h"
#include "frontends/tensorflow/training.h"
#include "ir/result_marks.h"

namespace cairn::tensorflow {
namespace {

constexpr int kMostLevels = 64;
struct SourcesGuard {
  Builder& builder;
  std::vector<SourceId> before;
  SourcesGuard(Builder& b, std::vector<SourceId> ids) : builder(b), before(std::exchange(b.sources, std::move(ids))) {}
  ~SourcesGuard() { builder.sources = before; }
};

}  // namespace

/// The scope of an import: the graph or one call of a function.
struct Importer::Scope {
  const std::vector<Node>& nodes;
  std::string prefix;  // of the names of its nodes, empty where these are the graph's own
  int level;
  Builder& builder;
  std::unordered_map<uint32_t, Value*> given;  // arguments, or values that replace nodes

  enum class State : uint8_t { untouched, open, done, imported };  // done: the node could not be imported
  std::vector<State> states = std::vector(nodes.size(), State::untouched);
  std::vector<std::vector<Value*>> results = std::vector<std::vector<Value*>>(nodes.size());
  std::map<Edge, Value*> stand_ins = {};
};

Value* Importer::value(Scope& scope, Edge from) {
  if (from.is_control()) return nullptr;
  if (auto given = scope.given.find(from.node); given != scope.given.end()) return given->second;
  const std::vector<Value*>& results = scope.results[from.node];
  if (scope.states[from.node] != Scope::State::imported) return effects_ ? nullptr : stand_in(scope, from);
  if (static_cast<size_t>(from.port) >= results.size())
    fail(ErrorKind::invalid_model, "", "{}:{} does not exist: the node has {} results",
         printable(scope.nodes[from.node].name), from.port, results.size());
  return results[static_cast<size_t>(from.port)];
}

Value* Importer::stand_in(Scope& scope, Edge from) {
  auto [found, fresh] = scope.stand_ins.try_emplace(from, nullptr);
  if (!fresh) return found->second;
  const ResultType told = result_type(scope.nodes[from.node], from.port, *model());
  const std::optional<DType> dtype = dtype_of(told.dtype);
  if (told.dtype != kDtInvalid && !dtype) return nullptr;
  Shape shape = Shape::unranked();
  if (!told.shape.unknown_rank) {
    shape = Shape();
    for (int64_t size : told.shape.dims) shape.dims.push_back(size < 0 ? Dim() : Dim(size));
  }
  return found->second = unknowns_.add(dtype, std::move(shape));
}

/// Depth first over the nodes above `wanted`, with a stack of our own: graphs are deeper than call stacks.
std::vector<Value*> Importer::run(Scope& scope, const std::vector<Edge>& wanted) {
  std::vector<uint32_t> stack;
  auto visit = [&](Edge input, std::string_view user) {
    if ((input.is_control() && !effects_) || scope.given.contains(input.node)) return;
    const Scope::State state = scope.states[input.node];
    if (state == Scope::State::open)
      fail(ErrorKind::unsupported, printable(user), "is part of a circle through '{}'; loops must be While nodes",
           printable(scope.nodes[input.node].name));
    if (state == Scope::State::untouched) stack.push_back(input.node);
  };
  std::vector<Value*> values;
  for (Edge root : wanted) {
    visit(root, {});
    while (!stack.empty()) {
      const uint32_t index = stack.back();
      if (scope.states[index] == Scope::State::untouched) {
        scope.states[index] = Scope::State::open;
        const Node& node = scope.nodes[index];
        for (size_t i = node.inputs.size(); i-- > 0;) visit(node.inputs[i], node.name);
        continue;
      }
      stack.pop_back();
      if (scope.states[index] != Scope::State::open) continue;
      scope.states[index] = Scope::State::done;
      import_node(scope, index);
    }
    // A node that runs only for its side effect has no result.
    const bool nothing = effects_ && !scope.given.contains(root.node) &&
                         scope.states[root.node] == Scope::State::imported && scope.results[root.node].empty();
    values.push_back(nothing ? nullptr : value(scope, root));
  }
  return values;
}

void Importer::import_node(Scope& scope, uint32_t index) {
  const Node& node = scope.nodes[index];
  std::string name = source_name(scope, node);
  std::string op = clean(node.op);
  model()->charge(1024);
  try {
    std::vector<Value*> inputs;
    std::vector<std::string> cuts;
    bool missing = false, unknown = false;
    for (Edge from : node.inputs) {
      if (from.is_control()) continue;
      Value* input = value(scope, from);
      missing = missing || input == nullptr, unknown = unknown || unknowns_.contains(input);
      inputs.push_back(input);
      if (scope.level == 0 && !scope.given.contains(from.node) && (input == nullptr || constant_of(input) == nullptr))
        cuts.push_back(clean(tensor_name(scope.nodes, from)));
    }
    if (missing && effects_) return;  // the reason is known already
    const std::string_view known = is_function(node.op) ? "PartitionedCall" : node.op;
    const Row* row = std::any_of(inputs.begin(), inputs.end(), is_complex) ? find_complex_row(known) : nullptr;
    if (row == nullptr) row = effects_ ? find_cluster_row(known) : find_row(known);
    if (row != nullptr) {
      if (missing)
        look_through(node, name, scope.level + 1);
      else
        import_known(scope, index, *row, std::move(inputs));
      return;
    }
    if (missing || unknown) cuts.clear();
    problems_.unsupported(op, {name, std::string(node.location)}, cuts);
  } catch (const AlreadyReported&) {
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
    problems_.refused(op, {name, std::string(node.location)}, error);
  } catch (const std::logic_error&) {  // of the standard library: out_of_range, length_error
    problems_.refused(op, {name, std::string(node.location)},
                      Error(ErrorKind::invalid_model, "", "an operand or attribute has a size that cannot be"));
  }
  if (scope.level == 0) failed_.push_back(index);
}

void Importer::import_known(Scope& scope, uint32_t index, const Row& row, std::vector<Value*> inputs) {
  const Node& node = scope.nodes[index];
  const std::string name = source_name(scope, node);
  auto made = [&](std::vector<Value*> from) { return build(scope, row, node, name, std::move(from)); };
  const size_t guessed = guessed_calls_;
  try {
    const bool unknown = std::any_of(inputs.begin(), inputs.end(), [&](const Value* v) { return is_unknown(v); });
    auto results = unknown ? unknowns_.results(inputs, !called_by(node).empty(), made) : made(std::move(inputs));
    if (guessed != guessed_calls_) return;
    scope.results[index] = std::move(results);
    scope.states[index] = Scope::State::imported;
  } catch (const AlreadyReported&) {
    if (effects_) throw;
    look_through(node, name, scope.level + 1);
  } catch (const Error& error) {
    if (guessed == guessed_calls_) throw;  // else a stand-in may be the cause
  }
}

std::vector<std::string_view> Importer::called_by(const Node& node) const {
  std::vector<std::string_view> names;
  if (is_function(node.op)) names.push_back(node.op);
  for (const Attr& attr : node.attrs) {
    const AttrValue value = decode(attr, *graph_.model);
    if (!value.function.name.empty()) names.push_back(value.function.name);
    for (const NameAttrList& function : value.functions) names.push_back(function.name);
  }
  return names;
}

void Importer::look_through(const Node& node, const std::string& prefix, int level) {
  if (level > kMostLevels) return;
  for (std::string_view name : called_by(node)) {
    const FunctionDef* function = library_.find(name);
    if (function == nullptr) continue;
    if (function->fault) continue;
    std::vector<uint32_t> results;
    for (const FunctionArg& output : function->outputs) results.push_back(output.edge.node);
    const std::vector<bool> needed = needed_by(results, function->nodes, Along::data);
    for (size_t i = 0; i < needed.size(); ++i) {
      const Node& inner = function->nodes[i];
      if (!needed[i] || inner.op == "_Arg") continue;
      const std::string own = source_name(function->graph_names ? "" : prefix, inner);
      model()->charge(1024);
      if (find_row(inner.op) == nullptr && !is_function(inner.op))
        problems_.unsupported(clean(inner.op), {own, std::string(inner.location)}, {});
      look_through(inner, own, level + 1);
    }
  }
}

std::vector<Value*> Importer::build(Scope& scope, const Row& row, const Node& node, const std::string& name,
                                    std::vector<Value*> inputs) {
  std::vector<SourceId> ids;
  if (auto raised = graph_.raised.find(node.name); raised != graph_.raised.end())
    for (const auto& [own, op, location] : raised->second) ids.push_back(source(clean(own), op, location));
  else
    ids.push_back(source(name, node.op, node.location));
  SourcesGuard guard(scope.builder, ids);
  size_t before = scope.builder.block().nodes.size();
  read_references(inputs, row, scope.builder);
  OpContext context(*this, node, name, scope.builder, std::move(inputs), scope.level);
  context.target = row.target;
  row.build(context);
  for (Value*& result : context.out) result = folded(result, scope.builder);
  const auto& nodes = scope.builder.block().nodes;
  bool present = std::any_of(nodes.begin() + static_cast<int64_t>(before), nodes.end(),
                             [&](const auto& made) { return made->sources == ids; });
  if (!present)
    for (SourceId id : ids) module_.removed.emplace(id, Removal::identity);
  if (ids.size() == 1)
    mark_results(
        context.out, clean(node.op),
        [&](const Value* value) {
          const auto& own = value->producer->sources;
          return !own.empty() && own.front() == ids.front();
        },
        [&](const std::string& op) {
          auto [mark, fresh] = sources_.try_emplace(fmt::format("{} {}", name, op), 0);
          if (fresh) mark->second = module_.add_source({"tf", name, op, std::string(node.location)});
          return mark->second;
        });
  for (Value* result : context.out)
    if (result->name.empty()) result->name = name;
  return std::move(context.out);
}

void Importer::read_references(std::vector<Value*>& inputs, const Row& row, Builder& builder) const {
  if (row.traits.handles == Traits::kAny) return;
  for (size_t i = static_cast<size_t>(row.traits.handles); i < inputs.size(); ++i)
    if (is_reference(inputs[i])) inputs[i] = builder.add("read_variable", {inputs[i]});
}

void Importer::enter(const Value* outside, const Value* inside) {
  // A body that was imported before was destroyed, and a new value may have the address of one of its values.
  references_.erase(inside), lists_.erase(inside);
  if (is_reference(outside)) references_.insert(inside);
  if (auto list = lists_.find(outside); list != lists_.end()) lists_[inside] = list->second;
}

ListState& Importer::list_state(const Value* handle) {
  auto found = lists_.find(handle);
  if (found == lists_.end()) fail(ErrorKind::unsupported, "", "its stack or TensorArray comes from elsewhere");
  return *found->second;
}

Importer::Importer(const GraphDef& graph, Module& module) : graph_(graph), library_(graph), module_(module) {
  for (const Node& node : graph.nodes) owners_.emplace(clean(node.name), clean(node.name));
}

std::string Importer::source_name(const Scope& scope, const Node& node) { return source_name(scope.prefix, node); }

std::string Importer::source_name(const std::string& prefix, const Node& node) {
  std::string own = clean(node.name);
  if (prefix.empty()) return own;
  std::string whole = fmt::format("{}/{}", prefix, own);
  return owners_.try_emplace(own, whole).first->second == whole ? own : whole;
}

SourceId Importer::source(const std::string& name, std::string_view op, std::string_view location) {
  auto [found, fresh] = sources_.try_emplace(name, 0);
  if (fresh) found->second = module_.add_source({"tf", name, clean(op), std::string(location)});
  return found->second;
}

std::vector<Value*> Importer::import_graph(const std::vector<Edge>& tensors,
                                           const std::unordered_map<uint32_t, Value*>& inputs, Builder& builder) {
  Scope scope{graph_.nodes, "", 0, builder, inputs};
  return run(scope, tensors);
}

void Importer::explain_others(const GraphDef& original, const std::vector<TensorInfo>& inputs) {
  std::unordered_set<std::string_view> known;
  for (const TensorInfo& info : inputs) known.insert(parse_tensor_name(info.tensor, info.key).node);
  for (const Node& node : original.nodes) {
    std::string name = clean(node.name);
    if (known.contains(node.name) || sources_.contains(name)) continue;
    const bool raised = !owners_.contains(name);  // passed on what a loop or branch takes
    module_.removed.emplace(source(name, node.op, node.location), raised ? Removal::identity : Removal::dead);
  }
}

const FunctionDef& Importer::find_function(std::string_view name) const {
  const FunctionDef* function = library_.find(name);
  if (function == nullptr) fail(ErrorKind::invalid_model, "", "function '{}' is not in the file", printable(name));
  function->check();
  return *function;
}

std::vector<Value*> Importer::import_function(std::string_view name, const std::vector<Value*>& args, Builder& builder,
                                              const std::string& prefix, int level) {
  const FunctionDef& function = find_function(name);
  if (level > kMostLevels) fail(ErrorKind::unsupported, "", "function calls are nested deeper than {}", kMostLevels);
  if (args.size() != function.inputs.size())
    fail(ErrorKind::invalid_model, "", "gives {} arguments to function '{}', which takes {}", args.size(),
         printable(name), function.inputs.size());
  model()->charge(64 * function.nodes.size());
  Scope scope{function.nodes, function.graph_names ? "" : prefix, level, builder, {}};
  for (size_t i = 0; i < args.size(); ++i) scope.given.emplace(function.inputs[i].edge.node, args[i]);
  std::vector<Edge> wanted;
  for (const FunctionArg& output : function.outputs) wanted.push_back(output.edge);
  if (effects_)
    for (const auto& [result, node] : function.control_returns) wanted.push_back({node, Edge::kControl});
  std::vector<Value*> results = run(scope, wanted);
  results.resize(function.outputs.size());
  if (std::find(results.begin(), results.end(), nullptr) != results.end()) throw AlreadyReported();
  guessed_calls_ += std::any_of(results.begin(), results.end(), [&](auto* v) { return unknowns_.is_stand_in(v); });
  return results;
}

void OpContext::expect_inputs(size_t count) const { expect_inputs(count, count); }

void OpContext::expect_inputs(size_t least, size_t most) const {
  if (in.size() < least || in.size() > most)
    fail(ErrorKind::invalid_model, "", "has {} inputs, expected {}{}", in.size(), least,
         least == most ? "" : fmt::format(" to {}", most));
}

size_t OpContext::rank(size_t input) const {
  const Type& type = in[input]->type;
  if (!type.is_tensor()) fail(ErrorKind::invalid_model, "", "input {} is no tensor", input);
  if (!type.shape.ranked) refuse("the rank of input {} is not known; declare the shapes of the model's inputs", input);
  return type.shape.rank();
}

AttrValue OpContext::attr(std::string_view name, AttrValue::Kind kind) const {
  const Attr* attr = node_.find(name);
  if (attr == nullptr) return {};
  AttrValue value = decode(*attr, *importer_.model());
  if (value.kind != kind)
    fail(ErrorKind::invalid_model, "", "attribute {} is of kind {}, expected {}", name, to_string(value.kind),
         to_string(kind));
  return value;
}

int64_t OpContext::integer(std::string_view name, std::optional<int64_t> fallback) const {
  AttrValue value = attr(name, AttrValue::Kind::integer);
  if (value.kind != AttrValue::Kind::none) return value.integer;
  if (!fallback) fail(ErrorKind::invalid_model, "", "attribute {} is missing", name);
  return *fallback;
}

bool OpContext::boolean(std::string_view name, bool fallback) const {
  AttrValue value = attr(name, AttrValue::Kind::boolean);
  return value.kind == AttrValue::Kind::none ? fallback : value.integer != 0;
}

double OpContext::real(std::string_view name, double fallback) const {
  AttrValue value = attr(name, AttrValue::Kind::real);
  return value.kind == AttrValue::Kind::none ? fallback : value.real;
}

std::string OpContext::text(std::string_view name, std::string_view fallback) const {
  AttrValue value = attr(name, AttrValue::Kind::text);
  return std::string(value.kind == AttrValue::Kind::none ? fallback : value.text);
}

std::vector<int64_t> OpContext::integers(std::string_view name) const {
  return attr(name, AttrValue::Kind::list).integers;
}

std::vector<std::string> OpContext::texts(std::string_view name) const {
  const AttrValue value = attr(name, AttrValue::Kind::list);
  return {value.texts.begin(), value.texts.end()};
}

DType OpContext::dtype(std::string_view name, DataType fallback) const {
  AttrValue value = attr(name, AttrValue::Kind::type);
  DataType type = value.kind == AttrValue::Kind::none ? fallback : static_cast<DataType>(value.integer);
  if (type == kDtInvalid) fail(ErrorKind::invalid_model, "", "attribute {} is missing", name);
  std::optional<DType> dtype = dtype_of(type);
  if (!dtype) refuse("elements of {} are not supported", to_string(type));
  return *dtype;
}

std::optional<ShapeProto> OpContext::shape(std::string_view name) const {
  AttrValue value = attr(name, AttrValue::Kind::shape);
  return value.kind == AttrValue::Kind::none ? std::nullopt : std::optional(value.shape);
}

std::string_view OpContext::function(std::string_view name) const {
  AttrValue value = attr(name, AttrValue::Kind::function);
  if (value.function.name.empty()) fail(ErrorKind::invalid_model, "", "attribute {} names no function", name);
  return value.function.name;
}

std::vector<std::string_view> OpContext::functions(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const NameAttrList& function : attr(name, AttrValue::Kind::list).functions) names.push_back(function.name);
  return names;
}

Tensor OpContext::constant(size_t input, const char* what) const {
  const Tensor* tensor = input < in.size() ? constant_of(in[input]) : nullptr;
  if (tensor == nullptr && input < in.size() && importer_.is_unknown(in[input])) throw AlreadyReported();
  if (tensor == nullptr) refuse("{} must be a constant", what);
  return *tensor;
}

std::vector<int64_t> OpContext::constant_integers(size_t input, const char* what) const {
  Tensor tensor = constant(input, what);
  if (!tensor.dtype().is_integer()) fail(ErrorKind::invalid_model, "", "{} must be integers", what);
  return tensor.as_i64();
}

std::optional<std::vector<int64_t>> OpContext::known_bounds(size_t input, size_t count) const {
  if (constant_of(in[input]) == nullptr) return std::nullopt;
  std::vector<int64_t> values = constant_integers(input, "bounds");
  if (values.size() != count) fail(ErrorKind::invalid_model, "", "has {} bounds for {} strides", values.size(), count);
  return values;
}

int64_t OpContext::constant_integer(size_t input, const char* what) const {
  std::vector<int64_t> values = constant_integers(input, what);
  if (values.size() != 1) fail(ErrorKind::invalid_model, "", "{} must be one integer, found {}", what, values.size());
  return values[0];
}

}  // namespace cairn::tensorflow
