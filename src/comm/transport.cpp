#include "comm/transport.h"

#include <dlfcn.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "support/error.h"

namespace cairn::comm {

namespace {

/// The folder of the library or program that this code is part of.
std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::shared_ptr<Transport> load_transport(const std::string& name, const TransportSetup& setup) {
  const std::string file = fmt::format("{}/libcairn_{}.so", own_folder(), name);
  void* library = dlopen(file.c_str(), RTLD_NOW | (name == "mpi" ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library) fail(ErrorKind::unsupported, "", "the transport {} cannot be loaded: {}", name, dlerror());
  const auto open = reinterpret_cast<OpenTransport>(dlsym(library, "cairn_transport_open"));
  if (!open) fail(ErrorKind::unsupported, file, "is no transport of this version");
  std::string fault;
  Transport* transport = open(setup, &fault);
  if (!transport) fail(ErrorKind::io, "", "the transport {} does not work: {}", name, fault);
  return std::shared_ptr<Transport>(transport);
}

std::string told_by_first(Transport& transport, int rank, int size, double seconds, const std::string& said) {
  std::array<char, 512> message{};
  CHECK(said.size() < message.size(), "{} characters", said.size());
  std::memcpy(message.data(), said.data(), said.size());
  for (int other = 1; other < size; ++other) {
    if (rank != 0 && rank != other) continue;
    void* operation = rank == 0 ? transport.send(other, 0, message.data(), message.size())
                                : transport.receive(0, 0, message.data(), message.size());
    std::mutex mutex;
    std::condition_variable news;
    bool done = false;
    std::thread alarm([&] {
      std::unique_lock lock(mutex);
      if (!news.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done; }))
        transport.interrupt(operation);
    });
    const Transport::State state = transport.wait(operation);
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    news.notify_one();
    alarm.join();
    transport.release(operation);
    if (state != Transport::State::done)
      fail(ErrorKind::io, "", "rank {} did not hear from rank {} within {:.3g} s", rank, rank == 0 ? other : 0,
           seconds);
  }
  return message.data();
}

}  // namespace cairn::comm
