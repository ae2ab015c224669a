// Variables; an early pass replaces them by params and results of the function.
#include "ops/families.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_read(InferContext& context) { context.result(context.input(0).elements[0]); }

void infer_assign(InferContext& context) {
  const Type& content = context.input(0).elements[0];
  if (!compatible(content, context.input(1)))
    context.fail("the variable is {}, the value {}", to_string(content), to_string(context.input(1)));
}

template <void (*kInfer)(InferContext&)>
void of_variable(InferContext& context) {
  if (context.input(0).elements.size() != 1) context.fail("{} is no variable", to_string(context.input(0)));
  kInfer(context);
}

std::vector<OpDef> make_state_rows() {
  const Oracle lifted = untested("state is lifted to inputs and results before anything runs: tests/passes");
  return {
      {.name = "variable",
       .summary = "handle of the variable of that name",
       .attributes = {{"name", AttrKind::text}, {"type", AttrKind::type}},
       .results = {"variable"},
       .traits = kNotFoldable | kHostValue,
       .infer = [](InferContext& context) { context.result(Type::resource(std::get<Type>(context.attr.get("type")))); },
       .oracle = lifted},
      {.name = "local_variable",
       .summary = "handle of a variable of this run alone, which holds x at first",
       .inputs = {{"x", Accepts::any}},
       .results = {"variable"},
       .traits = kNotFoldable | kHostValue,
       .infer = [](InferContext& context) { context.result(Type::resource(context.input(0))); },
       .no_gradient = "state is lifted to inputs and results before gradients are taken",
       .oracle = lifted},
      {.name = "read_variable",
       .summary = "content of a variable",
       .inputs = {state_operand("variable", Accepts::resource)},
       .traits = kReadsState | kNotFoldable | kHostValue,
       .infer = of_variable<infer_read>,
       .no_gradient = "state is lifted to inputs and results before gradients are taken",
       .oracle = lifted},
      {.name = "assign_variable",
       .summary = "x becomes the content of a variable",
       .inputs = {state_operand("variable", Accepts::resource), {"x", Accepts::any}},
       .results = {},
       .traits = kWritesState | kNotFoldable | kHostValue,
       .infer = of_variable<infer_assign>,
       .no_gradient = "state is lifted to inputs and results before gradients are taken",
       .oracle = lifted},
  };
}

}  // namespace

std::span<const OpDef> state_ops() {
  static const std::vector<OpDef> rows = make_state_rows();
  return rows;
}

}  // namespace cairn
