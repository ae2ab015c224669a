// Random kernels of the CPU engine: the bits of the reference kernels at any number of threads and any place of the counter.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {
namespace {

/// What `body`, which makes %next and %y of %r, draws in two runs, and the state behind them.
std::vector<Tensor> draw(const std::string& type, const std::string& body, const Tensor& state, const char* engine,
                         int threads) {
  const std::string text = fmt::format(
      "module @m {{\n  func @main(%r: rng) -> (%next: rng, %y: {0}) updates [0 = 0] {{\n{1} : rng, {0}\n    return "
      "%next, "
      "%y\n  }}\n}}\n",
      type, body);
  const auto model = Model::make(parse(text), {.threads = threads, .engines = {engine}, .bind_state = false});
  model->set_state(0, state);
  std::vector<Tensor> results = model->run(std::vector<Tensor>{});
  for (const Tensor& more : model->run(std::vector<Tensor>{})) results.push_back(more);  // the stream goes on
  results.push_back(model->state_value(0));
  return results;
}

void expect_the_bits_of_the_reference(const std::string& type, const std::string& body, const Tensor& state) {
  for (int threads : {1, 3}) {
    const auto expected = draw(type, body, state, "reference", 1), found = draw(type, body, state, "cpu", threads);
    ASSERT_EQ(expected.size(), 3u);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(found[i].same_bits(expected[i])) << body << ", " << threads << " threads, result " << i;
  }
}

std::string constant(const char* name, const std::string& type, const std::string& values) {
  return fmt::format("    %{} = constant {{value = {} ({})}} : {}\n", name, type, values, type);
}

TEST(CpuRandom, draws_the_bits_of_the_reference_kernels) {
  const Tensor states[] = {Tensor::of<uint64_t>(kU64, {3}, {1, 0, 0}),
                           Tensor::of<uint64_t>(kU64, {3}, {81985529216486895, ~uint64_t{0} - 70, 7})};
  for (const char* op : {"random_uniform", "random_normal", "random_truncated_normal"})
    for (const Tensor& state : states)
      for (int64_t count : {0, 1, 63, 64, 66, 4096, 10000})
        expect_the_bits_of_the_reference(fmt::format("f32[{}]", count),
                                         constant("s", "i64[1]", std::to_string(count)) +
                                             fmt::format("    %next, %y = {} %r, %s {{dtype = f32}}", op),
                                         state);
}

TEST(CpuRandom, draws_the_integers_and_classes_of_the_reference_kernels) {
  std::vector<std::pair<std::string, std::string>> bodies;
  for (int64_t count : {1, 3, 4098, 30000})
    for (const auto& [type, low, high] : {std::tuple("i32", "-2147483648", "2147483647"),
                                          {"i32", "3", "10"},
                                          {"i64", "-9223372036854775808", "9223372036854775807"},
                                          {"i64", "-5", "7"}})
      bodies.emplace_back(fmt::format("{}[{}]", type, count),
                          constant("s", "i64[1]", std::to_string(count)) +
                              constant("l", type + std::string("[]"), low) +
                              constant("h", type + std::string("[]"), high) +
                              "    %next, %y = random_integers %r, %s, %l, %h {reserve = 256}");
  for (const auto& [rows, classes, count] : {std::tuple(1, 3, 1), {37, 1001, 1}, {19, 7, 5}, {3, 40, 3001}}) {
    std::string logits;
    for (int i = 0; i < rows * classes; ++i)
      logits += fmt::format("{}{}", i ? ", " : "", i % 11 == 3 ? -40 : i * 7 % 13 * 0.3);
    for (const char* type : {"i32", "i64"})
      bodies.emplace_back(fmt::format("{}[{}, {}]", type, rows, count),
                          constant("x", fmt::format("f32[{}, {}]", rows, classes), logits) +
                              constant("c", "i32[]", std::to_string(count)) +
                              fmt::format("    %next, %y = random_categorical %r, %x, %c {{dtype = {}}}", type));
  }
  const Tensor state = Tensor::of<uint64_t>(kU64, {3}, {81985529216486895, ~uint64_t{0} - 70, 7});
  for (const auto& [type, body] : bodies) expect_the_bits_of_the_reference(type, body, state);
}

}  // namespace
}  // namespace cairn
