// Layers and Keras: dropout, GELU, the Keras session.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "migrate/rules.h"

namespace cairn::migrate {
namespace {

// rate -> keep_prob in place, touching as little of the expression as can be.
void turn_rate(Context& file, Rewrite& rewrite, NodeId rate) {
  const Syntax& syntax = file.syntax;
  std::string text = one_minus(syntax, rate);
  NodeId inner = syntax.unwrap(rate);
  Kind kind = syntax.kind(inner);
  if (kind == Kind::integer || kind == Kind::float_) {
    rewrite.replace(rate, text);
  } else if (kind == Kind::binary_operator && text == syntax.text(syntax.unwrap(syntax.child(inner, Field::right)))) {
    NodeId keep = syntax.unwrap(syntax.child(inner, Field::right));
    rewrite.replace(Span{syntax[rate].begin, syntax[keep].begin}, "")
        .replace(Span{syntax[keep].end, syntax[rate].end}, "");
  } else {
    bool parens = text.size() > 5 + file.text(rate).size();
    rewrite.wrap(rate, parens ? "1 - (" : "1 - ", parens ? ")" : "");
  }
}

void dropout(Spot& spot) {
  Context& file = spot.file;
  const bool second_is_rate = spot.name.compat == 2;
  Arguments bound =
      file.bind(spot.call, second_is_rate ? "x rate noise_shape seed name" : "x keep_prob noise_shape seed name rate");
  NodeId noise = bound.value("noise_shape"), keep = bound.value("keep_prob"), rate = bound.value("rate");
  bool keep_given = keep != kNoNode && file.syntax.kind(keep) != Kind::none;
  if (noise != kNoNode && file.syntax.kind(noise) != Kind::none) return;
  if (bound.open() || !bound.plain || keep_given == (rate != kNoNode)) {
    if (bound.open())
      file.find(spot.rule, spot.call, Severity::note, "tf.nn.dropout gets its arguments through * or **",
                "it runs as it is; npu_ops.dropout(x, keep_prob) is the platform's own");
    return;
  }
  Rewrite rewrite(spot);
  rewrite.replace(file.syntax.child(spot.call, Field::function), rewrite.use("npu_ops") + ".dropout");
  if (rate != kNoNode) {
    const Arguments::Given& given = bound.given["rate"];
    if (given.keyword)
      rewrite.replace(
          Span{file.syntax[given.argument].begin, file.syntax[file.syntax.child(given.argument, Field::name)].end},
          "keep_prob");
    turn_rate(file, rewrite, rate);
    if (keep != kNoNode) rewrite.remove_arguments(spot.call, {bound.given["keep_prob"].argument});
  }
  rewrite.commit();
}

// ---- GELU: is a function's body the formula? Evaluated in numbers, so that no spelling of it matters. ----

class Formula {
 public:
  Formula(Context& file, std::string_view parameter, double x) : file_(file), syntax_(file.syntax) {
    known_[parameter] = x;
  }

  /// The value the statements of a block return; nothing when they do anything but compute.
  std::optional<double> block(NodeId block) {
    for (NodeId statement : syntax_.children(block)) {
      NodeId inner = syntax_.first(statement);
      switch (syntax_.kind(statement)) {
        case Kind::return_statement: return inner == kNoNode ? std::nullopt : value(inner);
        case Kind::with_statement: {
          NodeId body = syntax_.child(statement, Field::body);
          if (body == kNoNode || syntax_.text(statement).find("scope(") == std::string_view::npos) return {};
          if (auto found = this->block(body)) return found;
          if (failed_) return {};
          break;
        }
        case Kind::expression_statement: {
          if (inner == kNoNode || syntax_.kind(inner) == Kind::string) break;  // the docstring
          NodeId left = syntax_.child(inner, Field::left), right = syntax_.child(inner, Field::right);
          std::optional<double> assigned;
          if (syntax_.kind(inner) == Kind::assignment && syntax_.kind(left) == Kind::identifier && right != kNoNode)
            assigned = value(right);
          if (!assigned) return failed_ = true, std::nullopt;
          known_[syntax_.text(left)] = *assigned;
          break;
        }
        default: return failed_ = true, std::nullopt;
      }
    }
    return {};
  }

 private:
  std::optional<double> value(NodeId node, int depth = 0) {
    if (depth > 40) return {};
    node = syntax_.unwrap(node);
    double number = 0;
    switch (syntax_.kind(node)) {
      case Kind::integer:
      case Kind::float_: return number_value(syntax_, node, number) ? std::optional(number) : std::nullopt;
      case Kind::identifier: {
        auto found = known_.find(syntax_.text(node));
        return found == known_.end() ? std::nullopt : std::optional(found->second);
      }
      case Kind::attribute: {
        for (const ApiName& name : file_.resolver.names(file_.module, node))
          if (name.name == "np.pi" || name.name == "math.pi") return M_PI;
        return {};
      }
      case Kind::unary_operator: {
        NodeId operand = syntax_.child(node, Field::argument);
        auto inner = operand == kNoNode ? std::nullopt : value(operand, depth + 1);
        if (!inner) return {};
        return syntax_.text(node)[0] == '-' ? -*inner : *inner;
      }
      case Kind::binary_operator: {
        NodeId a = syntax_.child(node, Field::left), b = syntax_.child(node, Field::right),
               op = syntax_.child(node, Field::operator_);
        if (a == kNoNode || b == kNoNode || op == kNoNode) return {};
        auto left = value(a, depth + 1), right = value(b, depth + 1);
        if (!left || !right) return {};
        std::string_view sign = syntax_.text(op);
        if (sign == "+") return *left + *right;
        if (sign == "-") return *left - *right;
        if (sign == "*") return *left * *right;
        if (sign == "/") return *left / *right;
        if (sign == "**") return std::pow(*left, *right);
        return {};
      }
      case Kind::call: return call(node, depth);
      default: return {};
    }
  }

  std::optional<double> call(NodeId node, int depth) {
    std::vector<NodeId> arguments = syntax_.children(syntax_.child(node, Field::arguments));
    std::vector<double> values;
    for (NodeId argument : arguments) {
      if (syntax_.kind(argument) == Kind::keyword_argument) break;
      if (values.size() == 1 && file_.calls(node, "tf.cast")) break;
      auto one = value(argument, depth + 1);
      if (!one) return {};
      values.push_back(*one);
    }
    for (const ApiName& target : file_.targets(node)) {
      const std::string& name = target.name;
      if (values.size() == 1) {
        if (name == "tf.tanh" || name == "np.tanh" || name == "math.tanh") return std::tanh(values[0]);
        if (name == "tf.erf" || name == "math.erf") return std::erf(values[0]);
        if (name == "tf.sqrt" || name == "np.sqrt" || name == "math.sqrt") return std::sqrt(values[0]);
        if (name == "tf.constant" || name == "tf.cast" || name == "tf.convert_to_tensor" || name == "np.float32")
          return values[0];
        if (name == "tf.square" || name == "tf.math.square") return values[0] * values[0];
      }
      if (values.size() == 2) {
        if (name == "tf.pow" || name == "np.power" || name == "math.pow") return std::pow(values[0], values[1]);
        if (name == "tf.multiply") return values[0] * values[1];
        if (name == "tf.add") return values[0] + values[1];
      }
    }
    return {};
  }

  Context& file_;
  const Syntax& syntax_;
  std::map<std::string_view, double> known_;
  bool failed_ = false;
};

double gelu_by_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double gelu_by_erf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

bool is_formula(Context& file, NodeId body, std::string_view parameter, double (*formula)(double)) {
  for (double x : {-2.0, -0.7, 0.3, 1.9}) {
    std::optional<double> found = Formula(file, parameter, x).block(body);
    if (!found || std::abs(*found - formula(x)) > 1e-5) return false;
  }
  return true;
}

void gelu(Context& file, const Rule& rule) {
  const Syntax& syntax = file.syntax;
  if (!file.module.mentions("tanh") && !file.module.mentions("erf")) return;
  for (NodeId function = 0; function < syntax.size(); ++function) {
    NodeId body = syntax.kind(function) == Kind::function_definition ? syntax.child(function, Field::body) : kNoNode;
    if (body == kNoNode || syntax[body].end - syntax[body].begin > 4000) continue;
    for (const Parameter& parameter : file.module.parameters(function)) {
      if (parameter.index < 0 || parameter.name == "self") continue;
      if (is_formula(file, body, parameter.name, gelu_by_erf)) {
        file.find(rule, syntax.child(function, Field::name), Severity::note, "this is the exact GELU (erf)",
                  "it runs as it is; npu_unary_ops.gelu is the tanh form and differs by up to 5e-4");
        break;
      }
      if (!is_formula(file, body, parameter.name, gelu_by_tanh)) continue;
      std::vector<NodeId> statements = syntax.children(body);
      NodeId first = statements[0];
      bool docstring =
          syntax.kind(first) == Kind::expression_statement && syntax.kind(syntax.first(first)) == Kind::string;
      if (docstring) first = statements[1];
      Rewrite rewrite(file, rule, syntax.child(function, Field::name));
      rewrite.replace(Span{syntax[first].begin, syntax[statements.back()].end},
                      fmt::format("return {}.gelu({})", rewrite.use("npu_unary_ops"), parameter.name));
      rewrite.commit();
      break;
    }
  }
}

void keras_dropout(Spot& spot) {
  Context& file = spot.file;
  if (file.module.mentions("npu_convert_dropout")) return;
  if (!file.changes.empty() && file.changes.back().rule == spot.rule.id) return;
  Rewrite rewrite(spot);
  rewrite.use("npu_bridge.estimator.npu:npu_convert_dropout");
  rewrite.commit();
}

void clear_session(Spot& spot) {
  Rewrite rewrite(spot);
  rewrite.replace(spot.file.syntax.child(spot.call, Field::function), rewrite.use("npu_clear_session"));
  rewrite.commit();
}

void keras_session(Context& file, const Rule& rule) {
  if (!file.own.trains_keras || !file.own.entry || file.own.eager) return;
  for (std::string_view name : {"set_session", "set_keras_session_npu_config", "close_session"})
    if (file.module.mentions(name)) return;
  const Syntax& syntax = file.syntax;
  NodeId guard = main_guard(syntax);
  NodeId block = guard == kNoNode ? 0 : syntax.child(guard, Field::consequence);
  std::vector<NodeId> statements = block == kNoNode ? std::vector<NodeId>{} : syntax.children(block);
  NodeId first = kNoNode;
  for (NodeId statement : statements) {
    Kind kind = syntax.kind(statement);
    bool import =
        kind == Kind::import_statement || kind == Kind::import_from_statement || kind == Kind::future_import_statement;
    if (guard == kNoNode &&
        (import || (kind == Kind::expression_statement && syntax.kind(syntax.first(statement)) == Kind::string))) {
      first = kNoNode;
      continue;
    }
    if (first == kNoNode) first = statement;
  }
  if (first == kNoNode) return;
  NodeId last = statements.back();
  Rewrite rewrite(file, rule, guard == kNoNode ? first : guard);
  bool ok = rewrite.insert_before(first, {"npu_keras_sess = " + rewrite.use("set_keras_session_npu_config") + "()"});
  // What never returns leaves nothing to do after it.
  std::string_view ending = syntax.text(last);
  bool returns = ending.find("app.run(") == std::string_view::npos && ending.find("exit(") == std::string_view::npos;
  if (returns) ok = ok && rewrite.insert_after(last, {rewrite.use("close_session") + "(npu_keras_sess)"});
  if (ok) rewrite.commit();
}

void skip_loop(Spot& spot) {
  spot.file.find(spot.rule, spot.call, Severity::note, "gradients or losses are tested for being finite",
                 "when this skips a step after an overflow, NPULossScaleOptimizer with a loss scale manager does it on "
                 "the device");
}

}  // namespace

const Rule kDropout = {
    .id = "dropout",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "tf.nn.dropout becomes npu_ops.dropout",
    .reason = "the device's own kernel; it draws other random numbers. A rate becomes the probability to keep",
    .calls = {"tf.nn.dropout"},
    .at_call = dropout,
    .examples =
        {
            {"import tensorflow as tf\ny = tf.nn.dropout(x, rate=1 - keep)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_ops\ny = npu_ops.dropout(x, "
             "keep_prob=keep)\n"},
            {"import tensorflow as tf\ny = tf.nn.dropout(x, rate=0.1 if train else 0.0)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_ops\ny = npu_ops.dropout(x, keep_prob=1 - "
             "(0.1 if train else 0.0))\n"},
            {"import tensorflow as tf\ny = tf.nn.dropout(x, rate=.1, seed=3)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_ops\ny = npu_ops.dropout(x, keep_prob=0.9, "
             "seed=3)\n"},
            {"from tensorflow import nn\ny = nn.dropout(x, 0.5)\n",
             "from tensorflow import nn\nfrom npu_bridge.npu_init import npu_ops\ny = npu_ops.dropout(x, 0.5)\n"},
            {"import tensorflow as tf\ny = tf.nn.dropout(x, 0.5, noise_shape=[1, 2])\n", ""},
            {"import nn\nimport tensorflow\ny = nn.dropout(x, rate=0.5)\n", ""},
        },
};

const Rule kGelu = {
    .id = "gelu",
    .tier = Tier::review,
    .when = When::tf1,
    .title = "a hand-written tanh GELU becomes npu_unary_ops.gelu",
    .reason = "one fused kernel instead of eight operators; the body is recognised by its values, not by its name",
    .calls = {},
    .at_file = gelu,
    .examples =
        {
            {"import tensorflow as tf\nimport numpy as np\ndef gelu(x):\n    \"\"\"GELU.\"\"\"\n    cdf = 0.5 * (1.0 + "
             "tf.tanh(\n        (np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3))))\n    return x * cdf\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_unary_ops\nimport numpy as np\ndef "
             "gelu(x):\n    \"\"\"GELU.\"\"\"\n    return npu_unary_ops.gelu(x)\n"},
            {"import tensorflow as tf\ndef gelu(x):\n    return x * tf.tanh(x)\n", ""},
            {"import tensorflow as tf\ndef gelu(x):\n    return 0.5 * x * (1.0 + tf.erf(x / tf.sqrt(2.0)))\n", ""},
        },
};

const Rule kKerasDropout = {
    .id = "keras-dropout",
    .tier = Tier::review,
    .when = When::platform,
    .title = "importing npu_convert_dropout turns Keras dropout layers into npu_ops.dropout",
    .reason = "on the Ascend hardware the stock layer is slow",
    .calls = {"tf.layers.dropout", "tf.layers.Dropout", "tf.keras.layers.Dropout", "tf.keras.layers.SpatialDropout1D",
              "tf.keras.layers.SpatialDropout2D", "tf.keras.layers.SpatialDropout3D"},
    .at_call = keras_dropout,
    .examples =
        {
            {"import tensorflow as tf\nl = tf.layers.Dropout(0.5)\nm = tf.layers.dropout(x)\n",
             "import tensorflow as tf\nfrom npu_bridge.estimator.npu import npu_convert_dropout\nl = "
             "tf.layers.Dropout(0.5)\nm = tf.layers.dropout(x)\n",
             "platform"},
            {"import tensorflow as tf\nl = tf.layers.Dropout(0.5)\n", ""},
        },
};

const Rule kClearSession = {
    .id = "clear-session",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "Keras' clear_session becomes npu_clear_session",
    .reason = "the new session has to be the device's again",
    .calls = {"tf.keras.backend.clear_session"},
    .at_call = clear_session,
    .examples =
        {
            {"import tensorflow as tf\nfrom keras import backend as K\nK.clear_session()\ntf.placeholder(1)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import npu_clear_session\nfrom keras import backend as "
             "K\nnpu_clear_session()\ntf.placeholder(1)\n"},
            {"import tensorflow as tf\ntf.placeholder(1)\nstore.clear_session()\n", ""},
        },
};

const Rule kKerasSession = {
    .id = "keras-session",
    .tier = Tier::safe,
    .when = When::tf1,
    .title = "the main script gives Keras a session of the device and closes it",
    .reason = "Keras makes its session by itself, out of reach of the other rules",
    .calls = {},
    .at_file = keras_session,
    .examples =
        {
            {"import tensorflow as tf\nif '__main__' == __name__:\n    m = tf.keras.Sequential()\n    m.fit(x, y)\n",
             "import tensorflow as tf\nfrom npu_bridge.npu_init import close_session, set_keras_session_npu_config\nif "
             "'__main__' == __name__:\n    npu_keras_sess = set_keras_session_npu_config()\n    m = "
             "tf.keras.Sequential()\n    m.fit(x, y)\n    close_session(npu_keras_sess)\n",
             "tf=1"},
            {"import tensorflow as tf\nif __name__ == '__main__':\n    clf.fit(x, y)\n", "", "tf=1"},
        },
};

const Rule kSkipLoop = {
    .id = "finite-test",
    .tier = Tier::advice,
    .when = When::tf1,
    .title = "tests for finite gradients",
    .reason = "overflow handling belongs to the loss scale",
    .calls = {"tf.is_finite", "tf.is_nan", "tf.is_inf", "tf.math.is_finite", "tf.debugging.is_finite"},
    .at_call = skip_loop,
    .examples = {{"import tensorflow as tf\nok = tf.is_finite(g)\n", ""},
                 {"import numpy as np\nimport tensorflow as tf\nok = np.isfinite(g)\n", "", "tf=1", false}},
};

}  // namespace cairn::migrate
