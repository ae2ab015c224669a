// Gloo's TCP transport.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <map>
#include <memory>
#include <mutex>

#include "comm/transport.h"

namespace cairn::comm {

namespace {

// Gloo meets through a store, in which each rank writes entries that end in its number ("3", "rank_3") and reads those of the
// others.
class Addresses final : public gloo::rendezvous::Store {
 public:
  explicit Addresses(const TransportSetup& setup) : setup_(setup) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    entries_[key.substr(0, name_end(key))] = setup_.exchange(std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const size_t end = name_end(key);
    const std::string& entry = entries_.at(key.substr(0, end)).at(std::stoul(key.substr(end)));
    return {entry.begin(), entry.end()};
  }
  void wait(const std::vector<std::string>&) override {}

 private:
  static size_t name_end(const std::string& key) { return key.find_last_not_of("0123456789") + 1; }

  const TransportSetup& setup_;
  std::map<std::string, std::vector<std::string>> entries_;
};

struct Operation {
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool sends;
};

class GlooTransport final : public Transport {
 public:
  explicit GlooTransport(const TransportSetup& setup) : timeout_(static_cast<int64_t>((setup.timeout + 60) * 1e3)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = setup.host;
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(setup.rank, setup.size);
    context->setTimeout(std::chrono::milliseconds(static_cast<int64_t>(setup.timeout * 1e3)));
    Addresses addresses(setup);
    context->connectFullMesh(addresses, device);
    context->setTimeout(timeout_);
    context_ = context;
  }

  void* send(int to, uint64_t tag, const void* data, size_t bytes) override {
    return begin(const_cast<void*>(data), bytes, true, [&](auto& buffer) { buffer.send(to, tag); });
  }
  void* receive(int from, uint64_t tag, void* data, size_t bytes) override {
    return begin(data, bytes, false, [&](auto& buffer) { buffer.recv(from, tag); });
  }

  State wait(void* operation) override {
    auto* each = static_cast<Operation*>(operation);
    try {
      const bool done = each->sends ? each->buffer->waitSend(timeout_) : each->buffer->waitRecv(timeout_);
      return done ? State::done : State::interrupted;
    } catch (const std::exception& fault) {
      note(fault);
      return State::broken;
    }
  }

  void release(void* operation) override { delete static_cast<Operation*>(operation); }

  void interrupt(void* operation) override {
    auto* each = static_cast<Operation*>(operation);
    each->sends ? each->buffer->abortWaitSend() : each->buffer->abortWaitRecv();
  }

  void close() override { context_->closeConnections(); }

  std::string fault() const override {
    const std::lock_guard lock(mutex_);
    return fault_;
  }

 private:
  template <class Begin>
  void* begin(void* data, size_t bytes, bool sends, Begin begin) try {
    auto operation = std::make_unique<Operation>(Operation{context_->createUnboundBuffer(data, bytes), sends});
    begin(*operation->buffer);
    return operation.release();
  } catch (const std::exception& fault) {
    note(fault);
    return nullptr;
  }

  void note(const std::exception& fault) {
    const std::lock_guard lock(mutex_);
    fault_ = fault.what();
  }

  const std::chrono::milliseconds timeout_;  // later than that of the job, which knows who is at fault
  std::shared_ptr<gloo::Context> context_;
  mutable std::mutex mutex_;
  std::string fault_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Transport* cairn_transport_open(const TransportSetup& setup,
                                                                                  std::string* fault) {
  try {
    return new GlooTransport(setup);
  } catch (const std::exception& reason) {
    *fault = reason.what();
    return nullptr;
  }
}

}  // namespace cairn::comm
