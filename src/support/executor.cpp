// The pool, the serial and the lent executor. Each worker's range of chunks is one atomic word. A worker whose range is
// empty steals from the back of another's, so that one worker processes neighbouring chunks as long as possible.
#include "support/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/denormals.h"
#include "support/error.h"
#include "support/fault.h"
#include "support/fork.h"
#include "support/stop.h"

namespace cairn {
namespace {

constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kLinger = std::chrono::microseconds(50);  // how long a lent thread waits for the next job
constexpr int kMostLentWorkers = 256;

void pause_briefly() {
#if defined(__SSE2__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

void expect_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

/// Spins until done() holds or the time has passed; returns done().
template <class Done>
bool spin_until(Done done, std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

/// The executor whose chunk this thread is running (the innermost one), and which of its workers this thread is.
struct Inside {
  const Executor* executor = nullptr;
  int worker = 0;
};
thread_local Inside t_inside;

class Enter {
 public:
  Enter(const Executor* executor, int worker) : before_(t_inside) { t_inside = {executor, worker}; }
  ~Enter() { t_inside = before_; }

 private:
  Inside before_;
};

using Body = FunctionRef<void(int chunk, int worker)>;

void run_serially(const Executor* executor, int chunks, Body body) {
  const int worker = t_inside.executor == executor ? t_inside.worker : 0;
  StopScope* stop = StopScope::current();
  FlushDenormals flush;
  Enter enter(executor, worker);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (stop) stop->check();
    body(chunk, worker);
  }
}

/// One worker's chunks [begin, end) of a job, packed into one word: job (24 bits) | end (20) | begin (20). A claim is
/// one compare-and-swap, and the job number makes a late worker's claim fail once a newer job has started.
struct alignas(64) Range {
  std::atomic<uint64_t> word{0};

  static constexpr int kBits = 20;
  static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  static int begin(uint64_t word) { return static_cast<int>(word & kMask); }
  static int end(uint64_t word) { return static_cast<int>(word >> kBits & kMask); }

  void open(uint64_t job, int begin, int end) {
    word.store(job << (2 * kBits) | static_cast<uint64_t>(end) << kBits | static_cast<uint64_t>(begin),
               std::memory_order_release);
  }

  /// Takes a chunk from the front or the back; -1 when none is left.
  int claim(bool from_back) {
    uint64_t seen = word.load(std::memory_order_acquire);
    while (begin(seen) < end(seen)) {
      const uint64_t next = from_back ? seen - (uint64_t{1} << kBits) : seen + 1;
      if (word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_acquire))
        return from_back ? end(seen) - 1 : begin(seen);
    }
    return -1;
  }
};
constexpr int kMostChunksAtOnce = static_cast<int>(Range::kMask);

void open_ranges(Range* ranges, int workers, uint64_t job, int chunks) {
  const auto bound = [&](int worker) { return static_cast<int>(static_cast<int64_t>(chunks) * worker / workers); };
  for (int worker = 0; worker < workers; ++worker) ranges[worker].open(job, bound(worker), bound(worker + 1));
}

/// Calls chunk_claimed(chunk) until no range has a chunk left: takes from the front of the own range, then from the
/// back of the others'. After each range that had chunks, left(how many).
template <class ChunkClaimed, class Left>
void drain(Range* ranges, int workers, int worker, ChunkClaimed chunk_claimed, Left left) {
  for (int distance = 0; distance < workers; ++distance) {
    Range& range = ranges[(worker + distance) % workers];
    int count = 0;
    for (int chunk; (chunk = range.claim(distance > 0)) >= 0; ++count) chunk_claimed(chunk);
    if (count > 0) left(count);
  }
}

class SerialExecutor final : public Executor {
 public:
  int width() const override { return 1; }
  void run(int chunks, Body body) override { run_serially(this, chunks, body); }
};

/// Runs one job at a time. The caller is worker 0 and shares the chunks with the other workers that are running.
class Crew : public Executor {
 public:
  explicit Crew(int width) : ranges_(static_cast<size_t>(width)) {}

  int width() const override { return static_cast<int>(ranges_.size()); }

  void run(int chunks, Body body) override {
    if (chunks <= 1 || width() == 1 || t_inside.executor) return run_serially(this, chunks, body);
    StopScope* stop = StopScope::current();
    {
      const std::lock_guard turn(turn_);
      if (is_of_parent()) start_again();
      FlushDenormals flush;
      Enter enter(this, 0);
      for (int first = 0; first < chunks; first += kMostChunksAtOnce)
        run_job({&body, first, std::min(chunks - first, kMostChunksAtOnce), stop});
    }
    if (stop) stop->check();  // chunks may have been left out
  }

 protected:
  /// Called after a job with so many chunks was signalled: wakes workers.
  virtual void call_workers(int chunks) = 0;
  /// Called after a fork, when no job runs: the workers' threads exist only in the parent process.
  virtual void forget_workers() = 0;

  /// Whether this process was forked after the workers had started.
  bool is_of_parent() const { return generation_ != fork_generation(); }

  uint32_t signal() const { return signal_.load(); }
  void raise_signal() { signal_.fetch_add(1); }

  void work(int worker) {
    int chunks = 0;
    drain(
        ranges_.data(), width(), worker,
        [&](int chunk) {
          const Job job = job_;  // the next job cannot start before the claimed chunk is counted
          chunks = job.chunks;
          try {
            const bool stopped = job.stop && (worker == 0 ? job.stop->poll() : job.stop->stopped());
            const StopHelper helper(job.stop);
            if (!stopped) (*job.body)(job.first + chunk, worker);
          } catch (...) {
            if (!failed_.exchange(true)) fault_ = std::current_exception();
          }
        },
        [&](int count) {
          if (done_.fetch_add(count, std::memory_order_acq_rel) + count == chunks) done_.notify_one();
        });
  }

  /// Asks for the lines that a worker writes next, all at once: one that another core holds takes some 200 ns to come.
  void expect_work(int worker) {
    expect_write(&ranges_[static_cast<size_t>(worker)]);
    expect_write(&done_);
  }

 private:
  struct Job {
    const Body* body = nullptr;
    int first = 0;
    int chunks = 0;
    StopScope* stop = nullptr;
  };

 protected:
  // On one cache line with the job, which whoever sees the signal reads next.
  alignas(64) std::atomic<uint32_t> signal_{0};

 private:
  Job job_;

  void start_again() {
    for (Range& range : ranges_) range.word.store(0);
    forget_workers();
    fault_ = nullptr;
    failed_.store(false);
    generation_ = fork_generation();
  }

  void run_job(Job job) {
    job_ = job;
    done_.store(0, std::memory_order_relaxed);
    open_ranges(ranges_.data(), width(), ++job_number_ & 0xffffff, job.chunks);
    raise_signal();
    call_workers(job.chunks);
    work(0);
    int done = 0;
    const auto all_done = [&] { return (done = done_.load(std::memory_order_acquire)) == job.chunks; };
    // Blocking lets the system run a preempted worker on this processor.
    while (!spin_until(all_done, kSpin)) done_.wait(done);
    if (failed_.exchange(false)) std::rethrow_exception(std::exchange(fault_, nullptr));
  }

  alignas(64) RunMutex turn_;  // not on the cache line of signal_, which idle workers poll
  uint64_t job_number_ = 0;
  std::vector<Range> ranges_;
  uint32_t generation_ = fork_generation();
  std::exception_ptr fault_;  // the job's first exception
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<int> done_{0};
};

class Pool final : public Crew {
 public:
  explicit Pool(int threads) : Crew(threads) { start_threads(); }

  ~Pool() override {
    if (is_of_parent()) {
      abandon_threads();
      return;
    }
    stop_.store(true);
    raise_signal();
    signal_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void call_workers(int) override { signal_.notify_all(); }

  void forget_workers() override {
    abandon_threads();
    start_threads();
  }

  /// Starts fewer threads when the system refuses more; those that run take all chunks.
  void start_threads() {
    threads_.reserve(static_cast<size_t>(width() - 1));
    try {
      for (int worker = 1; worker < width(); ++worker) threads_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error& refused) {
      note_fewer_threads(threads_.size() + 1, width(), refused.code().value());
    }
  }

  /// Threads of another process can neither be joined nor detached.
  void abandon_threads() { new (&threads_) std::vector<std::thread>(); }

  void serve(int worker) {
    FlushDenormals flush;
    Enter enter(this, worker);
    uint32_t seen = 0;
    while (!stop_.load()) {
      const auto signalled = [&] { return signal() != seen; };
      if (!spin_until(signalled, kSpin)) {
        signal_.wait(seen);
        continue;
      }
      expect_work(worker);
      seen = signal();
      work(worker);
    }
  }

  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Uses a host's threads and requests more when a job finds too few. A thread stays for kLinger after a job, since
/// waking one costs more than most jobs. A requested thread may arrive after the executor was destroyed; therefore the
/// last user, thread or executor, deletes the crew.
class LentCrew final : public Crew {
 public:
  LentCrew(void* host, HostSchedule schedule, int width)
      : Crew(width), host_(host), schedule_(schedule), taken_(static_cast<size_t>(width)) {}

  void leave() {
    stop_.store(true);
    release();
  }

 private:
  void forget_workers() override {
    for (auto& taken : taken_) taken.store(false);
    helpers_.store(0);
    users_.store(1);
  }

  void call_workers(int chunks) override {
    if (!schedule_) return;
    for (int missing = std::min(width(), chunks) - 1 - helpers_.load(); missing > 0; --missing) {
      helpers_.fetch_add(1);
      users_.fetch_add(1);
      schedule_(
          host_, [](void* self) { static_cast<LentCrew*>(self)->help(); }, this);
    }
  }

  void help() {
    int worker = 1;
    while (worker < width() && taken_[static_cast<size_t>(worker)].exchange(true)) ++worker;
    worker < width() ? serve(worker) : void(helpers_.fetch_sub(1));
    release();
  }

  void serve(int worker) {
    FlushDenormals flush;
    Enter enter(this, worker);
    uint32_t seen = 0;
    const auto signalled = [&] { return signal() != seen || stop_.load(); };
    for (bool helps = true; helps;) {
      seen = signal();
      work(worker);
      if (spin_until(signalled, kLinger) && !stop_.load()) continue;
      helpers_.fetch_sub(1);
      helps = signalled() && !stop_.load();  // a job started meanwhile and counted this thread as a helper
      if (helps) helpers_.fetch_add(1);
    }
    taken_[static_cast<size_t>(worker)].store(false);
  }

  void release() {
    if (users_.fetch_sub(1) == 1) delete this;
  }

  void* host_;
  HostSchedule schedule_;
  std::vector<std::atomic<bool>> taken_;  // by worker index: a thread works under it
  std::atomic<int> helpers_{0};           // threads that were requested or are working
  std::atomic<int> users_{1};             // threads that were requested and have not left, and the executor
  std::atomic<bool> stop_{false};
};

class LentExecutor final : public Executor {
 public:
  LentExecutor(void* host, HostSchedule schedule, int width)
      : crew_(new LentCrew(host, schedule, std::clamp(width, 1, kMostLentWorkers))) {}
  ~LentExecutor() override { crew_->leave(); }
  LentExecutor(const LentExecutor&) = delete;

  int width() const override { return crew_->width(); }
  void run(int chunks, Body body) override { crew_->run(chunks, body); }

 private:
  LentCrew* crew_;
};

}  // namespace

Executor& serial_executor() {
  static SerialExecutor executor;
  return executor;
}

std::unique_ptr<Executor> make_pool(int threads) {
  CHECK(threads >= 1, "threads {}", threads);
  return std::make_unique<Pool>(threads);
}

std::unique_ptr<Executor> make_lent_executor(void* host, HostSchedule schedule, int width) {
  return std::make_unique<LentExecutor>(host, schedule, width);
}

}  // namespace cairn
