#include "attach.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "observe/dynamic.h"
#include "observe/profile_options.h"
#include "profile.h"
#include "support/process_state.h"
#include "worker.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kIdle = 30 * 60 * 1000;  // ms, as on the platform
constexpr auto kLookAgain = std::chrono::milliseconds(50);

/// TextLines from a file descriptor.
class TextLines {
 public:
  explicit TextLines(int file) : file_(file) {}
  /// The next whole line; nothing at the end.
  std::optional<std::string> next() {
    size_t end;
    while ((end = text_.find('\n')) == std::string::npos) {
      char bytes[4096];
      const ssize_t count = ::read(file_, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return std::nullopt;
      text_.append(bytes, static_cast<size_t>(count));
    }
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }
  bool has_line() const { return text_.find('\n') != std::string::npos; }

 private:
  int file_;
  std::string text_;
};

/// The process at the other end.
class Listener {
 public:
  explicit Listener(int socket) : socket_(socket), lines_(socket) {}
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  int socket() const { return socket_; }
  /// What is answered behind "ok"; throws Error with what is answered behind "error: ".
  std::string ask(const std::string& line) {
    const std::string text = line + "\n";
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) < 0) fail(ErrorKind::io, "", "the process has ended");
    return answer();
  }
  std::string answer() {
    std::optional<std::string> line = lines_.next();
    if (!line) fail(ErrorKind::io, "", "the process has ended");
    if (!line->starts_with("ok")) fail(ErrorKind::invalid_argument, "", "{}", line->substr(line->find(' ') + 1));
    return line->size() > 3 ? line->substr(3) : "";
  }

 private:
  int socket_;
  TextLines lines_;
};

/// Null when nobody listens there; throws Error when another one is served.
std::unique_ptr<Listener> connect_to(int64_t pid) {
  const std::string path = dynamic_socket(pid);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return nullptr;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return nullptr;
  auto listener = std::make_unique<Listener>(made);
  if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nullptr;
  listener->answer();
  return listener;
}

/// The process or one that it has started, whichever listens; null: none does.
std::unique_ptr<Listener> connect_below(int64_t pid) {
  const fs::path all = dynamic_socket(0);
  const std::string prefix = all.filename().string().substr(0, all.filename().string().size() - 1);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(all.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const int64_t found = std::strtoll(name.c_str() + prefix.size(), nullptr, 10);
    int64_t at = found;
    while (at > 1 && at != pid) at = process_state(at).value_or(ProcessState()).parent;
    if (at != pid) continue;
    if (auto listener = connect_to(found)) return listener;
  }
  return nullptr;
}

/// What one line asks for; false: to leave.
bool obey(Listener& process, const std::string& line, const Json& options) try {
  if (line == "quit") return false;
  if (line == "start") {
    process.ask("start " + options.dump());
    fmt::print("recording\n");
  } else if (line == "stop") {
    const std::string folder = process.ask("stop");
    profile::export_recording(folder);
    fmt::print("recorded: {}\n", folder);
  } else if (!line.empty()) {
    fmt::print(stderr, "'{}' is neither start, stop nor quit\n", line);
  }
  return true;
} catch (const Error& fault) {
  fmt::print(stderr, "{} {}\n", red("error:"), fault.what());
  return true;
}

void take_lines(Listener& process, const Json& options) {
  TextLines input(STDIN_FILENO);
  const bool prompts = ::isatty(STDIN_FILENO) != 0;
  while (true) {
    if (prompts) fmt::print("> ");
    std::fflush(stdout);
    pollfd ready[] = {{STDIN_FILENO, POLLIN, 0}, {process.socket(), POLLIN, 0}};
    const int found = input.has_line() ? 1 : ::poll(ready, 2, kIdle);
    if (found == 0) return fmt::print("nothing was asked for in 30 minutes\n");
    if (found < 0 && errno != EINTR) return;
    if (!input.has_line() && ready[1].revents && !ready[0].revents) return fmt::print("the process has ended\n");
    std::optional<std::string> line = input.next();
    if (!line || !obey(process, *line, options)) return;
  }
}

}  // namespace

int record_on_request(uint32_t pid, const std::vector<std::string>& command, const std::string& output, Json options) {
  options["output"] = fs::absolute(output).string();
  parse_profile_options(options.dump());  // what is wrong is said before anything runs
  std::optional<Command> started;
  std::unique_ptr<Listener> process;
  if (command.empty()) {
    process = connect_to(pid);
    if (!process)
      fail(ErrorKind::not_found, std::to_string(pid),
           "does not listen; start the program with PROFILING_MODE=dynamic, and let it load a model");
  } else {
    ::setenv("PROFILING_MODE", "dynamic", 1);
    started.emplace(command);
    while (!(process = connect_below(started->pid())) && !started->has_ended()) std::this_thread::sleep_for(kLookAgain);
    if (!process)
      fail(ErrorKind::not_found, command[0], "ended with status {} and ran no model of Cairn", started->wait());
  }
  take_lines(*process, options);
  process = nullptr;  // what is being recorded ends
  return started ? started->wait() : 0;
}

}  // namespace cairn::cli
