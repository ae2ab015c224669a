// Products of integers with what follows them, as one step: within one unit of the reference kernels one by one, the same bits at
// any number of threads.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn {
namespace {

/// A function under construction: a product of integers and a random chain of what may follow it.
class ChainText {
 public:
  explicit ChainText(unsigned seed) : random_(seed) {}

  std::string write() {
    const std::string x = random_.coin() ? "u8" : "i8", w = random_.one_of({0, 1, 1}) ? "i8" : "u8";
    int64_t h = random_.between(1, 9);
    const int64_t width = random_.between(1, 20);
    bool depthwise = false;
    int64_t ic = random_.one_of({1, 3, 4, 8, 17, 64}), oc = random_.one_of({1, 5, 16, 40, 70, 130});
    params_ = "%x: " + x;
    std::string zeros = constant(x, {});
    zeros += constant(w, {}, random_.coin() ? (w == "u8" ? "128" : "0") : "");
    if (random_.between(0, 4) == 0) {
      return batched(x, w, zeros, ic, oc);
    } else if (random_.coin()) {
      params_ += fmt::format("[{}, {}]", h * width, ic);
      dims_ = fmt::format("[{}, {}]", h * width, oc);
      const bool turned = random_.coin();
      body_ += constant(w, turned ? std::vector{oc, ic} : std::vector{ic, oc});
      body_ += zeros + fmt::format("%p = matmul_integer %x, %c2, %c0, %c1 {{transpose_b = {}}} ", turned);
    } else {
      depthwise = random_.coin();
      if (depthwise) oc = ic = random_.one_of({3, 64, 70, 130}), h *= random_.one_of({1, 1, 6});
      const int64_t k = random_.one_of({1, 3, 3, 5});
      params_ += fmt::format("[2, {}, {}, {}]", h, width, ic);
      dims_ = fmt::format("[2, {}, {}, {}]", h, width, oc);
      body_ += constant(w, {k, k, depthwise ? 1 : ic, oc});
      body_ += zeros + fmt::format("%p = conv2d_integer %x, %c2, %c0, %c1 {{padding = same, groups = {}}} ",
                                   depthwise ? ic : 1);
    }
    channels_ = oc;
    const auto text = [&](const std::string& result, const std::string& type) {
      return fmt::format("({}) -> ({}: {}{}) {{ {}return {} }}", params_, result, type, dims_, body_, result);
    };
    if (random_.between(0, 9) == 0) return text("%p", "i32");
    body_ += fmt::format(
        "%z = constant {{value = i32[] (0)}} %s = constant {{value = f32[{}] ({})}} "
        "%d = dequantize_linear %p, %s, %z ",
        oc, numbers(oc, 0.001, 0.01));
    std::string last = "%d";
    if (random_.coin()) {
      body_ += fmt::format("%b = constant {{value = f32[{}] ({})}} ", oc, numbers(oc, -1, 1));
      last = add("add " + last + ", %b");
    }
    if (random_.coin()) last = activated(last);
    const bool rounded = random_.coin();
    if (rounded) last = quantised(last, true);
    if (rounded && !depthwise && random_.coin()) {
      body_ += fmt::format("%e = constant {{value = f32[{}] ({})}} ", oc, numbers(oc, -1, 1));
      last = add("add " + last + ", %e");
    }
    if (random_.coin()) {
      const std::string type = random_.coin() ? "f32" : random_.coin() ? "u8" : "i8";
      params_ += ", %r: " + type + dims_;
      const std::string residual = type == "f32" ? "%r" : add("dequantize_linear %r, " + by(type));
      last = add("add " + residual + ", " + last);
      if (random_.coin()) last = activated(last);
    } else if (rounded) {
      return text(last, "f32");
    }
    if (random_.coin()) return text(last, "f32");
    last = quantised(last, false);
    return text(last, type_);
  }

 private:
  /// Products of two operands, each of which may be repeated along dims of the batch.
  std::string batched(const std::string& x, const std::string& w, const std::string& zeros, int64_t k, int64_t n) {
    const int64_t m = random_.between(1, 9), heads = random_.between(1, 5), a = random_.coin() ? heads : 1;
    const bool turned = random_.coin();
    const int64_t b = a == 1 ? heads : random_.one_of({1, heads});
    return fmt::format(
        "(%x: {}[2, {}, {}, {}], %w: {}[{}, {}, {}]) -> (%p: i32[2, {}, {}, {}]) {{ {}%p = matmul_integer %x, %w, %c0, "
        "%c1 "
        "{{transpose_b = {}}} return %p }}",
        x, a, m, k, w, b, turned ? n : k, turned ? k : n, heads, m, n, zeros, turned);
  }

  static std::string list(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }
  std::string numbers(int64_t count, double low, double high) {
    std::string all;
    for (float x : random_.floats(count, static_cast<float>(low), static_cast<float>(high)))
      all += fmt::format("{}{:.6f}", all.empty() ? "" : ", ", x);
    return all;
  }
  /// Defines %c0, %c1, ... of random integers, or of one given.
  std::string constant(const std::string& type, const std::vector<int64_t>& dims, const std::string& given = "") {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    const int64_t low = type == "i8" ? -128 : 0;
    std::string all = given;
    for (int64_t i = 0; given.empty() && i < count; ++i)
      all += fmt::format("{}{}", i ? ", " : "", random_.between(low, low + 255));
    const int place = dims.empty() ? scalars_++ : 2;
    return fmt::format("%c{} = constant {{value = {}{} ({})}} ", place, type, list(dims), all);
  }
  std::string add(const std::string& node) {
    const std::string name = fmt::format("%n{}", next_++);
    body_ += name + " = " + node + " ";
    return name;
  }
  std::string activated(const std::string& x) {
    return add(random_.coin() ? "relu " + x : "clip " + x + " {low = -0.5, high = 3.0}");
  }
  std::string by(const std::string& type) {
    const std::string scale = add("constant {value = f32[] (0.03)}");
    return scale + ", " + add(fmt::format("constant {{value = {}[] ({})}}", type, random_.between(0, 100)));
  }
  std::string quantised(const std::string& x, bool back) {
    type_ = random_.coin() ? "u8" : "i8";
    const std::string with = by(type_), y = add("quantize_linear " + x + ", " + with);
    return back ? add("dequantize_linear " + y + ", " + with) : y;
  }

  Random random_;
  std::string params_, body_, dims_, type_;
  int64_t channels_ = 0;
  int scalars_ = 0, next_ = 0;
};

double number_at(const Tensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype() == kU8) return tensor.values<uint8_t>()[at];
  if (tensor.dtype() == kI8) return tensor.values<int8_t>()[at];
  return tensor.dtype() == kF32 ? tensor.values<float>()[at] : tensor.values<int32_t>()[at];
}

TEST(CpuIntegers, a_product_and_what_follows_is_one_step_within_a_unit_of_the_reference) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const std::string text = "module @m { func @main" + ChainText(seed).write() + " }";
    const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
    std::vector<Tensor> inputs;
    std::mt19937_64 random(seed);
    for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
    const Tensor wanted = expected->run(inputs)[0];
    const double unit = wanted.dtype() == kF32 ? 0.0301 : wanted.dtype() == kI32 ? 0 : 1;
    Tensor one;
    for (int threads : {1, 3}) {
      const auto model = Model::make(parse(text), {.threads = threads, .optimise = false});
      const std::string kernels = kernels_of(*model);
      EXPECT_EQ(kernels.find("cpu/"), kernels.rfind("cpu/")) << kernels << text.substr(0, 200);
      EXPECT_NE(kernels.find("cpu/integer_"), std::string::npos) << kernels;
      const Tensor found = model->run(inputs)[0];
      EXPECT_TRUE(threads == 1 || found.same_bits(one)) << "seed " << seed;
      one = found;
      int64_t apart = 0;
      for (int64_t i = 0; i < wanted.count(); ++i) {
        const double difference = std::abs(number_at(found, i) - number_at(wanted, i));
        ASSERT_LE(difference, unit) << "seed " << seed << " element " << i << " " << kernels;
        apart += difference > unit / 2;
      }
      EXPECT_LE(static_cast<double>(apart), 2 + 0.01 * static_cast<double>(wanted.count())) << "seed " << seed;
    }
  }
}

/// Runs the body on the default engines and on the reference kernels node by node; within a unit of integers, one step.
void expect_one_element_step(const std::string& text, std::vector<Tensor> inputs, double most_apart = 1) {
  const std::string module = "module @m { func @main" + text + " }";
  const auto reference = Model::make(parse(module), {.threads = 1, .engines = {"reference"}, .optimise = false});
  const auto model = Model::make(parse(module), {.threads = 2, .optimise = false});
  const std::string kernels = kernels_of(*model);
  EXPECT_EQ(kernels.find("cpu/elementwise"), kernels.rfind("cpu/")) << kernels << text;
  const auto wanted = reference->run(inputs), found = model->run(inputs);
  for (size_t output = 0; output < wanted.size(); ++output)
    for (int64_t i = 0; i < wanted[output].count(); ++i) {
      const bool floats = wanted[output].dtype() == kF32;
      const double difference = std::abs(number_at(found[output], i) - number_at(wanted[output], i));
      ASSERT_LE(difference, floats ? 1e-5 : most_apart) << "element " << i << " of output " << output << text;
    }
}

TEST(CpuIntegers, floats_between_integers_are_one_step) {
  std::mt19937_64 random(7);
  for (int64_t columns : {1, 7, 8, 15, 16, 33, 130}) {
    const std::string dims = fmt::format("[9, {}]", columns), row = fmt::format("[{}]", columns);
    const auto any = [&](DType dtype, const Dims& of) {
      return random_tensor(Type::tensor(dtype, Shape::of(of)), random);
    };
    const Tensor bytes = any(kU8, {9, columns}), others = any(kI8, {9, columns});
    const std::string constants =
        "%s = constant {value = f32[] (0.02)} %t = constant {value = f32[] (0.05)} %z = constant {value = u8[] (120)} "
        "%n = constant {value = i8[] (-3)} ";
    expect_one_element_step(
        fmt::format(
            "(%x: u8{0}, %r: i8{0}) -> (%y: i8{0}, %f: f32{0}) {{ {1}%a = dequantize_linear %x, %s, %z %b = gelu %a "
            "%c = dequantize_linear %r, %t, %n %f = add %b, %c %y = quantize_linear %f, %t, %n return %y, %f }}",
            dims, constants),
        {bytes, others});
    expect_one_element_step(fmt::format("(%x: i8{0}, %w: f32{1}) -> (%y: u8{0}) {{ {2}%a = dequantize_linear %x, %w, "
                                        "%n %b = sigmoid %a %c = mul %a, "
                                        "%b %y = quantize_linear %c, %s, %z return %y }}",
                                        dims, row, constants),
                            {others, any(kF32, {columns})});
  }
}

TEST(CpuIntegers, quotients_are_rounded_as_by_a_division) {
  std::vector<float> values = {NAN, INFINITY, -INFINITY, 3e38F, -3e38F, 0.F, -0.F, 1e-40F};
  for (int i = -1200; i < 1200; ++i) values.push_back(static_cast<float>(i) * 0.035F);  // halves of steps among them
  const auto count = static_cast<int64_t>(values.size());
  for (const char* type : {"u8", "i8"})
    for (int64_t zero : {0, 5, 127})
      expect_one_element_step(fmt::format("(%x: f32[{0}]) -> (%y: {1}[{0}]) {{ %s = constant {{value = f32[] (0.07)}} "
                                          "%z = constant {{value = {1}[] "
                                          "({2})}} %a = neg %x %y = quantize_linear %a, %s, %z return %y }}",
                                          count, type, zero),
                              {Tensor::of(kF32, {count}, values)}, 0);
}

TEST(CpuIntegers, a_turned_left_operand_and_two_biases_join_the_product) {
  const std::string text =
      "module @m { func @main(%x: u8[2, 8, 6], %w: i8[8, 5]) -> (%y: f32[2, 6, 5]) { %s = constant {value = f32[] "
      "(0.02)} "
      "%z = constant {value = u8[] (120)} %n = constant {value = i8[] (0)} %a = dequantize_linear %x, %s, %z "
      "%b = dequantize_linear %w, %s, %n %p = matmul %a, %b {transpose_a = true} "
      "%c = constant {value = f32[5] (1.0, 2.0, 3.0, 4.0, 5.0)} %d = constant {value = f32[5] (0.5, 0.25, 0.0, 1.0, "
      "2.0)} "
      "%q = add %p, %c %y = add %q, %d return %y } }";
  const auto reference = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  const auto model = Model::make(parse(text), {.threads = 2});
  const std::string kernels = kernels_of(*model);
  EXPECT_EQ(kernels.find("reference"), std::string::npos) << kernels;
  EXPECT_EQ(kernels.find("elementwise"), std::string::npos) << kernels;
  EXPECT_NE(kernels.find("integer_tile"), std::string::npos) << kernels;
  std::vector<Tensor> inputs;
  std::mt19937_64 random(3);
  for (const Port& port : model->inputs()) inputs.push_back(random_tensor(port.type, random));
  const Tensor wanted = reference->run(inputs)[0], found = model->run(inputs)[0];
  for (int64_t i = 0; i < wanted.count(); ++i) ASSERT_NEAR(number_at(found, i), number_at(wanted, i), 1e-4);
}

TEST(CpuIntegers, bytes_made_of_the_same_bytes_are_looked_up) {
  for (const char* type : {"u8", "i8"})
    for (int64_t count : {1024, 1087, 40000}) {
      std::string by_value = fmt::format("(%x: {0}[{1}]) -> (%y: {0}[{1}]) {{ ", type, count);
      by_value += fmt::format("%s = constant {{value = f32[] (0.03)}} %z = constant {{value = {}[] (100)}} ", type);
      by_value += "%a = dequantize_linear %x, %s, %z %b = sigmoid %a %q = quantize_linear %b, %s, %z ";
      by_value += "%c = dequantize_linear %q, %s, %z %d = mul %a, %c %y = quantize_linear %d, %s, %z return %y }";
      std::vector<uint8_t> bytes(static_cast<size_t>(count));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 256);
      Tensor x = Tensor::uninitialized(std::string_view(type) == "u8" ? kU8 : kI8, {count});
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(x.mutable_data()));
      expect_one_element_step(by_value, {x});
      const auto model = Model::make(parse("module @m { func @main" + by_value + " }"), {.threads = 1});
      EXPECT_NE(kernels_of(*model).find("by table"), std::string::npos) << kernels_of(*model);
    }
}

TEST(CpuIntegers, means_of_bytes_read_bytes) {
  std::mt19937_64 random(5);
  for (const char* type : {"u8", "i8"})
    for (int64_t channels : {8, 33, 130, 200})
      expect_reference_result(
          fmt::format("module @m {{ func @main(%x: {0}[2, 40, 30, {1}]) -> (%y: f32[2, {1}]) {{ %s = constant {{value "
                      "= f32[] (0.02)}} %z = constant {{value = {0}[] (7)}} %a = dequantize_linear %x, %s, %z "
                      "%y = reduce_mean %a {{axes = [1, 2], keep_dims = false}} return %y }} }}",
                      type, channels),
          random, [](const std::string& kernels) { EXPECT_EQ(kernels, "cpu/reduce bytes "); });
}

TEST(CpuIntegers, activations_pools_and_gates_behind_a_product_read_its_bytes) {
  const std::string scales =
      "%s = constant {value = f32[] (0.02)} %t = constant {value = f32[] (0.05)} %z = constant {value = u8[] (120)} "
      "%n = constant {value = i8[] (0)} ";
  const std::string text =
      "module @m { func @main(%x: u8[1, 32, 32, 8], %w: i8[1, 1, 8, 24]) -> (%y: u8[1, 32, 32, 24]) { " + scales +
      "%a = dequantize_linear %x, %s, %z %b = dequantize_linear %w, %s, %n %p = conv2d %a, %b "
      "%q = quantize_linear %p, %t, %z %d = dequantize_linear %q, %t, %z %g = sigmoid %d %m = mul %d, %g "
      "%h = quantize_linear %m, %t, %z %i = dequantize_linear %h, %t, %z "
      "%o = reduce_mean %i {axes = [1, 2], keep_dims = true} %e = sigmoid %o %f = mul %i, %e "
      "%y = quantize_linear %f, %t, %z return %y } }";
  const auto model = Model::make(parse(text), {.threads = 1});
  const std::string kernels = kernels_of(*model);
  for (const char* kernel : {"cpu/integer_tile", "by table", "cpu/reduce bytes", "cpu/elementwise 3"})
    EXPECT_NE(kernels.find(kernel), std::string::npos) << kernels;
  const std::vector<std::vector<int64_t>> dims = {{1, 32, 32, 8}, {1, 1, 8, 24}};
  const auto plan = model->plan(dims);
  for (const PlannedStep& step : plan->steps)
    for (const Value* output : step.group.outputs)
      EXPECT_TRUE(output->type.dtype.bits == 8 || *element_count(output->type.shape.sizes()) == 24) << step.kernel;
}

/// Where the processor has no products of bytes, by bands of rows; sums that floats round are off by one unit at most.
TEST(CpuIntegers, ConvolutionsOfManyChannelsTakeWinogradsMethodWithoutProductsOfBytes) {
  if (machine_has_dot_products()) GTEST_SKIP() << "hardware: has products of bytes (run with CAIRN_ISA=avx2)";
  if (machine_isa() == Isa::none) GTEST_SKIP() << "hardware: no AVX2";
  std::mt19937_64 random(3);
  Random numbers(8);
  const auto listed = [&](int64_t count, int64_t low, int64_t high) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(numbers.between(low, high));
    return fmt::format("{}", fmt::join(all, ", "));
  };
  for (const char* type : {"u8", "i8"})
    for (const char* end : {"%q = relu %e", "%q = quantize_linear %e, %t, %zy"})
      for (const char* pads : {"padding = same", "padding = valid", "padding = explicit, pads = [2, 0, 1, 2]"}) {
        const std::string made = std::string(end).find("relu") == std::string::npos ? type : "f32";
        const std::string text = fmt::format(
            "module @m {{ func @main(%x: {0}[2, 43, 37, 40]) -> (%q: {1}[*]) {{ %w = constant {{value = i8[3, 3, 40, "
            "48] ({2})}} "
            "%zx = constant {{value = {0}[] (7)}} %zw = constant {{value = i8[] (0)}} %zy = constant {{value = {0}[] "
            "(9)}} "
            "%p = conv2d_integer %x, %w, %zx, %zw {{groups = 1, {3}}} %z = constant {{value = i32[] (0)}} "
            "%s = constant {{value = f32[48] ({4})}} %d = dequantize_linear %p, %s, %z %b = constant {{value = f32[48] "
            "({5})}} "
            "%e = add %d, %b %t = constant {{value = f32[] (0.5)}} {6} return %q }} }}",
            type, made, listed(3 * 3 * 40 * 48, -127, 127), pads,
            fmt::format("{:.5f}", fmt::join(numbers.floats(48, 1e-4f, 4e-4f), ", ")),
            fmt::format("{:.5f}", fmt::join(numbers.floats(48, -9, 9), ", ")), end);
        SCOPED_TRACE(fmt::format("{} {} {}", type, end, pads));
        const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
        const std::vector<Tensor> inputs{random_tensor(expected->inputs()[0].type, random)};
        const std::vector<double> wanted = expected->run(inputs)[0].as_f64();
        Tensor one;
        for (int threads : {1, 5}) {
          const auto model = Model::make(parse(text), {.threads = threads});
          EXPECT_NE(kernels_of(*model).find("cpu/integer_winograd"), std::string::npos) << kernels_of(*model);
          const Tensor found = model->run(inputs)[0];
          const std::vector<double> values = found.as_f64();
          size_t off = 0;
          for (size_t i = 0; i < wanted.size(); ++i) {
            off += values[i] != wanted[i] && made != "f32";
            ASSERT_NEAR(values[i], wanted[i], made == "f32" ? 1e-3 : 1) << i;
          }
          EXPECT_LE(off, wanted.size() / 500);
          EXPECT_TRUE(!one.defined() || found.same_bits(one));
          one = found;
        }
      }
}

}  // namespace
}  // namespace cairn
