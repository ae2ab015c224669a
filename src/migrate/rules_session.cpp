// Sessions, session creators and the options of their ConfigProto.
#include <fmt/format.h>

#include <array>
#include <set>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

struct Site {
  std::string_view callee, parameters, config;
};

// Whatever takes a session's ConfigProto, with its parameter list.
constexpr Site kSessions[] = {
    {"tf.Session", "target graph config", "config"},
    {"tf.InteractiveSession", "target graph config", "config"},
    {"tf.train.MonitoredTrainingSession",
     "master is_chief checkpoint_dir scaffold hooks chief_only_hooks save_checkpoint_secs save_summaries_steps "
     "save_summaries_secs "
     "config stop_grace_period_secs log_step_count_steps max_wait_secs save_checkpoint_steps summary_dir",
     "config"},
    {"tf.train.SingularMonitoredSession", "hooks scaffold master config checkpoint_dir", "config"},
    {"tf.train.ChiefSessionCreator", "scaffold master config checkpoint_dir checkpoint_filename_with_path", "config"},
    {"tf.train.WorkerSessionCreator", "scaffold master config max_wait_secs", "config"},
    {"tf.train.Supervisor:managed_session", "master config start_standard_services close_summary_writer", "config"},
    {"tf.train.Supervisor:prepare_or_wait_for_session",
     "master config wait_for_checkpoint max_wait_secs start_standard_services", "config"},
    {"tf.train.SessionManager:prepare_session",
     "master init_op saver checkpoint_dir checkpoint_filename_with_path wait_for_checkpoint max_wait_secs config",
     "config"},
    {"tf.train.SessionManager:recover_session",
     "master saver checkpoint_dir checkpoint_filename_with_path wait_for_checkpoint max_wait_secs config", "config"},
    {"tf.train.SessionManager:wait_for_session", "master config max_wait_secs", "config"},
    {"tf.contrib.training.train",
     "train_op logdir master is_chief scaffold hooks chief_only_hooks save_checkpoint_secs save_summaries_steps config",
     "config"},
    {"tf.contrib.training.evaluate_once",
     "checkpoint_path master scaffold eval_ops feed_dict final_ops final_ops_feed_dict hooks config", "config"},
    {"tf.contrib.training.evaluate_repeatedly",
     "checkpoint_dir master scaffold eval_ops feed_dict final_ops final_ops_feed_dict eval_interval_secs hooks config",
     "config"},
    {"tf.contrib.slim.learning.train",
     "train_op logdir train_step_fn train_step_kwargs log_every_n_steps graph master is_chief global_step "
     "number_of_steps init_op "
     "init_feed_dict local_init_op init_fn ready_op summary_op save_summaries_secs summary_writer startup_delay_steps "
     "saver "
     "save_interval_secs sync_optimizer session_config",
     "session_config"},
    {"tf.contrib.slim.evaluation.evaluate_once",
     "master checkpoint_path logdir num_evals initial_op initial_op_feed_dict eval_op eval_op_feed_dict final_op "
     "final_op_feed_dict "
     "summary_op summary_op_feed_dict variables_to_restore session_config",
     "session_config"},
    {"tf.contrib.slim.evaluation.evaluation_loop",
     "master checkpoint_dir logdir num_evals initial_op initial_op_feed_dict eval_op eval_op_feed_dict final_op "
     "final_op_feed_dict "
     "summary_op summary_op_feed_dict variables_to_restore eval_interval_secs max_number_of_evaluations session_config",
     "session_config"},
};

const Site& site_of(std::string_view callee) {
  for (const Site& site : kSessions)
    if (site.callee == callee) return site;
  return kSessions[0];
}

// Scripts ported by hand give their ConfigProto the NpuOptimizer entry themselves.
bool carries_npu_entry(Context& file, NodeId config) {
  config = file.syntax.unwrap(config);
  if (file.resolver.is_instance(file.module, config, "npu.done.config")) return true;
  const std::string entry = ".graph_options.rewrite_options.custom_optimizers";
  return file.holds(entry) && file.holds(file.text(config) + entry);
}

// The options people add by hand, as lines that set them on the session's NpuOptimizer entry.
std::vector<std::string> parameter_lines(const Options& options, const std::string& tf) {
  std::vector<std::string> lines;
  auto bytes = [&](std::string_view key, const std::string& value) {
    lines.push_back(fmt::format("npu_options.parameter_map[\"{}\"].s = {}.compat.as_bytes(\"{}\")", key, tf, value));
  };
  auto flag = [&](std::string_view key) {
    lines.push_back(fmt::format("npu_options.parameter_map[\"{}\"].b = True", key));
  };
  if (!options.precision_mode.empty()) bytes("precision_mode", options.precision_mode);
  if (!options.dump_path.empty()) {
    flag("enable_dump");
    bytes("dump_path", options.dump_path);
  }
  if (!options.profiling_options.empty()) {
    flag("profiling_mode");
    bytes("profiling_options", options.profiling_options);
  }
  return lines;
}

bool has_option(const Options& options) {
  return !options.precision_mode.empty() || !options.dump_path.empty() || !options.profiling_options.empty();
}

// npu_config = npu_config_proto(...) with its options in lines of their own, when options are asked for.
bool hoist_config(Spot& spot, NodeId config, Rewrite& rewrite) {
  Context& file = spot.file;
  std::string tf = file.tensorflow();
  if (tf.empty()) return false;
  std::string made =
      rewrite.use("npu_config_proto") + (config == kNoNode ? "()" : "(config_proto=" + file.text(config) + ")");
  std::vector<std::string> lines = {
      "npu_config = " + made,
      "npu_options = next(o for o in npu_config.graph_options.rewrite_options.custom_optimizers if o.name == "
      "\"NpuOptimizer\")"};
  for (std::string& line : parameter_lines(file.options, tf)) lines.push_back(std::move(line));
  NodeId statement = file.syntax.statement(spot.call);
  Kind kind = file.syntax.kind(statement);
  if (kind != Kind::expression_statement && kind != Kind::with_statement && kind != Kind::return_statement)
    return false;
  if (!rewrite.insert_before(statement, lines)) return false;
  if (config != kNoNode)
    rewrite.replace(config, "npu_config");
  else
    rewrite.add_argument(spot.call, std::string(site_of(spot.name.name).config) + "=npu_config");
  return true;
}

// A MonitoredSession without a creator makes one without a config.
void session_creator(Spot& spot) {
  Context& file = spot.file;
  Arguments bound = file.bind(spot.call, "session_creator hooks stop_grace_period_secs");
  const NodeId creator = bound.value("session_creator");
  const std::string tf = file.tensorflow();
  const bool given = creator != kNoNode && file.syntax.kind(creator) != Kind::none;
  if (given || bound.open() || !bound.plain || spot.through_partial || tf.empty()) return;
  Rewrite rewrite(spot, "its session creator gets the platform's config");
  std::string made = fmt::format("{}.train.ChiefSessionCreator(config={}())", tf, rewrite.use("npu_config_proto"));
  if (creator != kNoNode)
    rewrite.replace(creator, made);
  else
    rewrite.add_argument(spot.call, "session_creator=" + made);
  rewrite.commit();
}

void session_config(Spot& spot) {
  if (spot.name.name == "tf.train.MonitoredSession") return session_creator(spot);
  const Site& site = site_of(spot.name.name);
  Arguments bound = spot.file.bind(spot.call, site.parameters);
  NodeId config = bound.value(site.config);
  if (config != kNoNode && carries_npu_entry(spot.file, config)) return;
  if (has_option(spot.file.options) && !bound.open() && !(config == kNoNode && spot.through_partial)) {
    Rewrite rewrite(spot);
    if (hoist_config(spot, config, rewrite)) {
      rewrite.commit();
      return;
    }
  }
  wrap_argument(spot, bound, site.config, kWrapConfig, true);
}

void graph_options(Spot& spot) {
  Context& file = spot.file;
  const bool graph = spot.name.name == "tf.GraphOptions";
  const Wrapper& wrapper = graph ? kWrapGraphOptions : kWrapOptimizerOptions;
  NodeId parent = file.syntax.parent(spot.call);
  if (file.syntax.kind(parent) == Kind::keyword_argument) parent = file.syntax.parent(parent);
  if (file.syntax.kind(parent) == Kind::argument_list &&
      file.calls(file.syntax.parent(parent), "npu." + std::string(wrapper.function)))
    return;
  Rewrite rewrite(spot);
  rewrite.wrap(spot.call, fmt::format("{}({}=", rewrite.use(std::string(wrapper.function)), wrapper.keyword), ")")
      .commit();
}

void not_closed(Context& file, const Rule& rule) {
  // x = tf.Session(...) without x.close() and without `with`.
  std::set<std::string_view> closed;
  for (NodeId call : file.module.calls_of("close")) {
    NodeId callee = file.syntax.child(call, Field::function);
    if (file.syntax.kind(callee) == Kind::attribute)
      closed.insert(file.syntax.text(file.syntax.child(callee, Field::object)));
  }
  for (NodeId call : file.module.calls_of("close_session"))
    for (NodeId argument : file.syntax.children(file.syntax.child(call, Field::arguments)))
      closed.insert(file.syntax.text(argument));
  for (NodeId item = 0; item < file.syntax.size(); ++item)
    if (file.syntax.kind(item) == Kind::with_item) {
      NodeId value = file.syntax.first(item);
      if (file.syntax.kind(value) == Kind::as_pattern) value = file.syntax.first(value);
      closed.insert(file.syntax.text(value));
    }
  for (NodeId call : file.module.calls_of("register"))  // atexit.register(close_session, s)
    for (NodeId argument : file.syntax.children(file.syntax.child(call, Field::arguments)))
      closed.insert(file.syntax.text(argument));
  for (NodeId call = 0; call < file.syntax.size(); ++call) {
    if (file.syntax.kind(call) != Kind::call) continue;
    NodeId assignment = file.syntax.parent(call);
    if (file.syntax.kind(assignment) != Kind::assignment || !file.calls(call, "tf.Session")) continue;
    std::string name = file.text(file.syntax.child(assignment, Field::left));
    if (closed.contains(name)) continue;
    file.find(
        rule, call, Severity::note, fmt::format("the session {} is never closed", name),
        fmt::format("here nothing need be done; on the Ascend platform call {}.close() when the work is done", name));
  }
}

}  // namespace

const Rule kSessionConfig = {
    .id = "session-config",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "a session's config goes through npu_config_proto",
    .reason = "the session's graph then runs on the device; whatever the config already says is kept",
    .calls = {"tf.Session", "tf.InteractiveSession", "tf.train.MonitoredTrainingSession",
              "tf.train.SingularMonitoredSession", "tf.train.ChiefSessionCreator", "tf.train.WorkerSessionCreator",
              "tf.train.Supervisor:managed_session", "tf.train.Supervisor:prepare_or_wait_for_session",
              "tf.train.SessionManager:prepare_session", "tf.train.SessionManager:recover_session",
              "tf.train.SessionManager:wait_for_session", "tf.train.MonitoredSession", "tf.contrib.training.train",
              "tf.contrib.training.evaluate_once", "tf.contrib.training.evaluate_repeatedly",
              "tf.contrib.slim.learning.train", "tf.contrib.slim.evaluation.evaluate_once",
              "tf.contrib.slim.evaluation.evaluation_loop"},
    .at_call = session_config,
    .examples =
        {
            {"import tensorflow as tf\nwith tf.Session() as sess:\n    sess.run(op)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nwith "
             "tf.Session(config=npu_config_proto()) as sess:\n    sess.run(op)\n"},
            {"import tensorflow as tf\nwith tf.train.MonitoredSession(hooks=h) as sess:\n    sess.run(op)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nwith "
             "tf.train.MonitoredSession(hooks=h, "
             "session_creator=tf.train.ChiefSessionCreator(config=npu_config_proto())) as sess:\n    sess.run(op)\n"},
            {"import tensorflow as tf\nsess = tf.Session('', None, cfg)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nsess = tf.Session('', None, "
             "npu_config_proto(config_proto=cfg))\n"},
            {"from tensorflow.compat.v1 import InteractiveSession as S\ns = S(config=c)\n",
             "from tensorflow.compat.v1 import InteractiveSession as S\nfrom npu_bridge.npu_init import "
             "npu_config_proto\ns = S(config=npu_config_proto(config_proto=c))\n"},
            {"import tensorflow as tf\nwith tf.train.MonitoredTrainingSession(config=c) as sess:\n    pass\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nwith "
             "tf.train.MonitoredTrainingSession(config=npu_config_proto(config_proto=c)) as sess:\n    pass\n"},
            {"import tensorflow as tf\nsv = tf.train.Supervisor(logdir='d')\nwith sv.managed_session(config=c) as "
             "sess:\n    pass\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nsv = "
             "tf.train.Supervisor(logdir='d')\nwith sv.managed_session(config=npu_config_proto(config_proto=c)) as "
             "sess:\n    pass\n"},
            {"import tensorflow as tf\nsess = tf.Session(config=c)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nnpu_config = "
             "npu_config_proto(config_proto=c)\n"
             "npu_options = next(o for o in npu_config.graph_options.rewrite_options.custom_optimizers if o.name == "
             "\"NpuOptimizer\")\n"
             "npu_options.parameter_map[\"precision_mode\"].s = tf.compat.as_bytes(\"allow_mix_precision\")\nsess = "
             "tf.Session(config=npu_config)\n",
             "precision_mode=allow_mix_precision"},
            {"import functools\nimport tensorflow as tf\nmake = functools.partial(tf.Session, graph=g)\nwith make() as "
             "a, make(config=c) as b:\n    pass\n",
             "import functools\nimport tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nmake = "
             "functools.partial(tf.Session, graph=g, config=npu_config_proto())\nwith make() as a, "
             "make(config=npu_config_proto(config_proto=c)) as b:\n    pass\n"},
            {"import requests\ns = requests.Session()\n", ""},
            {"import tensorflow as tf\nc = tf.ConfigProto()\no = "
             "c.graph_options.rewrite_options.custom_optimizers.add()\no.name = 'NpuOptimizer'\ns = "
             "tf.Session(config=c)\n",
             ""},
            {"import tensorflow as tf\nclass tf2:\n    pass\ndef f(tf):\n    return tf.Session()\n", ""},
        },
    .arguments_alone = true,
};

const Rule kGraphOptions = {
    .id = "graph-options",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "GraphOptions and OptimizerOptions switch the XLA compiler off",
    .reason = "two compilers for one graph get in each other's way",
    .calls = {"tf.GraphOptions", "tf.OptimizerOptions"},
    .at_call = graph_options,
    .examples =
        {
            {"import tensorflow as tf\nc = "
             "tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=0)))\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_graph_options, npu_optimizer_options\n"
             "c = "
             "tf.ConfigProto(graph_options=npu_graph_options(graph_options=tf.GraphOptions(optimizer_options=npu_"
             "optimizer_options(optimizer_options=tf.OptimizerOptions(opt_level=0)))))\n"},
            {"class GraphOptions:\n    pass\nimport tensorflow\ng = GraphOptions()\n", ""},
        },
};

const Rule kSessionNotClosed = {
    .id = "session-not-closed",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "a session that is never closed",
    .reason = "the device is released when the session is closed",
    .calls = {},
    .at_file = not_closed,
    .examples = {{"import tensorflow as tf\ns = tf.Session(config=c)\ns.run(x)\n",
                  "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\ns = "
                  "tf.Session(config=npu_config_proto(config_proto=c))\ns.run(x)\n"},
                 {"import tensorflow as tf\nwith tf.Session(config=c) as s:\n    pass\n",
                  "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_config_proto\nwith "
                  "tf.Session(config=npu_config_proto(config_proto=c)) as s:\n    pass\n",
                  "", false}},
};

}  // namespace cairn::migrate
