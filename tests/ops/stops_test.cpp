// Work that has to end ends within each operator, not only in front of and behind it: the rows' cases, enlarged until they take
// long, run under a flag that is set from the start. CAIRN_STOP_TIMES=1 tries all cases of all rows and prints the times.
#include <gtest/gtest.h>

#include "large_cases.h"
#include "support/stop.h"

namespace cairn {
namespace {

constexpr double kLong = 0.02;      // seconds of an operator's work that must have a stop point
constexpr int64_t kMost = 1 << 20;  // elements of an operand or result

/// Whether the set flag ended the reference kernel; nothing where that refuses its inputs.
std::optional<bool> is_ended(const OpCase& large, const std::vector<HostValue>& inputs, bool cancel) {
  const std::atomic<bool> flag = cancel;
  StopScope scope({.cancel = &flag});
  try {
    run_reference(*large.op, large.attributes, inputs);
    return false;
  } catch (const Error& error) {
    return error.kind() == ErrorKind::cancelled ? std::optional(true) : std::nullopt;
  }
}

std::optional<double> seconds_of(const OpCase& large, const std::vector<HostValue>& inputs) {
  const double begin = processor_seconds();
  if (!is_ended(large, inputs, false)) return std::nullopt;
  return processor_seconds() - begin;
}

TEST(Stops, EveryReferenceKernelThatWorksLongEndsEarly) {
  const bool all = std::getenv("CAIRN_STOP_TIMES") != nullptr;
  for (const OpDef* op : all_ops()) {
    if (!op->reference || op->has(kControl)) continue;
    for_large_cases(*op, kLong, all ? 4 * kMost : kMost, seconds_of,
                    [&](const OpCase& large, auto& inputs, double whole) {
                      const double begin = processor_seconds();
                      const auto ended = is_ended(large, inputs, true);
                      if (all)
                        std::printf("%8.1f of %8.1f ms: %s\n", (processor_seconds() - begin) * 1e3, whole * 1e3,
                                    large.text.c_str());
                      EXPECT_TRUE(ended.value_or(false)) << large.text << " takes " << whole << " s";
                      return !all;
                    });
  }
}

}  // namespace
}  // namespace cairn
