// A Python file as a flat tree of nodes with byte spans. tree-sitter parses; everything above this header sees only these
// nodes, so that the parser can be exchanged. Nodes lie in pre-order: a subtree is a contiguous range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "migrate/source.h"

namespace cairn::migrate {

// The grammar's names of the nodes that some rule or scope asks for; any other node is `other`.
// clang-format off
#define CAIRN_SYNTAX_KINDS(X) \
  X(module) X(import_statement) X(import_from_statement) X(future_import_statement) X(import_prefix) \
  X(relative_import) X(aliased_import) X(wildcard_import) X(dotted_name) X(identifier) X(comment) \
  X(expression_statement) X(assignment) X(augmented_assignment) X(named_expression) X(return_statement) \
  X(delete_statement) X(pass_statement) X(if_statement) X(elif_clause) X(else_clause) X(for_statement) \
  X(while_statement) X(try_statement) X(except_clause) X(except_group_clause) X(finally_clause) X(with_statement) \
  X(with_clause) X(with_item) X(block) X(function_definition) X(parameters) X(lambda_parameters) \
  X(default_parameter) X(typed_parameter) X(typed_default_parameter) X(list_splat_pattern) \
  X(dictionary_splat_pattern) X(global_statement) X(nonlocal_statement) X(class_definition) X(decorated_definition) \
  X(decorator) X(argument_list) X(keyword_argument) X(list_splat) X(dictionary_splat) X(parenthesized_list_splat) \
  X(lambda) X(call) X(attribute) X(subscript) X(string) X(string_content) X(string_start) X(string_end) \
  X(interpolation) X(concatenated_string) X(integer) X(none) X(true_) X(false_) X(float_) X(list) X(tuple) \
  X(dictionary) X(set) X(pair) X(parenthesized_expression) X(conditional_expression) X(boolean_operator) \
  X(not_operator) X(binary_operator) X(unary_operator) X(comparison_operator) X(await) X(yield) \
  X(list_comprehension) X(dictionary_comprehension) X(set_comprehension) X(generator_expression) X(for_in_clause) \
  X(if_clause) X(as_pattern) X(as_pattern_target) X(pattern_list) X(tuple_pattern) X(list_pattern) \
  X(expression_list) X(type) X(raise_statement) X(match_statement) X(case_clause) X(case_pattern) X(print_statement) \
  X(exec_statement) X(ERROR) X(op)

#define CAIRN_SYNTAX_FIELDS(X) \
  X(alias) X(alternative) X(argument) X(arguments) X(attribute) X(body) X(condition) X(consequence) X(definition) \
  X(function) X(key) X(left) X(module_name) X(name) X(object) X(operator_) X(operators) X(parameters) X(right) \
  X(subscript) X(superclasses) X(type) X(value)
// clang-format on

#define CAIRN_ENUM_ENTRY(name) name,
enum class Kind : uint8_t { other, CAIRN_SYNTAX_KINDS(CAIRN_ENUM_ENTRY) };
enum class Field : uint8_t { none, CAIRN_SYNTAX_FIELDS(CAIRN_ENUM_ENTRY) };
#undef CAIRN_ENUM_ENTRY

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0xFFFFFFFF;

struct Node {
  uint32_t begin, end;
  NodeId parent;
  NodeId after;  // one past the last node of this subtree
  Kind kind;
  Field field;  // what this node is to its parent
  bool broken;  // ERROR or MISSING, or holds one
};

/// What is called when the parser gets no memory, which it cannot go on without: the handler ends the process.
void when_parser_lacks_memory(void (*handler)(size_t bytes));

class Syntax {
 public:
  /// Parses `text` (kept by the caller for as long as this lives). Never fails: damage becomes `broken` nodes.
  explicit Syntax(std::string_view text, const std::string& encoding = "utf-8");
  /// error_count() of a text that nothing else is asked about: sound ones, which most are, cost the parse alone.
  static size_t errors_in(std::string_view text, const std::string& encoding = "utf-8");

  std::string_view text() const { return text_; }
  NodeId size() const { return static_cast<NodeId>(nodes_.size()); }
  /// kNoNode stands for an empty node without relations, so that damaged code needs no tests on the way down.
  const Node& operator[](NodeId id) const { return id == kNoNode ? kEmpty : nodes_[id]; }
  Kind kind(NodeId id) const { return (*this)[id].kind; }
  std::string_view text(NodeId id) const {
    return text_.substr((*this)[id].begin, (*this)[id].end - (*this)[id].begin);
  }
  Span span(NodeId id) const { return {(*this)[id].begin, (*this)[id].end}; }
  NodeId parent(NodeId id) const { return (*this)[id].parent; }

  /// First child, or kNoNode; next sibling, or kNoNode. Comments are children too.
  NodeId first(NodeId id) const { return (*this)[id].after > id + 1 ? id + 1 : kNoNode; }
  NodeId next(NodeId id) const;
  /// The child that plays `field`, or kNoNode.
  NodeId child(NodeId id, Field field) const;
  /// Children without comments and operator tokens.
  std::vector<NodeId> children(NodeId id) const;

  /// Nearest ancestor (not `id` itself) of this kind, or kNoNode.
  NodeId ancestor(NodeId id, Kind kind) const;
  /// The statement that holds `id`: the ancestor whose parent is a block or the module.
  NodeId statement(NodeId id) const;
  /// `id` without enclosing parentheses inside it: (x) -> x.
  NodeId unwrap(NodeId id) const;
  bool is_error(NodeId id) const { return kind(id) == Kind::ERROR; }
  /// ERROR and MISSING nodes.
  uint32_t error_count() const { return errors_; }
  NodeId first_error() const { return first_error_; }

 private:
  static constexpr Node kEmpty = {0, 0, kNoNode, 0, Kind::other, Field::none, false};
  std::string_view text_;
  std::vector<Node> nodes_;
  uint32_t errors_ = 0;
  NodeId first_error_ = kNoNode;
};

/// The contents of a plain string literal (concatenated pieces joined, escapes left as written); nothing for f-strings
/// with replacement fields and for other nodes.
bool string_value(const Syntax& syntax, NodeId id, std::string& value);

}  // namespace cairn::migrate
