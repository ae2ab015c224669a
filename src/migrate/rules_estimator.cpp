// Estimators and their RunConfig.
#include <fmt/format.h>

#include <array>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

constexpr std::string_view kEstimator = "model_fn model_dir config params warm_start_from";
constexpr std::string_view kTpuEstimatorParameters =
    "model_fn model_dir config params use_tpu train_batch_size eval_batch_size predict_batch_size batch_axis "
    "eval_on_tpu "
    "export_to_tpu export_to_cpu warm_start_from";
constexpr std::string_view kModelToEstimator =
    "keras_model keras_model_path custom_objects model_dir config checkpoint_format metric_names_map "
    "export_outputs use_v2_estimator";
constexpr std::string_view kRunConfigParameters =
    "model_dir tf_random_seed save_summary_steps save_checkpoints_steps save_checkpoints_secs session_config "
    "keep_checkpoint_max "
    "keep_checkpoint_every_n_hours log_step_count_steps train_distribute device_fn protocol eval_distribute "
    "experimental_distribute "
    "experimental_max_worker_delay_secs session_creation_timeout_secs";

std::string_view parameters_of(std::string_view estimator) {
  if (estimator == "tf.estimator.tpu.TPUEstimator") return kTpuEstimatorParameters;
  if (estimator == "tf.keras.estimator.model_to_estimator") return kModelToEstimator;
  return estimator == "tf.estimator.Estimator" ? kEstimator : "";
}

void estimator_config(Spot& spot) {
  if (spot.file.options.npu_estimator && spot.name.name == "tf.estimator.Estimator") return;  // the rule npu-estimator
  std::string_view parameters = parameters_of(spot.name.name);
  Arguments bound = spot.file.bind(spot.call, parameters.empty() ? "config" : parameters);
  if (parameters.empty()) {
    // Canned estimators differ in their lists; only the keyword tells the config.
    bool positional = bound.has("config") && !bound.given["config"].keyword;
    size_t in_order = (positional ? 1 : 0) + bound.extra.size();
    for (NodeId argument : bound.extra) in_order -= spot.file.syntax.kind(argument) == Kind::keyword_argument;
    if (positional) bound.given.erase("config");
    if (in_order > 3) {
      spot.file.find(spot.rule, spot.call, Severity::warning,
                     fmt::format("{} has {} positional arguments", spot.name.name, in_order),
                     "hand its config through npu_run_config_init by hand");
      return;
    }
  }
  wrap_argument(spot, bound, "config", kWrapRunConfig, true);
}

void run_config_distribution(Spot& spot) {
  Context& file = spot.file;
  Arguments bound = file.bind(spot.call, kRunConfigParameters);
  std::vector<NodeId> removed;
  std::string names;
  for (std::string_view name : {"train_distribute", "eval_distribute", "experimental_distribute"}) {
    NodeId value = bound.value(name);
    if (value == kNoNode || file.syntax.kind(value) == Kind::none) continue;
    if (!bound.given[name].keyword) {
      file.find(spot.rule, spot.call, Severity::warning, fmt::format("{} is given by position", name),
                "take it out by hand");
      continue;
    }
    removed.push_back(bound.given[name].argument);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (!removed.empty())
    Rewrite(spot, fmt::format("{} taken out of the RunConfig: {}", names,
                              file.own.distributed == Distribution::tf_strategy
                                  ? "the wrapped optimizer distributes"
                                  : "nothing takes its place here; --distributed tf_strategy wraps the optimizers"))
        .remove_arguments(spot.call, removed)
        .commit();
}

void run_config_summaries(Spot& spot) {
  Arguments bound = spot.file.bind(spot.call, kRunConfigParameters);
  if (bound.has("save_summary_steps") || bound.open() || !bound.plain) return;
  Rewrite(spot).add_argument(spot.call, "save_summary_steps=0").commit();
}

void tpu_estimator(Spot& spot) {
  Context& file = spot.file;
  Arguments bound = file.bind(spot.call, kTpuEstimatorParameters);
  if (!bound.plain) return;
  Rewrite rewrite(spot);
  bool any = false;
  std::string added;
  for (std::string_view name : {"use_tpu", "eval_on_tpu", "export_to_tpu"}) {
    NodeId value = bound.value(name);
    if (value == kNoNode && !bound.open()) added += (added.empty() ? "" : ", ") + std::string(name) + "=False";
    if (value != kNoNode && file.syntax.kind(value) != Kind::false_) {
      rewrite.replace(value, "False");
      any = true;
    }
  }
  if (!added.empty()) rewrite.add_argument(spot.call, added);
  if (any || !added.empty()) rewrite.commit();
}

void npu_estimator(Spot& spot) {
  Context& file = spot.file;
  if (!file.options.npu_estimator) return;
  Arguments bound = file.bind(spot.call, kEstimator);
  NodeId callee = file.syntax.child(spot.call, Field::function);
  if (bound.open() || !bound.plain || file.syntax.kind(callee) == Kind::call) return;
  Rewrite rewrite(spot);
  rewrite.replace(callee, rewrite.use("NPUEstimator"));
  if (!bound.has("config")) rewrite.add_argument(spot.call, "config=" + rewrite.use("NPURunConfig") + "()");
  rewrite.commit();
}

void npu_run_config(Spot& spot) {
  Context& file = spot.file;
  if (!file.options.npu_estimator) return;
  Arguments bound = file.bind(spot.call, kRunConfigParameters);
  NodeId callee = file.syntax.child(spot.call, Field::function);
  if (!bound.stars.empty() || !bound.plain || !bound.extra.empty()) {
    file.find(spot.rule, spot.call, Severity::warning, "this RunConfig cannot become an NPURunConfig by itself",
              "rewrite it by hand");
    return;
  }
  Rewrite rewrite(spot);
  rewrite.replace(callee, rewrite.use("NPURunConfig"));
  std::string added;
  std::vector<NodeId> removed;
  for (const auto& [name, given] : bound.given) {
    // NPURunConfig does not take these; the three distributions go by the rule run-config-distribution.
    if (name == "device_fn" || name == "protocol")
      removed.push_back(given.argument);
    else if (!given.keyword)
      rewrite.insert(file.syntax[given.argument].begin, std::string(name) + "=");
  }
  rewrite.remove_arguments(spot.call, removed);
  if (!file.options.precision_mode.empty())
    added += fmt::format(", precision_mode=\"{}\"", file.options.precision_mode);
  if (file.options.iterations_per_loop > 0)
    added += fmt::format(", iterations_per_loop={}", file.options.iterations_per_loop);
  if (!added.empty()) rewrite.add_argument(spot.call, added.substr(2));
  rewrite.commit();
}

}  // namespace

const Rule kEstimatorConfig = {
    .id = "estimator-config",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "an Estimator's config goes through npu_run_config_init",
    .reason = "its sessions then run on the device; the RunConfig keeps all it says",
    .calls = {"tf.estimator.Estimator", "tf.estimator.tpu.TPUEstimator", "tf.estimator.Baseline*",
              "tf.estimator.BoostedTrees*", "tf.estimator.DNN*", "tf.estimator.Linear*",
              "tf.keras.estimator.model_to_estimator"},
    .at_call = estimator_config,
    .examples =
        {
            {"import tensorflow as tf\ne = tf.estimator.Estimator(f, d, cfg)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_run_config_init\ne = "
             "tf.estimator.Estimator(f, d, npu_run_config_init(run_config=cfg))\n"},
            {"import tensorflow as tf\nkw = dict(model_fn=f, config=c)\ne = tf.estimator.Estimator(**kw)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_run_config_init\nkw = dict(model_fn=f, "
             "config=npu_run_config_init(run_config=c))\ne = tf.estimator.Estimator(**kw)\n"},
            {"import tensorflow as tf\nclass E(tf.estimator.Estimator):\n    pass\ne = E(f, config=c)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_run_config_init\nclass "
             "E(tf.estimator.Estimator):\n    pass\ne = E(f, config=npu_run_config_init(run_config=c))\n"},
            {"import tensorflow as tf\nclass E(tf.estimator.Estimator):\n    def __init__(self, c):\n        super(E, "
             "self).__init__(model_fn=f, config=c)\ne = E(c)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_run_config_init\nclass "
             "E(tf.estimator.Estimator):\n    def __init__(self, c):\n        super(E, self).__init__(model_fn=f, "
             "config=npu_run_config_init(run_config=c))\ne = E(c)\n"},
            {"import tensorflow as tf\ndef make(*args):\n    return tf.estimator.Estimator(*args)\n", ""},
            {"from sklearn.estimator import Estimator\nimport tensorflow as tf\ne = Estimator(config=c)\n", ""},
        },
    .arguments_alone = true,
};

const Rule kRunConfigDistribution = {
    .id = "run-config-distribution",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "distribution strategies are taken out of the RunConfig",
    .reason =
        "a strategy of TensorFlow would place replicas by itself; here ranks are processes and the optimizer joins "
        "them",
    .calls = {"tf.estimator.RunConfig", "tf.estimator.tpu.RunConfig"},
    .at_call = run_config_distribution,
    .examples =
        {
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(model_dir=d, train_distribute=s)\n",
             "import tensorflow as tf\nc = tf.estimator.RunConfig(model_dir=d)\n"},
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(\n    train_distribute=s,  # two GPUs\n    "
             "model_dir=d)\n",
             "import tensorflow as tf\nc = tf.estimator.RunConfig(\n      # two GPUs\n    model_dir=d)\n"},
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(train_distribute=s, eval_distribute=s)\n",
             "import tensorflow as tf\nc = tf.estimator.RunConfig()\n"},
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(model_dir=d, train_distribute=None)\n", ""},
        },
    .arguments_alone = true,
};

const Rule kRunConfigSummaries = {
    .id = "run-config-summaries",
    .tier = Tier::review,
    .when = When::platform,
    .title = "RunConfig gets save_summary_steps=0",
    .reason = "on the Ascend hardware summaries interrupt a graph that runs there as a whole; here they do not",
    .calls = {"tf.estimator.RunConfig", "tf.estimator.tpu.RunConfig"},
    .at_call = run_config_summaries,
    .examples =
        {
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(d)\n",
             "import tensorflow as tf\nc = tf.estimator.RunConfig(d, save_summary_steps=0)\n", "platform"},
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(d, None, 100)\n", "", "platform"},
            {"import tensorflow as tf\nc = tf.estimator.RunConfig(d)\n", ""},
        },
};

const Rule kTpuEstimator = {
    .id = "tpu-estimator",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "a TPUEstimator runs as an Estimator: use_tpu, eval_on_tpu, export_to_tpu are False",
    .reason = "there is no TPU here",
    .calls = {"tf.estimator.tpu.TPUEstimator"},
    .at_call = tpu_estimator,
    .examples =
        {
            {"import tensorflow as tf\ne = tf.contrib.tpu.TPUEstimator(use_tpu=FLAGS.use_tpu, model_fn=f, config=c)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_run_config_init\n"
             "e = tf.contrib.tpu.TPUEstimator(use_tpu=False, model_fn=f, config=npu_run_config_init(run_config=c), "
             "eval_on_tpu=False, export_to_tpu=False)\n"},
            {"import tensorflow as tf\nclass TPUEstimator:\n    pass\ne = TPUEstimator(use_tpu=True)\n", ""},
        },
};

const Rule kNpuEstimator = {
    .id = "npu-estimator",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "tf.estimator.Estimator becomes NPUEstimator",
    .reason = "asked for by --npu-estimator: the way of the platform's porting guide",
    .calls = {"tf.estimator.Estimator"},
    .at_call = npu_estimator,
    .examples =
        {
            {"import tensorflow as tf\ne = tf.estimator.Estimator(model_fn=f, config=tf.estimator.RunConfig(d))\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import NPUEstimator, NPURunConfig\n"
             "e = NPUEstimator(model_fn=f, config=NPURunConfig(model_dir=d, precision_mode=\"allow_mix_precision\", "
             "iterations_per_loop=10))\n",
             "npu_estimator precision_mode=allow_mix_precision iterations_per_loop=10"},
            {"import tensorflow as tf\nclass Estimator:\n    pass\ne = Estimator(model_fn=f)\n", "", "npu_estimator"},
        },
};

const Rule kNpuRunConfig = {
    .id = "npu-run-config",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "tf.estimator.RunConfig becomes NPURunConfig",
    .reason = "asked for by --npu-estimator; positional arguments get their names, because the order differs",
    .calls = {"tf.estimator.RunConfig"},
    .at_call = npu_run_config,
    .examples =
        {{"import tensorflow as tf\nc = tf.estimator.RunConfig(d, protocol='grpc')\n",
          "import tensorflow as tf\nfrom npu_bridge.npu_init import NPURunConfig\nc = NPURunConfig(model_dir=d)\n",
          "npu_estimator"},
         {"import tensorflow as tf\nc = tf.estimator.RunConfig(d)\n", ""}},
};

}  // namespace cairn::migrate
