// Generated kernels of the process by what they compute: shared while somebody holds them, gone afterwards.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "support/code_memory.h"
#include "support/fork.h"

namespace cairn {

template <class Kernel>
class KernelStore {
 public:
  /// `make` gives a unique_ptr to generated code, whose size counts for the thread that makes it.
  template <class Make>
  std::shared_ptr<const Kernel> get(const std::string& key, Make&& make) {
    const ShieldedLock lock(mutex_);
    if (auto found = kernels_.find(key); found != kernels_.end())
      if (auto kernel = found->second.lock()) return kernel;
    auto made = make();
    constexpr size_t kPage = 4096;
    code_made_on_this_thread() += (made->getSize() + kPage - 1) / kPage * kPage;
    std::shared_ptr<const Kernel> kernel(made.release(), [this, key](const Kernel* gone) {
      delete gone;
      const ShieldedLock lock(mutex_);
      if (auto found = kernels_.find(key); found != kernels_.end() && found->second.expired()) kernels_.erase(found);
    });
    kernels_[key] = kernel;
    return kernel;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Kernel>> kernels_;
};

}  // namespace cairn
