#include "capi/user_call.h"

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <mutex>

namespace cairn::capi {

namespace {

struct Running {
  const char* op = nullptr;
  const char* part = nullptr;
  const char* library = nullptr;
};
thread_local Running running;

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction earlier[NSIG];

const char* crash_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "a wrong address";
    case SIGBUS: return "a bus error";
    case SIGFPE: return "an integer division";
    case SIGILL: return "a wrong instruction";
    default: return "abort()";
  }
}

void write_out(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

/// The signal handler: names the operator whose code crashed, then continues with the previous handler.
void crashed(int signal, siginfo_t* info, void* context) {
  if (running.op) {
    for (const char* text : {"\nerror: ", running.op, ": its ", running.part, " crashed (", crash_name(signal),
                             "); it is from ", running.library, "\n"})
      write_out(text);
    running = {};
  }
  const struct sigaction& before = earlier[signal];
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Installs the handlers once per process; installing them per call would conflict between threads.
void watch_crashes() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : kCrashes) {
      struct sigaction action {};
      action.sa_sigaction = crashed;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
      sigaction(signal, &action, &earlier[signal]);
    }
  });
}

}  // namespace

UserCall::UserCall(const OpDef& op, const AttributeView& attributes, const char* part)
    : op_(op), row_(user_row(op)), part_(part) {
  for (const AttrDef& declared : op.attributes)
    attributes_.push_back(shown_.attribute(declared.name, attributes.get(declared.name)));
  call_ = {sizeof call_, &row_.registry, this, row_.row.user, attributes_.data(), attributes_.size()};
}

void UserCall::enter() {
  watch_crashes();
  before_ = {running.op, running.part, running.library};
  running = {op_.name, part_, row_.library.c_str()};
}

void UserCall::leave() { running = {before_.op, before_.part, before_.library}; }

void UserCall::refuse(ErrorKind kind, const std::string& message) const {
  throw Error(kind, op_.name, fmt::format("{} of {}: {}", part_, row_.library, message));
}

}  // namespace cairn::capi
