// Work on many files at once, with the exceptions of the work.
#pragma once

#include <exception>
#include <mutex>

#include "support/executor.h"

namespace cairn::migrate {

/// Calls body(i) for i in [0, count) on the executor's threads. The first exception of a body (memory that is not there) is
/// thrown here once all have ended.
template <class Body>
void parallel(Executor& executor, size_t count, Body body) {
  std::mutex mutex;
  std::exception_ptr first;
  executor.run(static_cast<int>(count), [&](int i, int) {
    try {
      body(static_cast<size_t>(i));
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  });
  if (first) std::rethrow_exception(first);
}

}  // namespace cairn::migrate
