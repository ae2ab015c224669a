// Generated code of element-wise programs: the same bits as the loops one operation after the other, for every
// operation, for random programs, on every count, in place, and nothing touched beyond the count.

#include <immintrin.h>

#include <bit>
#include <cstring>
#include <limits>

#include "engines/cpu/element_jit.h"
#include "engines/cpu_reference.h"

namespace cairn {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
const float kFullNan = std::bit_cast<float>(0x7fffffff);  // to which nothing can be added

const std::vector<float>& edges() {
  static const std::vector<float> values = [] {
    std::vector<float> both;
    for (float value : {0.f, 0.25f, 0.5f, 1.f, 1.5f, 2.5f, 87.4f, 88.7f, 100.f, 16777217.f, 3.4028235e38f,
                        1.17549435e-38f, 1e-40f, 1e-45f, kInfinity, kNan, kFullNan})
      both.push_back(value), both.push_back(-value);
    return both;
  }();
  return values;
}

/// Small, large, and edge values.
std::vector<float> numbers(Random& random) {
  std::vector<float> values = random.floats(kElementTile, -3, 3);
  for (float& value : values) {
    if (random.coin()) continue;
    value = random.coin() ? value * 40 : edges()[static_cast<size_t>(random.between(0, std::ssize(edges()) - 1))];
  }
  return values;
}

/// What the interpreter does with one whole tile: by output.
std::vector<std::vector<float>> expected(const ElementSpec& spec, std::vector<std::vector<float>> values) {
  std::vector<std::vector<float>> outputs(spec.code.size());
  for (const ElementInstruction& code : spec.code) {
    std::vector<float> result(kElementTile);
    const auto source = [&](int i) { return values[static_cast<size_t>(code.sources[i])].data(); };
    vector_loops().execute(code.op, code.low, code.high, source(0), source(1), source(2), result.data());
    if (code.output >= 0) outputs[static_cast<size_t>(code.output)] = result;
    values.push_back(std::move(result));
  }
  return outputs;
}

/// Every NaN is one to a processor's additions: which of two they return is left to it.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.f, value) : value; }

void expect_same_bits(const ElementSpec& spec, int64_t count, bool in_place, Random& random) {
  std::vector<std::vector<float>> inputs;
  for (bool single : spec.single) {
    inputs.push_back(numbers(random));
    if (single) std::fill(inputs.back().begin(), inputs.back().end(), inputs.back()[0]);
  }
  const auto wanted = expected(spec, inputs);
  const auto kernel = ElementKernel::make(machine_isa(), spec);
  ASSERT_TRUE(kernel);
  std::vector<Guarded> input_buffers, output_buffers;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (size_t i = 0; i < inputs.size(); ++i) input_buffers.emplace_back(spec.single[i] ? 1 : count);
  for (size_t i = 0; i < wanted.size(); ++i) output_buffers.emplace_back(count);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::copy_n(inputs[i].data(), spec.single[i] ? 1 : count, input_buffers[i].data());
    from.push_back(input_buffers[i].data());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool shares = in_place && i < inputs.size() && !spec.single[i];
    to.push_back((shares ? input_buffers[i] : output_buffers[i]).data());
  }
  kernel->function()(from.data(), to.data(), count);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].empty()) continue;
    for (size_t at = 0; at < static_cast<size_t>(count); ++at)
      ASSERT_TRUE(same(wanted[i][at], static_cast<const float*>(to[i])[at]))
          << "operation " << static_cast<int>(spec.code.back().op) << ", output " << i << " of " << count << " at "
          << at << ": " << wanted[i][at] << " " << static_cast<const float*>(to[i])[at] << " of " << inputs[0][at];
  }
  for (const auto* buffers : {&input_buffers, &output_buffers})
    for (const Guarded& buffer : *buffers) ASSERT_TRUE(buffer.intact()) << count;
}

class CpuElementKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (machine_isa() == Isa::none) GTEST_SKIP() << "needs AVX2";
  }
};

TEST_F(CpuElementKernel, every_operation_has_the_bits_of_its_loop) {
  Random random(1);
  for (int op = 0; op < static_cast<int>(ElementOp::count); ++op)
    for (int round = 0; round < 40; ++round) {
      ElementSpec spec{.single = {false, random.coin(), random.coin()}, .code = {}};
      spec.code.push_back({static_cast<ElementOp>(op), {0, 1, 2}, -0.25f, 1.5f, 0});
      expect_same_bits(spec, random.between(200, kElementTile), round % 2 == 1, random);
    }
}

TEST_F(CpuElementKernel, any_count_is_written_and_nothing_beyond) {
  Random random(2);
  ElementSpec spec{.single = {false, true, false}, .code = {}};
  spec.code.push_back({ElementOp::tanh, {0}, 0, 0, 0});
  spec.code.push_back({ElementOp::mul, {3, 1}, 0, 0, 1});
  spec.code.push_back({ElementOp::sub, {4, 2}, 0, 0, 2});
  for (int64_t count = 0; count <= 80; ++count)
    for (bool in_place : {false, true}) expect_same_bits(spec, count, in_place, random);
}

// Elements of 16 bits are widened, rounded to nearest even and stored as the tensors' own conversions do it.
TEST_F(CpuElementKernel, elements_of_16_bits_are_read_and_written_in_place) {
  Random random(4);
  for (const Form form : {Form::halves, Form::brains})
    for (int64_t count = 0; count <= 40; ++count) {
      const auto narrow = [&](float value) {
        return form == Form::halves ? float_to_half(value) : float_to_bfloat(value);
      };
      const auto wide = [&](uint16_t bits) {
        return form == Form::halves ? half_to_float(bits) : bfloat_to_float(bits);
      };
      ElementSpec spec{.single = {false, false}, .inputs = {form, Form::floats}, .outputs = {form}};
      spec.code.push_back({ElementOp::mul, {0, 1}, 0, 0, -1});
      spec.code.push_back({form == Form::halves ? ElementOp::round_half : ElementOp::round_brain, {2}, 0, 0, 0});
      const std::vector<float> a = numbers(random), b = numbers(random);
      std::vector<uint16_t> x(static_cast<size_t>(count) + 8, 0x5555), wanted;
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        x[i] = narrow(a[i]);
        wanted.push_back(narrow(flushed(flushed(wide(x[i])) * flushed(b[i]))));
      }
      const void* from[] = {x.data(), b.data()};
      void* to[] = {x.data()};
      const unsigned state = _mm_getcsr();
      _mm_setcsr(state | 0x8040);  // as in workers, which flush denormals
      ElementKernel::make(machine_isa(), spec)->function()(from, to, count);
      _mm_setcsr(state);
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(wide(wanted[i]), wide(x[i]))) << count << " at " << i;
      for (size_t i = wanted.size(); i < x.size(); ++i) ASSERT_EQ(x[i], 0x5555) << count;
    }
}

// Long ones have more values than registers, and more streams than pointers.
TEST_F(CpuElementKernel, random_programs_have_the_bits_of_the_loops) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    ElementSpec spec;
    const int64_t inputs = random.between(1, 16), length = random.between(1, 24);
    for (int64_t i = 0; i < inputs; ++i) spec.single.push_back(i > 0 && random.between(0, 3) == 0);
    int outputs = 0;
    for (int64_t i = 0; i < length; ++i) {
      ElementInstruction code{.op = ElementOp::add};
      code.op = static_cast<ElementOp>(random.between(0, static_cast<int>(ElementOp::count) - 1));
      for (int& source : code.sources) source = static_cast<int>(random.between(0, inputs + i - 1));
      code.low = -0.5f, code.high = 0.75f;
      if (i == length - 1 || random.between(0, 3) == 0) code.output = outputs++;
      spec.code.push_back(code);
    }
    expect_same_bits(spec, random.between(1, kElementTile), random.coin(), random);
  }
}

TEST_F(CpuElementKernel, equal_programs_share_their_code_and_others_do_not) {
  ElementSpec spec{.single = {false, true}, .code = {{ElementOp::clip, {0}, 0, 6, 0}}};
  const auto kernel = ElementKernel::make(machine_isa(), spec);
  EXPECT_EQ(kernel, ElementKernel::make(machine_isa(), spec));
  spec.code[0].high = 5;
  EXPECT_NE(kernel, ElementKernel::make(machine_isa(), spec));
}

TEST_F(CpuElementKernel, no_code_is_generated_without_avx2) {
  EXPECT_FALSE(ElementKernel::make(Isa::none, {.single = {false}, .code = {{ElementOp::neg, {0}, 0, 0, 0}}}));
}

}  // namespace
}  // namespace cairn
