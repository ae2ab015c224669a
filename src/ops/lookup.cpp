// Lookup tables with constant content, given as a vector of keys and a vector of values.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

void infer_find_key(InferContext& context) {
  const DType key = context.dtype(0);
  if (key != kString && key != kI64 && key != kI32)
    context.fail("keys must be str, i64 or i32, found {}", to_string(key));
  if (context.dtype(2) != key) context.fail("keys are {}, x is {}", to_string(key), to_string(context.dtype(2)));
  const DType dtype = moved_type(context, 1);
  if (context.dtype(3) != dtype)
    context.fail("values are {}, the default is {}", to_string(dtype), to_string(context.dtype(3)));
  for (size_t i : {0, 1}) ranked(context, i, 1);
  if (context.shape(0).ranked && context.shape(1).ranked)
    same_size(context, context.shape(0).dims[0], context.shape(1).dims[0], "numbers of keys and of values");
  if (!context.shape(3).ranked || context.shape(3).rank() == 0 || known_count(context.shape(3)) == 1)
    return context.result(dtype, context.shape(2));
  context.result(dtype, broadcast(context, context.shape(2), context.shape(3)));
}

void find_key(KernelContext& context) {
  allocate_results(context);
  const Tensor &x = context.input(2), &fallback = context.input(3);
  Tensor& y = context.output(0);
  if (fallback.count() != 1 && fallback.count() != x.count())
    context.fail("the default has {} elements for {} keys", fallback.count(), x.count());
  auto look_up = [&](auto key) {
    using Key = decltype(key);
    const auto keys = context.input(0).values<Key>();
    with_elements(y.dtype(), [&](auto tag) {
      using T = decltype(tag);
      for (const int64_t i : turns(x.count())) {
        const Key& wanted = data<Key>(x)[i];
        const auto found = std::lower_bound(keys.begin(), keys.end(), wanted);
        data<T>(y)[i] = found != keys.end() && *found == wanted ? data<T>(context.input(1))[found - keys.begin()]
                                                                : data<T>(fallback)[fallback.count() == 1 ? 0 : i];
      }
    });
  };
  if (x.dtype() == kString) return look_up(std::string());
  if (x.dtype() == kI64) return look_up(int64_t());
  look_up(int32_t());
}

// Looks up the value's number for each element, so that its gradient goes to that value; elements without a match take
// the default.
void find_key_rule(GradientContext& g) {
  const Var numbers = counting(Size(g.x(1), 0)), nobody = numbers.number(-1);
  const Var place = apply_again(g, {g.x(0), numbers, g.x(2), nobody})[0];
  g.set(1, sum_elements(g.dy(), place, g.x(1)));
  const Var rest = keep_where(place < 0, g.dy());
  if (g.wanted(3)) g.set(3, reshape_like(count_of(g.x(3)).is(1) ? reduce_sum(flattened(rest), {0}) : rest, g.x(3)));
}

std::vector<OpDef> make_lookup_rows() {
  return {
      {.name = "find_key",
       .summary =
           "for each element of x the value whose key it is, else the default: one for all, or one for each; keys "
           "are sorted, and differ",
       .inputs = {{"keys"}, {"values"}, {"x"}, {"default"}},
       .infer = infer_find_key,
       .gradient = find_key_rule,
       .reference = find_key,
       .oracle = {"np.array([dict(zip(keys.tolist(), values)).get(int(key), default.flat[min(i, default.size - 1)]) "
                  "for i, key in "
                  "enumerate(x.ravel())], values.dtype).reshape(x.shape)"},
       .cases = {"i64[4]=[-3, 1, 5, 9], f32[4], i64[2, 3]=[9, 1, 2, 5, 9, -3], f32[]",
                 "i32[1]=[4], i64[1]=[7], i32[3]=[4, 5, 4], i64[3]", "i64[0]=[], i32[0]=[], i64[2]=[1, 2], i32[1]",
                 "i64[2]=[0, 2], bool[2], i64[]=[2], bool[]"}},
  };
}

}  // namespace

std::span<const OpDef> lookup_ops() {
  static const std::vector<OpDef> rows = make_lookup_rows();
  return rows;
}

}  // namespace cairn
