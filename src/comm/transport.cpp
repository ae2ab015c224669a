#include "comm/transport.h"

#include <dlfcn.h>

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

}  // namespace cairn::comm
