// Imports the nodes of an ONNX graph, of its subgraphs and of its functions by the table of rows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontends/onnx/model.h"
#include "frontends/operands.h"
#include "frontends/problems.h"
#include "frontends/unknowns.h"
#include "ir/builder.h"

namespace cairn::onnx {

class Importer;

/// The function that is being expanded; attribute references and operator versions are resolved in it.
struct Frame {
  const Function* function = nullptr;  // null: the model's graph
  const Node* call = nullptr;
  const Frame* outer = nullptr;
  int level = 0;
};

/// Values by name in the scope of a graph or function body.
struct Names {
  std::unordered_map<std::string_view, Value*> values;
  const Frame* frame = nullptr;
  std::string prefix;  // for the names of source nodes
  Builder* builder = nullptr;
  const std::set<std::string_view>* used = nullptr;  // names used by the nodes and outputs that are being imported
};

/// The context in which a row imports one node. Its functions throw Error with the reason only; the importer adds node
/// and op.
class OpContext {
 public:
  OpContext(Importer& importer, const Node& node, std::string name, Names& names, std::vector<Value*> inputs,
            int64_t opset)
      : b(*names.builder), in(std::move(inputs)), opset(opset), importer_(importer), node_(node),
        name_(std::move(name)), names_(names) {}

  Builder& b;
  Operands in;
  std::vector<Value*> out;
  int64_t opset;  // version of the node's operator set
  const char* target = nullptr;

  const Node& node() const { return node_; }
  const std::string& name() const { return name_; }
  Names& names() const { return names_; }
  Importer& importer() const { return importer_; }

  /// Refuses other numbers of inputs, and a missing input among the first `least`.
  void expect_inputs(size_t least, size_t most) const;
  bool given(size_t input) const { return in.given(input); }
  /// The narrow type (narrow.h) that an input has; 0 for others.
  int32_t narrow_type(size_t input) const;
  size_t rank(size_t input) const;
  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  int64_t integer(std::string_view attribute, std::optional<int64_t> fallback = {}) const;
  double real(std::string_view attribute, double fallback) const;
  std::string text(std::string_view attribute, std::string_view fallback) const;
  std::vector<int64_t> integers(std::string_view attribute, std::vector<int64_t> fallback = {}) const;
  /// So many numbers; each is the fallback where the attribute is not given.
  std::vector<int64_t> integers(std::string_view attribute, size_t count, int64_t fallback) const;
  std::vector<float> reals(std::string_view attribute) const;
  std::vector<std::string> texts(std::string_view attribute) const;
  std::optional<Tensor> tensor(std::string_view attribute, Attribute::Type type = Attribute::Type::tensor) const;
  const Graph& graph(std::string_view attribute) const;
  /// The type that an attribute names; null without the attribute.
  const ValueInfo* type(std::string_view attribute) const;

  std::optional<Tensor> constant(size_t input) const;  // nothing when it is not known during import
  std::vector<int64_t> constant_integers(size_t input, const char* what) const;
  /// Integers that are an attribute in old operator sets and an input in new ones; nothing when missing.
  std::optional<std::vector<int64_t>> integers_of(std::string_view attribute, size_t input) const;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "", format, std::forward<Args>(args)...);
  }

 private:
  const Attribute* find(std::string_view attribute) const;
  const Attribute* find(std::string_view attribute, Attribute::Type type) const;

  Importer& importer_;
  const Node& node_;
  std::string name_;
  Names& names_;
};

struct Row {
  std::string_view op;
  void (*build)(OpContext& context);
  const char* target = nullptr;
  std::string_view domain = {};
  /// The input that names axes, 0 for none, of the first input or, with them, of the result. Where the axes are known only in
  /// a run, the node is built for each set of them, and the run chooses.
  size_t axes_input = 0;
  bool axes_of_result = false;
  /// What the row does with values of narrow types (narrow.h): refuses them, knows them, or moves their elements only.
  enum class Narrow : uint8_t { refuses, knows, moves } narrow = Narrow::refuses;
};
const Row* find_row(std::string_view domain, std::string_view op);
/// The row of a user for the node's type, or null; make_user_op builds the node by that row.
const OpDef* find_user_op(std::string_view domain, std::string_view op);
void make_user_op(OpContext& context);
std::vector<std::string_view> supported_ops();

std::span<const Row> array_rows();
std::span<const Row> attention_rows();
std::span<const Row> blocked_rows();
std::span<const Row> loss_rows();
std::span<const Row> selection_rows();
std::span<const Row> slice_rows();
std::span<const Row> sequence_rows();
std::span<const Row> text_rows();
std::span<const Row> random_rows();
std::span<const Row> control_rows();
std::span<const Row> contrib_rows();
std::span<const Row> contrib_array_rows();
std::span<const Row> contrib_expert_rows();
std::span<const Row> contrib_fused_rows();
std::span<const Row> contrib_quantised_rows();
std::span<const Row> image_rows();
std::span<const Row> learning_rows();
std::span<const Row> tree_rows();
std::span<const Row> math_rows();
std::span<const Row> detection_rows();
std::span<const Row> composed_rows();
std::span<const Row> element_rows();
std::span<const Row> quantisation_rows();
std::span<const Row> network_rows();
std::span<const Row> normalisation_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> signal_rows();

/// Numbers from the node's own stream: a random op's inputs behind its state.
Value* random_numbers(OpContext& context, const char* op, std::vector<Value*> inputs, DType dtype);

inline constexpr const char* kMicrosoft = "com.microsoft";

/// What another operator, as version `opset` of its set means it, makes of these inputs with the attributes of the node.
std::vector<Value*> as_operator(OpContext& context, std::string_view domain, std::string_view op,
                                std::vector<Value*> inputs, int64_t opset);

/// The number of channels in a block of the model's kernels, 8 or 16. Where no kernel tells it, the number that ONNX Runtime
/// uses on this processor.
int64_t channel_block(const Model& model);

/// Thrown by a row when the reason is already recorded among the problems.
struct AlreadyReported {};

class Importer {
 public:
  Importer(const Model& model, Module& module);

  /// Imports the nodes on which `outputs` depend. Initialisers and inputs that are not in `names` yet are added from
  /// the graph.
  std::vector<Value*> import_graph(const Graph& graph, Names& names, const std::vector<std::string_view>& outputs);
  /// The names that a subgraph captures from outside.
  std::set<std::string_view> captures(const Graph& graph) const;

  /// The names of all values on which the outputs of a graph depend.
  std::set<std::string_view> needed(const Graph& graph, const std::vector<std::string_view>& outputs) const;
  /// Tensors of the model's graph that are inputs now: what makes them is not needed.
  void cut(const std::vector<std::string_view>& tensors) { cut_.insert(tensors.begin(), tensors.end()); }

  const Model& model() const { return model_; }
  Module& module() { return module_; }
  /// channel_block of the model, which is found once.
  int64_t channel_block() {
    if (channel_block_ == 0) channel_block_ = onnx::channel_block(model_);
    return channel_block_;
  }
  Problems& problems() { return problems_; }
  /// Tensors of the model's graph that do not depend on a failed node and are used by another node that does not fail.
  const std::vector<std::string>& ends() const { return ends_; }
  /// Tensors of the model's graph that can be inputs so that the outputs need nothing that failed; may be none.
  std::vector<std::string> inputs_below(const std::vector<std::string_view>& outputs) const;
  bool is_unknown(const Value* value) const { return unknowns_.contains(value); }
  /// The narrow type (narrow.h) whose elements a value carries; 0 for others.
  int32_t narrow_type(const Value* value) const {
    auto found = narrow_.find(value);
    return found == narrow_.end() ? 0 : found->second;
  }
  void mark_narrow(const Value* value, int32_t type);
  /// The bool[] that says whether an optional is there; null for others.
  Value* presence(const Value* value) const {
    auto found = presence_.find(value);
    return found == presence_.end() ? nullptr : found->second;
  }
  void mark_presence(const Value* value, Value* given) { presence_[value] = given; }
  /// Keeps a block that is not used after all, so that no other value gets the address of one that has marks.
  void keep(std::unique_ptr<Block> block) { unused_.push_back(std::move(block)); }

 private:
  void import_node(const Node& node, Names& names);
  void build_row(const Row& row, OpContext& context);
  void build_by_axes(const Row& row, OpContext& context);
  /// Whether all results exist.
  bool build(const Row& row, const Node& node, const std::string& name, std::vector<Value*> inputs, Names& names);
  void call_function(const Function& function, const Node& node, Names& names, const std::string& name,
                     const std::vector<Value*>& inputs);
  void import_nodes(const std::vector<Node>& nodes, Names& names, const std::vector<std::string_view>& outputs);
  std::vector<Value*> with_declared_ranks(const Node& node, std::vector<Value*> inputs, Names& names,
                                          const Unknowns::Build& make);
  void record(const Node& node, const std::vector<Value*>& results, Names& names);
  int64_t opset(const Frame* frame, std::string_view domain) const;

  const Model& model_;
  Module& module_;
  Problems problems_;
  Unknowns unknowns_;
  std::unordered_map<const Value*, int32_t> narrow_;
  std::unordered_map<const Value*, Value*> presence_;
  std::vector<std::unique_ptr<Block>> unused_;
  int64_t channel_block_ = 0;  // 0: not found yet
  size_t guessed_graphs_ = 0;  // number of graphs imported with stand-ins among their results
  std::unordered_map<std::string_view, const ValueInfo*> infos_;
  std::vector<std::string> ends_;
  std::set<std::string_view> cut_;
  std::set<uint32_t> failed_;  // nodes of the model's graph
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const Function*> functions_;
};

}  // namespace cairn::onnx
