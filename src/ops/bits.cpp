// Ops on the bits of elements.
#include <bit>
#include <cstring>

#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

template <auto kFunction>
void combine_bits(KernelContext& context) {
  allocate_results(context);
  const Dims& dims = context.output(0).dims();
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *xs = data<T>(context.input(0)), *ys = data<T>(context.input(1));
    walk<2>(dims, {broadcast_strides(context.input(0).dims(), dims), broadcast_strides(context.input(1).dims(), dims)},
            [&](int64_t n, auto& at) { data<T>(context.output(0))[n] = T(kFunction(xs[at[0]], ys[at[1]])); });
  });
}

/// Clamps a shift distance as TensorFlow does: to 0 .. width - 1.
template <class T>
int shift_distance(T distance) {
  if constexpr (std::is_signed_v<T>)
    if (distance < 0) return 0;
  return static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(distance), sizeof(T) * 8 - 1));
}

constexpr auto shifted_right = [](auto x, auto y) { return x >> shift_distance(y); };

template <class T, class To, class F>
void map_bits(KernelContext& context, F&& f) {
  for (const int64_t i : turns(context.input(0).count()))
    data<To>(context.output(0))[i] = static_cast<To>(f(data<T>(context.input(0))[i]));
}

void bit_not(KernelContext& context) {
  allocate_results(context);
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_bits<T, T>(context, [](T x) { return ~x; });
  });
}

void population_count(KernelContext& context) {
  allocate_results(context);
  with_integers(context.input(0).dtype(), [&](auto tag) {
    using T = decltype(tag);
    map_bits<T, uint8_t>(context, [](T x) { return std::popcount(static_cast<Unsigned<T>>(x)); });
  });
}

void infer_bits(InferContext& context) {
  number_type(context, 0);
  const DType dtype = equal_types(context);
  context.result(dtype, broadcast(context, context.shape(0), context.shape(1)));
}

void infer_bitcast(InferContext& context) {
  const DType from = moved_type(context, 0), to = context.attr.dtype("dtype");
  for (DType dtype : {from, to})
    if (dtype.bits < 8 || dtype == kBool) context.fail("{} elements are not supported", to_string(dtype));
  Shape shape = context.shape(0);
  if (!shape.ranked || from.bits == to.bits) return context.result(to, std::move(shape));
  if (from.bits > to.bits) {
    shape.dims.push_back(Dim(from.bits / to.bits));
  } else {
    if (shape.rank() == 0) context.fail("a scalar of {} is no {}", to_string(from), to_string(to));
    same_size(context, shape.dims.back(), Dim(to.bits / from.bits), "the last dim and the elements that become one");
    shape.dims.pop_back();
  }
  context.result(to, std::move(shape));
}

void bitcast(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  if (x.bytes() > 0) std::memcpy(context.output(0).mutable_data(), x.data(), x.bytes());
}

OpDef bit_row(const char* name, const char* summary, uint32_t traits, void (*reference)(KernelContext&),
              Oracle oracle) {
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::integers}, {"y", Accepts::integers}},
          .traits = kElementwise | traits,
          .infer = infer_bits,
          .reference = reference,
          .oracle = oracle,
          .cases = {"i32[2, 3], i32[3]", "i64[5], i64[]", "i8[6], i8[6]", "u8[6], u8[6]", "i32[0], i32[1]",
                    "u16[3], u16[3]"}};
}

std::vector<OpDef> make_bit_rows() {
  OpDef left = bit_row(
      "shift_left",
      "x with its bits moved y places up; a distance below 0 counts as 0, one beyond the width as the "
      "width less 1",
      0, combine_bits<[](auto x, auto y) { return static_cast<Unsigned<decltype(x)>>(x) << shift_distance(y); }>,
      {"tf.bitwise.left_shift(x, y)", kTensorFlow});
  OpDef right = bit_row("shift_right",
                        "x with its bits moved y places down, the sign filling up; a distance below 0 counts as 0, one "
                        "beyond the width as the width less 1",
                        0, combine_bits<shifted_right>, {"tf.bitwise.right_shift(x, y)", kTensorFlow});
  left.cases = right.cases = {"i32[2, 3], i32[3]=[0, 5, 31]",           "i64[5], i64[]=[3]",
                              "i8[3]=[-128, 77, -1], i8[3]=[1, 9, -1]", "u8[6], u8[6]=[0, 1, 2, 7, 8, 255]",
                              "u32[4], u32[4]=[0, 1, 2, 31]",           "i32[0], i32[1]=[1]"};
  OpDef inverted = bit_row("bit_not", "x with each bit turned", kInPlace, bit_not, {"np.invert(x)"});
  inverted.inputs = {{"x", Accepts::integers}};
  inverted.infer = infer_same;
  inverted.cases = {"i32[2, 3]", "i64[5]", "u8[6]", "i32[0]", "u16[]"};
  OpDef population = bit_row("population_count", "how many bits of x are 1", 0, population_count,
                             {"tf.raw_ops.PopulationCount(x=x)", kTensorFlow});
  population.inputs = inverted.inputs;
  population.infer = [](InferContext& context) { number_type(context, 0), context.result(kU8, context.shape(0)); };
  population.cases = inverted.cases;
  population.cases.pop_back();
  return {
      bit_row("bit_and", "bits that are 1 in x and y", kCommutative, combine_bits<std::bit_and<>{}>,
              {"np.bitwise_and(x, y)"}),
      bit_row("bit_or", "bits that are 1 in x or y", kCommutative, combine_bits<std::bit_or<>{}>,
              {"np.bitwise_or(x, y)"}),
      bit_row("bit_xor", "bits that are 1 in one of x and y", kCommutative, combine_bits<std::bit_xor<>{}>,
              {"np.bitwise_xor(x, y)"}),
      left,
      right,
      inverted,
      population,
      {.name = "bitcast",
       .summary =
           "the same bytes as elements of another type: a wider one takes the place of the last dim, a narrower one "
           "makes a new last dim; a complex number is its real and its imaginary part",
       .inputs = {{"x"}},
       .attributes = {{"dtype", AttrKind::dtype}},
       .traits = kView,
       .infer = infer_bitcast,
       .no_gradient = "the bytes are read as another type",
       .reference = bitcast,
       .oracle = {"tf.bitcast(x, dtype)", kTensorFlow},
       .cases = {"f32[2, 3] {dtype = i32}", "i64[5] {dtype = i32}", "u8[3, 4] {dtype = f32}", "i32[0, 2] {dtype = f64}",
                 "f64[] {dtype = u8}", "i32[2, 3] {dtype = u32}"}},
  };
}

}  // namespace

std::span<const OpDef> bit_ops() {
  static const std::vector<OpDef> rows = make_bit_rows();
  return rows;
}

}  // namespace cairn
