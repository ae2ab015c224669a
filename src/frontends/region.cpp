#include "frontends/region.h"

#include "frontends/fold.h"

namespace cairn {

Value* truth(Value* value, Builder& builder) {
  if (!value->type.is_tensor() || (value->type.shape.ranked && value->type.shape.rank() != 0))
    fail(ErrorKind::unsupported, "", "the condition is {}, expected a scalar", to_string(value->type));
  if (value->type.dtype == kBool) return value;
  Value* zero = cast_to(builder.constant(Tensor::scalar_i64(0)), value->type.dtype, builder);
  return builder.add("not_equal", {value, zero});
}

Type joined_type(const Type& a, const Type& b, size_t number) {
  bool joinable = a.kind == b.kind && a.dtype == b.dtype && a.elements.size() == b.elements.size();
  for (size_t i = 0; joinable && i < a.elements.size(); ++i)
    joinable = a.elements[i].kind == b.elements[i].kind && a.elements[i].dtype == b.elements[i].dtype;
  if (!joinable)
    fail(ErrorKind::invalid_model, "", "value {} is {} in one place and {} in another", number, to_string(a),
         to_string(b));
  return join(a, b);
}

}  // namespace cairn
