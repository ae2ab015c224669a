// Matches and applies rewrite rules.
#include "passes/rules.h"

#include <algorithm>
#include <cctype>

#include "passes/facts.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/refusals.h"
#include "support/stop.h"

namespace cairn {

namespace {

constexpr int kMaxChain = 24;  // rules applied in sequence to one another's results

struct Pattern {
  enum class Kind { value, constant, node } kind = Kind::value;
  std::string name;
  std::vector<const OpDef*> ops;
  std::vector<Pattern> inputs;
  bool used_once = false;
  bool rest = false;
};

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  Pattern parse() {
    Pattern pattern = term();
    CHECK(at_ == text_.size() && pattern.kind == Pattern::Kind::node, "pattern {}", text_);
    return pattern;
  }

 private:
  bool accept(std::string_view token) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  std::string word() {
    accept("");
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    CHECK(at_ > start, "pattern {} at {}", text_, at_);
    return std::string(text_.substr(start, at_ - start));
  }

  Pattern term() {
    Pattern pattern;
    std::vector<std::string> names{word()};
    while (accept("|")) names.push_back(word());
    pattern.name = names[0];
    if (!accept("(")) {
      if (accept("!")) pattern.kind = Pattern::Kind::constant;
      return pattern;
    }
    pattern.kind = Pattern::Kind::node;
    for (const std::string& name : names) pattern.ops.push_back(&op_named(name));
    while (!accept(")")) {
      if (accept("..."))
        pattern.rest = true;
      else
        pattern.inputs.push_back(term());
      accept(",");
    }
    pattern.used_once = accept("~");
    if (accept(":")) pattern.name = word();
    return pattern;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct CompiledRule {
  const Rule* rule;
  Pattern pattern;
};

const std::vector<CompiledRule>& compiled_rules() {
  static const std::vector<CompiledRule> rules = [] {
    std::vector<CompiledRule> list;
    for (const Rule* rule : all_rules()) list.push_back({rule, PatternParser(rule->pattern).parse()});
    return list;
  }();
  return rules;
}

template <class List>
auto find_bound(const List& list, std::string_view name) {
  auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
  return found == list.end() ? nullptr : found->second;
}

}  // namespace

Value* Match::operator[](std::string_view name) const {
  Value* value = find_bound(values_, name);
  CHECK(value, "pattern binds no {}", name);
  return value;
}

const Tensor& Match::constant(std::string_view name) const { return *constant_of((*this)[name]); }

Node& Match::node(std::string_view name) const {
  Node* node = find_bound(nodes_, name);
  CHECK(node, "pattern binds no node {}", name);
  return *node;
}

class RuleEngine {
 public:
  RuleEngine(Block& block, Module* module, const SimplifyOptions& options, std::map<std::string, size_t>* effects)
      : rewriter_(block, module), module_(module), options_(options), effects_(effects),
        expanded_(expanded_operands(block, false)) {
    if (!options.rules) return;
    for (const CompiledRule& rule : compiled_rules())
      if (!options.disabled.count(rule.rule->name))
        for (const OpDef* op : rule.pattern.ops) by_op_[op].push_back(&rule);
  }

  size_t run() {
    size_t inner = 0;
    size_t changes = rewriter_.run([&](Node& node) -> std::optional<std::vector<Value*>> {
      stop_point();
      for (auto& region : node.regions) inner += simplify(*region, module_, options_, effects_);
      try {
        infer_node(node);
      } catch (const Error&) {
        return {};  // contradicting shapes are reported by the verifier or at run time
      }
      chain_ = 0;
      Value* value = improve(node);
      if (!value) return {};
      return std::vector<Value*>{value};
    });
    return changes + inner + folded_;
  }

  Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
    Value* value = rewriter_.add(op, std::move(inputs), std::move(attributes));
    Value* better = improve(*value->producer);
    return better ? better : value;
  }

 private:
  // The value that replaces the node's result; null when the node is kept. Folding changes the node itself.
  Value* improve(Node& node) {
    if (++chain_ > kMaxChain) return nullptr;
    const std::vector<Value*> inputs = node.inputs;
    if (options_.fold && fold(node, inputs)) return nullptr;
    if (node.results.size() != 1) return nullptr;
    auto found = by_op_.find(node.op);
    if (found == by_op_.end()) return nullptr;
    for (const CompiledRule* rule : found->second)
      if (Value* value = apply(*rule, node)) return value;
    return nullptr;
  }

  bool fold(Node& node, const std::vector<Value*>& inputs) {
    if (expanded_.count(&node) || !fold_node(node, rewriter_.place(), options_.largest_bytes)) return false;
    ++folded_;
    for (const Value* input : inputs)
      if (input->producer) rewriter_.note(*input->producer, constant_of(input) ? Removal::folded : Removal::shape_only);
    rewriter_.disown(inputs);
    return true;
  }

  Value* apply(const CompiledRule& compiled, Node& node) {
    const Rule& rule = *compiled.rule;
    Match match(rewriter_, node);
    match.engine_ = this;
    if (!matches(compiled.pattern, node, match)) return nullptr;
    if (rule.where && !rule.where(match)) return nullptr;
    std::vector<SourceId> before = rewriter_.inherited();
    std::vector<SourceId> sources = node.sources;
    if (rule.removal == Removal::fused)
      for (const auto& [name, inner] : match.nodes_) sources = merged(std::move(sources), inner->sources);
    rewriter_.inherit(std::move(sources));
    Value* value = attempt(rule, match);
    rewriter_.inherit(std::move(before));
    if (!value || value == node.result()) return nullptr;
    for (const auto& [name, inner] : match.nodes_)
      if (inner != &node || rule.removal != Removal::fused) rewriter_.note(*inner, rule.removal);
    if (effects_) ++(*effects_)[rule.name];
    return value;
  }

  static Value* attempt(const Rule& rule, Match& match) {
    try {
      return rule.replace(match);
    } catch (const Error& fault) {
      note_refusal(rule.name, match.root(), fault);
      return nullptr;
    }
  }

  bool matches(const Pattern& pattern, Node& node, Match& match) {
    ++visits;
    if (std::find(pattern.ops.begin(), pattern.ops.end(), node.op) == pattern.ops.end()) return false;
    size_t count = node.inputs.size();
    if (pattern.rest ? count < pattern.inputs.size() : count != pattern.inputs.size()) return false;
    size_t values = match.values_.size(), nodes = match.nodes_.size();
    match.nodes_.emplace_back(pattern.name, &node);
    if (matches_inputs(pattern, node, match, false)) return true;
    match.values_.resize(values);
    match.nodes_.resize(nodes + 1);
    if (node.op->has(kCommutative) && pattern.inputs.size() == 2 && matches_inputs(pattern, node, match, true))
      return true;
    match.values_.resize(values);
    match.nodes_.resize(nodes);
    return false;
  }

  bool matches_inputs(const Pattern& pattern, const Node& node, Match& match, bool swapped) {
    for (size_t i = 0; i < pattern.inputs.size(); ++i)
      if (!matches_value(pattern.inputs[i], node.inputs[swapped && i < 2 ? 1 - i : i], match)) return false;
    return true;
  }

  bool matches_value(const Pattern& pattern, Value* value, Match& match) {
    if (pattern.kind == Pattern::Kind::node)
      return value->producer && value->producer->results.size() == 1 &&
             (!pattern.used_once || rewriter_.uses(value) == 1) && matches(pattern, *value->producer, match);
    if (pattern.kind == Pattern::Kind::constant && !constant_of(value)) return false;
    if (pattern.name == "_") return true;
    if (Node* node = find_bound(match.nodes_, pattern.name)) return value == node->result();
    Value* bound = find_bound(match.values_, pattern.name);
    if (bound) return bound == value;
    match.values_.emplace_back(pattern.name, value);
    return true;
  }

  Rewriter rewriter_;
  Module* module_;
  const SimplifyOptions& options_;
  std::map<std::string, size_t>* effects_;
  std::unordered_map<const OpDef*, std::vector<const CompiledRule*>> by_op_;
  const std::unordered_set<const Node*> expanded_;
  size_t folded_ = 0;
  int chain_ = 0;
};

Value* Match::add(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
  return engine_->add(op, std::move(inputs), std::move(attributes));
}

void Match::absorb(Node& node) {
  nodes_.emplace_back("", &node);
  rewriter_.inherit(merged(rewriter_.inherited(), node.sources));
}

bool keeps_type(const Match& m) { return surely_same(m["x"]->type, m.type()); }

Value* Match::constant(Tensor value) { return rewriter_.constant(std::move(value)); }

Value* Match::like(const Node& node, std::vector<Value*> inputs, const Attributes& changed) {
  Attributes attributes = node.attributes;
  for (const auto& [name, value] : changed) attributes.set(name, value);
  return add(node.op->name, std::move(inputs), std::move(attributes));
}

std::span<const Rule* const> all_rules() {
  static const std::vector<const Rule*> rules = [] {
    std::vector<const Rule*> list;
    for (auto table : {canonical_rules(), shape_rules(), slice_rules(), arithmetic_rules(), contraction_rules(),
                       pattern_rules(), quantisation_rules()})
      for (const Rule& rule : table) list.push_back(&rule);
    return list;
  }();
  return rules;
}

size_t simplify(Block& block, Module* module, const SimplifyOptions& options, std::map<std::string, size_t>* effects) {
  return RuleEngine(block, module, options, effects).run();
}

}  // namespace cairn
