// The processes of a job's ranks: on this host, and through one connection to each other host. What they print comes out as
// one stream; what happens to them comes out as events.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "launch_seats.h"

namespace cairn::cli {

/// Writes lines of ranks: "[2] text", in colours on a terminal, and into a file of each rank.
class RankLines {
 public:
  struct Options {
    std::string folder;     // of the files; empty: none
    bool to_error = false;  // standard output is for something else
    bool framed = false;    // for the other end of a connection, see Team::connect()
  };
  RankLines(Options options, int restart) : options_(std::move(options)), restart_(restart) {}
  ~RankLines();
  RankLines(const RankLines&) = delete;
  void line(int rank, bool error, const std::string& text);
  /// Of a host, not of a rank.
  void remark(const std::string& host, const std::string& text);

 private:
  FILE* file_of(int rank);

  Options options_;
  int restart_;
  std::map<int, FILE*> files_;
};

struct RankEvent {
  enum Kind { started, ended, stopped, continued, signalled } kind;
  int rank = -1;
  pid_t process = 0;
  int status = 0, signal = 0;  // of the end, or the signal that this program got
  bool lost = false;           // the connection to its host ended
};

class Team {
 public:
  Team(const LaunchJob& job, RankLines& lines);
  /// Kills what still runs.
  ~Team();
  Team(const Team&) = delete;

  /// The ranks of this host. Throws Error not_found when the command cannot be started.
  void start(const std::vector<Seat>& seats);
  /// The ranks of another host, through `ssh` and `cairn launch --agent` there. Lines from there start with the byte 0x1e and
  /// the rank, events with that byte and are JSON.
  void connect(const std::vector<std::string>& ssh, const std::vector<Seat>& seats);
  /// Requests of the other end of a connection arrive at this file.
  void take_orders(int file) { orders_ = file; }

  bool alive() const { return running_ > 0; }
  /// Events, at the latest after so many seconds.
  std::vector<RankEvent> wait(double seconds);
  /// To all that run, with the processes that they started.
  void signal(int number);

 private:
  struct Channel {
    int file = -1;
    bool error = false;
    std::string text;  // of an unfinished line
  };
  struct Child {
    pid_t process = 0;
    std::string host;  // of a connection
    std::vector<int> ranks;
    Channel channels[2];
    int orders = -1;
    bool running = true;
  };

  Child& spawn(const std::vector<std::string>& words, const std::vector<std::string>& variables,
               const std::vector<int>& cores, bool takes_orders);
  bool read(Child& child, Channel& channel);
  void line(Child& child, Channel& channel, const std::string& text);
  void reap(Child& child);
  void lose(Child& child, int status, int number);
  void take_signals();
  void take_order();

  LaunchJob job_;
  RankLines& lines_;
  int signals_ = -1, orders_ = -1;
  std::string order_;
  size_t running_ = 0;  // ranks
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<RankEvent> events_;
};

}  // namespace cairn::cli
