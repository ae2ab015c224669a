// The work of the pipeline, and its processor time, grow with the number of nodes and not with its square.
#include <gtest/gtest.h>

#include <ctime>

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

double seconds(size_t nodes) {
  double best = 1e9;
  for (int repeat = 0; repeat < (nodes > 50'000 ? 1 : 3); ++repeat) {
    Module module = long_module(nodes);
    std::clock_t start = std::clock();
    optimise(module);
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    EXPECT_LT(module.main().body.nodes.size(), nodes);
  }
  return best;
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

TEST(Scaling, TimeIsLinearInNodes) {
  double small = seconds(1'000), middle = seconds(10'000), large = seconds(100'000);
  RecordProperty("microseconds_per_node", std::to_string(large * 10));
  // Quadratic growth would be a factor of 100; what exceeds 10 is caches that no longer hold the graph.
  EXPECT_LT(middle / small, 50) << small << " s, " << middle << " s";
  EXPECT_LT(large / middle, 50) << middle << " s, " << large << " s";
}

}  // namespace
}  // namespace cairn
