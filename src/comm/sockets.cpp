#include "comm/sockets.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "support/error.h"
#include "support/fault.h"

namespace cairn::comm {

namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failed) fail(ErrorKind::io, address.text(), "the host is not known: {}", gai_strerror(failed));
  return Addresses(list);
}

void set_option(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

bool finish_connect(int fd, double seconds) {
  pollfd waits{fd, POLLOUT, 0};
  if (poll(&waits, 1, static_cast<int>(seconds * 1e3)) != 1) return false;
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
  return code == 0;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  fd_ = other.release();
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Address Address::parse(const std::string& text) {
  const size_t colon = text.rfind(':');
  const auto refuse = [&] { fail(ErrorKind::invalid_argument, "address", "is \"{}\", expected host:port", text); };
  if (colon == std::string::npos || colon == 0) refuse();
  Address address{text.substr(0, colon), 0};
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  for (char digit : text.substr(colon + 1)) {
    if (digit < '0' || digit > '9') refuse();
    address.port = address.port * 10 + (digit - '0');
    if (address.port > 65535) refuse();
  }
  return address;
}

std::string Address::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Socket listen_on(const Address& address) {
  const Addresses found = look_up(address, AI_PASSIVE);
  Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (!socket || bind(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 || listen(socket.fd(), 128) != 0)
    fail(ErrorKind::io, address.text(), "the ranks cannot meet here: {}", reason(errno));
  return socket;
}

int port_of(const Socket& listener) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

Socket connect_to(const Address& address, double seconds) {
  const Addresses found = look_up(address, 0);
  for (const addrinfo* each = found.get(); each; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) continue;
    const int begun = connect(socket.fd(), each->ai_addr, each->ai_addrlen);
    if (begun != 0 && (errno != EINPROGRESS || !finish_connect(socket.fd(), seconds))) continue;
    set_option(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
    return socket;
  }
  return Socket();
}

std::string own_host(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[INET6_ADDRSTRLEN] = "127.0.0.1";
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::pair<Socket, Socket> socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    fail(ErrorKind::io, "", "no pair of sockets: {}", reason(errno));
  return {Socket(ends[0]), Socket(ends[1])};
}

bool send_frame(const Socket& socket, const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string frame(4, '\0');
  for (int i = 0; i < 4; ++i) frame[static_cast<size_t>(i)] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  frame += text;
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t now = send(socket.fd(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) {
      sent += static_cast<size_t>(now);
      continue;
    }
    if (errno == EINTR) continue;
    pollfd waits{socket.fd(), POLLOUT, 0};
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || poll(&waits, 1, 5000) != 1) return false;
  }
  return true;
}

bool FrameReader::read(const Socket& socket) {
  char part[16384];
  while (true) {
    const ssize_t got = recv(socket.fd(), part, sizeof part, MSG_DONTWAIT);
    if (got > 0) {
      bytes_.append(part, static_cast<size_t>(got));
      if (bytes_.size() > most_ + 4) return false;
    } else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return false;
    } else if (errno != EINTR) {
      return true;
    }
  }
}

std::optional<Json> FrameReader::take() {
  if (bytes_.size() < 4) return std::nullopt;
  size_t size = 0;
  for (int i = 0; i < 4; ++i)
    size |= static_cast<size_t>(static_cast<uint8_t>(bytes_[static_cast<size_t>(i)])) << 8 * i;
  if (size > most_) {
    bytes_.clear();
    return Json(Json::value_t::discarded);
  }
  if (bytes_.size() < 4 + size) return std::nullopt;
  Json message = Json::parse(bytes_.begin() + 4, bytes_.begin() + 4 + static_cast<ptrdiff_t>(size), nullptr, false);
  bytes_.erase(0, 4 + size);
  return message;
}

std::string to_hex(const std::string& bytes) {
  std::string digits;
  for (char byte : bytes) digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return digits;
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::strtol(digits.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

std::string random_hex(size_t bytes) {
  std::string made(bytes, '\0');
  if (getrandom(made.data(), bytes, 0) != static_cast<ssize_t>(bytes)) fail(ErrorKind::io, "", "no random bytes");
  return to_hex(made);
}

}  // namespace cairn::comm
