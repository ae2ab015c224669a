// A rank's connection to the hub: joins, tells what this rank is about to do, and learns of ranks that fail or leave.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/request.h"
#include "comm/sockets.h"

namespace cairn::comm {

class Member {
 public:
  struct Options {
    int rank = 0, size = 1;
    std::string token;
    double connect_timeout = 120, timeout = 60;
    Json about;  // of this process: host, pid
  };
  /// `connect` makes one attempt to reach the hub. Throws Error io when the job does not come together.
  Member(const Options& options, const std::function<Socket(double seconds)>& connect);
  ~Member();
  Member(const Member&) = delete;
  /// In the child of a fork.
  void abandon();

  const std::vector<Json>& members() const { return members_; }
  void set_timeout(double seconds) { timeout_.store(seconds); }
  double timeout() const { return timeout_.load(); }
  /// What every one of the ranks gives, in their order. All call it with equal ranks; `what` names the purpose in errors.
  std::vector<std::string> exchange(const std::string& what, const std::vector<int>& ranks, const std::string& part);

  /// Notes that this rank calls its next collective of the group; returns its number, from 1.
  uint64_t begin(const Request& request, uint64_t digest);
  /// Throws Error io once the job has failed.
  void check() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Whether the rank has left the job in good order.
  bool left(int rank) const { return left_[static_cast<size_t>(rank)].load(std::memory_order_acquire); }
  /// Ends the job on all ranks because this one has waited so long in its last collective of the group with these ranks; the
  /// hub finds out for whom. Throws Error io.
  [[noreturn]] void overdue(const Request& request, std::span<const int> ranks, double waited);
  /// Ends the job on all ranks with this message.
  void fault(const std::string& text);
  /// Returns once the job has failed, or after so many seconds.
  void await_failure(double seconds);
  /// Tells the others, and waits until they have left as well, at most `seconds`.
  void leave(double seconds);
  std::string failure() const;

 private:
  struct Call {
    uint64_t number = 0, digest = 0;
    Kind kind;
    Reduction reduction;
    std::string name, place;
    DType dtype;
    std::vector<int64_t> dims, counts;
    int64_t root, tag;
    std::string text() const;
  };

  void meet(const Options& options, const std::function<Socket(double)>& connect);
  void listen();
  void hear(const Json& message);
  void send(const Json& message);
  void fail_with(const std::string& text);
  /// Lets the hub find out for whom this rank waits; `where` completes "waited 3 s". Throws Error io.
  [[noreturn]] void inquire(Json report, const std::string& where);
  Json calls() const;

  const int rank_;
  std::atomic<double> timeout_;  // seconds
  Socket hub_, wake_, woken_;
  FrameReader frames_;
  std::vector<Json> members_;
  std::vector<std::atomic<bool>> left_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable news_;
  bool no_news_ = false;  // rank 0 has left, and with it the hub
  std::mutex sending_;
  std::string failure_;
  std::map<std::string, std::vector<std::string>> exchanged_;
  std::map<std::string, uint64_t> exchanges_;
  std::map<std::string, Call, std::less<>> calls_;  // the last of each group
  std::thread thread_;
};

}  // namespace cairn::comm
