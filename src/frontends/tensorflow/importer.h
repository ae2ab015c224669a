// Imports the nodes of a graph and of its functions by the table of rows, in topological order and without recursion
// over the graph's depth.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontends/operands.h"
#include "frontends/problems.h"
#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/row.h"
#include "frontends/tensorflow/saved_model.h"
#include "frontends/unknowns.h"
#include "ir/builder.h"

namespace cairn::tensorflow {

class Importer;

/// Thrown by a row when the reason is already recorded among the problems, for example inside a branch.
struct AlreadyReported {};

/// The context in which a row imports one node; the row appends the results to `out`. Its functions throw Error with
/// the reason only; the importer adds node and op.
class OpContext {
 public:
  OpContext(Importer& importer, const Node& node, std::string name, Builder& builder, std::vector<Value*> inputs,
            int level)
      : b(builder), in(std::move(inputs)), importer_(importer), node_(node), name_(std::move(name)), level_(level) {}

  Builder& b;
  Operands in;                   // data inputs
  std::vector<Value*> out;       // results, in order
  const char* target = nullptr;  // the row's op name

  const Node& node() const { return node_; }
  const std::string& name() const { return name_; }
  int level() const { return level_; }
  Importer& importer() const { return importer_; }

  /// Refuses other numbers of inputs.
  void expect_inputs(size_t count) const;
  void expect_inputs(size_t least, size_t most) const;
  /// The rank; refuses an unknown one.
  size_t rank(size_t input) const;
  bool has(std::string_view attr) const { return node_.find(attr) != nullptr; }
  int64_t integer(std::string_view attr, std::optional<int64_t> fallback = {}) const;
  bool boolean(std::string_view attr, bool fallback) const;
  double real(std::string_view attr, double fallback) const;
  std::string text(std::string_view attr, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view attr) const;  // empty when absent
  std::vector<std::string> texts(std::string_view attr) const;
  /// Element type; `fallback` kDtInvalid: required.
  DType dtype(std::string_view attr, DataType fallback = kDtInvalid) const;
  std::optional<ShapeProto> shape(std::string_view attr) const;
  std::string_view function(std::string_view attr) const;
  std::vector<std::string_view> functions(std::string_view attr) const;

  /// The elements of an input that must be known during import; `what` names it in the refusal.
  Tensor constant(size_t input, const char* what) const;
  std::vector<int64_t> constant_integers(size_t input, const char* what) const;
  int64_t constant_integer(size_t input, const char* what) const;
  /// The same, but nothing if they are known only at run time; there must be `count` elements.
  std::optional<std::vector<int64_t>> known_bounds(size_t input, size_t count) const;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "", format, std::forward<Args>(args)...);
  }

 private:
  AttrValue attr(std::string_view name, AttrValue::Kind kind) const;

  Importer& importer_;
  const Node& node_;
  std::string name_;
  int level_;
};

/// The content of a lookup table, sorted by keys and in the original order.
struct LookupTable {
  Tensor keys, values, filled_keys, filled_values;
};

/// The properties of a stack or TensorArray as far as the nodes imported so far tell.
struct ListState {
  Type declared;
  bool grows = false;
  bool gradient = false;  // writes to the same index are added up
  bool told = false;      // an element was read
  /// The type of each element that is written, by node: a loop's body is imported several times, and the last time
  /// counts.
  std::map<std::string, Type> types = {};
  std::map<std::string, std::optional<Tensor>> values = {};  // known values of written elements
};

class Importer {
 public:
  Importer(const GraphDef& graph, Module& module);

  /// Imports the nodes on which `tensors` depend into the builder's block; `inputs` are values that replace nodes. The
  /// results are null or stand-ins if a node above could not be imported.
  std::vector<Value*> import_graph(const std::vector<Edge>& tensors, const std::unordered_map<uint32_t, Value*>& inputs,
                                   Builder& builder);
  /// Imports the call of a library function with these arguments, naming its nodes "<prefix>/<node>"; returns the
  /// results.
  std::vector<Value*> import_function(std::string_view name, const std::vector<Value*>& args, Builder& builder,
                                      const std::string& prefix, int level);
  const FunctionDef& find_function(std::string_view name) const;
  bool is_function(std::string_view name) const { return library_.find(name) != nullptr; }

  /// From now on control edges order nodes, and functions also run for their side effects.
  void keep_effects() { effects_ = true; }
  bool keeps_effects() const { return effects_; }
  /// Marks the handle as a TF1 reference: an op that takes a value reads its content.
  void add_reference(const Value* handle) { references_.insert(handle); }
  /// Copies the properties of a handle outside of a region to the one inside.
  void enter(const Value* outside, const Value* inside);
  bool is_reference(const Value* value) const {
    return value->type.kind == Type::Kind::resource && references_.contains(value);
  }
  /// Marks the handle's variable as a list that is local to the run.
  void add_list(const Value* handle, ListState state) {
    references_.erase(handle);
    lists_[handle] = std::make_shared<ListState>(std::move(state));
  }
  ListState& list_state(const Value* handle);

  /// Records unused nodes of the file's graph as removed sources: dead, or identity if they only forwarded a value to a
  /// loop or branch.
  void explain_others(const GraphDef& original, const std::vector<TensorInfo>& inputs);

  const std::shared_ptr<ModelBytes>& model() const { return graph_.model; }
  Problems& problems() { return problems_; }
  /// Whether the value's type is a guess because a node above it could not be imported.
  bool is_unknown(const Value* value) const { return unknowns_.contains(value); }
  /// Nodes of the graph itself (not of its functions) that could not be imported although all nodes above them could.
  const std::vector<uint32_t>& failed() const { return failed_; }
  Module& module() { return module_; }
  const GraphDef& graph() const { return graph_; }
  /// The tables imported so far, by node name.
  std::map<std::string, LookupTable>& tables() { return tables_; }

 private:
  struct Scope;
  std::vector<Value*> run(Scope& scope, const std::vector<Edge>& wanted);
  void import_node(Scope& scope, uint32_t index);
  std::vector<Value*> build(Scope& scope, const Row& row, const Node& node, const std::string& name,
                            std::vector<Value*> inputs);
  Value* value(Scope& scope, Edge from);
  /// The stand-in for a result of a node that could not be imported; null for handles.
  Value* stand_in(Scope& scope, Edge from);
  void import_known(Scope& scope, uint32_t index, const Row& row, std::vector<Value*> inputs);
  /// Checks the functions that a node calls, transitively, for ops without a row.
  void look_through(const Node& node, const std::string& prefix, int level);
  std::vector<std::string_view> called_by(const Node& node) const;
  void read_references(std::vector<Value*>& inputs, const Row& row, Builder& builder) const;
  /// The node's own name if it is unique, else prefixed by the names of the enclosing calls.
  std::string source_name(const Scope& scope, const Node& node);
  std::string source_name(const std::string& prefix, const Node& node);
  SourceId source(const std::string& name, std::string_view op, std::string_view location);

  const GraphDef& graph_;
  Library library_;
  Module& module_;
  Problems problems_;
  Unknowns unknowns_;
  size_t guessed_calls_ = 0;  // number of calls with stand-ins among their results
  std::vector<uint32_t> failed_;
  bool effects_ = false;
  std::unordered_set<const Value*> references_;
  std::unordered_map<const Value*, std::shared_ptr<ListState>> lists_;
  std::unordered_map<std::string, std::string> owners_;  // short name -> its node's name with all calls
  std::map<std::string, LookupTable> tables_;
  std::unordered_map<std::string, SourceId> sources_;  // bodies of loops are imported several times
};

}  // namespace cairn::tensorflow
