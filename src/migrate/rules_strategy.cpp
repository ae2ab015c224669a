// Data parallelism by tf.distribute strategies, and what wraps optimizers: each chain of optimizers once, outermost.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

constexpr std::string_view kTrain = "input_fn hooks steps max_steps saving_listeners";
constexpr std::string_view kTrainSpec = "input_fn max_steps hooks saving_listeners";
constexpr std::string_view kFit = "x y batch_size epochs verbose callbacks validation_split validation_data shuffle";
constexpr std::string_view kFitGenerator = "generator steps_per_epoch epochs verbose callbacks validation_data";

void strategy(Spot& spot) {
  Context& file = spot.file;
  if (file.syntax.kind(file.syntax.child(spot.call, Field::arguments)) != Kind::argument_list) return;
  Rewrite rewrite(spot);
  rewrite.replace(spot.call, rewrite.use("npu_strategy") + ".NPUStrategy()");
  rewrite.commit();
}

// The calls an expression may come from: itself, or through names, branches and the functions of this file.
void sources(Context& file, NodeId node, std::set<NodeId>& found, int depth = 0) {
  node = file.syntax.unwrap(node);
  if (depth > 12 || node == kNoNode) return;
  switch (file.syntax.kind(node)) {
    case Kind::call: {
      if (!found.insert(node).second) return;
      for (const Value& value : Values(file.resolver.values(file.module, file.syntax.child(node, Field::function))))
        if (value.is == Value::Is::function && value.module == &file.module)
          for (NodeId at = value.node; at < file.syntax[value.node].after; ++at)
            if (file.syntax.kind(at) == Kind::return_statement && file.syntax.first(at) != kNoNode)
              sources(file, file.syntax.first(at), found, depth + 1);
      break;
    }
    case Kind::identifier: {
      if (!found.insert(node).second) return;
      uint32_t scope = kNoScope;
      for (uint32_t index : file.module.lookup(file.syntax.text(node), node, scope)) {
        const Binding& binding = file.module.bindings()[index];
        if (binding.how == Bound::assigned && binding.value != kNoNode && binding.value != node)
          sources(file, binding.value, found, depth + 1);
      }
      break;
    }
    case Kind::conditional_expression:
    case Kind::boolean_operator:
      for (NodeId part : file.syntax.children(node)) sources(file, part, found, depth + 1);
      break;
    case Kind::attribute: {
      // A member: what this function has assigned to it before, else what the others assign.
      if (file.syntax.text(file.syntax.child(node, Field::object)) != "self" || !found.insert(node).second) return;
      const NodeId here = file.syntax.ancestor(node, Kind::function_definition);
      std::vector<NodeId> before, elsewhere;
      for (const SelfAssignment& assignment : file.module.self_assignments()) {
        if (assignment.name != file.syntax.text(file.syntax.child(node, Field::attribute)) ||
            assignment.value == kNoNode)
          continue;
        if (file.syntax.ancestor(assignment.value, Kind::function_definition) != here)
          elsewhere.push_back(assignment.value);
        else if (file.syntax[assignment.value].after <= node)
          before.push_back(assignment.value);
      }
      for (NodeId value : before.empty() ? elsewhere : before) sources(file, value, found, depth + 1);
      break;
    }
    default: break;
  }
}

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

// Constructions of optimizers, and those among them that another optimizer or a wrapper takes in.
struct Optimizers {
  std::set<NodeId> constructed, inner;
  std::map<NodeId, std::vector<NodeId>> by_body;  // assignments, by the function or module they stand in
};

Optimizers find_optimizers(Context& file) {
  const Syntax& syntax = file.syntax;
  Optimizers found;
  for (NodeId call = 0; call < syntax.size(); ++call) {
    if (syntax.kind(call) == Kind::assignment) found.by_body[body_around(syntax, call)].push_back(call);
    if (syntax.kind(call) != Kind::call) continue;
    NodeId callee = syntax.child(call, Field::function);
    if (callee == kNoNode || syntax.text(callee).ends_with("__init__")) continue;
    bool optimizer = false, wrapper = false;
    for (const ApiName& target : file.targets(call)) {
      optimizer = optimizer || (is_optimizer_class(target.name) && target.name.find(':') == std::string::npos);
      wrapper = wrapper || wraps_optimizer(target.name);
    }
    if (!optimizer && !wrapper) continue;
    if (optimizer && !wrapper) found.constructed.insert(call);
    NodeId list = syntax.child(call, Field::arguments);
    if (syntax.kind(list) != Kind::argument_list) continue;
    for (NodeId argument : syntax.children(list)) {
      if (syntax.kind(argument) == Kind::keyword_argument) argument = syntax.child(argument, Field::value);
      if (argument != kNoNode) sources(file, argument, found.inner);
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
    std::set<NodeId> made;
    sources(file, value, made);
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
  Optimizers optimizers = find_optimizers(file);
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
  bool distributed = file.own.tf == 1 && file.facts.distributed == Distribution::tf_strategy;
  bool scaled = !file.options.loss_scale.empty();
  if (!distributed && !scaled) return;
  if (file.module.text().find("ptimizer") == std::string::npos) return;
  const std::string_view message =
      distributed ? "the optimizer averages gradients over the ranks" : "the optimizer scales its loss";
  for (const Place& place : places_to_wrap(file)) {
    bool keras = false;
    if (file.syntax.kind(place.expression) == Kind::call)
      for (const ApiName& target : file.targets(place.expression))
        keras = keras || is_subclass(target.name, "tf.keras.optimizers.Optimizer");
    if (keras && scaled && !distributed) continue;
    Rewrite rewrite(file, rule, place.expression == kNoNode ? place.statement : place.expression, std::string(message));
    std::string open =
        rewrite.use(scaled && !keras ? "NPULossScaleOptimizer" : "npu_distributed_optimizer_wrapper") + "(";
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

void hooks(Spot& spot) {
  append_to_list(spot,
                 spot.file.bind(spot.call, spot.name.name == "tf.estimator.TrainSpec" ? kTrainSpec
                                           : spot.name.name == "tf.train.MonitoredTrainingSession"
                                               ? "master is_chief checkpoint_dir scaffold hooks"
                                               : kTrain),
                 "hooks", false);
}

void compile(Spot& spot) {
  Context& file = spot.file;
  NodeId optimizer = file.bind(spot.call, "optimizer loss metrics").value("optimizer");
  std::string name;
  // An instance was wrapped where it was made; only a name stands for an optimizer that Keras makes itself.
  if (optimizer == kNoNode || !string_value(file.syntax, optimizer, name)) return;
  Rewrite rewrite(spot);
  rewrite.wrap(optimizer, rewrite.use("npu_distributed_optimizer_wrapper") + "(", ")").commit();
}

void fit(Spot& spot) {
  append_to_list(spot, spot.file.bind(spot.call, spot.name.name.ends_with(":fit") ? kFit : kFitGenerator), "callbacks",
                 true);
}

// Follows values through the assignments of a function, of a class for members: from gradients to apply_gradients.
class Flow {
 public:
  explicit Flow(Context& file) : file_(file), syntax_(file.syntax) {}

  /// Whether the value of this assignment reaches the arguments of apply_gradients.
  bool reaches_apply(NodeId assignment) {
    NodeId scope = syntax_.ancestor(assignment, Kind::function_definition);
    taint(syntax_.child(assignment, Field::left));
    if (scope != kNoNode && syntax_.kind(syntax_.child(assignment, Field::left)) == Kind::attribute)
      if (NodeId owner = syntax_.ancestor(scope, Kind::class_definition); owner != kNoNode) scope = owner;
    const NodeId begin = scope == kNoNode ? 0 : scope, end = scope == kNoNode ? syntax_.size() : syntax_[scope].after;
    for (bool grew = true; grew;) {
      grew = false;
      for (NodeId at = begin; at < end; ++at) {
        Kind kind = syntax_.kind(at);
        if ((kind == Kind::assignment || kind == Kind::augmented_assignment || kind == Kind::for_statement) &&
            carries(syntax_.child(at, Field::right)))
          grew = taint(syntax_.child(at, Field::left)) || grew;
        if (kind != Kind::call) continue;
        NodeId callee = syntax_.child(at, Field::function);
        std::string_view name = syntax_.text(callee);
        if (name.ends_with(".apply_gradients") && carries(syntax_.child(at, Field::arguments))) return true;
        if ((name.ends_with(".append") || name.ends_with(".extend")) && carries(syntax_.child(at, Field::arguments)))
          grew = taint(syntax_.child(callee, Field::object)) || grew;
      }
    }
    return false;
  }

  /// A call that takes gradients of its argument: what goes in is a loss, and what comes out are other values.
  bool takes_gradients(NodeId call) {
    NodeId callee = syntax_.child(call, Field::function);
    if (syntax_.kind(callee) == Kind::attribute) {
      std::string_view name = syntax_.text(syntax_.child(callee, Field::attribute));
      if (name == "compute_gradients" || name == "minimize" || name == "gradients" || name == "gradient" ||
          name == "hessians" || name == "get_gradients")
        return true;
    }
    for (const Value& value : Values(file_.resolver.values(file_.module, callee))) {
      if (value.is != Value::Is::function || value.module != &file_.module) continue;
      for (std::string_view name : {"compute_gradients", "gradients", "minimize"})
        for (NodeId inner : file_.module.calls_of(name))
          if (inner > value.node && inner < syntax_[value.node].after) return true;
    }
    return false;
  }

 private:
  // Names and members as they are written: "g", "self.g".
  bool carries(NodeId from) {
    for (NodeId at = from; from != kNoNode && at < syntax_[from].after;) {
      Kind kind = syntax_.kind(at);
      if (kind == Kind::call && takes_gradients(at)) {
        at = syntax_[at].after;
        continue;
      }
      bool name = kind == Kind::identifier && syntax_[at].field != Field::attribute;
      if ((name || kind == Kind::attribute) && tainted_.contains(syntax_.text(at))) return true;
      ++at;
    }
    return false;
  }

  bool taint(NodeId target) {
    if (target == kNoNode) return false;
    bool grew = false;
    switch (syntax_.kind(target)) {
      case Kind::identifier:
      case Kind::attribute: return tainted_.insert(syntax_.text(target)).second;
      case Kind::subscript: return taint(syntax_.child(target, Field::value));
      default:
        for (NodeId part : syntax_.children(target)) grew = taint(part) || grew;
        return grew;
    }
  }

  Context& file_;
  const Syntax& syntax_;
  std::set<std::string_view> tainted_;
};

void gradients(Spot& spot) {
  Context& file = spot.file;
  const Syntax& syntax = file.syntax;
  NodeId outer = syntax.parent(syntax.parent(spot.call));
  if (syntax.kind(outer) == Kind::call && file.calls(outer, "npu.npu_allreduce")) return;
  for (NodeId up = syntax.parent(spot.call); up != kNoNode; up = syntax.parent(up)) {
    Kind kind = syntax.kind(up);
    if (kind == Kind::block || kind == Kind::module) return;
    bool reaches = kind == Kind::call && syntax.text(syntax.child(up, Field::function)).ends_with(".apply_gradients");
    if (kind == Kind::call && !reaches && Flow(file).takes_gradients(up)) return;  // part of a loss
    if (kind == Kind::assignment) reaches = Flow(file).reaches_apply(up);
    if (!reaches) continue;
    Rewrite rewrite(spot);
    rewrite.wrap(spot.call, rewrite.use("npu_allreduce") + "(", ")").commit();
    return;
  }
}

}  // namespace

const Rule kStrategy = {
    .id = "strategy",
    .tier = Tier::review,
    .when = When::strategy,
    .title = "mirrored strategies become NPUStrategy",
    .reason = "one process a rank takes the place of one process with many devices; arguments that choose GPUs go",
    .calls = {"tf.distribute.MirroredStrategy", "tf.distribute.MultiWorkerMirroredStrategy",
              "official.utils.misc.distribution_utils.get_distribution_strategy"},
    .at_call = strategy,
    .examples =
        {
            {"import tensorflow as tf\ns = tf.contrib.distribute.MirroredStrategy(num_gpus=2)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_strategy\ns = npu_strategy.NPUStrategy()\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n", "", "tf=1 distributed=none"},
        },
};

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
            {"import tensorflow as tf\no = tf.train.AdamOptimizer(0.1)\n", "", "tf=1"},
            {"import tensorflow as tf\nclass MyOptimizer:\n    pass\no = MyOptimizer(0.1)\n", "",
             "tf=1 distributed=tf_strategy"},
        },
};

const Rule kStrategyHooks = {
    .id = "hooks",
    .tier = Tier::review,
    .when = When::strategy,
    .title = "training gets the hook that broadcasts the first values",
    .reason = "all ranks start from the same values; a tuple of hooks is kept, and the caller's list is not changed",
    .calls = {"tf.estimator.Estimator:train", "tf.estimator.TrainSpec", "tf.train.MonitoredTrainingSession"},
    .at_call = hooks,
    .examples =
        {
            {"import tensorflow as tf\ne = tf.estimator.Estimator(f, config=npu)\ne.train(i, hooks=(a, b))\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_hooks_append, npu_run_config_init\ne = "
             "tf.estimator.Estimator(f, config=npu_run_config_init(run_config=npu))\ne.train(i, "
             "hooks=npu_hooks_append(hooks_list=list((a, b))))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\ns = tf.estimator.TrainSpec(i, max_steps=3)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_hooks_append\ns = tf.estimator.TrainSpec(i, "
             "max_steps=3, hooks=npu_hooks_append())\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\nclf.train(i)\n", "", "tf=1 distributed=tf_strategy"},
        },
};

const Rule kStrategyCompile = {
    .id = "keras-compile",
    .tier = Tier::review,
    .when = When::strategy,
    .title = "an optimizer given to compile() by name is wrapped",
    .reason = "Keras makes it inside, so it can only be wrapped here; instances are wrapped where they are made",
    .calls = {"tf.keras.Model:compile"},
    .at_call = compile,
    .examples =
        {
            {"import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.compile(\"adam\", \"mse\")\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\nmodel = "
             "tf.keras.Sequential()\nmodel.compile(npu_distributed_optimizer_wrapper(\"adam\"), \"mse\")\n",
             "tf=1 distributed=tf_strategy"},
            {"import regex\nimport tensorflow\nr = regex.compile(\"x\", 2)\n", "", "tf=1 distributed=tf_strategy"},
        },
};

const Rule kStrategyFit = {
    .id = "keras-fit",
    .tier = Tier::review,
    .when = When::strategy,
    .title = "fit() gets the callback that broadcasts the first values",
    .reason = "all ranks start from the same values",
    .calls = {"tf.keras.Model:fit", "tf.keras.Model:fit_generator"},
    .at_call = fit,
    .examples =
        {
            {"import tensorflow as tf\ndef train(m: tf.keras.Model):\n    m.fit(x, y, callbacks=cbs)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_callbacks_append\ndef train(m: "
             "tf.keras.Model):\n    m.fit(x, y, callbacks=npu_callbacks_append(callbacks_list=list(cbs or ())))\n",
             "tf=1 distributed=tf_strategy"},
            {"from sklearn.svm import SVC\nimport tensorflow\nclf = SVC()\nclf.fit(x)\n", "",
             "tf=1 distributed=tf_strategy"},
        },
};

const Rule kStrategyGradients = {
    .id = "gradients",
    .tier = Tier::review,
    .when = When::strategy,
    .title = "gradients that reach apply_gradients are averaged over the ranks",
    .reason =
        "optimizers reduce in compute_gradients, which such code does not call; gradients that are part of a loss stay",
    .calls = {"tf.gradients"},
    .at_call = gradients,
    .examples =
        {
            {"import tensorflow as tf\ng = tf.gradients(loss, vs)\ng, _ = tf.clip_by_global_norm(g, 1.0)\nop = "
             "opt.apply_gradients(zip(g, vs))\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_allreduce\ng = "
             "npu_allreduce(tf.gradients(loss, vs))\ng, _ = tf.clip_by_global_norm(g, 1.0)\nop = "
             "opt.apply_gradients(zip(g, vs))\n",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\ng = tf.gradients(d_loss, [x])\nloss += tf.reduce_mean(g)\n", "",
             "tf=1 distributed=tf_strategy"},
            {"import tensorflow as tf\ng = tf.gradients(d_loss, [x])\nloss = d_loss + tf.reduce_mean(g)\n"
             "opt.apply_gradients(opt.compute_gradients(loss))\n",
             "", "tf=1 distributed=tf_strategy"},
        },
};

}  // namespace cairn::migrate
