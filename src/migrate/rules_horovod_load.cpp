// Models that Horovod loads with their optimizer wrapped.
#include <fmt/format.h>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

void leave(Spot& spot, const std::string& why) {
  spot.file.find(spot.rule, spot.call, Severity::error, "hvd.load_model " + why,
                 "load the model with Keras, and hand its optimizer through the platform's wrapper");
}

// The module whose load_model takes its place: Horovod for Keras loads with Keras, Horovod for tf.keras with that.
std::string keras_of(const Spot& spot) {
  const Context& file = spot.file;
  for (const Value& value : file.resolver.values(file.module, file.syntax.child(spot.call, Field::function)))
    if (value.name.starts_with("horovod.keras.")) return "keras.models";
  return "tensorflow.keras.models";
}

bool is_bound_to_another(const Context& file, std::string_view name) {
  bool bound = false;
  for (const Scope& scope : file.module.scopes()) bound = bound || scope.names.contains(name);
  for (const Import& import : file.module.imports()) bound = bound && !(import.member == name && import.alias == name);
  return bound;
}

void load_model(Spot& spot) {
  Context& file = spot.file;
  const Syntax& syntax = file.syntax;
  Arguments bound = file.bind(spot.call, "filepath custom_optimizers custom_objects compression legacy_opts");
  const NodeId assignment = syntax.parent(spot.call), target = syntax.child(assignment, Field::left);
  const bool named = syntax.kind(assignment) == Kind::assignment &&
                     (syntax.kind(target) == Kind::identifier || syntax.kind(target) == Kind::attribute);
  if (!named) return leave(spot, "is not assigned to a name");
  if (bound.open() || !bound.plain || bound.has("custom_optimizers")) return leave(spot, "gets more than a file");
  if (bound.has("custom_objects") && !bound.given["custom_objects"].keyword)
    return leave(spot, "gets its custom_objects by position");
  if (is_bound_to_another(file, "load_model")) return leave(spot, "shares its name with another load_model");
  const bool eager = file.own.tf == 2 || file.own.eager;
  Rewrite rewrite(spot);
  rewrite.replace(syntax.child(spot.call, Field::function), rewrite.use(keras_of(spot) + ":load_model"));
  std::vector<NodeId> removed;
  for (std::string_view name : {"compression", "legacy_opts"})
    if (bound.has(name)) removed.push_back(bound.given[name].argument);
  for (NodeId argument : removed)
    for (NodeId node = argument; node < syntax[argument].after; ++node) file.rewritten[node] = spot.rule.id;
  if (!removed.empty()) rewrite.remove_arguments(spot.call, removed);
  const std::string optimizer = file.text(target) + ".optimizer";
  const std::string wrapper = rewrite.use(eager ? "npu_device.distribute:npu_distributed_keras_optimizer_wrapper"
                                                : "npu_distributed_optimizer_wrapper");
  if (!rewrite.insert_after(syntax.statement(assignment), {fmt::format("{0} = {1}({0})", optimizer, wrapper)}))
    return leave(spot, "shares its line with other statements");
  rewrite.commit();
}

}  // namespace

const Rule kHorovodLoad = {
    .id = "horovod-load",
    .tier = Tier::review,
    .when = When::always,
    .title = "hvd.load_model becomes Keras' load_model, and the loaded optimizer is wrapped",
    .reason = "gradients are averaged over the ranks by the platform's collectives",
    .calls = {"hvd.load_model"},
    .at_call = load_model,
    .examples =
        {
            {"import tensorflow as tf\nimport horovod.tensorflow.keras as hvd\nif again:\n    m = "
             "hvd.load_model(path, compression=hvd.Compression.fp16, custom_objects=o)\n",
             "import tensorflow as tf\nfrom npu_device.distribute import npu_distributed_keras_optimizer_wrapper\nfrom "
             "tensorflow.keras.models import load_model\nif again:\n    m = load_model(path, custom_objects=o)\n    "
             "m.optimizer = "
             "npu_distributed_keras_optimizer_wrapper(m.optimizer)\n",
             "tf=2"},
            {"import keras\nimport horovod.keras as hvd\nself.model = hvd.load_model(path)\n",
             "import keras\nfrom keras.models import load_model\nfrom npu_bridge.npu_init import "
             "npu_distributed_optimizer_wrapper\nself.model = load_model(path)\nself.model.optimizer = "
             "npu_distributed_optimizer_wrapper(self.model.optimizer)\n",
             "tf=1"},
            {"import keras\nimport horovod.keras as hvd\nreturn hvd.load_model(path)\n", "", "tf=1"},
        },
};

}  // namespace cairn::migrate
