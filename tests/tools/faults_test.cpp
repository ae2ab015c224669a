// Every command where its streams, its disk, its memory or its threads fail, and where it is told to end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sanitized.h"
#include "tools/command_folder.h"

namespace cairn {
namespace {

struct Row {
  const char* line;  // @ is the folder of the programs
  int status = 0;
};

class Faults : public CommandFolder {};

/// One line or more for each command; `cairn --help` names the verbs that must be among them.
constexpr Row kCommands[] = {
    {"cairn --help"},
    {"cairn --version"},
    {"cairn", 1},
    {"cairn run --help"},
    {"cairn nothing", 1},
    {"cairn show m.cairn"},
    {"cairn show --text m.cairn"},
    {"cairn show missing.om", 1},
    {"cairn freeze m.cairn -o f.pb", 1},
    {"cairn convert m.cairn -o new.om"},
    {"cairn quantize m.om --weights-only 8 -o q.om"},
    {"cairn quantize m.om --data x.npz -o q.om --report q.html"},
    {"cairn quantize m.om --data missing.npz -o q.om", 1},
    {"cairn run m.om"},
    {"cairn run m.om -o results"},
    {"cairn bench m.om --seconds 0 --runs 3"},
    {"cairn verify m.om --against m.cairn", 1},
    {"cairn diff m.om m.cairn"},
    {"cairn why m.om dense/MatMul"},
    {"cairn check m.om"},
    {"cairn profile -o prof -- @/cairn run m.om"},
    {"cairn migrate scripts", 1},
    {"cairn migrate scripts --diff", 1},
    {"cairn migrate scripts -o moved"},
    {"cairn op list"},
    {"cairn op test missing.so", 1},
    {"cairn train m.onnx --data x.npz --loss mse --epochs 1 -o t.onnx -o w.npz --checkpoint c.npz"},
    {"cairn train missing.onnx --data x.npz --loss mse", 1},
    {"cairn compare results/y.npy results/y.npy"},
    {"cairn profile merge ranks -o job.trace"},
    {"cairn profile merge missing", 1},
    {"cairn data inspect t.csv"},
    {"cairn data convert t.csv -o t.tfrecord"},
    {"cairn data inspect missing.tfrecord", 1},
    {"cairn simulate m.om --batch 4 --ranks 2,8 --network 5us,100Gb/s"},
    {"cairn simulate missing --ranks 2", 1},
    {"cairn launch -n 2 @/cairn check m.om"},
    {"cairn launch -n 2 @/cairn run missing.om", 1},
    {"atc --help"},
    {"atc --singleop=missing.json --output=ops --soc_version=Ascend310", 255},
    {"atc --mode=6 --om=m.om"},
    {"omg --help"},
    {"omg --model=missing.pb --framework=3 --output=o", 255},
    {"msame --model m.om --output out"},
    {"msprof --output=prof @/cairn run m.om"},
    {"msaccucmp --help"},
    {"msaccucmp compare -m missing -g results", 1},
};
/// They run with Python (tests/python/test_faults.py, tests/python/mindspore).
const std::set<std::string> kElsewhere = {"tf1", "port", "ms"};

/// The verbs that a help names.
std::vector<std::string> verbs_in(const std::string& help) {
  std::vector<std::string> verbs;
  size_t at = help.find("SUBCOMMANDS:");
  if (at == std::string::npos) at = help.find("Subcommands:");
  if (at == std::string::npos) return verbs;
  for (at = help.find("\n  ", at); at != std::string::npos && help.compare(at, 3, "\n  ") == 0;) {
    const std::string verb = help.substr(at + 3, help.find(' ', at + 3) - at - 3);
    if (!verb.empty()) verbs.push_back(verb);
    at = help.find('\n', at + 1);
  }
  return verbs;
}

TEST_F(Faults, EveryCommandIsHere) {
  ASSERT_EQ(run("cairn --help").status, 0);
  std::set<std::string> verbs = kElsewhere;
  for (const Row& row : kCommands)
    if (const std::string line = row.line; line.starts_with("cairn "))
      verbs.insert(line.substr(6, line.find(' ', 6) - 6));
  const std::vector<std::string> named = verbs_in(said("out"));
  EXPECT_GT(named.size(), 10u);
  for (const std::string& verb : named) EXPECT_TRUE(verbs.contains(verb)) << verb;
}

TEST_F(Faults, WrongUseIsToldByTheVerbsName) {
  ASSERT_EQ(run("cairn --help").status, 0);
  for (const std::string& verb : verbs_in(said("out"))) {
    if (kElsewhere.contains(verb)) continue;
    EXPECT_GT(run(fmt::format("cairn {} --no-such-option", verb)).status, 0) << verb;
    EXPECT_TRUE(said("errors").starts_with(fmt::format("error: {}: ", verb))) << said("errors");
  }
  for (const char* line : {"cairn launch -n 2", "cairn launch -n none x", "cairn launch -n 2 missing.py"}) {
    EXPECT_EQ(run(line).status, 1) << line;
    EXPECT_TRUE(said("errors").starts_with("error: launch: ")) << said("errors");
  }
}

TEST_F(Faults, NoLineOfHelpHasMoreThan100Columns) {
  std::vector<std::string> open = {"cairn", "atc", "omg", "msame", "msprof", "msaccucmp"};
  for (size_t i = 0; i < open.size(); ++i) {
    const std::string command = open[i];
    ASSERT_EQ(run(command + " --help").status, 0) << command;
    std::istringstream help(said("out"));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << command << ": " << line;
    for (const std::string& verb : verbs_in(said("out")))
      if (!kElsewhere.contains(verb)) open.push_back(command + " " + verb);
  }
  EXPECT_GT(open.size(), 20u);
}

TEST_F(Faults, CommandsEndAsTheyShouldWhereNothingFails) {
  for (const Row& row : kCommands) EXPECT_EQ(run(row.line).status, row.status) << row.line << "\n" << said("errors");
}

TEST_F(Faults, OutputThatIsLostIsAnError) {
  for (const Row& row : kCommands) {
    const bool wrote = (run(row.line), !said("out").empty());
    const auto full = [] { open_as(STDOUT_FILENO, "/dev/full"); };
    const auto closed = [] { ::close(STDOUT_FILENO); };
    const auto broken = [] { break_pipe(STDOUT_FILENO); };
    const auto ignored = [] { break_pipe(STDOUT_FILENO), ::signal(SIGPIPE, SIG_IGN); };
    const bool itself = std::string(row.line).find('@') == std::string::npos;
    if (!wrote || !itself) continue;
    EXPECT_GT(run(row.line, full).status, 0) << row.line;
    EXPECT_NE(said("errors").find("standard output cannot be written"), std::string::npos)
        << row.line << said("errors");
    EXPECT_GT(run(row.line, closed).status, 0) << row.line;
    EXPECT_NE(said("errors").find("standard output is closed"), std::string::npos) << row.line << said("errors");
    EXPECT_EQ(run(row.line, broken).signal, SIGPIPE) << row.line;
    EXPECT_GT(run(row.line, ignored).status, 0) << row.line;
    EXPECT_EQ(said("errors").find("standard output"), std::string::npos) << row.line << said("errors");
  }
}

TEST_F(Faults, NotesThatAreLostAreNoError) {
  const std::function<void()> lost[] = {
      [] { open_as(STDERR_FILENO, "/dev/full"); },
      [] { ::close(STDERR_FILENO); },
      [] { break_pipe(STDERR_FILENO), ::signal(SIGPIPE, SIG_IGN); },
  };
  for (size_t i = 0; i < std::size(kCommands); ++i)
    EXPECT_EQ(run(kCommands[i].line, lost[i % 3]).status, kCommands[i].status) << kCommands[i].line;
  for (const char* line : {"cairn show missing.om", "cairn run m.om", "cairn migrate scripts --diff"}) {
    const int expected = run(line).status;
    for (const auto& change : lost) EXPECT_EQ(run(line, change).status, expected) << line;
  }
}

TEST_F(Faults, NoFileOfOursGetsTheNumberOfAClosedStream) {
  const auto all = [] { ::close(STDIN_FILENO), ::close(STDOUT_FILENO), ::close(STDERR_FILENO); };
  run("cairn convert m.cairn -o closed.om", all);
  EXPECT_EQ(read_file(folder_ / "closed.om"), read_file(folder_ / "m.om"));
}

/// A model that takes a while to write: 64 MB of weights.
std::string large_model() {
  return R"(module @m {
  func @main(%x: f32[1]) -> (%y: f32[4096, 4096]) {
    %s = constant {value = i64[2] (4096, 4096)} : i64[2]
    %y = broadcast_to %x, %s : f32[4096, 4096]
    return %y
  }
}
)";
}

TEST_F(Faults, AnOutputThatIsNoPlainFile) {
  const auto mkfifo_in = [&](const char* name) { return ::mkfifo((folder_ / name).c_str(), 0600); };
  fs::create_symlink("m.om", folder_ / "link.om");
  fs::create_symlink("later.om", folder_ / "new link.om");
  fs::create_directory(folder_ / "folder.om");
  ASSERT_EQ(mkfifo_in("pipe"), 0);
  const int reader = ::open((folder_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  const std::string whole = read_file(folder_ / "m.om");
  EXPECT_EQ(run("cairn convert m.cairn -o link.om").status, 0) << said("errors");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.om"));
  EXPECT_EQ(read_file(folder_ / "m.om"), whole);
  EXPECT_EQ(run("cairn convert m.cairn -o 'new link.om'").status, 0) << said("errors");
  EXPECT_TRUE(fs::is_symlink(folder_ / "new link.om"));
  EXPECT_EQ(read_file(folder_ / "later.om"), whole);
  EXPECT_EQ(run("cairn convert m.om -o m.om").status, 0) << said("errors");  // over its own input
  EXPECT_EQ(run("cairn convert m.cairn -o pipe").status, 0) << said("errors");
  std::string piped(whole.size() + 1, 0);
  EXPECT_EQ(::read(reader, piped.data(), piped.size()), static_cast<ssize_t>(whole.size()));
  ::close(reader);
  EXPECT_EQ(run("cairn convert m.cairn -o /dev/null").status, 0) << said("errors");
  EXPECT_EQ(run("cairn convert m.cairn -o /dev/stdout").status, 0) << said("errors");
  EXPECT_TRUE(said("out").starts_with(whole.substr(0, 64)));
  for (const char* output : {"folder.om", "none/m.om", "m.om/a.om", "/dev/full", "none/link.om"}) {
    EXPECT_EQ(run(fmt::format("cairn convert m.cairn -o {}", output)).status, 1) << output;
    EXPECT_NE(said("errors").find(fmt::format("error: convert: {}", output)), std::string::npos) << said("errors");
  }
  EXPECT_TRUE(parts().empty());
}

TEST_F(Faults, AFullDiskIsToldOnceAndLosesNothing) {
  const auto full = [] {
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  write_file(folder_ / "scripts" / "train.py", kScript + std::string(1000, '#'));
  std::map<std::string, std::string> before;
  for (const char* name : {"m.om", "m.onnx", "x.npz", "t.csv", "scripts/train.py"})
    before[name] = read_file(folder_ / name);
  for (const char* line : {"cairn convert m.cairn -o m.om",
                           "cairn run m.om -o full",
                           "cairn migrate scripts --in-place",
                           "cairn migrate scripts -o full",
                           "cairn migrate scripts --csv full.csv --html full.html",
                           "cairn diff m.om m.cairn -o full",
                           "msame --model m.om --output full",
                           "cairn profile -o full -- @/cairn run m.om",
                           "atc --mode=1 --om=m.om --json=full.json",
                           "cairn quantize m.om --data x.npz -o m.om",
                           "cairn quantize m.om --data x.npz --report full.html -o full.om",
                           "cairn train m.onnx --data x.npz --loss mse -o m.onnx",
                           "cairn train m.onnx --data x.npz --loss mse --checkpoint x.npz",
                           "cairn data convert t.csv -o t.csv",
                           "cairn data convert t.csv -o full.tfrecord",
                           "cairn data convert t.csv -o full.mindrecord",
                           "cairn data inspect t.csv --html full.html",
                           "cairn profile merge ranks -o full.trace",
                           "cairn simulate m.om --batch 4 --ranks 2 --network 5us,100Gb/s -o full.html",
                           "cairn launch -n 2 --log-dir full @/cairn check m.om",
                           "cairn launch -n 2 @/cairn convert m.cairn -o m.om"}) {
    for (const bool listening : {true, false}) {
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      if (!listening) ::close(ends[0]);
      const Ending ending = run(line, [&] {
        // The command's own streams are no files here: the limit is for those that it makes.
        ::dup2(listening ? ends[1] : ::open("/dev/null", O_WRONLY), STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO), ::close(ends[0]), ::close(ends[1]), ::signal(SIGPIPE, SIG_IGN);
        full();
      });
      ::close(ends[1]);
      EXPECT_EQ(ending.signal, 0) << line;
      EXPECT_NE(ending.status, 0) << line;
      EXPECT_TRUE(parts().empty()) << line << parts()[0];
      if (!listening) continue;
      std::string told(1 << 16, 0);
      told.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(ends[0], told.data(), told.size()))));
      ::close(ends[0]);
      EXPECT_NE(told.find("this process may have 0 KiB in one file"), std::string::npos) << line << "\n" << told;
    }
  }
  for (const auto& [name, content] : before) EXPECT_EQ(read_file(folder_ / name), content) << name;
}

/// Half a second in which a process was never seen running.
void wait_until_asleep(pid_t process) {
  for (int asleep = 0; asleep < 10;) {
    ::usleep(50'000);
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string stat;
    if (!std::getline(file, stat)) return;  // it has ended
    asleep = stat.find(") S") == std::string::npos ? 0 : asleep + 1;
  }
}

TEST_F(Faults, ASignalLeavesNoPartAndIsTold) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const int number : {SIGHUP, SIGTERM, SIGINT}) {
    // Waits for a reader of the pipe, with nothing written yet.
    const Ending ending = run("cairn convert m.cairn -o pipe", [&] {
      const pid_t command = ::getpid();
      if (::fork() == 0) {
        wait_until_asleep(command);
        ::kill(command, number);
        ::_exit(0);
      }
    });
    EXPECT_EQ(ending.signal, number);
    const bool told =
        said("errors").find(number == SIGHUP ? "ended by SIGHUP" : "ended by SIGTERM") != std::string::npos;
    EXPECT_EQ(told, number != SIGINT) << said("errors");
  }
}

TEST_F(Faults, AFileThatBecomesShorterWhileItIsReadIsTold) {
  std::string numbers = "0";
  for (int i = 1; i < 20'000; ++i) numbers += fmt::format(", {}", i);
  write_file(folder_ / "m.cairn", fmt::format(R"(module @m {{
  func @main(%x: f32[20000]) -> (%y: f32[20000]) {{
    %w = constant {{value = f32[20000] ({})}} : f32[20000]
    %y = mul %x, %w : f32[20000]
    return %y
  }}
}}
)",
                                              numbers));
  ASSERT_EQ(run("cairn convert m.cairn -o large.om").status, 0) << said("errors");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  // Waits for a reader of the pipe, with the model open.
  const Ending ending = run("cairn convert large.om -o pipe", [&] {
    const pid_t command = ::getpid();
    if (::fork() == 0) {
      wait_until_asleep(command);
      fs::resize_file(folder_ / "large.om", 0);
      std::ifstream reader(folder_ / "pipe");
      std::stringstream rest;
      rest << reader.rdbuf();
      ::_exit(0);
    }
  });
  EXPECT_EQ(ending.status, 1);
  EXPECT_EQ(said("errors").substr(0, 45), "error: large.om: became shorter while it was ") << said("errors");
}

TEST_F(Faults, KillsLeaveAtMostOnePart) {
  write_file(folder_ / "m.cairn", large_model());
  std::string rows = "a,b\n";
  for (int i = 0; i < 300'000; ++i) rows += fmt::format("{},{}.5\n", i, i);
  write_file(folder_ / "long.csv", rows);
  for (const char* line : {"cairn run m.cairn -o out", "cairn data convert long.csv -o long.tfrecord",
                           "cairn data convert long.csv -o long.mindrecord"}) {
    for (int i = 0; i < 15; ++i)
      run(line, [&] {
        const pid_t command = ::getpid();
        if (::fork() == 0) {
          ::usleep(20'000 + static_cast<useconds_t>(i) * 10'000);
          ::kill(command, SIGKILL);
          ::_exit(0);
        }
      });
    EXPECT_LE(parts().size(), 1u) << line;
    EXPECT_EQ(run(line).status, 0) << line << said("errors");
    EXPECT_TRUE(parts().empty()) << line;
  }
}

/// Neither threads nor processes are to be had; as root the limit does not act.
void without_threads() {
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // which takes a thread
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_NPROC, &none);
  if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(97);
}

TEST_F(Faults, CommandsDoWithoutThreads) {
  ::chmod(base_.c_str(), 0755);
  ::chmod(folder_.c_str(), 0777);
  for (const auto& each : fs::recursive_directory_iterator(folder_)) ::chmod(each.path().c_str(), 0777);
  for (const char* line : {"cairn run m.om --threads 8", "cairn bench m.om --seconds 0 --runs 2 --threads 4",
                           "cairn migrate scripts -o moved --jobs 4", "cairn migrate scripts -o again",
                           "cairn compare results/y.npy results/y.npy --threads 4", "cairn convert m.cairn -o thin.om",
                           "cairn quantize m.om --data x.npz -o q.om --threads 4",
                           "cairn train m.onnx --data x.npz --loss mse --threads 4 -o t.onnx",
                           "cairn data convert t.csv -o t.mindrecord --workers 4", "cairn data inspect t.csv",
                           "cairn profile merge ranks -o job.trace", "cairn profile export ranks",
                           "cairn simulate m.om --batch 4 --ranks 2 --network 5us,100Gb/s --threads 4"}) {
    EXPECT_EQ(run(line, without_threads).status, 0) << line << said("errors");
    const std::string errors = said("errors");
    EXPECT_LE(errors.find("threads could be started"), errors.rfind("threads could be started")) << errors;
  }
}

TEST_F(Faults, MemoryThatRunsOutIsToldInASentence) {
  if (!kMemoryCounts) GTEST_SKIP() << "sanitizer: takes terabytes of addresses for itself";
  std::string script = "import tensorflow as tf\n";
  for (int i = 0; i < 5000; ++i) script += fmt::format("x{} = tf.placeholder(tf.float32, [None, {}])\n", i, i);
  write_file(folder_ / "scripts" / "train.py", script);
  write_file(folder_ / "m.cairn", large_model());
  for (const char* line :
       {"cairn migrate scripts", "cairn run m.cairn", "cairn bench m.cairn --seconds 0 --runs 1",
        "cairn convert m.cairn -o large.om", "atc --mode=6 --om=m.om", "cairn quantize m.om --data x.npz -o q.om",
        "cairn data convert t.csv -o t.mindrecord", "cairn train m.onnx --data x.npz --loss mse -o t.onnx",
        "cairn profile merge ranks -o job.trace", "cairn launch -n 2 @/cairn run m.cairn",
        "cairn simulate m.om --batch 4 --ranks 2 --network 5us,100Gb/s"}) {
    for (const size_t megabytes : {40, 56, 68, 72, 76, 80, 96, 120, 240}) {
      const Ending ending = run(line, [&] {
        const rlimit limit{megabytes << 20, megabytes << 20};
        ::setrlimit(RLIMIT_AS, &limit);
      });
      EXPECT_EQ(ending.signal, 0) << line << " in " << megabytes << " MB: " << said("errors");
      const std::string all = said("errors") + said("out");
      EXPECT_EQ(all.find("bad_alloc"), std::string::npos) << all;
      EXPECT_EQ(all.find("terminate"), std::string::npos) << all;
      const bool loaded = all.find("error while loading") == std::string::npos;  // before anything of ours
      EXPECT_TRUE(!loaded || ending.status == 0 || all.find("rror") != std::string::npos) << line << all;
    }
  }
}

}  // namespace
}  // namespace cairn
