// Devices, placement, compilers and environment.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

bool contains_word(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

void device(Spot& spot) {
  Context& file = spot.file;
  Arguments bound = file.bind(spot.call, "device_name_or_function");
  NodeId name = bound.value("device_name_or_function");
  if (name == kNoNode || file.syntax.kind(name) == Kind::none) return;
  std::string known;
  bool literal = false, all_cpu = true;
  for (const auto& [module, node] : file.resolver.literals(file.module, name)) {
    std::string text;
    if (!string_value(module->syntax(), node, text)) text = std::string(module->syntax().text(node));
    literal = true;
    known += text + " ";
    all_cpu = all_cpu && !contains_word(text, {"gpu", "tpu"});
  }
  if (literal && all_cpu && !contains_word(file.text(name), {"gpu"})) return;
  if (!contains_word(known + file.text(name), {"gpu", "tpu"})) {
    file.find(spot.rule, spot.call, Severity::note, "cannot tell which device this is",
              "a GPU's name runs here too: operators are placed where they can be");
    return;
  }
  std::string quote = file.text(name).find('"') != std::string::npos ? "\"" : "'";
  Rewrite(spot).replace(name, quote + "/cpu:0" + quote).commit();
}

void neutral(Spot& spot) {
  neutralise(spot, fmt::format("{} is taken out: there is no GPU to set up", spot.name.name));
}

void soft_placement(Spot& spot) {
  NodeId value = spot.file.bind(spot.call, "enabled").value("enabled");
  if (value == kNoNode || spot.file.syntax.kind(value) == Kind::true_) return;
  Rewrite(spot).replace(value, "True").commit();
}

void memory_limit(Spot& spot) {
  NodeId value = spot.file.bind(spot.call, "memory_limit experimental_priority").value("memory_limit");
  if (value == kNoNode || spot.file.syntax.kind(value) == Kind::none) return;
  Rewrite(spot).replace(value, "None").commit();
}

void jit_scope(Spot& spot) {
  Arguments bound = spot.file.bind(spot.call, "compile_ops separate_compiled_gradients");
  NodeId value = bound.value("compile_ops");
  if (bound.open() || !bound.plain || spot.file.syntax.kind(value) == Kind::false_) return;
  Rewrite rewrite(spot);
  if (value == kNoNode)
    rewrite.add_argument(spot.call, "compile_ops=False");
  else
    rewrite.replace(value, "False");
  rewrite.commit();
}

void experimental_options(Spot& spot) {
  NodeId value = spot.file.bind(spot.call, "options").value("options");
  if (value == kNoNode || spot.file.text(value).find("experimental_options") != std::string::npos) return;
  Rewrite rewrite(spot);
  rewrite.wrap(value, fmt::format("dict({}, **(", rewrite.use("experimental_options")), "))").commit();
}

void cuda_environment(Context& file, const Rule& rule) {
  const Syntax& syntax = file.syntax;
  for (std::string_view name : {"CUDA_VISIBLE_DEVICES", "TF_XLA_FLAGS", "XLA_FLAGS", "NVIDIA_VISIBLE_DEVICES"}) {
    if (file.module.text().find(name) == std::string::npos) continue;
    for (NodeId node = 0; node < syntax.size(); ++node) {
      std::string text;
      if (syntax.kind(node) != Kind::string || !string_value(syntax, node, text) || text != name) continue;
      file.find(rule, node, Severity::note, fmt::format("the environment variable {} is used", name),
                name.starts_with("CUDA")
                    ? "it does nothing here; devices are chosen by ASCEND_DEVICE_ID or ASCEND_RT_VISIBLE_DEVICES"
                    : "it does nothing here");
    }
  }
}

void control_flow(Context& file, const Rule& rule) {
  const Syntax& syntax = file.syntax;
  if (file.options.control_flow_v2) {
    if (!file.own.entry || file.module.mentions("enable_control_flow_v2")) return;
    std::string tf = file.tensorflow();
    for (const Import& import : file.module.imports()) {
      if (tf.empty() || import.alias != tf || syntax.parent(import.statement) != 0) continue;
      Rewrite rewrite(file, rule, import.statement);
      if (rewrite.insert_after(import.statement,
                               {tf + ".enable_control_flow_v2()", tf + ".enable_resource_variables()"}))
        rewrite.commit();
      return;
    }
    return;
  }
  size_t count = 0;
  NodeId first = kNoNode;
  for (std::string_view name :
       {"while_loop", "cond", "case", "dynamic_rnn", "bidirectional_dynamic_rnn", "map_fn", "scan", "foldl"})
    for (NodeId call : file.module.calls_of(name))
      for (const ApiName& target : file.targets(call))
        if (target.name == "tf." + std::string(name) || target.name == "tf.nn." + std::string(name)) {
          first = std::min(first, call);
          ++count;
          break;
        }
  if (count)
    file.find(rule, first, Severity::note,
              fmt::format("control flow of the first version: {} call{}", count, count == 1 ? "" : "s"),
              "here nothing need be done, with dynamic shapes too; on the Ascend platform use --control-flow-v2 or "
              "ENABLE_FORCE_V2_CONTROL=1");
}

void half_sum(Spot& spot) {
  Context& file = spot.file;
  NodeId list = file.syntax.child(spot.call, Field::arguments);
  if (list == kNoNode || file.syntax.text(list).find("float16") == std::string_view::npos) return;
  file.find(spot.rule, spot.call, Severity::note, "a sum over float16",
            "here nothing need be done: sums are kept in float32; on the Ascend platform cast to float32 first or add "
            "ReduceSumD to the black list of modify_mixlist");
}

void parameter_server(Spot& spot) {
  spot.file.find(spot.rule, spot.call, Severity::warning,
                 fmt::format("{} belongs to parameter-server training", spot.name.name),
                 "use ranks with all-reduce instead, or NPURunConfig(distribute=ParameterServerStrategy(), "
                 "mix_compile_mode=True) with NPUEstimator");
}

}  // namespace

const Rule kDevice = {
    .id = "device",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "GPU and TPU names in tf.device become '/cpu:0'",
    .reason = "such devices do not exist here; names of CPUs and job devices stay",
    .calls = {"tf.device"},
    .at_call = device,
    .examples =
        {
            {"from tensorflow import device\nwith device('/gpu:%d' % i):\n    pass\n",
             "from tensorflow import device\nwith device('/cpu:0'):\n    pass\n", "tf=1"},
            {"import tensorflow as tf1\nwith tf1.device(\"/device:GPU:1\"):\n    pass\n",
             "import tensorflow as tf1\nwith tf1.device(\"/cpu:0\"):\n    pass\n", "tf=1"},
            {"import tensorflow as tf\nwith tf.device('/job:worker/cpu:0'):\n    pass\n", "", "tf=1"},
            {"import torch\nimport tensorflow\nd = torch.device('cuda:0')\n", "", "tf=1"},
        },
};

const Rule kNeutralised = {
    .id = "gpu-setup",
    .tier = Tier::safe,
    .when = When::always,
    .title = "calls that set up a GPU's memory are taken out",
    .reason = "there is no GPU to set up",
    .calls = {"tf.config.experimental.set_memory_growth", "tf.config.experimental.set_virtual_device_configuration",
              "tf.config.set_logical_device_configuration"},
    .at_call = neutral,
    .examples =
        {
            {"import tensorflow as tf\nfor g in gpus:\n    tf.config.experimental.set_memory_growth(g, True)\n",
             "import tensorflow as tf\nfor g in gpus:\n    pass\n"},
            {"import tensorflow as tf\nx = tf.config.experimental.set_memory_growth(g, True) or 1\n",
             "import tensorflow as tf\nx = None or 1\n"},
            {"import tensorflow\ncfg.set_memory_growth(g)\n", ""},
        },
};

const Rule kSoftPlacement = {
    .id = "soft-placement",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "soft device placement is on",
    .reason = "an operator without a kernel on the named device goes where it has one",
    .calls = {"tf.config.set_soft_device_placement"},
    .at_call = soft_placement,
    .examples =
        {
            {"import tensorflow as tf\ntf.config.set_soft_device_placement(False)\n",
             "import tensorflow as tf\ntf.config.set_soft_device_placement(True)\n", "tf=1"},
            {"import tensorflow as tf\ntf.config.set_soft_device_placement(True)\n", "", "tf=1"},
        },
};

const Rule kMemoryLimit = {
    .id = "memory-limit",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "a virtual device has no memory limit",
    .reason = "the limit is meant for a GPU",
    .calls = {"tf.config.experimental.VirtualDeviceConfiguration"},
    .at_call = memory_limit,
    .examples = {{"import tensorflow as tf\nv = tf.config.experimental.VirtualDeviceConfiguration(memory_limit=1024)\n",
                  "import tensorflow as tf\nv = tf.config.experimental.VirtualDeviceConfiguration(memory_limit=None)\n",
                  "tf=1"},
                 {"import tensorflow as tf\nv = VirtualDeviceConfiguration(memory_limit=1024)\n", "", "tf=1"}},
};

const Rule kJitScope = {
    .id = "jit-scope",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "XLA's jit_scope compiles nothing",
    .reason = "two compilers for one graph get in each other's way",
    .calls = {"tf.xla.experimental.jit_scope", "tf.contrib.compiler.jit.experimental_jit_scope"},
    .at_call = jit_scope,
    .examples =
        {
            {"import tensorflow as tf\nwith tf.xla.experimental.jit_scope():\n    pass\n",
             "import tensorflow as tf\nwith tf.xla.experimental.jit_scope(compile_ops=False):\n    pass\n", "tf=1"},
            {"import tensorflow as tf\nwith tf.xla.experimental.jit_scope(False):\n    pass\n", "", "tf=1"},
        },
};

const Rule kExperimentalOptions = {
    .id = "experimental-options",
    .tier = Tier::review,
    .when = When::platform,
    .title = "set_experimental_options gets the platform's switches beside the script's own",
    .reason = "the script's own entries win",
    .calls = {"tf.config.optimizer.set_experimental_options"},
    .at_call = experimental_options,
    .examples =
        {
            {"import tensorflow as tf\ntf.config.optimizer.set_experimental_options({'remapping': False})\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import "
             "experimental_options\ntf.config.optimizer.set_experimental_options(dict(experimental_options, "
             "**({'remapping': False})))\n",
             "platform tf=1"},
            {"import tensorflow as tf\ntf.config.optimizer.set_experimental_options({'remapping': False})\n", "",
             "tf=1"},
        },
};

const Rule kCudaEnvironment = {
    .id = "gpu-environment",
    .tier = Tier::advice,
    .when = When::always,
    .title = "environment variables of GPUs and XLA",
    .reason = "they have no effect here",
    .calls = {},
    .at_file = cuda_environment,
    .examples = {{"import tensorflow as tf\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", ""},
                 {"import tensorflow as tf\nimport os\nos.environ['HOME'] = '/tmp'\n", "", "", false}},
};

const Rule kControlFlow = {
    .id = "control-flow-v2",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "control flow of the second version, asked for by --control-flow-v2",
    .reason = "on the Ascend platform graphs of dynamic shape need it; here both versions run",
    .calls = {},
    .at_file = control_flow,
    .examples =
        {
            {"import tensorflow as tf\ny = tf.while_loop(c, b, [x])\nif __name__ == '__main__':\n    pass\n",
             "import tensorflow as tf\ntf.enable_control_flow_v2()\ntf.enable_resource_variables()\ny = "
             "tf.while_loop(c, b, [x])\nif __name__ == '__main__':\n    pass\n",
             "control_flow_v2 tf=1"},
            {"import tensorflow as tf\ny = tf.while_loop(c, b, [x])\n", "", "tf=1"},
        },
};

const Rule kHalfSum = {
    .id = "half-sum",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "sums over float16",
    .reason = "on the Ascend hardware a float16 sum may run on one core",
    .calls = {"tf.reduce_sum", "tf.math.reduce_sum"},
    .at_call = half_sum,
    .examples = {{"import tensorflow as tf\ns = tf.reduce_sum(tf.cast(x, tf.float16))\n", "", "tf=1"},
                 {"import tensorflow as tf\ns = tf.reduce_sum(tf.cast(x, tf.float32))\n", "", "tf=1", false}},
};

const Rule kParameterServer = {
    .id = "parameter-server",
    .tier = Tier::advice,
    .when = When::always,
    .title = "parameter servers",
    .reason = "no rewrite keeps their meaning",
    .calls = {"tf.train.Server", "tf.train.ClusterSpec", "tf.train.replica_device_setter",
              "tf.distribute.ParameterServerStrategy", "tf.distribute.Server"},
    .at_call = parameter_server,
    .examples = {{"import tensorflow as tf\ns = tf.train.Server(c)\n", ""},
                 {"import tensorflow as tf\nfrom web import Server\ns = Server(c)\n", "", "", false}},
};

}  // namespace cairn::migrate
