// Collectives by messages. Every reduction is made by one rank from what all give, in the order of ranks, so that results have
// the same bits as through shared memory, whatever arrives first.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "comm/fabric.h"
#include "comm/reduce.h"
#include "comm/transport.h"

namespace cairn::comm {

namespace {

constexpr int kFewRanks = 16;          // all greet each other directly
constexpr size_t kInside = 2048;       // bytes of a tensor that travel with the greeting
constexpr int64_t kSegment = 8 << 20;  // bytes that are reduced at once
constexpr size_t kPiece = 64 << 10;  // mean bytes of the tensors of a bucket from which each is sent from its own place
constexpr size_t kLetter = 256 << 10, kMostLetters = 16;  // bytes of a message that does not hold its sender up
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

/// The first message of every collective: all have the same size, whatever the ranks are about to do.
struct Greeting {
  uint64_t digest;
  char inside[kInside];
};

/// Interrupts waits for messages every kBetweenLooks, so that the waiting thread looks whether it waits in vain.
class Guard {
 public:
  explicit Guard(Transport& transport) : transport_(transport), thread_([this] { watch(); }) {}
  ~Guard() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    news_.notify_one();
    thread_.join();
  }

  /// Throws what the turn throws when the wait is in vain.
  Transport::State wait(Turn& turn, int other, void* operation) {
    const Watched watched(*this, turn, operation);
    while (true) {
      const Transport::State state = transport_.wait(operation);
      if (state != Transport::State::interrupted) return state;
      turn.look(other, watched.since);
    }
  }

 private:
  struct Watched {
    Watched(Guard& guard, Turn& turn, void* operation) : guard_(guard), turn_(turn), operation_(operation) {
      {
        const std::lock_guard lock(guard.mutex_);
        guard.operation_ = operation, guard.since_ = since;
      }
      if (since - guard.last_ > kBetweenLooks) guard.news_.notify_one();
    }
    ~Watched() {
      {
        const std::lock_guard lock(guard_.mutex_);
        guard_.operation_ = nullptr;
      }
      guard_.transport_.release(operation_);
      guard_.last_ = Turn::Clock::now();
      turn_.waited += std::chrono::duration<double>(guard_.last_ - since).count();
    }
    const Turn::Clock::time_point since = Turn::Clock::now();

   private:
    Guard& guard_;
    Turn& turn_;
    void* const operation_;
  };

  void watch() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      news_.wait_for(lock, operation_ ? kBetweenLooks : std::chrono::milliseconds(1000));
      if (operation_ && Turn::Clock::now() - since_ >= kBetweenLooks) transport_.interrupt(operation_);
    }
  }

  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable news_;
  void* operation_ = nullptr;
  Turn::Clock::time_point since_, last_;
  bool ends_ = false;
  std::thread thread_;
};

class Messages final : public Fabric {
 public:
  Messages(const Party& party, std::shared_ptr<Transport> transport, bool own, std::string name, uint64_t group)
      : party_(party), size_(static_cast<size_t>(party.size())), transport_(std::move(transport)), own_(own),
        name_(std::move(name)), tag_(group * 4), guard_(*transport_) {}

  std::string name() const override { return name_; }

  void run(Turn& turn) override try {
    switch (turn.request.kind) {
      case Kind::all_reduce: return all_reduce(turn);
      case Kind::reduce: return reduce_to(turn);
      case Kind::reduce_scatter: return reduce_scatter(turn);
      case Kind::all_gather: return gather(turn, -1);
      case Kind::gather: return gather(turn, static_cast<int>(turn.request.root));
      case Kind::broadcast: return broadcast(turn);
      case Kind::scatter: return scatter(turn);
      case Kind::all_to_all: return all_to_all(turn);
      case Kind::barrier: return greet(turn, 0, nullptr);
      case Kind::send: return send(turn);
      case Kind::receive: return receive(turn);
    }
  } catch (...) {
    transport_->close();  // no message may touch memory that the caller frees
    throw;
  }

 private:
  struct Pending {
    int other;
    void* operation;
  };
  /// Messages under way.
  class Batch {
   public:
    explicit Batch(Messages& fabric, uint64_t kind = 0) : fabric_(fabric), kind_(kind) {}
    void send(int to, const void* data, size_t bytes) {
      cut(
          bytes,
          [&](size_t first, size_t size) {
            return fabric_.transport_->send(fabric_.rank_of(to), fabric_.tag_ + kind_, at(data, 0, 1) + first, size);
          },
          to);
    }
    void receive(int from, void* data, size_t bytes) {
      cut(
          bytes,
          [&](size_t first, size_t size) {
            return fabric_.transport_->receive(fabric_.rank_of(from), fabric_.tag_ + kind_, at(data, 0, 1) + first,
                                               size);
          },
          from);
    }
    void send(int to, const Elements& elements, const Part& part) {
      elements.each(part.first, part.count, [&](const char* data, size_t bytes) { send(to, data, bytes); });
    }
    void receive(int from, const Elements& elements, const Part& part) {
      elements.each(part.first, part.count, [&](char* data, size_t bytes) { receive(from, data, bytes); });
    }
    void wait(Turn& turn) {
      for (const Pending& each : pending_)
        if (!each.operation || fabric_.guard_.wait(turn, each.other, each.operation) != Transport::State::done)
          turn.broken(each.other, fabric_.transport_->fault());
      pending_.clear();
    }

   private:
    template <class Begin>
    void cut(size_t bytes, Begin begin, int other) {
      for (size_t first = 0; first < bytes; first += Transport::kMost)
        pending_.push_back({other, begin(first, std::min(Transport::kMost, bytes - first))});
    }

    Messages& fabric_;
    const uint64_t kind_;
    std::vector<Pending> pending_;
  };

  int rank_of(int member) const { return own_ ? member : party_.ranks[static_cast<size_t>(member)]; }
  int other(int step) const { return (party_.me + step + party_.size()) % party_.size(); }

  // Shows every rank, directly or through others, what this one calls; then each has been here. Up to kFewRanks ranks give
  // each other so many bytes of `inside`, which are afterwards in greetings_.
  void greet(Turn& turn, size_t bytes, const void* inside) {
    mine_.digest = turn.digest;
    if (bytes) std::memcpy(mine_.inside, inside, bytes);
    greetings_.resize(size_);
    if (party_.size() > kFewRanks) {
      for (int step = 1; step < party_.size(); step *= 2) greet_some(turn, step, step);
    } else {
      greet_some(turn, 1, party_.size() - 1);
    }
  }

  void greet_some(Turn& turn, int first, int last) {
    Batch batch(*this);
    for (int step = first; step <= last; ++step)
      batch.receive(other(-step), &greetings_[static_cast<size_t>(other(-step))], sizeof(Greeting));
    for (int step = first; step <= last; ++step) batch.send(other(step), &mine_, sizeof mine_);
    batch.wait(turn);
    for (int step = first; step <= last; ++step)
      if (greetings_[static_cast<size_t>(other(-step))].digest != turn.digest) turn.disagree();
  }

  bool fits_inside(size_t bytes) const { return bytes <= kInside && party_.size() <= kFewRanks; }

  std::vector<const void*> sources(const void* own, FunctionRef<const void*(size_t)> theirs) const {
    std::vector<const void*> list(size_);
    for (size_t i = 0; i < size_; ++i) list[i] = static_cast<int>(i) == party_.me ? own : theirs(i);
    return list;
  }

  void all_reduce(Turn& turn) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    const int64_t count = request.count();
    const Elements from = Elements::operand(request), to = Elements::result(request);
    const size_t bytes = static_cast<size_t>(count) * width;
    if (fits_inside(bytes)) {
      from.read(0, count, mine_.inside);
      greet(turn, 0, nullptr);
      combine(request.reduction, request.dtype,
              sources(mine_.inside, [&](size_t i) -> const void* { return greetings_[i].inside; }), mine_.inside,
              static_cast<size_t>(count));
      return to.write(0, count, mine_.inside);
    }
    greet(turn, 0, nullptr);
    const int64_t segment = kSegment / static_cast<int64_t>(width);
    for (int64_t first = 0; first < count; first += segment) {
      const int64_t now = std::min(segment, count - first);
      size_t pieces = 0;
      from.each(first, now, [&](char*, size_t) { ++pieces; });
      if (static_cast<size_t>(now) * width >= pieces * kPiece) {  // which all ranks see alike
        all_reduce_segment(turn, from, to, first, now);
        continue;
      }
      segment_.resize(static_cast<size_t>(kSegment));
      const Elements together(segment_.data(), now, width);
      from.read(first, now, segment_.data());
      all_reduce_segment(turn, together, together, 0, now);
      to.write(first, now, segment_.data());
    }
  }

  void all_reduce_segment(Turn& turn, const Elements& from, const Elements& to, int64_t first, int64_t count) {
    reduce_segment(turn, from, to, first, count);
    Batch batch(*this, 1);
    for (int step = 1; step < party_.size(); ++step) batch.receive(other(-step), to, part(first, count, other(-step)));
    for (int step = 1; step < party_.size(); ++step) batch.send(other(step), to, part(first, count, party_.me));
    batch.wait(turn);
  }

  // What rank i reduces of these elements.
  Part part(int64_t first, int64_t count, int i) const {
    Part made = part_of(count, party_.size(), i);
    made.first += first;
    return made;
  }

  // Leaves this rank's part of the sum at its place in `to`.
  void reduce_segment(Turn& turn, const Elements& from, const Elements& to, int64_t first, int64_t count) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    const Part mine = part(first, count, party_.me);
    const size_t bytes = static_cast<size_t>(mine.count) * width;
    if (scratch_.size() < size_ * bytes) scratch_.resize(size_ * bytes);
    Batch batch(*this, 1);
    for (int step = 1; step < party_.size(); ++step) {
      char* theirs = scratch_.data() + static_cast<size_t>(other(-step)) * bytes;
      from.each(mine.first, mine.count,
                [&](char*, size_t now) { batch.receive(other(-step), theirs, now), theirs += now; });
    }
    for (int step = 1; step < party_.size(); ++step) batch.send(other(step), from, part(first, count, other(step)));
    batch.wait(turn);
    size_t offset = 0;
    from.each(mine.first, mine.count, [&](const char* own, size_t now) {
      combine(request.reduction, request.dtype,
              sources(own, [&](size_t i) -> const void* { return scratch_.data() + i * bytes + offset; }),
              to.place(mine.first + static_cast<int64_t>(offset / width)), now / width);
      offset += now;
    });
  }

  void reduce_to(Turn& turn) {
    const Request& request = turn.request;
    const int64_t count = request.count(), segment = kSegment / static_cast<int64_t>(request.dtype.size());
    const int root = static_cast<int>(request.root);
    const Elements from = Elements::operand(request), to = Elements::result(request);
    greet(turn, 0, nullptr);
    for (int64_t first = 0; first < count; first += segment) {
      const int64_t now = std::min(segment, count - first);
      reduce_segment(turn, from, to, first, now);
      Batch batch(*this, 1);
      if (party_.me != root) batch.send(root, to, part(first, now, party_.me));
      for (int i = 0; party_.me == root && i < party_.size(); ++i)
        if (i != root) batch.receive(i, to, part(first, now, i));
      batch.wait(turn);
    }
    if (party_.me != root) to.clear();
  }

  // Each rank's part lies in one piece.
  void reduce_scatter(Turn& turn) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    const int64_t each = request.count() / party_.size(), segment = kSegment / static_cast<int64_t>(width);
    greet(turn, 0, nullptr);
    for (int64_t first = 0; first < each; first += segment) {
      const auto now = static_cast<size_t>(std::min(segment, each - first)), bytes = now * width;
      const auto given = [&](int i) { return at(request.input, i * each + first, width); };
      if (scratch_.size() < size_ * bytes) scratch_.resize(size_ * bytes);
      Batch batch(*this, 1);
      for (int step = 1; step < party_.size(); ++step)
        batch.receive(other(-step), scratch_.data() + static_cast<size_t>(other(-step)) * bytes, bytes);
      for (int step = 1; step < party_.size(); ++step) batch.send(other(step), given(other(step)), bytes);
      batch.wait(turn);
      combine(request.reduction, request.dtype,
              sources(given(party_.me), [&](size_t i) -> const void* { return scratch_.data() + i * bytes; }),
              at(request.output, first, width), now);
    }
  }

  void gather(Turn& turn, int root) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count());
    char* output = static_cast<char*>(request.output);
    const bool takes = root < 0 || root == party_.me;
    if (takes)
      std::memcpy(output + static_cast<size_t>(party_.me) * bytes, request.input, bytes);
    else
      std::memset(output, 0, size_ * bytes);
    const bool small = fits_inside(bytes);
    greet(turn, small ? bytes : 0, request.input);
    Batch batch(*this, 1);
    for (int i = 0; i < party_.size(); ++i) {
      if (i == party_.me) continue;
      char* place = output + static_cast<size_t>(i) * bytes;
      if (small && takes) std::memcpy(place, greetings_[static_cast<size_t>(i)].inside, bytes);
      if (!small && takes) batch.receive(i, place, bytes);
      if (!small && (root < 0 || root == i)) batch.send(i, request.input, bytes);
    }
    batch.wait(turn);
  }

  // Along a binary tree whose root is the sender.
  void broadcast(Turn& turn) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count());
    const int root = static_cast<int>(request.root), place = (party_.me - root + party_.size()) % party_.size();
    const auto member = [&](int at) { return (at + root) % party_.size(); };
    if (place == 0 && bytes && request.output != request.input) std::memcpy(request.output, request.input, bytes);
    greet(turn, fits_inside(bytes) ? bytes : 0, request.input);
    if (fits_inside(bytes)) {
      if (place != 0) std::memcpy(request.output, greetings_[static_cast<size_t>(root)].inside, bytes);
      return;
    }
    int above = 1;
    while (above < party_.size() && !(place & above)) above *= 2;
    Batch from(*this, 1), to(*this, 1);
    if (place != 0) from.receive(member(place - above), request.output, bytes);
    from.wait(turn);
    for (int step = above / 2; step > 0; step /= 2)
      if (place + step < party_.size()) to.send(member(place + step), request.output, bytes);
    to.wait(turn);
  }

  void scatter(Turn& turn) {
    const Request& request = turn.request;
    const size_t bytes = storage_bytes(request.dtype, request.count() / party_.size());
    const int root = static_cast<int>(request.root);
    greet(turn, 0, nullptr);
    Batch batch(*this, 1);
    for (int i = 0; party_.me == root && i < party_.size(); ++i) {
      const char* part = at(request.input, 0, 1) + static_cast<size_t>(i) * bytes;
      if (i == root)
        std::memcpy(request.output, part, bytes);
      else
        batch.send(i, part, bytes);
    }
    if (party_.me != root) batch.receive(root, request.output, bytes);
    batch.wait(turn);
  }

  void all_to_all(Turn& turn) {
    const Request& request = turn.request;
    const size_t width = request.dtype.size();
    greet(turn, 0, nullptr);
    std::vector<int64_t> theirs(size_);
    Batch counts(*this, 1), batch(*this, 1);
    for (int i = 0; i < party_.size(); ++i) {
      if (i == party_.me) continue;
      counts.receive(i, &theirs[static_cast<size_t>(i)], sizeof(int64_t));
      counts.send(i, &request.send_counts[static_cast<size_t>(i)], sizeof(int64_t));
    }
    counts.wait(turn);
    theirs[static_cast<size_t>(party_.me)] = request.send_counts[static_cast<size_t>(party_.me)];
    for (size_t i = 0; i < size_; ++i)
      if (theirs[i] != request.receive_counts[i])
        turn.fault(fmt::format("all_to_all: rank {} sends {} elements to rank {}, which expects {}", i, theirs[i],
                               party_.me, request.receive_counts[i]));
    for (int i = 0; i < party_.size(); ++i) {
      const auto k = static_cast<size_t>(i);
      const char* from = at(request.input, request.send_offsets[k], width);
      char* to = at(request.output, request.receive_offsets[k], width);
      if (i == party_.me) {
        std::memcpy(to, from, static_cast<size_t>(theirs[k]) * width);
        continue;
      }
      batch.receive(i, to, static_cast<size_t>(theirs[k]) * width);
      batch.send(i, from, static_cast<size_t>(request.send_counts[k]) * width);
    }
    batch.wait(turn);
  }

  // A small message goes on its way while this rank goes on.
  void send(Turn& turn) {
    const Request& request = turn.request;
    const int to = static_cast<int>(request.root);
    const size_t bytes = storage_bytes(request.dtype, request.count());
    while (outbox_.size() > kMostLetters) {
      outbox_.front().batch.wait(turn);
      outbox_.pop_front();
    }
    Letter& letter = outbox_.emplace_back(Letter{turn.digest, {}, Batch(*this, 2)});
    const char* data = static_cast<const char*>(request.input);
    if (bytes <= kLetter) letter.data.assign(data, data + bytes), data = letter.data.data();
    letter.batch.send(to, &letter.digest, sizeof letter.digest);
    letter.batch.send(to, data, bytes);
    if (bytes <= kLetter) return;
    letter.batch.wait(turn);
    outbox_.pop_back();
  }

  void receive(Turn& turn) {
    const Request& request = turn.request;
    const int from = static_cast<int>(request.root);
    uint64_t letter = 0;
    Batch first(*this, 2), batch(*this, 2);
    first.receive(from, &letter, sizeof letter);
    first.wait(turn);
    if (letter != turn.digest) turn.disagree();
    batch.receive(from, request.output, storage_bytes(request.dtype, request.count()));
    batch.wait(turn);
  }

  struct Letter {
    uint64_t digest;
    std::vector<char> data;
    Batch batch;
  };

  const Party party_;
  const size_t size_;
  std::shared_ptr<Transport> transport_;
  const bool own_;  // of this group
  const std::string name_;
  const uint64_t tag_;
  Greeting mine_{};
  std::vector<Greeting> greetings_;
  std::vector<char> scratch_, segment_;
  std::deque<Letter> outbox_;  // on their way
  Guard guard_;
};

}  // namespace

std::unique_ptr<Fabric> by_messages(const Party& party, std::shared_ptr<Transport> transport, bool own,
                                    const std::string& name, uint64_t group) {
  return std::make_unique<Messages>(party, std::move(transport), own, name, group);
}

}  // namespace cairn::comm
