// Horovod's TensorFlow and Keras interfaces. A file's Horovod is replaced as a whole, or stays as a whole while one use of
// it has no peer: ranks of two libraries in one program would not know of each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
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

std::string use_collectives(Rewrite& rewrite, const Context& file) {
  return use(rewrite, file, "hccl_ops", "npu_bridge.hccl:hccl_ops");
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

void query(Spot& spot) {
  if (spot.name.name == "hvd.shutdown") return shutdown(spot);
  Rewrite rewrite(spot, fmt::format("{} asks the platform's collectives", spot.name.name));
  const std::string name = spot.name.name == "hvd.rank"         ? "rank_id"
                           : spot.name.name == "hvd.size"       ? "rank_size"
                           : spot.name.name == "hvd.local_rank" ? "local_rank_id"
                                                                : "local_rank_size";
  rewrite.replace(spot.file.syntax.child(spot.call, Field::function),
                  use(rewrite, spot.file, "get_npu_" + name, "hccl.manage.api:get_" + name));
  rewrite.commit();
}

// hvd.Average and the like, as an argument: its last name, "" when it is anything else.
std::string reduction(Context& file, NodeId value) {
  if (value == kNoNode) return "";
  for (const ApiName& name : file.resolver.names(file.module, value))
    if (name.name.starts_with("hvd.")) {
      file.rewritten[value] = kHorovodOptimizer.id;
      return name.name.substr(4);
    }
  return "?";
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
  std::string op = reduction(file, bound.value("op"));
  if (op != "" && op != "Average")
    return left(spot, fmt::format("reduces by {}", op == "?" ? "an unknown operation" : op),
                "the platform's optimizer averages; reduce by hand with hccl_ops.allreduce");
  Rewrite rewrite(spot);
  rewrite.replace(file.syntax.child(spot.call, Field::function),
                  tape ? rewrite.use("npu_device.distribute:distributed_gradient_tape")
                       : use(rewrite, file, "npu_distributed_optimizer_wrapper",
                             "npu_device.distribute:npu_distributed_keras_optimizer_wrapper"));
  std::string dropped;
  for (const auto& [name, given] : bound.given) {
    if (name == wrapped) continue;
    dropped += fmt::format("{}{}", dropped.empty() ? "" : ", ", name);
    for (NodeId node = given.argument; node < file.syntax[given.argument].after; ++node)
      if (Kind kind = file.syntax.kind(node); kind == Kind::attribute || kind == Kind::identifier)
        file.rewritten[node] = spot.rule.id;
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
  std::string op = reduction(file, bound.value("op"));
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
  rewrite.commit();
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
    rewrite.commit();
    return;
  }
  if (spot.name.name == "hvd.broadcast") {
    Arguments bound = file.bind(spot.call, "tensor root_rank name");
    if (bound.open() || !bound.plain || !bound.has("tensor") || !bound.has("root_rank"))
      return left(spot, "gets its arguments through * or **", "write it with hccl_ops.broadcast by hand");
    rewrite.replace(callee, use_collectives(rewrite, file) + ".broadcast");
    if (bound.has("name")) rewrite.remove_arguments(spot.call, {bound.given["name"].argument});
    rewrite.wrap(bound.value("tensor"), "[", "]").insert(syntax[spot.call].end, "[0]", -(int64_t{1} << 41));
    rewrite.commit();
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
  rewrite.replace(spot.call,
                  fmt::format("{0}.group(*[{0}.assign(v, b) for v, b in zip({1}, {2}.broadcast({1}, {3}))])", tf,
                              variables, use_collectives(rewrite, file), file.text(bound.value("root_rank"))));
  rewrite.commit();
}

// The attribute chain around a name, and whether a rule takes care of any part of it.
NodeId chain_of(const Context& file, NodeId node, bool& mapped) {
  const Syntax& syntax = file.syntax;
  mapped = file.rewritten.contains(node);
  while (syntax.kind(syntax.parent(node)) == Kind::attribute && syntax[node].field == Field::object) {
    node = syntax.parent(node);
    mapped = mapped || file.rewritten.contains(node);
  }
  return node;
}

// Whether this mention of a name bound by an import is a use of it.
bool is_use_of_import(const Context& file, NodeId node) {
  const Syntax& syntax = file.syntax;
  if (syntax[node].field == Field::attribute || syntax.ancestor(node, Kind::import_statement) != kNoNode ||
      syntax.ancestor(node, Kind::import_from_statement) != kNoNode)
    return false;
  if (syntax.kind(syntax.parent(node)) == Kind::keyword_argument && syntax[node].field == Field::name) return false;
  uint32_t scope = kNoScope;
  for (uint32_t binding : file.module.lookup(syntax.text(node), node, scope)) {
    Bound how = file.module.bindings()[binding].how;
    if (how == Bound::import || how == Bound::from_import) return true;
  }
  return false;
}

// Another module of the project takes this name from the file.
bool is_exported(const Context& file, std::string_view name) {
  for (const auto& other : file.project.modules())
    for (const Import& import : other->imports())
      if (import.member == name && file.project.find(other->path(), import.module) == file.module.path()) return true;
  return false;
}

void report_use(Context& file, const Rule& rule, NodeId chain, const std::set<uint32_t>& reported) {
  std::string use;
  for (const ApiName& name : file.resolver.names(file.module, chain)) use = name.name;
  if (use.empty() || reported.contains(file.module.lines().at(file.syntax[chain].begin).line)) return;
  file.find(rule, chain, Severity::error, fmt::format("{} has no peer on the platform", use),
            use.ends_with("Compression") ? "leave it out: compression is an option of the collectives"
                                         : "rewrite it by hand; Horovod stays in this file until then");
}

bool is_horovod_rule(std::string_view id) { return id.starts_with("horovod-"); }

void take_back(Context& file, const Rule& rule, NodeId import) {
  size_t before = file.changes.size();
  std::erase_if(file.changes, [](const Change& change) { return is_horovod_rule(change.rule); });
  std::erase_if(file.rewritten, [](const auto& entry) { return is_horovod_rule(entry.second); });
  std::erase_if(file.result.findings, [](const Finding& finding) {
    return is_horovod_rule(finding.rule) && finding.severity == Severity::note;
  });
  if (size_t count = before - file.changes.size())
    file.find(rule, import, Severity::warning, "Horovod stays in this file",
              fmt::format("{} of its uses could be replaced, and are once the others are rewritten by hand", count));
}

void remove_import(Context& file, const Rule& rule, const std::vector<const Import*>& removed) {
  const Syntax& syntax = file.syntax;
  const NodeId statement = removed[0]->statement;
  Rewrite rewrite(file, rule, removed[0]->entry, "the import of Horovod goes: nothing of it is left");
  std::vector<NodeId> entries = syntax.children(statement);
  std::erase_if(entries, [&](NodeId entry) { return syntax[entry].field == Field::module_name; });
  if (entries.size() > removed.size()) {
    // Of several names each goes with the comma before it, the first ones with the comma behind.
    auto goes = [&](NodeId entry) {
      return std::any_of(removed.begin(), removed.end(), [&](const Import* import) { return import->entry == entry; });
    };
    size_t kept = 0;
    while (goes(entries[kept])) ++kept;
    if (kept) rewrite.replace(Span{syntax[entries[0]].begin, syntax[entries[kept]].begin}, "");
    for (size_t i = kept + 1; i < entries.size(); ++i)
      if (goes(entries[i])) rewrite.replace(Span{syntax[entries[i - 1]].end, syntax[entries[i]].end}, "");
    rewrite.commit();
    return;
  }
  // Alone: the whole line, unless its block would be empty.
  NodeId block = syntax.parent(statement);
  uint32_t line = file.module.lines().at(syntax[statement].begin).line;
  std::string_view text = file.module.lines().line(file.module.text(), line);
  bool whole_line = text.find_first_not_of(" \t") != text.npos &&
                    text.substr(text.find_first_not_of(" \t")) == syntax.text(statement);
  bool only = syntax.kind(block) == Kind::block && syntax.children(block).size() == 1;
  if (only || !whole_line || line == file.module.lines().count())
    rewrite.replace(statement, "pass");
  else
    rewrite.replace(Span{file.module.lines().start(line), file.module.lines().start(line + 1)}, "");
  rewrite.commit();
}

void whole_or_not(Context& file, const Rule& rule) {
  const Syntax& syntax = file.syntax;
  if (file.module.text().find("horovod") == std::string::npos) return;
  std::map<std::string_view, const Import*> imports;  // by the name they bind
  std::vector<const Import*> removable;
  const Import* first = nullptr;
  bool whole = true;
  for (const Import& import : file.module.imports()) {
    std::string dotted = import.member.empty() || import.star ? import.module : import.module + "." + import.member;
    std::string api = canonical(dotted).name;
    if (import.module.starts_with('.') || !(api == "hvd" || api.starts_with("hvd."))) continue;
    if (!file.project.find(file.module.path(), import.module).empty()) continue;  // inside Horovod's own source
    if (!first) first = &import;
    if (import.star) {
      file.find(rule, import.entry, Severity::warning, "a star import of Horovod", "import its names one by one");
      whole = false;
    } else {
      whole = whole && !is_exported(file, import.alias);
      imports[import.alias] = &import;
      removable.push_back(&import);
    }
  }
  if (!first) return;
  std::set<uint32_t> reported;
  for (const Finding& finding : file.result.findings)
    if (is_horovod_rule(finding.rule)) reported.insert(finding.line);
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (syntax.kind(node) != Kind::identifier || !imports.contains(syntax.text(node)) || !is_use_of_import(file, node))
      continue;
    bool mapped = false;
    NodeId chain = chain_of(file, node, mapped);
    if (mapped) continue;
    whole = false;
    report_use(file, rule, chain, reported);
  }
  if (!whole) return take_back(file, rule, first->entry);
  if (file.module.path().ends_with("__init__.py") && file.rewritten.empty()) return;
  std::map<NodeId, std::vector<const Import*>> statements;
  for (const Import* import : removable) statements[import->statement].push_back(import);
  for (const auto& [statement, removed] : statements) remove_import(file, rule, removed);
}

}  // namespace

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
             "import tensorflow as tf\nfrom hccl.manage.api import get_local_rank_id, get_rank_size\nimport npu_device as "
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
    .calls = {"hvd.rank", "hvd.size", "hvd.local_rank", "hvd.local_size", "hvd.shutdown"},
    .at_call = query,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hv\nn = hv.size() * hv.local_rank()\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_local_rank_id, get_npu_rank_size\nn = "
             "get_npu_rank_size() * get_npu_local_rank_id()\n",
             "tf=1"},
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
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\ny = hvd.allreduce(x, op=hvd.Adasum)\n", "",
             "tf=1"},
        },
};

const Rule kHorovodOther = {
    .id = "horovod-import",
    .tier = Tier::safe,
    .when = When::always,
    .title = "Horovod is replaced in a file as a whole, its import too, or left as a whole; what stops it is reported",
    .reason = "ranks of two libraries in one program would not know of each other",
    .calls = {},
    .at_file = whole_or_not,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nn = hvd.size()\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import get_npu_rank_size\nn = get_npu_rank_size()\n",
             "tf=1"},
            {"import tensorflow as tf\nimport horovod.tensorflow as hvd\nn = hvd.size()\ny = hvd.alltoall(x)\n", "",
             "tf=1"},
        },
};

}  // namespace cairn::migrate
