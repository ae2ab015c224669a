// Scripts of the TensorFlow 2 interface: the device becomes the default one by npu_device.
#include <fmt/format.h>

#include <algorithm>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

/// Whether the import brings in TensorFlow itself, or a module of the project that has to do with it.
bool brings_tensorflow(const Context& file, const Import& import) {
  const std::string api = canonical(import.module).name;
  if (api == "tf" || api.starts_with("tf.")) return true;
  for (const std::string& dotted :
       {import.module, import.module + (import.module.ends_with('.') ? "" : ".") + import.member})
    if (const Module* other = file.project.module(file.project.find(file.module.path(), dotted)))
      if (file.facts.files[file.project.index_of(other)].tf != 0) return true;
  return false;
}

bool is_import(Kind kind) {
  return kind == Kind::import_statement || kind == Kind::import_from_statement || kind == Kind::future_import_statement;
}

/// An import, or a try statement around imports alone.
bool is_import(const Syntax& syntax, NodeId statement) {
  if (syntax.kind(statement) != Kind::try_statement) return is_import(syntax.kind(statement));
  const std::vector<NodeId> tried = syntax.children(syntax.child(statement, Field::body));
  return std::all_of(tried.begin(), tried.end(), [&](NodeId each) { return is_import(syntax.kind(each)); });
}

/// The last import of the first group that brings in TensorFlow: what a script sets before that, such as environment
/// variables, it sets for TensorFlow. Where no group does, that of the first.
NodeId last_import(const Context& file) {
  const Syntax& syntax = file.syntax;
  NodeId first = kNoNode, last = kNoNode;
  bool together = false, tensorflow = false;
  auto entry = file.module.imports().begin();  // in the order of the text
  for (NodeId statement : syntax.children(0)) {
    const bool import = is_import(syntax, statement);
    for (; entry != file.module.imports().end() && entry->statement < syntax[statement].after; ++entry)
      tensorflow = tensorflow || (import && brings_tensorflow(file, *entry));
    if (import) {
      together = true;
      last = statement;
    } else if (together && syntax.kind(statement) != Kind::try_statement &&
               syntax.kind(statement) != Kind::if_statement) {
      if (tensorflow) return last;
      if (first == kNoNode) first = last;
      together = false;
    }
  }
  return tensorflow || first == kNoNode ? last : first;
}

void open_device(Context& file, const Rule& rule) {
  if (!file.own.entry || !file.own.computes || file.module.mentions("npu_device")) return;
  const NodeId after = last_import(file);
  if (after == kNoNode) return;
  std::string name = "npu";
  for (const Scope& scope : file.module.scopes())
    if (scope.names.contains(name)) name = "npu_device";
  Rewrite rewrite(file, rule, after);
  std::string import = name == "npu" ? "import npu_device as npu" : "import npu_device";
  if (rewrite.insert_after(after, {import, name + ".open().as_default()"})) rewrite.commit();
}

void keras_loss_scale(Spot& spot) {
  Rewrite rewrite(spot);
  rewrite.replace(
      spot.file.syntax.child(spot.call, Field::function),
      rewrite.use(spot.name.name.find(".experimental.") == std::string::npos
                      ? "npu_device.train.optimizer.npu_loss_scale_optimizer:NpuLossScaleOptimizer"
                      : "npu_device.train.optimizer.npu_loss_scale_optimizer:NpuExperimentalLossScaleOptimizer"));
  rewrite.commit();
}

void strategy_note(Spot& spot) {
  if (spot.file.own.distributed != Distribution::tf_strategy) return;
  spot.file.find(spot.rule, spot.call, Severity::warning,
                 fmt::format("{}: ranks are processes, each with one replica and all rows", spot.name.name),
                 fmt::format("start it with cairn launch{}, and give each rank its share of the data: "
                             "npu.distribute.shard_and_rebatch_dataset(dataset, global_batch_size)",
                             spot.name.name.ends_with("MultiWorkerMirroredStrategy") ? ", without TF_CONFIG" : ""));
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
            {"import os\nos.environ[\"TF_CPP_MIN_LOG_LEVEL\"] = \"2\"\nfrom tensorflow import keras\n"
             "print(keras.Model())\n",
             "import os\nos.environ[\"TF_CPP_MIN_LOG_LEVEL\"] = \"2\"\nfrom tensorflow import keras\nimport npu_device "
             "as npu\nnpu.open().as_default()\nprint(keras.Model())\n",
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
    .at_call = keras_loss_scale,
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
    .title = "what a strategy of TensorFlow 2 leaves to do",
    .reason = "ranks are processes, which the optimizers join; each reads its own share of the data",
    .calls = {"tf.distribute.MirroredStrategy", "tf.distribute.MultiWorkerMirroredStrategy"},
    .at_call = strategy_note,
    .examples = {{"import tensorflow as tf\ns = tf.distribute.MirroredStrategy()\n",
                  "import tensorflow as tf\nfrom npu_device.distribute import npu_broadcast_scope_wrapper\ns = "
                  "npu_broadcast_scope_wrapper(tf.distribute.MirroredStrategy())\n",
                  "tf=2 distributed=tf_strategy"},
                 {"import tensorflow as tf\ns = tf.distribute.get_strategy()\n", "", "tf=2", false}},
};

}  // namespace cairn::migrate
