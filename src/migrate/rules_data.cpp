// tf.data pipelines.
#include <fmt/format.h>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

constexpr std::string_view kBatch = "batch_size drop_remainder num_parallel_calls deterministic name";
constexpr std::string_view kPaddedBatch = "batch_size padded_shapes padding_values drop_remainder name";
constexpr std::string_view kMapAndBatch = "map_func batch_size num_parallel_batches drop_remainder num_parallel_calls";

// Whether the pipeline the call is part of shuffles or repeats: only training does.
bool shuffles(Context& file, NodeId call) {
  NodeId statement = file.syntax.statement(call);
  if (file.holds(statement, ".shuffle(") || file.holds(statement, ".repeat()")) return true;
  NodeId function = file.syntax.ancestor(call, Kind::function_definition);
  return function != kNoNode && file.holds(function, ".shuffle(");
}

// The phase by the branches and variables inside the function around the call.
Phase phase_inside(Context& file, NodeId call) {
  NodeId function = file.syntax.ancestor(call, Kind::function_definition);
  if (function == kNoNode) return phase_of(file, call);
  std::string condition = training_condition(file, call);
  // A condition of the function's own decides unless a branch already has.
  for (NodeId up = file.syntax.parent(call); up != function; up = file.syntax.parent(up)) {
    Kind kind = file.syntax.kind(up);
    if (kind == Kind::if_statement || kind == Kind::conditional_expression) {
      Phase phase = phase_of(file, call);
      return phase;
    }
  }
  return condition.empty() ? phase_of(file, call) : Phase::unknown;
}

void drop_remainder(Spot& spot) {
  Context& file = spot.file;
  bool padded = spot.name.name.ends_with("padded_batch"), mapped = spot.name.name.ends_with("map_and_batch");
  Arguments bound = file.bind(spot.call, padded ? kPaddedBatch : mapped ? kMapAndBatch : kBatch);
  if (bound.open() || !bound.plain || !bound.has("batch_size")) return;
  if (file.resolver.is_instance(file.module, bound.value("batch_size"), "tf.Variable"))
    file.find(kDatasetVariable, spot.call, Severity::note, "the batch size of a dataset is a tf.Variable",
              "here nothing need be done: a variable has one owner; on the Ascend platform use a constant");
  NodeId given = bound.value("drop_remainder");
  if (given != kNoNode && file.syntax.kind(given) != Kind::false_) return;
  Phase phase = phase_inside(file, spot.call);
  std::string condition = phase == Phase::unknown ? training_condition(file, spot.call) : "";
  if (phase == Phase::unknown && condition.empty() && shuffles(file, spot.call)) phase = Phase::train;
  if (phase == Phase::evaluate) {
    file.find(spot.rule, spot.call, Severity::note, "evaluation keeps its last, smaller batch",
              "here nothing need be done; where shapes must be fixed, pad the last batch and mask the padding, so that "
              "no sample is lost");
    return;
  }
  if (phase == Phase::unknown && condition.empty()) {
    file.find(spot.rule, spot.call, Severity::note, "cannot tell whether this batch is for training",
              "here nothing need be done; for training on the Ascend platform add drop_remainder=True");
    return;
  }
  std::string value = phase == Phase::train ? "True" : condition;
  Rewrite rewrite(spot);
  if (given != kNoNode)
    rewrite.replace(given, value);
  else
    rewrite.add_argument(spot.call, "drop_remainder=" + value);
  rewrite.commit();
}

void shard(Spot& spot) {
  if (spot.file.own.distributed == Distribution::none) return;
  spot.file.find(spot.rule, spot.call, Severity::note, "the dataset is sharded by the script itself",
                 "its arguments are kept; they should be the number of ranks and the rank");
}

void lookup_table(Spot& spot) {
  spot.file.find(spot.rule, spot.call, Severity::note, "a lookup table is used",
                 "here nothing need be done: a table has one owner; on the Ascend platform tables in data "
                 "preprocessing need mix_compile_mode");
}

void unknown_receiver(Context& file, const Rule& rule) {
  // .batch(n) on something that may be a dataset: say so and leave it.
  if (file.module.text().find(".data") == std::string::npos) return;
  for (std::string_view method : {"batch", "padded_batch"})
    for (NodeId call : file.module.calls_of(method)) {
      NodeId callee = file.syntax.child(call, Field::function);
      if (file.syntax.kind(callee) != Kind::attribute) continue;
      NodeId object = file.syntax.child(callee, Field::object);
      std::string_view name = file.syntax.text(object);
      bool looks = name == "ds" || name.find("dataset") != name.npos || name.find("data_set") != name.npos;
      if (!looks || !file.resolver.values(file.module, object).empty() ||
          file.syntax.text(call).find("drop_remainder") != std::string_view::npos)
        continue;
      file.find(rule, call, Severity::note, fmt::format("cannot tell what {} is", name),
                "if it is a tf.data.Dataset for training on the Ascend platform, add drop_remainder=True");
    }
}

}  // namespace

const Rule kDropRemainder = {
    .id = "drop-remainder",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "batches for training get drop_remainder=True",
    .reason = "fixed shapes; batches for evaluation and prediction keep all their samples",
    .calls = {"tf.data.Dataset:batch", "tf.data.Dataset:padded_batch", "tf.data.experimental.map_and_batch",
              "tf.contrib.data.map_and_batch"},
    .at_call = drop_remainder,
    .examples =
        {
            {"import tensorflow as tf\ndef train_input():\n    ds = tf.data.Dataset.range(9)\n    ds = ds.shuffle(9)\n "
             "   return ds.batch(4)\n",
             "import tensorflow as tf\ndef train_input():\n    ds = tf.data.Dataset.range(9)\n    ds = ds.shuffle(9)\n "
             "   return ds.batch(4, drop_remainder=True)\n",
             "tf=1"},
            {"import tensorflow as tf\ndef input_fn(is_training):\n    ds = tf.data.TFRecordDataset(f)\n    return "
             "ds.repeat().batch(4)\n",
             "import tensorflow as tf\ndef input_fn(is_training):\n    ds = tf.data.TFRecordDataset(f)\n    return "
             "ds.repeat().batch(4, drop_remainder=is_training)\n",
             "tf=1"},
            {"import tensorflow as tf\nfrom tensorflow.contrib.data import map_and_batch\ndef train():\n    return "
             "tf.data.Dataset.range(9).apply(map_and_batch(f, 32))\n",
             "import tensorflow as tf\nfrom tensorflow.contrib.data import map_and_batch\ndef train():\n    return "
             "tf.data.Dataset.range(9).apply(map_and_batch(f, 32, drop_remainder=True))\n",
             "tf=1"},
            {"import tensorflow as tf\ndef eval_input():\n    return tf.data.Dataset.range(9).batch(4)\n", "", "tf=1"},
            {"import tensorflow as tf\ndef train():\n    return tf.data.Dataset.range(9).batch(32, True)\n", "",
             "tf=1"},
            {"import tensorflow as tf\ndef train(loader):\n    return loader.batch(3)\n", "", "tf=1"},
        },
};

const Rule kShard = {
    .id = "shard",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "datasets sharded by the script",
    .reason = "the script's own arguments are kept",
    .calls = {"tf.data.Dataset:shard"},
    .at_call = shard,
    .examples = {{"import tensorflow as tf\nds = tf.data.Dataset.range(9).shard(3, 1)\n", "",
                  "tf=1 distributed=tf_strategy"},
                 {"import tensorflow as tf\nds = store.shard(3, 1)\n", "", "tf=1 distributed=tf_strategy", false}},
};

const Rule kDatasetVariable = {
    .id = "dataset-variable",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "a tf.Variable in a dataset",
    .reason =
        "on the Ascend platform the variable's initial value is on the device, its use in the dataset on the host",
    .calls = {},
    .examples = {{"import tensorflow as tf\nn = tf.Variable(4)\nds = tf.data.Dataset.range(9).batch(n, True)\n", "",
                  "tf=1"},
                 {"import tensorflow as tf\nn = 4\nds = tf.data.Dataset.range(9).batch(n, True)\n", "", "tf=1", false}},
};

const Rule kLookupTable = {
    .id = "lookup-table",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "lookup tables",
    .reason = "on the Ascend platform a table's initialisation and its look-ups can be on different sides",
    .calls = {"tf.contrib.lookup.*", "tf.lookup.*"},
    .at_call = lookup_table,
    .examples = {{"import tensorflow as tf\nt = tf.contrib.lookup.index_table_from_file('v')\n", ""},
                 {"import tensorflow as tf\nfrom words import lookup\nt = lookup.StaticHashTable(i)\n", "", "tf=1",
                  false}},
};

const Rule kUnknownReceiver = {
    .id = "unknown-dataset",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "batch() on something that may be a dataset",
    .reason = "an unknown receiver is never edited",
    .calls = {},
    .at_file = unknown_receiver,
    .examples = {{"import tensorflow as tf\nfrom tensorflow.data import Dataset\ndef f(dataset):\n    return "
                  "dataset.batch(4)\n",
                  "", "tf=1"},
                 {"import tensorflow as tf\nfrom tensorflow.data import Dataset\ndef f(loader):\n    return "
                  "loader.batch(4)\n",
                  "", "tf=1", false}},
};

}  // namespace cairn::migrate
