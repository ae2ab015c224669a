// Control flow: the runtime executes these nodes, so their rows have shape rules but no kernels.
#include "ir/control.h"
#include "ops/families.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// Whether join(a, b) is defined.
bool joinable(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.elements.size() != b.elements.size() || (a.is_tensor() && a.dtype != b.dtype)) return false;
  for (size_t i = 0; i < a.elements.size(); ++i)
    if (!joinable(a.elements[i], b.elements[i])) return false;
  return true;
}

const Block& region(const InferContext& context, size_t i, size_t count) {
  if (context.regions().size() != count) context.fail("has {} regions, found {}", count, context.regions().size());
  return *context.regions()[i];
}

// Checks that the region's params match the node's inputs from `first` on.
void check_params(const InferContext& context, const Block& block, size_t first, const char* what) {
  if (block.params.size() != context.input_count() - first)
    context.fail("{} takes {} values, found {}", what, context.input_count() - first, block.params.size());
  for (size_t i = 0; i < block.params.size(); ++i)
    if (!compatible(block.params[i]->type, context.input(first + i)))
      context.fail("{} takes {} as value {}, found {}", what, to_string(block.params[i]->type), i,
                   to_string(context.input(first + i)));
}

void require_condition(const InferContext& context, const Type& type) {
  if (!compatible(type, Type::tensor(kBool, Shape())))
    context.fail("condition must be bool[], found {}", to_string(type));
}

void infer_if(InferContext& context) {
  require_condition(context, context.input(0));
  const Block &then_block = region(context, 0, 2), &else_block = region(context, 1, 2);
  check_params(context, then_block, 1, "the then region");
  check_params(context, else_block, 1, "the else region");
  if (then_block.results.size() != else_block.results.size())
    context.fail("the regions yield {} and {} values", then_block.results.size(), else_block.results.size());
  for (size_t i = 0; i < then_block.results.size(); ++i) {
    const Type &a = then_block.results[i]->type, &b = else_block.results[i]->type;
    if (!joinable(a, b)) context.fail("the regions yield {} and {} as value {}", to_string(a), to_string(b), i);
    context.result(join(a, b));
  }
}

void infer_while(InferContext& context) {
  const int64_t carried = context.attr.integer(kCarried);
  if (carried < 0 || static_cast<size_t>(carried) > context.input_count())
    context.fail("{} values are carried, there are {}", carried, context.input_count());
  const Block &condition = region(context, 0, 2), &body = region(context, 1, 2);
  check_params(context, condition, 0, "the condition region");
  check_params(context, body, 0, "the body region");
  if (condition.results.size() != 1)
    context.fail("the condition region yields {} values, expected 1", condition.results.size());
  require_condition(context, condition.results[0]->type);
  if (body.results.size() != static_cast<size_t>(carried))
    context.fail("the body region yields {} values, expected {}", body.results.size(), carried);
  for (size_t i = 0; i < body.results.size(); ++i) {
    const Type &start = context.input(i), &next = body.results[i]->type;
    if (!joinable(start, next))
      context.fail("value {} starts as {}, the body yields {}", i, to_string(start), to_string(next));
    for (const Block* block : {&condition, &body})
      if (!compatible(block->params[i]->type, next))
        context.fail("the body yields {} as value {}, the next round takes {}", to_string(next), i,
                     to_string(block->params[i]->type));
    context.result(join(start, next));
  }
}

std::vector<OpDef> make_control_rows() {
  constexpr auto kVariadic = InputDef::Arity::variadic;
  const char* tests = "runs regions or functions: tests/runtime/run_test.cpp";
  return {
      {.name = "if",
       .summary = "the first region's results where the condition holds, else the second's; the regions see the "
                  "captures as their parameters",
       .inputs = {{"condition", Accepts::boolean}, {"captures", Accepts::any, kVariadic}},
       .results = {},
       .traits = kControl,
       .infer = infer_if,
       .oracle = untested(tests)},
      {.name = "while",
       .summary = "runs the second region on the values while the first holds for them; the first `carried` values are "
                  "replaced by what it yields, "
                  "the others stay; results are the carried values at the end",
       .inputs = {{"values", Accepts::any, kVariadic}},
       .attributes = {{kCarried, AttrKind::integer}},
       .results = {},
       .traits = kControl | kLoop,
       .infer = infer_while,
       .oracle = untested(tests)},
      {.name = "call",
       .summary =
           "the results of a function of the module; their types are the function's. A gradient computes the "
           "callee again with `recompute` instead of keeping its values, and with `backward` calls that function: "
           "it takes the inputs, the results and the gradients of the float results, and yields those of the "
           "float inputs",
       .inputs = {{"inputs", Accepts::any, kVariadic}},
       .attributes = {{kCallee, AttrKind::function},
                      {"recompute", AttrKind::boolean, Attribute(false)},
                      {"backward", AttrKind::function, Attribute(FunctionName{})}},
       .results = {},
       .traits = kControl | kCall,
       .infer = [](InferContext&) {},
       .oracle = untested(tests)},
  };
}

}  // namespace

std::span<const OpDef> control_ops() {
  static const std::vector<OpDef> rows = make_control_rows();
  return rows;
}

}  // namespace cairn
