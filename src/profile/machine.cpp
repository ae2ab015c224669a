// What this machine can do at most: multiply-adds on registers, and reads of memory that no cache holds, on all threads.
#include <algorithm>
#include <chrono>
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

double read_all(const std::vector<uint64_t>& memory, uint64_t& sink) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= memory.size(); i += 8)
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += memory[i + lane];
  for (uint64_t sum : sums) sink += sum;
  return static_cast<double>(memory.size() * sizeof(uint64_t));
}

/// Sum over threads of the best rate that one call reached.
template <class Make>
double rate(int threads, double seconds, Make&& make) {
  std::vector<double> best(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&, i] {
      auto call = make();
      auto end = Clock::now() + std::chrono::duration<double>(seconds);
      for (auto begin = Clock::now(); begin < end;) {
        double work = call();
        auto now = Clock::now();
        auto& mine = best[static_cast<size_t>(i)];
        mine = std::max(mine, work / std::chrono::duration<double>(now - begin).count());
        begin = now;
      }
    });
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
  Machine machine;
  machine.flops =
      rate(threads, seconds / 2, [&] { return [multiply, sink = 1.0f]() mutable { return multiply(sink); }; });
  constexpr size_t kWords = size_t{64} << 17;  // 64 MiB a thread: beyond the caches
  machine.bandwidth = rate(threads, seconds / 2, [&] {
    return [memory = std::vector<uint64_t>(kWords, 1), sink = uint64_t{0}]() mutable { return read_all(memory, sink); };
  });
  return machine;
}

}  // namespace cairn::profile
