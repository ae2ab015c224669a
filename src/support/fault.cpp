#include "support/fault.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <system_error>

#include "support/fork.h"

namespace cairn {
namespace {

std::string limit_of(decltype(RLIMIT_AS) resource, uint64_t unit, const char* unit_name, const char* option) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("this process may have {} {} (ulimit {})", limit.rlim_cur / unit, unit_name, option);
}

std::string with(const std::string& sentence, const std::string& addition) {
  return addition.empty() ? sentence : sentence + "; " + addition;
}

/// Extracts "cannot create directories" from "filesystem error: cannot create directories: Permission denied [out]".
std::string what_failed(const std::filesystem::filesystem_error& error) {
  constexpr std::string_view kHead = "filesystem error: ";
  std::string_view text = error.what();
  if (text.starts_with(kHead)) text.remove_prefix(kHead.size());
  const size_t end = text.find(": " + error.code().message());
  std::string what(text.substr(0, end == std::string_view::npos ? 0 : end));
  if (const size_t cannot = what.find("cannot"); cannot != std::string::npos) return what.substr(cannot);
  return what.empty() ? "cannot be used" : "cannot be used (" + what + ")";
}

bool is_errno(const std::error_code& code) {
  return code.category() == std::generic_category() || code.category() == std::system_category();
}

Error fault_of(const std::filesystem::filesystem_error& error) {
  const int code = error.code().value();
  std::string where = error.path1().string();
  if (!error.path2().empty()) where += " -> " + error.path2().string();
  if (std::string_view(error.what()).find("cannot create director") != std::string_view::npos &&
      (code == EEXIST || code == ENOTDIR))
    return {ErrorKind::invalid_argument, where,
            "a folder cannot be made here: a file, or a link that leads nowhere, is in the way"};
  return {code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io, where,
          fmt::format("{}: {}", what_failed(error), reason(code))};
}

/// Besides filesystem_error, only starting a thread and writing to a stream throw system errors here.
Error fault_of(const std::system_error& error) {
  if (!is_errno(error.code())) return {ErrorKind::io, "", fmt::format("a stream failed: {}", error.what())};
  const int code = error.code().value();
  const std::string_view text = error.what();
  const std::string message = error.code().message();
  if (code == EAGAIN && (text == message || text.starts_with("thread")))
    return {ErrorKind::io, "",
            with("no thread could be started",
                 with("end other programs of this user", limit_of(RLIMIT_NPROC, 1, "processes and threads", "-u")))};
  if (text.starts_with("cannot write to file"))
    return {ErrorKind::io, "", "the output cannot be written: " + reason(code)};
  std::string what(text.substr(0, std::min(text.size(), text.find(": " + message))));
  return {ErrorKind::io, "", what == message ? reason(code) : fmt::format("{}: {}", what, reason(code))};
}

}  // namespace

std::string reason(int code) {
  std::string text = std::strerror(code);
  switch (code) {
    case ENOSPC: return text + "; free some space or name another folder";
    case EDQUOT: return text + "; free some of your space or name another folder";
    case EFBIG: return with(text, limit_of(RLIMIT_FSIZE, 1024, "KiB in one file", "-f"));
    case EROFS: return text + "; name another folder";
    case EMFILE: return with(text, limit_of(RLIMIT_NOFILE, 1, "files open", "-n"));
    case EAGAIN: return with(text, limit_of(RLIMIT_NPROC, 1, "processes and threads", "-u"));
    case ENOMEM: return with(text, limit_of(RLIMIT_AS, 1 << 20, "MiB of memory", "-v"));
    default: return text;
  }
}

void note_fewer_threads(size_t started, int wanted, int code) {
  note_once(fmt::format("note: {} of {} threads could be started ({}); the work goes on {}", started, wanted,
                        reason(code), started ? "with those" : "without"));
}

Error memory_fault(size_t bytes) {
  std::string text = "memory ran out";
  if (bytes >= 1 << 20) text += fmt::format(" when {} MiB more were asked for", bytes >> 20);
  return {ErrorKind::out_of_memory, "", with(text, limit_of(RLIMIT_AS, 1 << 20, "MiB of memory", "-v"))};
}

Error current_fault() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const NoMemory& refused) {
    return memory_fault(refused.bytes);
  } catch (const std::bad_alloc&) {
    return memory_fault(0);
  } catch (const std::length_error&) {
    return {ErrorKind::out_of_memory, "", "memory ran out: more was asked for than any machine has"};
  } catch (const std::filesystem::filesystem_error& error) {
    return fault_of(error);
  } catch (const std::system_error& error) {
    return fault_of(error);
  } catch (const std::exception& error) {
    return {ErrorKind::invalid_argument, "", error.what()};
  } catch (...) {
    return {ErrorKind::invalid_argument, "", "an unknown fault"};
  }
}

void note(std::string_view line) noexcept try {
  const std::string text = std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
} catch (...) {  // out of memory for the line
}

void note_once(std::string_view line) noexcept try {
  static std::mutex* mutex = new std::mutex;
  static auto* told = new std::set<std::string, std::less<>>;
  {
    const ShieldedLock lock(*mutex);
    if (!told->emplace(line).second) return;
  }
  note(line);
} catch (...) {
}

}  // namespace cairn
