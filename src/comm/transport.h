// What carries messages between the ranks of a job where they do not share memory: a plug-in library beside libcairn, loaded
// on demand, so that the core needs none of the libraries behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cairn::comm {

class Transport {
 public:
  virtual ~Transport() = default;
  static constexpr size_t kMost = 1 << 30;  // bytes of a message
  /// Begin to send or receive; the memory belongs to the transport until wait() has returned. Between two ranks messages of one
  /// tag keep their order, and both ends name the same size.
  virtual void* send(int to, uint64_t tag, const void* data, size_t bytes) = 0;
  virtual void* receive(int from, uint64_t tag, void* data, size_t bytes) = 0;
  enum class State { done, broken, interrupted };
  /// After `interrupted` the operation goes on, and can be waited for again.
  virtual State wait(void* operation) = 0;
  /// Forgets an operation that was waited for.
  virtual void release(void* operation) = 0;
  /// From another thread: the wait for this operation, or the next one, returns soon.
  virtual void interrupt(void* operation) = 0;
  /// Gives up all operations under way: afterwards no memory is touched.
  virtual void close() = 0;
  /// Why an operation is broken, for people.
  virtual std::string fault() const = 0;
};

struct TransportSetup {
  int rank, size;
  std::string host;  // the address of this rank that others reach
  double timeout;    // seconds
  /// What every rank gives, in their order.
  std::function<std::vector<std::string>(const std::string& part)> exchange;
};

/// A plug-in's one symbol "cairn_transport_open": null with *fault set when the transport cannot be used.
using OpenTransport = Transport* (*)(const TransportSetup& setup, std::string* fault);

/// Loads libcairn_<name>.so from beside this library. Throws Error unsupported.
std::shared_ptr<Transport> load_transport(const std::string& name, const TransportSetup& setup);

/// What rank 0 says. All ranks call it; throws Error io after so many seconds.
std::string told_by_first(Transport& transport, int rank, int size, double seconds, const std::string& said);

}  // namespace cairn::comm
