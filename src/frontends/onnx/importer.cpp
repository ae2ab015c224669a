#include "frontends/onnx/importer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>

#include "frontends/fold.h"
#include "frontends/onnx/initializers.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/node_order.h"
#include "frontends/values.h"
#include "frontends/way_around.h"
#include "ir/result_marks.h"
#include "ir/user_ops.h"

namespace cairn::onnx {
namespace {

constexpr int kMostLevels = 64;

/// The name of a node; ONNX nodes may have none, then it is that of their first result.
std::string node_name(const Node& node, const std::string& prefix) {
  std::string_view own = !node.name.empty() ? node.name : node.outputs.empty() ? node.op : node.outputs.front();
  return prefix.empty() ? clean(own) : fmt::format("{}/{}", prefix, clean(own));
}

}  // namespace

Importer::Importer(const Model& model, Module& module) : model_(model), module_(module) {
  for (const Function& function : model.functions)
    functions_.emplace(std::tuple(function.domain, function.name, function.overload), &function);
}

std::set<std::string_view> Importer::captures(const Graph& graph) const {
  std::set<std::string_view> free;
  collect_captures(graph, free);
  return free;
}

int64_t Importer::opset(const Frame* frame, std::string_view domain) const {
  if (frame != nullptr && frame->function != nullptr)
    for (const OpsetImport& import : frame->function->opsets)
      if (import.domain == domain) return import.version;
  return model_.opset(domain);
}

std::vector<Value*> Importer::import_graph(const Graph& graph, Names& names,
                                           const std::vector<std::string_view>& outputs) {
  const Weights weights(graph);
  std::unordered_set<const char*> seen;
  for (const TensorProto& tensor : graph.initializers) {
    if (names.values.contains(tensor.name)) continue;  // an input of that name was asked for
    try {
      Tensor value = read_tensor(tensor, model_, "");
      if (!seen.insert(tensor.bytes.data()).second && value.dtype().is_float())  // a copy, which training will change
        value = copy_of_elements(value.dtype(), value.dims(), {static_cast<const char*>(value.data()), value.bytes()});
      const auto before = names.builder->sources;
      if (value.dtype().is_float() && !weights.contains(tensor.name, value))
        names.builder->sources = {module_.add_source({"onnx", clean(tensor.name), "Initializer", ""})};
      Value* made = names.builder->constant(std::move(value), clean(tensor.name));
      mark_narrow(names.values[tensor.name] = made, element_type(tensor, model_));
      names.builder->sources = before;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
      problems_.refused("initializer", {clean(tensor.name), ""}, error);
      names.values[tensor.name] = unknowns_.add(std::nullopt, Shape::unranked());
    }
  }
  for (const auto* list : {&graph.values, &graph.outputs})
    for (const ValueInfo& info : *list) infos_.emplace(info.name, &info);
  import_nodes(graph.nodes, names, outputs);
  std::vector<Value*> results;
  for (std::string_view output : outputs) {
    auto found = names.values.find(output);
    if (found == names.values.end())
      fail(ErrorKind::invalid_model, model_.bytes->name(), "nothing makes the output '{}'", printable(output));
    results.push_back(found->second);
  }
  guessed_graphs_ += std::any_of(results.begin(), results.end(), [&](auto* v) { return unknowns_.is_stand_in(v); });
  return results;
}

namespace {

/// Which nodes the outputs need, all of whose inputs join `needed`; none for what is `given`.
std::vector<bool> needed_nodes(const std::vector<Node>& nodes, std::set<std::string_view>& needed,
                               const std::set<std::string_view>& given) {
  std::vector<bool> keep(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    for (std::string_view output : nodes[i].outputs)
      keep[i] = keep[i] || (!output.empty() && needed.contains(output) && !given.contains(output));
    if (!keep[i]) continue;
    needed.insert(nodes[i].inputs.begin(), nodes[i].inputs.end());
    for (const Attribute& attribute : nodes[i].attributes)
      if (attribute.graph) collect_captures(*attribute.graph, needed);
  }
  return keep;
}

}  // namespace

std::set<std::string_view> Importer::needed(const Graph& graph, const std::vector<std::string_view>& outputs) const {
  std::set<std::string_view> names(outputs.begin(), outputs.end());
  needed_nodes(graph.nodes, names, cut_);
  return names;
}

std::vector<std::string> Importer::inputs_below(const std::vector<std::string_view>& outputs) const {
  const std::vector<Node>& nodes = model_.graph.nodes;
  std::unordered_map<std::string_view, uint32_t> makers;
  DataFlow flow;
  flow.sources.resize(nodes.size());
  std::set<std::string_view> read(outputs.begin(), outputs.end());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string_view> inputs(nodes[i].inputs.begin(), nodes[i].inputs.end());
    for (const Attribute& attribute : nodes[i].attributes)
      if (attribute.graph) collect_captures(*attribute.graph, inputs);
    for (std::string_view input : inputs)
      if (auto found = makers.find(input); found != makers.end() && !cut_.contains(input))
        flow.sources[i].push_back(found->second);
    read.insert(inputs.begin(), inputs.end());
    for (std::string_view output : nodes[i].outputs) makers[output] = i;
  }
  for (std::string_view output : outputs)
    if (auto found = makers.find(output); found != makers.end()) flow.outputs.insert(found->second);
  std::vector<std::string> tensors;
  for (uint32_t node : cairn::inputs_below(flow, failed_))
    for (std::string_view output : nodes[node].outputs)
      if (!output.empty() && read.contains(output)) tensors.push_back(clean(output));
  return tensors;
}

void Importer::import_nodes(const std::vector<Node>& nodes, Names& names,
                            const std::vector<std::string_view>& outputs) {
  // First a backward pass: nodes on which no output depends are not imported, so that unsupported ones among them do
  // not matter.
  std::set<std::string_view> needed(outputs.begin(), outputs.end());
  const bool top = &nodes == &model_.graph.nodes;
  const std::vector<bool> keep = needed_nodes(nodes, needed, top ? cut_ : std::set<std::string_view>());
  const auto outer = std::exchange(names.used, &needed);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!keep[i]) continue;
    const size_t before = problems_.count();
    import_node(nodes[i], names);
    if (top && problems_.count() != before) failed_.insert(static_cast<uint32_t>(i));
  }
  names.used = outer;
}

/// Records the results by name; missing ones become stand-ins with the types that the file declares.
void Importer::record(const Node& node, const std::vector<Value*>& results, Names& names) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty() || (names.prefix.empty() && cut_.contains(node.outputs[i]))) continue;
    Value* value = i < results.size() ? results[i] : nullptr;
    if (value == nullptr && !names.used->contains(node.outputs[i])) continue;
    if (value == nullptr) {
      auto found = infos_.find(node.outputs[i]);
      const ValueInfo* info = found == infos_.end() ? nullptr : found->second;
      Shape shape = Shape::unranked();
      if (info != nullptr && info->ranked) {
        shape = Shape();
        for (const Dimension& dim : info->dims) shape.dims.push_back(dim.size < 0 ? Dim() : Dim(dim.size));
      }
      value = unknowns_.add(info == nullptr ? std::nullopt : dtype_of(info->element), std::move(shape));
    }
    if (value->name.empty()) value->name = clean(node.outputs[i]);
    names.values[node.outputs[i]] = value;
  }
}

void Importer::import_node(const Node& node, Names& names) {
  std::string name = node_name(node, names.prefix);
  std::string op = node.domain.empty() ? clean(node.op) : clean(node.domain) + "::" + clean(node.op);
  model_.bytes->charge(1024);
  Builder& builder = *names.builder;
  auto before = builder.sources;
  std::vector<std::string> cuts;
  bool unknown = false;
  try {
    std::vector<Value*> inputs;
    size_t given = node.inputs.size();
    while (given > 0 && node.inputs[given - 1].empty()) --given;  // those left out at the end are as if not there
    for (std::string_view input : std::span(node.inputs).first(given)) {
      auto found = names.values.find(input);
      if (found == names.values.end() && !input.empty())
        fail(ErrorKind::invalid_model, "", "input '{}' is not made before it", printable(input));
      inputs.push_back(found == names.values.end() ? nullptr : found->second);
      if (inputs.back() == nullptr) continue;
      const bool guessed = unknowns_.contains(inputs.back());
      unknown = unknown || guessed;
      if (names.prefix.empty() && !guessed && constant_of(inputs.back()) == nullptr &&
          inputs.back()->producer != nullptr)
        cuts.push_back(clean(input));
    }
    auto function = functions_.find({node.domain, node.op, node.overload});
    if (function != functions_.end()) return call_function(*function->second, node, names, name, inputs);
    const Row* row = find_row(node.domain, node.op);
    if (row == nullptr)
      problems_.unsupported(op, {name, node.location}, unknown ? std::vector<std::string>() : cuts);
    else if (build(*row, node, name, std::move(inputs), names))
      return;
  } catch (const AlreadyReported&) {
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
    problems_.refused(op, {name, node.location}, error);
  } catch (const std::logic_error&) {  // of the standard library: out_of_range, length_error
    problems_.refused(op, {name, node.location},
                      Error(ErrorKind::invalid_model, "", "an operand or attribute has a size that cannot be"));
  }
  for (const std::string& cut : cuts)
    if (std::find(ends_.begin(), ends_.end(), cut) == ends_.end()) ends_.push_back(cut);
  record(node, {}, names);
  builder.sources = before;
}

/// What `make` gives; where it refuses, with the ranks that the file declares for inputs of unknown rank, which a run checks.
std::vector<Value*> Importer::with_declared_ranks(const Node& node, std::vector<Value*> inputs, Names& names,
                                                  const Unknowns::Build& make) {
  try {
    return make(inputs);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported || !names.prefix.empty()) throw;
    Builder& b = *names.builder;
    bool any = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value*& x = inputs[i];
      const auto info = infos_.find(node.inputs[i]);
      if (x == nullptr || !x->type.is_tensor() || x->type.shape.ranked || info == infos_.end() || !info->second->ranked)
        continue;
      const size_t rank = info->second->dims.size();
      Value* sizes = b.add("reshape", {b.add("shape_of", {x}), b.ints({static_cast<int64_t>(rank)})});
      const Type type = Type::tensor(x->type.dtype, Shape(std::vector<Dim>(rank)));
      x = b.add_node(op_named("reshape"), {x, sizes}, {}, {}, {type})->result();
      any = true;
    }
    if (!any) throw;
  }
  return make(inputs);
}

bool Importer::build(const Row& row, const Node& node, const std::string& name, std::vector<Value*> inputs,
                     Names& names) {
  const int64_t version = opset(names.frame, node.domain);
  if (version < 1) fail(ErrorKind::invalid_model, "", "the model imports no operator set '{}'", printable(node.domain));
  Builder& builder = *names.builder;
  const auto before = builder.sources;
  const SourceId id = module_.add_source({"onnx", name, clean(node.op), node.location});
  const size_t nodes_before = builder.block().nodes.size();
  auto make = [&](std::vector<Value*> from) {
    builder.sources = {id};
    OpContext context(*this, node, name, names, std::move(from), version);
    context.target = row.target;
    build_row(row, context);
    for (Value*& result : context.out) result = folded(result, builder);
    for (size_t i = context.out.size(); i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty() && names.used->contains(node.outputs[i]))
        context.refuse("result {} is not supported", i);
    return context.out;
  };
  const bool unknown = std::any_of(inputs.begin(), inputs.end(), [&](const Value* v) { return is_unknown(v); });
  const bool calls = std::any_of(node.attributes.begin(), node.attributes.end(),
                                 [](const Attribute& attribute) { return attribute.graph != nullptr; });
  const size_t guessed = guessed_graphs_;
  std::vector<Value*> results;
  try {
    results = unknown ? unknowns_.results(inputs, calls, make) : with_declared_ranks(node, inputs, names, make);
  } catch (const Error&) {
    if (guessed == guessed_graphs_) throw;  // else a stand-in may be the cause
  }
  if (results.empty() || guessed != guessed_graphs_) return false;
  const auto& nodes = builder.block().nodes;
  const bool present = std::any_of(nodes.begin() + static_cast<int64_t>(nodes_before), nodes.end(), [&](auto& made) {
    return std::find(made->sources.begin(), made->sources.end(), id) != made->sources.end();
  });
  if (!present) module_.removed[id] = Removal::identity;
  mark_results(
      results, clean(node.op),
      [&](const Value* value) { return !value->producer->sources.empty() && value->producer->sources.front() == id; },
      [&](const std::string& mark) {
        return module_.add_source({"onnx", name, mark, node.location});
      });
  record(node, results, names);
  builder.sources = before;
  return true;
}

namespace {

/// All sets of `count` of the numbers below `rank`; none when they are too many.
std::vector<std::vector<int64_t>> sets_of_axes(size_t count, size_t rank) {
  constexpr size_t kMostRank = 8, kMostSets = 24;
  std::vector<std::vector<int64_t>> sets;
  if (rank > kMostRank || count > rank) return sets;
  for (uint32_t bits = 0; bits < uint32_t{1} << rank; ++bits) {
    if (static_cast<size_t>(__builtin_popcount(bits)) != count) continue;
    auto& axes = sets.emplace_back();
    for (size_t axis = 0; axis < rank; ++axis)
      if (bits >> axis & 1) axes.push_back(static_cast<int64_t>(axis));
  }
  if (sets.size() > kMostSets) sets.clear();
  return sets;
}

int64_t as_bits(const std::vector<int64_t>& axes) {
  int64_t bits = 0;
  for (int64_t axis : axes) bits |= int64_t{1} << axis;
  return bits;
}

}  // namespace

void Importer::mark_narrow(const Value* value, int32_t type) {
  if (is_narrow(type)) narrow_[value] = type;
}

void Importer::build_row(const Row& row, OpContext& c) {
  int32_t narrow = 0;
  for (size_t i = 0; i < c.in.size(); ++i)
    if (int32_t type = c.narrow_type(i); type != 0 && (narrow == 0 || i == 0)) narrow = type;
  if (narrow != 0 && row.narrow == Row::Narrow::refuses)
    c.refuse("elements of {} are not supported, only to cast, quantise and move them", type_name(narrow));
  build_by_axes(row, c);
  if (row.narrow == Row::Narrow::moves)
    for (Value*& result : c.out) {
      if (c.narrow_type(0) == 0) break;
      result = folded(result, c.b);
      mark_narrow(result, narrow);
    }
}

void Importer::build_by_axes(const Row& row, OpContext& c) {
  const size_t at = row.axes_input;
  if (at == 0 || !c.given(at) || c.constant(at) || is_unknown(c.in[at])) return row.build(c);
  const Shape& named = c.in[at]->type.shape;
  if (!named.known() || named.rank() > 1 || !c.in[at]->type.dtype.is_integer()) return row.build(c);
  const size_t count = named.rank() == 0 ? 1 : static_cast<size_t>(named.dims[0].size);
  const size_t rank = c.rank(0) + (row.axes_of_result ? count : 0);
  auto sets = sets_of_axes(count, rank);
  std::vector<Value*> taken{nullptr};  // the set as bits
  for (size_t i = 0; i < c.in.size(); ++i)
    if (c.given(i)) taken.push_back(c.in[i]);
  const Names& names = c.names();
  std::function<std::vector<Value*>(size_t, Builder&, const std::vector<Value*>&)> from;
  const auto built = [&](const std::vector<int64_t>& set, Builder& b, const std::vector<Value*>& inside) {
    Names within = names;
    within.builder = &b;
    std::vector<Value*> inputs;
    size_t next = 1;
    for (size_t i = 0; i < c.in.size(); ++i) inputs.push_back(c.given(i) ? inside[next++] : nullptr);
    Tensor axes = Tensor::of_i64(set);
    inputs[at] = b.constant(named.rank() == 0 ? axes.reshaped({}) : axes);
    OpContext inner(*this, c.node(), c.name(), within, std::move(inputs), c.opset);
    inner.target = c.target;
    row.build(inner);
    return inner.out;
  };
  if (sets.empty()) return row.build(c);
  std::optional<Error> refused;
  std::erase_if(sets, [&](const auto& axes) {  // not those that the row refuses
    Block scratch;
    Builder b(scratch);
    try {
      built(axes, b, taken);
      return false;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::out_of_memory || error.kind() == ErrorKind::cancelled) throw;
      refused.emplace(error);
      return true;
    }
  });
  if (sets.empty()) throw *refused;
  // An axis that is out of range, and a set that is none of these, stop the run: they lie outside of their tables.
  std::vector<int64_t> powers, places(size_t{1} << rank, -1 - (int64_t{1} << rank));
  for (size_t axis = 0; axis < rank; ++axis) powers.push_back(int64_t{1} << axis);
  for (const auto& axes : sets) places[static_cast<size_t>(as_bits(axes))] = as_bits(axes);
  std::vector<int64_t> all(places.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  Value* bits = c.b.add("gather", {c.b.ints(powers), c.in[at]});
  if (named.rank() == 1) bits = c.b.add("reduce_sum", {bits}, {{"axes", std::vector<int64_t>{0}}});
  taken[0] = c.b.add("gather", {c.b.ints(all), c.b.add("gather", {c.b.ints(places), bits})});
  from = [&](size_t set, Builder& b, const std::vector<Value*>& inside) -> std::vector<Value*> {
    b.sources = c.b.sources;
    if (set + 1 == sets.size()) return built(sets[set], b, inside);
    Value* is_set = b.add("equal", {inside[0], b.constant(Tensor::scalar_i64(as_bits(sets[set])))});
    return b.make_if(
        is_set, inside,
        [&](Builder& then, const std::vector<Value*>& values) {
          then.sources = c.b.sources;
          return built(sets[set], then, values);
        },
        [&](Builder& otherwise, const std::vector<Value*>& values) { return from(set + 1, otherwise, values); });
  };
  c.out = from(0, c.b, taken);
}

void Importer::call_function(const Function& function, const Node& node, Names& names, const std::string& name,
                             const std::vector<Value*>& inputs) {
  Frame frame{&function, &node, names.frame, names.frame ? names.frame->level + 1 : 1};
  if (frame.level > kMostLevels)
    fail(ErrorKind::unsupported, "", "function calls are nested deeper than {}", kMostLevels);
  if (inputs.size() > function.inputs.size())
    fail(ErrorKind::invalid_model, "", "gives {} inputs to a function that takes {}", inputs.size(),
         function.inputs.size());
  Names inner{{}, &frame, name, names.builder};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != nullptr) inner.values[function.inputs[i]] = inputs[i];
  import_nodes(function.nodes, inner, function.outputs);
  std::vector<Value*> results;
  for (std::string_view output : function.outputs) {
    auto found = inner.values.find(output);
    if (found == inner.values.end())
      fail(ErrorKind::invalid_model, "", "the function does not make its output '{}'", printable(output));
    results.push_back(found->second);
  }
  record(node, results, names);
}

namespace {

std::vector<std::span<const Row>> row_families() {
  return {array_rows(),          slice_rows(),         attention_rows(),
          loss_rows(),           random_rows(),        selection_rows(),
          sequence_rows(),       text_rows(),          control_rows(),
          detection_rows(),      image_rows(),         math_rows(),
          composed_rows(),       element_rows(),       network_rows(),
          normalisation_rows(),  quantisation_rows(),  recurrent_rows(),
          signal_rows(),         learning_rows(),      tree_rows(),
          blocked_rows(),        contrib_rows(),       contrib_array_rows(),
          contrib_expert_rows(), contrib_fused_rows(), contrib_quantised_rows()};
}

}  // namespace

const Row* find_row(std::string_view domain, std::string_view op) {
  static const auto table = [] {
    std::map<std::pair<std::string_view, std::string_view>, const Row*> rows;
    for (std::span<const Row> family : row_families())
      for (const Row& row : family)
        CHECK(rows.emplace(std::pair(row.domain, row.op), &row).second, "two rows for {}", row.op);
    return rows;
  }();
  auto found = table.find({domain, op});
  if (found != table.end()) return found->second;
  static const Row of_user{"", make_user_op};
  if (find_user_op(domain, op)) return &of_user;
  const std::string_view alias = foreign_alias("onnx", domain.empty() ? op : fmt::format("{}::{}", domain, op));
  return alias.empty() ? nullptr : find_row("", alias);
}

std::vector<Value*> as_operator(OpContext& c, std::string_view domain, std::string_view op, std::vector<Value*> inputs,
                                int64_t opset) {
  const Row* row = find_row(domain, op);
  CHECK(row != nullptr, "no row for {}", op);
  OpContext inner(c.importer(), c.node(), c.name(), c.names(), std::move(inputs), opset);
  inner.target = row->target;
  row->build(inner);
  return inner.out;
}

std::vector<std::string_view> supported_ops() {
  std::vector<std::string_view> ops;
  for (std::span<const Row> family : row_families())
    for (const Row& row : family) ops.push_back(row.op);
  std::sort(ops.begin(), ops.end());
  return ops;
}

void OpContext::expect_inputs(size_t least, size_t most) const {
  if (in.size() < least || in.size() > most)
    fail(ErrorKind::invalid_model, "", "has {} inputs, expected {}{}", in.size(), least,
         least == most ? "" : fmt::format(" to {}", most));
  for (size_t i = 0; i < least; ++i) in[i];  // refuses one that is left out
}

size_t OpContext::rank(size_t input) const {
  const Type& type = in[input]->type;
  if (!type.is_tensor()) fail(ErrorKind::invalid_model, "", "input {} is no tensor", input);
  if (!type.shape.ranked) refuse("the rank of input {} is not known; declare the shapes of the model's inputs", input);
  return type.shape.rank();
}

const Attribute* OpContext::find(std::string_view name) const {
  const Attribute* attribute = node_.find(name);
  const Frame* frame = names_.frame;
  // A reference inside a function refers to an attribute of the call, which may be a reference itself.
  while (attribute != nullptr && !attribute->reference.empty()) {
    if (frame == nullptr) fail(ErrorKind::invalid_model, "", "attribute {} refers to no function", name);
    const Attribute* of_call = frame->call->find(attribute->reference);
    if (of_call == nullptr) {
      for (const Attribute& fallback : frame->function->defaults)
        if (fallback.name == attribute->reference) of_call = &fallback;
    }
    attribute = of_call;
    frame = frame->outer;
  }
  return attribute;
}

const Attribute* OpContext::find(std::string_view name, Attribute::Type type) const {
  const Attribute* attribute = find(name);
  if (attribute != nullptr && attribute->type != type)
    fail(ErrorKind::invalid_model, "", "attribute {} is of type {}, expected {}", name, to_string(attribute->type),
         to_string(type));
  return attribute;
}

int32_t OpContext::narrow_type(size_t input) const { return given(input) ? importer_.narrow_type(in[input]) : 0; }

int64_t OpContext::integer(std::string_view name, std::optional<int64_t> fallback) const {
  const Attribute* attribute = find(name, Attribute::Type::integer);
  if (attribute != nullptr) return attribute->integer;
  if (!fallback) fail(ErrorKind::invalid_model, "", "attribute {} is missing", name);
  return *fallback;
}

double OpContext::real(std::string_view name, double fallback) const {
  const Attribute* attribute = find(name, Attribute::Type::real);
  return attribute == nullptr ? fallback : attribute->real;
}

std::string OpContext::text(std::string_view name, std::string_view fallback) const {
  const Attribute* attribute = find(name, Attribute::Type::text);
  return std::string(attribute == nullptr ? fallback : attribute->text);
}

std::vector<int64_t> OpContext::integers(std::string_view name, std::vector<int64_t> fallback) const {
  const Attribute* attribute = find(name, Attribute::Type::integers);
  return attribute == nullptr ? fallback : attribute->integers;
}

std::vector<int64_t> OpContext::integers(std::string_view name, size_t count, int64_t fallback) const {
  std::vector<int64_t> list = integers(name, std::vector<int64_t>(count, fallback));
  if (list.size() != count)
    fail(ErrorKind::invalid_model, "", "attribute {} has {} numbers, expected {}", name, list.size(), count);
  return list;
}

std::vector<float> OpContext::reals(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Type::reals);
  return attribute == nullptr ? std::vector<float>() : attribute->reals;
}

std::vector<std::string> OpContext::texts(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Type::texts);
  if (attribute == nullptr) return {};
  return {attribute->texts.begin(), attribute->texts.end()};
}

std::optional<Tensor> OpContext::tensor(std::string_view name, Attribute::Type type) const {
  const Attribute* attribute = find(name, type);
  if (attribute == nullptr) return std::nullopt;
  return read_tensor(attribute->tensor, importer_.model(), fmt::format("attribute {}", name));
}

const Graph& OpContext::graph(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Type::graph);
  if (attribute == nullptr) fail(ErrorKind::invalid_model, "", "attribute {} is missing", name);
  return *attribute->graph;
}

const ValueInfo* OpContext::type(std::string_view name) const {
  const Attribute* attribute = find(name);
  return attribute == nullptr ? nullptr : attribute->declared.get();
}

std::optional<Tensor> OpContext::constant(size_t input) const {
  const Tensor* tensor = given(input) ? constant_of(in[input]) : nullptr;
  return tensor == nullptr ? std::nullopt : std::optional(*tensor);
}

std::vector<int64_t> OpContext::constant_integers(size_t input, const char* what) const {
  std::optional<Tensor> tensor = constant(input);
  if (!tensor && importer_.is_unknown(in[input])) throw AlreadyReported();
  if (!tensor) refuse("{} must be a constant", what);
  if (!tensor->dtype().is_integer()) fail(ErrorKind::invalid_model, "", "{} must be integers", what);
  return tensor->as_i64();
}

std::optional<std::vector<int64_t>> OpContext::integers_of(std::string_view name, size_t input) const {
  if (given(input)) return constant_integers(input, std::string(name).c_str());
  if (has(name)) return integers(name);
  return std::nullopt;
}

}  // namespace cairn::onnx
