// Data parallelism by tf.distribute strategies: the strategies, hooks, callbacks and gradients.
#include <fmt/format.h>

#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

constexpr const char* kScopeWrapper = "npu.distribute.npu_broadcast_scope_wrapper";
constexpr std::string_view kTrain = "input_fn hooks steps max_steps saving_listeners";
constexpr std::string_view kTrainSpec = "input_fn max_steps hooks saving_listeners";
constexpr std::string_view kFit = "x y batch_size epochs verbose callbacks validation_split validation_data shuffle";
constexpr std::string_view kFitGenerator = "generator steps_per_epoch epochs verbose callbacks validation_data";

void strategy(Spot& spot) {
  Context& file = spot.file;
  if (file.syntax.kind(file.syntax.child(spot.call, Field::arguments)) != Kind::argument_list) return;
  Rewrite rewrite(spot);
  if (file.own.tf == 1) {
    rewrite.replace(spot.call, rewrite.use("npu_strategy") + ".NPUStrategy()");
  } else {  // the scope of TensorFlow's own strategy, which sees one device, gives all ranks the same first values
    const NodeId around = file.syntax.parent(file.syntax.parent(spot.call));
    if (file.syntax.kind(around) == Kind::call && file.calls(around, kScopeWrapper)) return;
    const std::string callee = file.text(file.syntax.child(spot.call, Field::function));
    rewrite.replace(spot.call,
                    fmt::format("{}({}())", rewrite.use("npu_device.distribute:npu_broadcast_scope_wrapper"), callee));
  }
  rewrite.commit();
}

void hooks(Spot& spot) {
  if (spot.file.own.tf != 1) return;
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
  rewrite.wrap(optimizer, rewrite.use(optimizer_wrapper(file)) + "(", ")").commit();
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
  if (file.own.tf != 1) return;  // optimizers of Keras reduce in apply_gradients
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
            {"import tensorflow as tf\ns = tf.distribute.MirroredStrategy([\"/gpu:0\", \"/gpu:1\"])\n",
             "import tensorflow as tf\nfrom npu_device.distribute import npu_broadcast_scope_wrapper\ns = "
             "npu_broadcast_scope_wrapper(tf.distribute.MirroredStrategy())\n",
             "tf=2 distributed=tf_strategy"},
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
    .arguments_alone = true,
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
            {"import tensorflow as tf\ndef train(model: tf.keras.Model):\n    model.compile(optimizer=\"adam\")\n",
             "import tensorflow as tf\nfrom npu_device.distribute import npu_distributed_keras_optimizer_wrapper\ndef "
             "train(model: tf.keras.Model):\n    "
             "model.compile(optimizer=npu_distributed_keras_optimizer_wrapper(\"adam\"))\n",
             "tf=2 distributed=tf_strategy"},
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
            {"import tensorflow as tf\ndef train(m: tf.keras.Model):\n    m.fit(x, y, callbacks=[a])\n    m.fit(x)\n",
             "import tensorflow as tf\nfrom npu_bridge.estimator.npu.npu_callbacks import "
             "NPUBroadcastGlobalVariablesCallback\ndef train(m: tf.keras.Model):\n    m.fit(x, y, callbacks=[a, "
             "NPUBroadcastGlobalVariablesCallback(0)])\n    m.fit(x, "
             "callbacks=[NPUBroadcastGlobalVariablesCallback(0)])\n",
             "tf=2 distributed=tf_strategy"},
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
