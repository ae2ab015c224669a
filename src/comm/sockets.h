// TCP sockets and frames of JSON: how the ranks of a job meet and tell each other of faults. No tensor goes this way.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cairn::comm {

using Json = nlohmann::json;

/// Owns a file descriptor.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct Address {
  std::string host;
  int port = 0;

  /// "host:port" or "[::1]:port". Throws Error invalid_argument.
  static Address parse(const std::string& text);
  std::string text() const;
};

/// A socket that listens on this address alone; port 0 takes a free one. Throws Error io.
Socket listen_on(const Address& address);
int port_of(const Socket& listener);
/// One attempt to connect; no socket when nobody answers within the time. Throws Error io when the host is unknown.
Socket connect_to(const Address& address, double seconds);
/// This host's address on the way to the other side.
std::string own_host(const Socket& socket);
/// Two connected ends.
std::pair<Socket, Socket> socket_pair();

/// Sends a whole frame; false when the other side is gone or takes nothing for five seconds.
bool send_frame(const Socket& socket, const Json& message);

/// Puts received bytes together to frames.
class FrameReader {
 public:
  explicit FrameReader(size_t most = 1 << 24) : most_(most) {}
  /// Reads what has arrived; false at the end of the connection, or when the bytes are no frame.
  bool read(const Socket& socket);
  std::optional<Json> take();

 private:
  size_t most_;
  std::string bytes_;
};

/// Lower-case hexadecimal digits.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& digits);
/// So many random bytes as hexadecimal digits.
std::string random_hex(size_t bytes);

}  // namespace cairn::comm
