// Where runs at new sizes go, by times that the tests make up.
#include "size_choice.h"

#include <gtest/gtest.h>

namespace cairn_tf {
namespace {

constexpr double kEngine = 2e6, kPlanning = 1e6;  // ns

/// Runs of a cluster: how many of them TensorFlow takes, which needs `stock` ns.
struct Runs {
  SizeChoice choice{Rule::measured};
  double stock = 1e6, planning = kPlanning;

  int run(int64_t first, int count, int64_t step = 1) {
    int elsewhere = 0;
    for (int i = 0; i < count; ++i) {
      const Sizes sizes{2, first + step * i, 64};
      if (choice.next_is_stock(sizes)) {
        choice.stock_took(stock);
        ++elsewhere;
      } else {
        choice.took(sizes, kEngine, planning);
      }
    }
    return elsewhere;
  }
};

TEST(SizeChoice, NewSizesGoToTensorflowWhereItIsFasterThanPlanning) {
  Runs runs;
  EXPECT_EQ(runs.run(0, 30), 30 - 3 - 4);  // first plans and as decided at first
  EXPECT_EQ(runs.choice.news().rfind("tensorflow: 2 ms on the engine, 50 % of them planning, 1 ms", 0), 0u);
  EXPECT_EQ(runs.choice.news(), "");
}

TEST(SizeChoice, ALuckyPlanHidesNoOthers) {
  SizeChoice choice{Rule::measured};
  int elsewhere = 0;
  for (int i = 0; i < 30; ++i) {
    const double planning = i % 4 ? 2e6 : 0.1e6;
    if (choice.next_is_stock({1, i}))
      choice.stock_took(1e6), ++elsewhere;
    else
      choice.took({1, i}, 0.5e6 + planning, planning);
  }
  EXPECT_EQ(elsewhere, 30 - 3 - 4);
}

TEST(SizeChoice, NewSizesStayOnTheEngineWhereItIsFaster) {
  Runs runs{.stock = 3e6};
  EXPECT_EQ(runs.run(0, 60), 3 * 4);  // tries alone
  EXPECT_EQ(runs.choice.news(), "");
}

TEST(SizeChoice, TensorflowIsNotTriedWherePlanningIsLittle) {
  Runs runs{.planning = 0.05 * kEngine};
  EXPECT_EQ(runs.run(0, 200), 0);
}

TEST(SizeChoice, SizesThatComeSoOftenThatAPlanPaysAreTheEngines) {
  Runs runs{.stock = 1.6e6};  // a plan of 1 ms saves 0.6 each time
  EXPECT_GT(runs.run(0, 22), 0);
  EXPECT_EQ(runs.run(15, 7), 7);
  EXPECT_EQ(runs.run(15, 7), 0);
  EXPECT_GT(runs.run(100, 10), 0);
}

TEST(SizeChoice, TwoPlansShowThatTheEngineIsMuchSlower) {
  Runs runs{.stock = 0.5e6};
  runs.run(0, 40);
  const int elsewhere = runs.run(100, 400);
  EXPECT_EQ(elsewhere, 400 - 2 * 2);  // the trials after 32 and 128 runs more
}

TEST(SizeChoice, ATrialWithCheapPlansDoesNotMakeAllSizesPlanned) {
  SizeChoice choice{Rule::measured};
  const auto run = [&](int64_t first, int count, double planning) {
    int planned = 0;
    for (int64_t i = first; i < first + count; ++i) {
      if (choice.next_is_stock({1, i}))
        choice.stock_took(1e6);
      else
        choice.took({1, i}, 0.8e6 + planning, planning), ++planned;
    }
    return planned;
  };
  run(0, 20, 4e6);
  EXPECT_EQ(run(100, 40, 0.5e6), 4);  // the next trial
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run(200, 5, 4e6), 0);
}

TEST(SizeChoice, WhereRunsGainNothingNoPlanPays) {
  Runs runs;
  EXPECT_GT(runs.run(0, 30), 0);
  int elsewhere = 0;
  for (int i = 0; i < 5; ++i) elsewhere += runs.run(15, 15);
  EXPECT_GT(elsewhere, 50);  // all but the tries of the engine and what comes again at their sizes
}

TEST(SizeChoice, TheFirstPlanOfItsKindDoesNotDecide) {
  SizeChoice choice{Rule::measured};
  int elsewhere = 0;
  for (int i = 0; i < 60; ++i) {
    const double planning = i == 5 ? 50e6 : 0.2e6;  // the third try
    if (choice.next_is_stock({1, i}))
      choice.stock_took(1e6), ++elsewhere;
    else
      choice.took({1, i}, 0.5e6 + planning, planning);
  }
  EXPECT_EQ(elsewhere, 3 * 4);
}

TEST(SizeChoice, RunsThatPlanAtKnownSizesCountAsNew) {
  Runs runs;
  EXPECT_GT(runs.run(0, 60, 0), 30);
}

TEST(SizeChoice, TheEngineComesBackWhenItPlansNoMore) {
  Runs runs;
  EXPECT_GT(runs.run(0, 30, 0), 0);
  runs.planning = 0;
  runs.run(0, 60, 0);  // the next trial
  EXPECT_EQ(runs.run(0, 60, 0), 0);
}

TEST(SizeChoice, OneSetOfSizesIsTheEngines) {
  Runs runs;
  runs.choice.took({1, 8}, kEngine, kPlanning);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(runs.choice.next_is_stock({1, 8}));
    runs.choice.took({1, 8}, kEngine, 0);
  }
}

TEST(SizeChoice, RulesAreKept) {
  Runs engine{.choice = SizeChoice(Rule::engine)}, stock{.choice = SizeChoice(Rule::tensorflow)};
  EXPECT_EQ(engine.run(0, 50), 0);
  EXPECT_EQ(stock.run(0, 50), 50 - 3);
  EXPECT_EQ(stock.run(2, 48), 0);
}

}  // namespace
}  // namespace cairn_tf
