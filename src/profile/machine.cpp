// What this machine can do at most, on all threads: multiply-adds on registers, and reads of memory that caches hold or do not.
#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "profile/analysis.h"

namespace cairn::profile {
namespace {

using Clock = std::chrono::steady_clock;

using V16 = float __attribute__((vector_size(64)));
using V8 = float __attribute__((vector_size(32)));

constexpr int kChains = 12;  // enough to hide the latency of a multiply-add on two ports
constexpr int kRounds = 4096;

/// FLOPs of one call; `sink` keeps the work from being dropped.
template <class V>
[[gnu::always_inline]] inline double multiply_add(float& sink) {
  V chains[kChains];
  V factor, term;
  for (size_t lane = 0; lane < sizeof(V) / 4; ++lane) factor[lane] = 0.9999f, term[lane] = sink;
  for (auto& chain : chains) chain = term;
  for (int round = 0; round < kRounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
  V sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum += chains[i];
  sink = sum[0] * 1e-9f;
  return 2.0 * kRounds * kChains * (sizeof(V) / 4);
}

__attribute__((target("avx512f"), optimize("O3"))) double multiply_add_512(float& sink) {
  return multiply_add<V16>(sink);
}
__attribute__((target("avx2,fma"), optimize("O3"))) double multiply_add_256(float& sink) {
  return multiply_add<V8>(sink);
}
double multiply_add_any(float& sink) { return multiply_add<V8>(sink); }

/// At least so much work a call that two looks at the clock do not count.
[[gnu::always_inline]] inline double read_memory(const std::vector<uint64_t>& memory, uint64_t& sink) {
  constexpr size_t kLeast = size_t{1} << 20, kLanes = 32;
  uint64_t sums[kLanes] = {};
  const size_t times = std::max<size_t>(1, kLeast / (memory.size() * sizeof(uint64_t)));
  for (size_t time = 0; time < times; ++time) {
    for (size_t i = 0; i + kLanes <= memory.size(); i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += memory[i + lane];
    asm volatile("" ::: "memory");  // it is read again
  }
  for (uint64_t sum : sums) sink += sum;
  return static_cast<double>(times * memory.size() * sizeof(uint64_t));
}

__attribute__((target("avx512f"), optimize("O3"))) double read_512(const std::vector<uint64_t>& memory,
                                                                   uint64_t& sink) {
  return read_memory(memory, sink);
}
__attribute__((target("avx2"), optimize("O3"))) double read_256(const std::vector<uint64_t>& memory, uint64_t& sink) {
  return read_memory(memory, sink);
}
double read_any(const std::vector<uint64_t>& memory, uint64_t& sink) { return read_memory(memory, sink); }

/// Sum over threads of the best rate that one call reached.
template <class Make>
double rate(int threads, double seconds, Make&& make) {
  std::vector<double> best(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  const auto measure = [&](double& mine) {
    auto call = make();
    auto end = Clock::now() + std::chrono::duration<double>(seconds);
    for (auto begin = Clock::now(); begin < end;) {
      double work = call();
      auto now = Clock::now();
      mine = std::max(mine, work / std::chrono::duration<double>(now - begin).count());
      begin = now;
    }
  };
  try {
    for (double& mine : best)
      workers.emplace_back([&] {
        try {
          measure(mine);
        } catch (const std::bad_alloc&) {  // this thread has no part in the rate
        }
      });
  } catch (const std::system_error&) {  // those that could be started are measured
  }
  for (auto& worker : workers) worker.join();
  double sum = 0;
  for (double each : best) sum += each;
  return sum;
}

}  // namespace

Machine measure_machine(int threads, double seconds) {
  auto* multiply = __builtin_cpu_supports("avx512f")                                 ? multiply_add_512
                   : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? multiply_add_256
                                                                                     : multiply_add_any;
  auto* read = __builtin_cpu_supports("avx512f") ? read_512 : __builtin_cpu_supports("avx2") ? read_256 : read_any;
  Machine machine;
  machine.flops =
      rate(threads, seconds / 2, [&] { return [multiply, sink = 1.0f]() mutable { return multiply(sink); }; });
  auto bandwidth = [&](size_t bytes, double time) {
    return rate(threads, time, [bytes, read] {
      return [read, memory = std::vector<uint64_t>(bytes / 8, 1), sink = uint64_t{0}]() mutable {
        return read(memory, sink);
      };
    });
  };
  machine.bandwidth = bandwidth(size_t{64} << 20, seconds / 2);                // of each thread: beyond the caches
  for (size_t bytes : {size_t{24} << 10, size_t{512} << 10, size_t{4} << 20})  // of the first, second and third level
    machine.caches.push_back({static_cast<double>(bytes) * threads, bandwidth(bytes, seconds / 10)});
  return machine;
}

}  // namespace cairn::profile
