#include "autodiff/parameters.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.h"
#include "support/nearest.h"

namespace cairn {

namespace {

class ConstantLifter {
 public:
  ConstantLifter(Function& function, const LiftOptions& options)
      : function_(function), options_(options), names_(options.names.begin(), options.names.end()) {}

  std::vector<Parameter> run() {
    for (const auto& param : function_.body.params) taken_.insert(param->name);
    walk({&function_.body, nullptr, nullptr, 0});
    for (const std::string& name : options_.names)
      if (std::none_of(made_.begin(), made_.end(), [&](const Parameter& made) { return made.name == name; }))
        refuse(name);
    return std::move(made_);
  }

 private:
  // A block, and the node whose region it is (null: the function's body).
  struct Place {
    Block* block;
    Node* node;
    const Place* outer;
    size_t region;
  };

  void walk(const Place& place) {
    std::unordered_map<const Value*, Value*> lifted;
    auto current = [&](Value*& value) {
      if (auto found = lifted.find(value); found != lifted.end()) value = found->second;
    };
    std::vector<std::unique_ptr<Node>> kept, gone;
    for (auto& node : place.block->nodes) {
      const Tensor* value = node->results.empty() ? nullptr : constant_of(node->result());
      if (value && chosen(*node)) {
        lifted[node->result()] = inside(place, parameter(node->result()->name, *value));
        gone.push_back(std::move(node));
        continue;
      }
      std::for_each(node->inputs.begin(), node->inputs.end(), current);
      for (size_t r = 0; r < node->regions.size(); ++r) walk({node->regions[r].get(), node.get(), &place, r});
      kept.push_back(std::move(node));
    }
    std::for_each(place.block->results.begin(), place.block->results.end(), current);
    place.block->nodes = std::move(kept);
  }

  bool chosen(const Node& constant) {
    const Value& value = *constant.result();
    if (!value.type.dtype.is_float()) return false;
    floats_.insert(value.name);
    if (!names_.empty()) return names_.count(value.name) != 0;
    return !value.name.empty() && is_weight(constant, options_.module) &&
           *element_count(value.type.shape.sizes()) >= options_.min_elements;
  }

  // The index in made_ of the parameter for this constant.
  size_t parameter(const std::string& name, const Tensor& value) {
    for (size_t i : by_name_[name])
      if (made_[i].value.data() == value.data() || made_[i].value.same_bits(value)) return i;
    std::string unique = name;
    while (!taken_.insert(unique).second) unique += "/weight";
    by_name_[name].push_back(made_.size());
    made_.push_back({unique, function_.body.params.size(), value});
    function_.body.add_param(value.type(), unique);
    return made_.size() - 1;
  }

  // The value that stands for the parameter in a block; nodes with regions capture it as an additional input.
  Value* inside(const Place& place, size_t parameter) {
    if (!place.node) return function_.body.params[made_[parameter].param].get();
    auto [entry, fresh] = captured_.try_emplace({place.node, parameter}, place.block->params.size());
    if (fresh) {
      Value* outer = inside(*place.outer, parameter);
      place.node->inputs.push_back(outer);
      for (auto& region : place.node->regions) region->add_param(outer->type, outer->name);
    }
    return place.block->params[entry->second].get();
  }

  [[noreturn]] void refuse(const std::string& name) const {
    const std::vector<std::string_view> known(floats_.begin(), floats_.end());
    fail(ErrorKind::not_found, name, "no float constant of the model has this name{}", did_you_mean(name, known));
  }

  Function& function_;
  const LiftOptions& options_;
  std::set<std::string> names_, taken_, floats_;
  std::vector<Parameter> made_;
  std::map<std::string, std::vector<size_t>> by_name_;
  std::map<std::pair<const Node*, size_t>, size_t> captured_;  // index among the regions' params
};

}  // namespace

std::vector<Parameter> lift_constants(Function& function, const LiftOptions& options) {
  return ConstantLifter(function, options).run();
}

void lower_parameters(Function& function, const std::vector<Parameter>& parameters) {
  Block& body = function.body;
  Block start;
  Builder builder(start);
  std::unordered_map<const Value*, Value*> constants;
  std::vector<std::unique_ptr<Value>> gone;
  for (const Parameter& parameter : parameters) {
    auto& param = body.params[parameter.param];
    constants[param.get()] = builder.constant(parameter.value, parameter.name);
    gone.push_back(std::move(param));
  }
  auto replace = [&](Value*& value) {
    if (auto found = constants.find(value); found != constants.end()) value = found->second;
  };
  for (auto& node : body.nodes) std::for_each(node->inputs.begin(), node->inputs.end(), replace);
  std::for_each(body.results.begin(), body.results.end(), replace);
  std::vector<size_t> place;  // new index of each remaining param
  size_t kept = 0;
  for (const auto& param : body.params) place.push_back(param ? kept++ : kept);
  for (auto& [result, param] : function.updates) param = place[param];
  std::erase(body.params, nullptr);
  renumber(body.params);
  body.nodes.insert(body.nodes.begin(), std::make_move_iterator(start.nodes.begin()),
                    std::make_move_iterator(start.nodes.end()));
}

}  // namespace cairn
