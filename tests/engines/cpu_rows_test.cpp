// Kernels over rows, and transposition, of the CPU engine against naive loops.
#include <limits>
#include <numeric>

#include "engines/cpu/channels.h"
#include "engines/cpu/move.h"
#include "engines/cpu_reference.h"

namespace cairn {
namespace {

TEST(CpuRows, sums_and_finds_the_largest_of_rows_of_any_length) {
  const auto pool = make_pool(3);
  for (int64_t c : {1, 2, 15, 16, 17, 31, 32, 33, 100, 768, 1000}) {
    Random random(static_cast<unsigned>(c));
    const int64_t rows = 9;
    const auto x = random.floats(rows * c);
    for (bool largest : {false, true}) {
      std::vector<double> expected;
      for (int64_t row = 0; row < rows; ++row) {
        const auto first = x.begin() + row * c;
        expected.push_back(largest ? *std::max_element(first, first + c)
                                   : 0.5 * std::accumulate(first, first + c, 0.0));
      }
      Guarded one(rows), three(rows);
      reduce_rows(serial_executor(), largest, rows, c, 0.5f, x.data(), one.data());
      reduce_rows(*pool, largest, rows, c, 0.5f, x.data(), three.data());
      EXPECT_LT(worst_difference(one.values(), expected, 1), 5e-6) << c;
      EXPECT_EQ(one.values(), three.values());
      EXPECT_TRUE(one.intact() && three.intact());
    }
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
    layer_norm(serial_executor(), rows, c, 1e-3f, x.data(), scale.data(), offset.data(), y.data());
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
    softmax(serial_executor(), 3, c, x.data(), y.data());
    EXPECT_LT(worst_difference(y.values(), expected, 1), 1e-6) << c;
    EXPECT_TRUE(y.intact());
  }
}

TEST(CpuRows, transposes_any_dims) {
  const auto pool = make_pool(3);
  for (unsigned seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const int64_t rank = random.between(0, 5);
    std::vector<int64_t> dims, permutation(static_cast<size_t>(rank)), position(static_cast<size_t>(rank), 0);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(random.one_of({1, 2, 3, 16, 17, 20}));
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
    Transpose(dims, permutation, 4).run(*pool, x.data(), y.data());
    EXPECT_EQ(worst_difference(y.values(), expected, 1), 0) << "seed " << seed;
    EXPECT_TRUE(y.intact());
  }
}

}  // namespace
}  // namespace cairn
