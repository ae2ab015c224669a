// Judgement at the C interface: distances, whose error is larger, first faults.
#include "cairn/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

CairnTensor tensor_of(std::vector<float>& values, std::vector<int64_t>& shape) {
  return {values.data(), {1, 0}, static_cast<int32_t>(shape.size()), {CAIRN_FLOAT, 32, 1}, shape.data(), nullptr, 0};
}

std::string refusal() {
  CairnError error{sizeof error};
  cairn_last_error(&error);
  return error.message;
}

TEST(Judgement, MeasuresWhatIsFiniteOnBothSides) {
  std::vector<float> x = {1, 2, NAN, NAN}, y = {1, 4, NAN, 0};
  std::vector<int64_t> shape = {4}, other = {2, 2};
  const CairnTensor mine = tensor_of(x, shape), golden = tensor_of(y, shape), reshaped = tensor_of(y, other);
  CairnDistance found{sizeof found};
  ASSERT_EQ(cairn_distance(&mine, &golden, &found), CAIRN_OK) << refusal();
  EXPECT_EQ(found.most, 2);
  EXPECT_EQ(found.largest, 4);
  EXPECT_EQ(found.unlike, 1u);
  EXPECT_EQ(cairn_distance(&mine, &reshaped, &found), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(), "f32[4] against f32[2, 2]");
  EXPECT_EQ(cairn_distance(&mine, nullptr, &found), CAIRN_INVALID_ARGUMENT);
}

TEST(Judgement, TellsWhoseErrorIsLarger) {
  CairnDistance mine{sizeof mine}, theirs{sizeof theirs};
  mine.rms = 1e-4, theirs.rms = 1e-5, mine.size = theirs.size = 1;
  double ratio = 0;
  int32_t larger = 0;
  ASSERT_EQ(cairn_compare_errors(&mine, &theirs, &ratio, &larger), CAIRN_OK) << refusal();
  EXPECT_NEAR(ratio, 10, 1e-9);
  EXPECT_EQ(larger, CAIRN_MINE_LARGER);
}

TEST(Judgement, FindsWhatIsWrongByItself) {
  const size_t first_only[] = {0}, middle[] = {1}, nowhere[] = {7};
  CairnJudged values[] = {{CAIRN_FAIL, 0, nullptr}, {CAIRN_NOT_JUDGED, 1, first_only}, {CAIRN_FAIL, 1, middle}};
  uint8_t first[3] = {};
  ASSERT_EQ(cairn_first_faults(values, 3, first), CAIRN_OK) << refusal();
  EXPECT_EQ(std::vector<uint8_t>(first, first + 3), (std::vector<uint8_t>{1, 0, 0}));
  values[0].verdict = CAIRN_PASS;
  ASSERT_EQ(cairn_first_faults(values, 3, first), CAIRN_OK) << refusal();
  EXPECT_EQ(std::vector<uint8_t>(first, first + 3), (std::vector<uint8_t>{0, 0, 1}));
  values[2].inputs = nowhere;
  EXPECT_EQ(cairn_first_faults(values, 3, first), CAIRN_INVALID_ARGUMENT);
  values[0].verdict = 9;
  EXPECT_EQ(cairn_first_faults(values, 3, first), CAIRN_INVALID_ARGUMENT);
}

}  // namespace
