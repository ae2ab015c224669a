#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ext/stdio_sync_filebuf.h>
#include <iostream>

#include "console.h"
#include "support/fault.h"
#include "support/part_file.h"

namespace cairn::cli {
namespace {

/// One of our streams: after the first fault everything is dropped.
struct Stream {
  int descriptor;
  int fault = 0;
};
Stream output_stream{STDOUT_FILENO}, note_stream{STDERR_FILENO};

ssize_t write_stream(void* cookie, const char* data, size_t size) {
  auto& stream = *static_cast<Stream*>(cookie);
  for (size_t done = 0; done < size && !stream.fault;) {
    const ssize_t count = ::write(stream.descriptor, data + done, size - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {  // somebody made it non-blocking
      pollfd ready{stream.descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      stream.fault = errno;
    }
  }
  return static_cast<ssize_t>(size);
}

void take_closed_numbers() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // reading and writing fail as before
}

/// `stdout` and `stderr` are variables in the C library that we build for.
FILE* checked(Stream& stream, FILE* before, int buffering) {
  FILE* file = ::fopencookie(&stream, "w", {nullptr, write_stream, nullptr, nullptr});
  if (!file) return before;
  std::setvbuf(file, nullptr, buffering, BUFSIZ);
  return file;
}

void check_streams() {
  stdout = checked(output_stream, stdout, ::isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
  stderr = checked(note_stream, stderr, _IONBF);
  static auto* cout_buffer = new __gnu_cxx::stdio_sync_filebuf<char>(stdout);  // used until the process is gone
  static auto* cerr_buffer = new __gnu_cxx::stdio_sync_filebuf<char>(stderr);
  std::cout.rdbuf(cout_buffer);
  std::cerr.rdbuf(cerr_buffer);
}

char program_name[64];

void end_by_signal(int number) {
  hold_part_files();
  const bool wrote = remove_part_files() > 0;
  if (number != SIGPIPE && (wrote || number != SIGINT)) {
    const char* name = ::sigabbrev_np(number);
    for (const char* part : {"error: ", static_cast<const char*>(program_name), ": ended by SIG", name ? name : "",
                             wrote ? "; the file that was being written is as it was before\n" : "\n"})
      if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

char limit_sentence[192];

void end_late(int) {
  hold_part_files();
  remove_part_files();
  (void)!::write(STDERR_FILENO, limit_sentence, std::strlen(limit_sentence));
  ::_exit(1);
}

int failure_status;

/// A file that the command reads became shorter, which has been told.
void end_for_lost_page(int) {
  hold_part_files();
  remove_part_files();
  ::_exit(failure_status);
}

/// Fires once after so many seconds; 0: never.
void set_timer(double seconds) {
  const double whole = std::floor(seconds);
  itimerval value{};
  value.it_value = {static_cast<time_t>(whole), static_cast<suseconds_t>((seconds - whole) * 1e6)};
  ::setitimer(ITIMER_REAL, &value, nullptr);
}

/// A signal that the parent has ignored stays ignored.
void handle(int number, void (*handler)(int)) {
  struct sigaction before {
  }, action{};
  action.sa_handler = handler;
  if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) ::sigaction(number, &action, nullptr);
}

void handle_signals() {
  for (int number : {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXCPU}) handle(number, end_by_signal);
  handle(SIGBUS, end_for_lost_page);
  handle(SIGXFSZ, [](int) {});  // the write fails with EFBIG; a program that we start finds the default again
}

/// Takes the stack that kernels need where addresses are limited: one that has to grow later would end the process without a word.
[[gnu::noinline]] void grow_limited_stack() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  constexpr size_t kBytes = 512 << 10, kPage = 4096;
  char pages[kBytes];
  for (size_t at = 0; at < kBytes; at += kPage) static_cast<volatile char*>(pages)[at] = 0;
}

}  // namespace

Process::Process(std::string name, int failure) : failure_(failure) {
  grow_limited_stack();
  take_closed_numbers();
  name.copy(program_name, sizeof program_name - 1);
  check_streams();
  failure_status = failure;
  handle_signals();
}

LastLimit::LastLimit(double seconds) {
  constexpr double kLongest = 1e8;  // of a timer
  if (seconds <= 0 || seconds > kLongest) return;
  const std::string sentence =
      fmt::format("{} {}: stopped after {} seconds, the time it was given\n", red("error:"), program_name, seconds);
  sentence.copy(limit_sentence, sizeof limit_sentence - 1);
  ::signal(SIGALRM, end_late);
  set_timer(1.25 * seconds + 0.1);
}

LastLimit::~LastLimit() { set_timer(0); }

int Process::finish(int status) const {
  std::fflush(stdout);
  if (!output_stream.fault) return status;
  if (output_stream.fault == EBADF)
    note(fmt::format("{} {}: standard output is closed", red("error:"), program_name));
  else if (output_stream.fault != EPIPE)
    note(fmt::format("{} {}: standard output cannot be written: {}", red("error:"), program_name,
                     reason(output_stream.fault)));
  return std::max(status, failure_);
}

int Process::fail() const {
  note(fmt::format("{} {}: {}", red("error:"), program_name, current_fault().what()));
  return failure_;
}

}  // namespace cairn::cli
