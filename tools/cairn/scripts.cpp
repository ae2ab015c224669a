// cairn tf1, cairn port and cairn ms: the verbs that run training scripts. They stand in the adapters' Python packages and run
// with the Python beside this program.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "support/fault.h"
#include "verbs.h"

namespace cairn::cli {
namespace {

/// What runs the module: python -m would answer with a traceback where the module's own imports lack memory. SystemError is
/// what the interpreter says where it lacks memory for another error.
constexpr const char* kStart = R"(import sys
try:
    import runpy
    import cairn
    runpy._get_module_details(sys.argv[1])
except (ImportError, MemoryError, OSError, SystemError) as fault:
    sys.exit(f"error: {sys.argv[2]}: {str(fault).strip().splitlines()[-1] if str(fault).strip() else 'memory ran out'}")
module, verb, *words = sys.argv[1:]
del sys.argv[1:3]
try:
    runpy._run_module_as_main(module)
except MemoryError as fault:
    place = fault.__traceback__
    while place:  # a script of the user keeps its traceback
        if place.tb_frame.f_code.co_filename in words: raise
        place = place.tb_next
    sys.exit(f"error: {verb}: memory ran out"))";

/// OpenBLAS, which NumPy loads, ends its process where its threads cannot be started, and where they get no memory they ask
/// for it for ever.
void do_without_threads() {
  constexpr rlim_t kEnough = rlim_t{4} << 30;
  rlimit memory{};
  try {
    std::thread([] {}).join();
    if (::getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur >= kEnough) return;
  } catch (const std::system_error&) {
    ::setenv("OMP_NUM_THREADS", "1", 1);
  }
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
}

}  // namespace

int run_script_verb(const std::string& verb, const std::string& module, const std::vector<std::string>& arguments) {
  do_without_threads();
  std::error_code ignored;
  auto python = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python";
  if (!std::filesystem::exists(python, ignored)) {
    // The build tree has no Python of its own: the one that PATH names.
    python = "python3";
  }
  std::vector<std::string> words{python.string(), "-c", kStart, module, verb};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  fail(ErrorKind::not_found, python.string(), "cannot be started: {}", reason(errno));
}

}  // namespace cairn::cli
