#include "support/error.h"

#include <cstdio>
#include <cstdlib>

namespace cairn {

void check_failed(const char* file, int line, const char* condition, const std::string& facts) {
  std::fprintf(stderr, "cairn: internal error at %s:%d: %s does not hold; %s\n", file, line, condition, facts.c_str());
  std::abort();
}

}  // namespace cairn
