// One PyTorch script on its way to MindSpore: the edits so far, and what can only be written at the end, when all edits are
// known: lines that go, lines that move in or out, new lines among them, the imports.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "migrate/rules.h"
#include "migrate/torch_table.h"

namespace cairn::migrate {

/// The lines of a script, from 1; a line on which backward() stands among other statements is a row for each of them.
class Rows {
 public:
  explicit Rows(const Module& module);
  uint32_t at(uint32_t offset) const;
  uint32_t count() const { return static_cast<uint32_t>(starts_.size()); }
  uint32_t start(uint32_t row) const { return starts_[row - 1].offset; }
  /// The statement in front of which a row begins inside of its line; kNoNode where it begins the line.
  NodeId statement(uint32_t row) const { return starts_[row - 1].statement; }
  /// Whether a line has further rows.
  bool shared(uint32_t row) const { return statement(row) != kNoNode || inner(row + 1); }
  bool inner(uint32_t row) const { return row <= count() && statement(row) != kNoNode; }
  /// The row's first one on its line.
  uint32_t head(uint32_t row) const;

 private:
  struct Start {
    uint32_t offset;
    NodeId statement;
  };
  std::vector<Start> starts_;
};

class TorchFile {
 public:
  explicit TorchFile(Context& file) : file(file), syntax(file.syntax), text(file.module.text()), rows(file.module) {}

  Context& file;
  const Syntax& syntax;
  const std::string& text;
  const Rows rows;
  std::optional<std::set<std::string>> layers_of_variables;  // of all scripts, once asked for

  /// The text of a span with the edits made in it so far.
  std::string rendered(Span span) const;
  std::string rendered(NodeId node) const { return rendered(syntax.span(node)); }
  /// Takes back the edits inside a span that new text replaces.
  void discard(Span span, bool with_begin, bool with_end);
  /// Replaces a node, or what stands between two offsets.
  void replace(const Rule& rule, NodeId node, std::string by, std::string message);
  /// The text in which definitions of ours whose names the script has itself are called torch_NAME.
  std::string own_names(std::string_view text) const;
  /// Notes the names that new text uses, for the imports; gives the text back.
  const std::string& needing(const std::string& new_text);
  /// Notes that a statement goes, with its line when it has one to itself.
  void drop(const Rule& rule, NodeId statement, std::string message);
  /// Says that a name with its parts is MindSpore's now, though it is spelled as before.
  void settle(NodeId name) {
    for (NodeId part = name; part < syntax[name].after; ++part) settled_.insert(part);
  }
  /// Says that a line is gone and does not move.
  void take_line(uint32_t line) { gone_.insert(line); }
  bool dropped(NodeId statement) const { return drops_.contains(statement); }
  /// Moves the lines from the begin of one offset's line to the end of another's by this many columns.
  void shift(uint32_t from, uint32_t to, int columns) { shifts_.push_back({line_of(from), line_of(to), columns}); }
  /// New lines before the line of `offset`, indented as the line of `like` will be, and by `further` columns.
  void insert_lines(const Rule& rule, uint32_t offset, uint32_t like, int further, std::vector<std::string> lines,
                    std::string message, int order = 0);
  /// New lines behind the line on which `offset` lies.
  void append_lines(const Rule& rule, uint32_t offset, uint32_t like, std::vector<std::string> lines,
                    std::string message);
  /// Leaves a name as it is, marks its line and says why.
  void leave(NodeId node, const std::string& name, const std::string& reason);
  void note(NodeId node, std::string_view name, std::string_view status, std::string advice = "");
  /// Columns by which this file indents.
  int unit() const;
  uint32_t line_of(uint32_t offset) const { return rows.at(offset); }
  std::string_view line(uint32_t row) const;
  int indent_of(uint32_t line) const;
  /// Writes what was noted.
  void finish();

 private:
  struct Shift {
    uint32_t first, last;
    int columns;
  };
  struct Lines {
    const Rule* rule;
    uint32_t offset, like;
    int further, order;
    std::vector<std::string> lines;
    std::string message;
  };
  int moved(uint32_t line) const;
  bool in_string(uint32_t offset) const;
  std::string definition(const std::string& name) const;
  void write_drops();
  void split_rows();
  void write_lines();
  void write_imports();
  std::vector<std::string> guard_imports(std::map<NodeId, std::vector<NodeId>>& unused);
  bool still_used(const Import& import) const;

  std::map<NodeId, std::pair<const Rule*, std::string>> drops_;
  std::vector<Shift> shifts_;
  std::vector<Lines> lines_;
  std::set<std::string> needs_;
  std::map<std::string, std::string> left_;  // name -> reason
  std::set<NodeId> settled_;
  std::set<uint32_t> marked_, gone_;  // lines
};

/// What a dictionary of keyword arguments holds, by name.
using Entries = std::vector<std::pair<std::string, NodeId>>;
/// The entries behind ** of a call, all that any branch puts there; nothing where some are unknown.
std::optional<Entries> entries_of(TorchFile& torch, NodeId splat);
/// Whether an argument is of the kind that a row asks for.
bool fits(TorchFile& torch, const TorchParameter& parameter, NodeId value);
/// Names for the columns of a dataset's rows: as many as its items have parts, or as a loop over it takes.
std::string columns_of(TorchFile& torch, NodeId dataset);

/// Whether a call changes its receiver: x.add_(y).
bool is_in_place(const Syntax& syntax, NodeId call);
/// What such a call, or a chain of them as x.mul_(a).add_(b), sets: x.
NodeId changed_in_place(const Syntax& syntax, NodeId call);

/// Rewrites the names and calls of the table (torch_calls.cpp), and the training and evaluation code (torch_training.cpp).
void rewrite_calls(TorchFile& torch);
void rewrite_training(TorchFile& torch);
/// torch.autograd.grad of a value and a variable that the value is computed from (torch_gradients.cpp).
bool is_gradient_call(TorchFile& torch, NodeId call);
void rewrite_gradients(TorchFile& torch);
/// Gradients by recorded calls (torch_recorded.cpp): whether scripts leave gradients to a person that recorded calls would give.
bool leaves_gradients(const Result& result);
/// no_grad and its like, autograd.grad; x.requires_grad_() and x.requires_grad = True; x.backward().
bool rewrite_recorded_name(TorchFile& torch, NodeId node);
bool is_recorded_name(TorchFile& torch, NodeId node);
bool rewrite_watched(TorchFile& torch, NodeId node);
void rewrite_recorded_backward(TorchFile& torch, NodeId call, NodeId subject);
/// x.requires_grad_() and x.requires_grad = True where the script reads x.grad: x becomes a parameter.
bool rewrite_leaf(TorchFile& torch, NodeId node);
/// getattr(torch.optim, name) where only the run knows the name (torch_named.cpp).
bool rewrite_named(TorchFile& torch, NodeId call);
/// The module or class that such a call is about.
bool is_named_argument(TorchFile& torch, NodeId node);
/// dense(8, 16), where the variable may hold one of several layers' classes: it takes PyTorch's arguments.
bool calls_layer_variable(TorchFile& torch, NodeId call);
/// The class of a layer that goes to such a variable.
bool rewrite_handed_layer(TorchFile& torch, NodeId node, const std::string& name);
/// The name of a layer's parameter, and optimizer.param_groups[0]["lr"] (torch_attributes.cpp).
void rewrite_parameter(TorchFile& torch, NodeId attribute);
bool rewrite_rate(TorchFile& torch, NodeId attribute);
/// An optimizer of a class that the script derives from torch.optim.Optimizer: its step() is its own.
bool is_own_optimizer(TorchFile& torch, NodeId object);
/// Puts the networks that a script makes into training mode (torch_modes.cpp).
void begin_in_training(TorchFile& torch);
/// with torch.no_grad(): and its like go (torch_contexts.cpp).
bool is_idle_context(TorchFile& torch, NodeId expression);
void drop_context(TorchFile& torch, NodeId statement);
void drop_decorator(TorchFile& torch, NodeId decorator);
/// Whether gradients lie beside the parameters, as x.grad: some script of the project names them.
bool keeps_gradients(TorchFile& torch);
/// Whether the training code is about this call: it is none of the table's.
bool is_training_call(TorchFile& torch, NodeId call);
/// for p in net.parameters(), also through zip, enumerate or list: frozen parameters are among them.
bool is_iterated(const Syntax& syntax, NodeId call);
/// Whether some value of the node is a module of PyTorch, or of the project that is one.
bool is_module(TorchFile& torch, NodeId node);

}  // namespace cairn::migrate
