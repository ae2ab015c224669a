// Loss scaling.
#include <fmt/format.h>

#include <span>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

// Whether a call of TensorFlow takes this loss scale that is not rewritten for a manager (Keras' policies and optimizers, the
// graph rewrite): directly, or by the variable it is assigned to.
bool is_taken_elsewhere(Context& file, NodeId call) {
  const Syntax& syntax = file.syntax;
  auto taker_of = [&](NodeId value) {
    NodeId up = syntax.parent(value);
    if (syntax.kind(up) == Kind::keyword_argument) up = syntax.parent(up);
    return syntax.kind(up) == Kind::argument_list ? syntax.parent(up) : kNoNode;
  };
  auto elsewhere = [&](NodeId taker) {
    for (const ApiName& target : file.targets(taker))
      if (target.name.starts_with("tf.") && !target.name.ends_with("MixedPrecisionLossScaleOptimizer") &&
          target.name != "tf.contrib.mixed_precision.LossScaleOptimizer")
        return true;
    return false;
  };
  if (NodeId taker = taker_of(call); taker != kNoNode) return elsewhere(taker);
  NodeId assignment = syntax.parent(call);
  NodeId left = syntax.kind(assignment) == Kind::assignment ? syntax.child(assignment, Field::left) : kNoNode;
  if (left == kNoNode) return false;
  const std::string_view name = syntax.text(left);
  for (NodeId node = 0; node < syntax.size(); ++node) {
    Kind kind = syntax.kind(node);
    if ((kind != Kind::identifier && kind != Kind::attribute) || syntax.text(node) != name) continue;
    if (NodeId taker = taker_of(node); taker != kNoNode && elsewhere(taker)) return true;
  }
  return false;
}

// The manager's class in place of the loss scale's, and its arguments under their new names with the old defaults.
void loss_scale(Spot& spot) {
  Context& file = spot.file;
  const Syntax& syntax = file.syntax;
  NodeId callee = syntax.child(spot.call, Field::function);
  if (is_taken_elsewhere(file, spot.call)) return;
  Rewrite rewrite(spot);
  if (spot.name.name.starts_with("tf.contrib.mixed_precision.")) {
    rewrite.replace(callee, rewrite.use(spot.name.name.substr(27)));
    rewrite.commit();
    return;
  }
  bool fixed = spot.name.name.ends_with("FixedLossScale");
  Arguments bound = file.bind(spot.call, fixed ? "loss_scale_value" : "initial_loss_scale increment_period multiplier");
  if (bound.open() || !bound.plain) {
    file.find(spot.rule, spot.call, Severity::warning,
              fmt::format("{} gets its arguments through * or **", spot.name.name),
              "rewrite it as a loss scale manager by hand");
    return;
  }
  struct Renamed {
    std::string_view from, to, value;
  };
  static constexpr Renamed kFixed[] = {{"loss_scale_value", "loss_scale", ""}};
  static constexpr Renamed kDynamic[] = {{"initial_loss_scale", "init_loss_scale", "2 ** 15"},
                                         {"increment_period", "incr_every_n_steps", "2000"},
                                         {"multiplier", "incr_ratio", "2"}};
  rewrite.replace(callee, rewrite.use(fixed ? "FixedLossScaleManager" : "ExponentialUpdateLossScaleManager"));
  std::string added;
  for (const Renamed& row : fixed ? std::span<const Renamed>(kFixed) : std::span<const Renamed>(kDynamic)) {
    auto given = bound.given.find(row.from);
    if (given == bound.given.end()) {
      if (!row.value.empty()) added += fmt::format("{}{}={}", added.empty() ? "" : ", ", row.to, row.value);
    } else if (given->second.keyword) {
      rewrite.replace(syntax.child(given->second.argument, Field::name), std::string(row.to));
    } else {
      rewrite.insert(syntax[given->second.argument].begin, fmt::format("{}=", row.to));
    }
  }
  if (!added.empty()) rewrite.add_argument(spot.call, added);
  rewrite.commit();
}

void loss_scale_optimizer(Spot& spot) {
  Context& file = spot.file;
  const Syntax& syntax = file.syntax;
  bool contrib = spot.name.name.starts_with("tf.contrib.");
  Arguments bound = file.bind(spot.call, contrib ? "opt loss_scale_manager" : "opt loss_scale");
  NodeId scale = bound.value(contrib ? "loss_scale_manager" : "loss_scale");
  if (bound.open() || !bound.plain || scale == kNoNode) return;
  Rewrite rewrite(spot);
  rewrite.replace(syntax.child(spot.call, Field::function), rewrite.use("NPULossScaleOptimizer"));
  const Arguments::Given& given = bound.given[contrib ? "loss_scale_manager" : "loss_scale"];
  std::string text;
  double number = 0;
  if (!contrib) {
    if (given.keyword)
      rewrite.replace(syntax.child(given.argument, Field::name), "loss_scale_manager");
    else
      rewrite.insert(syntax[given.argument].begin, "loss_scale_manager=");
  }
  if (string_value(syntax, scale, text) && text == "dynamic")
    rewrite.replace(scale, rewrite.use("ExponentialUpdateLossScaleManager") +
                               "(init_loss_scale=2 ** 15, incr_every_n_steps=2000, incr_ratio=2)");
  else if (number_value(syntax, scale, number))
    rewrite.wrap(scale, rewrite.use("FixedLossScaleManager") + "(loss_scale=", ")");
  if (file.own.distributed != Distribution::none) rewrite.add_argument(spot.call, "is_distributed=True");
  rewrite.commit();
}

void graph_rewrite(Spot& spot) {
  spot.file.find(spot.rule, spot.call, Severity::warning, "mixed precision by graph rewrite",
                 "take it out and set precision_mode (--precision-mode allow_mix_precision) with NPULossScaleOptimizer "
                 "(--loss-scale dynamic)");
}

}  // namespace

const Rule kLossScale = {
    .id = "loss-scale",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "loss scales become loss scale managers",
    .reason = "the managers know the device's way of seeing an overflow; defaults are written out because they differ",
    .calls = {"tf.train.experimental.FixedLossScale", "tf.train.experimental.DynamicLossScale",
              "tf.contrib.mixed_precision.FixedLossScaleManager",
              "tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager"},
    .at_call = loss_scale,
    .examples =
        {
            {"import tensorflow as tf\ns = tf.train.experimental.FixedLossScale(128)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import FixedLossScaleManager\ns = "
             "FixedLossScaleManager(loss_scale=128)\n",
             "tf=1"},
            {"import tensorflow as tf\ns = tf.train.experimental.DynamicLossScale(increment_period=5)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import ExponentialUpdateLossScaleManager\ns = "
             "ExponentialUpdateLossScaleManager(incr_every_n_steps=5, init_loss_scale=2 ** 15, incr_ratio=2)\n",
             "tf=1"},
            {"import tensorflow as tf\nm = tf.train.experimental\no = m.enable_mixed_precision_graph_rewrite(o, "
             "loss_scale=m.DynamicLossScale())\n",
             "", "tf=1"},
            {"import tensorflow as tf\ns = scales.FixedLossScale(128)\n", "", "tf=1"},
        },
};

const Rule kLossScaleOptimizer = {
    .id = "loss-scale-optimizer",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "loss scaling optimizers become NPULossScaleOptimizer",
    .reason = "it unscales, tests and skips on the device, over all ranks",
    .calls = {"tf.train.experimental.MixedPrecisionLossScaleOptimizer",
              "tf.contrib.mixed_precision.LossScaleOptimizer"},
    .at_call = loss_scale_optimizer,
    .examples =
        {
            {"import tensorflow as tf\no = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, 'dynamic')\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import ExponentialUpdateLossScaleManager, "
             "NPULossScaleOptimizer\n"
             "o = NPULossScaleOptimizer(opt, loss_scale_manager=ExponentialUpdateLossScaleManager(init_loss_scale=2 ** "
             "15, incr_every_n_steps=2000, incr_ratio=2))\n",
             "tf=1"},
            {"import tensorflow as tf\no = tf.contrib.mixed_precision.LossScaleOptimizer(opt, m)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import NPULossScaleOptimizer\no = "
             "NPULossScaleOptimizer(opt, m, is_distributed=True)\n",
             "tf=1 distributed=tf_strategy"},
            {"from npu_bridge.npu_init import NPULossScaleOptimizer\nimport tensorflow as tf\no = "
             "NPULossScaleOptimizer(opt, m)\n",
             "", "tf=1"},
        },
};

const Rule kGraphRewrite = {
    .id = "mixed-precision-rewrite",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "enable_mixed_precision_graph_rewrite",
    .reason = "the graph's precision is an option of the session here",
    .calls = {"tf.train.experimental.enable_mixed_precision_graph_rewrite",
              "tf.mixed_precision.enable_mixed_precision_graph_rewrite"},
    .at_call = graph_rewrite,
    .examples = {{"import tensorflow as tf\no = tf.train.experimental.enable_mixed_precision_graph_rewrite(o)\n", "",
                  "tf=1"},
                 {"import tensorflow as tf\no = mine.enable_mixed_precision_graph_rewrite(o)\n", "", "tf=1", false}},
};

}  // namespace cairn::migrate
