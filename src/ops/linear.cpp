// Matrix products. Sums of floats are kept in f64 and rounded once; integers wrap.
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/quantisation.h"
#include "ops/rows.h"

namespace cairn {

namespace {

// a * b with wrap-around for integers.
template <class T>
Sum<T> product(T a, T b) {
  if constexpr (kIsFloat<T>)
    return static_cast<double>(a) * static_cast<double>(b);
  else
    return wrapped(a, b, std::multiplies<>());
}
template <class S>
S plus(S a, S b) {
  if constexpr (std::is_floating_point_v<S>)
    return a + b;
  else
    return wrapped(a, b, std::plus<>());
}
template <class T>
T rounded(Sum<T> sum) {
  return T(static_cast<Compute<T>>(sum));
}

struct Factors {
  Dim m, ka, kb, n;
};
Factors factors(const InferContext& context) {
  const Shape &a = context.shape(0), &b = context.shape(1);
  size_t ra = a.rank(), rb = b.rank();
  bool ta = context.attr.boolean("transpose_a"), tb = context.attr.boolean("transpose_b");
  return {a.dims[ra - (ta ? 1 : 2)], a.dims[ra - (ta ? 2 : 1)], b.dims[rb - (tb ? 1 : 2)], b.dims[rb - (tb ? 2 : 1)]};
}

void infer_product(InferContext& context, DType dtype) {
  for (size_t i : {0, 1})
    if (context.shape(i).ranked && context.shape(i).rank() < 2)
      context.fail("input {} must have at least 2 dims, found {}", i, to_string(context.input(i)));
  if (!context.shape(0).ranked || !context.shape(1).ranked) return context.result(dtype, Shape::unranked());
  auto [m, ka, kb, n] = factors(context);
  if (ka.known() && kb.known() && ka.size != kb.size)
    context.fail("inner dims must agree, found {} and {} in {} and {}", ka.size, kb.size, to_string(context.input(0)),
                 to_string(context.input(1)));
  auto batch = [](Shape shape) {
    shape.dims.resize(shape.rank() - 2);
    return shape;
  };
  Shape result = broadcast(context, batch(context.shape(0)), batch(context.shape(1)));
  result.dims.push_back(m);
  result.dims.push_back(n);
  context.result(dtype, std::move(result));
}

void infer_matmul(InferContext& context) {
  number_type(context, 0);
  infer_product(context, equal_types(context));
}

void infer_matmul_integer(InferContext& context) {
  for (size_t i : {0, 1}) {
    if (context.dtype(i).bits != 8) context.fail("{} elements are not supported", to_string(context.dtype(i)));
    Shape all = context.shape(i);
    if (all.ranked && all.rank() > 1 && context.attr.boolean(i == 0 ? "transpose_a" : "transpose_b"))
      std::swap(all.dims[all.rank() - 1], all.dims[all.rank() - 2]);
    check_zero_point(context, i, all, i + 2);
    const Shape& zero = context.shape(i + 2);
    const auto differs = [&](size_t from_end) {
      const Dim& dim = zero.dims[zero.rank() - from_end];
      return dim.known() && dim.size != 1;
    };
    if (zero.ranked && zero.rank() > 1 && differs(1) && differs(2))
      context.fail("zero points differ along rows or along columns, found {}", to_string(context.input(i + 2)));
  }
  infer_product(context, kI32);
}

double matmul_flops(InferContext context) {
  if (!context.shape(0).ranked || !context.shape(1).ranked) return 0;
  context.op().infer(context);
  const Dim inner = factors(context).ka;
  return 2 * static_cast<double>(known_count(context.results()[0].shape).value_or(0)) *
         static_cast<double>(inner.known() ? inner.size : 0);
}

template <class T>
void matmul_of(const AttributeView& attr, const Tensor& a, const Tensor& b, Tensor& y) {
  const Dims& dims = y.dims();
  const size_t rank = dims.size();
  const bool ta = attr.boolean("transpose_a"), tb = attr.boolean("transpose_b");
  const int64_t m = dims[rank - 2], n = dims[rank - 1], k = a.dims()[a.rank() - (ta ? 2 : 1)];
  auto batch = [](const Dims& all) {
    Dims leading;
    for (size_t i = 0; i + 2 < all.size(); ++i) leading.push_back(all[i]);
    return leading;
  };
  // Strides of whole matrices: those of the batch dims times the matrix size.
  auto batch_strides = [&](const Dims& all) {
    Dims strides = broadcast_strides(batch(all), batch(dims));
    for (int64_t& stride : strides) stride *= count_between(all, all.size() - 2, all.size());
    return strides;
  };
  const int64_t ai = ta ? 1 : k, ak = ta ? m : 1, bk = tb ? 1 : n, bj = tb ? k : 1;
  if (y.count() == 0) return;
  walk<2>(batch(dims), {batch_strides(a.dims()), batch_strides(b.dims())}, [&](int64_t at, auto& offsets) {
    const T *as = data<T>(a) + offsets[0], *bs = data<T>(b) + offsets[1];
    T* to = data<T>(y) + at * m * n;
    for (const int64_t i : turns(m)) {
      for (const int64_t j : turns(n, k)) {
        Sum<T> sum = 0;
        for (int64_t p = 0; p < k; ++p) sum = plus(sum, product(as[i * ai + p * ak], bs[p * bk + j * bj]));
        to[i * n + j] = rounded<T>(sum);
      }
    }
  });
}

void matmul(KernelContext& context) {
  allocate_results(context);
  with_numbers(context.input(0).dtype(), [&](auto tag) {
    matmul_of<decltype(tag)>(context.attr, context.input(0), context.input(1), context.output(0));
  });
}

void matmul_integer(KernelContext& context) {
  allocate_results(context);
  const auto operand = [&](size_t i, const char* flag) {
    const Tensor& zero = context.input(i + 2);
    Dims dims = zero.dims();
    if (dims.size() == 1) dims.insert(dims.begin(), 1);
    if (dims.size() > 1 && context.attr.boolean(flag)) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return centred(context.input(i), Tensor::view(zero.dtype(), dims, zero.data(), nullptr));
  };
  matmul_of<int32_t>(context.attr, operand(0, "transpose_a"), operand(1, "transpose_b"), context.output(0));
}

// The gradient of a matrix b that all matrices of the batch of a share: one product over the rows of the whole batch,
// which includes the sum over the batch.
Var of_shared_factor(GradientContext& g, bool transpose_b) {
  const Sizes rows_of_a = sizes_of(g, g.x(0)), rows_of_dy = sizes_of(g, g.dy());
  const size_t last = rows_of_a.size() - 1;
  const Size rows = product_of(g.b, rows_of_a, 0, last);
  const Var a = reshape(g.x(0), {rows, rows_of_a[last]}), dy = reshape(g.dy(), {rows, rows_of_dy[last]});
  return transpose_b ? matmul(dy, a, true) : matmul(a, dy, true);
}

void matmul_rule(GradientContext& g) {
  const bool ta = g.attr.boolean("transpose_a"), tb = g.attr.boolean("transpose_b");
  const Var a = g.x(0), b = g.x(1), dy = g.dy();
  if (g.wanted(0)) g.set(0, sum_to_like(ta ? matmul(b, dy, tb, true) : matmul(dy, b, false, !tb), a));
  if (!g.wanted(1)) return;
  const bool shared = a.shape().ranked && b.shape().ranked && dy.shape().ranked && b.shape().rank() == 2;
  if (shared && a.shape().rank() > 2 && !ta) return g.set(1, of_shared_factor(g, tb));
  g.set(1, sum_to_like(tb ? matmul(dy, a, true, ta) : matmul(a, dy, !ta, false), b));
}

std::vector<OpDef> make_linear_rows() {
  return {
      {.name = "matmul",
       .summary = "matrix product over the last two dims, transposed first where told; leading dims broadcast; an "
                  "inner dim of 0 gives 0; "
                  "integers wrap",
       .inputs = {{"a", Accepts::numbers}, {"b", Accepts::numbers}},
       .attributes = {flag("transpose_a"), flag("transpose_b")},
       .traits = kContraction,
       .precision = Precision::accumulate_f32,
       .infer = infer_matmul,
       .flops = [](const InferContext& context) { return matmul_flops(context); },
       .gradient = matmul_rule,
       .reference = matmul,
       .oracle =
           {"np.matmul(np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b)"},
       .cases = {"f32[2, 3], f32[3, 4]", "f32[1, 65], f32[65, 17]", "f32[33, 64], f32[64, 48]",
                 "f32[7, 5], f32[7, 3] {transpose_a = true}", "f32[5, 7], f32[3, 7] {transpose_b = true}",
                 "f32[7, 5], f32[3, 7] {transpose_a = true, transpose_b = true}", "f32[2, 1, 4, 5], f32[3, 5, 2]",
                 "f32[6, 3, 4], f32[4, 2]", "f32[0, 3], f32[3, 4]", "f32[2, 0], f32[0, 3]", "f64[5, 6], f64[6, 2]",
                 "i32[3, 4], i32[4, 2]", "f16[9, 8], f16[8, 3]", "bf16[4, 8], bf16[8, 3]"}},
      {.name = "matmul_integer",
       .summary =
           "matmul of (a - a_zero) and (b - b_zero), each of u8 or i8, with sums of i32, which wrap; zero points "
           "broadcast to their operand as it is before a transposition",
       .inputs = {{"a", Accepts::integers},
                  {"b", Accepts::integers},
                  {"a_zero", Accepts::integers},
                  {"b_zero", Accepts::integers}},
       .attributes = {flag("transpose_a"), flag("transpose_b")},
       .traits = kContraction,
       .infer = infer_matmul_integer,
       .flops = [](const InferContext& context) { return matmul_flops(context); },
       .reference = matmul_integer,
       .oracle = {"np.matmul((np.swapaxes(a, -1, -2) if transpose_a else a).astype(np.int32) - a_zero, (np.swapaxes(b, "
                  "-1, -2) if transpose_b else b).astype(np.int32) - b_zero)"},
       .cases = {"u8[2, 3], i8[3, 4], u8[]=[0], i8[]=[0]", "u8[1, 65], i8[65, 17], u8[]=[128], i8[]=[0]",
                 "i8[33, 64], i8[64, 48], i8[]=[-7], i8[]=[0]",
                 "u8[7, 5], u8[7, 3], u8[]=[3], u8[]=[130] {transpose_a = true}",
                 "i8[5, 7], u8[3, 7], i8[]=[3], u8[]=[1] {transpose_b = true}",
                 "u8[2, 3, 4, 5], i8[2, 3, 5, 7], u8[]=[9], i8[]=[2]", "u8[6, 3, 4], i8[4, 2], u8[]=[1], i8[2]=[4, -4]",
                 "u8[3, 4], i8[4, 2], u8[3, 1]=[1, 2, 3], i8[]=[0]", "u8[0, 3], i8[3, 4], u8[]=[0], i8[]=[0]",
                 "u8[2, 0], i8[0, 3], u8[]=[0], i8[]=[0]", "u8[130, 96], i8[96, 80], u8[]=[117], i8[]=[0]"}},
  };
}

}  // namespace

std::span<const OpDef> linear_ops() {
  static const std::vector<OpDef> rows = make_linear_rows();
  return rows;
}

}  // namespace cairn
