// Variables, which an early pass turns into inputs and results, and random numbers. A random state is u64[3]: the key
// and the low and high half of the counter of Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011). One count gives four 32-bit words; a draw starts at the state's counter and advances it by as many
// counts as it used, so equal states give equal numbers whatever the threads or the device.
#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

struct Philox {
  uint64_t key, low, high;

  void advance() {
    if (++low == 0) ++high;
  }

  std::array<uint32_t, 4> words() const {
    std::array<uint32_t, 4> x = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                                 static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
      x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(a)};
    }
    return x;
  }
};

// Mantissa bits of the element type as a number in [0, 1).
template <class T>
double unit(uint32_t word) {
  constexpr int kBits = std::is_same_v<T, Half> ? 10 : std::is_same_v<T, BFloat> ? 7 : 23;
  return std::ldexp(static_cast<double>(word & ((1u << kBits) - 1)), -kBits);
}
double unit(uint32_t high, uint32_t low) {
  return std::ldexp(static_cast<double>(uint64_t{high & 0xFFFFF} << 32 | low), -52);
}

template <class T>
struct Draws {
  static constexpr size_t kCount = std::is_same_v<T, double> ? 2 : 4;  // of one count
  std::array<double, 4> values;
};

template <class T>
Draws<T> uniform(const std::array<uint32_t, 4>& words) {
  if constexpr (std::is_same_v<T, double>) return {{unit(words[0], words[1]), unit(words[2], words[3])}};
  return {{unit<T>(words[0]), unit<T>(words[1]), unit<T>(words[2]), unit<T>(words[3])}};
}

// Box and Muller's pair, as TensorFlow makes it.
std::array<double, 2> normal_pair(double u, double v) {
  const double radius = std::sqrt(-2 * std::log(std::max(u, 1e-7)));
  return {std::sin(2 * M_PI * v) * radius, std::cos(2 * M_PI * v) * radius};
}

template <class T>
Draws<T> normal(const std::array<uint32_t, 4>& words) {
  if constexpr (std::is_same_v<T, double>) {
    auto [a, b] = normal_pair(unit(words[0], words[1]), unit(words[2], words[3]));
    return {{a, b}};
  }
  auto [a, b] = normal_pair(unit<float>(words[0]), unit<float>(words[1]));
  auto [c, d] = normal_pair(unit<float>(words[2]), unit<float>(words[3]));
  return {{a, b, c, d}};
}

struct Uniform {
  template <class T>
  static Draws<T> of(const std::array<uint32_t, 4>& words) {
    return uniform<T>(words);
  }
};
struct Normal {
  template <class T>
  static Draws<T> of(const std::array<uint32_t, 4>& words) {
    return normal<T>(words);
  }
};

template <class Distribution>
void draw(KernelContext& context) {
  const Tensor& state = context.input(0);
  if (!state.defined() || state.dtype() != kU64 || state.dims() != Dims{3})
    context.fail("the random state is not u64[3]");
  const DType dtype = context.attr.dtype("dtype");
  const Dims dims = context.input(1).as_i64();
  for (int64_t dim : dims)
    if (dim < 0) context.fail("shape has a negative size {}", dim);
  Philox philox{data<uint64_t>(state)[0], data<uint64_t>(state)[1], data<uint64_t>(state)[2]};
  Tensor& y = context.allocate(1, dtype, dims);
  with_floats(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < y.count(); philox.advance()) {
      auto draws = Distribution::template of<T>(philox.words());
      for (size_t j = 0; j < Draws<T>::kCount && i < y.count(); ++j, ++i)
        data<T>(y)[i] = T(static_cast<Compute<T>>(draws.values[j]));
    }
  });
  context.result(0).tensor = Tensor::of<uint64_t>(kU64, {3}, {philox.key, philox.low, philox.high});
}

void infer_random(InferContext& context) {
  const DType dtype = context.attr.dtype("dtype");
  if (!dtype.is_float()) context.fail("dtype must be a float, found {}", to_string(dtype));
  context.result(Type::rng());
  context.result(dtype, shape_operand(context, 1));
}

void infer_read(InferContext& context) {
  context.result(context.input(0).elements[0]);
}

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

std::vector<OpDef> make_rows() {
  const Oracle lifted = untested("state is lifted to inputs and results before anything runs: tests/passes");
  const std::vector<InputDef> draw_inputs = {{"rng", Accepts::rng}, {"shape", Accepts::shape_integers}};
  const std::vector<const char*> draw_cases = {
      "rng=[1, 0, 0], i64[2]=[3, 5] {dtype = f32}",
      "rng=[81985529216486895, 18446744073709551615, 7], i32[1]=[66] {dtype = f32}",
      "rng=[5, 6, 7], i64[1]=[9] {dtype = f64}",
      "rng=[5, 6, 7], i64[0]=[] {dtype = f32}",
      "rng=[5, 6, 7], i64[1]=[0] {dtype = f32}",
      "rng=[9, 0, 0], i64[1]=[6] {dtype = f16}"};
  return {
      {.name = "variable",
       .summary = "handle of the variable of that name",
       .attributes = {{"name", AttrKind::text}, {"type", AttrKind::type}},
       .results = {"variable"},
       .traits = kNotFoldable | kHostValue,
       .infer = [](InferContext& context) { context.result(Type::resource(std::get<Type>(context.attr.get("type")))); },
       .oracle = lifted},
      {.name = "read_variable",
       .summary = "content of a variable",
       .inputs = {{"variable", Accepts::resource}},
       .traits = kReadsState | kNotFoldable | kHostValue,
       .infer = of_variable<infer_read>,
       .oracle = lifted},
      {.name = "assign_variable",
       .summary = "x becomes the content of a variable",
       .inputs = {{"variable", Accepts::resource}, {"x", Accepts::any}},
       .results = {},
       .traits = kWritesState | kNotFoldable | kHostValue,
       .infer = of_variable<infer_assign>,
       .oracle = lifted},
      {.name = "random_uniform",
       .summary = "numbers in [0, 1) from the mantissa bits of Philox words (low bits of one word; f64: of two), and "
                  "the advanced state",
       .inputs = draw_inputs,
       .attributes = {dtype_or(kF32)},
       .results = {"next", "y"},
       .traits = kNotFoldable | kShapeOperands | kHostValue,
       .infer = infer_random,
       .reference = draw<Uniform>,
       .oracle = {"philox(tf.raw_ops.StatelessRandomUniformV2, rng, shape, dtype)", kTensorFlow},
       .cases = draw_cases},
      {.name = "random_normal",
       .summary = "standard normal numbers by Box and Muller's method from pairs of uniform ones (at least 1e-7), and "
                  "the advanced state",
       .inputs = draw_inputs,
       .attributes = {dtype_or(kF32)},
       .results = {"next", "y"},
       .traits = kNotFoldable | kShapeOperands | kHostValue,
       .precision = Precision::accumulate_f32,
       .infer = infer_random,
       .reference = draw<Normal>,
       .oracle = {"philox(tf.raw_ops.StatelessRandomNormalV2, rng, shape, dtype)", kTensorFlow},
       .cases = draw_cases},
  };
}

}  // namespace

std::span<const OpDef> state_ops() {
  static const std::vector<OpDef> rows = make_rows();
  return rows;
}

}  // namespace cairn
