// Distances of tensors, whose error is larger, and the first operators at fault in a graph.
#include "judge/verdict.h"

#include <gtest/gtest.h>

#include "judge/rounding.h"

namespace cairn::judge {
namespace {

TEST(Distance, SeesNumbersThatAreFiniteOnOneSideOnlyOnEitherSide) {
  const double nan = NAN, inf = INFINITY;
  const std::vector<double> x = {1, nan, nan, 2, inf, inf, inf}, y = {3, nan, 1, nan, inf, -inf, 5};
  const Distance found = distance(x, y);
  EXPECT_EQ(found.unlike, 4u);
  EXPECT_EQ(found.most, 2);
  EXPECT_EQ(found.rms, 2);
  EXPECT_EQ(found.size, 3);
  EXPECT_EQ(found.largest, 3);
  EXPECT_FALSE(agrees(found, 10));
  EXPECT_TRUE(agrees(distance({x.data(), 2}, {y.data(), 2}), 2));
  EXPECT_FALSE(agrees(distance({x.data(), 2}, {y.data(), 2}), 1.9));
}

TEST(Distance, TakesTextsAndComplexNumbers) {
  const Tensor a = Tensor::of<std::string>(kString, {2}, {"a", "b"}),
               b = Tensor::of<std::string>(kString, {2}, {"a", "c"});
  EXPECT_EQ(distance(a, b).unlike, 1u);
  Tensor z = Tensor::zeros(kC64, {2}), w = Tensor::zeros(kC64, {2});
  static_cast<float*>(z.mutable_data())[3] = 4;
  EXPECT_EQ(distance(z, w).most, 4);
}

TEST(Forms, ChannelsInFrontAndBehindAreTheSameTensor) {
  std::vector<float> values(120);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor front = Tensor::of(kF32, {2, 3, 4, 5}, values);
  const Tensor back = forms_of(front, Tensor::zeros(kF32, {2, 4, 5, 3})).at(0);
  for (size_t n = 0; n < 2; ++n)
    for (size_t c = 0; c < 3; ++c)
      for (size_t p = 0; p < 20; ++p)
        EXPECT_EQ(back.values<float>()[(n * 20 + p) * 3 + c], front.values<float>()[(n * 3 + c) * 20 + p]);
  EXPECT_TRUE(nearest(front, back)->golden.same_bits(front));
  EXPECT_TRUE(forms_of(front, Tensor::zeros(kF32, {2, 3})).empty());
}

TEST(Forms, OfEqualDimsTheNearestIsMeant) {
  const Tensor mine = Tensor::of<float>(kF32, {1, 2, 2}, {1, 2, 3, 4}),
               moved = Tensor::of<float>(kF32, {1, 2, 2}, {1, 3, 2, 4});
  EXPECT_EQ(nearest(mine, moved)->distance.most, 0);
}

TEST(Noise, IsAboutTheRoundingOfTheType) {
  for (DType dtype : {kF32, kF64, kF16, kBF16}) {
    Tensor moved = Tensor::zeros(dtype, {1000});
    for (size_t i = 0; i < 1000; ++i) {
      if (dtype == kF32) moved.mutable_values<float>()[i] = 1;
      if (dtype == kF64) moved.mutable_values<double>()[i] = 1;
      if (dtype == kF16) moved.mutable_values<uint16_t>()[i] = float_to_half(1);
      if (dtype == kBF16) moved.mutable_values<uint16_t>()[i] = float_to_bfloat(1);
    }
    const std::vector<double> plain = moved.as_f64();
    add_noise(moved, {unit_roundoff(dtype), 1}, 5);
    const double most = distance(moved.as_f64(), plain).most;
    EXPECT_GT(most, 0.5 * unit_roundoff(dtype)) << to_string(dtype);
    EXPECT_LE(most, last_place(dtype, dtype, 1)) << to_string(dtype);
  }
}

TEST(Errors, AreAlikeWithinRoundingAndLargerBeyond) {
  auto errors = [](double mine, double theirs, size_t unlike = 0) {
    Distance a, b;
    a.rms = mine, b.rms = theirs, a.size = b.size = 1, a.unlike = unlike;
    return compare_errors(a, b);
  };
  EXPECT_EQ(errors(1e-9, 1e-12).larger, Larger::alike);  // less than rounding the truth once
  EXPECT_EQ(errors(1e-4, 1e-5).larger, Larger::mine);
  EXPECT_EQ(errors(1e-5, 1e-4).larger, Larger::theirs);
  EXPECT_NEAR(errors(1e-4, 1e-5).ratio, 10, 1e-9);
  EXPECT_EQ(errors(1e-5, 1e-4, 1).larger, Larger::mine);
}

TEST(Errors, OfFewElementsAreLargerOnlyBeyondChance) {
  const auto larger = [](double mine, size_t finite) {
    Distance a, b;
    a.rms = mine, b.rms = 1e-5, a.size = b.size = 1, a.finite = b.finite = finite;
    return compare_errors(a, b).larger;
  };
  EXPECT_EQ(larger(1.6e-5, 1000), Larger::mine);
  EXPECT_EQ(larger(1.6e-5, 20), Larger::alike);
  EXPECT_EQ(larger(2e-5, 20), Larger::mine);
  EXPECT_EQ(larger(5e-5, 2), Larger::alike);
  EXPECT_EQ(larger(1e-4, 2), Larger::mine);
  EXPECT_EQ(larger(0.1e-5, 4), Larger::theirs);
}

TEST(Errors, OfSeveralRunsAreLargerOnlyBeyondTheSpreadOfTheirRatios) {
  const auto judged = [](std::initializer_list<double> ratios, size_t finite = 20) {
    std::vector<Distance> mine, theirs;
    for (double ratio : ratios) {
      Distance &a = mine.emplace_back(), &b = theirs.emplace_back();
      a.rms = ratio * 1e-5, b.rms = 1e-5, a.size = b.size = 1, a.finite = b.finite = finite;
    }
    return compare_errors(mine, theirs);
  };
  EXPECT_EQ(judged({4.3, 0.4, 0.9, 1.5, 0.7}).larger, Larger::alike);
  EXPECT_EQ(judged({4.3, 4, 0.9, 1.5, 1.2}).larger, Larger::alike);
  EXPECT_EQ(judged({2.4, 1.7, 2, 2.2, 1.8}).larger, Larger::mine);
  EXPECT_EQ(judged({0.4, 0.5, 0.6, 0.5, 0.5}).larger, Larger::theirs);
  EXPECT_EQ(judged({1.4, 1.4, 1.4, 1.4, 1.4}).larger, Larger::alike);
  EXPECT_EQ(judged({2, 2}, 2).larger, Larger::alike);  // alike by chance: one must not trust two ratios alone
  EXPECT_NEAR(judged({4, 1}).ratio, 2, 1e-9);
}

/// Places of the first faults; a letter for each value: f fail, p pass, w warning, ? not judged.
std::vector<size_t> faults(const std::string& verdicts, const std::vector<std::pair<size_t, size_t>>& edges) {
  std::vector<Judged> values;
  for (char verdict : verdicts)
    values.push_back({verdict == 'f'   ? Verdict::fail
                      : verdict == 'p' ? Verdict::pass
                      : verdict == 'w' ? Verdict::warning
                                       : Verdict::none,
                      {}});
  for (auto [from, to] : edges) values[to].inputs.push_back(from);
  const std::vector<bool> first = first_faults(values);
  std::vector<size_t> places;
  for (size_t i = 0; i < first.size(); ++i)
    if (first[i]) places.push_back(i);
  return places;
}

TEST(FirstFaults, InheritThroughValuesThatWereNotJudgedOnly) {
  using Places = std::vector<size_t>;
  EXPECT_EQ(faults("pff", {{0, 1}, {1, 2}}), Places{1});
  EXPECT_EQ(faults("f??f", {{0, 1}, {1, 2}, {2, 3}}), Places{0});
  EXPECT_EQ(faults("fpf", {{0, 1}, {1, 2}}), (Places{0, 2}));
  EXPECT_EQ(faults("fwf", {{0, 1}, {1, 2}}), (Places{0, 2}));
  EXPECT_EQ(faults("f?", {{1, 0}}), Places{0});
  EXPECT_EQ(faults("?ff", {{2, 0}, {0, 1}}), Places{2});  // in any order
}

TEST(FirstFaults, NoValueIsItsOwnInput) {
  using Places = std::vector<size_t>;
  EXPECT_EQ(faults("f?", {{0, 1}, {1, 0}}), Places{0});
  EXPECT_EQ(faults("?ff", {{1, 0}, {0, 1}, {2, 0}}), Places{2});  // a loop that a fault enters
  EXPECT_EQ(faults("?ff?", {{1, 0}, {0, 1}, {1, 3}, {3, 2}}), Places{1});
}

}  // namespace
}  // namespace cairn::judge
