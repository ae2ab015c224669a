// The recordings of all ranks of a job put together.
#include "profile/job.h"

#include <gtest/gtest.h>

#include "support/error.h"
#include "support/files.h"
#include "written.h"

namespace cairn::profile {
namespace {

constexpr int64_t kMs = 1'000'000;

/// Two iterations of a rank: computing from 0 ms on, an all-reduce of 24 bytes on a second thread from `begin` to `end`, and more
/// computing from 30 to 50 ms; times are `shift` ms later.
std::unique_ptr<Written> rank(int number, int64_t begin, int64_t end, const char* host = "h", int64_t shift = 0,
                              int ranks = 2) {
  auto file = std::make_unique<Written>(Json{{"rank", number}, {"ranks", ranks}, {"host", host}});
  file->plan(
      {step("forward", "MatMul"), step("gradients/all_reduce", "AllReduce", "communication"), step("other", "MatMul")});
  std::vector<Record> records;
  for (int i = 0; i < 2; ++i) {
    const int64_t at = (i * 100 + shift) * kMs;
    const auto run = static_cast<uint32_t>(i + 1);
    records.push_back(op(at, at + 10 * kMs, 0, run));
    records.push_back(op(at + begin * kMs, at + end * kMs, 1, run, 1));
    records.push_back(op(at + 30 * kMs, at + 50 * kMs, 2, run));
    records.push_back(whole_run(at, at + 60 * kMs, run));
  }
  file->records(records);
  file->read();
  return file;
}

TEST(Job, WaitingIsUntilTheLastRankComesAndHiddenIsWhatOtherStepsCover) {
  const auto first = rank(0, 10, 40), second = rank(1, 30, 40);
  const Job job = read_job({second->path(), first->path()});
  ASSERT_EQ(job.ranks.size(), 2u);
  EXPECT_EQ(job.ranks[0].waiting, 2 * 20 * kMs);
  EXPECT_EQ(job.ranks[1].waiting, 0);
  EXPECT_EQ(job.ranks[0].exchanging, 2 * 30 * kMs);
  EXPECT_EQ(job.ranks[0].hidden, 2 * 10 * kMs);
  EXPECT_EQ(job.ranks[1].hidden, 2 * 10 * kMs);
  EXPECT_EQ(job.ranks[1].bytes, 2u * 24);
  EXPECT_EQ(job.slowest, 1);
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].name, "gradients/all_reduce");
  EXPECT_EQ(job.collectives[0].count, 2u);
  EXPECT_EQ(job.collectives[0].last_rank, 1);
  EXPECT_NEAR(job.collectives[0].bandwidth, 24 / 0.01, 1e-6);
}

TEST(Job, ClocksOfOtherHostsAreMovedUntilCollectivesEndTogether) {
  const auto first = rank(0, 10, 40), second = rank(1, 30, 40, "other", 5000);
  const Job job = read_job({first->path(), second->path()});
  EXPECT_EQ(job.ranks[1].shift, -5000 * kMs);
  EXPECT_EQ(job.ranks[0].waiting, 2 * 20 * kMs);
}

TEST(Job, TheTimelineHasAProcessForEachRankWithItsCollectives) {
  const auto first = rank(0, 10, 40), second = rank(1, 30, 40, "h", 0, 3);
  const Job job = read_job({first->path(), second->path()});
  const std::string path = first->path() + "/job.perfetto-trace";
  write_job_trace(job, path);
  const std::string bytes = read_file(path, 1 << 20);
  for (const char* each :
       {"rank 0 (h, process 1)", "rank 1 (h, process 1)", "communication", "waited for ranks, us", "GB/s"})
    EXPECT_NE(bytes.find(each), std::string::npos) << each;
}

TEST(Job, OneRankIsNoJobAndMissingOnesAreSaid) {
  const auto first = rank(0, 10, 40, "h", 0, 3), second = rank(2, 30, 40, "h", 0, 3);
  EXPECT_THROW(read_job({first->path()}), Error);
  EXPECT_THROW(read_job({}), Error);
  const Job job = read_job({first->path(), second->path()});
  ASSERT_EQ(job.remarks.size(), 1u);
  EXPECT_EQ(job.remarks[0], "2 of 3 ranks are here");
}

}  // namespace
}  // namespace cairn::profile
