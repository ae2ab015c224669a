// The same as tests/ops/stops_test.cpp for the kernels of the engine `cpu`, by a time limit of a fifth of what the work takes.
// It measures, for minutes: build/test_engines --gtest_also_run_disabled_tests --gtest_filter=*Stops*
#include <gtest/gtest.h>

#include "large_cases.h"
#include "runtime/model.h"
#include "support/stop.h"

namespace cairn {
namespace {

constexpr double kLong = 0.05;
constexpr int64_t kMost = 1 << 24;

class Runner {
 public:
  explicit Runner(const OpCase& large) : large_(large), model_(Model::make(module_of(large), {.threads = 1})) {}
  std::optional<double> seconds(const std::vector<HostValue>& inputs) const {
    std::vector<Tensor> tensors;
    for (const HostValue& input : parameters_of(large_, inputs)) tensors.push_back(input.tensor);
    const double begin = processor_seconds();
    model_->run(tensors);
    return processor_seconds() - begin;
  }

 private:
  const OpCase& large_;
  std::shared_ptr<const Model> model_;
};

TEST(DISABLED_Stops, EveryFastKernelThatWorksLongEndsEarly) {
  const auto seconds_of = [](const OpCase& large, auto& inputs) -> std::optional<double> {
    try {
      const Runner runner(large);
      runner.seconds(inputs);  // plans
      return runner.seconds(inputs);
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  for (const OpDef* op : all_ops()) {
    if (!op->reference || op->has(kControl)) continue;
    for_large_cases(*op, kLong, kMost, seconds_of, [&](const OpCase& large, auto& inputs, double whole) {
      const Runner runner(large);
      runner.seconds(inputs);
      const double begin = processor_seconds();
      std::string sentence = "no error";
      try {
        StopScope scope({.max_seconds = whole / 5});
        runner.seconds(inputs);
      } catch (const Error& error) {
        sentence = error.what();
      }
      std::printf("%8.1f of %8.1f ms: %s\n", (processor_seconds() - begin) * 1e3, whole * 1e3, large.text.c_str());
      EXPECT_TRUE(sentence.starts_with("stopped after ")) << large.text << " takes " << whole << " s: " << sentence;
      return false;
    });
  }
}

}  // namespace
}  // namespace cairn
