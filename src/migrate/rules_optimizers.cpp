// Wraps optimizers of distributed training, and for --loss-scale: each chain of optimizers once, outermost.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

// An expression of a file of the project.
using Expression = std::pair<const Module*, NodeId>;

// The expressions a value may come from: itself, or through names, branches, parameters and functions, of other files too.
class Sources {
 public:
  Sources(Resolver& resolver, std::set<Expression>& found) : resolver_(resolver), found_(found) {}

  void add(const Module& module, NodeId node, int depth = 0) {
    const Syntax& syntax = module.syntax();
    node = syntax.unwrap(node);
    if (depth > 12 || node == kNoNode) return;
    switch (syntax.kind(node)) {
      case Kind::conditional_expression:
      case Kind::boolean_operator:
        for (NodeId part : syntax.children(node)) add(module, part, depth + 1);
        return;
      case Kind::call:
      case Kind::identifier:
      case Kind::attribute:
      case Kind::subscript:
        if (!found_.insert({&module, node}).second) return;
        break;
      default: return;
    }
    if (syntax.kind(node) == Kind::call)
      add_returned(module, syntax.child(node, Field::function), depth);
    else if (syntax.kind(node) == Kind::identifier)
      add_bound(module, node, depth);
    else if (syntax.kind(node) == Kind::attribute)
      add_member(module, node, depth);
    else
      add_parts(module, syntax.child(node, Field::value), depth);
  }

 private:
  void add_returned(const Module& module, NodeId callee, int depth) {
    for (const Value& value : Values(resolver_.values(module, callee))) {
      if (value.is != Value::Is::function) continue;
      const Syntax& syntax = value.module->syntax();
      if (syntax.kind(value.node) == Kind::lambda) add(*value.module, syntax.child(value.node, Field::body), depth + 1);
      for (NodeId at = value.node; at < syntax[value.node].after; ++at)
        if (syntax.kind(at) == Kind::return_statement && syntax.first(at) != kNoNode)
          add(*value.module, syntax.first(at), depth + 1);
    }
  }

  void add_bound(const Module& module, NodeId name, int depth) {
    uint32_t scope = kNoScope;
    for (uint32_t index : module.lookup(module.syntax().text(name), name, scope)) {
      const Binding& binding = module.bindings()[index];
      if (binding.how == Bound::assigned && binding.value != kNoNode && binding.value != name)
        add(module, binding.value, depth + 1);
      if (binding.how == Bound::parameter)
        for (const auto& [caller, argument] : resolver_.arguments_of(module, binding))
          add(*caller, argument, depth + 1);
    }
  }

  // A member: what this function has assigned to it before, else what the others assign.
  void add_member(const Module& module, NodeId node, int depth) {
    const Syntax& syntax = module.syntax();
    if (syntax.text(syntax.child(node, Field::object)) != "self") return;
    const NodeId here = syntax.ancestor(node, Kind::function_definition);
    std::vector<NodeId> before, elsewhere;
    for (const SelfAssignment& assignment : module.self_assignments()) {
      if (assignment.name != syntax.text(syntax.child(node, Field::attribute)) || assignment.value == kNoNode) continue;
      if (syntax.ancestor(assignment.value, Kind::function_definition) != here)
        elsewhere.push_back(assignment.value);
      else if (syntax[assignment.value].after <= node)
        before.push_back(assignment.value);
    }
    for (NodeId value : before.empty() ? elsewhere : before) add(module, value, depth + 1);
  }

  // A part of a list or dictionary that is written out is any of its members.
  void add_parts(const Module& module, NodeId whole, int depth) {
    for (const auto& [there, literal] : resolver_.literals(module, whole))
      for (NodeId member : there->syntax().children(literal)) {
        if (there->syntax().kind(member) == Kind::pair) member = there->syntax().child(member, Field::value);
        if (member != kNoNode) add(*there, member, depth + 1);
      }
  }

  Resolver& resolver_;
  std::set<Expression>& found_;
};

bool is_optimizer_class(const std::string& name) {
  return is_subclass(name, "tf.train.Optimizer") || is_subclass(name, "tf.keras.optimizers.Optimizer");
}

bool wraps_optimizer(const std::string& name) {
  static const std::set<std::string> wrappers = {"npu.NPUDistributedOptimizer",
                                                 "npu.npu_distributed_optimizer_wrapper",
                                                 "npu.npu_tf_optimizer",
                                                 "npu.npu_keras_optimizer",
                                                 "npu.KerasDistributeOptimizer",
                                                 "npu.NPULossScaleOptimizer",
                                                 "npu.NPUOptimizer",
                                                 "npu.distribute.npu_distributed_keras_optimizer_wrapper",
                                                 "hvd.DistributedOptimizer",
                                                 "tf.contrib.mixed_precision.LossScaleOptimizer",
                                                 "tf.train.experimental.MixedPrecisionLossScaleOptimizer"};
  return wrappers.contains(name);
}

// A function or the module around a node.
NodeId body_around(const Syntax& syntax, NodeId node) {
  NodeId function = syntax.ancestor(node, Kind::function_definition);
  return function == kNoNode ? 0 : function;
}

// Constructions of optimizers, and the expressions, of any file, that another optimizer or a wrapper takes in.
struct Optimizers {
  std::set<NodeId> constructed, inner;
  std::map<NodeId, std::vector<NodeId>> by_body;  // assignments, by the function or module they stand in
  std::set<Expression> taken;
};

Optimizers find_optimizers(Resolver& resolver, const Module& module) {
  const Syntax& syntax = module.syntax();
  Optimizers found;
  for (NodeId call = 0; call < syntax.size(); ++call) {
    if (syntax.kind(call) == Kind::assignment) found.by_body[body_around(syntax, call)].push_back(call);
    if (syntax.kind(call) != Kind::call) continue;
    NodeId callee = syntax.child(call, Field::function);
    if (callee == kNoNode || syntax.text(callee).ends_with("__init__")) continue;
    bool optimizer = false, wrapper = false;
    for (const ApiName& target : targets_of(resolver, module, call)) {
      optimizer = optimizer || (is_optimizer_class(target.name) && target.name.find(':') == std::string::npos);
      wrapper = wrapper || wraps_optimizer(target.name);
    }
    if (!optimizer && !wrapper) continue;
    if (optimizer && !wrapper) found.constructed.insert(call);
    NodeId list = syntax.child(call, Field::arguments);
    if (syntax.kind(list) != Kind::argument_list) continue;
    for (NodeId argument : syntax.children(list)) {
      if (syntax.kind(argument) == Kind::keyword_argument) argument = syntax.child(argument, Field::value);
      if (argument != kNoNode) Sources(resolver, found.taken).add(module, argument);
    }
  }
  return found;
}

// Where an optimizer is wrapped: around an expression, or in a line of its own behind a branch.
struct Place {
  NodeId expression = kNoNode;
  NodeId statement = kNoNode;
  std::string variable;  // that the line behind `statement` wraps
  auto operator<=>(const Place&) const = default;
};

bool mentions_text(const Syntax& syntax, NodeId tree, std::string_view text) {
  for (NodeId node = tree; node < syntax[tree].after; ++node)
    if ((syntax.kind(node) == Kind::identifier || syntax.kind(node) == Kind::attribute) && syntax.text(node) == text)
      return true;
  return false;
}

// The statement in the innermost block around both nodes that holds `later`.
NodeId statement_beside(const Syntax& syntax, NodeId earlier, NodeId later) {
  NodeId statement = later;
  for (NodeId up = later; up != kNoNode; up = syntax.parent(up)) {
    Kind parent = syntax.kind(syntax.parent(up));
    if (parent != Kind::block && parent != Kind::module) continue;
    statement = up;
    NodeId block = syntax.parent(up);
    if (earlier > block && earlier < syntax[block].after) break;
  }
  return statement;
}

// An optimizer that is taken into another one on one branch only (if use_tpu: opt = CrossShardOptimizer(opt)) is wrapped behind
// the branch, so that both paths are; all others where they are made.
Place place_of(Context& file, const Optimizers& optimizers, NodeId call) {
  const Syntax& syntax = file.syntax;
  NodeId expression = call;
  for (Kind up = syntax.kind(syntax.parent(expression));
       up == Kind::parenthesized_expression || up == Kind::conditional_expression;
       up = syntax.kind(syntax.parent(expression)))
    expression = syntax.parent(expression);
  NodeId assignment = syntax.parent(expression);
  NodeId left = syntax.kind(assignment) == Kind::assignment ? syntax.child(assignment, Field::left) : kNoNode;
  if (left == kNoNode || (syntax.kind(left) != Kind::identifier && syntax.kind(left) != Kind::attribute))
    return {call, kNoNode, ""};
  const std::string variable = file.text(left);
  NodeId right = syntax.child(assignment, Field::right);
  const bool takes_itself = mentions_text(syntax, right, variable);
  NodeId earlier =
      kNoNode;  // the assignment of the variable before this one; for a new variable, that of another branch
  for (NodeId other : optimizers.by_body.at(body_around(syntax, assignment))) {
    NodeId target = syntax.child(other, Field::left), value = syntax.child(other, Field::right);
    if (other == assignment || target == kNoNode || value == kNoNode || syntax.text(target) != variable) continue;
    bool alias =
        syntax.kind(syntax.unwrap(value)) == Kind::identifier || syntax.kind(syntax.unwrap(value)) == Kind::attribute;
    if (takes_itself ? other < assignment : alias) earlier = other;
  }
  if (earlier == kNoNode) return {takes_itself && expression != call ? expression : call, kNoNode, ""};
  if (!takes_itself) {
    // if use_tpu: b = CrossShardOptimizer(a), else: b = a
    NodeId branch = syntax.ancestor(assignment, Kind::if_statement);
    if (branch == kNoNode || earlier < branch || earlier >= syntax[branch].after) return {call, kNoNode, ""};
    return {kNoNode, branch, variable};
  }
  NodeId statement = statement_beside(syntax, earlier, assignment);
  if (statement == syntax.statement(assignment)) return {expression, kNoNode, ""};
  return {kNoNode, statement, variable};
}

// return a behind if use_tpu: return CrossShardOptimizer(a)
void add_returned(Context& file, const Optimizers& optimizers, std::set<Place>& places) {
  const Syntax& syntax = file.syntax;
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) != Kind::return_statement || syntax.kind(syntax.first(node)) != Kind::identifier) continue;
    NodeId value = syntax.first(node), body = body_around(syntax, node);
    std::set<Expression> sources;
    Sources(file.resolver, sources).add(file.module, value);
    std::set<NodeId> made;
    for (const auto& [module, source] : sources)
      if (module == &file.module) made.insert(source);
    bool taken = false, bare = false;
    std::erase_if(made, [&](NodeId one) { return syntax.kind(one) != Kind::call; });
    bare = !made.empty();
    for (NodeId call : made) bare = bare && optimizers.inner.contains(call) && optimizers.constructed.contains(call);
    for (NodeId other = body; bare && other < syntax[body].after; ++other) {
      NodeId returned = syntax.kind(other) == Kind::return_statement ? syntax.first(other) : kNoNode;
      if (returned == kNoNode || returned == value || !optimizers.constructed.contains(returned)) continue;
      taken = taken || (!optimizers.inner.contains(returned) && mentions_text(syntax, returned, syntax.text(value)));
    }
    if (bare && taken) places.insert({value, kNoNode, ""});
  }
}

std::set<Place> places_to_wrap(Context& file) {
  Optimizers optimizers = find_optimizers(file.resolver, file.module);
  if (optimizers.constructed.empty()) return {};
  const size_t index = file.project.index_of(&file.module);
  for (size_t importer : file.project.importers(index))
    optimizers.taken.merge(find_optimizers(file.resolver, *file.project.modules()[importer]).taken);
  for (const auto& [module, node] : optimizers.taken)
    if (module == &file.module) optimizers.inner.insert(node);
  std::set<Place> places;
  for (NodeId call : optimizers.constructed)
    if (!optimizers.inner.contains(call)) places.insert(place_of(file, optimizers, call));
  if (!places.empty()) add_returned(file, optimizers, places);
  return places;
}

std::string loss_scale_manager(Context& file, Rewrite& rewrite) {
  const std::string& scale = file.options.loss_scale;
  if (scale == "dynamic")
    return rewrite.use("ExponentialUpdateLossScaleManager") +
           "(init_loss_scale=2 ** 32, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2, decr_ratio=0.5)";
  return rewrite.use("FixedLossScaleManager") + "(loss_scale=" + scale + ")";
}

void optimizers(Context& file, const Rule& rule) {
  const bool distributed = file.own.tf && file.own.distributed == Distribution::tf_strategy;
  bool scaled = !file.options.loss_scale.empty();
  if (!distributed && !scaled && !file.own.shared) return;
  const bool by_others = !file.project.imports(file.project.index_of(&file.module)).empty();  // classes, partials
  if (!by_others && file.module.text().find("ptimizer") == std::string::npos) return;
  if (file.own.shared) {
    const Optimizers optimizers = find_optimizers(file.resolver, file.module);
    for (NodeId made : optimizers.constructed)
      if (!optimizers.taken.contains({&file.module, made}))
        file.find(rule, made, Severity::warning,
                  "scripts of Horovod and scripts of a strategy use this optimizer: it is not wrapped",
                  "wrap it with npu_distributed_optimizer_wrapper in the scripts of the strategy");
    return;
  }
  const std::string_view message =
      distributed ? "the optimizer averages gradients over the ranks" : "the optimizer scales its loss";
  for (const Place& place : places_to_wrap(file)) {
    bool keras = false;
    if (file.syntax.kind(place.expression) == Kind::call)
      for (const ApiName& target : file.targets(place.expression))
        keras = keras || is_subclass(target.name, "tf.keras.optimizers.Optimizer");
    if (keras && scaled && !distributed) continue;
    Rewrite rewrite(file, rule, place.expression == kNoNode ? place.statement : place.expression, std::string(message));
    std::string open = rewrite.use(scaled && !keras ? "NPULossScaleOptimizer" : optimizer_wrapper(file)) + "(";
    std::string close = ")";
    if (scaled && !keras)
      close = fmt::format(", loss_scale_manager={}{})", loss_scale_manager(file, rewrite),
                          distributed ? ", is_distributed=True" : "");
    if (place.expression != kNoNode) {
      rewrite.wrap(place.expression, open, close);
    } else if (!rewrite.insert_after(place.statement, {place.variable + " = " + open + place.variable + close})) {
      file.find(rule, place.statement, Severity::warning, std::string(message),
                fmt::format("wrap {} behind this statement by hand", place.variable));
      continue;
    }
    rewrite.commit();
  }
}

}  // namespace

const Rule kStrategyOptimizer = {
    .id = "optimizer",
    .tier = Tier::review,
    .when = When::always,
    .title = "optimizers of distributed training are wrapped once, outermost; --loss-scale wraps them too",
    .reason = "gradients are averaged over the ranks; wrapped twice they would be reduced twice",
    .calls = {},
    .at_file = optimizers,
    .examples =
        {
            {"import tensorflow as tf\no = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(.1), 4)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\no = "
             "npu_distributed_optimizer_wrapper(tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(.1), 4))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\nO = tf.train.AdamOptimizer\no = O(0.1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\nO = "
             "tf.train.AdamOptimizer\no = npu_distributed_optimizer_wrapper(O(0.1))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\no = tf.train.AdamOptimizer(0.1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import FixedLossScaleManager, NPULossScaleOptimizer\no "
             "= NPULossScaleOptimizer(tf.train.AdamOptimizer(0.1), "
             "loss_scale_manager=FixedLossScaleManager(loss_scale=128))\n",
             "tf=1 loss_scale=128"},
            {"import tensorflow as tf\no = tf.train.AdamOptimizer(0.1)\nif use_tpu:\n    o = "
             "tf.contrib.tpu.CrossShardOptimizer(o)\no.minimize(loss)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\no = "
             "tf.train.AdamOptimizer(0.1)\nif use_tpu:\n    o = tf.contrib.tpu.CrossShardOptimizer(o)\no = "
             "npu_distributed_optimizer_wrapper(o)\no.minimize(loss)\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\no = {'a': tf.train.AdamOptimizer, 'f': tf.train.FtrlOptimizer}[name](0.1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\no = "
             "npu_distributed_optimizer_wrapper({'a': tf.train.AdamOptimizer, 'f': "
             "tf.train.FtrlOptimizer}[name](0.1))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\nkinds = {'a': tf.train.AdamOptimizer}\ndef make(k):\n    return kinds[k](0.1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\nkinds = "
             "{'a': "
             "tf.train.AdamOptimizer}\ndef make(k):\n    return npu_distributed_optimizer_wrapper(kinds[k](0.1))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\ndef make():\n    return tf.keras.optimizers.SGD(0.1)\n",
             "import tensorflow as tf\nfrom npu_device.distribute import npu_distributed_keras_optimizer_wrapper\ndef "
             "make():\n    return npu_distributed_keras_optimizer_wrapper(tf.keras.optimizers.SGD(0.1))\n",
             "tf=2 distributed=tf_strategy"},
            {"import tensorflow as tf\no = tf.train.AdamOptimizer(0.1)\n", "", "tf=1"},
            {"import tensorflow as tf\nclass MyOptimizer:\n    pass\no = MyOptimizer(0.1)\n", "",
             "tf=1 distributed=tf_strategy"},
        },
};

}  // namespace cairn::migrate
