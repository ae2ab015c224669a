// What a rule is and what it works with. A rule is one row: which calls it is about, what it does there, why, and
// examples that are its tests and its documentation. Rows: rules_*.cpp; the list: rules.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "migrate/generation.h"
#include "migrate/migrate.h"
#include "migrate/values.h"

namespace cairn::migrate {

struct Example {
  std::string_view before;
  std::string_view after;         // "" : nothing is edited
  std::string_view options = "";  // "key=value ..." as on the command line
  bool reported = true;           // of a rule that only advises: whether it has something to say
};

/// When a rule takes part without being asked for.
enum class When : uint8_t {
  always,
  tf1,  // scripts of the TensorFlow 1 interface
  tf2,
  strategy,   // scripts distributed by a tf.distribute strategy
  mindspore,  // scripts of PyTorch, with --to mindspore
  platform,   // only with --platform or --enable: needed on the Ascend hardware, not here
};

class Context;
struct Spot;

struct Rule {
  std::string_view id;
  Tier tier;
  When when;
  std::string_view title;               // what it rewrites
  std::string_view reason;              // why
  std::vector<std::string_view> calls;  // canonical names of callees; a final * stands for any rest
  void (*at_call)(Spot&) = nullptr;
  void (*at_file)(Context&, const Rule&) = nullptr;
  std::vector<Example> examples;
  bool arguments_alone = false;  // at_call changes arguments alone, so that it fits what functools.partial takes
};

/// All rules, in the order in which they are tried; an earlier one wins where two want the same text.
const std::vector<const Rule*>& all_rules();
const Rule* find_rule(std::string_view id);

/// How a call's arguments meet a parameter list.
struct Arguments {
  struct Given {
    NodeId value = kNoNode;     // the expression
    NodeId argument = kNoNode;  // what stands in the list: the expression, or name=expression
    bool keyword = false;
  };
  std::map<std::string_view, Given> given;
  std::vector<NodeId> stars;         // *args
  std::vector<NodeId> double_stars;  // **kw
  std::vector<NodeId> extra;         // positional beyond the list, or keywords not in it
  bool plain = true;                 // an ordinary argument list; false for f(x for x in y)

  bool has(std::string_view name) const { return given.contains(name); }
  NodeId value(std::string_view name) const {
    auto found = given.find(name);
    return found == given.end() ? kNoNode : found->second.value;
  }
  /// Whether an argument may come in through * or **.
  bool open() const { return !stars.empty() || !double_stars.empty(); }
};

/// Canonical names of what a call calls, classes of the project standing for the framework class they inherit.
std::vector<ApiName> targets_of(Resolver& resolver, const Module& module, NodeId call);

/// One file under migration.
class Context {
 public:
  Context(const Project& project, const Module& module, Resolver& resolver, const Options& options,
          const ProjectFacts& facts, const FileFacts& own, FileResult& result);

  const Project& project;
  const Module& module;
  const Syntax& syntax;
  Resolver& resolver;
  const Options& options;
  const ProjectFacts& facts;
  const FileFacts& own;
  FileResult& result;
  std::vector<Change> changes;
  std::map<NodeId, std::string_view> rewritten;  // callees and names that a change takes care of, and its rule

  std::string text(NodeId node) const { return std::string(syntax.text(node)); }
  Arguments bind(NodeId call, std::string_view parameters) const;
  std::vector<ApiName> targets(NodeId call) { return targets_of(resolver, module, call); }
  /// Whether the call is one of functools.partial (by whatever name), whose first argument is what it is about.
  bool makes_partial(NodeId call) const;
  /// What a call of functools.partial is to call.
  std::vector<ApiName> targets_of_partial(NodeId call) const;
  /// Whether the call may be one of what functools.partial gave, which holds arguments of its own.
  bool calls_partial(NodeId call) const;
  bool calls(NodeId call, std::string_view name);
  /// How this file spells TensorFlow ("tf"), "" when it has no name for it.
  std::string tensorflow();
  void find(const Rule& rule, NodeId node, Severity severity, std::string message, std::string advice);
  bool suppressed(NodeId node, std::string_view rule);
  /// Whether the statement around the node parsed without damage.
  bool sound(NodeId node) const;
  /// The name under which `name` of npu_bridge.npu_init can be used in this file, imported or to be imported.
  std::string spelling(const std::string& name);
  bool is_enabled(const Rule& rule) const;
  /// Definition nodes of functions and classes around the node, innermost first.
  std::vector<NodeId> definitions_around(NodeId node) const;
  std::string newline() const;
  /// Whether the file, or the code of one node, holds these words; each is searched once.
  bool holds(const std::string& words) { return holds(0, words); }
  bool holds(NodeId node, const std::string& words);

 private:
  std::map<std::pair<NodeId, std::string>, bool> held_;
  std::map<std::string, std::string> spelled_;
};

/// A call that a rule is about.
struct Spot {
  Context& file;
  const Rule& rule;
  NodeId call;
  ApiName name;
  bool sure;                     // no other known value of the callee speaks against it
  bool through_partial = false;  // further arguments stand where functools.partial was called
};

/// Collects the edits of one change; commit() hands it in unless the code around is damaged or a comment forbids it.
class Rewrite {
 public:
  Rewrite(Context& file, const Rule& rule, NodeId at, std::string message = "");
  Rewrite(Spot& spot, std::string message = "") : Rewrite(spot.file, spot.rule, spot.call, std::move(message)) {}

  Rewrite& tier(Tier tier);
  Rewrite& insert(uint32_t offset, std::string text, int64_t order = 0);
  Rewrite& replace(NodeId node, std::string text);
  Rewrite& replace(Span span, std::string text);
  Rewrite& wrap(NodeId node, std::string before, std::string after);
  Rewrite& add_argument(NodeId call, const std::string& text);
  Rewrite& remove_arguments(NodeId call, const std::vector<NodeId>& arguments);
  /// New lines before or after the statement, indented as it is. False when it shares its line with others.
  bool insert_before(NodeId statement, const std::vector<std::string>& lines);
  bool insert_after(NodeId statement, const std::vector<std::string>& lines);
  /// `name` of npu_bridge.npu_init as this file will spell it.
  std::string use(const std::string& name);
  bool commit();

 private:
  bool insert_lines(uint32_t offset, NodeId statement, const std::vector<std::string>& lines, bool after);
  Context& file_;
  const Rule& rule_;
  NodeId node_;
  Change change_;
  std::vector<NodeId> touched_;
};

/// Adds one edit with the import lines that the file's changes ask for; false when there is no place for them (imports.cpp).
bool add_imports(Context& file, std::vector<Edit>& edits);

/// Adds to the file's result what becomes of each use of a framework's name, once the edits are known (references.cpp).
void note_references(Context& file, const std::vector<Edit>& edits);

// ---- expressions (expression.cpp) ----

/// The expression's text ready to stand as an operand of + and -, in parentheses when it binds less tightly.
std::string as_operand(const Syntax& syntax, NodeId node);
/// Text for 1 - expression: decimals folded exactly, 1 - (1 - k) becomes k, parentheses by precedence.
std::string one_minus(const Syntax& syntax, NodeId node);
/// The number that a literal or simple arithmetic on literals is; false when it is none.
bool number_value(const Syntax& syntax, NodeId node, double& value);
/// Whether the bytes between two offsets are only blanks, commas and line breaks.
bool is_blank(std::string_view text, uint32_t begin, uint32_t end);

}  // namespace cairn::migrate
