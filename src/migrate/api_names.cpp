// How framework names are spelled, what they inherit and what their calls give.
#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "migrate/api_table.h"
#include "migrate/torch_table.h"
#include "migrate/values.h"

namespace cairn::migrate {
namespace {

struct Respelling {
  std::string_view from, to;  // a prefix ending at a dot or the whole name
};

// Applied from the top, each at most once; private module paths become the public ones they implement.
constexpr Respelling kRespellings[] = {
    {"tensorflow_core", "tensorflow"},
    {"tensorflow", "tf"},
    {"tf.python.keras", "tf.keras"},
    {"tf._api.v1", "tf"},
    {"tf._api.v2", "tf"},
    {"tf.python.client.session", "tf"},
    {"tf.python.framework.ops", "tf"},
    {"tf.python.framework.dtypes", "tf"},
    {"tf.python.framework.constant_op", "tf"},
    {"tf.python.ops.array_ops", "tf"},
    {"tf.python.ops.math_ops", "tf"},
    {"tf.python.ops.variable_scope", "tf"},
    {"tf.python.ops.variables", "tf"},
    {"tf.python.ops.init_ops", "tf"},
    {"tf.python.ops.control_flow_ops", "tf"},
    {"tf.python.ops.nn_ops", "tf.nn"},
    {"tf.python.ops.nn", "tf.nn"},
    {"tf.python.data.ops.dataset_ops", "tf.data"},
    {"tf.python.training.session_run_hook", "tf.train"},
    {"tf.python.training.basic_session_run_hooks", "tf.train"},
    {"tf.python.training.monitored_session", "tf.train"},
    {"tf.python.training.optimizer", "tf.train"},
    {"tf.python.training.adam", "tf.train"},
    {"tf.python.training.momentum", "tf.train"},
    {"tf.python.training.gradient_descent", "tf.train"},
    {"tf.python.training.training", "tf.train"},
    {"tf.python.estimator.estimator", "tf.estimator"},
    {"tf.python.estimator.run_config", "tf.estimator"},
    {"tf.python.platform.gfile", "tf.gfile"},
    {"tensorflow_estimator", "tf.estimator"},
    {"keras", "tf.keras"},
    {"tf_slim", "tf.contrib.slim"},
    {"tf.contrib.slim.training.train", "tf.contrib.training.train"},
    {"tf.contrib.learn.RunConfig", "tf.estimator.RunConfig"},
    {"horovod.tensorflow.keras", "hvd"},
    {"horovod.tensorflow.mpi_ops", "hvd"},
    {"horovod.tensorflow", "hvd"},
    {"horovod.keras", "hvd"},
    {"horovod.run", "hvd.run"},
    {"horovod.spark.run", "hvd.spark.run"},
    {"tf.optimizers", "tf.keras.optimizers"},
    {"tf.keras.optimizers.legacy", "tf.keras.optimizers"},
    {"tf.keras.optimizers.experimental", "tf.keras.optimizers"},
    {"tf.keras.models.Sequential", "tf.keras.Sequential"},
    {"tf.keras.models.Model", "tf.keras.Model"},
    {"tf.contrib.keras", "tf.keras"},
    {"tf.contrib.tpu.TPUEstimator", "tf.estimator.tpu.TPUEstimator"},
    {"tf.contrib.tpu.RunConfig", "tf.estimator.tpu.RunConfig"},
    {"tf.contrib.tpu.TPUConfig", "tf.estimator.tpu.TPUConfig"},
    {"tf.contrib.tpu.TPUEstimatorSpec", "tf.estimator.tpu.TPUEstimatorSpec"},
    {"tf.contrib.tpu.InputPipelineConfig", "tf.estimator.tpu.InputPipelineConfig"},
    {"tf.contrib.distribute", "tf.distribute"},
    {"tf.contrib.distribute.CollectiveAllReduceStrategy", "tf.distribute.MultiWorkerMirroredStrategy"},
    {"tf.distribute.CollectiveAllReduceStrategy", "tf.distribute.MultiWorkerMirroredStrategy"},
    {"tf.distribute.experimental.MultiWorkerMirroredStrategy", "tf.distribute.MultiWorkerMirroredStrategy"},
    {"tf.distribute.experimental.ParameterServerStrategy", "tf.distribute.ParameterServerStrategy"},
    {"tf.math.erf", "tf.erf"},
    {"tf.math.tanh", "tf.tanh"},
    {"tf.nn.tanh", "tf.tanh"},
    {"tf.math.pow", "tf.pow"},
    {"tf.math.sqrt", "tf.sqrt"},
    {"tf.math.multiply", "tf.multiply"},
    {"numpy", "np"},
    {"torch.functional", "torch"},
    {"torch.nn.parameter", "torch.nn"},
    {"torch.optim.adam", "torch.optim"},
    {"torch.optim.sgd", "torch.optim"},
    {"torch.utils.data.dataset", "torch.utils.data"},
    {"torch.utils.data.dataloader", "torch.utils.data"},
    {"torch.nn.functional.sigmoid", "torch.sigmoid"},
    {"torch.nn.functional.tanh", "torch.tanh"},
    {"torch.nn.modules.module", "torch.nn"},
    {"torch.nn.init.xavier_uniform", "torch.nn.init.xavier_uniform_"},
    {"torch.nn.init.kaiming_normal", "torch.nn.init.kaiming_normal_"},
    {"torch.FloatTensor", "torch.Tensor"},
    {"torch.cuda.FloatTensor", "torch.Tensor"},
    {"torch.cuda.LongTensor", "torch.LongTensor"},
};

bool has_prefix(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) &&
         (name.size() == prefix.size() || name[prefix.size()] == '.' || name[prefix.size()] == ':');
}

// npu_bridge spells a thing by several paths; "npu." and the parts that matter are left.
std::string npu_name(std::string_view name) {
  static constexpr std::array silent = {"npu_bridge",
                                        "npu_init",
                                        "estimator",
                                        "npu",
                                        "npu_optimizer",
                                        "npu_config",
                                        "npu_estimator",
                                        "npu_hook",
                                        "npu_loss_scale_manager",
                                        "npu_loss_scale_optimizer",
                                        "hccl",
                                        "npu_callbacks",
                                        "compat",
                                        "v1",
                                        "npu_device",
                                        "train",
                                        "optimizer",
                                        "manage",
                                        "api",
                                        "npu_distributed_optimizer"};
  std::string kept = "npu";
  std::string_view last;
  while (!name.empty()) {
    size_t end = std::min(name.find('.'), name.size());
    std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    bool drop = !name.empty() && std::find(silent.begin(), silent.end(), part) != silent.end();
    if (!drop && part != last) kept += "." + std::string(part);
    if (!drop) last = part;
  }
  return kept;
}

struct Hierarchy {
  std::string_view klass, base;
};
constexpr Hierarchy kHierarchy[] = {
    {"tf.data.TFRecordDataset", "tf.data.Dataset"},
    {"tf.data.TextLineDataset", "tf.data.Dataset"},
    {"tf.data.FixedLengthRecordDataset", "tf.data.Dataset"},
    {"tf.data.experimental.CsvDataset", "tf.data.Dataset"},
    {"tf.data.experimental.SqlDataset", "tf.data.Dataset"},
    {"tf.data.experimental.RandomDataset", "tf.data.Dataset"},
    {"tf.contrib.data.TFRecordDataset", "tf.data.Dataset"},
    {"tf.contrib.data.Dataset", "tf.data.Dataset"},
    {"tf.keras.Sequential", "tf.keras.Model"},
    {"tf.keras.experimental.LinearModel", "tf.keras.Model"},
    {"tf.keras.experimental.WideDeepModel", "tf.keras.Model"},
    {"tf.InteractiveSession", "tf.Session"},
    {"tf.estimator.tpu.TPUEstimator", "tf.estimator.Estimator"},
    {"npu.NPUEstimator", "tf.estimator.Estimator"},
    {"npu.done.config", "tf.ConfigProto"},
    {"npu.done.run_config", "tf.estimator.RunConfig"},
    {"npu.done.graph_options", "tf.GraphOptions"},
    {"npu.done.optimizer_options", "tf.OptimizerOptions"},
    {"npu.NPURunConfig", "tf.estimator.RunConfig"},
    {"tf.estimator.tpu.RunConfig", "tf.estimator.RunConfig"},
    {"tf.tpu.CrossShardOptimizer", "tf.train.Optimizer"},
    {"tf.distribute.MirroredStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.MultiWorkerMirroredStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.ParameterServerStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.OneDeviceStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.experimental.TPUStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.TPUStrategy", "tf.distribute.Strategy"},
    {"tf.distribute.experimental.CentralStorageStrategy", "tf.distribute.Strategy"},
};

constexpr Hierarchy kReturns[] = {
    // call -> class
    {"tf.data.Dataset.from_tensor_slices", "tf.data.Dataset"},
    {"tf.data.Dataset.from_tensors", "tf.data.Dataset"},
    {"tf.data.Dataset.from_generator", "tf.data.Dataset"},
    {"tf.data.Dataset.range", "tf.data.Dataset"},
    {"tf.data.Dataset.list_files", "tf.data.Dataset"},
    {"tf.data.Dataset.zip", "tf.data.Dataset"},
    {"tf.data.Dataset.from_sparse_tensor_slices", "tf.data.Dataset"},
    {"tf.data.Dataset.random", "tf.data.Dataset"},
    {"tf.data.Dataset.sample_from_datasets", "tf.data.Dataset"},
    {"tf.data.experimental.make_csv_dataset", "tf.data.Dataset"},
    {"tf.data.experimental.make_batched_features_dataset", "tf.data.Dataset"},
    {"tf.data.experimental.sample_from_datasets", "tf.data.Dataset"},
    {"tf.keras.utils.image_dataset_from_directory", "tf.data.Dataset"},
    {"tf.keras.utils.text_dataset_from_directory", "tf.data.Dataset"},
    {"tf.keras.preprocessing.image_dataset_from_directory", "tf.data.Dataset"},
    {"tf.keras.preprocessing.text_dataset_from_directory", "tf.data.Dataset"},
    {"tf.keras.models.load_model", "tf.keras.Model"},
    {"hvd.load_model", "tf.keras.Model"},
    {"tf.keras.models.clone_model", "tf.keras.Model"},
    {"tf.keras.models.model_from_json", "tf.keras.Model"},
    {"tf.keras.utils.multi_gpu_model", "tf.keras.Model"},
    {"tf.keras.estimator.model_to_estimator", "tf.estimator.Estimator"},
    {"tf.get_default_session", "tf.Session"},
    {"tf.train.Supervisor:managed_session", "tf.Session"},
    {"tf.train.Supervisor:prepare_or_wait_for_session", "tf.Session"},
    // What the wrappers give, so that nothing is wrapped twice.
    {"npu.npu_config_proto", "npu.done.config"},
    {"npu.npu_run_config_init", "npu.done.run_config"},
    {"npu.npu_graph_options", "npu.done.graph_options"},
    {"npu.npu_optimizer_options", "npu.done.optimizer_options"},
    {"npu.npu_hooks_append", "npu.done.hooks"},
    {"npu.npu_callbacks_append", "npu.done.callbacks"},
    {"npu.npu_distributed_optimizer_wrapper", "npu.NPUDistributedOptimizer"},
    {"npu.npu_tf_optimizer", "npu.NPUDistributedOptimizer"},
    {"npu.npu_keras_optimizer", "npu.NPUDistributedOptimizer"},
};

// clang-format off
constexpr std::array kDatasetMethods = {
    "apply", "batch", "bucket_by_sequence_length", "cache", "choose_from_datasets", "concatenate", "enumerate",
    "filter", "flat_map", "group_by_window", "interleave", "map", "padded_batch", "prefetch", "rebatch", "repeat",
    "shard", "shuffle", "skip", "snapshot", "take", "take_while", "unbatch", "unique", "window", "with_options",
    "map_with_legacy_function", "filter_with_legacy_function", "ragged_batch"};
// clang-format on

// Every name that `from npu_bridge.npu_init import *` brings in, and its npu_device counterpart.
// clang-format off
constexpr std::array kNpuInit = {
    "NPURunConfig", "ProfilingConfig", "MemoryConfig", "DumpConfig", "DynamicInputConfig", "ExperimentalConfig",
    "decorator_tf_session", "NPUEstimator", "NPUEstimatorSpec", "NPUCheckpointSaverHook", "NPUOutputTensorHook",
    "NPUBroadcastGlobalVariablesHook", "SetIterationsVarHook", "TellMeStepOrLossHook",
    "NPUBroadcastGlobalVariablesCallback", "NPUDistributedOptimizer", "KerasDistributeOptimizer",
    "npu_distributed_optimizer_wrapper", "NPUOptimizer", "npu_allreduce", "NPULossScaleOptimizer",
    "FixedLossScaleManager", "ExponentialUpdateLossScaleManager", "npu_ops", "npu_rnn", "npu_scope", "keras_to_npu",
    "npu_strategy", "util", "npu_plugin", "hccl_ops", "npu_embedding", "npu_unary_ops", "tf", "os", "config_pb2",
    "rewriter_config_pb2", "RewriterConfig", "session", "session_run_hook", "backend", "create_group",
    "destroy_group", "get_rank_size", "get_rank_id", "get_local_rank_size", "get_local_rank_id",
    "get_world_rank_from_group_rank", "get_group_rank_from_world_rank", "set_split_strategy_by_idx",
    "set_split_strategy_by_size", "experimental_options", "npu_config_proto", "npu_graph_options",
    "npu_optimizer_options", "npu_run_config_init", "npu_hooks_append", "npu_callbacks_append",
    "set_keras_session_npu_config", "npu_clear_session", "close_session", "init_resource", "shutdown_resource",
    "get_npu_rank_id", "get_npu_local_rank_id", "get_npu_rank_size", "get_npu_local_rank_size", "npu_tf_optimizer",
    "npu_keras_optimizer", "NpuEmptyHook"};
// clang-format on

/// Where a name of a module of Keras 2.0 to 2.3 that is not public any more is public: tf.keras.layers.core.Dense ->
/// tf.keras.layers.Dense, with what follows it; "" where it is not.
std::string public_in_keras(std::string_view name) {
  constexpr std::string_view kKeras = "tf.keras.";
  if (!name.starts_with(kKeras)) return "";
  const size_t first = name.find('.', kKeras.size());
  if (first == name.npos) return "";
  const std::string_view part = name.substr(0, first);  // tf.keras.layers
  const bool engine = part == "tf.keras.engine";
  size_t begin = name.find_first_of(".:", first + 1);  // of the name in that module
  if (begin == name.npos || name[begin] == ':' || api_exists(name.substr(0, begin))) begin = engine ? first : name.npos;
  if (begin == name.npos) return "";
  const size_t end = std::min(name.find_first_of(".:", begin + 1), name.size());
  const std::string member(name.substr(begin, end - begin));  // ".Dense"
  for (std::string_view home : {engine ? std::string_view("tf.keras.layers") : part, std::string_view("tf.keras")}) {
    if (std::string found = std::string(home) + member; api_exists(found)) return found + std::string(name.substr(end));
    if (!engine) break;
  }
  return "";
}

/// What a private module inside a part of contrib gives by the name of the part: tf.contrib.tpu.python.tpu.tpu_config.RunConfig
/// -> tf.contrib.tpu.RunConfig, with what follows it; "" where the part has nothing of that name.
std::string public_in_contrib(std::string_view name) {
  constexpr std::string_view kInner = ".python.";
  const size_t inner = name.find(kInner);
  if (!name.starts_with("tf.contrib.") || inner == name.npos) return "";
  for (size_t begin = inner + kInner.size() - 1; begin != name.npos; begin = name.find('.', begin + 1)) {
    std::string found(name.substr(0, inner));
    found += name.substr(begin, name.find_first_of(".:", begin + 1) - begin);
    if (api_support(found).here != ApiSupport::Here::missing)
      return found + std::string(name.substr(std::min(name.find_first_of(".:", begin + 1), name.size())));
  }
  return "";
}

bool is_capitalised(std::string_view dotted) {
  size_t dot = dotted.find_last_of(".:");
  char c = dot == std::string_view::npos ? dotted[0] : dot + 1 < dotted.size() ? dotted[dot + 1] : 'a';
  return c >= 'A' && c <= 'Z';
}

ApiName canonical_spelling(std::string_view name) {
  ApiName found{std::string(name), 0};
  std::string& at = found.name;
  auto respell = [&](std::string_view from, std::string_view to) {
    if (!has_prefix(at, from)) return;
    std::string spelled = std::string(to) + at.substr(from.size());
    // A private module holds more than the public one: what the public one lacks keeps its private name.
    if (from.starts_with("tf.python.") && from != "tf.python.keras" && spelled != to) {
      size_t end = std::min(spelled.find_first_of(".:", to.size() + 1), spelled.size());
      if (!api_exists(std::string_view(spelled).substr(0, end))) return;
    }
    at = std::move(spelled);
  };
  if (at.starts_with("npu_bridge") || at.starts_with("npu_device") || at.starts_with("hccl.")) {
    at = npu_name(at);
    return found;
  }
  for (const auto& [from, to] : kRespellings) {
    if (from == "tf.python.keras") found.inner = has_prefix(at, from);
    if (from == "tf.contrib.distribute" && has_prefix(at, from))
      found.elder = at;  // the layer answers it by its own name
    respell(from, to);
    if (from == "tensorflow") {
      for (int version : {1, 2, 1, 2})  // compat.v2.compat.v1 happens
        if (std::string prefix = version == 1 ? "tf.compat.v1" : "tf.compat.v2"; has_prefix(at, prefix)) {
          at = "tf" + at.substr(prefix.size());
          found.compat = version;
        }
      if (std::string home = public_in_contrib(at); !home.empty()) at = std::move(home);
    }
  }
  if (std::string home = public_in_keras(at); !home.empty()) {
    found.elder = std::move(at);
    at = std::move(home);
  }
  return found;
}

}  // namespace

ApiName canonical(std::string_view name) {
  if (name.find_first_of("tkhn") != 0) return {std::string(name), 0};
  constexpr size_t kMost = 1 << 16;  // spellings that a thread remembers: those of one large tree
  thread_local std::unordered_map<std::string, ApiName, TextHash, std::equal_to<>> known;
  if (auto found = known.find(name); found != known.end()) return found->second;
  if (known.size() >= kMost) known.clear();
  return known.emplace(name, canonical_spelling(name)).first->second;
}

bool is_subclass(std::string_view klass, std::string_view base) {
  if (klass == base) return true;
  for (const Hierarchy& row : kHierarchy)
    if (row.klass == klass) return is_subclass(row.base, base);
  if (base == "torch.nn.Module")
    return klass.starts_with("torch.nn.") && klass.find(':') == klass.npos && klass != "torch.nn.Parameter" &&
           is_capitalised(klass);
  if (base == "torch.optim.Optimizer")
    return klass.starts_with("torch.optim.") && !klass.starts_with("torch.optim.lr_");
  if (base == "torch.optim.lr_scheduler") return klass.starts_with("torch.optim.lr_scheduler.");
  if (base == "torch.distributions") return klass.starts_with("torch.distributions.");
  if (base == "tf.train.Optimizer") {
    if (klass == "tf.train.experimental.MixedPrecisionLossScaleOptimizer") return true;
    return (klass.starts_with("tf.train.") || klass.starts_with("tf.contrib.")) && klass.ends_with("Optimizer") &&
           klass.find(':') == klass.npos;
  }
  if (base == "tf.keras.optimizers.Optimizer")
    return klass.starts_with("tf.keras.optimizers.") && is_capitalised(klass) &&
           klass.find(".schedules.") == klass.npos;
  if (base == "tf.estimator.Estimator")
    return klass.starts_with("tf.estimator.") &&
           (klass.ends_with("Classifier") || klass.ends_with("Regressor") || klass.ends_with("Estimator"));
  return false;
}

std::string returned_class(const std::string& name) {
  for (const Hierarchy& row : kReturns)
    if (row.klass == name) return std::string(row.base);
  if (name.starts_with("torch"))
    if (std::string given = torch_result(name); !given.empty()) return given;
  size_t colon = name.find(':');
  if (colon != std::string::npos) {
    std::string_view klass = std::string_view(name).substr(0, colon), method = std::string_view(name).substr(colon + 1);
    bool dataset = is_subclass(klass, "tf.data.Dataset") &&
                   std::find(kDatasetMethods.begin(), kDatasetMethods.end(), method) != kDatasetMethods.end();
    return dataset ? "tf.data.Dataset" : "";
  }
  if (name.starts_with("tf.keras.applications.") && is_capitalised(name)) return "tf.keras.Model";
  bool ours = name.starts_with("tf.") || name.starts_with("npu.") || name.starts_with("hvd.");
  if (!is_capitalised(name)) return "";
  if (ours || name.find('.') != std::string::npos) return name;
  return "";
}

bool star_exports(std::string_view module, std::string_view name) {
  if (module == "npu_bridge.npu_init" || module == "npu_device.compat.v1.npu_init")
    return std::find(kNpuInit.begin(), kNpuInit.end(), name) != kNpuInit.end();
  return api_exists(canonical(std::string(module) + "." + std::string(name)).name);
}

bool is_reported_framework(std::string_view dotted) {
  static constexpr std::array roots = {"tensorflow", "tensorflow_core", "keras", "horovod", "tf_slim", "tf"};
  std::string_view root = dotted.substr(0, dotted.find('.'));
  return std::find(roots.begin(), roots.end(), root) != roots.end();
}

}  // namespace cairn::migrate
