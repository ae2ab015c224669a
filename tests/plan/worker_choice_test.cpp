// Whether plans learn from the times of their runs how many workers these take.
#include "plan/worker_choice.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

/// Makes so many runs that take these times, in ns, and returns how many of them went on one worker.
int runs(WorkerChoice& choice, int count, double alone, double together) {
  int single = 0;
  for (int i = 0; i < count; ++i) {
    const bool one = choice.next_is_alone();
    choice.took(one, one ? alone : together, 1e5);
    single += one;
  }
  return single;
}

TEST(WorkerChoice, RunsThatGainLittleGoOnOneWorker) {
  WorkerChoice choice;
  runs(choice, 100, 1.0e5, 0.97e5);
  EXPECT_GT(runs(choice, 1000, 1.0e5, 0.97e5), 950);
}

TEST(WorkerChoice, RunsThatGainTakeAllWorkers) {
  WorkerChoice choice;
  EXPECT_LT(runs(choice, 1000, 1.0e5, 0.6e5), 50);
}

TEST(WorkerChoice, OneRunShowsThatManyWorkersAreNeeded) {
  WorkerChoice choice;
  EXPECT_EQ(runs(choice, 30, 8e5, 1e5), 1);
}

TEST(WorkerChoice, LongRunsAreNotTried) {
  WorkerChoice choice;
  EXPECT_EQ(runs(choice, 1000, 5e6, 5e6), 0);
}

TEST(WorkerChoice, LaterRunsAreTriedAgain) {
  WorkerChoice choice;
  runs(choice, 300, 1e5, 2e5);
  runs(choice, 10000, 1e5, 0.5e5);
  EXPECT_LT(runs(choice, 1000, 1e5, 0.5e5), 50);
  runs(choice, 10000, 1e5, 2e5);
  EXPECT_GT(runs(choice, 1000, 1e5, 2e5), 950);
}

TEST(WorkerChoice, RunsOfOtherSizesCompareByWhatWasExpected) {
  WorkerChoice choice;
  for (int i = 0; i < 200; ++i) {  // each trial on one worker meets the small sizes
    const double size = 1 + i % 8;
    const bool alone = choice.next_is_alone();
    choice.took(alone, size * (alone ? 1e5 : 0.6e5), size * 1e5);
  }
  EXPECT_LT(runs(choice, 100, 1e5, 0.6e5), 20);
}

}  // namespace
}  // namespace cairn
