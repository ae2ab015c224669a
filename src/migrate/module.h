// What one script binds: its scopes, the names in them and the places that give each name a value. Built once per file,
// read by any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "migrate/syntax.h"

namespace cairn::migrate {

enum class Bound : uint8_t {
  import,       // import a.b as c, or import a.b (binds a): `module`
  from_import,  // from m import x as y: `module`, `member`
  assigned,     // value
  part,         // one of several targets of `value`
  loop,         // item of the iterable `value`
  with,         // what the context manager `value` gives
  parameter,    // default `value` (or kNoNode) of the function `owner`
  function,     // `value` is the definition
  class_,       // `value` is the definition
  unknown,
};

struct Binding {
  Bound how;
  NodeId site;  // the name where it is bound
  NodeId value = kNoNode;
  NodeId owner = kNoNode;  // parameter: the function or lambda
  uint32_t since = 0;      // offset from which the binding holds
  int index = 0;           // parameter: position, -1 for *args, -2 for **kw, -3 keyword-only
  std::string module;      // imports; leading dots as written
  std::string member;
};

enum class ScopeKind : uint8_t { module, class_, function, comprehension };

struct Scope {
  ScopeKind kind;
  NodeId node;
  uint32_t parent;
  std::unordered_map<std::string_view, std::vector<uint32_t>> names;  // indices of bindings
  std::vector<std::string_view> globals;
  std::vector<std::string_view> nonlocals;
};

inline constexpr uint32_t kNoScope = 0xFFFFFFFF;

/// One written parameter list, to bind calls of the project's own functions.
struct Parameter {
  std::string_view name;
  NodeId site;
  NodeId value;
  int index;
};

struct Import {
  NodeId statement;
  NodeId entry;            // dotted_name or aliased_import inside it; wildcard_import for a star
  std::string module;      // as written, with leading dots
  std::string member;      // from-imports
  std::string_view alias;  // the name it binds
  bool star = false;
};

struct SelfAssignment {
  NodeId class_;  // the class whose method makes it
  std::string_view name;
  NodeId value;
};

class Module {
 public:
  Module(std::string path, std::string text);
  Module(const Module&) = delete;

  const std::string& path() const { return path_; }  // relative to the root, '/' between parts
  const std::string& text() const { return text_; }
  const std::string& encoding() const { return encoding_; }
  const Syntax& syntax() const { return syntax_; }
  const LineIndex& lines() const { return lines_; }
  const std::vector<Scope>& scopes() const { return scopes_; }
  const std::vector<Binding>& bindings() const { return bindings_; }
  const std::vector<Import>& imports() const { return imports_; }
  const std::vector<SelfAssignment>& self_assignments() const { return self_assignments_; }
  uint32_t scope_of(NodeId node) const { return scope_of_[node]; }
  /// The scope that a function, class or comprehension node opens.
  uint32_t scope_opened_by(NodeId node) const;
  /// Bindings that a use of `name` at `use` may see: those that reach it when it is local, all of an outer scope's.
  /// `scope` becomes the scope that owns them, kNoScope when nothing here binds the name.
  std::vector<uint32_t> lookup(std::string_view name, NodeId use, uint32_t& scope) const;
  /// Whether any scope binds this name or the file merely mentions it.
  bool mentions(std::string_view name) const { return mentioned_.contains(name); }
  /// Calls whose callee ends in this name.
  const std::vector<NodeId>& calls_of(std::string_view name) const;
  std::vector<Parameter> parameters(NodeId function) const;

 private:
  uint32_t scope_under_parent(NodeId node) const;
  void build();
  void bind(std::string_view name, Binding binding, uint32_t scope);
  void bind_target(NodeId target, NodeId value, Bound how, uint32_t since);
  void bind_import(NodeId statement);
  void bind_from(NodeId statement);
  void bind_parameters(NodeId function);
  std::vector<uint32_t> reaching(const std::vector<uint32_t>& all, NodeId use) const;

  std::string path_, text_, encoding_;
  Syntax syntax_;
  LineIndex lines_;
  std::vector<Scope> scopes_;
  std::vector<Binding> bindings_;
  std::vector<Import> imports_;
  std::vector<SelfAssignment> self_assignments_;
  std::vector<uint32_t> scope_of_;
  std::unordered_map<NodeId, uint32_t> opened_;
  std::unordered_map<std::string_view, std::vector<NodeId>> calls_;
  std::unordered_map<std::string_view, uint32_t> mentioned_;
};

}  // namespace cairn::migrate
