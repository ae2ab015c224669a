// What the system tells of processes, also of those that are just ending.
#include "support/process_state.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace cairn {
namespace {

TEST(ProcessState, TellsOfThisProcessAndOfNoOther) {
  const auto found = process_state(getpid());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parent, getppid());
  EXPECT_TRUE(found->goes_on());
  EXPECT_FALSE(process_state(1 << 30));
}

TEST(ProcessState, ChildrenThatEndWhileTheyAreReadAreNothing) {
  std::atomic<pid_t> child{0};
  std::atomic<bool> ends{false};
  size_t found = 0;
  std::thread reader([&] {
    while (!ends) found += process_state(child.load()).has_value();
  });
  for (int i = 0; i < 500; ++i) {
    const pid_t made = fork();
    if (made == 0) _exit(0);
    child = made;
    waitpid(made, nullptr, 0);
  }
  ends = true;
  reader.join();
  SUCCEED() << found;
}

}  // namespace
}  // namespace cairn
