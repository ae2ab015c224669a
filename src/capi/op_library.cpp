// Shared libraries with operators of users.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>

#include "capi/user_call.h"
#include "capi/user_op.h"
#include "support/files.h"
#include "support/options.h"

namespace cairn::capi {

namespace {

namespace fs = std::filesystem;

void* symbol(void* handle, const char* name, const std::string& path) {
  void* found = dlsym(handle, name);
  if (!found) fail(ErrorKind::invalid_argument, path, "is no library of operators: it exports no {}", name);
  return found;
}

void register_rows(void* handle, const std::string& path) {
  const auto version = *static_cast<const uint32_t*>(symbol(handle, CAIRN_OP_ABI_SYMBOL, path));
  if (version != CAIRN_OP_ABI_VERSION)
    fail(ErrorKind::unsupported, path,
         "was built for version {} of the interface of operators, this Cairn has {}; build it again", version,
         CAIRN_OP_ABI_VERSION);
  const auto enter = reinterpret_cast<CairnRegisterOps>(symbol(handle, CAIRN_REGISTER_OPS_SYMBOL, path));
  static std::deque<std::pair<std::string, CairnOpRegistry>> registries;  // never freed: libraries may keep the pointer
  auto& own = registries.emplace_back(path, CairnOpRegistry{});
  own.second = registry_for(own.first);
  remember(CAIRN_OK, "", "");
  int32_t status = 0;
  try {
    status = enter(&own.second);
  } catch (const std::exception& thrown) {
    fail(ErrorKind::invalid_argument, path, "threw an exception while it registered: {}", thrown.what());
  } catch (...) {
    fail(ErrorKind::invalid_argument, path, "threw an exception while it registered");
  }
  if (status == 0) return;
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  if (error.status == CAIRN_OK) fail(ErrorKind::invalid_argument, path, "failed to register, with status {}", status);
  fail(ErrorKind::invalid_argument, path, "{}: {}", error.where, error.message);
}

/// Shared libraries of a folder, in the order of their names.
std::set<std::string> libraries_in(const fs::path& folder) {
  std::set<std::string> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".so") files.insert(entry.path().string());
  return files;
}

/// Whether the file contains our entry point; others, such as the platform's own libraries, are not loaded.
bool has_entry(const std::string& file) {
  constexpr size_t kLargest = size_t{64} << 20;
  std::error_code none;
  const uintmax_t size = fs::file_size(file, none);
  return !none && size < kLargest && read_file(file, kLargest).find(CAIRN_REGISTER_OPS_SYMBOL) != std::string::npos;
}

/// The platform's folders for plug-ins that register framework operators: framework/custom below ASCEND_OPP_PATH, and
/// framework/<any> of each vendor and of each folder in ASCEND_CUSTOM_OPP_PATH.
std::vector<fs::path> plug_in_folders() {
  std::vector<fs::path> roots, folders;
  std::error_code none;
  if (const char* path = std::getenv("ASCEND_OPP_PATH"); path && *path) {
    folders.push_back(fs::path(path) / "framework" / "custom");
    for (const auto& vendor : fs::directory_iterator(fs::path(path) / "vendors", none)) roots.push_back(vendor.path());
  }
  if (const char* paths = std::getenv("ASCEND_CUSTOM_OPP_PATH"))
    for (const std::string& path : split_list(paths, ':')) roots.emplace_back(path);
  for (const fs::path& root : roots)
    for (const auto& framework : fs::directory_iterator(root / "framework", none)) folders.push_back(framework.path());
  return folders;
}

}  // namespace

void load_op_library(const std::string& given) {
  static std::mutex mutex;
  static std::set<std::string> loaded;
  const std::lock_guard lock(mutex);
  std::error_code none;
  const fs::path path = fs::canonical(expand_home(given), none);
  if (none) fail(ErrorKind::not_found, given, "there is no such library of operators");
  if (loaded.contains(path.string())) return;
  if (!fs::is_regular_file(path, none))  // opening a pipe would wait for its writer
    fail(ErrorKind::invalid_argument, given, "is no file that a library of operators could be in");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail(ErrorKind::invalid_argument, given, "cannot be loaded: {}", dlerror());
  register_rows(handle, path.string());  // the library is never unloaded, since rows live as long as the process
  loaded.insert(path.string());
}

void load_op_libraries(const std::string& list) {
  for (std::string item : split_list(list, ',')) {
    for (const std::string& path : split_list(item, ':')) {
      if (!fs::is_directory(expand_home(path))) {
        load_op_library(path);
        continue;
      }
      for (const std::string& file : libraries_in(expand_home(path))) load_op_library(file);
    }
  }
}

void load_op_libraries_of_environment() {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (done) return;
  const char* list = std::getenv("CAIRN_OP_LIBRARY");
  if (list && *list) {
    try {
      load_op_libraries(list);
    } catch (const Error& error) {
      throw Error(error.kind(), "CAIRN_OP_LIBRARY", error.what());
    }
  }
  for (const fs::path& folder : plug_in_folders())
    for (const std::string& file : libraries_in(folder))
      if (has_entry(file)) load_op_library(file);
  done = true;
}

}  // namespace cairn::capi

using namespace cairn;
using namespace cairn::capi;

CairnStatus cairn_op_library_load(const char* path) {
  return guarded([&] {
    require(path, "path");
    load_op_library(path);
  });
}

CairnStatus cairn_op_register(const CairnOpRow* row, const char* origin) {
  return guarded([&] {
    require(row, "row");
    add_user_op(*row, origin ? origin : "this process");
  });
}
