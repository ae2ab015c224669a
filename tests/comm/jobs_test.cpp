// Jobs of several ranks on this machine: threads with a hub and shared memory among them, and strangers who speak to the hub.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <functional>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include "comm/fabric.h"
#include "comm/hub.h"
#include "comm/job.h"
#include "comm/member.h"
#include "support/error.h"

namespace cairn::comm {
namespace {

constexpr const char* kToken = "a token";
const Address kHere{"127.0.0.1", 0};

/// A hub and its ranks, each a thread of this process.
class Ranks {
 public:
  explicit Ranks(int size, double timeout = 60) : size_(size), timeout_(timeout) {
    Socket listener = listen_on(kHere);
    port_ = port_of(listener);
    auto [own, other] = socket_pair();
    own_ = std::move(own);
    hub_ = std::make_unique<Hub>(std::move(listener), std::move(other), kToken, size, 120);
  }

  /// For rank 0, once.
  Socket first(double seconds) { return own_ ? std::move(own_) : connect_to({"127.0.0.1", port_}, seconds); }
  /// As when the process of rank 0 ends.
  void end_hub() { hub_.reset(); }
  Socket stranger() const { return connect_to({"127.0.0.1", port_}, 30); }

  /// What each rank answers: an error's sentence, or nothing.
  std::vector<std::string> run(const std::function<void(int rank, Member& member)>& work) {
    std::vector<std::string> told(static_cast<size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank)
      threads.emplace_back([&, rank] {
        try {
          Member member({rank, size_, kToken, 120, timeout_, {{"host", "here"}, {"pid", 100 + rank}}},
                        [&](double seconds) {
                          return rank == 0 ? first(seconds) : connect_to({"127.0.0.1", port_}, seconds);
                        });
          work(rank, member);
          member.leave(60);
        } catch (const Error& error) {
          told[static_cast<size_t>(rank)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    return told;
  }

 private:
  const int size_;
  const double timeout_;
  int port_ = 0;
  Socket own_;
  std::unique_ptr<Hub> hub_;
};

/// One rank's end of a group of all.
struct Seat {
  Seat(int rank, int size, Member& its) : member(its), party{std::vector<int>(static_cast<size_t>(size)), rank} {
    std::iota(party.ranks.begin(), party.ranks.end(), 0);
    std::string why;
    fabric = share_memory(member, "world", party, why);
    if (!fabric) fail(ErrorKind::io, "", "{}", why);
  }
  void run(const Request& request, double timeout = 60) {
    member.begin(request, request.digest());
    Turn turn(request, request.digest(), member, party, party.ranks, timeout);
    turn.spins = false;
    fabric->run(turn);
  }

  Member& member;
  Party party;
  std::unique_ptr<Fabric> fabric;
};

using Numbers = std::vector<float>;

/// Whole numbers, so that every order of summation gives the same.
float value(size_t rank, size_t i) { return static_cast<float>((i * 7 + rank * 13) % 31) - 15; }
float total(size_t i, size_t size) {
  float sum = 0;
  for (size_t rank = 0; rank < size; ++rank) sum += value(rank, i);
  return sum;
}
Numbers numbers_of(int rank, size_t count) {
  Numbers made(count);
  for (size_t i = 0; i < count; ++i) made[i] = value(static_cast<size_t>(rank), i);
  return made;
}

struct Collective {
  Kind kind;
  std::function<size_t(size_t count, size_t size)> result;  // elements
  std::function<float(size_t element, size_t count, size_t size, size_t rank)> expected;
};

/// Of `count` elements on each rank; the root is rank 1.
const std::vector<Collective>& collectives() {
  using N = size_t;
  static const std::vector<Collective> all = {
      {Kind::all_reduce, [](N n, N) { return n; }, [](N i, N, N size, N) { return total(i, size); }},
      {Kind::reduce, [](N n, N) { return n; }, [](N i, N, N size, N rank) { return rank == 1 ? total(i, size) : NAN; }},
      {Kind::broadcast, [](N n, N) { return n; }, [](N i, N, N, N) { return value(1, i); }},
      {Kind::all_gather, [](N n, N size) { return n * size; }, [](N i, N n, N, N) { return value(i / n, i % n); }},
      {Kind::gather, [](N n, N size) { return n * size; },
       [](N i, N n, N, N rank) { return rank == 1 ? value(i / n, i % n) : NAN; }},
      {Kind::reduce_scatter, [](N n, N size) { return n / size; },
       [](N i, N n, N size, N rank) { return total(rank * (n / size) + i, size); }},
      {Kind::scatter, [](N n, N size) { return n / size; },
       [](N i, N n, N size, N rank) { return value(1, rank * (n / size) + i); }},
      {Kind::barrier, [](N, N) { return N{0}; }, [](N, N, N, N) { return 0.f; }},
  };
  return all;
}

TEST(Jobs, CollectivesThroughSharedMemoryGiveWhatArithmeticGives) {
  for (const int size : {2, 3, 4}) {
    Ranks ranks(size);
    const auto told = ranks.run([&](int rank, Member& member) {
      Seat seat(rank, size, member);
      for (const size_t each : {1, 5, 1000, 70'000})
        for (const Collective& collective : collectives()) {
          const auto n = static_cast<size_t>(size), me = static_cast<size_t>(rank), count = each * n;
          const Numbers input = numbers_of(rank, count);
          Numbers output(collective.result(count, n), NAN);
          Request request;
          request.kind = collective.kind, request.root = 1;
          const std::vector<int64_t> dims = {static_cast<int64_t>(count)};
          request.dims = dims;
          request.input = input.data(), request.output = output.data();
          seat.run(request);
          for (size_t i = 0; i < output.size(); ++i) {
            const float expected = collective.expected(i, count, n, me);
            if (!std::isnan(expected) && output[i] != expected)
              fail(ErrorKind::io, to_string(collective.kind), "element {} is {}, not {}", i, output[i], expected);
          }
        }
    });
    EXPECT_EQ(told, std::vector<std::string>(static_cast<size_t>(size)));
  }
}

TEST(Jobs, AnEmptyOperandHasNoElementsHoweverLongItsAxes) {
  const std::vector<int64_t> dims = {int64_t{1} << 33, int64_t{1} << 33, 0};
  Request request;
  request.dims = dims;
  EXPECT_EQ(request.count(), 0);  // under a sanitizer a product that overflows is a fault
}

TEST(Jobs, RanksThatDisagreeAreNamedOnAllRanks) {
  const std::vector<int64_t> four = {4}, five = {5};
  const std::function<void(Request&)> others[] = {
      [](Request& request) { request.kind = Kind::all_gather; },
      [&](Request& request) { request.dims = five; },
      [](Request& request) { request.name = "another"; },
      [](Request& request) { request.reduction = Reduction::max; },
      [](Request& request) { request.dtype = kI32; },
  };
  for (const auto& differ : others) {
    Ranks ranks(3);
    const auto told = ranks.run([&](int rank, Member& member) {
      Seat seat(rank, 3, member);
      const Numbers input(32);
      Numbers output(32);
      Request request;
      request.kind = Kind::all_reduce, request.name = "one", request.dims = four;
      request.input = input.data(), request.output = output.data();
      if (rank == 2) differ(request);
      seat.run(request);
    });
    for (const std::string& sentence : told) {
      EXPECT_NE(sentence.find("ranks disagree on collective 1 of group world"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("rank 2"), std::string::npos) << sentence;
    }
  }
}

TEST(Jobs, ARankThatStaysAwayIsNamed) {
  Ranks ranks(2);
  const auto told = ranks.run([&](int rank, Member& member) {
    Seat seat(rank, 2, member);
    Request request;  // a barrier
    if (rank == 0) return seat.run(request, 0.2);
    member.await_failure(60);
    member.check();
  });
  for (const std::string& sentence : told)
    EXPECT_NE(sentence.find("rank 1 (process 101 on here) has not called any collective"), std::string::npos)
        << sentence;
}

std::string framed(const std::string& text) {
  std::string frame(4, '\0');
  for (size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> 8 * i);
  return frame + text;
}
void say(const Socket& socket, const std::string& bytes) {
  (void)!::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

TEST(Jobs, StrangersAreRefusedAndTheJobMeetsAllTheSame) {
  Ranks ranks(2);
  std::vector<Socket> open;
  const auto hello = [](const Json& more) {
    Json made = {{"proof", "x"}, {"rank", 1}, {"size", 2}, {"nonce", "n"}, {"about", Json::object()}};
    made.update(more);
    return framed(made.dump());
  };
  std::mt19937 random(1);
  std::string noise(5000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const std::string sayings[] = {
      "",
      noise,
      "GET / HTTP/1.1\r\n\r\n",
      std::string("\xff\xff\xff\xff", 4),
      std::string("\xff\xff\xff\x7f{", 5),
      framed(""),
      framed("null"),
      framed("[]"),
      framed("{"),
      framed("{}"),
      framed("{\"rank\": \"\xff\"}"),
      framed(std::string(8000, '[')),
      hello(Json::object()),
      hello({{"rank", -1}}),
      hello({{"rank", 1ULL << 63}}),
      hello({{"rank", 0.5}}),
      hello({{"size", 1e9}}),
      hello({{"about", "me"}}),
      hello({{"proof", 7}}),
      hello({{"nonce", nullptr}}),
  };
  for (const std::string& saying : sayings) say(open.emplace_back(ranks.stranger()), saying);
  const auto told = ranks.run([](int rank, Member& member) { Seat(rank, 2, member).run(Request()); });
  EXPECT_EQ(told, std::vector<std::string>(2));
}

/// Takes rank 1's seat with the token, so that the hub listens to all it says.
Socket seated(const Ranks& ranks, const Json& about, int size = 2) {
  Socket socket = ranks.stranger();
  FrameReader frames;
  std::optional<Json> greeting;
  while (!(greeting = frames.take()) && frames.read(socket)) std::this_thread::yield();
  send_frame(socket, {{"proof", proof(kToken, greeting->value("nonce", ""))},
                      {"rank", 1},
                      {"size", size},
                      {"nonce", "n"},
                      {"about", about}});
  return socket;
}

TEST(Jobs, ARankThatSpeaksAnotherLanguageEndsTheJobInASentence) {
  const Json exchange = {{"type", "exchange"}, {"key", "k"}, {"what", "w"}, {"ranks", {0, 1}}, {"part", ""}};
  const auto with = [](Json message, const char* key, Json value) {
    message[key] = std::move(value);
    return framed(message.dump());
  };
  const Json overdue = {{"type", "overdue"}, {"ranks", {0, 1}}, {"grace", 0.0}, {"group", "g"}, {"number", 1}};
  const std::string sayings[] = {
      framed("[]"),
      framed("7"),
      std::string("\xff\xff\xff\x7f{", 5),
      framed(R"({"type": 7})"),
      framed(R"({"type": "exchange"})"),
      with(exchange, "ranks", {0, 99}),
      with(exchange, "ranks", {-1}),
      with(exchange, "ranks", "all"),
      with(exchange, "key", 7),
      with(exchange, "part", {1}),
      with(overdue, "ranks", {0, 1, 2}),
      with(overdue, "ranks", {-5}),
      with(overdue, "number", "one"),
      with(overdue, "grace", "long"),
      with(overdue, "group", 7),
      framed(R"({"type": "fault", "text": 7})"),
  };
  for (const std::string& saying : sayings) {
    Ranks ranks(2);
    Socket other = seated(ranks, {{"host", "there"}, {"pid", 1}});
    std::thread speaks([&] {  // when the hub has heard both
      FrameReader frames;
      while (!frames.take() && frames.read(other)) std::this_thread::yield();
      say(other, saying);
      say(other, framed(R"({"type": "status", "calls": 7})"));
    });
    std::string told;
    Member::Options options{0, 2, kToken, 120, 60, {{"host", "here"}, {"pid", 100}}};
    try {
      Member member(options, [&](double seconds) { return ranks.first(seconds); });
      member.await_failure(60);
      member.check();
    } catch (const Error& error) {
      told = error.what();
    }
    speaks.join();
    EXPECT_NE(told.find("the job has failed: "), std::string::npos) << saying << told;
  }
}

TEST(Jobs, ARankThatComesAfterAnotherHasFailedHearsOfIt) {
  Ranks ranks(3);
  seated(ranks, {{"host", "there"}, {"pid", 1}}, 3).close();
  for (const int rank : {0, 2}) {
    std::string told;
    try {
      Member({rank, 3, kToken, 120, 60, {{"host", "here"}, {"pid", 100}}},
             [&](double seconds) { return rank == 0 ? ranks.first(seconds) : ranks.stranger(); });
    } catch (const Error& error) {
      told = error.what();
    }
    EXPECT_EQ(told, "rank 1 (process 1 on there) has ended without leaving the job");
  }
}

TEST(Jobs, AnAccountOfItselfThatNobodyCouldReadIsRefused) {
  for (const Json& about : {Json{{"pid", "x"}}, Json{{"host", 7}}}) {
    Ranks ranks(2);
    const Socket first = seated(ranks, about), second = seated(ranks, about);
    const auto told = ranks.run([](int, Member&) {});
    EXPECT_EQ(told, std::vector<std::string>(2));
  }
}

TEST(Jobs, MemoryThatCannotBeSharedSaysWhyOnAllRanks) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    ::signal(SIGXFSZ, SIG_IGN);
    const auto told = Ranks(2).run([](int rank, Member& member) { Seat(rank, 2, member); });
    const auto says = [](const std::string& text) { return text.find("share memory: File too large") != text.npos; };
    ::_exit(says(told[0]) && says(told[1]) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Jobs, WhoLeavesAfterRankZeroHasEndedWaitsForNobody) {
  Ranks ranks(2);
  std::promise<void> left;
  const auto told = ranks.run([&](int rank, Member& member) {
    if (rank == 0) {
      member.leave(0);
      left.get_future().wait();
      return ranks.end_hub();
    }
    while (!member.left(0)) std::this_thread::yield();
    left.set_value();
    member.leave(3600);
  });
  EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(Jobs, ProcessesJoinSumAndLeave) {
  Socket listener = listen_on(kHere);
  const int port = port_of(listener);
  listener.close();
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank)
    if (children.emplace_back(::fork()) == 0) {
      int status = 1;
      try {
        join(Json{{"rank", rank}, {"size", 3}, {"address", fmt::format("127.0.0.1:{}", port)}, {"token", kToken}}
                 .dump());
        const Numbers input = numbers_of(rank, 1000);
        Numbers output(1000);
        const std::vector<int64_t> dims = {1000};
        Request request;
        request.kind = Kind::all_reduce, request.dims = dims;
        request.input = input.data(), request.output = output.data();
        comm::run(request);
        status = 0;
        for (size_t i = 0; i < 1000; ++i)
          if (output[i] != total(i, 3)) status = 2;
        leave();
      } catch (const Error& error) {
        fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      }
      ::_exit(status);
    }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace cairn::comm
