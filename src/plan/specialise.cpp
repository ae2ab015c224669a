// Specialises a function to one set of input dims.
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "plan/repeat_cheap.h"

namespace cairn {

std::unique_ptr<Function> specialise(const Function& function, std::span<const Dims> dims) {
  auto special = clone(function);
  auto& params = special->body.params;
  CHECK(dims.size() == params.size(), "{} dims for {} params", dims.size(), params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Value& param = *params[i];
    if (!param.type.is_tensor()) continue;
    Type given = Type::tensor(param.type.dtype, Shape::of(dims[i]));
    if (!compatible(param.type, given))
      fail(ErrorKind::invalid_argument, param.name, "input has shape {}, the model takes {}", to_string(given.shape),
           to_string(param.type.shape));
    param.type = std::move(given);
  }
  infer_block(special->body);
  fold_constants(special->body, nullptr);
  remove_dead(special->body, nullptr);
  repeat_cheap(special->body);
  return special;
}

}  // namespace cairn
