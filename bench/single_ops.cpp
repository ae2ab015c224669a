// Times single operators through the C interface: nanoseconds a call, the best of short rounds, as JSON on standard
// output. `prepared`: cairn_op_run alone; `called`: cairn_op_prepare, cairn_op_run and cairn_op_free, as an adapter calls.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cairn/cairn.h"

namespace {

constexpr int kRounds = 15;
constexpr double kRoundSeconds = 0.004;

struct Tensor {
  std::vector<int64_t> dims, strides;
  std::vector<float> values;

  explicit Tensor(std::vector<int64_t> shape, bool turned = false) : dims(std::move(shape)) {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 7) - 3);
    if (turned) strides = {1, dims[0]};
  }
  CairnTensor view() {
    return {values.data(),
            {1, 0},
            static_cast<int32_t>(dims.size()),
            {CAIRN_FLOAT, 32, 1},
            dims.data(),
            strides.empty() ? nullptr : strides.data(),
            0};
  }
};

void check(CairnStatus status) {
  if (status == CAIRN_OK) return;
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  std::fprintf(stderr, "%s: %s\n", error.where, error.message);
  std::exit(1);
}

template <class Call>
double nanoseconds(Call&& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  int64_t repeats = 1;
  const auto time = [&] {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) call();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  while (time() < kRoundSeconds) repeats *= 2;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(time() / static_cast<double>(repeats) * 1e9);
  return *std::min_element(rounds.begin(), rounds.end());
}

struct Case {
  const char* name;
  const char* op;
  std::vector<Tensor> inputs;
  std::vector<CairnAttribute> attributes;
};

CairnAttribute text(const char* name, const char* value) {
  CairnAttribute made{name, CAIRN_ATTRIBUTE_TEXT, {}};
  made.value.text = {value, std::strlen(value)};
  return made;
}
CairnAttribute integers(const char* name, const int64_t* values, size_t count) {
  CairnAttribute made{name, CAIRN_ATTRIBUTE_INTEGERS, {}};
  made.value.integers = {values, count};
  return made;
}

void measure(Case& each, bool first) {
  const CairnOperator* found = nullptr;
  check(cairn_op_find(each.op, &found));
  std::vector<CairnTensor> inputs;
  for (Tensor& input : each.inputs) inputs.push_back(input.view());
  CairnModelOptions options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  const CairnOp* op = nullptr;
  const auto prepare = [&](const CairnOp** to) {
    check(cairn_op_prepare(found, each.attributes.data(), each.attributes.size(), inputs.data(), inputs.size(), nullptr,
                           0, &options, to));
  };
  prepare(&op);
  size_t count = 0;
  const CairnTensor* known = cairn_op_outputs(op, &count);
  Tensor made(std::vector<int64_t>(known[0].shape, known[0].shape + known[0].ndim));
  CairnTensor output = made.view();
  const auto run = [&](const CairnOp* with) {
    check(cairn_op_run(with, inputs.data(), inputs.size(), &output, 1, nullptr, nullptr, nullptr));
  };
  const double prepared = nanoseconds([&] { run(op); });
  const double called = nanoseconds([&] {
    const CairnOp* own = nullptr;
    prepare(&own);
    run(own);
    cairn_op_free(own);
  });
  cairn_op_free(op);
  std::printf("%s\"%s\": {\"prepared\": %.1f, \"called\": %.1f}", first ? "{" : ", ", each.name, prepared, called);
}

}  // namespace

int main() {
  const int64_t last[] = {1}, turn[] = {1, 0};
  std::vector<Case> cases;
  const auto add = [&](const char* name, const char* op, std::vector<Tensor> inputs,
                       std::vector<CairnAttribute> attributes = {}) {
    cases.push_back({name, op, std::move(inputs), std::move(attributes)});
  };
  add("add 16", "add", {Tensor({16}), Tensor({16})});
  add("add 64x64", "add", {Tensor({64, 64}), Tensor({64, 64})});
  add("exp 16", "exp", {Tensor({16})});
  add("add of a view 16x16", "add", {Tensor({16, 16}, true), Tensor({16, 16})});
  add("add of a view 64x64", "add", {Tensor({64, 64}, true), Tensor({64, 64})});
  add("add of a view 256x256", "add", {Tensor({256, 256}, true), Tensor({256, 256})});
  add("transpose 64x64", "transpose", {Tensor({64, 64})}, {integers("permutation", turn, 2)});
  add("add 256x256", "add", {Tensor({256, 256}), Tensor({256, 256})});
  add("sum of rows 64x64", "reduce_sum", {Tensor({64, 64})}, {integers("axes", last, 1)});
  add("matmul 16x16", "matmul", {Tensor({16, 16}), Tensor({16, 16})});
  add("matmul 64x64", "matmul", {Tensor({64, 64}), Tensor({64, 64})});
  add("matmul of a view 64x64", "matmul", {Tensor({64, 64}), Tensor({64, 64}, true)});
  add("conv 3x3 8x8x8", "conv2d", {Tensor({1, 8, 8, 8}), Tensor({3, 3, 8, 8})}, {text("padding", "same")});
  add("conv 3x3 14x14x32", "conv2d", {Tensor({1, 14, 14, 32}), Tensor({3, 3, 32, 32})}, {text("padding", "same")});
  add("conv 3x3 56x56x64", "conv2d", {Tensor({1, 56, 56, 64}), Tensor({3, 3, 64, 64})}, {text("padding", "same")});
  for (Case& each : cases) measure(each, &each == cases.data());
  std::printf("}\n");
}
