// The one interface for parallel work in Cairn, implemented by our own pool and by threads that a host lends.
#pragma once

#include <memory>

#include "support/function_ref.h"

namespace cairn {

/// Runs chunks of work. run() returns when every chunk is done; a chunk may be run by any worker, exactly once.
/// Nested run() from inside a chunk executes serially on the calling worker. Denormals are flushed to zero inside
/// chunks; the caller's floating-point state is as before when run() returns.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Number of workers, the caller included; worker indices are 0 .. width()-1. Chunks that one run() executes at the
  /// same time have different workers, so scratch memory of a run may be indexed by worker.
  virtual int width() const = 0;
  /// Calls body(chunk, worker) for chunk in [0, chunks). An exception that leaves `body` reaches the caller
  /// when the other chunks are done.
  virtual void run(int chunks, FunctionRef<void(int chunk, int worker)> body) = 0;
};

/// Runs all chunks on the caller's thread.
Executor& serial_executor();

/// A pool of `threads` workers (the caller is worker 0): idle workers spin about 20 us, then park. Each worker owns an
/// equal range of the chunks and steals from the back of others'. Several callers may use it; they take turns.
std::unique_ptr<Executor> make_pool(int threads);

/// Processors that this process may use by its affinity mask and cgroup quota, at least 1.
int available_threads();

/// An executor over a host's threads. `schedule(host, call, data)` returns at once and arranges one later call of
/// call(data) on a thread of the host; when it is null, the caller works alone. A lent thread returns from `call` when
/// no job has arrived for 50 us. At most `width` threads (at most 256) work at a time, the caller included.
using HostSchedule = void (*)(void* host, void (*call)(void* data), void* data);
std::unique_ptr<Executor> make_lent_executor(void* host, HostSchedule schedule, int width);

}  // namespace cairn
