// The work of the pipeline, and what it allocates, grow with the number of nodes and not with its square.
#include <gtest/gtest.h>

#include "allocations.h"
#include "ir/builder.h"
#include "passes/pipeline.h"
#include "passes/support.h"

namespace cairn {
namespace {

// Work for every pass: constants, equal nodes, transposes, reshapes, dead nodes, wide fan-out of one value.
Module long_module(size_t nodes) {
  Module module;
  module.functions.push_back(std::make_unique<Function>());
  Function& main = *module.functions[0];
  main.name = "main";
  Builder b(main.body);
  Value* x = main.body.add_param(Type::tensor(kF32, {2, 3, 4}), "x");
  Value* first = x;
  while (main.body.nodes.size() < nodes) {
    b.sources = {module.add_source({"test", fmt::format("n{}", module.sources.size()), "", ""})};
    Value* t = b.add("transpose", {x}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
    Value* two = b.constant(Tensor::of<float>(kF32, {}, {static_cast<float>(main.body.nodes.size() % 7)}));
    Value* scaled = b.add("mul", {t, b.add("exp", {two})});
    Value* r = b.add("relu", {b.add("relu", {scaled})});
    b.add("neg", {r});
    Value* back = b.add("transpose", {r}, {{"permutation", std::vector<int64_t>{0, 2, 1}}});
    x = b.add("sub", {b.add("add", {back, first}), b.add("tanh", {first})});
  }
  main.body.results = {x};
  main.result_names = {"y"};
  return module;
}

/// Nodes and edges looked at, by pass and round.
std::vector<std::pair<std::string, size_t>> work(size_t nodes) {
  Module module = long_module(nodes);
  std::vector<std::pair<std::string, size_t>> list;
  for (const PassRecord& record : optimise(module)) list.emplace_back(record.name, record.visits);
  return list;
}

TEST(Scaling, WorkIsLinearInNodes) {
  const auto small = work(1'000), large = work(10'000);
  ASSERT_EQ(small.size(), large.size()) << "more rounds for more nodes";
  for (size_t i = 0; i < small.size(); ++i)
    EXPECT_LE(2 * large[i].second, 21 * small[i].second + 200)
        << small[i].first << " of step " << i << ": " << small[i].second;
}

TEST(Scaling, AllocationsAreLinearInNodes) {
  const auto made = [](size_t nodes) {
    Module module = long_module(nodes);
    const size_t before = allocations();
    optimise(module);
    EXPECT_LT(module.main().body.nodes.size(), nodes);
    return allocations() - before;
  };
  EXPECT_LT(made(10'000), 12 * made(1'000));
}

}  // namespace
}  // namespace cairn
