// The rules of valid modules.
#include <unordered_set>

#include "ir/control.h"
#include "ir/text.h"

namespace cairn {

namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  void function(const Function& function) {
    function_ = &function;
    std::unordered_set<std::string> names;
    for (const auto& param : function.body.params)
      if (!names.insert(param->name).second) error(nullptr, "two inputs are called {}", param->name);
    if (function.result_names.size() != function.body.results.size())
      error(nullptr, "{} results, {} names", function.body.results.size(), function.result_names.size());
    for (auto [result, param] : function.updates) {
      if (result >= function.body.results.size() || param >= function.body.params.size())
        error(nullptr, "update {} = {} is out of range", result, param);
      if (!compatible(function.body.results[result]->type, function.body.params[param]->type))
        error(nullptr, "update {} = {} changes the type", result, param);
    }
    block(function.body);
  }

 private:
  template <class... Args>
  [[noreturn]] void error(const Node* node, fmt::format_string<Args...> format, Args&&... args) const {
    std::string place = node ? where(module_, *node) : "";
    throw Error(ErrorKind::invalid_model, place.empty() ? "@" + function_->name : place,
                fmt::format(format, std::forward<Args>(args)...));
  }

  void block(const Block& block) {
    std::unordered_set<const Value*> defined;
    for (const auto& param : block.params) defined.insert(param.get());
    for (const auto& node : block.nodes) {
      for (const Value* input : node->inputs)
        if (!defined.count(input))
          error(node.get(), "{}: input {} is not defined before it", node->op->name, input->name);
      check_types(*node);
      for (SourceId id : node->sources)
        if (id >= module_.sources.size()) error(node.get(), "{}: source {} does not exist", node->op->name, id);
      for (const auto& region : node->regions) this->block(*region);
      for (size_t i = 0; i < node->results.size(); ++i) {
        const Value* value = node->result(i);
        if (value->producer != node.get() || value->index != i)
          error(node.get(), "{}: result {} is detached", node->op->name, i);
        defined.insert(value);
      }
    }
    for (const Value* result : block.results)
      if (!defined.count(result)) error(nullptr, "result {} is not defined", result->name);
  }

  void check_types(const Node& node) const {
    std::vector<Type> types;
    try {
      types = infer_types(*node.op, node.inputs, node.attributes, node.regions);
    } catch (const Error& fault) {
      error(&node, "{}", fault.what());
    }
    if (is_call(node)) types = result_types(node, callee_name(node));
    if (types.size() != node.results.size())
      error(&node, "{}: {} results, expected {}", node.op->name, node.results.size(), types.size());
    for (size_t i = 0; i < types.size(); ++i)
      if (!compatible(types[i], node.result(i)->type))
        error(&node, "{}: result {} is {}, expected {}", node.op->name, i, to_string(node.result(i)->type),
              to_string(types[i]));
  }

  std::vector<Type> result_types(const Node& node, const std::string& callee) const {
    const Function* function = module_.find(callee);
    if (!function) error(&node, "{}: no function @{}", node.op->name, callee);
    if (function->body.params.size() != node.inputs.size())
      error(&node, "{}: @{} takes {} inputs, found {}", node.op->name, callee, function->body.params.size(),
            node.inputs.size());
    std::vector<Type> types;
    for (const Value* result : function->body.results) types.push_back(result->type);
    return types;
  }

  const Module& module_;
  const Function* function_ = nullptr;
};

}  // namespace

void verify(const Module& module) {
  Verifier verifier(module);
  for (const auto& function : module.functions) verifier.function(*function);
}

}  // namespace cairn
