// Maps and sets of pointers find what was inserted, in that order.
#include "support/pointer_map.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(PointerMap, FindsWhatWasInsertedAlsoAfterItHasGrown) {
  std::vector<int> things(1000);
  PointerMap<const int*, size_t> map;
  for (size_t i = 0; i < things.size(); ++i) EXPECT_TRUE(map.try_emplace(&things[i], i).second);
  for (size_t i = 0; i < things.size(); ++i) EXPECT_EQ(map.at(&things[i]), i);
  const int other = 0;
  EXPECT_EQ(map.count(&other), 0u);
  EXPECT_EQ(map.find(&other), map.end());
}

TEST(PointerMap, KeepsTheOrderAndTheFirstValue) {
  const int things[3] = {};
  PointerMap<const int*, int> map;
  map.reserve(2);
  map[&things[2]] = 7;
  map[&things[0]] = 5;
  EXPECT_FALSE(map.try_emplace(&things[2], 1).second);
  map[&things[0]] = 6;
  std::vector<std::pair<const int*, int>> entries(map.begin(), map.end());
  EXPECT_EQ(entries, (std::vector<std::pair<const int*, int>>{{&things[2], 7}, {&things[0], 6}}));
}

TEST(PointerMap, ANullPointerIsAKeyAsAnyOther) {
  PointerMap<const int*, int> map;
  EXPECT_EQ(map.count(nullptr), 0u);
  map[nullptr] = 3;
  EXPECT_EQ(map.at(nullptr), 3);
}

TEST(PointerSet, TellsWhatIsNew) {
  const int things[3] = {};
  PointerSet<const int*> set;
  EXPECT_TRUE(set.insert(&things[0]));
  EXPECT_FALSE(set.insert(&things[0]));
  const int* more[] = {&things[0], &things[1]};
  set.insert(std::begin(more), std::end(more));
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(set.count(&things[1]), 1u);
  EXPECT_EQ(set.count(&things[2]), 0u);
}

}  // namespace
}  // namespace cairn
