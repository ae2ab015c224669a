// The order of rows and what is random in it, for any number of workers and from any place.
#include <gtest/gtest.h>

#include "data/operations.h"
#include "data/source.h"
#include "data/transforms.h"

namespace cairn::data {
namespace {

NodePtr numbers(int64_t count, bool shuffled) {
  Array values = Array::make(Kind::i64, {count});
  for (int64_t i = 0; i < count; ++i) values.write<int64_t>()[i] = i;
  return table("slices", {{"x", {}, false, {}, values}}, shuffled ? random_sampler(false, 0) : sequential_sampler(0, 0),
               "test:1");
}

/// Adds a random number from 0 to 999 times 1000.
class Noise : public Function {
 public:
  std::string name() const override { return "noise"; }
  void apply(Row& columns, Random& random) const override {
    columns[0] = Array::scalar(Kind::i64, *columns[0].as<int64_t>() + 1000 * random.below(1000));
  }
};

NodePtr mixed() {
  NodePtr node = map(numbers(50, true), {std::make_shared<Noise>()}, {}, "test:2");
  return batch(repeat(shuffle(node, 7, false, ""), 2, ""), 6, false, {}, "");
}

std::vector<int64_t> epoch_of(Iterator& iterator) {
  std::vector<int64_t> values;
  while (std::optional<Row> row = iterator.next())
    values.insert(values.end(), (*row)[0].as<int64_t>(), (*row)[0].as<int64_t>() + (*row)[0].count());
  return values;
}

TEST(Pipeline, GivesTheSameRowsForAnyNumberOfWorkers) {
  Iterator alone(mixed(), {.seed = 5, .workers = 0});
  const std::vector<int64_t> first = epoch_of(alone), second = epoch_of(alone);
  EXPECT_EQ(first.size(), 100u);
  EXPECT_NE(first, second);
  for (int workers : {1, 2, 8}) {
    Iterator iterator(mixed(), {.seed = 5, .workers = workers});
    EXPECT_EQ(epoch_of(iterator), first);
    EXPECT_EQ(epoch_of(iterator), second);
  }
}

TEST(Pipeline, GoesOnFromAnyRow) {
  Iterator whole(mixed(), {.seed = 5, .workers = 2});
  const std::vector<int64_t> all = epoch_of(whole);
  for (int64_t row : {0, 1, 7, 8, 9, 16}) {
    Iterator later(mixed(), {.seed = 5, .workers = 3}, 0, row);
    EXPECT_EQ(epoch_of(later), std::vector<int64_t>(all.begin() + 6 * row, all.end())) << row;
  }
}

TEST(Pipeline, OperationsAfterAnotherDoNotChangeWhatItDraws) {
  Iterator plain(numbers(20, true), {.seed = 1, .workers = 0}),
      batched(batch(numbers(20, true), 4, false, {}, ""), {.seed = 1, .workers = 0});
  EXPECT_EQ(epoch_of(plain), epoch_of(batched));
}

TEST(Pipeline, ShardsAreDisjointAndComplete) {
  std::vector<int64_t> all;
  for (int64_t shard = 0; shard < 3; ++shard) {
    Array values = Array::make(Kind::i64, {12});
    for (int64_t i = 0; i < 12; ++i) values.write<int64_t>()[i] = i;
    Iterator iterator(table("slices", {{"x", {}, false, {}, values}}, distributed_sampler(3, shard, true, -1, 0), ""),
                      {.seed = 9, .workers = 1});
    const std::vector<int64_t> part = epoch_of(iterator);
    EXPECT_EQ(part.size(), 4u);
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(all[i], i);
}

TEST(Pipeline, AnErrorNamesRowAndScriptLine) {
  NodePtr node = map(numbers(3, false), {transform("one_hot", {{{"classes", {2}}}, {}})}, {}, "train.py:12");
  Iterator iterator(node, {.workers = 2});
  ASSERT_TRUE(iterator.next());
  ASSERT_TRUE(iterator.next());
  try {
    iterator.next();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "row 2 (train.py:12): map: one_hot: num_classes 2 is smaller than the category number: the label is 2");
  }
  EXPECT_FALSE(iterator.next());
}

TEST(Pipeline, RandomNumbersAreEvenlySpread) {
  int64_t counts[10] = {};
  for (uint64_t row = 0; row < 20000; ++row) ++counts[Random{1, 2, 3, row}.below(10)];
  double chi = 0;
  for (int64_t count : counts) chi += static_cast<double>((count - 2000) * (count - 2000)) / 2000.0;
  EXPECT_LT(chi, 27.9);  // 0.1 % of fair draws are above
}

}  // namespace
}  // namespace cairn::data
