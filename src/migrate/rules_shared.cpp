// What several rules share: wrapping arguments, following ** dicts, telling training from evaluation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "migrate/rules.h"

namespace cairn::migrate {

NodeId dict_of(Context& file, NodeId splat) {
  std::vector<NodeId> inner = file.syntax.children(splat);
  if (inner.size() != 1) return kNoNode;
  auto literals = file.resolver.literals(file.module, inner[0]);
  if (literals.size() != 1 || literals[0].first != &file.module) return kNoNode;
  NodeId node = literals[0].second;
  Kind kind = file.syntax.kind(node);
  return kind == Kind::dictionary ||
                 (kind == Kind::call && file.syntax.text(file.syntax.child(node, Field::function)) == "dict")
             ? node
             : kNoNode;
}

const char* optimizer_wrapper(const Context& file) {
  return file.own.tf == 2 ? "npu_device.distribute:npu_distributed_keras_optimizer_wrapper"
                          : "npu_distributed_optimizer_wrapper";
}

NodeId dict_value(const Syntax& syntax, NodeId dict, std::string_view key) {
  std::vector<NodeId> entries =
      syntax.children(syntax.kind(dict) == Kind::call ? syntax.child(dict, Field::arguments) : dict);
  for (NodeId entry : entries) {
    std::string name;
    if (syntax.kind(entry) == Kind::pair)
      string_value(syntax, syntax.child(entry, Field::key), name);
    else if (syntax.kind(entry) == Kind::keyword_argument)
      name = syntax.text(syntax.child(entry, Field::name));
    if (name == key) return syntax.child(entry, Field::value);
  }
  return kNoNode;
}

// f(**kw) of a dictionary that nobody knows: f(**dict(kw, config=wrapper(config_proto=kw.get("config")))), which is right whatever
// kw holds, as the wrappers make what they are not given. False where the call is otherwise.
bool wrap_in_dict(Spot& spot, const Arguments& bound, std::string_view parameter, const Wrapper& wrapper) {
  const Syntax& syntax = spot.file.syntax;
  if (!bound.stars.empty() || bound.double_stars.size() != 1 || !bound.plain) return false;
  const std::vector<NodeId> inner = syntax.children(bound.double_stars[0]);
  if (inner.size() != 1 || (syntax.kind(inner[0]) != Kind::identifier && syntax.kind(inner[0]) != Kind::attribute))
    return false;
  Rewrite rewrite(spot, fmt::format("{}({}=...) goes through {}", spot.name.name, parameter, wrapper.function));
  const std::string name = spot.file.text(inner[0]), function = rewrite.use(std::string(wrapper.function));
  rewrite.tier(Tier::review)
      .replace(inner[0],
               fmt::format("dict({0}, {1}={2}({3}={0}.get(\"{1}\")))", name, parameter, function, wrapper.keyword));
  return rewrite.commit();
}

bool wrap_argument(Spot& spot, const Arguments& bound, std::string_view parameter, const Wrapper& wrapper, bool add) {
  Context& file = spot.file;
  NodeId value = bound.value(parameter);
  std::string message = fmt::format("{}({}=...) goes through {}", spot.name.name, parameter, wrapper.function);
  if (value == kNoNode && bound.open()) {
    NodeId dict =
        bound.double_stars.size() == 1 && bound.stars.empty() ? dict_of(file, bound.double_stars[0]) : kNoNode;
    if (dict == kNoNode && wrap_in_dict(spot, bound, parameter, wrapper)) return true;
    if (dict == kNoNode) {
      file.find(
          spot.rule, spot.call, Severity::warning,
          fmt::format("{} may get its {} through * or **", spot.name.name, parameter),
          fmt::format("hand the {} through {} where those arguments are put together", parameter, wrapper.function));
      return false;
    }
    value = dict_value(file.syntax, dict, parameter);
  }
  if (!bound.plain || (value == kNoNode && (!add || spot.through_partial))) return false;
  Rewrite rewrite(spot, message);
  if (!spot.sure) rewrite.tier(Tier::review);
  if (value == kNoNode) {
    rewrite.add_argument(spot.call, fmt::format("{}={}()", parameter, rewrite.use(std::string(wrapper.function))));
    return rewrite.commit();
  }
  if (file.resolver.is_instance(file.module, value, wrapper.done)) return false;
  if (file.syntax.kind(value) == Kind::none)
    rewrite.replace(value, rewrite.use(std::string(wrapper.function)) + "()");
  else
    rewrite.wrap(value, fmt::format("{}({}=", rewrite.use(std::string(wrapper.function)), wrapper.keyword), ")");
  return rewrite.commit();
}

namespace {

/// The callback of scripts of TensorFlow 2, whose list is written out: [*callbacks, NPUBroadcastGlobalVariablesCallback(0)].
bool append_callback(Spot& spot, NodeId value) {
  Context& file = spot.file;
  if (value != kNoNode && file.text(value).find("NPUBroadcastGlobalVariablesCallback") != std::string::npos)
    return false;
  Rewrite rewrite(spot, "callbacks get the broadcast of the first values");
  const std::string added =
      rewrite.use("npu_bridge.estimator.npu.npu_callbacks:NPUBroadcastGlobalVariablesCallback") + "(0)";
  const NodeId bare = file.syntax.unwrap(value);
  const Kind kind = value == kNoNode ? Kind::none : file.syntax.kind(bare);
  const std::vector<NodeId> elements = kind == Kind::list ? file.syntax.children(bare) : std::vector<NodeId>();
  if (value == kNoNode)
    rewrite.add_argument(spot.call, "callbacks=[" + added + "]");
  else if (!elements.empty())
    rewrite.wrap(elements.back(), "", ", " + added);
  else if (kind == Kind::none || kind == Kind::list)
    rewrite.replace(value, "[" + added + "]");
  else if (kind == Kind::tuple || kind == Kind::list_comprehension)
    rewrite.wrap(value, "[*", ", " + added + "]");
  else
    rewrite.wrap(value, "[*(", " or ()), " + added + "]");
  return rewrite.commit();
}

}  // namespace

bool append_to_list(Spot& spot, const Arguments& bound, std::string_view parameter, bool callbacks) {
  Context& file = spot.file;
  std::string function = callbacks ? "npu_callbacks_append" : "npu_hooks_append";
  std::string keyword = callbacks ? "callbacks_list" : "hooks_list";
  NodeId value = bound.value(parameter);
  if (!bound.plain || (value == kNoNode && spot.through_partial)) return false;
  if (value == kNoNode && bound.open()) {
    file.find(spot.rule, spot.call, Severity::warning,
              fmt::format("{} may get its {} through * or **", spot.name.name, parameter),
              fmt::format("add {}() to them by hand", function));
    return false;
  }
  if (callbacks && file.own.tf == 2) return append_callback(spot, value);
  Rewrite rewrite(spot, fmt::format("{} get the broadcast of the first values", parameter));
  std::string name = rewrite.use(function);
  if (value == kNoNode) {
    rewrite.add_argument(spot.call, fmt::format("{}={}()", parameter, name));
    return rewrite.commit();
  }
  if (file.resolver.is_instance(file.module, value, callbacks ? "npu.done.callbacks" : "npu.done.hooks")) return false;
  Kind kind = file.syntax.kind(file.syntax.unwrap(value));
  if (kind == Kind::none) {
    rewrite.replace(value, name + "()");
  } else if (kind == Kind::list || kind == Kind::list_comprehension) {
    rewrite.wrap(value, fmt::format("{}({}=", name, keyword), ")");
  } else {
    // The wrapper would extend the caller's own list and throw a tuple away: hand it a copy that is a list.
    bool known = kind == Kind::tuple;
    auto literals = file.resolver.literals(file.module, value);
    if (literals.size() == 1) {
      Kind literal = literals[0].first->syntax().kind(literals[0].second);
      known = known || literal == Kind::list || literal == Kind::tuple || literal == Kind::list_comprehension;
    }
    rewrite.wrap(value, fmt::format("{}({}=list(", name, keyword), known ? "))" : " or ()))");
  }
  return rewrite.commit();
}

void neutralise(Spot& spot, const std::string& why) {
  Context& file = spot.file;
  NodeId statement = file.syntax.parent(spot.call);
  bool alone = file.syntax.kind(statement) == Kind::expression_statement && file.syntax.children(statement).size() == 1;
  Rewrite(spot, why).replace(spot.call, alone ? "pass" : "None").commit();
}

namespace {

std::string lower(std::string_view text) {
  std::string result;
  for (char c : text) result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// Whether a name contains one of the words as a part between underscores, case changes or digits.
bool names_one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  std::string text = lower(name);
  for (std::string_view word : words) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      size_t end = at + word.size();
      bool starts = at == 0 || !std::isalpha(static_cast<unsigned char>(text[at - 1])) ||
                    std::isupper(static_cast<unsigned char>(name[at]));
      // "training", "evaluation", "tests", "validating" count; "trainable", "testament" hardly occur in names of code.
      bool ends = end == text.size() || !std::isalpha(static_cast<unsigned char>(text[end])) ||
                  std::isupper(static_cast<unsigned char>(name[end])) || text.substr(end).starts_with("ing") ||
                  text.substr(end).starts_with("uat") || text.substr(end).starts_with("id") ||
                  text.substr(end).starts_with("s") || text.substr(end).starts_with("ion") ||
                  text.substr(end).starts_with("er");
      if (starts && ends) return true;
    }
  }
  return false;
}

Phase phase_of_name(std::string_view name) {
  bool train = names_one_of(name, {"train", "fit"});
  bool evaluate =
      names_one_of(name, {"eval", "predict", "test", "val", "valid", "validation", "infer", "inference", "dev"});
  if (train == evaluate) return Phase::unknown;
  return train ? Phase::train : Phase::evaluate;
}

// What an if's condition says about its consequence.
Phase phase_of_condition(std::string_view condition) {
  std::string text = lower(condition);
  bool negated = text.find("not ") != std::string::npos || text.find("!=") != std::string::npos;
  Phase phase =
      phase_of_name(text.find("modekeys.") == std::string::npos ? text : text.substr(text.find("modekeys.") + 9));
  if (phase == Phase::unknown || !negated) return phase;
  return phase == Phase::train ? Phase::evaluate : Phase::train;
}

Phase opposite(Phase phase) {
  return phase == Phase::train ? Phase::evaluate : phase == Phase::evaluate ? Phase::train : phase;
}

}  // namespace

Phase phase_of(Context& file, NodeId node) {
  const Syntax& syntax = file.syntax;
  // Outwards: the variable assigned, the branch taken, the function, its class, the file.
  NodeId from = node;
  for (NodeId up = syntax.parent(node); up != kNoNode; from = up, up = syntax.parent(up)) {
    Phase phase = Phase::unknown;
    switch (syntax.kind(up)) {
      case Kind::assignment: phase = phase_of_name(syntax.text(syntax.child(up, Field::left))); break;
      case Kind::keyword_argument: phase = phase_of_name(syntax.text(syntax.child(up, Field::name))); break;
      case Kind::if_statement:
      case Kind::elif_clause:
        if (syntax[from].field == Field::consequence && syntax.child(up, Field::condition) != kNoNode)
          phase = phase_of_condition(syntax.text(syntax.child(up, Field::condition)));
        break;
      case Kind::else_clause:
        if (syntax.kind(syntax.parent(up)) == Kind::if_statement)
          phase = opposite(phase_of_condition(syntax.text(syntax.child(syntax.parent(up), Field::condition))));
        break;
      case Kind::conditional_expression: {
        std::vector<NodeId> parts = syntax.children(up);
        if (parts.size() == 3 && from == parts[0]) phase = phase_of_condition(syntax.text(parts[1]));
        if (parts.size() == 3 && from == parts[2]) phase = opposite(phase_of_condition(syntax.text(parts[1])));
        break;
      }
      case Kind::function_definition:
      case Kind::class_definition:
        if (NodeId name = syntax.child(up, Field::name); name != kNoNode) phase = phase_of_name(syntax.text(name));
        break;
      default: break;
    }
    if (phase != Phase::unknown) return phase;
  }
  size_t slash = file.module.path().rfind('/');
  std::string base = file.module.path().substr(slash == std::string::npos ? 0 : slash + 1);
  return phase_of_name(std::string_view(base).substr(0, base.rfind('.')));
}

std::string training_condition(Context& file, NodeId node) {
  NodeId function = file.syntax.ancestor(node, Kind::function_definition);
  if (function == kNoNode) return "";
  for (const Parameter& parameter : file.module.parameters(function)) {
    if (parameter.name == "is_training" || parameter.name == "training" || parameter.name == "train" ||
        parameter.name == "is_train")
      return std::string(parameter.name);
    if (parameter.name == "mode" && file.holds(function, "ModeKeys"))
      if (std::string tf = file.tensorflow(); !tf.empty()) return "mode == " + tf + ".estimator.ModeKeys.TRAIN";
  }
  return "";
}

}  // namespace cairn::migrate
