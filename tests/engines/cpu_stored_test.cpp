// Products and convolutions whose weights are stored in fewer bits than floats: within rounding of the reference kernels, the same
// bits at any number of threads, and as small in memory.
#include "engines/cpu_reference.h"
#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

class ProductText {
 public:
  explicit ProductText(unsigned seed) : random_(seed) {}

  std::string write() {
    const int64_t rows = random_.one_of({1, 1, 2, 5, 6, 12, 13, 40, 140, 300});
    int64_t k = random_.one_of({1, 7, 32, 65, 400, 770});
    int64_t n = random_.one_of({1, 8, 17, 48, 64, 130});
    const int64_t kind = random_.between(0, 3);
    if (kind >= 2) k = std::max<int64_t>(k, 65), n = std::max<int64_t>(n, 16);  // smaller casts are folded
    std::string made, turned = random_.coin() ? "true" : "false";
    if (kind == 0) {
      made = blocks(k, n);
      turned = "true";
    } else if (kind == 1) {
      made = linear(k, n, turned == "true");
    } else {
      made = constant("%q", random_.coin() ? "f16" : "bf16", turned == "true" ? std::vector{n, k} : std::vector{k, n}) +
             "%w = cast %q {dtype = f32} ";
    }
    std::string last = "%p", params = fmt::format("%x: f32[{}, {}]", rows, k);
    std::string body = made + fmt::format("%p = matmul %x, %w {{transpose_b = {}}} ", turned);
    if (random_.coin()) {
      body += constant("%b", "f32", {n}) + "%d = add %p, %b ";
      last = "%d";
    }
    if (random_.coin()) {
      params += fmt::format(", %r: f32[{}, {}]", rows, n);
      body += fmt::format("%e = add {}, %r %f = relu %e ", last);
      last = "%f";
    }
    return fmt::format("({}) -> ({}: f32[{}, {}]) {{ {}return {} }}", params, last, rows, n, body, last);
  }

  std::string write_convolution() {
    const int64_t side = random_.one_of({5, 14, 31}), ic = random_.one_of({40, 48}), oc = random_.one_of({32, 70});
    const std::string type = random_.coin() ? "f16" : "bf16";
    const int64_t taps = random_.one_of({1, 1, 3}), stride = random_.one_of({1, 2}),
                  made = (side + stride - 1) / stride;
    return fmt::format(
        "(%x: f32[2, {0}, {0}, {1}]) -> (%y: f32[2, {4}, {4}, {2}]) {{ {3}%w = cast %q {{dtype = f32}} "
        "%c = conv2d %x, %w {{padding = same, strides = [{5}, {5}]}} %y = relu %c return %y }}",
        side, ic, oc, constant("%q", type, {taps, taps, ic, oc}), made, stride);
  }

 private:
  std::string linear(int64_t k, int64_t n, bool turned) {
    const std::string type = random_.coin() ? "i8" : "u8";
    const bool each = random_.coin();
    const std::vector<int64_t> along = !each    ? std::vector<int64_t>{}
                                       : turned ? std::vector{n, int64_t{1}}
                                                : std::vector{n};
    return constant("%q", type, turned ? std::vector{n, k} : std::vector{k, n}) + constant("%s", "f32", along) +
           constant("%z", type, random_.coin() ? along : std::vector<int64_t>{}) + "%w = dequantize_linear %q, %s, %z ";
  }

  std::string blocks(int64_t k, int64_t n) {
    const int64_t bits = random_.coin() ? 4 : 8, block = random_.one_of({16, 32, 128, 512});
    const std::vector<int64_t> each = {n, (k + block - 1) / block};
    const std::string zero = random_.coin()
                                 ? constant("%z", "f32", each)
                                 : fmt::format("%z = constant {{value = f32[] ({}.0)}} ", bits == 4 ? 8 : 128);
    return constant("%q", "u8", {n, bits == 4 ? (k + 1) / 2 + random_.between(0, 3) : k}) +
           constant("%s", "f32", each) + zero +
           fmt::format("%w = dequantize_blocks %q, %s, %z {{bits = {}, block = {}, columns = {}}} ", bits, block, k);
  }

  std::string constant(const std::string& name, const std::string& type, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::string all;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t integer = random_.between(type == "u8" ? 0 : -128, type == "u8" ? 255 : 127);
      const bool tiny = i % 3 == 0;  // a denormal half
      const auto number = static_cast<float>(integer) / (type == "f32" ? 1000.F : tiny ? 0x1p23F : 64);
      all += i ? ", " : "";
      if (type == "u8" || type == "i8")
        all += std::to_string(integer);
      else if (type == "f32")
        all += fmt::format("{:.6f}", number);
      else
        all += fmt::format("{:#x}", type == "f16" ? float_to_half(number) : float_to_bfloat(number));
    }
    return fmt::format("{} = constant {{value = {}[{}] ({})}} ", name, type, fmt::join(dims, ", "), all);
  }

  Random random_;
};

void expect_near_reference(const std::string& function) {
  const std::string text = "module @m { func @main" + function + " }";
  const auto expected = Model::make(parse(text), {.threads = 1, .engines = {"reference"}, .optimise = false});
  std::vector<Tensor> inputs;
  std::mt19937_64 random(1);
  for (const Port& port : expected->inputs()) inputs.push_back(random_tensor(port.type, random));
  const Tensor wanted = expected->run(inputs)[0];
  double scale = 1;
  for (float each : wanted.values<float>()) scale = std::max(scale, std::abs(static_cast<double>(each)));
  Tensor one;
  for (int threads : {1, 3}) {
    const auto model = Model::make(parse(text), {.threads = threads, .optimise = false});
    const std::string kernels = kernels_of(*model);
    EXPECT_EQ(kernels.find("cpu/"), kernels.rfind("cpu/")) << kernels << function.substr(0, 200);
    EXPECT_NE(kernels.find("weights"), std::string::npos) << kernels;
    const Tensor found = model->run(inputs)[0];
    EXPECT_TRUE(threads == 1 || found.same_bits(one)) << kernels;
    one = found;
    const auto values = found.values<float>(), right = wanted.values<float>();
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], right[i], 4e-6 * scale) << i << " " << kernels;
  }
}

TEST(CpuStored, a_product_with_stored_weights_is_one_step_near_the_reference) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "needs AVX2";
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    expect_near_reference(ProductText(seed).write());
  }
}

TEST(CpuStored, a_convolution_with_weights_of_16_bits_is_one_step_near_the_reference) {
  if (machine_isa() == Isa::none) GTEST_SKIP() << "needs AVX2";
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    expect_near_reference(ProductText(seed).write_convolution());
  }
}

}  // namespace
}  // namespace cairn
