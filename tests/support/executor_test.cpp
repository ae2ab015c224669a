// The executors: every chunk exactly once, workers that do not collide, nesting, several callers, parking, limits.
#include "support/executor.h"
#include "sanitized.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "support/error.h"
#include "support/executor_limits.h"
#include "support/stop.h"

namespace cairn {
namespace {

/// A host with three threads and one queue.
class Host {
 public:
  ~Host() {
    for (size_t i = 0; i < threads_.size(); ++i) schedule(this, nullptr, nullptr);
    for (std::thread& thread : threads_) thread.join();
  }
  static void schedule(void* host, void (*call)(void*), void* data) {
    auto& self = *static_cast<Host*>(host);
    const std::lock_guard lock(self.mutex_);
    self.queue_.emplace_back(call, data);
    self.calls += call != nullptr;
    self.filled_.notify_one();
  }
  int calls = 0;

 private:
  void serve() {
    while (true) {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return !queue_.empty(); });
      const auto [call, data] = queue_.front();
      queue_.pop_front();
      lock.unlock();
      if (!call) return;
      call(data);
    }
  }

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  std::array<std::thread, 3> threads_{std::thread([this] { serve(); }), std::thread([this] { serve(); }),
                                      std::thread([this] { serve(); })};
};

void expect_every_chunk_once(Executor& executor, int chunks) {
  std::vector<std::atomic<int>> times(static_cast<size_t>(chunks));
  std::vector<std::atomic<bool>> busy(static_cast<size_t>(executor.width()));
  std::atomic<int> collisions = 0;
  executor.run(chunks, [&](int chunk, int worker) {
    if (busy.at(static_cast<size_t>(worker)).exchange(true)) ++collisions;
    ++times.at(static_cast<size_t>(chunk));
    busy.at(static_cast<size_t>(worker)).store(false);
  });
  int wrong = 0;
  for (const auto& n : times) wrong += n != 1;
  EXPECT_EQ(wrong, 0) << chunks << " chunks, width " << executor.width();
  EXPECT_EQ(collisions, 0) << chunks << " chunks, width " << executor.width();
}

TEST(Executor, runs_every_chunk_exactly_once) {
  for (int threads : {1, 2, 3, 5, 8}) {
    const auto pool = make_pool(threads);
    for (int chunks : {0, 1, 2, 3, 7, 64, 1000, 4097}) expect_every_chunk_once(*pool, chunks);
  }
  for (int chunks : {0, 1, 7}) expect_every_chunk_once(serial_executor(), chunks);
}

TEST(Executor, takes_more_chunks_than_one_job_holds) {
  const auto pool = make_pool(2);
  expect_every_chunk_once(*pool, (1 << 20) + 12345);
}

TEST(Executor, survives_many_short_jobs) {
  const auto pool = make_pool(3);
  int64_t sum = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<int> done = 0;
    pool->run(1 + job % 7, [&](int, int) { ++done; });
    sum += done;
  }
  int64_t expected = 0;
  for (int job = 0; job < 20000; ++job) expected += 1 + job % 7;
  EXPECT_EQ(sum, expected);
}

TEST(Executor, runs_nested_work_serially_on_the_calling_worker) {
  const auto pool = make_pool(4);
  std::atomic<int> inner_chunks = 0, strangers = 0;
  pool->run(16, [&](int, int worker) {
    const auto self = std::this_thread::get_id();
    int next = 0;
    pool->run(5, [&](int chunk, int inner_worker) {
      if (std::this_thread::get_id() != self || inner_worker != worker || chunk != next++) ++strangers;
      ++inner_chunks;
    });
  });
  EXPECT_EQ(inner_chunks, 16 * 5);
  EXPECT_EQ(strangers, 0);
}

TEST(Executor, lets_several_callers_take_turns) {
  const auto pool = make_pool(3);
  std::atomic<int64_t> total = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 300; ++job) {
        std::vector<int> marks(50, 0);
        pool->run(50, [&](int chunk, int) { marks[static_cast<size_t>(chunk)] += 1; });
        for (int mark : marks) total += mark == 1;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 300 * 50);
}

/// Threads of this process that run or want to.
size_t running_threads() {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream stat(task.path() / "stat");
    const std::string line{std::istreambuf_iterator<char>(stat), {}};
    const size_t name = line.rfind(") ");
    count += name != std::string::npos && line[name + 2] == 'R';
  }
  return count;
}

TEST(Executor, parks_idle_workers) {
  const auto pool = make_pool(4);
  pool->run(16, [](int, int) {});
  int looks = 0;  // the test run's own limit ends it where workers never park
  while (running_threads() > 1 && ++looks < 6000) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(running_threads(), 1u) << "only this thread";
}

TEST(Executor, lends_the_threads_of_a_host) {
  Host host;
  for (int width : {1, 2, 4}) {
    const auto lent = make_lent_executor(&host, Host::schedule, width);
    EXPECT_EQ(lent->width(), width);
    for (int chunks : {0, 1, 3, 100, 5000}) expect_every_chunk_once(*lent, chunks);
  }
  EXPECT_GE(host.calls, 1 + 3);
  const auto at_once = [](void*, void (*call)(void*), void* data) { call(data); };
  expect_every_chunk_once(*make_lent_executor(nullptr, at_once, 8), 100);
  expect_every_chunk_once(*make_lent_executor(nullptr, nullptr, 8), 100);
}

TEST(Executor, a_lent_thread_stays_for_the_next_job) {
  Host host;
  const auto lent = make_lent_executor(&host, Host::schedule, 3);
  int64_t done = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<int> chunks = 0;
    lent->run(2 + job % 7, [&](int, int) { ++chunks; });
    done += chunks - 2 - job % 7;
  }
  EXPECT_EQ(done, 0);
  EXPECT_LT(host.calls, 20000);
}

TEST(Executor, a_lent_thread_may_come_when_all_is_over) {
  struct Late {
    void (*call)(void*) = nullptr;
    void* data = nullptr;
  } late;
  const auto keep = [](void* host, void (*call)(void*), void* data) { *static_cast<Late*>(host) = {call, data}; };
  auto lent = make_lent_executor(&late, keep, 2);
  expect_every_chunk_once(*lent, 100);
  lent.reset();
  ASSERT_TRUE(late.call);
  late.call(late.data);
}

TEST(Executor, flushes_denormals_inside_chunks_only) {
  const auto pool = make_pool(2);
  Host host;
  const auto lent = make_lent_executor(&host, Host::schedule, 2);
  volatile float tiny = 1e-39f;
  for (Executor* executor : {pool.get(), lent.get(), &serial_executor()}) {
    std::atomic<int> kept = 0;
    executor->run(64, [&](int, int) { kept += tiny * 1.5f != 0.0f; });
    EXPECT_EQ(kept, 0);
    EXPECT_NE(tiny * 1.5f, 0.0f);
  }
}

TEST(Executor, leaves_out_the_chunks_of_work_that_was_ended) {
  const auto pool = make_pool(3);
  Host host;
  const auto lent = make_lent_executor(&host, Host::schedule, 3);
  for (Executor* executor : {pool.get(), lent.get(), &serial_executor()}) {
    constexpr int kChunks = 100000;
    std::atomic<bool> cancel = false;
    std::atomic<int> ran = 0;
    const auto chunk = [&](int, int) {
      if (++ran == 10) cancel = true;
    };
    {
      StopScope scope({.cancel = &cancel});
      EXPECT_THROW(executor->run(kChunks, chunk), Error);
    }
    EXPECT_LT(ran, kChunks / 2);
    ran = 100;
    executor->run(kChunks, chunk);  // without a scope nothing ends it
    EXPECT_EQ(ran, 100 + kChunks);
  }
}

TEST(Executor, work_ends_within_a_long_chunk) {
  const auto pool = make_pool(3);
  for (Executor* executor : {pool.get(), &serial_executor()}) {
    std::atomic<bool> cancel = false;
    std::atomic<int> ran = 0;
    StopScope scope({.cancel = &cancel});
    const auto endless = [&](int, int) {
      if (++ran == 3 || executor->width() == 1) cancel = true;
      for (;;) stop_point_after(1000);
    };
    EXPECT_THROW(executor->run(3, endless), Error);
  }
}

class CgroupRoot : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("cgroup_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(CgroupRoot, has_no_quota_when_nothing_is_there) {
  EXPECT_EQ(cgroup_threads(root_), 0);
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_threads(root_), 0);
}

TEST_F(CgroupRoot, takes_the_smallest_quota_on_the_way_up) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/job/cpu.max", "350000 100000\n");
  EXPECT_EQ(cgroup_threads(root_), 3);
}

TEST_F(CgroupRoot, reads_version_1_and_never_says_less_than_one) {
  write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\nnonsense\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "40000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_threads(root_), 1);
}

TEST(Executor, counts_at_least_one_available_thread) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(Executor, AFaultInAChunkReachesTheCaller) {
  auto pool = make_pool(3);
  for (int turn = 0; turn < 50; ++turn) {
    std::atomic<int> done{0};
    EXPECT_THROW(pool->run(100,
                           [&](int chunk, int) {
                             ++done;
                             if (chunk % 10 == 3) throw std::bad_alloc();
                           }),
                 std::bad_alloc);
    EXPECT_EQ(done, 100);
  }
  expect_every_chunk_once(*pool, 100);
}

/// Exit status of `body` in a process of its own.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Executor, APoolDoesWithTheThreadsThatItGets) {
  EXPECT_EQ(in_child([] {
              const rlimit none{0, 0};
              ::setrlimit(RLIMIT_NPROC, &none);
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;  // the limit is not for root
              auto pool = make_pool(4);
              expect_every_chunk_once(*pool, 1000);
              return testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(Executor, AChildOfAForkHasAPoolOfItsOwn) {
  if (!kForkedChildrenStartThreads) GTEST_SKIP() << "sanitizer: a forked child may start no threads";
  auto pool = make_pool(4);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) pool->run(64, [](int, int) {});
  });
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(in_child([&] {
                expect_every_chunk_once(*pool, 1000);
                expect_every_chunk_once(*pool, 10);
                pool = nullptr;
                return testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
  stop = true;
  busy.join();
}

}  // namespace
}  // namespace cairn
