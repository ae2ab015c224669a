// Conditionals, loops, calls and gradients made through the C interface.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/activity.h"
#include "autodiff/calls.h"
#include "autodiff/differentiate.h"
#include "capi/builder.h"
#include "ir/control.h"
#include "ir/expression.h"

using namespace cairn;
using namespace cairn::capi;

using Region = CairnBuilder::Region;
using Kind = Region::Kind;

Value* CairnBuilder::made(Value* value) {
  if (!regions.empty()) homes[value] = &builder.block();
  return value;
}

void CairnBuilder::continue_in(Block& block) {
  std::vector<SourceId> sources = std::move(builder.sources);
  builder = Builder(block);
  builder.sources = std::move(sources);
}

Value* CairnBuilder::value_at(Value* value, size_t depth) {
  if (homes.empty() && regions.empty()) return value;
  const auto home = homes.find(value);
  if (depth == 0) {
    if (home != homes.end())
      fail(ErrorKind::invalid_argument, value->name, "is a value of a branch, loop or call that has ended");
    return value;
  }
  Region& region = regions[depth - 1];
  Region::Part& part = region.parts[region.current];
  if (home != homes.end() && home->second == part.block.get()) return value;
  Value* outer = value_at(value, depth - 1);
  if (auto known = part.inside.find(outer); known != part.inside.end()) return known->second;
  if (const Tensor* constant = constant_of(outer)) {
    Value* copy = Builder(*part.block).constant(*constant, outer->name);
    homes[copy] = part.block.get();
    return part.inside[outer] = copy;
  }
  region.found.push_back(outer);
  for (Region::Part& each : region.parts) {
    Value* param = append_named_param(*each.block, outer->type, outer->name);
    homes[param] = each.block.get();
    each.inside[outer] = param;
  }
  return part.inside.at(outer);
}

namespace cairn::capi {

std::vector<Value*> values_here(CairnBuilder* builder, CairnValue* const* values, size_t count, const char* name) {
  std::vector<Value*> list = values_from_c(values, count, name);
  for (Value*& value : list) value = builder->here(value);
  return list;
}

}  // namespace cairn::capi

namespace {

/// Continues in a new part of the innermost region. Its params stand for the carried values, the captures and what has
/// been found; returns those of the first two.
std::vector<Value*> open_part(CairnBuilder* builder) {
  Region& region = builder->regions.back();
  Region::Part part{std::make_unique<Block>(), {}};
  Block& block = *part.block;
  std::vector<Value*> inside;
  for (const Value* value : region.carried) inside.push_back(append_named_param(block, value->type, value->name));
  std::vector<Value*> taken;
  Captures(region.taken).enter(block, taken);
  for (size_t i = 0; i < taken.size(); ++i) part.inside[region.taken[i]] = taken[i];
  inside.insert(inside.end(), taken.begin(), taken.end());
  for (Value* value : region.found)
    builder->homes[part.inside[value] = append_named_param(block, value->type, value->name)] = &block;
  for (Value* value : inside) builder->homes[value] = &block;
  region.current = region.parts.size();
  region.parts.push_back(std::move(part));
  builder->continue_in(block);
  return inside;
}

void begin(CairnBuilder* builder, Region region, CairnValue** inside) {
  region.outer = &nodes_of(builder).block();
  builder->regions.push_back(std::move(region));
  const std::vector<Value*> made = open_part(builder);
  hand_values(builder, made, inside, made.size(), "region");
}

void open_second(CairnBuilder* builder, CairnValue** inside) {
  const std::vector<Value*> made = open_part(builder);
  hand_values(builder, made, inside, made.size(), "region");
}

Region& innermost(CairnBuilder* builder, Kind kind, size_t parts) {
  require(builder, "builder");
  constexpr const char* kNames[] = {"an if", "a while", "a call"};
  if (builder->regions.empty() || builder->regions.back().kind != kind || builder->regions.back().parts.size() != parts)
    fail(ErrorKind::invalid_argument, "builder", "is not at that place of {}", kNames[static_cast<int>(kind)]);
  return builder->regions.back();
}

Region take_innermost(CairnBuilder* builder) {
  Region region = std::move(builder->regions.back());
  builder->regions.pop_back();
  builder->continue_in(*region.outer);
  return region;
}

/// Completes the innermost if or while and appends it to the enclosing block.
void close_region(CairnBuilder* builder, CairnValue** results, size_t count) {
  Region region = take_innermost(builder);
  const bool loop = region.kind == Kind::loop;
  std::vector<Value*> inputs = region.carried;
  if (!loop) inputs.push_back(region.condition);
  for (Value* value : Captures(region.taken).inputs()) inputs.push_back(value);
  inputs.insert(inputs.end(), region.found.begin(), region.found.end());
  Attributes attributes;
  if (loop) attributes.set(kCarried, static_cast<int64_t>(region.carried.size()));
  const OpDef& op = op_named(loop ? "while" : "if");
  std::vector<std::unique_ptr<Block>> blocks;
  for (Region::Part& part : region.parts) blocks.push_back(std::move(part.block));
  const Node* node = builder->builder.add_node(op, std::move(inputs), std::move(attributes), std::move(blocks));
  hand_values(builder, results_of(*node), results, count, op.name);
}

/// What gradients are asked for.
struct Differentiated {
  Differentiated(CairnBuilder* builder, CairnValue* const* results, CairnValue* const* seeds, size_t result_count,
                 CairnValue* const* wanted, size_t wanted_count)
      : cotangents(result_count) {
    nodes_of(builder);
    if (!builder->module) fail(ErrorKind::invalid_argument, "builder", "makes the nodes of a rule");
    of = values_here(builder, results, result_count, "results");
    by = values_here(builder, wanted, wanted_count, "wanted");
    for (size_t i = 0; seeds && i < result_count; ++i)
      if (seeds[i]) cotangents[i] = builder->here(from_c(seeds[i]));
  }

  std::vector<Value*> gradients(CairnBuilder* builder) const {
    if (builder->regions.empty()) return append_gradients(*builder->module, *builder->function, of, cotangents, by);
    struct Lent : Function {  // for the time of the transformation a region's block is a function
      explicit Lent(Block& block) : block(block) { body = std::move(block); }
      ~Lent() { block = std::move(body); }
      Block& block;
    };
    Lent function(nodes_of(builder).block());
    return append_gradients(*builder->module, function, of, cotangents, by);
  }

  std::vector<Value*> of, by, cotangents;
};

/// Has `results`, and the nodes from number `first` on that they need, read new params in the place of the values `kept`.
/// Returns these params in order, null where nothing reads a value.
std::vector<Value*> read_as_params(Block& block, size_t first, const std::vector<Value*>& kept,
                                   std::vector<Value*>& results) {
  std::unordered_map<const Value*, std::vector<Value**>> uses;
  for (const Value* each : kept) uses[each];
  std::unordered_set<const Value*> needed;
  auto read = [&](Value*& value) {
    if (const auto found = uses.find(value); found != uses.end())
      found->second.push_back(&value);
    else
      needed.insert(value);
  };
  for (Value*& each : results) read(each);
  for (size_t i = block.nodes.size(); i-- > first;) {
    Node& node = *block.nodes[i];
    if (std::ranges::any_of(node.results, [&](const auto& each) { return needed.contains(each.get()); }))
      for (Value*& input : node.inputs) read(input);
  }
  std::vector<Value*> params(kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    const std::vector<Value**> places = std::move(uses[kept[i]]);
    if (places.empty()) continue;
    params[i] = append_named_param(block, kept[i]->type, "kept_" + std::to_string(i));
    for (Value** place : places) *place = params[i];
  }
  return params;
}

/// Continues in a branch of the innermost if.
Region& continue_branch(CairnBuilder* builder, size_t branch) {
  Region& region = innermost(builder, Kind::branches, 2);
  if (branch > 1) fail(ErrorKind::invalid_argument, "branch", "is {}, an if has branches 0 and 1", branch);
  region.current = branch;
  builder->continue_in(*region.parts[branch].block);
  return region;
}

/// The part of a call as a function of the module; the params of what was found come after those of the inputs.
Function& add_function(Module& module, Region& region, Region::Part& part, const std::string& name) {
  auto& params = part.block->params;
  const auto is_found = [&](const auto& param) {
    return std::any_of(region.found.begin(), region.found.end(),
                       [&](const Value* value) { return part.inside.at(value) == param.get(); });
  };
  std::stable_partition(params.begin() + static_cast<long>(region.carried.size()), params.end(), is_found);
  renumber(params);
  auto function = std::make_unique<Function>();
  function->name = unused_name(module, name);
  function->body = std::move(*part.block);
  for (size_t i = 0; i < function->body.results.size(); ++i) function->result_names.push_back("y" + std::to_string(i));
  module.functions.push_back(std::move(function));
  return *module.functions.back();
}

}  // namespace

CairnStatus cairn_builder_begin_if(CairnBuilder* builder, CairnValue* condition, CairnValue* const* taken,
                                   size_t taken_count, CairnValue** inside) {
  return guarded([&] {
    require(condition, "condition");
    nodes_of(builder);
    Value* value = builder->here(from_c(condition));
    begin(builder, {Kind::branches, value, {}, values_here(builder, taken, taken_count, "taken")}, inside);
  });
}

CairnStatus cairn_builder_begin_else(CairnBuilder* builder, CairnValue* const* values, size_t count,
                                     CairnValue** inside) {
  return guarded([&] {
    innermost(builder, Kind::branches, 1).parts[0].block->results = values_here(builder, values, count, "values");
    open_second(builder, inside);
  });
}

CairnStatus cairn_builder_end_if(CairnBuilder* builder, CairnValue* const* values, size_t count, CairnValue** results) {
  return guarded([&] {
    Region& region = continue_branch(builder, 1);
    const size_t first = region.parts[0].block->results.size();
    if (count != first)
      fail(ErrorKind::invalid_argument, "if", "gives {} values where the condition is true and {} where it is false",
           first, count);
    region.parts[1].block->results = values_here(builder, values, count, "values");
    close_region(builder, results, count);
  });
}

CairnStatus cairn_builder_branch(CairnBuilder* builder, size_t branch) {
  return guarded([&] { continue_branch(builder, branch); });
}

CairnStatus cairn_builder_join(CairnBuilder* builder, CairnValue* const* then, CairnValue* const* otherwise,
                               size_t count, CairnValue** results) {
  return guarded([&] {
    for (size_t branch = 0; branch < 2; ++branch) {
      Region& region = continue_branch(builder, branch);
      region.parts[branch].block->results = values_here(builder, branch == 0 ? then : otherwise, count, "values");
    }
    close_region(builder, results, count);
  });
}

CairnStatus cairn_builder_begin_while(CairnBuilder* builder, CairnValue* const* carried, size_t carried_count,
                                      CairnValue* const* taken, size_t taken_count, CairnValue** inside) {
  return guarded([&] {
    nodes_of(builder);
    std::vector<Value*> values = values_here(builder, carried, carried_count, "carried");
    begin(builder, {Kind::loop, nullptr, std::move(values), values_here(builder, taken, taken_count, "taken")}, inside);
  });
}

CairnStatus cairn_builder_begin_body(CairnBuilder* builder, CairnValue* condition, CairnValue** inside) {
  return guarded([&] {
    require(condition, "condition");
    innermost(builder, Kind::loop, 1).parts[0].block->results = {builder->here(from_c(condition))};
    open_second(builder, inside);
  });
}

CairnStatus cairn_builder_end_while(CairnBuilder* builder, CairnValue* const* next, CairnValue** results) {
  return guarded([&] {
    Region& region = innermost(builder, Kind::loop, 2);
    const size_t count = region.carried.size();
    region.parts[1].block->results = values_here(builder, next, count, "next");
    close_region(builder, results, count);
  });
}

CairnStatus cairn_builder_begin_call(CairnBuilder* builder, const char* name, CairnValue* const* inputs, size_t count,
                                     CairnValue** inside) {
  return guarded([&] {
    require(name, "name");
    nodes_of(builder);
    if (!builder->module) fail(ErrorKind::invalid_argument, name, "is a function, which a rule cannot have");
    std::vector<Value*> values = values_here(builder, inputs, count, "inputs");
    begin(builder, {Kind::call, nullptr, std::move(values), {}, nullptr, name}, inside);
  });
}

CairnStatus cairn_builder_begin_backward(CairnBuilder* builder, CairnValue* const* results, size_t count,
                                         CairnValue** inside) {
  return guarded([&] {
    Block& forward = *innermost(builder, Kind::call, 1).parts[0].block;
    forward.results = values_here(builder, results, count, "results");
    std::vector<Value*> made = open_part(builder);
    Block& backward = builder->builder.block();
    for (const Value* result : forward.results) made.push_back(append_named_param(backward, result->type, "result"));
    for (const Value* result : forward.results)
      if (is_differentiable(result->type)) made.push_back(append_named_param(backward, result->type, "gradient"));
    hand_values(builder, made, inside, made.size(), "function");
  });
}

CairnStatus cairn_builder_end_call(CairnBuilder* builder, CairnValue* const* values, size_t count, CairnValue** results,
                                   size_t result_count) {
  return guarded([&] {
    require(builder, "builder");
    const bool custom = !builder->regions.empty() && builder->regions.back().parts.size() == 2;
    innermost(builder, Kind::call, custom ? 2 : 1);
    builder->builder.block().results = values_here(builder, values, count, "values");
    Region region = take_innermost(builder);
    Attributes attributes;
    if (custom) {
      Block& backward = *region.parts[1].block;
      for (Value* value : region.found) {
        Builder nodes(backward);
        if (is_differentiable(value->type))
          backward.results.push_back(zeros_like({nodes, region.parts[1].inside.at(value)}).value);
      }
      attributes.set(
          "backward",
          FunctionName{add_function(*builder->module, region, region.parts[1], region.name + "_backward").name});
    }
    const Function& function = add_function(*builder->module, region, region.parts[0], region.name);
    attributes.set(kCallee, FunctionName{function.name});
    std::vector<Type> types;
    for (const Value* result : function.body.results) types.push_back(result->type);
    std::vector<Value*> inputs = region.carried;
    inputs.insert(inputs.end(), region.found.begin(), region.found.end());
    for (Region::Part& part : region.parts) builder->abandoned.push_back(std::move(part.block));
    const Node* node = builder->builder.add_node(op_named("call"), std::move(inputs), std::move(attributes), {}, types);
    hand_values(builder, results_of(*node), results, result_count, region.name);
  });
}

CairnStatus cairn_builder_abandon(CairnBuilder* builder) {
  return guarded([&] {
    require(builder, "builder");
    if (builder->regions.empty()) fail(ErrorKind::invalid_argument, "builder", "is in no if, while or call");
    Region region = take_innermost(builder);
    for (Region::Part& part : region.parts) builder->abandoned.push_back(std::move(part.block));
  });
}

CairnStatus cairn_builder_gradients(CairnBuilder* builder, CairnValue* const* results, CairnValue* const* seeds,
                                    size_t result_count, CairnValue* const* wanted, size_t wanted_count,
                                    CairnValue** gradients) {
  return guarded([&] {
    const Differentiated asked(builder, results, seeds, result_count, wanted, wanted_count);
    hand_values(builder, asked.gradients(builder), gradients, wanted_count, "gradients");
  });
}

CairnStatus cairn_builder_gradients_of_kept(CairnBuilder* builder, CairnValue* const* results, CairnValue* const* seeds,
                                            size_t result_count, CairnValue* const* wanted, size_t wanted_count,
                                            CairnValue* const* kept, size_t kept_count, CairnValue** gradients,
                                            CairnValue** params) {
  return guarded([&] {
    const Differentiated asked(builder, results, seeds, result_count, wanted, wanted_count);
    if (!builder->regions.empty()) fail(ErrorKind::invalid_argument, "builder", "is in an if, while or call");
    const std::vector<Value*> known = values_here(builder, kept, kept_count, "kept");
    const size_t first = builder->function->body.nodes.size();
    std::vector<Value*> made = asked.gradients(builder);
    const std::vector<Value*> read = read_as_params(builder->function->body, first, known, made);
    hand_values(builder, made, gradients, wanted_count, "gradients");
    for (size_t i = 0; i < kept_count; ++i) params[i] = read[i] ? to_c(read[i]) : nullptr;
  });
}
