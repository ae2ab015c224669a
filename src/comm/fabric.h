// How the ranks of one group carry out collectives: through memory that they share, or by messages (messages.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "comm/member.h"
#include "comm/request.h"
#include "support/function_ref.h"

namespace cairn::comm {

/// The members of a group as ranks of the job, and this process's place among them.
struct Party {
  std::vector<int> ranks;
  int me = 0;
  int size() const { return static_cast<int>(ranks.size()); }
};

/// One collective under way. Measures how long it waits for other ranks, and gives up when one is dead or overdue.
class Turn {
 public:
  /// `asked`: the ranks of the job that take part, all of the group or the two of a message.
  Turn(const Request& given, uint64_t its_digest, Member& job, const Party& group, std::span<const int> asked,
       double most_seconds)
      : request(given), digest(its_digest), member_(job), party_(group), asked_(asked), timeout_(most_seconds) {}

  const Request& request;
  const uint64_t digest;
  bool spins = true;  // whether waits may keep a processor busy for a short time
  double waited = 0;  // seconds

  using Clock = std::chrono::steady_clock;
  /// Called every 20 ms or so, on the thread that makes the call, by a wait for member `other` that began at `since`. Throws
  /// Error.
  void look(int other, Clock::time_point since);
  /// This rank has seen that the digests differ. Throws Error io.
  [[noreturn]] void disagree();
  /// The connection to a member broke. Throws Error io, with what the hub knows of it, when it does.
  [[noreturn]] void broken(int other, const std::string& why);
  /// Ends the job with this message. Throws Error io.
  [[noreturn]] void fault(const std::string& text);

 private:
  Member& member_;
  const Party& party_;
  const std::span<const int> asked_;
  const double timeout_;
  Clock::time_point left_since_ = Clock::time_point::max();
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual std::string name() const = 0;
  /// Carries out the collective. Requires at least two members.
  virtual void run(Turn& turn) = 0;
};

/// The fabric of members that are all on this host; null where they cannot share memory, which `why` explains. All members
/// call it.
std::unique_ptr<Fabric> share_memory(Member& member, const std::string& what, const Party& party, std::string& why);

class Transport;
/// Of members that reach each other through the transport, which numbers them as the job does, or, where it is `own`, as the
/// group; `group`: a number that only this group has.
std::unique_ptr<Fabric> by_messages(const Party& party, std::shared_ptr<Transport> transport, bool own,
                                    const std::string& name, uint64_t group);

/// The bytes of elements [first, first + count) of a tensor.
inline char* at(const void* data, int64_t element, size_t size) {
  return const_cast<char*>(static_cast<const char*>(data)) + element * static_cast<int64_t>(size);
}

/// The elements of an all_reduce or reduce: one tensor, or several one after the other, called pieces.
class Elements {
 public:
  /// The operand (or the result) of the request, which has the same pieces.
  static Elements operand(const Request& request);
  static Elements result(const Request& request);
  /// One piece.
  Elements(char* data, int64_t count, size_t width) : width_(width), one_{data, 0, count} {}
  /// Copies elements [first, first + count) to or from row-major memory.
  void read(int64_t first, int64_t count, char* to) const;
  void write(int64_t first, int64_t count, const char* from) const;
  /// Calls visit(char* data, size_t bytes) for what each piece has of these elements.
  template <class Visit>
  void each(int64_t first, int64_t count, Visit visit) const;
  /// Where this element lies.
  char* place(int64_t first) const;
  void clear() const;

 private:
  struct Piece {
    char* data;
    int64_t first, count;
  };
  Elements(const Request& request, const void* one, std::span<const void* const> several);
  std::span<const Piece> pieces() const { return several_.empty() ? std::span(&one_, 1) : std::span(several_); }
  std::span<const Piece> from(int64_t first) const;

  size_t width_;
  Piece one_{};
  std::vector<Piece> several_;
};

template <class Visit>
void Elements::each(int64_t first, int64_t count, Visit visit) const {
  for (const Piece& piece : from(first)) {
    if (count == 0) return;
    const int64_t now = std::min(count, piece.first + piece.count - first);
    visit(at(piece.data, first - piece.first, width_), static_cast<size_t>(now) * width_);
    first += now, count -= now;
  }
}

/// The elements of part `i` when `count` elements are cut into `parts`; all parts begin at multiples of a cache line.
struct Part {
  int64_t first, count;
};
Part part_of(int64_t count, int parts, int i);

}  // namespace cairn::comm
