#include "frontends/tensorflow/variables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/row.h"

namespace cairn::tensorflow {
namespace {

using Kind = AttrValue::Kind;

/// The replacement of a variable.
struct Frozen {
  DataType type = kDtInvalid;
  std::vector<int64_t> dims;
  friend auto operator<=>(const Frozen&, const Frozen&) = default;
};

using FrozenResults = std::vector<std::optional<Frozen>>;

struct NewFunction {
  std::string_view name;
  FrozenResults results;
};

void set_attr(Node& node, std::string_view name, std::string_view value) {
  for (Attr& attr : node.attrs) {
    if (attr.name != name) continue;
    attr = {attr.name, value};
    return;
  }
  node.attrs.push_back({name, value});
}

void drop_attr(Node& node, std::string_view name) {
  std::erase_if(node.attrs, [&](const Attr& attr) { return attr.name == name; });
}

class Freezer {
 public:
  Freezer(GraphDef& graph, const VariableValue& value)
      : graph_(graph), model_(*graph.model), library_(graph), value_(value) {}

  void run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    std::map<Edge, Frozen> frozen;
    for (uint32_t i = 0; i < nodes.size(); ++i)
      if (is_variable(nodes[i])) frozen[{i, 0}] = make_constant(nodes[i]);
    rewrite(nodes, frozen, 0);
    graph_.nodes = std::move(nodes);
    for (FunctionDef& function : new_functions_) graph_.functions.push_back(std::move(function));
  }

 private:
  Frozen make_constant(Node& node) {
    Tensor value = value_(node);
    AttrValue dtype = attr_of(node, "dtype", Kind::type, model_);
    DataType type = static_cast<DataType>(dtype.integer);
    if (dtype_of(type) != value.dtype() || value.dtype() == kString)
      fail(ErrorKind::invalid_model, printable(node.name), "variable of {} has a value of {} in the checkpoint",
           to_string(type), to_string(value.dtype()));
    model_.attach(value.owner());
    node.op = "Const";
    node.inputs.clear();
    std::string_view content(static_cast<const char*>(value.data()), value.bytes());
    node.attrs = {{"dtype", model_.keep(attr_type(type))}, attr_tensor(model_, "value", type, value.dims(), content)};
    return {type, value.dims()};
  }

  /// Follows variables through the nodes that forward them, then rewrites every node that has one among its inputs.
  void rewrite(std::vector<Node>& nodes, std::map<Edge, Frozen>& frozen, int level) {
    if (frozen.empty()) return;
    follow(nodes, frozen);
    std::vector<Node> extra;
    const auto first_extra = static_cast<uint32_t>(nodes.size());
    for (Node& node : nodes) {
      FrozenResults given;
      for (Edge input : node.inputs) {
        if (input.is_control()) continue;
        auto found = frozen.find(input);
        given.push_back(found == frozen.end() ? std::nullopt : std::optional(found->second));
      }
      if (std::none_of(given.begin(), given.end(), [](const auto& what) { return what.has_value(); })) continue;
      std::string_view old_op = node.op;
      rewrite_user(node, given, extra, first_extra, level);
      if (node.op != old_op) node.result = "output";  // as all that take the place of reads call it
    }
    nodes.insert(nodes.end(), extra.begin(), extra.end());
  }

  void follow(const std::vector<Node>& nodes, std::map<Edge, Frozen>& frozen) {
    const Users users(nodes);
    model_.charge(96 * users.count());
    std::vector<uint32_t> pending;
    std::vector<bool> queued(nodes.size(), false);
    auto queue_users = [&](uint32_t node) {
      for (const auto [user, port] : users.of(node)) {
        if (queued[user] || !traits_of(nodes[user].op).has(Trait::hands_on) || !frozen.contains({node, port})) continue;
        queued[user] = true;
        pending.push_back(user);
      }
    };
    for (const auto& [from, what] : frozen) queue_users(from.node);
    while (!pending.empty()) {
      const uint32_t at = pending.back();
      pending.pop_back();
      queued[at] = false;
      const bool two = nodes[at].op == "Switch" || nodes[at].op == "RefSwitch";
      bool more = false;
      int32_t number = 0;
      for (Edge input : nodes[at].inputs) {
        if (input.is_control()) continue;
        if (auto found = frozen.find(input); found != frozen.end())
          for (int32_t result = two ? 0 : number; result <= (two ? 1 : number); ++result)
            more |= frozen.emplace(Edge{at, result}, found->second).second;
        ++number;
      }
      if (more) queue_users(at);
    }
  }

  void rewrite_user(Node& node, const FrozenResults& given, std::vector<Node>& extra, uint32_t first_extra, int level) {
    const Traits traits = traits_of(node.op);
    auto is_frozen = [&](size_t input) { return input < given.size() && given[input]; };
    const size_t written = traits.has(Trait::writes) ? static_cast<size_t>(traits.handles) : 0;
    for (size_t i = 0; i < written; ++i)
      if (is_frozen(i))
        fail(ErrorKind::unsupported, printable(node.name),
             "{} writes a variable while the model runs; a frozen graph cannot hold state", printable(node.op));
    drop_attr(node, "_output_shapes");
    if (traits.has(Trait::calls)) return rewrite_call(node, given, level);
    const Frozen* first = is_frozen(0) ? &*given[0] : nullptr;
    if (first == nullptr) return rewrite_plain(node, given);
    std::string_view type = model_.keep(attr_type(first->type));
    if (node.op == "ReadVariableOp") {
      node.op = "Identity";
      node.attrs = {{"T", type}};
    } else if (node.op == "ResourceGather") {
      AttrValue batch = attr_of(node, "batch_dims", Kind::integer, model_);
      gather_axis(node, static_cast<int32_t>(batch.integer), extra, first_extra);
      node.op = "GatherV2";
      drop_attr(node, "validate_indices");
      drop_attr(node, "dtype");
      set_attr(node, "Tparams", type);
      set_attr(node, "Taxis", model_.keep(attr_type(kDtInt32)));
    } else if (node.op == "ResourceGatherNd") {
      node.op = "GatherNd";
      drop_attr(node, "dtype");
      set_attr(node, "Tparams", type);
    } else if (node.op == "VariableShape") {
      node.op = "Shape";
      set_attr(node, "T", type);
    } else if (traits.has(Trait::asks)) {
      static constexpr char kTrue = 1;
      node.op = "Const";
      node.inputs.clear();
      node.attrs = {{"dtype", model_.keep(attr_type(kDtBool))}, attr_tensor(model_, "value", kDtBool, {}, {&kTrue, 1})};
    } else {
      rewrite_plain(node, given);
    }
  }

  /// Rewrites an op that took a resource or a reference and now takes the value.
  void rewrite_plain(Node& node, const FrozenResults& given) {
    if (node.op == "IdentityN") return set_types(node, "T", given, 0);
    const Attr* type = node.find("T");
    const bool hands_on = traits_of(node.op).has(Trait::hands_on);
    bool resource = type != nullptr && decode(*type, model_).integer == kDtResource;
    if (resource && hands_on && given[0]) return set_attr(node, "T", model_.keep(attr_type(given[0]->type)));
    if (node.op.starts_with("Ref") && hands_on) {
      node.op.remove_prefix(3);  // RefSwitch and Switch differ in the reference only
      return;
    }
    if (resource || node.op.starts_with("Resource") || node.op == "Merge" || node.op == "RefMerge")
      fail(ErrorKind::unsupported, printable(node.name), "{} uses a variable in a way that cannot be frozen",
           printable(node.op));
    // All other ops read a TF1 reference as a value.
  }

  void set_types(Node& node, std::string_view name, const FrozenResults& given, size_t skip) {
    AttrValue list = attr_of(node, name, Kind::list, model_);
    std::vector<DataType> types;
    for (int64_t type : list.integers) types.push_back(static_cast<DataType>(type));
    for (size_t i = skip; i < given.size(); ++i) {
      if (!given[i]) continue;
      if (i - skip >= types.size())
        fail(ErrorKind::invalid_model, printable(node.name), "attribute {} has {} types for {} inputs", name,
             types.size(), given.size() - skip);
      types[i - skip] = given[i]->type;
    }
    set_attr(node, name, model_.keep(attr_types(types)));
  }

  void gather_axis(Node& node, int32_t axis, std::vector<Node>& extra, uint32_t first_extra) {
    Node constant;
    constant.name = model_.keep(fmt::format("{}/axis", node.name));
    constant.op = "Const";
    std::string_view content = model_.keep(std::string(reinterpret_cast<const char*>(&axis), sizeof(axis)));
    constant.attrs = {{"dtype", model_.keep(attr_type(kDtInt32))}, attr_tensor(model_, "value", kDtInt32, {}, content)};
    auto control = std::find_if(node.inputs.begin(), node.inputs.end(), [](Edge in) { return in.is_control(); });
    node.inputs.insert(control, {first_extra + static_cast<uint32_t>(extra.size()), 0});
    extra.push_back(std::move(constant));
  }

  void rewrite_call(Node& node, const FrozenResults& given, int level) {
    bool loop = node.op.ends_with("While");
    bool call = node.op.ends_with("PartitionedCall");
    size_t skip = loop || call ? 0 : 1;
    FrozenResults args(given.begin() + static_cast<int64_t>(std::min(skip, given.size())), given.end());
    std::vector<NewFunction> made;
    for (Attr& attr : node.attrs) {
      AttrValue value = attr.name == "cond" || attr.name == "body" || attr.name == "then_branch" ||
                                attr.name == "else_branch" || attr.name == "f" || attr.name == "branches"
                            ? decode(attr, model_)
                            : AttrValue();
      if (value.kind == Kind::function) {
        NewFunction function = specialise(value.function.name, args, node, level);
        attr.value = model_.keep(attr_function(function.name));
        if (attr.name != "cond") made.push_back(std::move(function));
      } else if (!value.functions.empty()) {
        std::vector<std::string_view> names;
        for (const NameAttrList& branch : value.functions) {
          made.push_back(specialise(branch.name, args, node, level));
          names.push_back(made.back().name);
        }
        attr.value = model_.keep(attr_functions(names));
      }
    }
    set_types(node, loop ? "T" : "Tin", given, skip);
    drop_attr(node, "_read_only_resource_inputs");
    if (loop) set_shapes(node, given);
    for (const NewFunction& function : made)
      for (size_t i = 0; i < function.results.size(); ++i)
        if (function.results[i].has_value() != (loop && i < given.size() && given[i].has_value()))
          fail(ErrorKind::unsupported, printable(node.name), "function {} returns a variable, or loses one",
               printable(function.name));
  }

  void set_shapes(Node& node, const FrozenResults& given) {
    const Attr* attr = node.find("output_shapes");
    if (attr == nullptr) return;
    std::vector<ShapeProto> shapes = decode(*attr, model_).shapes;
    for (size_t i = 0; i < given.size() && i < shapes.size(); ++i)
      if (given[i]) shapes[i] = {false, given[i]->dims};
    set_attr(node, "output_shapes", model_.keep(attr_shapes(shapes)));
  }

  /// A copy of the function in which the given arguments are values instead of variables.
  NewFunction specialise(std::string_view name, const FrozenResults& args, const Node& caller, int level) {
    if (level > kMaxNesting)
      fail(ErrorKind::unsupported, printable(caller.name), "function calls are nested deeper than {}", kMaxNesting);
    auto [known, fresh] = specialised_.try_emplace({name, args});
    if (!fresh && known->second.name.empty())
      fail(ErrorKind::unsupported, printable(caller.name), "function '{}' calls itself", printable(name));
    if (!fresh) return known->second;
    const FunctionDef* original = library_.find(name);
    if (original == nullptr)
      fail(ErrorKind::invalid_model, printable(caller.name), "calls function '{}', which the file does not hold",
           printable(name));
    original->check();
    model_.charge(4 * original->raw.size() + 4096);
    FunctionDef function = *original;
    function.raw = {};
    function.name = model_.keep(fmt::format("{}_frozen_{}", name, specialised_.size()));
    if (function.inputs.size() < args.size())
      fail(ErrorKind::invalid_model, printable(caller.name), "gives {} arguments to function {}, which takes {}",
           args.size(), printable(name), function.inputs.size());
    std::map<Edge, Frozen> frozen;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!args[i]) continue;
      function.inputs[i].type = args[i]->type;
      frozen[function.inputs[i].edge] = *args[i];
    }
    NewFunction made{function.name, {}};
    rewrite(function.nodes, frozen, level + 1);
    for (FunctionArg& output : function.outputs) {
      auto found = frozen.find(output.edge);
      made.results.push_back(found == frozen.end() ? std::nullopt : std::optional(found->second));
      if (found != frozen.end()) output.type = found->second.type;
    }
    new_functions_.push_back(std::move(function));
    return specialised_[{name, args}] = made;
  }

  GraphDef& graph_;
  ModelBytes& model_;
  Library library_;
  const VariableValue& value_;
  std::map<std::pair<std::string_view, FrozenResults>, NewFunction> specialised_;
  std::vector<FunctionDef> new_functions_;
};

}  // namespace

bool is_variable(const Node& node) { return traits_of(node.op).has(Trait::makes_variable); }

void freeze_variables(GraphDef& graph, const VariableValue& value) { Freezer(graph, value).run(); }

}  // namespace cairn::tensorflow
