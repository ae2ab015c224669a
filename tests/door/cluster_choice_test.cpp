// Where a cluster in doubt runs, by times that the tests make up.
#include "cluster_choice.h"

#include <gtest/gtest.h>

namespace cairn_tf {
namespace {

/// Runs of a cluster: how many of them TensorFlow takes.
struct Runs {
  double engine = 2e6, stock = 1e6;  // ns
  ClusterChoice choice{Rule::measured};

  int run(int count) {
    int elsewhere = 0;
    for (int i = 0; i < count; ++i)
      if (choice.next_is_stock()) {
        choice.stock_took(stock);
        ++elsewhere;
      } else {
        choice.took(engine, false);
      }
    return elsewhere;
  }
};

TEST(ClusterChoice, TheFasterSideHasTheClusterAfterThirteenRuns) {
  Runs runs{1.1e6, 1e6};
  EXPECT_EQ(runs.run(13), 6);
  EXPECT_EQ(runs.choice.news(), "tensorflow: 1.1 ms on the engine, 1 ms on TensorFlow");
  EXPECT_EQ(runs.run(32), 32);
  Runs other{1e6, 1e6};  // there must be a gain
  EXPECT_EQ(other.run(13), 6);
  EXPECT_EQ(other.choice.news(), "engine: 1 ms on the engine, 1 ms on TensorFlow");
  EXPECT_EQ(other.run(32), 0);
}

TEST(ClusterChoice, AClearDifferenceNeedsFewerTries) {
  Runs runs;
  EXPECT_EQ(runs.run(5), 2);
  EXPECT_EQ(runs.choice.news(), "tensorflow: 2 ms on the engine, 1 ms on TensorFlow");
  EXPECT_EQ(runs.run(500), 500);
}

TEST(ClusterChoice, TheFirstRunOfEachSideDoesNotCount) {
  Runs runs{90e6, 1e6};  // the engine compiles
  runs.run(1);
  runs.engine = 0.5e6;
  runs.run(50);
  EXPECT_EQ(runs.run(32), 0);
}

TEST(ClusterChoice, TensorFlowIsNotTriedBeforeTheEngineHasRunForAQuarterOfItsCompilation) {
  Runs runs{80e6, 1e6};
  runs.run(1);
  runs.engine = 2e6;
  EXPECT_EQ(runs.run(10), 0);
  EXPECT_EQ(runs.run(3), 2);
  EXPECT_EQ(runs.choice.news(), "tensorflow: 2 ms on the engine, 1 ms on TensorFlow");
}

TEST(ClusterChoice, RunsAtNewSizesAreNoTries) {
  Runs runs{0.5e6, 1e6};
  runs.run(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(runs.choice.next_is_stock());
    runs.choice.took(90e6, true);
  }
  EXPECT_EQ(runs.run(4), 2);
  EXPECT_EQ(runs.choice.news(), "engine: 0.5 ms on the engine, 1 ms on TensorFlow");
}

TEST(ClusterChoice, TheOtherSideIsTriedAgainMoreAndMoreSeldom) {
  Runs runs{1.1e6, 1e6};
  EXPECT_LT(10000 - runs.run(10000), 40);
  runs.engine = 0.5e6;
  EXPECT_LT(runs.run(20000), 9000);  // it changes its mind
  EXPECT_EQ(runs.choice.news().rfind("engine", 0), 0u);
}

TEST(ClusterChoice, AForcedSideHasAllRuns) {
  ClusterChoice stock(Rule::tensorflow), engine(Rule::engine), drawing(Rule::measured);
  drawing.stay_on_engine();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(stock.next_is_stock());
    stock.stock_took(1);
    for (ClusterChoice* each : {&engine, &drawing}) {
      EXPECT_FALSE(each->next_is_stock());
      each->took(1, false);
    }
  }
}

}  // namespace
}  // namespace cairn_tf
