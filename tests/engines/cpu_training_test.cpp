// The CPU engine's kernels of training and of grouped convolution on random shapes: equal to the rows' reference, the same
// bits at any number of threads, and really the CPU's.
#include "engines/cpu_reference.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn {
namespace {

void expect_cpu(const std::string& op, const std::string& text, const std::string& kernel) {
  const OpCase op_case = parse_case(*find_op(op), text);
  const auto inputs = random_inputs(op_case, 3);
  std::vector<Tensor> given, one;
  for (const HostValue& value : parameters_of(op_case, inputs)) given.push_back(value.tensor);
  const auto expected = run_reference(*op_case.op, op_case.attributes, inputs);
  for (int threads : {1, 3}) {
    const ModelOptions plain{.threads = threads, .optimise = false, .deterministic = true};
    const auto model = Model::make(module_of(op_case), plain);
    EXPECT_NE(kernels_of(*model).find("cpu/" + kernel), std::string::npos)
        << op << " " << text << ": " << kernels_of(*model);
    const auto results = model->run(given);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (auto wrong = difference(expected[i].tensor, results[i], op_case.op->precision))
        ADD_FAILURE() << op << " " << text << ", result " << i << ": " << *wrong;
      EXPECT_TRUE(threads == 1 || results[i].same_bits(one[i])) << op << " " << text;
    }
    one = results;
  }
}

/// A convolution's dims by "same" padding.
struct Shapes {
  std::string x, kernel, y, x_dims, kernel_dims, attributes;
};
Shapes random_shapes(Random& random, int64_t groups) {
  const int64_t n = random.between(1, 3), h = random.between(3, 12), w = random.between(3, 12);
  const int64_t in = groups * random.one_of({1, 3, 8, 17, 40}), out = groups * random.one_of({1, 5, 16, 33, 48});
  const int64_t kh = random.between(1, 4), kw = random.between(1, 4);
  int64_t strides[2] = {random.between(1, 3), random.between(1, 3)}, dilations[2] = {1, 1};
  if (random.coin()) {
    for (int i : {0, 1}) dilations[i] = random.between(1, 2), strides[i] = 1;
  }
  const int64_t oh = (h + strides[0] - 1) / strides[0], ow = (w + strides[1] - 1) / strides[1];
  const auto dims = [](int64_t a, int64_t b, int64_t c, int64_t d) {
    return fmt::format("[{}, {}, {}, {}]", a, b, c, d);
  };
  Shapes shapes;
  shapes.x_dims = dims(n, h, w, in), shapes.kernel_dims = dims(kh, kw, in / groups, out);
  shapes.x = "f32" + shapes.x_dims, shapes.kernel = "f32" + shapes.kernel_dims, shapes.y = "f32" + dims(n, oh, ow, out);
  shapes.attributes = fmt::format(" {{strides = [{}, {}], dilations = [{}, {}], padding = same, groups = {}}}",
                                  strides[0], strides[1], dilations[0], dilations[1], groups);
  return shapes;
}

TEST(CpuTraining, gradients_of_convolutions_of_random_shapes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const Shapes s = random_shapes(random, seed % 5 == 0 ? 2 : 1);
    expect_cpu("conv2d_input_gradient", s.y + ", " + s.kernel + ", i64[4]=" + s.x_dims + s.attributes, "");
    expect_cpu("conv2d_kernel_gradient", s.x + ", " + s.y + ", i64[4]=" + s.kernel_dims + s.attributes, "");
  }
}

TEST(CpuTraining, windows_that_cover_whole_rows_or_images) {
  struct Case {
    std::string x, kernel, y, attributes;
  };
  for (const Case& c : {Case{"[3, 12, 40, 1]", "[3, 40, 1, 20]", "[3, 10, 1, 20]", ""},
                        Case{"[2, 11, 9, 3]", "[5, 9, 3, 7]", "[2, 6, 1, 7]",
                             "strides = [2, 3], padding = explicit, pads = [3, 2, 0, 0]"},
                        Case{"[2, 5, 7, 2]", "[5, 7, 2, 33]", "[2, 1, 1, 33]", ""},
                        Case{"[2, 23, 1, 6]", "[4, 1, 6, 9]", "[2, 23, 1, 9]", "padding = same"},
                        Case{"[2, 23, 4, 2]", "[3, 4, 2, 5]", "[2, 11, 1, 5]", "strides = [2, 1]"},
                        Case{"[2, 4, 30, 2]", "[4, 5, 2, 9]", "[2, 1, 12, 9]",
                             "strides = [1, 2], dilations = [1, 2], padding = explicit, pads = [0, 0, 1, 1]"}}) {
    const std::string attributes = " {" + c.attributes + "}";
    expect_cpu("conv2d", "f32" + c.x + ", f32" + c.kernel + attributes, "tile");
    expect_cpu("conv2d_input_gradient", "f32" + c.y + ", f32" + c.kernel + ", i64[4]=" + c.x + attributes,
               "input_gradient");
    expect_cpu("conv2d_kernel_gradient", "f32" + c.x + ", f32" + c.y + ", i64[4]=" + c.kernel + attributes, "");
  }
}

TEST(CpuTraining, gradients_of_few_channels) {
  const bool wide = machine_isa() == Isa::avx512;  // narrower vectors are full sooner
  const std::string x = "f32[5, 12, 13, 2]", y = "f32[5, 12, 13, 6]", same = " {padding = same}";
  expect_cpu("conv2d_kernel_gradient", x + ", " + y + ", i64[4]=[5, 5, 2, 6]" + same, wide ? "pixel_gradient" : "");
  expect_cpu("conv2d_input_gradient", "f32[5, 12, 13, 24], f32[5, 5, 2, 24], i64[4]=[5, 12, 13, 2]" + same,
             wide ? "scattered_gradient" : "");
  for (unsigned seed = 0; seed < 80; ++seed) {
    Random random(seed);
    const int64_t n = random.between(4, 6), in = random.between(1, 4), out = random.between(1, 8);
    int64_t size[2], made[2], taps[2], strides[2], dilations[2];
    for (int i : {0, 1}) {
      taps[i] = random.between(1, 5), strides[i] = random.between(1, 3), dilations[i] = random.between(1, 2);
      made[i] = random.between(1, 40);
      size[i] = (made[i] - 1) * strides[i] + (taps[i] - 1) * dilations[i] + 1 + random.between(0, 2);
    }
    const int64_t top = random.between(0, taps[0] - 1), left = random.between(0, taps[1] - 1);
    for (int i : {0, 1}) size[i] = std::max<int64_t>(1, size[i] - (i ? left : top));
    const auto dims = [](int64_t a, int64_t b, int64_t c, int64_t d) {
      return fmt::format("[{}, {}, {}, {}]", a, b, c, d);
    };
    for (int i : {0, 1}) {
      const int64_t before = i ? left : top;
      made[i] = (size[i] + before - (taps[i] - 1) * dilations[i] - 1) / strides[i] + 1;
    }
    if (made[0] < 1 || made[1] < 1) continue;
    const std::string attributes =
        fmt::format(" {{strides = [{}, {}], dilations = [{}, {}], padding = explicit, pads = [{}, 0, {}, 0]}}",
                    strides[0], strides[1], dilations[0], dilations[1], top, left);
    const std::string x_dims = dims(n, size[0], size[1], in), y_dims = dims(n, made[0], made[1], out);
    const std::string kernel_dims = dims(taps[0], taps[1], in, out);
    expect_cpu("conv2d_kernel_gradient", "f32" + x_dims + ", f32" + y_dims + ", i64[4]=" + kernel_dims + attributes,
               "");
    expect_cpu("conv2d_input_gradient", "f32" + y_dims + ", f32" + kernel_dims + ", i64[4]=" + x_dims + attributes, "");
  }
}

TEST(CpuTraining, one_image_of_few_channels_and_its_bias) {
  std::mt19937_64 random(3);
  for (const int64_t images : {1, 2})
    for (const auto& [y, kernel, x, strides] : {std::tuple{"1, 99, 64", "1, 16, 1, 64", "1, 800, 1", "1, 8"},
                                                {"14, 14, 64", "4, 4, 1, 64", "28, 28, 1", "2, 2"},
                                                {"14, 9, 48", "5, 3, 2, 48", "18, 19, 2", "1, 2"}})
      expect_reference_result(
          fmt::format(
              R"(module @m {{ func @main(%a: f32[{0}, {1}], %k: f32[{2}], %b: f32[{3}]) -> (%y: f32[{0}, {4}]) {{
            %s = constant {{value = i64[4] ({0}, {4})}}
            %c = conv2d_input_gradient %a, %k, %s {{strides = [{5}], padding = {6}}}
            %y = add %c, %b return %y }} }})",
              images, y, kernel, x[std::string(x).size() - 1], x, strides, x[0] == '2' ? "same" : "valid"),
          random, [](const std::string&) {});
}

TEST(CpuTraining, volumes_of_random_shapes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const int64_t groups = random.one_of({1, 1, 1, 2, 5}), in = groups * random.one_of({1, 3, 8, 17, 40});
    const int64_t out = groups == 5 ? in : groups * random.one_of({1, 5, 16, 33});
    std::vector<int64_t> x{random.between(1, 3)}, kernel, y{x[0]}, strides, dilations;
    for (int i = 0; i < 3; ++i) {
      x.push_back(random.between(2, 9)), kernel.push_back(random.between(1, 3));
      strides.push_back(random.between(1, 2)), dilations.push_back(random.between(1, 2));
      y.push_back((x.back() + strides.back() - 1) / strides.back());
    }
    x.push_back(in), kernel.insert(kernel.end(), {in / groups, out}), y.push_back(out);
    const auto dims = [](const std::vector<int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); };
    const std::string attributes = fmt::format(" {{strides = {}, dilations = {}, padding = same, groups = {}}}",
                                               dims(strides), dims(dilations), groups);
    expect_cpu("conv3d", "f32" + dims(x) + ", f32" + dims(kernel) + attributes, "");
    expect_cpu("conv3d_input_gradient", "f32" + dims(y) + ", f32" + dims(kernel) + ", i64[5]=" + dims(x) + attributes,
               "");
    expect_cpu("conv3d_kernel_gradient", "f32" + dims(x) + ", f32" + dims(y) + ", i64[5]=" + dims(kernel) + attributes,
               "");
  }
}

TEST(CpuTraining, gradients_by_strides_and_dilations_at_once) {
  expect_cpu("conv2d_input_gradient",
             "f32[2, 3, 5, 20], f32[3, 4, 6, 20], i64[4]=[2, 13, 15, 6] {strides = [3, 2], dilations = [2, 2]}",
             "input_gradient");
}

TEST(CpuTraining, convolutions_with_groups_of_random_shapes) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Shapes s = random_shapes(random, random.between(2, 4));
    expect_cpu("conv2d", s.x + ", " + s.kernel + s.attributes, "");
  }
}

TEST(CpuTraining, takes_a_large_convolution_in_blocks) {
  expect_cpu("conv2d_kernel_gradient",
             "f32[2, 40, 40, 160], f32[2, 40, 40, 80], i64[4]=[3, 3, 160, 80] {padding = same}", "kernel_gradient");
  expect_cpu("conv2d_kernel_gradient", "f32[3, 30, 30, 96], f32[3, 30, 30, 64], i64[4]=[1, 1, 96, 64]",
             "kernel_gradient");
  expect_cpu("conv2d_kernel_gradient",
             "f32[3, 59, 60, 40], f32[3, 30, 30, 70], i64[4]=[1, 1, 40, 70] {strides = [2, 2], padding = same}",
             "kernel_gradient");
  expect_cpu("conv2d_kernel_gradient",
             "f32[8, 7, 9, 24], f32[8, 4, 5, 40], i64[4]=[3, 3, 24, 40] {strides = [2, 2], padding = same}",
             "kernel_gradient");
  expect_cpu("conv2d_kernel_gradient",
             "f32[2, 40, 31, 12], f32[2, 20, 16, 50], i64[4]=[5, 2, 12, 50] {strides = [2, 2], padding = same}",
             "kernel_gradient");
  expect_cpu("conv2d_kernel_gradient",
             "f32[1, 40, 40, 20], f32[1, 40, 40, 32], i64[4]=[3, 3, 20, 32] {dilations = [9, 7], padding = same}",
             "kernel_gradient");
}

TEST(CpuTraining, products_of_many_transposed_rows) {
  for (const char* text :
       {"f32[600, 70], f32[600, 90]", "f32[256, 64], f32[256, 64]", "f32[1000, 100], f32[1000, 333]"})
    expect_cpu("matmul", std::string(text) + " {transpose_a = true}", "transposed_product");
  expect_cpu("matmul", "f32[255, 70], f32[255, 90] {transpose_a = true}", "tile");
  expect_cpu("matmul", "f32[2, 300, 70], f32[2, 300, 90] {transpose_a = true}", "tile");
}

TEST(CpuTraining, groups_narrower_than_a_vector) {
  for (const char* out : {"8", "16", "32"})
    expect_cpu(
        "conv2d_kernel_gradient",
        fmt::format("f32[1, 6, 6, 8], f32[1, 6, 6, {}], i64[4]=[3, 3, 2, {}] {{groups = 4, padding = same}}", out, out),
        "kernel_gradient");
}

TEST(CpuTraining, a_kernel_of_one_tap_beyond_the_image) {
  expect_cpu("conv2d_kernel_gradient",
             "f32[2, 4, 5, 20], f32[2, 5, 7, 40], i64[4]=[1, 1, 20, 40] {padding = explicit, pads = [0, 1, 0, 2]}",
             "kernel_gradient");
}

TEST(CpuTraining, normalises_and_its_gradient_over_many_rows) {
  for (const char* dims : {"[3, 17]", "[2, 30, 31, 40]", "[9000, 3]"}) {
    const std::string x = std::string("f32") + dims, c = x.substr(x.rfind(' '));
    const std::string vector = ", f32[" + c.substr(1);
    expect_cpu("batch_norm_training", x + vector + vector + " {axis = -1, epsilon = 0.001}", "batch_norm_training");
    const std::string size = c.substr(1, c.size() - 2);
    std::string ones = "1";
    for (int i = 1; i < std::stoi(size); ++i) ones += ", 1.5";
    expect_cpu("batch_norm_gradient",
               x + ", " + x + vector + vector + vector + "=[" + ones + "] {axis = -1, epsilon = 0.001}",
               "batch_norm_gradient");
  }
}

TEST(CpuTraining, normalises_and_its_gradient_with_channels_first) {
  expect_cpu("batch_norm_training", "f32[1, 20, 37, 1], f32[20], f32[20] {axis = 1, epsilon = 0.001}",
             "batch_norm_training");
  expect_cpu("batch_norm_training", "f32[3, 2, 5, 7], f32[2], f32[2] {axis = 1, epsilon = 0.001}",
             "batch_norm_training");
  expect_cpu("batch_norm_gradient",
             "f32[3, 2, 5, 7], f32[3, 2, 5, 7], f32[2], f32[2], f32[2]=[1, 0.5] {axis = 1, epsilon = 0.001}",
             "batch_norm_gradient");
}

TEST(CpuTraining, gradients_of_resizing_of_any_sizes_and_modes) {
  for (const char* attributes :
       {"mode = bilinear", "mode = bilinear, coordinates = align_corners", "mode = bicubic", "mode = nearest"})
    for (const auto& [dy, image] : {std::pair{"[2, 40, 60, 16]", "[2, 20, 30, 16]"},
                                    {"[2, 37, 23, 3]", "[2, 12, 31, 3]"},
                                    {"[1, 5, 9, 37]", "[1, 11, 9, 37]"},
                                    {"[3, 50, 7, 1]", "[3, 24, 1, 1]"},
                                    {"[1, 1, 1, 8]", "[1, 33, 2, 8]"}})
      expect_cpu("resize2d_gradient", fmt::format("f32{}, i64[4]={} {{{}}}", dy, image, attributes),
                 std::string(attributes) == "mode = nearest" ? "" : "resize gradient");
}

TEST(CpuTraining, losses_and_gradients_of_pools) {
  expect_cpu("softmax_cross_entropy", "f32[50, 1001], f32[50, 1001]", "softmax_cross_entropy");
  expect_cpu("sparse_softmax_cross_entropy", "f32[4, 30], i32[4]=[29, 0, 3, 3]", "sparse_softmax_cross_entropy");
  expect_cpu("max_pool2d_gradient",
             "f32[2, 15, 15, 37], f32[2, 8, 8, 37] {window = [3, 3], strides = [2, 2], padding = same}",
             "max_pool2d_gradient");
  for (const int channels : {3, 21, 70}) {  // windows that overlap
    expect_cpu("max_pool2d_gradient",
               fmt::format("f32[2, 9, 11, {0}], f32[2, 9, 11, {0}] {{window = [5, 5], padding = same}}", channels),
               "max_pool2d_gradient");
    expect_cpu("max_pool2d_gradient",
               fmt::format("f32[1, 13, 9, {0}], f32[1, 4, 7, {0}] {{window = [4, 3], strides = [3, 1]}}", channels),
               "max_pool2d_gradient");
  }
  for (const auto& [height, width, made, attributes] :
       {std::tuple{12, 10, "12, 10", "window = [3, 3], padding = same"},
        std::tuple{20, 21, "10, 7", "window = [7, 5], strides = [2, 3], padding = same"},
        std::tuple{9, 30, "9, 24", "window = [1, 7]"}, std::tuple{3, 5, "3, 5", "window = [5, 9], padding = same"}})
    expect_cpu("max_pool2d_gradient",
               fmt::format("f32[2, {}, {}, 19], f32[2, {}, 19] {{{}}}", height, width, made, attributes),
               "max_pool2d_gradient");
  for (const char* row :
       {"0, 1, 1, 0, 1, 0", "inf, 0, inf, -inf, -inf, -inf", "nan, 2, 1, nan, 5, 5"})  // ties and others
    expect_cpu("max_pool2d_gradient",
               fmt::format("f32[1, 4, 6, 1]=[{0}, {0}, 0, 0, 0, 1, 1, 1, {0}], f32[1, 4, 6, 1] {{window = [3, 3], "
                           "padding = same}}",
                           row),
               "max_pool2d_gradient");
  for (const int channels : {1, 6, 16, 20})
    for (const char* padding : {"same", "valid"})
      expect_cpu(
          "max_pool2d_gradient",
          fmt::format("f32[3, 13, 14, {0}], f32[3, {1}, {2}, {0}] {{window = [2, 3], strides = [2, 3], padding = {3}}}",
                      channels, *padding == 's' ? 7 : 6, *padding == 's' ? 5 : 4, padding),
          "max_pool2d_gradient");
  for (const int channels : {1, 3, 6, 15})
    expect_cpu("max_pool2d_gradient",
               fmt::format("f32[3, 13, 15, {0}], f32[3, 6, 7, {0}] {{window = [2, 2], strides = [2, 2]}}", channels),
               "max_pool2d_gradient");
  expect_cpu("max_pool2d_gradient",
             "f32[1, 2, 8, 1]=[0, 0, 1, 2, 3, 1, nan, 1, 0, 0, 2, 2, 3, 3, 1, nan], f32[1, 1, 4, 1] {window = [2, 2], "
             "strides = [2, 2]}",
             "max_pool2d_gradient");
  expect_cpu("avg_pool2d_gradient",
             "f32[2, 8, 8, 37], i64[4]=[2, 15, 15, 37] {window = [3, 3], strides = [2, 2], padding = same}",
             "avg_pool2d_gradient");
  for (const char* ties : {"first", "all"})
    expect_cpu(
        "max_pool3d_gradient",
        fmt::format("f32[2, 5, 9, 8, 70], f32[2, 3, 5, 4, 70] {{window = [3, 3, 3], strides = [2, 2, 2], padding = "
                    "same, ties = {}}}",
                    ties),
        "max_pool3d_gradient");
  expect_cpu("avg_pool3d_gradient",
             "f32[2, 3, 5, 4, 37], i64[5]=[2, 5, 9, 8, 37] {window = [3, 3, 3], strides = [2, 2, 2], padding = same}",
             "avg_pool3d_gradient");
  expect_cpu("conv2d_kernel_gradient",
             "f32[2, 9, 9, 70], f32[2, 9, 9, 70], i64[4]=[3, 3, 1, 70] {groups = 70, padding = same}",
             "depthwise_kernel_gradient");
  for (int64_t filters : {2, 3}) {
    const std::string dy = fmt::format("f32[2, 5, 5, {}]", 70 * filters),
                      k = fmt::format("[3, 3, 1, {}]", 70 * filters);
    const std::string attributes = " {groups = 70, padding = same, strides = [2, 2]}";
    expect_cpu("conv2d_kernel_gradient", "f32[2, 9, 9, 70], " + dy + ", i64[4]=" + k + attributes,
               "depthwise_kernel_gradient");
    expect_cpu("conv2d_input_gradient", dy + ", f32" + k + ", i64[4]=[2, 9, 9, 70]" + attributes,
               "depthwise_input_gradient");
  }
}

}  // namespace
}  // namespace cairn
