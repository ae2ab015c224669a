// Every engine against the rows' reference kernels on every case of every row: through modules and through single-op
// runs, with ordinary and special values, with the same bits at any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "ir/builder.h"
#include "ops/cases.h"
#include "passes/pipeline.h"
#include "runtime/single_op.h"

/// What prepared operators keep to the end looks lost on the remote engine, whose addresses have a bit flipped.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:src/engines/reference/engine.cpp";
}

namespace cairn {
namespace {

bool tensors_only(const std::vector<HostValue>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const HostValue& value) { return value.tensor.defined() && !value.list; });
}

std::vector<Tensor> tensors(const std::vector<HostValue>& values) {
  std::vector<Tensor> list;
  for (const HostValue& value : values) list.push_back(value.tensor);
  return list;
}

// Engines may treat denormals as zeros (as TensorFlow's threads do), so they appear neither in inputs nor in results.
Tensor without_denormals(const Tensor& tensor) {
  if (tensor.dtype() != kF32) return tensor;
  std::vector<float> values(tensor.values<float>().begin(), tensor.values<float>().end());
  for (float& value : values)
    if (std::fpclassify(value) == FP_SUBNORMAL) value = std::copysign(0.f, value);
  return Tensor::of(kF32, tensor.dims(), values);
}

// Sums of the largest floats overflow when they are kept in f32, and not in the reference kernels' f64.
Tensor without_overflow(const Tensor& tensor) {
  if (tensor.dtype() != kF32) return tensor;
  std::vector<float> values(tensor.values<float>().begin(), tensor.values<float>().end());
  for (float& value : values)
    if (std::isfinite(value)) value = std::clamp(value, -1e18f, 1e18f);
  return Tensor::of(kF32, tensor.dims(), values);
}

std::vector<HostValue> inputs_of(const OpCase& op_case, uint64_t seed, Elements elements) {
  auto inputs = random_inputs(op_case, seed, elements);
  for (HostValue& input : inputs) {
    if (!input.tensor.defined()) continue;
    input.tensor = without_denormals(input.tensor);
    if (op_case.op->precision == Precision::accumulate_f32) input.tensor = without_overflow(input.tensor);
  }
  return inputs;
}

// What came out, or the error's text.
struct Outcome {
  std::vector<Tensor> results;
  std::string error;
};

template <class Run>
Outcome outcome(Run&& run) {
  try {
    return {run(), ""};
  } catch (const Error& fault) {
    return {{}, fault.what()};
  }
}

Outcome expected_of(const OpCase& op_case, const std::vector<HostValue>& inputs) {
  return outcome([&] { return tensors(run_reference(*op_case.op, op_case.attributes, inputs)); });
}

Outcome through_module(const OpCase& op_case, const std::vector<HostValue>& inputs, const ModelOptions& options) {
  return outcome(
      [&] { return Model::make(module_of(op_case), options)->run(tensors(parameters_of(op_case, inputs))); });
}

/// How tensors are handed to a single operator.
enum class Layout : uint8_t { row_major, reversed, spread };

/// A tensor's elements in memory of another layout, with every second place unused where they are spread.
class LaidOut {
 public:
  LaidOut(DType dtype, Dims dims, Layout layout) : dtype_(dtype), dims_(std::move(dims)) {
    int64_t stride = layout == Layout::spread ? 2 : 1;
    strides_.resize(dims_.size());
    for (size_t i = 0; i < dims_.size(); ++i) {
      const size_t axis = layout == Layout::reversed ? i : dims_.size() - 1 - i;
      strides_[axis] = stride;
      stride *= std::max<int64_t>(1, dims_[axis]);
    }
    memory_.resize(storage_bytes(dtype_, stride) + 64, 0x55);
  }
  Operand operand() { return {dtype_, dims_, strides_.data(), memory_.data()}; }
  void fill(const Tensor& from) {
    each([&](char* place, size_t i, size_t size) {
      std::memcpy(place, static_cast<const char*>(from.data()) + i * size, size);
    });
  }
  Tensor tensor() {
    Tensor to = Tensor::zeros(dtype_, dims_);
    each([&](const char* place, size_t i, size_t size) {
      std::memcpy(static_cast<char*>(to.mutable_data()) + i * size, place, size);
    });
    return to;
  }

 private:
  template <class Visit>
  void each(Visit&& visit) {
    const size_t count = static_cast<size_t>(*element_count(dims_)), size = dtype_.size();
    for (size_t i = 0; i < count; ++i) {
      int64_t at = 0, rest = static_cast<int64_t>(i);
      for (size_t axis = dims_.size(); axis-- > 0; rest /= dims_[axis]) at += rest % dims_[axis] * strides_[axis];
      visit(memory_.data() + at * static_cast<int64_t>(size), i, size);
    }
  }

  DType dtype_;
  Dims dims_, strides_;
  std::vector<char> memory_;
};

bool may_have_strides(DType dtype) { return dtype.size() > 0; }

Outcome through_single_op(const OpCase& op_case, const std::vector<HostValue>& inputs, const ModelOptions& options,
                          Layout layout = Layout::row_major) {
  return outcome([&] {
    std::deque<LaidOut> laid;
    std::vector<Operand> operands, outputs;
    for (const HostValue& input : inputs) {
      const Tensor& x = input.tensor;
      if (layout == Layout::row_major || !may_have_strides(x.dtype())) {
        operands.push_back({x.dtype(), x.dims(), nullptr, const_cast<void*>(x.data())});
        continue;
      }
      laid.emplace_back(x.dtype(), x.dims(), layout).fill(x);
      operands.push_back(laid.back().operand());
    }
    auto prepare = [&] { return prepare_op(*op_case.op, op_case.attributes, operands, outputs, options); };
    SingleOpRef op = prepare();
    std::vector<Tensor> results(op->results().size());
    if (layout != Layout::row_major) {  // into memory of the caller's, laid out alike
      std::deque<LaidOut> places;
      const auto& known = op->results();
      const bool all = std::all_of(known.begin(), known.end(), [](const SingleOp::Result& each) {
        return each.dims && may_have_strides(each.dtype);
      });
      for (size_t i = 0; all && i < known.size(); ++i)
        outputs.push_back(places.emplace_back(known[i].dtype, *known[i].dims, layout).operand());
      if (all) {
        prepare()->run(operands, outputs, nullptr);
        for (size_t i = 0; i < results.size(); ++i) results[i] = places[i].tensor();
        return results;
      }
    }
    const auto give = [&](size_t i, DType dtype, std::span<const int64_t> dims) {
      results[i] = Tensor::zeros(dtype, {dims.begin(), dims.end()});
      return results[i].mutable_data();
    };
    const OutputAllocator allocate = give;
    op->run(operands, {}, &allocate);
    return results;
  });
}

void expect_same(const OpCase& op_case, const Outcome& expected, const Outcome& actual, const std::string& how) {
  EXPECT_EQ(expected.error.empty(), actual.error.empty())
      << op_case.text << " " << how << ": " << expected.error << " / " << actual.error;
  if (!expected.error.empty() || !actual.error.empty()) return;
  ASSERT_EQ(expected.results.size(), actual.results.size()) << op_case.text;
  for (size_t i = 0; i < expected.results.size(); ++i)
    if (auto wrong = difference(without_denormals(expected.results[i]), without_denormals(actual.results[i]),
                                op_case.op->precision))
      ADD_FAILURE() << op_case.text << " " << how << ", result " << i << ": " << *wrong;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  return a.error == b.error && std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                                          [](const Tensor& x, const Tensor& y) { return x.same_bits(y); });
}

// Random states are not tensors of the caller's; their ops are tested with the rows.
bool is_testable(const OpCase& op_case, const std::vector<HostValue>& inputs) {
  return op_case.op->reference && !op_case.op->has(kHostValue) && op_case.op->pure() && tensors_only(inputs) &&
         std::all_of(op_case.types.begin(), op_case.types.end(), [](const Type& type) { return type.is_tensor(); });
}

// By products an infinite element times 0 reaches others as NaN, which such a row leaves open.
bool is_made_by_products(const OpCase& op_case) {
  if (!op_case.op->decompose) return false;
  const Module module = module_of(op_case);
  Block parts;
  Builder builder(parts);
  op_case.op->decompose(builder, *module.main().body.results[0]->producer);
  return std::any_of(parts.nodes.begin(), parts.nodes.end(),
                     [](const auto& node) { return node->op->has(kContraction); });
}

class Conformance : public testing::TestWithParam<const char*> {};

TEST_P(Conformance, EqualsTheReferenceKernels) {
  size_t tested = 0;
  for (const OpCase& op_case : all_cases())
    for (Elements elements : {Elements::ordinary, Elements::special}) {
      auto inputs = inputs_of(op_case, 7, elements);
      if (!is_testable(op_case, inputs)) continue;
      if (elements == Elements::special && is_made_by_products(op_case)) continue;
      ++tested;
      Outcome expected = expected_of(op_case, inputs);
      ModelOptions options{.threads = 2, .engines = {GetParam()}, .optimise = false};
      expect_same(op_case, expected, through_module(op_case, inputs, options), "module");
      expect_same(op_case, expected, through_single_op(op_case, inputs, options), "single op");
      expect_same(op_case, expected, through_single_op(op_case, inputs, options, Layout::reversed), "reversed strides");
      expect_same(op_case, expected, through_single_op(op_case, inputs, options, Layout::spread), "spread strides");
    }
  EXPECT_GT(tested, 300u);
}

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, testing::Values("cpu", "remote"),
                         [](const auto& info) { return std::string(info.param); });

// Random states are the caller's arrays, texts are read and written, sizes that a run tells are asked for.
TEST(ConformanceOfSingleOps, RandomTextAndDynamicRowsRunAlone) {
  size_t tested = 0;
  for (const OpCase& op_case : all_cases()) {
    const auto inputs = random_inputs(op_case, 17);
    if (is_testable(op_case, inputs) || !op_case.op->reference || !tensors_only(inputs)) continue;
    const Outcome expected = expected_of(op_case, inputs);
    if (std::any_of(expected.results.begin(), expected.results.end(), [](const Tensor& y) { return !y.defined(); }))
      continue;  // lists: tests/capi
    ++tested;
    expect_same(op_case, expected, through_single_op(op_case, inputs, {.threads = 2}), "single op");
  }
  EXPECT_GT(tested, 20u);
}

TEST(ConformanceOfPasses, OptimisedModulesEqualTheReferenceKernels) {
  for (const OpCase& op_case : all_cases()) {
    auto inputs = random_inputs(op_case, 11);
    if (!is_testable(op_case, inputs)) continue;
    expect_same(op_case, expected_of(op_case, inputs), through_module(op_case, inputs, {.threads = 1}), "optimised");
    Module module = module_of(op_case);
    for (const PassRecord& pass : optimise(module)) EXPECT_EQ(pass.refused, std::vector<std::string>{}) << op_case.text;
  }
}

TEST(ConformanceOfThreads, TheNumberOfThreadsNeverChangesBits) {
  for (const OpCase& op_case : all_cases()) {
    auto inputs = random_inputs(op_case, 13);
    if (!is_testable(op_case, inputs)) continue;
    Outcome one = through_module(op_case, inputs, {.threads = 1, .optimise = false});
    for (int threads : {2, 5})
      EXPECT_TRUE(same_bits(one, through_module(op_case, inputs, {.threads = threads, .optimise = false})))
          << op_case.text << " " << threads;
  }
}

}  // namespace
}  // namespace cairn
