// The machine's live peak as a worker of compare.py: one iteration is GFLOP of register-only multiply-adds (fp32, bf16 or
// int8) on THREADS threads, so that time(peak) / time(case) is the case's share of the peak of the same round.
// peak DTYPE GFLOP THREADS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// Twelve independent accumulators hide the latency of two multiply-add pipes.
#define ACCUMULATE(op)                                                                            \
  op " %%zmm30,%%zmm31,%%zmm0\n" op " %%zmm30,%%zmm31,%%zmm1\n" op " %%zmm30,%%zmm31,%%zmm2\n" op \
     " %%zmm30,%%zmm31,%%zmm3\n" op " %%zmm30,%%zmm31,%%zmm4\n" op " %%zmm30,%%zmm31,%%zmm5\n" op \
     " %%zmm30,%%zmm31,%%zmm6\n" op " %%zmm30,%%zmm31,%%zmm7\n" op " %%zmm30,%%zmm31,%%zmm8\n" op \
     " %%zmm30,%%zmm31,%%zmm9\n" op " %%zmm30,%%zmm31,%%zmm10\n" op " %%zmm30,%%zmm31,%%zmm11\n"
#define CLOBBERED \
  "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10", "zmm11", "zmm30", "zmm31"
constexpr int kAccumulators = 12;

struct Kind {
  const char* name;
  double operations;  // of one instruction
  void (*loop)(long count);
};

void zero() { asm volatile("vpxord %%zmm30,%%zmm30,%%zmm30\nvpxord %%zmm31,%%zmm31,%%zmm31\n" ::: "zmm30", "zmm31"); }

const Kind kKinds[] = {
    {"fp32", 32,
     [](long count) {
       for (zero(); count > 0; --count) asm volatile(ACCUMULATE("vfmadd231ps")::: CLOBBERED);
     }},
    {"bf16", 64,
     [](long count) {
       for (zero(); count > 0; --count) asm volatile(ACCUMULATE("vdpbf16ps")::: CLOBBERED);
     }},
    {"int8", 128,
     [](long count) {
       for (zero(); count > 0; --count) asm volatile(ACCUMULATE("vpdpbusd")::: CLOBBERED);
     }},
};

void iteration(const Kind& kind, long count, int threads) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(kind.loop, count);
  kind.loop(count);
  for (std::thread& other : others) other.join();
}

std::string measure(const std::function<void()>& work, double seconds, int minimum) {
  std::string times;
  const double end = now() + seconds;
  for (int i = 0; i < minimum || now() < end; ++i) {
    const double start = now();
    work();
    times += (i ? ", " : "") + std::to_string(now() - start);
  }
  return times;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: peak fp32|bf16|int8 GFLOP THREADS\n");
    return 2;
  }
  const int threads = std::atoi(words[3]);
  for (const Kind& kind : kKinds) {
    if (kind.name != std::string(words[1])) continue;
    const long loops = static_cast<long>(std::atof(words[2]) * 1e9 / threads / (kAccumulators * kind.operations));
    iteration(kind, loops, threads);
    std::printf("READY {\"note\": \"peak\", \"out\": [], \"norm\": 0}\n");
    std::fflush(stdout);
    double seconds = 0;
    int minimum = 0;
    while (std::scanf(" run %lf %d", &seconds, &minimum) == 2) {
      std::printf("TIMES {\"t\": [%s]}\n", measure([&] { iteration(kind, loops, threads); }, seconds, minimum).c_str());
      std::fflush(stdout);
    }
    return 0;
  }
  std::fprintf(stderr, "peak: no type '%s'\n", words[1]);
  return 2;
}
