// Open MPI, for processes that mpirun started.
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/transport.h"

namespace cairn::comm {

namespace {

struct Operation {
  MPI_Request request = MPI_REQUEST_NULL;
  std::atomic<bool> interrupted{false};
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(bool started) : started_(started) { MPI_Comm_dup(MPI_COMM_WORLD, &ranks_); }
  ~MpiTransport() override {
    if (!started_ || closed_) return;
    MPI_Comm_free(&ranks_);
    MPI_Finalize();
  }

  void* send(int to, uint64_t tag, const void* data, size_t bytes) override {
    auto operation = std::make_unique<Operation>();
    const std::lock_guard lock(mutex_);
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, label(tag), ranks_, &operation->request);
    return operation.release();
  }
  void* receive(int from, uint64_t tag, void* data, size_t bytes) override {
    auto operation = std::make_unique<Operation>();
    const std::lock_guard lock(mutex_);
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, label(tag), ranks_, &operation->request);
    return operation.release();
  }

  State wait(void* operation) override {
    auto* owned = static_cast<Operation*>(operation);
    const auto since = std::chrono::steady_clock::now();
    while (!owned->interrupted.exchange(false)) {
      int done = 0;
      {
        const std::lock_guard lock(mutex_);
        if (MPI_Test(&owned->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return State::broken;
      }
      if (done) return State::done;
      if (std::chrono::steady_clock::now() - since > std::chrono::milliseconds(2))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return State::interrupted;
  }

  void release(void* operation) override { delete static_cast<Operation*>(operation); }
  void interrupt(void* operation) override { static_cast<Operation*>(operation)->interrupted.store(true); }
  void close() override { closed_ = true; }
  std::string fault() const override { return "Open MPI refused an operation"; }

 private:
  static int label(uint64_t tag) { return static_cast<int>(tag % 32768); }

  const bool started_;  // by this library
  bool closed_ = false;
  std::mutex mutex_;
  MPI_Comm ranks_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Transport* cairn_transport_open(const TransportSetup& setup,
                                                                                  std::string* fault) {
  int running = 0, level = 0, size = 0, rank = 0;
  MPI_Initialized(&running);
  if (running)
    MPI_Query_thread(&level);
  else
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (level < MPI_THREAD_SERIALIZED)
    *fault = "the program has initialised MPI for one thread";
  else if (size != setup.size || rank != setup.rank)
    *fault = "mpirun started another number of ranks";
  else
    return new MpiTransport(!running);
  return nullptr;
}

}  // namespace cairn::comm
