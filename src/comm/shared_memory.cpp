// Collectives through memory that the members of a group share. They proceed in rounds: every rank writes to a slot of its
// own, says so, waits for the others, and reads their slots. Each slot has two halves that alternate, so that a slow reader
// never sees the next round: who writes round n has seen all others at round n - 1, and so behind their reads of n - 2.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "comm/fabric.h"
#include "comm/reduce.h"
#include "comm/sockets.h"
#include "support/executor_limits.h"
#include "support/fault.h"

namespace cairn::comm {

namespace {

constexpr size_t kHalf = 512 << 10;  // bytes of a slot for one round
constexpr size_t kSmall = 32 << 10;  // all ranks reduce everything up to here: one round instead of two
constexpr size_t kMail = 128 << 10;  // bytes of a message that are on the way at once, in two halves
constexpr auto kSpin = std::chrono::microseconds(100);
constexpr auto kYield = std::chrono::microseconds(500);
constexpr int kGlances = 64;
constexpr long kSlice = 20'000'000;  // ns between two looks at the other ranks

/// A counter that others wait for.
struct Counter {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};

  void set(uint32_t next) {
    value.store(next, std::memory_order_release);
    wake();
  }
  /// Whoever stores a value calls it afterwards. The fence waits for the stores before it, so that it is cheap a little later.
  void wake() {
#ifdef __SANITIZE_THREAD__
    const uint32_t asleep = sleepers.fetch_add(0);  // orders as the fence, unknown to the thread sanitizer
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint32_t asleep = sleepers.load();
#endif
    if (asleep) syscall(SYS_futex, &value, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  bool reached(uint32_t wanted) const { return static_cast<int32_t>(value.load() - wanted) >= 0; }
};

struct alignas(64) Seat {  // one cache line, so that a round is seen together with its digest
  Counter posted;          // rounds
  uint64_t digests[2];     // of the collective, by round
};

/// Messages from one rank to another.
struct alignas(64) Mailbox {
  Counter sent;  // halves
  uint64_t digests[2];
  alignas(64) Counter taken;  // halves
};

size_t whole_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

class SharedMemory final : public Fabric {
 public:
  static size_t bytes_for(size_t size) {
    return whole_pages(size * sizeof(Seat)) + whole_pages(size * size * sizeof(Mailbox)) + size * 2 * kHalf +
           size * size * 2 * kMail;
  }

  /// `spins`: whether every member has a processor to itself, so that it may wait on it for a short time. Otherwise it leaves
  /// the processor to others for a short time before it sleeps, which takes longer to wake up from.
  SharedMemory(const Party& party, void* memory, size_t bytes, bool spins)
      : party_(party), size_(static_cast<size_t>(party.size())), me_(static_cast<size_t>(party.me)), memory_(memory),
        bytes_(bytes), spins_(spins), slots_of_(size_), sources_(size_) {
    char* next = static_cast<char*>(memory);
    seats_ = reinterpret_cast<Seat*>(next);
    mail_ = reinterpret_cast<Mailbox*>(next += whole_pages(size_ * sizeof(Seat)));
    slots_ = next += whole_pages(size_ * size_ * sizeof(Mailbox));
    mail_data_ = next + size_ * 2 * kHalf;
    sent_.resize(size_), taken_.resize(size_);
  }
  ~SharedMemory() override { munmap(memory_, bytes_); }

  std::string name() const override { return "shared memory"; }

  void run(Turn& turn) override {
    switch (turn.request.kind) {
      case Kind::all_reduce: return all_reduce(turn, -1);
      case Kind::reduce: return all_reduce(turn, static_cast<int>(turn.request.root));
      case Kind::reduce_scatter: return reduce_scatter(turn);
      case Kind::all_gather: return gather(turn, -1);
      case Kind::gather: return gather(turn, static_cast<int>(turn.request.root));
      case Kind::broadcast: return broadcast(turn);
      case Kind::scatter: return scatter(turn);
      case Kind::all_to_all: return all_to_all(turn);
      case Kind::barrier:
        return round(
            turn, [](char*) {}, [] {});
      case Kind::send: return send(turn);
      case Kind::receive: return receive(turn);
    }
  }

 private:
  using Clock = Turn::Clock;

  /// `posted`: of this rank, stored already; whoever sleeps until then is woken once the first glances have shown nothing.
  void wait(Turn& turn, Counter& counter, uint32_t wanted, int other, Counter* posted = nullptr) const {
    if (seen(counter, wanted, turn.spins && spins_ ? kGlances : 1))
      return;  // too short to be worth a look at the clock
    if (posted) posted->wake();
    const auto since = Clock::now();
    const auto awake = !turn.spins ? Clock::duration::zero()
                       : spins_    ? Clock::duration(kSpin)
                                   : Clock::duration(kYield);
    while (!seen(counter, wanted, spins_ ? kGlances : 1) && Clock::now() - since < awake)
      if (!spins_) sched_yield();
    const timespec slice{0, kSlice};
    while (!counter.reached(wanted)) {
      counter.sleepers.fetch_add(1);
      const uint32_t value = counter.value.load();
      if (static_cast<int32_t>(value - wanted) < 0)
        syscall(SYS_futex, &counter.value, FUTEX_WAIT, value, &slice, nullptr, 0);
      counter.sleepers.fetch_sub(1);
      if (!counter.reached(wanted)) turn.look(other, since);
    }
    turn.waited += std::chrono::duration<double>(Clock::now() - since).count();
  }

  static bool seen(const Counter& counter, uint32_t wanted, int glances) {
    for (int i = 0; i < glances; ++i) {
      if (counter.reached(wanted)) return true;
      __builtin_ia32_pause();
    }
    return false;
  }

  template <class Write, class Read>
  void round(Turn& turn, Write write, Read read) {
    const uint32_t number = ++rounds_;
    const size_t half = number % 2;
    for (size_t i = 0; i < size_; ++i) slots_of_[i] = slots_ + (2 * i + half) * kHalf;
    write(slots_of_[me_]);
    seats_[me_].digests[half] = turn.digest;
    Counter& mine = seats_[me_].posted;
    mine.value.store(number, std::memory_order_release);
    bool agree = true;
    for (size_t step = 1; step < size_ && agree; ++step) {
      const size_t other = (me_ + step) % size_;
      wait(turn, seats_[other].posted, number, static_cast<int>(other), &mine);
      agree = seats_[other].digests[half] == turn.digest;
    }
    mine.wake();
    if (!agree) turn.disagree();
    read();
  }

  // Lines that another processor has used last come one by one unless all are asked for at once.
  static void fetch_to_read(const char* data, size_t bytes) {
    for (size_t i = 0; i < std::min<size_t>(bytes, 4096); i += 64) __builtin_prefetch(data + i);
  }
  static void fetch_to_write(const char* data, size_t bytes) {
    for (size_t i = 0; i < std::min<size_t>(bytes, 4096); i += 64) asm volatile("prefetchw %0" : : "m"(data[i]));
  }

  // The own elements from the operand, those of others from their slots, behind `offset` bytes.
  std::span<const void* const> sources(const void* own, size_t offset) {
    for (size_t i = 0; i < size_; ++i) sources_[i] = i == me_ ? own : slots_of_[i] + offset;
    return sources_;
  }

  // Rank i reduces part i of each chunk; while the parts of a chunk are handed out, those of the chunk before are
  // collected. root -1: all ranks take the result, else one alone.
  void all_reduce(Turn& turn, int root) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    const int64_t count = request.count();
    const Elements from = Elements::operand(request), to = Elements::result(request);
    const bool takes = root < 0 || root == party_.me;
    const auto reduce = [&](int64_t first, int64_t elements, size_t offset) {
      from.each(first, elements, [&](const char* own, size_t bytes) {
        const auto piece = static_cast<int64_t>(bytes / width);
        combine(request.reduction, request.dtype, sources(own, offset), to.place(first), static_cast<size_t>(piece));
        first += piece, offset += bytes;
      });
    };
    if (static_cast<size_t>(count) * width <= kSmall) {
      round(
          turn, [&](char* slot) { from.read(0, count, slot); },
          [&] {
            if (!takes || count == 0) return;
            const size_t bytes = static_cast<size_t>(count) * width;
            for (size_t i = 0; i < size_; ++i) fetch_to_read(slots_of_[i], bytes);
            reduce(0, count, 0);
            fetch_to_write(slots_ + (2 * me_ + (rounds_ + 1) % 2) * kHalf, bytes);  // for the next one
            fetch_to_write(reinterpret_cast<const char*>(&seats_[me_]), sizeof(Seat));
          });
    } else {
      const int64_t chunk = static_cast<int64_t>(kHalf / 2 / width);
      const auto part = [&](int64_t first, int i) {
        const Part part = part_of(std::min(chunk, count - first), party_.size(), i);
        return std::pair(part, static_cast<size_t>(part.first) * width);
      };
      for (int64_t first = 0; first < count + chunk; first += chunk) {
        const int64_t before = first - chunk;
        const bool gives = first < count, collects = before >= 0;
        round(
            turn,
            [&](char* slot) {
              for (int i = 0; i < party_.size(); ++i) {
                if (gives && i != party_.me) {
                  const auto [other, offset] = part(first, i);
                  from.read(first + other.first, other.count, slot + offset);
                } else if (collects && i == party_.me) {
                  const auto [mine, offset] = part(before, i);
                  to.read(before + mine.first, mine.count, slot + kHalf / 2 + offset);
                }
              }
            },
            [&] {
              if (gives) {
                const auto [mine, offset] = part(first, party_.me);
                if (mine.count) reduce(first + mine.first, mine.count, offset);
              }
              for (int i = 0; collects && takes && i < party_.size(); ++i) {
                const auto [other, offset] = part(before, i);
                if (i != party_.me)
                  to.write(before + other.first, other.count, slots_of_[static_cast<size_t>(i)] + kHalf / 2 + offset);
              }
            });
      }
    }
    if (!takes) to.clear();
  }

  void reduce_scatter(Turn& turn) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    const int64_t each = request.count() / party_.size();
    const int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(kHalf / size_ / width));
    for (int64_t first = 0; first < std::max<int64_t>(each, 1); first += chunk) {
      const int64_t count = std::min(chunk, each - first);
      const auto bytes = static_cast<size_t>(count) * width;
      round(
          turn,
          [&](char* slot) {
            for (int i = 0; i < party_.size(); ++i)
              if (i != party_.me)
                std::memcpy(at(slot, i * count, width), at(request.input, i * each + first, width), bytes);
          },
          [&] {
            const size_t me = static_cast<size_t>(party_.me);
            combine(request.reduction, request.dtype,
                    sources(at(request.input, party_.me * each + first, width), me * bytes),
                    at(request.output, first, width), static_cast<size_t>(count));
          });
    }
  }

  void gather(Turn& turn, int root) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count());
    const bool takes = root < 0 || root == party_.me;
    char* output = static_cast<char*>(request.output);
    if (takes)
      std::memcpy(output + me_ * bytes, request.input, bytes);
    else
      std::memset(output, 0, size_ * bytes);
    for (size_t first = 0; first < std::max<size_t>(bytes, 1); first += kHalf) {
      const size_t now = std::min(kHalf, bytes - first);
      round(
          turn, [&](char* slot) { std::memcpy(slot, at(request.input, 0, 1) + first, now); },
          [&] {
            for (size_t i = 0; takes && i < size_; ++i)
              if (i != me_) std::memcpy(output + i * bytes + first, slots_of_[i], now);
          });
    }
  }

  void broadcast(Turn& turn) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count());
    const auto root = static_cast<size_t>(request.root);
    char* output = static_cast<char*>(request.output);
    if (root == me_ && output != request.input) std::memcpy(output, request.input, bytes);
    for (size_t first = 0; first < std::max<size_t>(bytes, 1); first += kHalf) {
      const size_t now = std::min(kHalf, bytes - first);
      round(
          turn,
          [&](char* slot) {
            if (root == me_) std::memcpy(slot, output + first, now);
          },
          [&] {
            if (root != me_) std::memcpy(output + first, slots_of_[root], now);
          });
    }
  }

  void scatter(Turn& turn) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count() / party_.size());
    const auto root = static_cast<size_t>(request.root);
    const size_t most = kHalf / size_;
    for (size_t first = 0; first < std::max<size_t>(bytes, 1); first += most) {
      const size_t now = std::min(most, bytes - first);
      round(
          turn,
          [&](char* slot) {
            for (size_t i = 0; root == me_ && i < size_; ++i)
              std::memcpy(slot + i * now, at(request.input, 0, 1) + i * bytes + first, now);
          },
          [&] { std::memcpy(at(request.output, 0, 1) + first, slots_of_[root] + me_ * now, now); });
    }
  }

  void all_to_all(Turn& turn) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    int64_t longest = 0;
    std::string fault;
    round(
        turn,
        [&](char* slot) {
          std::memcpy(slot, request.send_counts.data(), size_ * 8);
          std::memcpy(slot + size_ * 8, request.receive_counts.data(), size_ * 8);
        },
        [&] {
          const auto count = [&](size_t i, size_t k) { return reinterpret_cast<const int64_t*>(slots_of_[i])[k]; };
          for (size_t from = 0; from < size_; ++from)
            for (size_t to = 0; to < size_; ++to) {
              longest = std::max(longest, count(from, to));
              if (count(from, to) != count(to, size_ + from) && fault.empty())
                fault = fmt::format("all_to_all: rank {} sends {} elements to rank {}, which expects {}", from,
                                    count(from, to), to, count(to, size_ + from));
            }
        });
    if (!fault.empty()) turn.fault(fault);
    const int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(kHalf / size_ / width));
    const auto now = [&](int64_t whole, int64_t first) {
      return static_cast<size_t>(std::clamp<int64_t>(whole - first, 0, chunk)) * width;
    };
    for (int64_t first = 0; first < longest; first += chunk)
      round(
          turn,
          [&](char* slot) {
            for (size_t i = 0; i < size_; ++i)
              std::memcpy(at(slot, static_cast<int64_t>(i) * chunk, width),
                          at(request.input, request.send_offsets[i] + first, width),
                          now(request.send_counts[i], first));
          },
          [&] {
            for (size_t i = 0; i < size_; ++i)
              std::memcpy(at(request.output, request.receive_offsets[i] + first, width),
                          at(slots_of_[i], static_cast<int64_t>(me_) * chunk, width),
                          now(request.receive_counts[i], first));
          });
  }

  void send(Turn& turn) {
    const Request& request = turn.request;
    const auto to = static_cast<size_t>(request.root);
    Mailbox& box = mail_[me_ * size_ + to];
    const size_t bytes = storage_bytes(request.dtype, request.count());
    for (size_t first = 0; first < std::max<size_t>(bytes, 1); first += kMail) {
      const uint32_t number = ++sent_[to];
      wait(turn, box.taken, number - 2, static_cast<int>(to));
      box.digests[number % 2] = turn.digest;
      std::memcpy(mail(me_, to, number), at(request.input, 0, 1) + first, std::min(kMail, bytes - first));
      box.sent.set(number);
    }
  }

  void receive(Turn& turn) {
    const Request& request = turn.request;
    const auto from = static_cast<size_t>(request.root);
    Mailbox& box = mail_[from * size_ + me_];
    const size_t bytes = storage_bytes(request.dtype, request.count());
    for (size_t first = 0; first < std::max<size_t>(bytes, 1); first += kMail) {
      const uint32_t number = ++taken_[from];
      wait(turn, box.sent, number, static_cast<int>(from));
      if (box.digests[number % 2] != turn.digest) turn.disagree();
      std::memcpy(at(request.output, 0, 1) + first, mail(from, me_, number), std::min(kMail, bytes - first));
      box.taken.set(number);
    }
  }

  char* mail(size_t from, size_t to, uint32_t number) const {
    return mail_data_ + ((from * size_ + to) * 2 + number % 2) * kMail;
  }

  const Party party_;
  const size_t size_, me_;
  void* const memory_;
  const size_t bytes_;
  const bool spins_;
  Seat* seats_;
  Mailbox* mail_;
  char *slots_, *mail_data_;
  uint32_t rounds_ = 0;
  std::vector<uint32_t> sent_, taken_;  // halves of messages, by the other rank
  std::vector<char*> slots_of_;         // of all ranks in the current round
  std::vector<const void*> sources_;    // of a reduction
};

void* map(int file, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

std::string own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return {reinterpret_cast<const char*>(&set), sizeof set};
}

bool one_processor_each(const std::vector<std::string>& members) {
  cpu_set_t all, set;
  CPU_ZERO(&all);
  for (const std::string& each : members) {
    std::memcpy(&set, each.data(), std::min(each.size(), sizeof set));
    CPU_OR(&all, &all, &set);
  }
  const int quota = cgroup_threads("/"), size = static_cast<int>(members.size());
  return CPU_COUNT(&all) >= size && (quota == 0 || quota >= size);
}

}  // namespace

// The memory has no name in the file system: the first member makes it, the others open it through that process, and it goes
// with the last of them.
std::unique_ptr<Fabric> share_memory(Member& member, const std::string& what, const Party& party, std::string& why) {
  const size_t bytes = SharedMemory::bytes_for(static_cast<size_t>(party.size()));
  Socket file;  // closes it at the end
  std::string offer;
  why = "the ranks cannot share memory";
  if (party.me == 0) {
    file = Socket(memfd_create("cairn-job", MFD_CLOEXEC));
    const bool made = file && ftruncate(file.fd(), static_cast<off_t>(bytes)) == 0;
    offer = made ? fmt::format("/proc/{}/fd/{}", getpid(), file.fd()) : fmt::format("{}: {}", why, reason(errno));
    if (!made) file.close();
  }
  const std::string path = member.exchange(what + " memory", party.ranks, offer)[0];
  if (!path.starts_with('/')) why = path;
  if (party.me != 0 && path.starts_with('/')) file = Socket(open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* memory = file ? map(file.fd(), bytes) : nullptr;
  const std::vector<std::string> mapped =
      member.exchange(what + " mapped", party.ranks, memory ? own_processors() : std::string());
  if (std::none_of(mapped.begin(), mapped.end(), [](const auto& each) { return each.empty(); }))
    return std::make_unique<SharedMemory>(party, memory, bytes, one_processor_each(mapped));
  if (memory) munmap(memory, bytes);
  return nullptr;
}

}  // namespace cairn::comm
