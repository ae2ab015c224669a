// The calls of Horovod's TensorFlow and Keras interfaces.
#include <fmt/format.h>

#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

void left(Spot& spot, const std::string& why, const std::string& advice) {
  spot.file.find(spot.rule, spot.call, Severity::error, fmt::format("{} {}", spot.name.name, why), advice);
}

bool is_eager(const Context& file) { return file.own.tf == 2 || file.own.eager; }

// The name in the platform's interface of TensorFlow 1, or in that of TensorFlow 2.
std::string use(Rewrite& rewrite, const Context& file, std::string_view name1, std::string_view name2) {
  return rewrite.use(std::string(is_eager(file) ? name2 : name1));
}

std::string use_size(Rewrite& rewrite, const Context& file) {
  return use(rewrite, file, "get_npu_rank_size", "hccl.manage.api:get_rank_size");
}

void init(Spot& spot) {
  Context& file = spot.file;
  NodeId statement = file.syntax.parent(spot.call);
  if (is_eager(file)) return neutralise(spot, "hvd.init is taken out: ranks are known from the start");
  if (file.syntax.kind(statement) != Kind::expression_statement)
    return left(spot, "is not a statement of its own", "call init_resource() by hand");
  Rewrite rewrite(spot);
  std::string close = rewrite.use("close_session"), shutdown = rewrite.use("shutdown_resource"),
              exits = rewrite.use("atexit");
  rewrite.replace(spot.call, "npu_sess, npu_shutdown = " + rewrite.use("init_resource") + "()");
  if (!rewrite.insert_after(statement, {fmt::format("{}.register({}, npu_sess)", exits, close),
                                        fmt::format("{}.register({}, npu_sess, npu_shutdown)", exits, shutdown)}))
    return left(spot, "shares its line with other statements", "put it on a line of its own");
  rewrite.commit();
}

void shutdown(Spot& spot) {
  neutralise(spot, "hvd.shutdown is taken out: what init_resource began ends with the process");
}

// Behind hvd.init() it is true; where it decides whether to call that, it is not.
void is_initialized(Spot& spot) {
  const Syntax& syntax = spot.file.syntax;
  bool decides = false;
  for (NodeId up = syntax.ancestor(spot.call, Kind::if_statement); up != kNoNode && !decides;
       up = syntax.ancestor(up, Kind::if_statement)) {
    const NodeId condition = syntax.child(up, Field::condition);
    if (spot.call < condition || spot.call >= syntax[condition].after) continue;
    for (NodeId call : spot.file.module.calls_of("init"))
      decides = decides || (call > condition && call < syntax[up].after && spot.file.calls(call, "hvd.init"));
  }
  Rewrite(spot, "what hvd.init() becomes has run").replace(spot.call, decides ? "False" : "True").commit();
}

void query(Spot& spot) {
  if (spot.name.name == "hvd.shutdown") return shutdown(spot);
  if (spot.name.name == "hvd.is_initialized") return is_initialized(spot);
  if (spot.name.name.ends_with("_built") || spot.name.name.ends_with("d")) {  // nccl_built, gloo_enabled, ...
    Rewrite(spot, fmt::format("{}: there is no such library here", spot.name.name))
        .replace(spot.call, "False")
        .commit();
    return;
  }
  Rewrite rewrite(spot, fmt::format("{} asks the platform's collectives", spot.name.name));
  const std::string name = spot.name.name == "hvd.rank"         ? "rank_id"
                           : spot.name.name == "hvd.size"       ? "rank_size"
                           : spot.name.name == "hvd.local_rank" ? "local_rank_id"
                                                                : "local_rank_size";
  rewrite.replace(spot.file.syntax.child(spot.call, Field::function),
                  use(rewrite, spot.file, "get_npu_" + name, "hccl.manage.api:get_" + name));
  rewrite.commit();
}

// hvd.Average and the like, as an argument: its last name, "" without an argument, "?" when it is anything else. Of several, as in
// `hvd.Adasum if args.adasum else hvd.Average`, the one that the platform has, and a warning.
std::string reduction(Spot& spot, NodeId value) {
  if (value == kNoNode) return "";
  Context& file = spot.file;
  std::set<std::string> found;
  for (const ApiName& name : file.resolver.names(file.module, value))
    if (name.name.starts_with("hvd.")) found.insert(name.name.substr(4));
  if (found.empty()) return "?";
  for (NodeId node = value; node < file.syntax[value].after; ++node) file.rewritten[node] = kHorovodOptimizer.id;
  if (found.size() == 1 || !found.contains("Average")) return *found.begin();
  found.erase("Average");
  file.find(spot.rule, value, Severity::warning, fmt::format("{} by {} is left out", spot.name.name, *found.begin()),
            "it averages always; the option that chooses otherwise does nothing any more");
  return "Average";
}

void optimizer(Spot& spot) {
  Context& file = spot.file;
  const bool tape = spot.name.name == "hvd.DistributedGradientTape";
  const char* wrapped = tape ? "gradtape" : "optimizer";
  Arguments bound =
      file.bind(spot.call, tape ? "gradtape device_dense device_sparse compression sparse_as_dense op"
                                : "optimizer name use_locking device_dense device_sparse compression sparse_as_dense "
                                  "backward_passes_per_step op");
  NodeId value = bound.value(wrapped);
  if (bound.open() || !bound.plain || value == kNoNode)
    return left(spot, "gets its arguments through * or **",
                "wrap the optimizer with npu_distributed_optimizer_wrapper by hand");
  double passes = 1;
  if (NodeId given = bound.value("backward_passes_per_step");
      given != kNoNode && (!number_value(file.syntax, given, passes) || passes != 1))
    return left(spot, "accumulates gradients over several steps", "accumulate by hand before apply_gradients");
  std::string op = reduction(spot, bound.value("op"));
  if (op != "" && op != "Average")
    return left(spot, fmt::format("reduces by {}", op == "?" ? "an unknown operation" : op),
                "the platform's optimizer averages; reduce by hand with hccl_ops.allreduce");
  Rewrite rewrite(spot);
  rewrite.replace(file.syntax.child(spot.call, Field::function),
                  tape ? rewrite.use("npu_device.distribute:distributed_gradient_tape")
                       : use(rewrite, file, "npu_distributed_optimizer_wrapper",
                             "npu_device.distribute:npu_distributed_keras_optimizer_wrapper"));
  std::string dropped;
  auto drop = [&](std::string_view name, NodeId argument) {
    dropped += fmt::format("{}{}", dropped.empty() ? "" : ", ", name);
    for (NodeId node = argument; node < file.syntax[argument].after; ++node)
      if (Kind kind = file.syntax.kind(node); kind == Kind::attribute || kind == Kind::identifier)
        file.rewritten[node] = spot.rule.id;
  };
  for (const auto& [name, given] : bound.given)
    if (name != wrapped && name != "op") drop(name, given.argument);
  for (NodeId argument : bound.extra) {
    std::string_view name = file.syntax.text(file.syntax.child(argument, Field::name));
    if (name == "process_set") return left(spot, "reduces over a set of ranks", "use a group of hccl.manage.api");
    drop(name, argument);
  }
  // Everything behind the optimizer goes at once, so that no comma is left between two removals.
  std::vector<NodeId> arguments = file.syntax.children(file.syntax.child(spot.call, Field::arguments));
  NodeId kept = bound.given[wrapped].argument;
  if (arguments.size() > 1) {
    if (arguments.front() != kept)
      return left(spot, fmt::format("gets its {} behind other arguments", wrapped), "put it first");
    rewrite.replace(Span{file.syntax[kept].end, file.syntax[arguments.back()].end}, "");
  }
  if (bound.given[wrapped].keyword) rewrite.replace(Span{file.syntax[kept].begin, file.syntax[value].begin}, "");
  if (rewrite.commit() && !dropped.empty())
    file.find(spot.rule, spot.call, Severity::note, fmt::format("{} of {} left out", dropped, spot.name.name.substr(4)),
              "compression and fusion are options of the platform's collectives");
}

// The collectives of Horovod for Keras take values and, outside of eager mode, evaluate what they give.
bool is_for_keras(const Spot& spot) {
  const Context& file = spot.file;
  for (const Value& value : file.resolver.values(file.module, file.syntax.child(spot.call, Field::function)))
    if (value.name.starts_with("horovod.keras.") || value.name.starts_with("horovod.tensorflow.keras.")) return true;
  return false;
}

// Puts `open` and `close` around a collective's tensor, and inside them what Horovod for Keras does. False, with a finding, where
// the script has no name for TensorFlow.
bool wrap_tensor(Spot& spot, Rewrite& rewrite, NodeId tensor, const std::string& open, const std::string& close) {
  const bool keras = is_for_keras(spot);
  const std::string tf = spot.file.tensorflow();
  if (keras && tf.empty()) return left(spot, "evaluates in Keras' session", "import tensorflow as tf"), false;
  if (keras || !open.empty()) rewrite.wrap(tensor, open + (keras ? tf + ".constant(" : ""), (keras ? ")" : "") + close);
  if (keras && !is_eager(spot.file)) rewrite.wrap(spot.call, tf + ".keras.backend.get_value(", ")");
  return true;
}

constexpr std::string_view kCallbacks = "npu_bridge.estimator.npu.npu_callbacks:";

void broadcast_hook(Spot& spot) {
  Context& file = spot.file;
  bool callback = spot.name.name.ends_with("Callback");
  Arguments bound = file.bind(spot.call, "root_rank device");
  if (bound.open() || !bound.plain) return left(spot, "gets its arguments through * or **", "write it by hand");
  Rewrite rewrite(spot);
  rewrite.replace(file.syntax.child(spot.call, Field::function),
                  callback ? use(rewrite, file, "NPUBroadcastGlobalVariablesCallback",
                                 std::string(kCallbacks) + "NPUBroadcastGlobalVariablesCallback")
                           : rewrite.use("NPUBroadcastGlobalVariablesHook"));
  if (bound.has("device")) rewrite.remove_arguments(spot.call, {bound.given["device"].argument});
  std::string rank = callback ? "" : rewrite.use("get_npu_rank_id") + "()";
  if (!bound.has("root_rank"))
    rewrite.add_argument(spot.call, callback ? "0" : "0, " + rank);
  else if (!callback)
    rewrite.insert(file.syntax[bound.given["root_rank"].argument].end,
                   ", " + std::string(bound.given["root_rank"].keyword ? "index=" : "") + rank, 1);
  rewrite.commit();
}

// The callbacks that have the same name and arguments.
void callback(Spot& spot) {
  Rewrite rewrite(spot);
  rewrite.replace(spot.file.syntax.child(spot.call, Field::function),
                  rewrite.use(std::string(kCallbacks) + spot.name.name.substr(spot.name.name.rfind('.') + 1)));
  rewrite.commit();
}

void allreduce(Spot& spot, Rewrite& rewrite) {
  Context& file = spot.file;
  Arguments bound = file.bind(
      spot.call, "tensor average device_dense device_sparse compression op prescale_factor postscale_factor name");
  NodeId tensor = bound.value("tensor");
  if (bound.open() || !bound.plain || tensor == kNoNode || bound.has("prescale_factor") ||
      bound.has("postscale_factor"))
    return left(spot, "has arguments without a peer", "write it with hccl_ops.allreduce by hand");
  std::string op = reduction(spot, bound.value("op"));
  NodeId average = bound.value("average");
  if (average != kNoNode && file.syntax.kind(average) != Kind::true_ && file.syntax.kind(average) != Kind::false_ &&
      file.syntax.kind(average) != Kind::none)
    return left(spot, "decides at run time whether to average", "write it with hccl_ops.allreduce by hand");
  bool mean = op == "Average" || (op.empty() && (average == kNoNode || file.syntax.kind(average) != Kind::false_));
  std::string name = op.empty() || mean || op == "Sum" ? "sum"
                     : op == "Min"                     ? "min"
                     : op == "Max"                     ? "max"
                     : op == "Product"                 ? "prod"
                                                       : "";
  if (name.empty()) return left(spot, fmt::format("reduces by {}", op), "the platform has sum, min, max and prod");
  std::vector<NodeId> arguments = file.syntax.children(file.syntax.child(spot.call, Field::arguments));
  if (arguments.front() != bound.given["tensor"].argument)
    return left(spot, "gets its tensor behind other arguments", "put the tensor first");
  rewrite.replace(file.syntax.child(spot.call, Field::function), use_collectives(rewrite, file) + ".allreduce");
  for (const auto& [parameter, given] : bound.given)
    if (parameter != "tensor")
      for (NodeId node = given.argument; node < file.syntax[given.argument].after; ++node)
        file.rewritten[node] = spot.rule.id;
  bool keyword = bound.given["tensor"].keyword;
  uint32_t end = file.syntax[bound.given["tensor"].argument].end;
  std::string text = keyword ? ", reduction=\"" + name + "\"" : ", \"" + name + "\"";
  if (arguments.size() > 1)
    rewrite.replace(Span{end, file.syntax[arguments.back()].end}, text);
  else
    rewrite.insert(end, text, 1);
  if (mean) {
    // The quotient stands in parentheses wherever something could bind tighter than its division.
    Kind parent = file.syntax.kind(file.syntax.parent(spot.call));
    bool bare = parent == Kind::assignment || parent == Kind::argument_list || parent == Kind::keyword_argument ||
                parent == Kind::return_statement || parent == Kind::expression_statement || parent == Kind::list ||
                parent == Kind::tuple || parent == Kind::expression_list || parent == Kind::list_comprehension ||
                parent == Kind::parenthesized_expression;
    rewrite.wrap(spot.call, bare ? "" : "(", fmt::format(" / {}(){}", use_size(rewrite, file), bare ? "" : ")"));
  }
  if (wrap_tensor(spot, rewrite, tensor, "", "")) rewrite.commit();
}

void collective(Spot& spot) {
  Context& file = spot.file;
  const Syntax& syntax = file.syntax;
  Rewrite rewrite(spot, fmt::format("{} becomes the platform's collective", spot.name.name));
  if (spot.name.name == "hvd.allreduce") return allreduce(spot, rewrite);
  NodeId callee = syntax.child(spot.call, Field::function);
  if (spot.name.name == "hvd.allgather") {
    Arguments bound = file.bind(spot.call, "tensor name");
    if (bound.open() || !bound.plain || !bound.has("tensor"))
      return left(spot, "gets its arguments through * or **", "write it with hccl_ops.allgather by hand");
    rewrite.replace(callee, use_collectives(rewrite, file) + ".allgather");
    if (bound.has("name")) rewrite.remove_arguments(spot.call, {bound.given["name"].argument});
    rewrite.insert(syntax[bound.given["tensor"].argument].end,
                   fmt::format(", {}{}()", bound.given["tensor"].keyword ? "rank_size=" : "", use_size(rewrite, file)),
                   1);
    if (wrap_tensor(spot, rewrite, bound.value("tensor"), "", "")) rewrite.commit();
    return;
  }
  if (spot.name.name == "hvd.broadcast") {
    Arguments bound = file.bind(spot.call, "tensor root_rank name");
    if (bound.open() || !bound.plain || !bound.has("tensor") || !bound.has("root_rank"))
      return left(spot, "gets its arguments through * or **", "write it with hccl_ops.broadcast by hand");
    rewrite.replace(callee, use_collectives(rewrite, file) + ".broadcast");
    if (bound.has("name")) rewrite.remove_arguments(spot.call, {bound.given["name"].argument});
    rewrite.insert(syntax[spot.call].end, "[0]", -(int64_t{1} << 41));
    if (wrap_tensor(spot, rewrite, bound.value("tensor"), "[", "]")) rewrite.commit();
    return;
  }
  // broadcast_global_variables(root), broadcast_variables(variables, root): broadcast the values, then assign them.
  std::string tf = file.tensorflow();
  bool global = spot.name.name == "hvd.broadcast_global_variables";
  Arguments bound = file.bind(spot.call, global ? "root_rank" : "variables root_rank");
  if (tf.empty() || bound.open() || !bound.has("root_rank") || (!global && !bound.has("variables")))
    return left(spot, "cannot be rewritten here", "broadcast with hccl_ops.broadcast and assign");
  if (is_eager(file) && !global) {
    rewrite.replace(callee, rewrite.use("npu_device.distribute:broadcast"));
    rewrite.commit();
    return;
  }
  std::string variables = global ? tf + ".global_variables()" : file.text(bound.value("variables"));
  std::string assigned = fmt::format("{0}.group(*[{0}.assign(v, b) for v, b in zip({1}, {2}.broadcast({1}, {3}))])", tf,
                                     variables, use_collectives(rewrite, file), file.text(bound.value("root_rank")));
  if (is_for_keras(spot)) assigned = fmt::format("{}.keras.backend.get_session().run({})", tf, assigned);
  rewrite.replace(spot.call, assigned);
  rewrite.commit();
}

// horovod.run(f, args, kwargs) starts ranks that call f each: what one rank does is that call.
void launch(Spot& spot) {
  Context& file = spot.file;
  Arguments bound = file.bind(spot.call, "fn args kwargs");
  if (NodeId named = bound.value("fn"); named == kNoNode)
    for (NodeId argument : bound.extra)
      if (file.syntax.text(file.syntax.child(argument, Field::name)) == "func")
        bound.given["fn"] = {file.syntax.child(argument, Field::value), argument, true};
  const NodeId function = bound.value("fn"), args = bound.value("args"), kwargs = bound.value("kwargs");
  if (bound.open() || function == kNoNode ||
      file.syntax.kind(file.syntax.parent(spot.call)) != Kind::expression_statement)
    return left(spot, "starts ranks and takes their results",
                "start them with cairn launch -n N, and call the function");
  std::string call = as_operand(file.syntax, function) + "(";
  if (args != kNoNode) call += "*" + as_operand(file.syntax, args);
  if (kwargs != kNoNode) call += (args == kNoNode ? "**" : ", **") + as_operand(file.syntax, kwargs);
  if (Rewrite(spot).replace(spot.call, call + ")").commit())
    file.find(spot.rule, spot.call, Severity::warning, fmt::format("{} started the ranks", spot.name.name),
              "start them with cairn launch -n N, or with mpirun");
}

}  // namespace

std::string use_collectives(Rewrite& rewrite, const Context& file) {
  return use(rewrite, file, "hccl_ops", "npu_bridge.hccl:hccl_ops");
}

const Rule kHorovodInit = {
    .id = "horovod-init",
    .tier = Tier::safe,
    .when = When::always,
    .title = "hvd.init() becomes init_resource(), released when the process ends; TensorFlow 2 needs none",
    .reason = "ranks and collectives come from the platform",
    .calls = {"hvd.init"},
    .at_call = init,
    .examples =
        {
            {"import tensorflow as tf\nimport os, sys, horovod.tensorflow as hvd\nhvd.init()\nprint(hvd.rank(), "
             "os.name)\n",
             "import tensorflow as tf\nimport atexit\nfrom npu_bridge.npu_init import close_session, get_npu_rank_id, "
             "init_resource, shutdown_resource\nimport os, sys\n"
             "npu_sess, npu_shutdown = init_resource()\natexit.register(close_session, "
             "npu_sess)\natexit.register(shutdown_resource, npu_sess, npu_shutdown)\nprint(get_npu_rank_id(), "
             "os.name)\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nhvd.init()\nn = hvd.size() * "
             "hvd.local_rank()\n",
             "import tensorflow as tf\nfrom hccl.manage.api import get_local_rank_id, get_rank_size\nimport npu_device "
             "as "
             "npu\nnpu.open().as_default()\npass\nn = get_rank_size() * get_local_rank_id()\n",
             "tf=2"},
            {"import horovod.torch as hvd\nhvd.init()\n", "", "tf=1"},
        },
};

const Rule kHorovodQuery = {
    .id = "horovod-query",
    .tier = Tier::safe,
    .when = When::always,
    .title = "hvd.rank, size, local_rank, local_size ask the platform",
    .reason = "ranks come from the platform",
    .calls = {"hvd.rank", "hvd.size", "hvd.local_rank", "hvd.local_size", "hvd.shutdown", "hvd.is_initialized",
              "hvd.mpi_built", "hvd.gloo_built", "hvd.nccl_built", "hvd.ddl_built", "hvd.ccl_built", "hvd.cuda_built",
              "hvd.rocm_built", "hvd.mpi_enabled", "hvd.gloo_enabled", "hvd.mpi_threads_supported"},
    .at_call = query,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hv\nn = hv.size() * hv.local_rank()\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_local_rank_id, get_npu_rank_size\nn = "
             "get_npu_rank_size() * get_npu_local_rank_id()\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nn = hvd.local_size() if hvd.nccl_built() else "
             "1\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_local_rank_size\nn = "
             "get_npu_local_rank_size() if False else 1\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nif not hvd.is_initialized():\n    "
             "hvd.init()\nn = hvd.size() if hvd.is_initialized() else 1\n",
             "import tensorflow as tf\nfrom hccl.manage.api import get_rank_size\nimport npu_device as "
             "npu\nnpu.open().as_default()\nif not False:\n    pass\nn = get_rank_size() if True else 1\n",
             "tf=2"},
            {"import tensorflow as tf\nn = comm.size()\n", "", "tf=1"},
        },
};

const Rule kHorovodOptimizer = {
    .id = "horovod-optimizer",
    .tier = Tier::review,
    .when = When::always,
    .title = "hvd.DistributedOptimizer and DistributedGradientTape become the platform's",
    .reason = "gradients are averaged over the ranks by the platform's collectives",
    .calls = {"hvd.DistributedOptimizer", "hvd.DistributedGradientTape"},
    .at_call = optimizer,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nopt = hvd.DistributedOptimizer(opt, "
             "compression=hvd.Compression.fp16)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\nopt = "
             "npu_distributed_optimizer_wrapper(opt)\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\ntape = hvd.DistributedGradientTape(tape, "
             "compression=hvd.Compression.fp16)\nhvd.broadcast_variables(model.variables, root_rank=0)\n",
             "import tensorflow as tf\nfrom npu_device.distribute import broadcast, distributed_gradient_tape\nimport "
             "npu_device as npu\nnpu.open().as_default()\ntape = "
             "distributed_gradient_tape(tape)\nbroadcast(model.variables, root_rank=0)\n",
             "tf=2"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nopt = hvd.DistributedOptimizer(opt, "
             "op=hvd.Adasum)\n",
             "", "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nc = hvd.Compression.fp16 if half else "
             "hvd.Compression.none\nopt = hvd.DistributedOptimizer(opt, compression=c, op=hvd.Adasum if adasum else "
             "hvd.Average)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_distributed_optimizer_wrapper\nc = "
             "None\nopt "
             "= npu_distributed_optimizer_wrapper(opt)\n",
             "tf=1"},
        },
};

const Rule kHorovodBroadcast = {
    .id = "horovod-broadcast",
    .tier = Tier::safe,
    .when = When::always,
    .title = "Horovod's broadcast hook and callback become the platform's, with the same root",
    .reason = "all ranks start from the root's values",
    .calls = {"hvd.BroadcastGlobalVariablesHook", "hvd.callbacks.BroadcastGlobalVariablesCallback"},
    .at_call = broadcast_hook,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nh = [hvd.BroadcastGlobalVariablesHook(2)]\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import NPUBroadcastGlobalVariablesHook, "
             "get_npu_rank_id\nh = [NPUBroadcastGlobalVariablesHook(2, get_npu_rank_id())]\n",
             "tf=1"},
            {"import tensorflow as tf\nfrom horovod.keras.callbacks import BroadcastGlobalVariablesCallback\nc = "
             "BroadcastGlobalVariablesCallback(1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import NPUBroadcastGlobalVariablesCallback\nc = "
             "NPUBroadcastGlobalVariablesCallback(1)\n",
             "tf=1"},
            {"import tensorflow as tf\nh = hooks.BroadcastGlobalVariablesHook(0)\n", "", "tf=1"},
        },
};

const Rule kHorovodCallback = {
    .id = "horovod-callback",
    .tier = Tier::safe,
    .when = When::always,
    .title = "Horovod's callbacks for metrics and learning rates become those of npu_callbacks",
    .reason = "they ask for the number of ranks and average over them",
    .calls = {"hvd.callbacks.MetricAverageCallback", "hvd.callbacks.LearningRateWarmupCallback",
              "hvd.callbacks.LearningRateScheduleCallback"},
    .at_call = callback,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow.keras as hvd\nc = "
             "[hvd.callbacks.MetricAverageCallback(), hvd.callbacks.LearningRateWarmupCallback(0.1, "
             "warmup_epochs=3)]\n",
             "import tensorflow as tf\nfrom npu_bridge.estimator.npu.npu_callbacks import LearningRateWarmupCallback, "
             "MetricAverageCallback\nc = [MetricAverageCallback(), LearningRateWarmupCallback(0.1, warmup_epochs=3)]\n",
             "tf=2"},
            {"import tensorflow as tf\nc = callbacks.MetricAverageCallback()\n", "", "tf=2"},
        },
};

const Rule kHorovodCollective = {
    .id = "horovod-collective",
    .tier = Tier::review,
    .when = When::always,
    .title = "Horovod's collectives become hccl_ops",
    .reason = "an average is a sum divided by the number of ranks; other reductions keep their operation",
    .calls = {"hvd.allreduce", "hvd.allgather", "hvd.broadcast", "hvd.broadcast_global_variables",
              "hvd.broadcast_variables"},
    .at_call = collective,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\ny = hvd.allreduce(x, op=hvd.Average)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size, hccl_ops\ny = "
             "hccl_ops.allreduce(x, \"sum\") / get_npu_rank_size()\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\ny = 2 ** hvd.allreduce(x)\nz = "
             "hvd.allreduce(x, average=False)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size, hccl_ops\ny = 2 ** "
             "(hccl_ops.allreduce(x, \"sum\") / get_npu_rank_size())\nz = hccl_ops.allreduce(x, \"sum\")\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\na = hvd.broadcast(x, 3)\nb = "
             "hvd.allgather(x)\nc = hvd.broadcast_global_variables(1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size, hccl_ops\na = "
             "hccl_ops.broadcast([x], 3)[0]\nb = hccl_ops.allgather(x, get_npu_rank_size())\n"
             "c = tf.group(*[tf.assign(v, b) for v, b in zip(tf.global_variables(), "
             "hccl_ops.broadcast(tf.global_variables(), 1))])\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.keras as hvd\nn = hvd.broadcast(3, 0, name='n')\ns = "
             "hvd.allreduce(model.evaluate(x))\nhvd.broadcast_global_variables(0)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size, hccl_ops\nn = "
             "tf.keras.backend.get_value(hccl_ops.broadcast([tf.constant(3)], 0)[0])\ns = "
             "tf.keras.backend.get_value(hccl_ops.allreduce(tf.constant(model.evaluate(x)), \"sum\") / "
             "get_npu_rank_size())\ntf.keras.backend.get_session().run(tf.group(*[tf.assign(v, b) for v, b in "
             "zip(tf.global_variables(), hccl_ops.broadcast(tf.global_variables(), 0))]))\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\ny = hvd.allreduce(x, op=hvd.Adasum)\n", "",
             "tf=1"},
        },
};

const Rule kHorovodLaunch = {
    .id = "horovod-launch",
    .tier = Tier::review,
    .when = When::always,
    .title = "horovod.run(f) becomes f()",
    .reason = "ranks are started from outside, by cairn launch or mpirun; each calls the function",
    .calls = {"hvd.run", "hvd.spark.run"},
    .at_call = launch,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod\nimport horovod.tensorflow as hvd\ndef main(x):\n    "
             "print(hvd.rank())\nhorovod.run(main, args=(1,), np=4)\n",
             "import tensorflow as tf\nfrom hccl.manage.api import get_rank_id\nimport npu_device as "
             "npu\nnpu.open().as_default()\ndef main(x):\n    print(get_rank_id())\nmain(*(1,))\n",
             "tf=2"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nlosses = hvd.run(main, np=4)\n", "", "tf=1"},
        },
};

}  // namespace cairn::migrate
