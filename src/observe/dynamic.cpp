#include "observe/dynamic.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "observe/recorder.h"
#include "support/fault.h"

namespace cairn {

namespace {

constexpr size_t kLongestLine = 1 << 16;

void say(int client, const std::string& line) {
  std::string text = line + "\n";
  // Errors are ignored: a closed connection is noticed when reading.
  static_cast<void>(::send(client, text.data(), text.size(), MSG_NOSIGNAL));
}

/// The connection to one client.
class Client {
 public:
  explicit Client(int socket) : socket_(socket) { say(socket_, "ok"); }
  ~Client() {
    try {
      if (recording_) stop_profile();
    } catch (const Error& fault) {
      cairn::note(fmt::format("profile: {}", fault.what()));
    }
    ::close(socket_);
  }
  Client(const Client&) = delete;

  int socket() const { return socket_; }
  /// Reads and handles available input; false when the client has finished.
  bool read() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) return count < 0 && errno == EINTR;
    text_.append(bytes, static_cast<size_t>(count));
    for (size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      const std::string line = text_.substr(0, end);
      if (line == "quit") return false;
      say(socket_, answer(line));
    }
    return text_.size() < kLongestLine;
  }

 private:
  std::string answer(const std::string& line) try {
    if (line.starts_with("start ")) {
      if (recording_) return "error: a recording is on already";
      start_profile(parse_profile_options(std::string_view(line).substr(6)));
      recording_ = true;
      return "ok";
    }
    if (line != "stop") return fmt::format("error: '{:.80}' is neither start, stop nor quit", line);
    if (!recording_) return "error: none is being recorded";
    recording_ = false;
    return "ok " + stop_profile();
  } catch (const Error& fault) {
    return fmt::format("error: {}", fault.what());
  }

  int socket_;
  std::string text_;
  bool recording_ = false;
};

bool is_ours(int client) {
  ucred who{};
  socklen_t size = sizeof who;
  return ::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == ::geteuid();
}

/// Serves one client; refuses others meanwhile.
void serve(int listener, int first) {
  Client client(first);
  while (true) {
    pollfd ready[] = {{client.socket(), POLLIN, 0}, {listener, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (ready[1].revents) {
      const int other = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (other >= 0) say(other, "error: another msprof is attached"), ::close(other);
    }
    if (ready[0].revents && !client.read()) return;
  }
}

void listen_loop(int listener) {
  while (true) {
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0 && errno != EINTR && errno != ECONNABORTED) return;
    if (client < 0) continue;
    if (is_ours(client))
      serve(listener, client);
    else
      ::close(client);
  }
}

std::string* path_in_use = nullptr;  // of this process's socket
pid_t listening = 0;

void remove_socket() {
  if (::getpid() == listening) ::unlink(path_in_use->c_str());
}

}  // namespace

std::string dynamic_socket(int64_t pid) {
  const char* home = std::getenv("HOME");
  if (!home || !*home) fail(ErrorKind::not_found, "HOME", "is not set, so there is no place for the socket");
  return fmt::format("{}/dynamic_profiling_socket_{}", home, pid);
}

void listen_for_clients() {
  const std::string path = dynamic_socket(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail(ErrorKind::io, path, "is too long for the name of a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::unlink(path.c_str());  // left by a former process with the same id
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(listener, 4) != 0) {
    const int error = errno;
    if (listener >= 0) ::close(listener);
    fail(ErrorKind::io, path, "cannot be listened at: {}", reason(error));
  }
  path_in_use = new std::string(path);
  listening = ::getpid();
  std::atexit(remove_socket);
  std::thread([listener] { listen_loop(listener); }).detach();
}

}  // namespace cairn
