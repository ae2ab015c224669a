// Scripts of the TensorFlow 2 interface: the device becomes the default one by npu_device.
#include <fmt/format.h>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

void open_device(Context& file, const Rule& rule) {
  if (!file.own.entry || !file.own.computes || file.module.mentions("npu_device")) return;
  const Syntax& syntax = file.syntax;
  NodeId after = kNoNode;
  for (NodeId statement : syntax.children(0)) {
    Kind kind = syntax.kind(statement);
    bool import =
        kind == Kind::import_statement || kind == Kind::import_from_statement || kind == Kind::future_import_statement;
    if (import)
      after = statement;
    else if (after != kNoNode && kind != Kind::try_statement && kind != Kind::if_statement)
      break;
  }
  if (after == kNoNode) return;
  std::string name = "npu";
  for (const Scope& scope : file.module.scopes())
    if (scope.names.contains(name)) name = "npu_device";
  Rewrite rewrite(file, rule, after);
  std::string import = name == "npu" ? "import npu_device as npu" : "import npu_device";
  if (rewrite.insert_after(after, {import, name + ".open().as_default()"})) rewrite.commit();
}

void loss_scale(Spot& spot) {
  Rewrite rewrite(spot);
  rewrite.replace(
      spot.file.syntax.child(spot.call, Field::function),
      rewrite.use(spot.name.name.find(".experimental.") == std::string::npos
                      ? "npu_device.train.optimizer.npu_loss_scale_optimizer:NpuLossScaleOptimizer"
                      : "npu_device.train.optimizer.npu_loss_scale_optimizer:NpuExperimentalLossScaleOptimizer"));
  rewrite.commit();
}

void strategy_note(Spot& spot) {
  spot.file.find(spot.rule, spot.call, Severity::warning,
                 fmt::format("{} distributes a script of TensorFlow 2", spot.name.name),
                 "run one process a rank and wrap the Keras optimizer: "
                 "npu.distribute.npu_distributed_keras_optimizer_wrapper(optimizer)");
}

}  // namespace

const Rule kNpuDevice = {
    .id = "npu-device",
    .tier = Tier::safe,
    .when = When::tf2,
    .title = "the main script opens the device and makes it the default",
    .reason = "eager operators and tf.function then run on it",
    .calls = {},
    .at_file = open_device,
    .examples =
        {
            {"\"\"\"Trains.\"\"\"\nimport os\nimport tensorflow as tf\n\nif __name__ == \"__main__\":\n    "
             "print(tf.eye(2))\n",
             "\"\"\"Trains.\"\"\"\nimport os\nimport tensorflow as tf\nimport npu_device as "
             "npu\nnpu.open().as_default()\n\nif __name__ == \"__main__\":\n    print(tf.eye(2))\n",
             "tf=2"},
            {"import tensorflow as tf\nif __name__ == \"__main__\":\n    tf.io.TFRecordWriter(\"f\").close()\n", "",
             "tf=2"},
            {"import tensorflow as tf\ndef helper():\n    pass\n", "", "tf=2"},
        },
};

const Rule kNpuDeviceLossScale = {
    .id = "tf2-loss-scale",
    .tier = Tier::review,
    .when = When::tf2,
    .title = "Keras' LossScaleOptimizer becomes NpuLossScaleOptimizer",
    .reason = "it knows the device's way of seeing an overflow",
    .calls = {"tf.keras.mixed_precision.LossScaleOptimizer",
              "tf.keras.mixed_precision.experimental.LossScaleOptimizer"},
    .at_call = loss_scale,
    .examples =
        {
            {"import tensorflow as tf\no = tf.keras.mixed_precision.LossScaleOptimizer(opt)\n",
             "import tensorflow as tf\nfrom npu_device.train.optimizer.npu_loss_scale_optimizer import "
             "NpuLossScaleOptimizer\no = NpuLossScaleOptimizer(opt)\n",
             "tf=2"},
            {"import mylib\nimport tensorflow\no = mylib.LossScaleOptimizer(opt)\n", "", "tf=2"},
        },
};

const Rule kNpuDeviceOptimizer = {
    .id = "tf2-strategy",
    .tier = Tier::advice,
    .when = When::tf2,
    .title = "strategies in scripts of TensorFlow 2",
    .reason = "ranks are processes; the optimizer joins them",
    .calls = {"tf.distribute.MirroredStrategy", "tf.distribute.MultiWorkerMirroredStrategy"},
    .at_call = strategy_note,
    .examples = {{"import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n", "", "tf=2"},
                 {"import tensorflow as tf\ns = tf.distribute.get_strategy()\n", "", "tf=2", false}},
};

}  // namespace cairn::migrate
