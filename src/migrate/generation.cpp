// Collects what each script says about its interface, and settles the scripts that say nothing by their neighbours.
#include "migrate/generation.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "migrate/api_table.h"
#include "migrate/parallel.h"
#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

// A use of a definition of the project: `node` in the file stands for `definition` of module `module`.
struct DefinitionUse {
  NodeId node;
  size_t module;
  NodeId definition;
};

// What one script says. Weights count uses; guarded uses count for neither interface.
struct Evidence {
  size_t v1 = 0, v2 = 0;
  bool tensorflow = false;  // it imports TensorFlow or what stands on it, or gets a name of it from a project's module
  bool decided_v1 = false;  // switches the second interface's behaviour off
  bool v2_behavior = false, eager = false;  // switches on what the second interface does, or eager execution only
  int platform = 0;  // the interface of the platform's modules that it imports: an earlier run, or a port by hand
  size_t horovod = 0, strategies = 0;
  std::vector<NodeId> keras_fits;
  std::vector<NodeId> computing;
  std::vector<DefinitionUse> definitions;
  std::vector<NameUse> names;
};

bool one_of(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool begins_with_one_of(std::string_view name, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Work of files, records, flags and messages: no reason to open a device.
bool is_host_only(std::string_view name) {
  static constexpr std::array prefixes = {"tf.io.",
                                          "tf.data.",
                                          "tf.gfile",
                                          "tf.python_io.",
                                          "tf.app",
                                          "tf.flags",
                                          "tf.logging",
                                          "tf.compat.",
                                          "tf.errors.",
                                          "tf.config.",
                                          "tf.test.",
                                          "tf.sysconfig.",
                                          "tf.version",
                                          "tf.__",
                                          "tf.train.Byte",
                                          "tf.train.Int64",
                                          "tf.train.Float",
                                          "tf.train.Feature",
                                          "tf.train.Sequ",
                                          "tf.train.Exam",
                                          "tf.keras.utils.",
                                          "tf.keras.datasets.",
                                          "tf.keras.preprocessing.",
                                          "tf.core.",
                                          "tf.python.",
                                          "tf.train.summary_iterator",
                                          "tf.get_logger",
                                          "tf.autograph.set_verbosity"};
  char kind = api_kind(name);
  return kind == 'm' || kind == 'v' || name == "tf" || begins_with_one_of(name, prefixes);
}

// Names of compat.v1 that build graphs or run them; scripts of both interfaces use its others (logging, gfile, the default graph).
bool is_graph_name(std::string_view name) {
  static constexpr std::array names = {
      "tf.Session",      "tf.InteractiveSession", "tf.placeholder",         "tf.placeholder_with_default",
      "tf.get_variable", "tf.variable_scope",     "tf.estimator.Estimator", "tf.train.MonitoredTrainingSession"};
  return one_of(name, names) || is_subclass(name, "tf.train.Optimizer") || name.starts_with("tf.layers.") ||
         name.starts_with("tf.estimator.tpu.");
}

// What a framework's name says wherever it is used.
struct NameFacts {
  ApiName name;
  bool host_only = false;
  bool switches = false;        // it chooses the interface, or eager execution
  bool v1 = false, v2 = false;  // of which interface its use is evidence
};

NameFacts facts_of(ApiName api) {
  NameFacts found;
  const std::string& name = api.name;
  found.host_only = is_host_only(name);
  found.switches = name == "tf.disable_v2_behavior" || name == "tf.disable_eager_execution" ||
                   name == "tf.enable_v2_behavior" || name == "tf.enable_eager_execution";
  const std::string_view listed = listed_part(name);
  const bool contrib = name.starts_with("tf.contrib."), exists1 = api_exists(listed, 1),
             exists2 = api_exists(listed, 2);
  const bool elder =
      !api.elder.empty() && !api.inner;  // Keras 2.15 has that module for scripts of the first interface alone
  found.v1 = contrib || elder || (api.compat == 1 ? is_graph_name(name) : api.compat == 0 && exists1 && !exists2);
  found.v2 = (api.compat == 0 && ((exists2 && !exists1) || name == "tf.function" || name == "tf.GradientTape" ||
                                  name == "tf.config.run_functions_eagerly")) ||
             name == "hvd.DistributedGradientTape";
  found.name = std::move(api);
  return found;
}

void note_switch(Evidence& found, const Module& module, NodeId node, const std::string& name) {
  if (name.starts_with("tf.disable_")) {
    found.decided_v1 = found.decided_v1 || !asks_for_names(module, node);
    return;
  }
  bool always = true;  // not by an option, without which the script has sessions
  if (const Syntax& syntax = module.syntax(); name == "tf.enable_eager_execution")
    for (NodeId up = syntax.ancestor(node, Kind::if_statement); up != kNoNode;
         up = syntax.ancestor(up, Kind::if_statement))
      always = always && up == main_guard(syntax);
  bool& switched = name == "tf.enable_v2_behavior" ? found.v2_behavior : found.eager;
  switched = switched || always;
}

void weigh(Evidence& found, const Module& module, NodeId node, const NameFacts& facts) {
  if (facts.switches) return note_switch(found, module, node, facts.name.name);
  if ((!facts.v1 && !facts.v2) || asks_for_names(module, node)) return;
  found.v1 += facts.v1;
  found.v2 += facts.v2;
}

/// What starts ranks of any framework.
bool starts_ranks(std::string_view name) { return name == "hvd.run" || name == "hvd.spark.run"; }

void weigh_import(Evidence& found, const Module& module, const Import& import) {
  std::string dotted = import.member.empty() || import.star ? import.module : import.module + "." + import.member;
  ApiName api = canonical(dotted);
  const bool ours = api.name == "tf" || api.name.starts_with("tf.") || api.name == "hvd" ||
                    (api.name.starts_with("hvd.") && !starts_ranks(api.name));
  const bool platform = import.module.starts_with("npu_");
  found.tensorflow = found.tensorflow || ours || platform;
  if (asks_for_names(module, import.statement)) return;
  // What an earlier run has imported speaks as what it took the place of.
  const bool both = import.module == "npu_bridge.estimator.npu.npu_callbacks";
  if ((import.module.starts_with("npu_bridge") && !both) || import.module.starts_with("npu_device.compat.v1"))
    found.platform = 1;
  else if (import.module.starts_with("npu_device") && !found.platform)
    found.platform = 2;
  if (import.module.starts_with("npu_bridge") &&
      (import.member == "init_resource" || import.member.starts_with("get_npu_rank") ||
       import.member == "NPUBroadcastGlobalVariablesHook"))
    ++found.horovod;
  if (import.member == "npu_strategy" || dotted.starts_with("official.utils.misc.distribution_utils"))
    ++found.strategies;
  if (!ours) return;
  if (api.name == "tf" && api.compat == 1) found.v1 += 3;
  if (api.name == "tf" && api.compat == 2) found.v2 += 3;
  if (api.name.starts_with("tf.contrib") || (!api.elder.empty() && !api.inner)) ++found.v1;
}

// KERAS_BACKEND is set to something else than TensorFlow.
bool has_other_backend(const Module& module) {
  static constexpr std::array backends = {"torch", "jax", "theano", "cntk", "mxnet"};
  size_t at = module.text().find("KERAS_BACKEND");
  if (at == std::string::npos) return false;
  std::string_view rest = std::string_view(module.text()).substr(at + 13, 24);
  return std::any_of(backends.begin(), backends.end(), [&](const char* name) { return rest.find(name) != rest.npos; });
}

// The name or the outermost attribute chain that an expression uses, kNoNode for other nodes.
bool is_use(const Syntax& syntax, NodeId node) {
  Kind kind = syntax.kind(node);
  if (kind != Kind::attribute && kind != Kind::identifier) return false;
  const Node& at = syntax[node];
  Kind parent = at.parent == kNoNode ? Kind::other : syntax.kind(at.parent);
  if (parent == Kind::attribute) return false;
  if (kind == Kind::attribute) return true;
  bool binds = at.field == Field::name || at.field == Field::alias ||
               (parent == Kind::assignment && at.field == Field::left) || parent == Kind::parameters ||
               parent == Kind::global_statement || parent == Kind::nonlocal_statement;
  return !binds && parent != Kind::dotted_name;
}

// `own`: the script has the name from the framework, or the framework itself from a module of the project; else only what a module of
// the project makes of it.
void note_use(Evidence& found, const Module& module, NodeId node, const NameFacts& facts, bool own, bool alone) {
  const ApiName& name = facts.name;
  if (starts_ranks(name.name)) return;
  if (own) {
    found.tensorflow = true;
    weigh(found, module, node, facts);
  }
  if (name.name.starts_with("hvd.") || !facts.host_only) found.computing.push_back(node);
  found.horovod += name.name == "hvd.DistributedOptimizer" || name.name == "hvd.init";
  found.strategies +=
      name.name == "tf.distribute.MirroredStrategy" || name.name == "tf.distribute.MultiWorkerMirroredStrategy";
  found.names.push_back({node, name, alone});
}

// Whether the first name of a chain stands for a framework or a part of one.
bool begins_with_framework(Resolver& resolver, const Module& module, NodeId node) {
  const Syntax& syntax = module.syntax();
  while (syntax.kind(node) == Kind::attribute) node = syntax.child(node, Field::object);
  const Values& values = resolver.values(module, node);
  return std::any_of(values.begin(), values.end(), [](const Value& value) {
    return value.is == Value::Is::named && is_reported_framework(value.name);
  });
}

Evidence evidence_of(const Project& project, const Module& module) {
  Evidence found;
  Resolver resolver(project);
  std::unordered_map<std::string_view, NameFacts> facts;  // by the names that values of the resolver have
  const Syntax& syntax = module.syntax();
  for (NodeId node = 0; node < syntax.size(); ++node) {
    if (!is_use(syntax, node)) continue;
    bool named = false;
    const Values& values = resolver.values(module, node);
    for (const Value& value : values) {
      if (value.is == Value::Is::named && !named && is_reported_framework(value.name)) {
        auto [known, fresh] = facts.try_emplace(value.name);
        if (fresh) known->second = facts_of(canonical(value.name));
        const std::string& name = known->second.name.name;
        if (name.starts_with("tf.") || name.starts_with("hvd."))
          note_use(found, module, node, known->second, begins_with_framework(resolver, module, node),
                   values.size() == 1);
        named = true;
      } else if (value.is == Value::Is::function || value.is == Value::Is::class_ || value.is == Value::Is::object) {
        if (value.module != &module) found.definitions.push_back({node, project.index_of(value.module), value.node});
      }
    }
  }
  for (const Import& import : module.imports()) weigh_import(found, module, import);
  for (std::string_view method : {"fit", "fit_generator", "train_on_batch"})
    for (NodeId call : module.calls_of(method)) {
      NodeId callee = syntax.child(call, Field::function);
      NodeId object = syntax.kind(callee) == Kind::attribute ? syntax.child(callee, Field::object) : kNoNode;
      if (object != kNoNode && resolver.is_instance(module, object, "tf.keras.Model")) found.keras_fits.push_back(call);
    }
  std::sort(found.keras_fits.begin(), found.keras_fits.end());
  if (found.tensorflow && has_other_backend(module)) found = Evidence{};
  return found;
}

Generation generation_of(const Evidence& found) {
  if (!found.tensorflow) return Generation::none;
  if (found.decided_v1) return Generation::tf1;
  if (found.v2_behavior) return Generation::tf2;
  if (found.v1 > 3 * found.v2) return Generation::tf1;
  if (found.v2 > 3 * found.v1) return Generation::tf2;
  return Generation::both;
}

template <class T, class NodeOf>
bool any_between(const std::vector<T>& sorted, NodeId begin, NodeId end, NodeOf node_of) {
  auto at = std::partition_point(sorted.begin(), sorted.end(), [&](const T& one) { return node_of(one) < begin; });
  return at != sorted.end() && node_of(*at) < end;
}

// Follows the definitions of the project that a script uses, into theirs; notes what they do with TensorFlow.
struct Reach {
  bool tensorflow = false, computes = false, trains_keras = false;
  std::set<size_t> modules;  // those whose TensorFlow code is reached
};

Reach reach_of(const Project& project, const std::vector<Evidence>& evidence, size_t start) {
  Reach reach;
  std::set<std::pair<size_t, NodeId>> seen = {{start, 0}};
  std::vector<std::pair<size_t, NodeId>> todo = {{start, 0}};
  auto self = [](NodeId node) { return node; };
  while (!todo.empty() && seen.size() < 5000 && !(reach.tensorflow && reach.computes && reach.trains_keras)) {
    auto [index, begin] = todo.back();
    todo.pop_back();
    const Evidence& at = evidence[index];
    NodeId end = project.modules()[index]->syntax()[begin].after;
    bool names = any_between(at.names, begin, end, [](const NameUse& use) { return use.node; });
    if (names || (index == start && at.tensorflow)) reach.tensorflow = true, reach.modules.insert(index);
    reach.computes = reach.computes || any_between(at.computing, begin, end, self);
    reach.trains_keras = reach.trains_keras || any_between(at.keras_fits, begin, end, self);
    auto use = std::partition_point(at.definitions.begin(), at.definitions.end(),
                                    [&](const DefinitionUse& one) { return one.node < begin; });
    for (; use != at.definitions.end() && use->node < end; ++use)
      if (seen.insert({use->module, use->definition}).second) todo.push_back({use->module, use->definition});
  }
  return reach;
}

// ---- scripts that are started ----

// The code at the top level of a script does something: a call that is a statement, a loop.
bool works_at_top_level(const Module& module) {
  const Syntax& syntax = module.syntax();
  for (NodeId node = 1; node < syntax.size();) {
    switch (syntax.kind(node)) {
      case Kind::function_definition:
      case Kind::class_definition:
      case Kind::lambda: node = syntax[node].after; continue;
      case Kind::for_statement:
      case Kind::while_statement: return true;
      case Kind::expression_statement:
        if (syntax.kind(syntax.first(node)) == Kind::call) return true;
        break;
      default: break;
    }
    ++node;
  }
  return false;
}

bool is_entry(const Project& project, const Module& module, bool imported) {
  if (main_guard(module.syntax()) != kNoNode) return true;
  std::string folder = module.path().substr(0, module.path().rfind('/') + 1);
  return !imported && project.find(module.path(), ".") != folder + "__init__.py" && works_at_top_level(module);
}

// ---- scripts that say nothing themselves ----

class Neighbours {
 public:
  Neighbours(const Project& project, const std::vector<Evidence>& evidence)
      : project_(project), near_(evidence.size()) {
    for (size_t i = 0; i < evidence.size(); ++i)
      for (size_t j : project.imports(i)) near_[i].push_back(j), near_[j].push_back(i);
  }

  /// Counts a script whose interface is known.
  void settle(size_t index, int tf) {
    known_.resize(near_.size());
    known_[index] = tf;
    for (std::string folder = project_.modules()[index]->path();;) {
      size_t slash = folder.rfind('/');
      folder.resize(slash == std::string::npos ? 0 : slash);
      ++folders_[folder][tf - 1];
      if (folder.empty()) break;
    }
  }

  /// The interface of the nearest scripts by import, then of the folder, then of the folders above; 0: none is known.
  int nearest(size_t index) const {
    std::vector<char> seen(near_.size());
    std::vector<size_t> ring = {index};
    seen[index] = 1;
    for (int steps = 0; steps < 3 && !ring.empty(); ++steps) {
      std::vector<size_t> next;
      int votes[2] = {};
      for (size_t at : ring)
        for (size_t other : near_[at]) {
          if (seen[other]) continue;
          seen[other] = 1;
          next.push_back(other);
          if (known_[other]) ++votes[known_[other] - 1];
        }
      if (votes[0] != votes[1]) return votes[0] > votes[1] ? 1 : 2;
      ring = std::move(next);
    }
    for (std::string folder = project_.modules()[index]->path(); !folder.empty();) {
      size_t slash = folder.rfind('/');
      folder.resize(slash == std::string::npos ? 0 : slash);
      auto found = folders_.find(folder);
      if (found != folders_.end() && found->second[0] != found->second[1])
        return found->second[0] > found->second[1] ? 1 : 2;
    }
    return 0;
  }

 private:
  const Project& project_;
  std::vector<std::vector<size_t>> near_;
  std::vector<int> known_;
  std::map<std::string, std::array<size_t, 2>> folders_;
};

// `starts`: the scripts that are started by themselves when they have to do with TensorFlow.
void settle_interfaces(const Project& project, const Options& options, const std::vector<Evidence>& evidence,
                       const std::vector<char>& starts, ProjectFacts& facts) {
  Neighbours neighbours(project, evidence);
  const size_t count = evidence.size();
  size_t totals[3] = {};
  for (size_t i = 0; i < count; ++i) {
    FileFacts& file = facts.files[i];
    file.tf = file.generation == Generation::tf1 ? 1 : file.generation == Generation::tf2 ? 2 : 0;
    if (file.tf) neighbours.settle(i, file.tf), ++totals[file.tf];
    // What an earlier run has written decides this script and no other, so that a second run settles all as the first.
    if (file.generation == Generation::both && evidence[i].platform) {
      file.tf = evidence[i].platform;
      file.generation = file.tf == 1 ? Generation::tf1 : Generation::tf2;
    }
  }
  std::vector<std::pair<size_t, int>> settled;  // all from what was known first, so that their order does not matter
  for (size_t i = 0; i < count; ++i) {
    if (facts.files[i].generation != Generation::both) continue;
    int tf = totals[1] + totals[2] ? neighbours.nearest(i) : 0;
    if (!tf) tf = totals[1] != totals[2] ? (totals[1] > totals[2] ? 1 : 2) : evidence[i].keras_fits.empty() ? 1 : 2;
    settled.push_back({i, tf});
  }
  for (auto [index, tf] : settled) facts.files[index].tf = tf;
  size_t files[3] = {};
  for (size_t i = 0; i < count; ++i) {
    FileFacts& file = facts.files[i];
    Reach reach = starts[i] || !file.tf ? reach_of(project, evidence, i) : Reach{};
    if (!file.tf && reach.tensorflow) {  // through the project's modules only
      size_t votes[3] = {};
      for (size_t module : reach.modules) ++votes[facts.files[module].tf];
      file.tf = votes[1] == votes[2] ? (totals[2] > totals[1] ? 2 : 1) : votes[1] > votes[2] ? 1 : 2;
    }
    if (file.tf && options.tf) file.tf = options.tf;
    file.computes = reach.computes;
    file.trains_keras = reach.trains_keras;
    ++files[file.tf];
  }
  facts.tf = options.tf ? options.tf : files[2] > files[1] ? 2 : 1;
}

// ---- distribution ----

/// The modules of the project that a script imports, directly or not, with itself.
std::vector<size_t> imported_from(const Project& project, size_t start) {
  std::vector<size_t> found = {start};
  std::vector<char> seen(project.modules().size());
  seen[start] = 1;
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t other : project.imports(found[i]))
      if (!std::exchange(seen[other], 1)) found.push_back(other);
  return found;
}

/// A script that is started is distributed as it and its imports are, a module as the scripts that import it; a module that no
/// script of the project imports as most likely all are.
void settle_distribution(const Project& project, const Options& options, const std::vector<Evidence>& evidence,
                         const std::vector<char>& starts, ProjectFacts& facts) {
  using enum Distribution;
  struct Users {
    bool any = false, horovod = false, strategy = false;
  };
  auto uses_strategy = [&](size_t i) { return facts.files[i].tf && evidence[i].strategies; };
  auto uses_horovod = [&](size_t i) { return facts.files[i].tf && evidence[i].horovod; };
  auto one_of = [](bool horovod_, bool strategy) { return horovod_ ? horovod : strategy ? tf_strategy : none; };
  std::vector<Users> users(evidence.size());
  bool horovod_anywhere = false, strategy_anywhere = false;
  for (size_t i = 0; i < evidence.size(); ++i) {
    horovod_anywhere = horovod_anywhere || uses_horovod(i);
    strategy_anywhere = strategy_anywhere || uses_strategy(i);
    if (!starts[i]) continue;
    const std::vector<size_t> reached = imported_from(project, i);
    const bool by_horovod = std::any_of(reached.begin(), reached.end(), uses_horovod);
    const bool by_strategy = !by_horovod && std::any_of(reached.begin(), reached.end(), uses_strategy);
    for (size_t module : reached) {
      users[module].any = true;
      users[module].horovod = users[module].horovod || by_horovod;
      users[module].strategy = users[module].strategy || by_strategy;
    }
  }
  const bool given = options.distributed != automatic;
  facts.distributed = given ? options.distributed : one_of(horovod_anywhere, strategy_anywhere);
  for (size_t i = 0; i < evidence.size(); ++i) {
    FileFacts& file = facts.files[i];
    file.distributed = given || !users[i].any ? facts.distributed : one_of(users[i].horovod, users[i].strategy);
    file.shared = !given && users[i].horovod && users[i].strategy;
  }
}

}  // namespace

ProjectFacts find_facts(const Project& project, const Options& options, Executor& executor) {
  const auto& modules = project.modules();
  std::vector<Evidence> evidence(modules.size());
  parallel(executor, modules.size(), [&](size_t i) { evidence[i] = evidence_of(project, *modules[i]); });
  ProjectFacts facts;
  facts.files.resize(modules.size());
  std::vector<char> imported(modules.size());
  for (size_t i = 0; i < modules.size(); ++i) {
    facts.files[i].generation = generation_of(evidence[i]);
    for (size_t other : project.imports(i)) imported[other] = 1;
  }
  std::vector<char> starts(modules.size());
  for (size_t i = 0; i < modules.size(); ++i)
    starts[i] = options.main.empty() ? is_entry(project, *modules[i], imported[i]) : modules[i]->path() == options.main;
  settle_interfaces(project, options, evidence, starts, facts);
  settle_distribution(project, options, evidence, starts, facts);
  for (size_t i = 0; i < modules.size(); ++i) {
    FileFacts& file = facts.files[i];
    file.entry = file.tf && starts[i];
    file.eager = evidence[i].eager;
    file.names = std::move(evidence[i].names);
  }
  facts.horovod_has_peers = facts.distributed == Distribution::horovod && all_have_peers(facts.files);
  return facts;
}

}  // namespace cairn::migrate
