// The meeting point of a job, a thread of rank 0: takes the ranks in, hands round what they tell each other while groups and
// transports are set up, and finds out who is at fault when a collective does not go on.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "comm/sockets.h"

namespace cairn::comm {

/// What a rank of the job is called in messages: "rank 2 (process 4711 on worker-3)".
std::string rank_text(const Json& member, int rank);

/// What the end of the connection between rank 0 and another rank means. Where both are processes of one machine, the one that
/// reads this end looks whether the other goes on.
std::string lost_text(const std::vector<Json>& members, int rank, int reader);

/// Proof that somebody knows the job's token, without showing it.
std::string proof(const std::string& token, const std::string& nonce);

class Hub {
 public:
  /// `own`: the hub's end of the connection to rank 0. Waits so many seconds for the ranks to come.
  Hub(Socket listener, Socket own, std::string token, int size, double connect_timeout);
  ~Hub();
  Hub(const Hub&) = delete;
  /// In the child of a fork.
  void abandon();

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest {  // a connection that has not shown the token yet
    Socket socket;
    FrameReader frames{8192};
    std::string nonce;
    Clock::time_point until;
  };
  struct Seat {
    Socket socket;
    FrameReader frames;
    Json about;  // host, pid
    std::string nonce;
    bool left = false, gone = false;
  };
  struct Exchange {
    std::vector<int> ranks;
    std::map<int, std::string> parts;
  };
  struct Inquiry {
    Json report;  // of the rank that asks
    std::map<int, Json> answers;
    Clock::time_point until;
  };

  void serve();
  double seconds_until_next() const;
  void accept_guest();
  bool greet(Guest& guest);  // false: the connection is over
  std::string refusal(const Guest& guest, const Json& hello) const;
  void seat(int rank, Socket socket, const Json& hello);
  void hear(int rank, const Json& message);
  void take_part(int rank, const Json& message);
  void lose(int rank);
  void inquire(const Json& report);
  void answer(int rank, const Json& message);
  void conclude();
  void tell_all(const Json& message);
  void fault(const std::string& text, int rank);
  void late_comers();
  void end();  // in a catch block: tells all and leaves them

  Socket listener_, wake_, woken_;
  const std::string token_;
  std::vector<Seat> seats_;
  std::vector<Guest> guests_;
  size_t seated_ = 0, refused_ = 0;
  Clock::time_point open_until_;
  std::map<std::string, Exchange> exchanges_;
  std::optional<Inquiry> inquiry_;
  bool failed() const { return !fault_.is_null(); }
  Json fault_;  // what all have been told
  std::thread thread_;
};

/// What is said of a rank that gives no status.
inline constexpr std::string_view kSilent = "does not answer (it is stopped, or its machine is not reached)";

/// Who is at fault, from the status of every rank that answered; the report is that of the rank which asked.
struct Verdict {
  std::string text;
  int rank = -1;  // at fault, if it is one
};
Verdict judge(const Json& report, const std::map<int, Json>& answers, const std::vector<Json>& members,
              const std::set<int>& left);

}  // namespace cairn::comm
