// Data parallelism by tf.distribute strategies, and what wraps optimizers: each chain of optimizers once, outermost.
#include <fmt/format.h>

#include <algorithm>
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
    case Kind::attribute:
      for (const SelfAssignment& assignment : file.module.self_assignments())
        if (assignment.name == file.syntax.text(file.syntax.child(node, Field::attribute)) &&
            assignment.value != kNoNode && file.syntax.text(file.syntax.child(node, Field::object)) == "self")
          sources(file, assignment.value, found, depth + 1);
      break;
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

// Constructions of optimizers that no other optimizer or wrapper takes in.
std::vector<NodeId> outermost_optimizers(Context& file) {
  std::set<NodeId> constructed, inner;
  for (NodeId call = 0; call < file.syntax.size(); ++call) {
    if (file.syntax.kind(call) != Kind::call) continue;
    NodeId callee = file.syntax.child(call, Field::function);
    if (callee == kNoNode || file.syntax.text(callee).ends_with("__init__")) continue;
    bool optimizer = false, wrapper = false;
    for (const ApiName& target : file.targets(call)) {
      optimizer = optimizer || (is_optimizer_class(target.name) && target.name.find(':') == std::string::npos);
      wrapper = wrapper || wraps_optimizer(target.name);
    }
    if (!optimizer && !wrapper) continue;
    if (optimizer && !wrapper) constructed.insert(call);
    NodeId list = file.syntax.child(call, Field::arguments);
    if (file.syntax.kind(list) != Kind::argument_list) continue;
    for (NodeId argument : file.syntax.children(list)) {
      if (file.syntax.kind(argument) == Kind::keyword_argument) argument = file.syntax.child(argument, Field::value);
      if (argument != kNoNode) sources(file, argument, inner);
    }
  }
  std::vector<NodeId> found;
  for (NodeId call : constructed)
    if (!inner.contains(call)) found.push_back(call);
  return found;
}

std::string loss_scale_manager(Context& file, Rewrite& rewrite) {
  const std::string& scale = file.options.loss_scale;
  if (scale == "dynamic")
    return rewrite.use("ExponentialUpdateLossScaleManager") +
           "(init_loss_scale=2 ** 32, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2, decr_ratio=0.5)";
  return rewrite.use("FixedLossScaleManager") + "(loss_scale=" + scale + ")";
}

void optimizers(Context& file, const Rule& rule) {
  bool distributed = file.facts.tf == 1 && file.facts.distributed == Distribution::tf_strategy;
  bool scaled = !file.options.loss_scale.empty();
  if (!distributed && !scaled) return;
  if (file.module.text().find("ptimizer") == std::string::npos) return;
  for (NodeId call : outermost_optimizers(file)) {
    bool keras = false;
    for (const ApiName& target : file.targets(call))
      keras = keras || is_subclass(target.name, "tf.keras.optimizers.Optimizer");
    if (keras && scaled && !distributed) continue;
    Rewrite rewrite(file, rule, call,
                    distributed ? "the optimizer averages gradients over the ranks" : "the optimizer scales its loss");
    if (scaled && !keras)
      rewrite.wrap(call, rewrite.use("NPULossScaleOptimizer") + "(",
                   fmt::format(", loss_scale_manager={}{})", loss_scale_manager(file, rewrite),
                               distributed ? ", is_distributed=True" : ""));
    else
      rewrite.wrap(call, rewrite.use("npu_distributed_optimizer_wrapper") + "(", ")");
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

// Whether the value of an assignment reaches apply_gradients through the assignments of its function.
bool reaches_apply(Context& file, NodeId assignment) {
  const Syntax& syntax = file.syntax;
  NodeId scope = syntax.ancestor(assignment, Kind::function_definition);
  NodeId begin = scope == kNoNode ? 0 : scope, end = scope == kNoNode ? syntax.size() : syntax[scope].after;
  std::set<std::string_view> tainted;
  auto mentions = [&](NodeId from) {
    for (NodeId at = from; from != kNoNode && at < syntax[from].after; ++at)
      if (syntax.kind(at) == Kind::identifier && syntax[at].field != Field::attribute &&
          tainted.contains(syntax.text(at)))
        return true;
    return false;
  };
  auto taint = [&](NodeId target) {
    bool grew = false;
    for (NodeId at = target; at < syntax[target].after; ++at)
      if (syntax.kind(at) == Kind::identifier && syntax[at].field != Field::attribute)
        grew = tainted.insert(syntax.text(at)).second || grew;
    return grew;
  };
  taint(syntax.child(assignment, Field::left));
  for (bool grew = true; grew;) {
    grew = false;
    for (NodeId at = std::max(begin, assignment); at < end; ++at) {
      Kind kind = syntax.kind(at);
      if (kind == Kind::assignment && mentions(syntax.child(at, Field::right)))
        grew = taint(syntax.child(at, Field::left)) || grew;
      if (kind == Kind::for_statement && mentions(syntax.child(at, Field::right)))
        grew = taint(syntax.child(at, Field::left)) || grew;
      if (kind != Kind::call) continue;
      NodeId callee = syntax.child(at, Field::function);
      if (callee == kNoNode) continue;
      std::string_view name = syntax.text(callee);
      if (name.ends_with(".apply_gradients") && mentions(syntax.child(at, Field::arguments))) return true;
      if (name.ends_with(".append") && mentions(syntax.child(at, Field::arguments)))
        grew = taint(syntax.child(callee, Field::object)) || grew;
    }
  }
  return false;
}

void gradients(Spot& spot) {
  Context& file = spot.file;
  NodeId up = file.syntax.parent(spot.call);
  while (up != kNoNode && file.syntax.kind(up) != Kind::assignment && file.syntax.kind(up) != Kind::call &&
         file.syntax.parent(up) != 0)
    up = file.syntax.parent(up);
  NodeId outer = file.syntax.parent(file.syntax.parent(spot.call));
  if (file.syntax.kind(outer) == Kind::call && file.calls(outer, "npu.npu_allreduce")) return;
  bool reaches = false;
  for (; up != kNoNode && !reaches; up = file.syntax.parent(up)) {
    if (file.syntax.kind(up) == Kind::assignment) reaches = reaches_apply(file, up);
    if (file.syntax.kind(up) == Kind::call &&
        file.syntax.text(file.syntax.child(up, Field::function)).ends_with(".apply_gradients"))
      reaches = true;
  }
  if (!reaches) return;
  Rewrite rewrite(spot);
  rewrite.wrap(spot.call, rewrite.use("npu_allreduce") + "(", ")").commit();
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
            {"import tensorflow as tf\nm = tf.keras.Sequential()\nm.fit(x, y, callbacks=cbs)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_callbacks_append\nm = "
             "tf.keras.Sequential()\nm.fit(x, y, callbacks=npu_callbacks_append(callbacks_list=list(cbs or ())))\n",
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
        },
};

}  // namespace cairn::migrate
