// Random kernels of the CPU engine: the bits of the reference kernels at any number of threads and any place of the counter.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

std::vector<Tensor> draw(const std::string& op, int64_t count, const Tensor& state, const char* engine, int threads) {
  const std::string text = fmt::format(
      "module @m {{\n  func @main(%r: rng) -> (%next: rng, %y: f32[{0}]) updates [0 = 0] {{\n    %s = constant {{value "
      "= "
      "i64[1] ({0})}} : i64[1]\n    %next, %y = {1} %r, %s {{dtype = f32}} : rng, f32[{0}]\n    return %next, %y\n  "
      "}}\n}}\n",
      count, op);
  const auto model = Model::make(parse(text), {.threads = threads, .engines = {engine}, .bind_state = false});
  model->set_state(0, state);
  std::vector<Tensor> results = model->run(std::vector<Tensor>{});
  for (const Tensor& more : model->run(std::vector<Tensor>{})) results.push_back(more);  // the stream goes on
  results.push_back(model->state_value(0));
  return results;
}

TEST(CpuRandom, draws_the_bits_of_the_reference_kernels) {
  const Tensor states[] = {Tensor::of<uint64_t>(kU64, {3}, {1, 0, 0}),
                           Tensor::of<uint64_t>(kU64, {3}, {81985529216486895, ~uint64_t{0} - 70, 7})};
  for (const char* op : {"random_uniform", "random_normal", "random_truncated_normal"})
    for (const Tensor& state : states)
      for (int64_t count : {0, 1, 63, 64, 66, 4096, 10000})
        for (int threads : {1, 3}) {
          const auto expected = draw(op, count, state, "reference", 1), found = draw(op, count, state, "cpu", threads);
          ASSERT_EQ(expected.size(), 3u);
          for (size_t i = 0; i < expected.size(); ++i)
            EXPECT_TRUE(found[i].same_bits(expected[i])) << op << " " << count << " result " << i;
        }
}

}  // namespace
}  // namespace cairn
