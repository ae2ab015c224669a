// Random numbers. A random state is u64[3]: the key and the low and high half of the counter of Philox. One count gives
// four 32-bit words; a draw starts at the state's counter, so equal states give equal numbers for any threads and
// device. Which words an element uses, and by how much a draw advances the counter, follow TensorFlow's kernels.
#include <numeric>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/philox.h"
#include "ops/rows.h"

namespace cairn {

namespace {

using namespace random;

Philox state_of(const KernelContext& context, size_t i = 0) {
  const Tensor& state = context.input(i);
  if (!is_state(state)) context.fail("the random state is not u64[3]");
  return read_state(state);
}

Tensor as_tensor(const Philox& philox) {
  return Tensor::of<uint64_t>(kU64, {3}, {philox.key, philox.low, philox.high});
}

// Writes the state after the draw: advanced by the counts of its groups, or by `reserve` counts per element.
void advance(KernelContext& context, Philox state, int64_t elements, uint64_t group, uint64_t each) {
  state.skip(counts_of(elements, context.attr.integer("reserve"), group, each));
  context.result(0).tensor = as_tensor(state);
}

Dims dims_of(const KernelContext& context, size_t i) {
  Dims dims = context.input(i).as_i64();
  for (int64_t dim : dims)
    if (dim < 0) context.fail("shape has a negative size {}", dim);
  return dims;
}

template <class Distribution>
void draw(KernelContext& context) {
  const Philox state = state_of(context);
  const DType dtype = context.attr.dtype("dtype");
  Tensor& y = context.allocate(1, dtype, dims_of(context, 1));
  with_floats(dtype, [&](auto tag) {
    using T = decltype(tag);
    constexpr uint64_t kEach = kCounts<T, Distribution>;
    Philox philox = state;
    for (int64_t i = 0; i < y.count(); philox.skip(kEach)) {
      stop_point_after(kGroup<T>);
      const Draws<T> draws = Distribution::template of<T>(philox);
      for (size_t j = 0; j < draws.size() && i < y.count(); ++j, ++i) data<T>(y)[i] = draws[j];
    }
    advance(context, state, y.count(), kGroup<T>, kEach);
  });
}

void infer_random(InferContext& context) {
  const DType dtype = context.attr.dtype("dtype");
  if (!dtype.is_float()) context.fail("dtype must be a float, found {}", to_string(dtype));
  if (context.attr.integer("reserve") < 0) context.fail("reserve must not be negative");
  context.result(Type::rng());
  context.result(dtype, shape_operand(context, 1));
}

void infer_integers(InferContext& context) {
  const DType dtype = context.dtype(2);
  if (dtype != kI32 && dtype != kI64) context.fail("bounds must be i32 or i64, found {}", to_string(dtype));
  equal_types(context, 2);
  for (size_t i : {2, 3}) require_scalar(context, i);
  if (context.attr.integer("reserve") < 0) context.fail("reserve must not be negative");
  context.result(Type::rng());
  context.result(dtype, shape_operand(context, 1));
}

// low + word modulo the range; 64-bit elements take two words, the low one first.
template <class T>
void integers_of(KernelContext& context) {
  using U = std::make_unsigned_t<T>;
  constexpr size_t kEach = sizeof(T) / 4;
  const T low = *data<T>(context.input(2)), high = *data<T>(context.input(3));
  if (low >= high) context.fail("low must be less than high, found {} and {}", low, high);
  const U range = static_cast<U>(high) - static_cast<U>(low);
  const Philox state = state_of(context);
  Tensor& y = context.allocate(1, context.input(2).dtype(), dims_of(context, 1));
  Stream stream(state);
  for (const int64_t i : turns(y.count())) {
    U word = stream.next();
    if constexpr (kEach == 2) word |= static_cast<U>(stream.next()) << 32;
    data<T>(y)[i] = static_cast<T>(static_cast<U>(low) + word % range);
  }
  advance(context, state, y.count(), 4 / kEach, 1);
}

void random_integers(KernelContext& context) {
  context.input(2).dtype() == kI32 ? integers_of<int32_t>(context) : integers_of<int64_t>(context);
}

void infer_shuffle(InferContext& context) {
  moved_type(context, 1);
  if (context.shape(1).ranked && context.shape(1).rank() == 0)
    context.fail("x must have rows, found {}", to_string(context.input(1)));
  context.result(Type::rng());
  context.result(context.dtype(1), context.shape(1));
}

void shuffle(KernelContext& context) {
  Philox state = state_of(context);
  const Tensor& x = context.input(1);
  Tensor& y = context.allocate(1, x.dtype(), x.dims());
  const int64_t rows = x.dims()[0], inner = count_between(x.dims(), 1, x.rank());
  std::vector<int64_t> order(static_cast<size_t>(x.count() > 0 ? rows : 0));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() > 1) {
    Stream stream(state);
    for (const size_t i : turns(order.size() - 1))
      std::swap(order[i], order[i + stream.next() % static_cast<uint32_t>(order.size() - i)]);
    state.skip((order.size() - 1 + 3) / 4);
  }
  with_elements(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* to = data<T>(y);
    for (int64_t row : order) to = std::copy_n(data<T>(x) + row * inner, inner, to), stop_point_after(inner);
  });
  context.result(0).tensor = as_tensor(state);
}

// Shuffles the row numbers with the same state, which gives the permutation.
void shuffle_rule(GradientContext& g) {
  const Sizes sizes = sizes_of(g, g.x(1));
  const Sizes rows = {sizes[0], product_of(g.b, sizes, 1, sizes.size())};
  const Var places = apply_again(g, {g.x(0), counting(sizes[0])})[1];
  g.set(1, reshape_like(sum_rows(reshape(g.dy(1), rows), places, sizes[0]), g.x(1)));
}

void infer_categorical(InferContext& context) {
  number_type(context, 1);
  const DType dtype = context.attr.dtype("dtype");
  if (dtype != kI32 && dtype != kI64) context.fail("dtype must be i32 or i64, found {}", to_string(dtype));
  require_scalar(context, 2);
  Dim rows, count;
  if (ranked(context, 1, 2)) rows = context.shape(1).dims[0];
  if (auto value = constant_integers(context, 2)) {
    if ((*value)[0] < 0) context.fail("count must not be negative, found {}", (*value)[0]);
    count = (*value)[0];
  }
  context.result(Type::rng());
  context.result(dtype, Shape{rows, count});
}

void categorical(KernelContext& context) {
  Philox state = state_of(context);
  const Tensor& logits = context.input(1);
  const int64_t rows = logits.dims()[0], classes = logits.dims()[1], count = context.input(2).as_i64()[0];
  if (count < 0) context.fail("count must not be negative, found {}", count);
  if (classes == 0) context.fail("there are no classes");
  Tensor& y = context.allocate(1, context.attr.dtype("dtype"), {rows, count});
  const std::vector<double> values = logits.as_f64();
  Stream stream(state);
  std::vector<double> sums(static_cast<size_t>(y.count() > 0 ? classes : 0));
  for (const int64_t row : turns(y.count() > 0 ? rows : 0)) {
    const double* from = values.data() + row * classes;
    double most = std::numeric_limits<double>::lowest(), total = 0;
    for (const int64_t c : turns(classes))
      if (std::isfinite(from[c])) most = std::max(most, from[c]);
    for (const int64_t c : turns(classes)) {
      if (std::isfinite(from[c])) total += std::exp(from[c] - most);
      sums[static_cast<size_t>(c)] = total;
    }
    for (const int64_t i : turns(count)) {
      const uint32_t a = stream.next(), b = stream.next();
      const auto found = std::upper_bound(sums.begin(), sums.end(), unit(a, b) * total) - sums.begin();
      if (y.dtype() == kI32)
        data<int32_t>(y)[row * count + i] = static_cast<int32_t>(found);
      else
        data<int64_t>(y)[row * count + i] = found;
    }
  }
  if (y.count() > 0) state.skip(static_cast<uint64_t>(rows) * static_cast<uint64_t>((count + 3) / 4 * 8) * kReserved);
  context.result(0).tensor = as_tensor(state);
}

void infer_seed(InferContext& context) {
  if (ranked(context, 0, 1)) same_size(context, context.shape(0).dims[0], 2, "numbers of the seed and 2");
  context.result(kU64, Shape{1});
  context.result(kU64, Shape{2});
}

void seed(KernelContext& context) {
  allocate_results(context);
  const Dims numbers = context.input(0).as_i64();
  constexpr uint64_t kKey = uint64_t{0x02461e29} << 32 | 0x3ec8f720;
  const Words mixed = Philox{kKey, static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1])}.words();
  *data<uint64_t>(context.output(0)) = uint64_t{mixed[1]} << 32 | mixed[0];
  data<uint64_t>(context.output(1))[0] = 0;
  data<uint64_t>(context.output(1))[1] = uint64_t{mixed[3]} << 32 | mixed[2];
}

void infer_state(InferContext& context) {
  for (size_t i : {0, 1}) {
    if (context.dtype(i) != kU64) context.fail("key and counter must be u64, found {}", to_string(context.dtype(i)));
    if (ranked(context, i, 1))
      same_size(context, context.shape(i).dims[0], static_cast<int64_t>(i + 1), "numbers of key and counter");
  }
  context.result(Type::rng());
}

void state(KernelContext& context) {
  if (context.input(0).dims() != Dims{1} || context.input(1).dims() != Dims{2})
    context.fail("a state is a key of 1 and a counter of 2 numbers");
  const auto* counter = data<uint64_t>(context.input(1));
  context.result(0).tensor = as_tensor({*data<uint64_t>(context.input(0)), counter[0], counter[1]});
}

constexpr uint32_t kDraws = kNotFoldable | kHostValue;

std::vector<OpDef> rows_of_floats() {
  const std::vector<InputDef> inputs = {state_operand("rng", Accepts::rng), shape_operand("shape")};
  const std::vector<const char*> cases = {"rng=[1, 0, 0], i64[2]=[3, 5] {dtype = f32}",
                                          "rng=[81985529216486895, 18446744073709551615, 7], i32[1]=[66] {dtype = f32}",
                                          "rng=[5, 6, 7], i64[1]=[9] {dtype = f64}",
                                          "rng=[5, 6, 7], i64[0]=[] {dtype = f32}",
                                          "rng=[5, 6, 7], i64[1]=[0] {dtype = f32}",
                                          "rng=[9, 0, 0], i64[1]=[6] {dtype = f16}",
                                          "rng=[9, 0, 0], i64[1]=[6] {dtype = f32, reserve = 256}"};
  const std::vector<AttrDef> attributes = {dtype_or(kF32), integer("reserve", 0)};
  const auto row = [&](const char* name, const char* summary, Precision precision, auto* reference,
                       const char* oracle) {
    return OpDef{.name = name,
                 .summary = summary,
                 .inputs = inputs,
                 .attributes = attributes,
                 .results = {"next", "y"},
                 .traits = kDraws,
                 .precision = precision,
                 .infer = infer_random,
                 .reference = reference,
                 .oracle = {oracle, kTensorFlow},
                 .cases = cases};
  };
  return {
      row("random_uniform",
          "numbers in [0, 1) from the mantissa bits of Philox words (low bits of one word; f64: of two), and "
          "the advanced state: past the words used, or reserve counts on for each element",
          Precision::exact, draw<Uniform>, "philox(tf.raw_ops.StatelessRandomUniformV2, rng, shape, dtype, reserve)"),
      row("random_normal",
          "standard normal numbers by Box and Muller's method from pairs of uniform ones (at least 1e-7), and "
          "the advanced state",
          Precision::rounded, draw<Normal>, "philox(tf.raw_ops.StatelessRandomNormalV2, rng, shape, dtype, reserve)"),
      row("random_truncated_normal",
          "standard normal numbers of magnitude below 2, others thrown away; 256 words are set aside for each, "
          "and the advanced state",
          Precision::rounded, draw<TruncatedNormal>,
          "philox(tf.raw_ops.StatelessTruncatedNormalV2, rng, shape, dtype, reserve, 64)"),
  };
}

std::vector<OpDef> other_rows() {
  return {
      {.name = "random_integers",
       .summary = "low + word modulo (high - low), of i64 from two words, and the advanced state; low must be less "
                  "than high",
       .inputs = {state_operand("rng", Accepts::rng),
                  shape_operand("shape"),
                  {"low", Accepts::integers},
                  {"high", Accepts::integers}},
       .attributes = {integer("reserve", 0)},
       .results = {"next", "y"},
       .traits = kDraws,
       .infer = infer_integers,
       .reference = random_integers,
       .oracle = {"philox(lambda **all: tf.raw_ops.StatelessRandomUniformIntV2(minval=low, maxval=high, **all), rng, "
                  "shape, low.dtype.type, reserve)",
                  kTensorFlow},
       .cases = {"rng=[1, 0, 0], i64[2]=[3, 5], i32[]=[-3], i32[]=[1000]",
                 "rng=[1, 18446744073709551615, 4], i64[1]=[7], i64[]=[-5000000000], i64[]=[9000000000]",
                 "rng=[1, 0, 0], i32[1]=[0], i32[]=[0], i32[]=[1]",
                 "rng=[1, 2, 3], i64[1]=[5], i32[]=[-2147483648], i32[]=[2147483647] {reserve = 256}"}},
      {.name = "random_shuffle",
       .summary = "the rows of x in random order: row i changes place with row i + word modulo what is left; and the "
                  "advanced state",
       .inputs = {state_operand("rng", Accepts::rng), {"x"}},
       .results = {"next", "y"},
       .traits = kNotFoldable | kHostValue,
       .infer = infer_shuffle,
       .gradient = shuffle_rule,
       .reference = shuffle,
       .oracle = {"shuffle(rng, x)", kTensorFlow},
       .cases = {"rng=[1, 0, 5], f32[9]", "rng=[7, 0, 1], i64[6, 2]", "rng=[7, 0, 1], f32[1, 3]",
                 "rng=[7, 0, 1], f32[0, 3]"}},
      {.name = "random_categorical",
       .summary =
           "for each row of logits `count` classes drawn with probability softmax(logits), where a class that is "
           "not finite is never drawn, and the advanced state",
       .inputs = {state_operand("rng", Accepts::rng), {"logits", Accepts::floats}, shape_operand("count")},
       .attributes = {dtype_or(kI64)},
       .results = {"next", "y"},
       .traits = kDraws,
       .infer = infer_categorical,
       .reference = categorical,
       .oracle = {"categorical(rng, logits, int(count), dtype)", kTensorFlow},
       .cases = {"rng=[1, 0, 5], f32[3, 7], i32[]=[5]", "rng=[1, 0, 5], f32[2, 3], i32[]=[0] {dtype = i32}",
                 "rng=[9, 0, 2], f32[1, 3]=[0, -inf, 1], i32[]=[9] {dtype = i32}"}},
      {.name = "random_seed",
       .summary =
           "the key and the counter that two numbers give: they are counted with a fixed key, and what comes out "
           "is the key and the high half of the counter",
       .inputs = {{"seed", Accepts::i32_or_i64}},
       .results = {"key", "counter"},
       .infer = infer_seed,
       .reference = seed,
       .oracle = {"tuple(tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed))", kTensorFlow},
       .cases = {"i64[2]=[1, 2]", "i32[2]=[-5, 2147483647]"}},
      {.name = "random_state",
       .summary = "the random state of a key and a counter",
       .inputs = {{"key", Accepts::integers}, {"counter", Accepts::integers}},
       .results = {"rng"},
       .traits = kNotFoldable | kHostValue,
       .infer = infer_state,
       .reference = state,
       .oracle = {"np.concatenate([key, counter])"},
       .cases = {"u64[1]=[5], u64[2]=[6, 18446744073709551615]"}},
  };
}

std::vector<OpDef> make_random_rows() {
  std::vector<OpDef> rows = rows_of_floats(), others = other_rows();
  for (OpDef& row : others) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

std::span<const OpDef> random_ops() {
  static const std::vector<OpDef> rows = make_random_rows();
  return rows;
}

}  // namespace cairn
