#include "frontends/tensorflow/freeze.h"

#include <algorithm>
#include <map>
#include <optional>

#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/lookup_tables.h"
#include "frontends/tensorflow/row.h"
#include "frontends/tensorflow/tensor_bundle.h"
#include "frontends/tensorflow/variables.h"
#include "frontends/unknown_name.h"

namespace cairn::tensorflow {
namespace {

/// The position of a variable's value in the checkpoint, by the name of the variable's node.
struct StoredAt {
  std::string tensor;
  std::string slice;
};
using StoredVariables = std::map<std::string, StoredAt, std::less<>>;

/// The checkpoint's tensors: for each variable, by the name of its node, and the keys and values of each table.
struct Stored {
  StoredVariables variables, keys, values;
};

/// The place of a node that the file names. Throws UnknownName.
uint32_t root(const NodeNames& names, std::string_view node, const GraphDef& graph) {
  if (const auto found = names.find(node)) return *found;
  throw UnknownName(ErrorKind::not_found, UnknownName::Of::output, std::string(node), graph.model->name(),
                    fmt::format("has no node '{}'", printable(node)));
}

/// Reads the graph that restores variables and tables, to find the checkpoint's tensor for each. It is the same for the
/// object graph of TF2 and the saver of TF1.
class RestoreGraph {
 public:
  explicit RestoreGraph(const MetaGraph& meta) : graph_(meta.graph) {
    std::vector<uint32_t> roots{root(NodeNames(graph_.nodes, graph_.model->name()),
                                     parse_tensor_name(meta.restore_op, "restore_op_name").node, graph_)};
    prune(graph_, roots);
    inline_calls(graph_, roots);
  }

  Stored run() {
    Stored stored;
    for (const Node& node : graph_.nodes) {
      const Traits traits = traits_of(node.op);
      if (traits.has(Trait::fills_table)) {
        read(node, 1, stored.keys);
        read(node, 2, stored.values);
      } else if (traits.has(Trait::assigns)) {
        if (is_variable(made(node))) read(node, 1, stored.variables);
      }
    }
    return stored;
  }

 private:
  Edge source(const Node& node, size_t input) const {
    return origin(data_input(node, input), graph_.nodes, graph_.model->name());
  }
  /// The variable or table that a node writes.
  const Node& made(const Node& writer) const { return graph_.nodes[source(writer, 0).node]; }

  /// The tensor of the checkpoint that a data input of a node is, under the name of what the node writes.
  void read(const Node& node, size_t input, StoredVariables& stored) {
    const Edge from = source(node, input);
    const Node& restore = graph_.nodes[from.node];
    if (restore.op != "RestoreV2") return;
    stored[std::string(made(node).name)] = {text(restore, 1, from.port), text(restore, 2, from.port)};
  }

  /// Text `number` of those that an input of `restore` is.
  std::string text(const Node& restore, size_t input, int32_t number) {
    const Edge from = source(restore, input);
    auto [known, fresh] = texts_.try_emplace(from.node);
    if (fresh) {
      const Node& node = graph_.nodes[from.node];
      AttrValue value = attr_of(node, "value", AttrValue::Kind::tensor, *graph_.model);
      if (node.op != "Const" || value.kind == AttrValue::Kind::none)
        fail(ErrorKind::unsupported, printable(restore.name), "names of tensors are computed, expected constants");
      known->second = read_tensor(value, graph_.model, printable(node.name));
    }
    const Tensor& names = known->second;
    if (names.dtype() != kString || number >= names.count())
      fail(ErrorKind::invalid_model, printable(restore.name), "restores tensor {} of {} names", number, names.count());
    return names.values<std::string>()[static_cast<size_t>(number)];
  }

  GraphDef graph_;
  std::map<uint32_t, Tensor> texts_;  // by node
};

/// Values of variables out of the checkpoint, opened when the first is asked for.
class Checkpoint {
 public:
  Checkpoint(const SavedModel& model, const MetaGraph& meta) : model_(model), meta_(meta) {}

  Tensor value(const Node& variable) {
    open();
    auto found = stored_.variables.find(variable.name);
    if (found != stored_.variables.end()) return bundle_->read(found->second.tensor, found->second.slice);
    AttrValue shared = attr_of(variable, "shared_name", AttrValue::Kind::text, *meta_.graph.model);
    for (std::string_view name : {shared.text, variable.name})
      if (!name.empty() && bundle_->find(name) != nullptr) return bundle_->read(name);
    fail(ErrorKind::invalid_model, printable(variable.name), "variable has no value in the checkpoint {}",
         bundle_->prefix());
  }

  /// Keys and values of a table, where the checkpoint has them.
  std::optional<TableContent> content(const Node& table) {
    if (meta_.restore_op.empty()) return std::nullopt;
    open();
    auto keys = stored_.keys.find(table.name), values = stored_.values.find(table.name);
    if (keys == stored_.keys.end() || values == stored_.values.end()) return std::nullopt;
    return TableContent{bundle_->read(keys->second.tensor, keys->second.slice),
                        bundle_->read(values->second.tensor, values->second.slice)};
  }

 private:
  void open() {
    if (bundle_) return;
    bundle_.emplace(model_.variables_prefix());
    if (!meta_.restore_op.empty()) stored_ = RestoreGraph(meta_).run();
  }

  const SavedModel& model_;
  const MetaGraph& meta_;
  std::optional<TensorBundle> bundle_;
  Stored stored_;
};

constexpr std::string_view kInitialiser = "__saved_model_init_op";

/// Adds to the roots the nodes that run when the model is loaded, since they initialise tables.
void add_initialisers(const MetaGraph& meta, const GraphDef& graph, const NodeNames& names,
                      std::vector<uint32_t>& roots) {
  if (const Signature* signature = meta.find_signature(kInitialiser))
    for (const TensorInfo& info : signature->outputs)
      roots.push_back(root(names, parse_tensor_name(info.tensor, info.key).node, graph));
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (traits_of(graph.nodes[i].op).has(Trait::fills_table)) roots.push_back(i);
}

const Signature& choose_signature(const SavedModel& model, const MetaGraph& meta, const std::string& wanted) {
  if (const Signature* found = meta.find_signature(wanted.empty() ? "serving_default" : wanted)) return *found;
  std::vector<const Signature*> usable;
  std::string names;
  for (const Signature& signature : meta.signatures) {
    if (signature.key == kInitialiser) continue;
    usable.push_back(&signature);
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", printable(signature.key));
  }
  if (wanted.empty() && usable.size() == 1) return *usable[0];
  if (usable.empty()) fail(ErrorKind::not_found, model.directory, "has no signature; name the output nodes");
  fail(ErrorKind::not_found, model.directory, "has no signature '{}'; it has {}",
       wanted.empty() ? "serving_default" : printable(wanted), names);
}

/// Removes control edges, which only order side effects. In graphs with version 1 control flow, those from its nodes
/// are kept, since nodes wait for branches through them.
void drop_control_edges(GraphDef& graph) {
  const bool branches = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op == "Switch" || node.op == "Enter" || node.op == "Merge";
  });
  auto waits = [&](Edge input) {
    if (!input.is_control()) return true;
    if (!branches) return false;
    for (std::string_view op : {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "Identity"})
      if (graph.nodes[input.node].op == op) return true;
    return false;
  };
  for (Node& node : graph.nodes) std::erase_if(node.inputs, [&](Edge input) { return !waits(input); });
}

TensorInfo output_info(const std::string& name) {
  TensorName parsed = parse_tensor_name(name, name);
  if (parsed.index == Edge::kControl)
    fail(ErrorKind::invalid_argument, name, "is no tensor, expected node or node:index");
  TensorInfo info;
  info.tensor = fmt::format("{}:{}", parsed.node, parsed.index);
  info.key = parsed.index == 0 ? std::string(parsed.node) : info.tensor;
  return info;
}

/// Inlines the signature's calls, so that outputs inside functions can be referred to by the names of the inlined
/// nodes.
void inline_for(GraphDef& graph, const FreezeOptions& options, const MetaGraph& meta) {
  const NodeNames names(graph.nodes, graph.model->name());
  const Signature* signature = meta.find_signature(options.signature.empty() ? "serving_default" : options.signature);
  const bool all = std::all_of(options.out_nodes.begin(), options.out_nodes.end(), [&](const std::string& name) {
    return names.find(parse_tensor_name(name, name).node).has_value();
  });
  if (all || signature == nullptr) return;
  std::vector<uint32_t> roots;
  for (const auto* list : {&signature->outputs, &signature->inputs})
    for (const TensorInfo& info : *list)
      if (!info.tensor.empty()) roots.push_back(root(names, parse_tensor_name(info.tensor, info.key).node, graph));
  add_initialisers(meta, graph, names, roots);
  prune(graph, roots);
  inline_calls(graph, roots);
}

bool is_placeholder(const Node& node) { return node.op == "Placeholder" || node.op == "PlaceholderWithDefault"; }

}  // namespace

TensorInfo placeholder_info(const Node& node, ModelBytes& model) {
  TensorInfo info;
  info.key = node.name;
  info.tensor = fmt::format("{}:0", node.name);
  const Attr* own = node.find("dtype");  // a node made a placeholder may have its element type elsewhere, or nowhere
  const AttrValue type = attr_of(node, own == nullptr ? "T" : "dtype", AttrValue::Kind::type, model);
  info.dtype = own == nullptr && type.kind == AttrValue::Kind::none ? kDtFloat : static_cast<DataType>(type.integer);
  AttrValue shape = attr_of(node, "shape", AttrValue::Kind::shape, model);
  info.shape = shape.shape;
  info.shape.unknown_rank |= shape.kind == AttrValue::Kind::none;
  return info;
}

FrozenGraph freeze(const SavedModel& model, const FreezeOptions& options) {
  const MetaGraph& meta = model.select(options.tags);
  FrozenGraph frozen{meta.graph, {}};
  GraphDef& graph = frozen.graph;
  if (!options.out_nodes.empty()) inline_for(graph, options, meta);
  const NodeNames names(graph.nodes, graph.model->name());
  std::vector<uint32_t> roots;
  if (options.out_nodes.empty()) {
    frozen.signature = choose_signature(model, meta, options.signature);
    for (const auto* list : {&frozen.signature.outputs, &frozen.signature.inputs})
      for (const TensorInfo& info : *list) {
        if (info.tensor.empty())
          fail(ErrorKind::unsupported, printable(info.key), "is a sparse or composite tensor of signature '{}'",
               printable(frozen.signature.key));
        roots.push_back(root(names, parse_tensor_name(info.tensor, info.key).node, graph));
      }
    if (frozen.signature.outputs.empty())
      fail(ErrorKind::unsupported, model.directory, "signature '{}' has no output", printable(frozen.signature.key));
  } else {
    for (const std::string& name : options.out_nodes) {
      frozen.signature.outputs.push_back(output_info(name));
      roots.push_back(root(names, parse_tensor_name(name, name).node, graph));
    }
  }
  const size_t wanted = roots.size();
  add_initialisers(meta, graph, names, roots);
  prune(graph, roots);
  inline_calls(graph, roots);
  roots.resize(wanted);
  Checkpoint checkpoint(model, meta);
  keep_tables(graph, roots, model.directory, meta.assets, [&](const Node& table) { return checkpoint.content(table); });
  freeze_variables(graph, [&](const Node& variable) { return checkpoint.value(variable); });
  drop_control_edges(graph);
  prune(graph, roots);
  prune_functions(graph);
  for (Node& node : graph.nodes) {
    node.device = {};
    std::erase_if(node.attrs, [](const Attr& attr) { return attr.name == "_class"; });
  }
  if (!options.out_nodes.empty())
    for (const Node& node : graph.nodes)
      if (is_placeholder(node)) frozen.signature.inputs.push_back(placeholder_info(node, *graph.model));
  return frozen;
}

}  // namespace cairn::tensorflow
