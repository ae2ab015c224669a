// Code that asks first whether a name of a framework is there.
#include <algorithm>
#include <array>

#include "migrate/generation.h"

namespace cairn::migrate {
namespace {

bool mentions_one_of(std::string_view text, const auto& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.find(word) != text.npos; });
}

// hasattr(tf, ...) and getattr(tf, ...) of what an import of a framework binds; of other things they say nothing.
bool asks_for_attribute(const Module& module, std::string_view text) {
  for (std::string_view call : {"hasattr(", "getattr("})
    for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1)) {
      std::string_view object = text.substr(at + call.size());
      object = object.substr(0, object.find_first_of("., )"));
      for (const Import& import : module.imports())
        if (import.alias == object && is_reported_framework(import.module)) return true;
    }
  return false;
}

// The text of a condition asks for the version or for a name.
bool asks_in_words(const Module& module, std::string_view text) {
  static constexpr std::array words = {"__version__",       ".VERSION",   "tf_version",         "TF_VERSION",
                                       "executing_eagerly", "find_spec(", "tensorflow_version", "tf2.enabled"};
  return mentions_one_of(text, words) || asks_for_attribute(module, text);
}

// A condition that asks, itself or by a variable that was set so.
bool asks(const Module& module, NodeId condition) {
  const Syntax& syntax = module.syntax();
  if (asks_in_words(module, syntax.text(condition))) return true;
  for (NodeId node = condition; node < syntax[condition].after; ++node) {
    if (syntax.kind(node) != Kind::identifier || syntax[node].field == Field::attribute) continue;
    uint32_t scope = kNoScope;
    for (uint32_t index : module.lookup(syntax.text(node), node, scope)) {
      const Binding& binding = module.bindings()[index];
      if (binding.how == Bound::assigned && binding.value != kNoNode &&
          syntax[binding.value].end - syntax[binding.value].begin < 400 &&
          asks_in_words(module, syntax.text(binding.value)))
        return true;
    }
  }
  return false;
}

// Whether a handler of the try statement takes the error of a missing name or module.
bool handles_missing(const Syntax& syntax, NodeId statement) {
  static constexpr std::array errors = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception"};
  for (NodeId clause = syntax.first(statement); clause != kNoNode; clause = syntax.next(clause)) {
    if (syntax.kind(clause) != Kind::except_clause) continue;
    std::string_view head = syntax.text(clause);
    head = head.substr(0, head.find('\n'));
    if (mentions_one_of(head, errors) || head.starts_with("except:") || head.starts_with("except :")) return true;
  }
  return false;
}

}  // namespace

bool asks_for_names(const Module& module, NodeId node) {
  const Syntax& syntax = module.syntax();
  NodeId from = node;
  for (NodeId up = syntax.parent(node); up != kNoNode; from = up, up = syntax.parent(up)) {
    switch (syntax.kind(up)) {
      case Kind::try_statement:
        if (handles_missing(syntax, up)) return true;
        break;
      case Kind::if_statement:
      case Kind::elif_clause:
      case Kind::conditional_expression:
      case Kind::boolean_operator:
        for (NodeId part = syntax.first(up); part != kNoNode; part = syntax.next(part)) {
          bool condition = syntax[part].field == Field::condition || syntax.kind(up) == Kind::conditional_expression ||
                           syntax.kind(up) == Kind::boolean_operator;
          if (condition && part != from && asks(module, part)) return true;
          if (syntax.kind(part) == Kind::elif_clause && part != from &&
              asks(module, syntax.child(part, Field::condition)))
            return true;
        }
        break;
      case Kind::decorated_definition:
        for (NodeId part = syntax.first(up); part != kNoNode; part = syntax.next(part))
          if (syntax.kind(part) == Kind::decorator && part != from && asks(module, part)) return true;
        break;
      default: break;
    }
  }
  return false;
}

}  // namespace cairn::migrate
