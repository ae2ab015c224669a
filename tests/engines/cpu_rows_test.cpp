// Kernels over rows, and transposition, of the CPU engine against naive loops.
#include <array>
#include <bit>
#include <limits>
#include <numeric>

#include "engines/cpu/channels.h"
#include "engines/cpu/move.h"
#include "engines/cpu/vector_loops.h"
#include "engines/cpu_reference.h"
#include "ops/kernels.h"

namespace cairn {
namespace {

TEST(CpuRows, sums_and_finds_the_largest_of_rows_of_any_length) {
  const auto pool = make_pool(3);
  for (int64_t c : {1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 100, 768, 1000}) {
    Random random(static_cast<unsigned>(c));
    for (const auto& [rows, scale] : {std::pair{9, 0.5f}, {9, 1.f}, {16, 0.5f}, {67, 0.5f}, {67, 1.f}, {67, -1.f}}) {
      const bool largest = scale != 0.5f;
      const auto x = random.floats(rows * c);
      std::vector<double> expected;
      std::vector<float> singles;
      for (int64_t row = 0; row < rows; ++row) {
        const auto first = x.begin() + row * c;
        Guarded alone(1);  // the bits of a row do not depend on the rows beside it
        reduce_rows(serial_executor(), largest, 1, c, scale, &*first, alone.data());
        singles.push_back(alone.data()[0]);
        expected.push_back(scale < 0 ? *std::min_element(first, first + c)
                           : largest ? *std::max_element(first, first + c)
                                     : 0.5 * std::accumulate(first, first + c, 0.0));
      }
      Guarded one(rows), three(rows);
      reduce_rows(serial_executor(), largest, rows, c, scale, x.data(), one.data());
      reduce_rows(*pool, largest, rows, c, scale, x.data(), three.data());
      EXPECT_LT(worst_difference(one.values(), expected, 1), 5e-6) << c;
      EXPECT_EQ(one.values(), three.values());
      EXPECT_EQ(one.values(), singles);
      EXPECT_TRUE(one.intact() && three.intact());
    }
  }
}

TEST(CpuRows, reduces_axes_apart_from_each_other_one_after_the_other) {
  std::mt19937_64 random(3);
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
    for (const auto& [x, axes, y] : {std::array{"12, 33, 50", "0, 2", "33"},
                                     {"5, 1, 9, 6, 40", "0, 1, 3", "9, 40"},
                                     {"700, 3, 20", "0, 2", "3"},
                                     {"7, 2, 3, 5, 64", "0, 2, 4", "2, 5"},
                                     {"6, 30, 40", "1", "6, 40"}}) {
      const std::string text = fmt::format(
          "module @m {{ func @main(%x: f32[{}]) -> (%y: f32[{}]) {{ %y = {} %x {{axes = [{}]}} return %y }} }}", x, y,
          op, axes);
      expect_reference_result(
          text, random, [](const auto& kernels) { EXPECT_EQ(kernels.find("fold"), std::string::npos) << kernels; });
    }
}

TEST(CpuRows, many_products_of_a_row_and_a_column_are_sums) {
  std::mt19937_64 random(4);
  expect_reference_result(
      "module @m { func @main(%x: f32[200, 1, 50], %z: f32[200, 50, 1]) -> (%y: f32[200, 1, 1]) { "
      "%y = matmul %x, %z return %y } }",
      random, [](const auto& kernels) { EXPECT_EQ(kernels.find("tile"), std::string::npos) << kernels; });
}

TEST(CpuRows, spreads_and_copies_short_rows_bit_by_bit_and_nothing_beyond) {
  for (int64_t columns = 1; columns <= 40; ++columns)
    for (int64_t rows : {1, 2, 3, 16, 33, 64}) {
      const int64_t step = columns + rows % 5;
      auto from = Random(static_cast<unsigned>(columns)).floats(rows * step);
      from[0] = -0.f, from.back() = std::numeric_limits<float>::quiet_NaN();
      Guarded spread(rows * columns), copied(rows * columns);
      vector_loops().spread_rows(rows, columns, 1, from.data(), spread.data());
      vector_loops().copy_rows(rows, columns, from.data(), step, copied.data());
      EXPECT_TRUE(spread.intact() && copied.intact());
      const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
      for (int64_t width : {2, 4}) {
        const auto items = Random(static_cast<unsigned>(columns)).floats(rows * width);
        Guarded wide(rows * columns * width);
        vector_loops().spread_rows(rows, columns, width, items.data(), wide.data());
        EXPECT_TRUE(wide.intact());
        for (int64_t at = 0; at < rows * columns * width; ++at)
          ASSERT_EQ(bits(wide.data()[at]),
                    bits(items[static_cast<size_t>(at / (columns * width) * width + at % width)]))
              << width << " " << columns << " " << at;
      }
      for (int64_t at = 0; at < rows * columns; ++at) {
        const int64_t row = at / columns;
        ASSERT_EQ(bits(spread.data()[at]), bits(from[static_cast<size_t>(row)])) << columns << " " << at;
        ASSERT_EQ(bits(copied.data()[at]), bits(from[static_cast<size_t>(row * step + at % columns)]));
      }
    }
}

// Of equal numbers the first counts; NaN and infinities of the wrong sign never do.
TEST(CpuRows, finds_the_place_of_the_largest_and_smallest) {
  const float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (bool most : {true, false})
    for (int64_t size : {1, 2, 7, 16, 17, 40, 100})
      for (int64_t inner : {1, 2, 15, 16, 21}) {
        Random random(static_cast<unsigned>(size * inner));
        std::vector<float> x;
        for (int64_t i = 0; i < size * inner; ++i)
          x.push_back(random.between(0, 4)
                          ? static_cast<float>(random.between(-3, 3))
                          : std::array{kNan, kInfinity, -kInfinity}[random.coin() ? 0 : 1 + random.coin()]);
        for (int64_t column = 0; column < inner; ++column) {
          float best = most ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::max();
          int64_t place = 0;
          std::vector<float> row;
          for (int64_t i = 0; i < size; ++i) {
            row.push_back(x[static_cast<size_t>(i * inner + column)]);
            if (most ? row.back() > best : row.back() < best) best = row.back(), place = i;
          }
          int32_t found[kLanes];
          vector_loops().arg_columns(most, size, inner, 1, x.data() + column, found);
          EXPECT_EQ(found[0], place) << size << " " << inner;
          EXPECT_EQ(vector_loops().arg_row(most, size, row.data()), place) << size << " " << inner;
          if (const int64_t many = std::min<int64_t>(kLanes, inner); column < many) {
            vector_loops().arg_columns(most, size, inner, many, x.data(), found);
            EXPECT_EQ(found[column], place) << size << " " << inner;
          }
        }
      }
}

TEST(CpuRows, interleaves_few_columns) {
  for (int64_t columns = 2; columns <= kMostInterleaved; ++columns)
    for (int64_t count : {0, 1, 3, 8, 15, 16, 17, 40}) {
      const int64_t step = count + 3;
      const auto from = Random(4).floats(columns * step);
      Guarded to(columns * count);
      vector_loops().interleave(count, columns, from.data(), step, to.data());
      for (int64_t at = 0; at < columns * count; ++at)
        EXPECT_EQ(to.data()[at], from[static_cast<size_t>(at % columns * step + at / columns)]) << columns << " " << at;
      EXPECT_TRUE(to.intact());
    }
}

TEST(CpuRows, truncates_floats_as_the_reference_kernel_does) {
  const float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> from = {0.f,           -0.f,  0.9f,   -0.9f,     2147483520.f, 2147483648.f, -2147483648.f,
                             -2147483904.f, 1e30f, -1e30f, kInfinity, -kInfinity,   kNan,         16777217.f};
  while (from.size() < 45) from.push_back(-3e9f + 1.7e8f * static_cast<float>(from.size()));
  for (size_t count = 0; count <= from.size(); ++count) {
    std::vector<int32_t> to(count + 1, 7);
    vector_loops().truncate(static_cast<int64_t>(count), from.data(), to.data());
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(to[i], saturate<int32_t>(double{from[i]})) << from[i];
    EXPECT_EQ(to[count], 7);
  }
}

TEST(CpuRows, copies_every_second_float) {
  for (int64_t count = 0; count < 50; ++count) {
    const auto from = Random(3).floats(std::max<int64_t>(1, 2 * count - 1));
    Guarded to(count);
    vector_loops().every_second(count, from.data(), to.data());
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(to.data()[i], from[static_cast<size_t>(2 * i)]);
    EXPECT_TRUE(to.intact());
  }
}

TEST(CpuRows, normalises_rows) {
  for (int64_t c : {1, 7, 16, 33, 768}) {
    Random random(static_cast<unsigned>(c));
    const int64_t rows = 5;
    const auto x = random.floats(rows * c, 3, 5), scale = random.floats(c), offset = random.floats(c);
    std::vector<double> expected;
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = x.data() + row * c;
      const double mean = std::accumulate(from, from + c, 0.0) / static_cast<double>(c);
      double squares = 0;
      for (int64_t i = 0; i < c; ++i) squares += (from[i] - mean) * (from[i] - mean);
      for (int64_t i = 0; i < c; ++i) {
        const auto at = static_cast<size_t>(i);
        expected.push_back((from[i] - mean) / std::sqrt(squares / static_cast<double>(c) + 1e-3) * scale[at] +
                           offset[at]);
      }
    }
    Guarded y(rows * c);
    layer_norm(serial_executor(), FormedRows{rows, c}, 1e-3f, x.data(), scale.data(), offset.data(), y.data());
    EXPECT_LT(worst_difference(y.values(), expected, 1), 1e-5) << c;
    EXPECT_TRUE(y.intact());
  }
}

TEST(CpuRows, softmax_rows_add_up_to_one_and_keep_nan) {
  for (int64_t c : {1, 5, 16, 47, 1000}) {
    Random random(static_cast<unsigned>(c));
    auto x = random.floats(3 * c, -50, 50);
    x[static_cast<size_t>(2 * c)] = std::numeric_limits<float>::quiet_NaN();
    std::vector<double> expected;
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < c; ++i) sum += std::exp(double{x[static_cast<size_t>(row * c + i)]});
      for (int64_t i = 0; i < c; ++i) expected.push_back(std::exp(double{x[static_cast<size_t>(row * c + i)]}) / sum);
    }
    Guarded y(3 * c);
    softmax(serial_executor(), false, 3, c, x.data(), y.data());
    EXPECT_LT(worst_difference(y.values(), expected, 1), 1e-6) << c;
    EXPECT_TRUE(y.intact());
  }
}

TEST(CpuRows, softmax_of_excluded_elements_is_exactly_zero) {
  for (int64_t c : {2, 15, 17, 33, 64, 200})
    for (float excluded : {-std::numeric_limits<float>::infinity(), -1e9f, -200.f}) {
      auto x = Random(static_cast<unsigned>(c)).floats(c);
      for (int64_t i = 0; i < c; i += 2) x[static_cast<size_t>(i)] = excluded;
      Guarded y(c);
      softmax(serial_executor(), false, 1, c, x.data(), y.data());
      float sum = 0;
      for (int64_t i = 0; i < c; ++i) {
        sum += y.data()[i];
        if (i % 2 == 1) continue;
        EXPECT_EQ(y.data()[i], 0.f);
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
}

TEST(CpuRows, gelu_keeps_its_digits_below_zero) {
  float x[kElementTile], y[kElementTile];
  for (int64_t start = 0; start < 64; ++start) {
    for (int64_t i = 0; i < kElementTile; ++i)
      x[i] = -5.f + 13.f * static_cast<float>(start * kElementTile + i) / 16384;
    vector_loops().execute(ElementOp::gelu, 0, 0, x, x, x, y);
    for (int64_t i = 0; i < kElementTile; ++i) {
      const double wanted = 0.5 * double{x[i]} * std::erfc(-double{x[i]} * M_SQRT1_2);
      EXPECT_NEAR(y[i], wanted, 1e-5 * std::abs(wanted)) << x[i];
    }
  }
  const float ends[] = {
      -1e30f, -20.f, 20.f, 1e30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  std::copy(std::begin(ends), std::end(ends), x);
  vector_loops().execute(ElementOp::gelu, 0, 0, x, x, x, y);
  EXPECT_EQ(y[0], 0.f);
  EXPECT_EQ(y[1], 0.f);
  for (int i : {2, 3, 4}) EXPECT_EQ(y[i], x[i]);
  EXPECT_TRUE(std::isnan(y[5]));
}

TEST(CpuRows, softmax_and_its_logarithm_along_any_axis) {
  const auto pool = make_pool(3);
  for (int64_t inner : {1, 3, 16, 37})
    for (bool log : {false, true}) {
      Random random(static_cast<unsigned>(inner));
      const int64_t outer = 3, size = 21, count = outer * size * inner;
      const auto x = random.floats(count, -20, 20);
      std::vector<double> expected(static_cast<size_t>(count));
      for (int64_t row = 0; row < outer * inner; ++row) {
        const auto at = [&](int64_t i) {
          return static_cast<size_t>(row / inner * size * inner + i * inner + row % inner);
        };
        double sum = 0;
        for (int64_t i = 0; i < size; ++i) sum += std::exp(double{x[at(i)]});
        for (int64_t i = 0; i < size; ++i)
          expected[at(i)] = log ? x[at(i)] - std::log(sum) : std::exp(double{x[at(i)]}) / sum;
      }
      Guarded y(count);
      if (inner == 1)
        softmax(*pool, log, outer, size, x.data(), y.data());
      else
        softmax_middle(*pool, log, outer, size, inner, x.data(), y.data());
      EXPECT_LT(worst_difference(y.values(), expected, 1), 2e-6) << inner << log;
      EXPECT_TRUE(y.intact());
    }
}

TEST(CpuRows, sums_a_long_middle_axis_in_parts) {
  const auto pool = make_pool(3);
  for (int64_t middle : {1, 511, 5000})
    for (int64_t c : {8, 130}) {
      Random random(static_cast<unsigned>(middle));
      const auto x = random.floats(2 * middle * c);
      std::vector<double> expected(static_cast<size_t>(2 * c));
      for (int64_t i = 0; i < std::ssize(x); ++i)
        expected[static_cast<size_t>(i / (middle * c) * c + i % c)] += 2.0 * x[static_cast<size_t>(i)];
      std::vector<float> workspace(reduce_workspace(2, middle, c) / sizeof(float));
      Guarded one(2 * c), three(2 * c);
      reduce_middle(serial_executor(), false, 2, middle, c, 2, x.data(), one.data(), workspace.data());
      reduce_middle(*pool, false, 2, middle, c, 2, x.data(), three.data(), workspace.data());
      EXPECT_LT(worst_difference(one.values(), expected, 10), 1e-5) << middle;
      EXPECT_EQ(one.values(), three.values());
      EXPECT_TRUE(one.intact() && three.intact());
    }
}

TEST(CpuRows, takes_any_positions_along_axes) {
  const auto pool = make_pool(3);
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const int64_t rank = random.between(1, 4);
    std::vector<int64_t> from;
    std::vector<std::vector<int64_t>> sources;
    int64_t count = 1;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t n = random.one_of({1, 2, 5, 17}), first = random.between(-2, n - 1), step = random.between(-2, 2);
      from.push_back(n);
      sources.emplace_back();
      for (int64_t i = 0; i < random.one_of({1, 3, 9, n}); ++i) {
        const int64_t at = random.between(0, 5) == 0 ? i : first + i * step;
        sources.back().push_back(at < 0 || at >= n ? -1 : at);
      }
      count *= std::ssize(sources.back());
    }
    const auto x = random.floats(std::accumulate(from.begin(), from.end(), int64_t{1}, std::multiplies<>()));
    std::vector<double> expected;
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n, at = 0, stride = 1;
      for (size_t d = from.size(); d-- > 0;) {
        const auto& source = sources[d];
        const int64_t position = source[static_cast<size_t>(rest % std::ssize(source))];
        rest /= std::ssize(source);
        at = at < 0 || position < 0 ? -1 : at + position * stride;
        stride *= from[d];
      }
      expected.push_back(at < 0 ? 0.5 : x[static_cast<size_t>(at)]);
    }
    Guarded y(count);
    AxisCopy(from, sources, 4, 0x3f000000).run(*pool, x.data(), y.data());
    EXPECT_EQ(worst_difference(y.values(), expected, 1), 0) << "seed " << seed;
    EXPECT_TRUE(y.intact());
  }
}

TEST(CpuRows, transposes_any_dims) {
  const auto pool = make_pool(3);
  for (unsigned seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const int64_t rank = random.between(0, 5);
    std::vector<int64_t> dims, permutation(static_cast<size_t>(rank)), position(static_cast<size_t>(rank), 0);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(random.one_of({1, 2, 3, 4, 8, 16, 17, 20}));
    std::iota(permutation.begin(), permutation.end(), 0);
    for (int64_t i = rank - 1; i > 0; --i)
      std::swap(permutation[static_cast<size_t>(i)], permutation[static_cast<size_t>(random.between(0, i))]);
    const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    if (count > 200000) continue;
    const auto x = random.floats(count);
    std::vector<double> expected;
    for (int64_t n = 0; n < count; ++n) {  // position counts through the result
      int64_t rest = n, from = 0;
      for (size_t i = permutation.size(); i-- > 0;) {
        const auto source = static_cast<size_t>(permutation[i]);
        position[source] = rest % dims[source], rest /= dims[source];
      }
      for (size_t i = 0; i < dims.size(); ++i) from = from * dims[i] + position[i];
      expected.push_back(x[static_cast<size_t>(from)]);
    }
    Guarded y(count);
    transpose_copy(dims, permutation, 4).run(*pool, x.data(), y.data());
    EXPECT_EQ(worst_difference(y.values(), expected, 1), 0) << "seed " << seed;
    EXPECT_TRUE(y.intact());
  }
}

TEST(CpuRows, sums_so_far_of_any_number_of_columns) {
  std::mt19937_64 random(7);
  for (const char* dims : {"5, 20, 15", "1, 33, 64", "300, 64", "3, 9, 131", "17, 200, 3"})
    for (const char* attributes : {"axis = -2", "axis = -2, exclusive = true", "axis = -2, reverse = true"})
      expect_reference_result(
          fmt::format("module @m {{ func @main(%x: f32[{}]) -> (%y: f32[*]) {{ %y = cumsum %x {{{}}} return %y }} }}",
                      dims, attributes),
          random, [](const std::string& kernels) { EXPECT_EQ(kernels, "cpu/cumsum "); });
}

TEST(CpuRows, gathers_elements_of_rows_from_either_end) {
  std::mt19937_64 random(8);
  for (const char* index : {"i32", "i64"})
    for (const char* type : {"f32", "f64", "u8"})
      expect_reference_result(
          fmt::format(
              "module @m {{ func @main(%x: {1}[3, 40]) -> (%y: {1}[*]) {{ %i = constant {{value = {0}[3, 19] (0, 1, 2, "
              "-1, -40, 39, 7, 7, 8, 3, 4, 5, 6, -2, -3, 9, 30, 31, 32, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, "
              "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, -33)}} "
              ": {0}[3, 19] %y = gather %x, %i {{axis = 1, batch_dims = 1}} return %y }} }}",
              index, type),
          random, [](const std::string&) {});
}

TEST(CpuRows, one_element_fills_results_of_any_size) {
  std::mt19937_64 random(9);
  for (const char* type : {"f32", "f64", "u8", "bf16"})
    for (const auto& [from, to] :
         {std::pair{"", "3, 1001, 3"}, {"1, 1", "7, 9"}, {"1", "70"}, {"1, 1", "2, 4097"}, {"4, 1", "4, 300"}})
      expect_reference_result(
          fmt::format("module @m {{ func @main(%x: {0}[{1}], %z: {0}[{2}]) -> (%y: {0}[{2}]) {{ %s = shape_of %z %y = "
                      "broadcast_to %x, %s return %y }} }}",
                      type, from, to),
          random, [](const std::string&) {});
}

}  // namespace
}  // namespace cairn
