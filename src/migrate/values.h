// What an expression of a script may be: a name of a framework, an instance of one of its classes, a definition of the
// project. Follows imports, aliases, assignments, returns, classes and calls through all files of the project.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "migrate/project.h"

namespace cairn::migrate {

struct Value {
  enum class Is : uint8_t {
    named,     // the thing called `name` (raw dotted spelling: tensorflow.compat.v1.Session)
    instance,  // a call of the class `name`
    method,    // `member` of an instance of `name`
    module,    // the project module `module`
    function,  // definition `node` in `module`; of an instance of `self` when that is set
    class_,    // definition `node` in `module`
    object,    // an instance of that class
    super,     // super() inside that class
    partial,   // what the call `node` of functools.partial in `module` gives
    literal,   // a string, number, list, tuple, dict, None, ...: the expression `node` in `module`
  };
  Is is;
  std::string name;
  std::string member;
  const Module* module = nullptr;
  NodeId node = kNoNode;

  bool operator==(const Value&) const = default;
};
using Values = std::vector<Value>;

/// A framework name in its canonical spelling: tensorflow.compat.v1.train.X, tensorflow.train.X -> tf.train.X.
struct ApiName {
  std::string name;  // "tf.train.AdamOptimizer"; a method is "tf.data.Dataset:batch"
  int compat = 0;    // 1 or 2 when spelled tf.compat.v1 or tf.compat.v2
  std::string
      elder;  // its own spelling where that is of Keras 2.0 to 2.3, "tf.keras.layers.core.Dense", or of contrib.distribute
  bool inner = false;  // spelled by TensorFlow's own copy of Keras, tensorflow.python.keras
  bool operator==(const ApiName&) const = default;
};

class Resolver {
 public:
  explicit Resolver(const Project& project) : project_(project) {}

  /// All that the expression may be, as far as it can be known; empty when nothing is.
  const Values& values(const Module& module, NodeId expression);
  /// Canonical framework names among values(), without duplicates.
  std::vector<ApiName> names(const Module& module, NodeId expression);
  /// Whether some value of the expression is an instance of `klass` (canonical) or of a class under it, `sure` when all are.
  bool is_instance(const Module& module, NodeId expression, std::string_view klass, bool* sure = nullptr);
  /// Canonical external classes that a project class inherits from, nearest first.
  std::vector<std::string> external_bases(const Module& module, NodeId class_node);
  /// The literals that the expression may be (through names and arguments), as (module, node).
  std::vector<std::pair<const Module*, NodeId>> literals(const Module& module, NodeId expression);
  /// What functools.partial was given to call, in the module of `partial`.
  const Values& wrapped_by(const Value& partial);
  /// What the calls of its function pass for a parameter, in this file, else in those that import it.
  std::vector<std::pair<const Module*, NodeId>> arguments_of(const Module& module, const Binding& parameter);

 private:
  Values evaluate(const Module& module, NodeId node);
  Values of_subscript(const Module& module, NodeId node);
  Values of_identifier(const Module& module, NodeId node);
  Values of_binding(const Module& module, const Binding& binding);
  bool is_tensor(const Module& module, NodeId node);
  Values parts_of(const Module& module, NodeId whole);
  Values items_of(const Module& module, NodeId iterable);
  Values of_parameter(const Module& module, const Binding& binding);
  Values of_import(const Module& module, const std::string& name);
  Values of_member(const Module& importer, const std::string& from, const std::string& member);
  const Values& module_member(const Module& module, const std::string& member);
  Values of_attribute(const Module& module, NodeId node);
  Values attribute_of(const Value& value, const std::string& name);
  Values read(const Values& members);
  Values class_attribute(const Module& module, NodeId class_node, const std::string& name, bool skip_own, int depth);
  const Values& own_or_inherited(const Module& module, NodeId class_node, const std::string& name);
  Values of_call(const Module& module, NodeId node);
  void add_called(Values& found, const Value& callee, const Module& module, NodeId call);
  void add_attribute_by_name(Values& found, const Module& module, NodeId call);
  void add_members(Values& found, const Module& module, NodeId literal);
  const Values& returned(const Module& module, NodeId function);
  NodeId enclosing_class(const Module& module, NodeId function) const;
  void star_member(const Module& module, std::string_view name, Values& found);

  const Project& project_;
  // What is known by expression; by module and member; by class, attribute; by function. An entry exists from the moment its
  // evaluation begins, empty, so that cycles end.
  std::unordered_map<uint64_t, Values> known_, returned_;
  std::unordered_map<std::string, Values> members_;
  std::unordered_map<const Binding*, Values> imported_;
  int depth_ = 0;
};

/// Canonical spelling of a dotted framework name; `name` unchanged when it is none of ours.
ApiName canonical(std::string_view name);
/// Whether class `klass` (canonical) is `base` or under it in the frameworks' own hierarchy.
bool is_subclass(std::string_view klass, std::string_view base);
/// The class whose instance a call of this canonical name gives, "" when unknown.
std::string returned_class(const std::string& name);
/// Whether `from module import *` of this raw module name brings in `name`.
bool star_exports(std::string_view module, std::string_view name);
/// Raw dotted names that migration speaks about (tensorflow, keras, horovod, npu_bridge, ...).
bool is_reported_framework(std::string_view dotted);

}  // namespace cairn::migrate
