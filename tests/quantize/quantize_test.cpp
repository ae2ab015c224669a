// Quantisation of small nets with made weights: every method, what makes channels alike, budgets, files of AMCT, faults.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "formats/npz.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "quantize/amct.h"
#include "quantize/equalise.h"
#include "quantize/request.h"
#include "support/files.h"

namespace cairn::quantize {
namespace {

using Arrays = std::map<std::string, Tensor>;

Tensor noise(std::vector<int64_t> dims, unsigned seed, double size = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(size));
  Tensor tensor = Tensor::uninitialized(kF32, std::move(dims));
  for (float& x : tensor.mutable_values<float>()) x = normal(engine);
  return tensor;
}

/// Adds nodes that have the source names that layers are told by.
class Net {
 public:
  explicit Net(std::vector<int64_t> dims) : builder_(start(module_)) {
    Shape shape = Shape::of(dims);
    shape.dims[0] = Dim(intern_symbol("n"));
    x_ = module_.main().body.add_param(Type::tensor(kF32, shape), "x");
  }

  Net& add(const char* op, std::vector<Tensor> constants, Attributes attributes = {}, const std::string& name = {}) {
    builder_.sources.clear();
    if (!name.empty()) builder_.sources = {module_.add_source({"test", name, op, ""})};
    std::vector<Value*> inputs = {x_};
    for (Tensor& constant : constants) inputs.push_back(builder_.constant(std::move(constant)));
    x_ = builder_.add(op, std::move(inputs), std::move(attributes));
    return *this;
  }
  Net& conv(const std::string& name, std::vector<int64_t> dims, unsigned seed, int64_t groups = 1) {
    const double size = 1 / std::sqrt(static_cast<double>(dims[0] * dims[1] * dims[2]));
    return add("conv2d", {noise(dims, seed, size)}, {{"padding", std::string("same")}, {"groups", groups}}, name);
  }
  Net& dense(const std::string& name, int64_t in, int64_t out, unsigned seed) {
    return add("matmul", {noise({in, out}, seed, 1 / std::sqrt(static_cast<double>(in)))}, {}, name);
  }
  Value* value() const { return x_; }
  Builder& builder() { return builder_; }
  void set(Value* value) { x_ = value; }

  Module done() {
    Function& main = module_.main();
    main.body.results = {x_}, main.result_names = {"y"};
    verify(module_);
    return std::move(module_);
  }

 private:
  static Block& start(Module& module) {
    module.functions.push_back(std::make_unique<Function>());
    module.functions[0]->name = "main";
    return module.functions[0]->body;
  }

  Module module_;
  Builder builder_;
  Value* x_;
};

Module convolutions() {
  Net net({1, 8, 8, 3});
  net.conv("first", {3, 3, 3, 8}, 1).add("add", {noise({8}, 2, 0.1)}).add("relu", {});
  net.conv("deep", {3, 3, 1, 8}, 3, 8).add("relu", {}).conv("last", {1, 1, 8, 5}, 4);
  return net.done();
}

Module products() {
  Net net({1, 16});
  return net.dense("up", 16, 64, 1).add("relu", {}).dense("down", 64, 8, 2).done();
}

Examples examples_for(const Module& module, int64_t count = 48) {
  std::vector<int64_t> dims = {count};
  const Shape& shape = module.main().body.params[0]->type.shape;
  for (size_t i = 1; i < shape.rank(); ++i) dims.push_back(shape.dims[i].size);
  return Examples(module, {{"x", noise(dims, 9)}}, "", 16);
}

Tensor result_of(const Module& module, const Tensor& x) {
  return Model::make(clone(module), {.threads = 1})->run({x})[0];
}

double sqnr(const Tensor& x, const Tensor& y) {
  double signal = 0, error = 0;
  for (size_t i = 0; i < static_cast<size_t>(x.count()); ++i) {
    const double a = x.values<float>()[i], b = y.values<float>()[i];
    signal += b * b, error += (a - b) * (a - b);
  }
  return 10 * std::log10(signal / std::max(error, 1e-30));
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const LayerResult& layer_of(const Outcome& outcome, const std::string& name) {
  for (const LayerResult& layer : outcome.layers)
    if (layer.name == name) return layer;
  throw std::runtime_error(name + " is no layer");
}

Seen seen_of(const Tensor& values) {
  Seen seen;
  seen.measure(values.values<float>(), 1);
  seen.count(values.values<float>());
  return seen;
}

double error_of(const Tensor& values, Range range) {
  const Affine steps = affine_of(range);
  double error = 0;
  for (const float x : values.values<float>()) {
    const double q = std::clamp(std::nearbyint(double{x} / steps.scale) + steps.zero, 0.0, 255.0);
    error += std::pow((q - steps.zero) * steps.scale - x, 2);
  }
  return error;
}

TEST(Ranges, OutliersAreCut) {
  Tensor values = noise({20000}, 5);
  values.mutable_values<float>()[7] = 60;
  const Seen seen = seen_of(values);
  EXPECT_FLOAT_EQ(seen.range(Method::minmax, 99.9).high, 60);
  for (const Method method : {Method::percentile, Method::kl}) {
    const Range range = seen.range(method, 99.9);
    EXPECT_LT(range.high, 20) << name_of(method);
    EXPECT_GT(range.high, 2) << name_of(method);
    EXPECT_LT(range.low, -2) << name_of(method);
  }
}

TEST(Ranges, MseHasTheLeastError) {
  Tensor values = noise({20000}, 5);
  for (size_t i = 0; i < 20; ++i) values.mutable_values<float>()[i] = i % 2 ? -9 : 14;
  const Seen seen = seen_of(values);
  const double least = error_of(values, seen.range(Method::mse, 99.99));
  for (const Method method : {Method::minmax, Method::percentile, Method::kl})
    EXPECT_LE(least, 1.01 * error_of(values, seen.range(method, 99.99))) << name_of(method);
}

TEST(Ranges, HoldZeroWhichIsExact) {
  Tensor values = noise({100}, 5, 0.1);
  for (float& x : values.mutable_values<float>()) x += 3;
  const Affine steps = affine_of(seen_of(values).range(Method::mse, 99.9));
  EXPECT_EQ(steps.zero, 0);
  EXPECT_EQ(affine_of({-1, 3}).zero, 64);
  EXPECT_EQ(affine_of({0, 0}).scale, 1);
}

TEST(Kernels, EachOutputChannelAndGroupHasItsScale) {
  Module module = products();
  const Layer layer = layers_of(module)[0];
  const SmallKernel bytes = small_kernel(layer, layer.weights(), {});
  EXPECT_EQ(bytes.scales.dims(), (std::vector<int64_t>{1, 64}));
  EXPECT_GT(sqnr(bytes.near, layer.weights()), 40);
  const SmallKernel nibbles = small_kernel(layer, layer.weights(), {.bits = 4, .group = 8, .search = true});
  EXPECT_EQ(nibbles.grouped, (std::vector<int64_t>{2, 8, 64}));
  EXPECT_EQ(nibbles.scales.dims(), (std::vector<int64_t>{2, 1, 64}));
  EXPECT_GT(sqnr(nibbles.near, layer.weights()), 18);
}

TEST(Quantise, EveryMethodIsNear) {
  const Module module = convolutions();
  const Examples examples = examples_for(module);
  for (const Method method : {Method::minmax, Method::percentile, Method::kl, Method::mse}) {
    const Outcome outcome = quantise(module, &examples, {.method = method, .threads = 1});
    EXPECT_GT(outcome.final->sqnr, 28) << name_of(method);
    EXPECT_LT(outcome.final->sqnr, 80) << name_of(method) << ": nothing was rounded";
    EXPECT_LT(outcome.bytes_after * 2, outcome.bytes_before);
    for (const LayerResult& layer : outcome.layers) EXPECT_TRUE(layer.quantised && layer.sqnr) << layer.name;
  }
}

TEST(Quantise, WeightsAloneNeedNoData) {
  const Module module = products();
  const Tensor x = noise({5, 16}, 3), expected = result_of(module, x);
  const Outcome bytes = quantise(module, nullptr, {.weights_only = 8});
  EXPECT_GT(sqnr(result_of(bytes.module, x), expected), 38);
  const Outcome nibbles = quantise(module, nullptr, {.weights_only = 4, .group = 16});
  EXPECT_GT(sqnr(result_of(nibbles.module, x), expected), 14);
  EXPECT_LT(nibbles.bytes_after, bytes.bytes_after);
}

TEST(Quantise, ReferenceAndFastEngineAgree) {
  const Module module = convolutions();
  const Examples examples = examples_for(module);
  const Outcome outcome = quantise(module, &examples, {.threads = 1});
  const Tensor x = noise({2, 8, 8, 3}, 11);
  const Tensor mine = result_of(outcome.module, x);
  const auto reference = Model::make(clone(outcome.module), {.threads = 1, .engines = {"reference"}});
  EXPECT_GT(sqnr(mine, reference->run({x})[0]), 35);  // a sum next to half a step may be rounded to either side
}

TEST(Equalise, KeepsResultsAndEvensChannels) {
  Module module = convolutions();
  optimise(module);
  std::vector<Layer> layers = layers_of(module);
  const Tensor uneven = layers[0].weights();
  Tensor scaled = Tensor::uninitialized(kF32, uneven.dims());
  for (size_t i = 0; i < static_cast<size_t>(uneven.count()); ++i)
    scaled.mutable_values<float>()[i] = uneven.values<float>()[i] * (i % 8 == 3 ? 200 : 1);
  set_operand(module, *layers[0].node, layers[0].kernel, scaled);
  const Tensor x = noise({2, 8, 8, 3}, 11), before = result_of(module, x);
  EXPECT_EQ(equalise(module), 2U);
  verify(module);
  EXPECT_GT(sqnr(result_of(module, x), before), 100);
  layers = layers_of(module);
  const Tensor& even = layers[0].weights();
  float largest[8] = {};
  for (size_t i = 0; i < static_cast<size_t>(even.count()); ++i)
    largest[i % 8] = std::max(largest[i % 8], std::abs(even.values<float>()[i]));
  EXPECT_LT(*std::max_element(largest, largest + 8) / *std::min_element(largest, largest + 8), 200);
}

TEST(Smoothing, RescuesChannelsOfOtherSize) {
  Net net({1, 16});
  Tensor gain = Tensor::zeros(kF32, {16});
  for (size_t i = 0; i < 16; ++i) gain.mutable_values<float>()[i] = i == 5 ? 500.0F : 1.0F;
  Tensor weights = noise({16, 8}, 2);
  for (size_t i = 0; i < 8; ++i) weights.mutable_values<float>()[5 * 8 + i] /= 500;
  net.add("layer_norm", {gain, Tensor::zeros(kF32, {16})}, {{"epsilon", 1e-5}}).add("matmul", {weights}, {}, "product");
  const Module module = net.done();
  const Examples examples = examples_for(module);
  const Outcome smooth = quantise(module, &examples, {.costs = false, .threads = 1});
  const Outcome rough =
      quantise(module, &examples, {.smooth = false, .costs = false, .fall_back = false, .threads = 1});
  EXPECT_GT(smooth.final->sqnr, rough.whole->sqnr + 10);
  EXPECT_TRUE(smooth.layers[0].quantised);
}

/// Layer "hard" reads values of which one in 500 or so is 1,000 times the others, in any channel.
Module hard() {
  Net net({1, 32});
  net.dense("before", 32, 32, 1);
  Builder& b = net.builder();
  Value* x = net.value();
  Value* spikes = b.add("cast", {b.add("greater", {x, b.scalar(2.9F)})}, {{"dtype", kF32}});
  net.set(b.add("mul", {x, b.add("add", {b.add("mul", {spikes, b.scalar(1000)}), b.scalar(1)})}));
  net.dense("hard", 32, 32, 2).add("tanh", {}).dense("after", 32, 16, 3).add("relu", {}).dense("last", 16, 4, 4);
  return net.done();
}

TEST(Costs, DataIsRoundedWhereBytesAreFaster) {
  Net net({1, 8});
  net.dense("small", 8, 8, 1).add("softmax", {}).dense("wide", 8, 1024, 2).add("relu", {}).dense("deep", 1024, 1024, 3);
  const Module module = net.done();
  const Examples examples = examples_for(module);
  const Outcome outcome = quantise(module, &examples, {.threads = 1});
  EXPECT_FALSE(layer_of(outcome, "small").rounds_data);
  EXPECT_EQ(layer_of(outcome, "small").reason, "bytes would not be faster");
  EXPECT_TRUE(layer_of(outcome, "deep").rounds_data && layer_of(outcome, "deep").steps);
  for (const LayerResult& layer : outcome.layers) EXPECT_LT(layer.bytes_after * 2, layer.bytes_before) << layer.name;
  const Outcome all = quantise(module, &examples, {.costs = false, .threads = 1});
  EXPECT_TRUE(layer_of(all, "small").rounds_data);
}

TEST(Costs, DataOfFiltersInGroupsStaysFloats) {
  Net net({1, 8, 8, 64});
  const Module module = net.conv("groups", {3, 3, 32, 64}, 1, 2).conv("one", {3, 3, 64, 64}, 2).done();
  const Examples examples = examples_for(module);
  const Outcome outcome = quantise(module, &examples, {.threads = 1});
  EXPECT_EQ(layer_of(outcome, "groups").reason, "there are no products of bytes for it");
  EXPECT_TRUE(layer_of(outcome, "groups").quantised && !layer_of(outcome, "groups").rounds_data);
  EXPECT_TRUE(layer_of(quantise(module, &examples, {.costs = false, .threads = 1}), "one").rounds_data);
}

/// A recurrence over the rows of x: the state is 64 wide.
Module recurrent() {
  std::string text = R"(module @m {
    source 0 = "test" "rnn" "RNN" ""
    func @main(%x: f32[?n, 5, 16]) -> (%y: f32[?n, 64]) {
      %u = constant {value = f32[16, 64] (WEIGHTS)}
      %zero = constant {value = i64[] (0)}
      %none = constant {value = f32[] (0.0)}
      %t = transpose %x {permutation = [1, 0, 2]}
      %part = matmul %t, %u : f32[5, ?n, 64] #0
      %row = gather %part, %zero
      %start = mul %row, %none
      %i, %y = while %zero, %start, %part {carried = 2} : i64[], f32[?n, 64] #0
        region(%i0: i64[], %h0: f32[?n, 64], %p0: f32[5, ?n, 64]) {
          %five = constant {value = i64[] (5)}
          %more = less %i0, %five : bool[]
          yield %more
        }
        region(%i1: i64[], %h1: f32[?n, 64], %p1: f32[5, ?n, 64]) {
          %w = constant {value = f32[64, 64] (WEIGHTS)}
          %in = gather %p1, %i1 : f32[?n, 64]
          %past = matmul %h1, %w : f32[?n, 64]
          %sum = add %in, %past : f32[?n, 64]
          %next = tanh %sum : f32[?n, 64]
          %one = constant {value = i64[] (1)}
          %after = add %i1, %one : i64[]
          yield %after, %next
        }
      return %y
    }
  })";
  for (const int64_t inputs : {16, 64}) {
    const Tensor weights = noise({inputs, 64}, 20, 0.1);
    text.replace(text.find("WEIGHTS"), 7, fmt::format("{:.6f}", fmt::join(weights.values<float>(), ", ")));
  }
  return parse(text);
}

TEST(Loops, ProductsOfTheStateBecomeIntegers) {
  const Module module = recurrent();
  const Examples examples(module, {{"x", noise({40, 5, 16}, 9)}}, "", 16);
  const Tensor x = noise({7, 5, 16}, 3), expected = result_of(module, x);
  const Outcome outcome = quantise(module, &examples, {.costs = false, .threads = 1});
  EXPECT_TRUE(layer_of(outcome, "rnn").rounds_data && layer_of(outcome, "rnn#2").rounds_data);
  EXPECT_TRUE(layer_of(outcome, "rnn#2").extent && layer_of(outcome, "rnn#2").sqnr);
  const double near = sqnr(result_of(outcome.module, x), expected);
  EXPECT_GT(near, 25);
  EXPECT_LT(near, 80) << "nothing was rounded";
  const auto reference = Model::make(clone(outcome.module), {.threads = 1, .engines = {"reference"}});
  EXPECT_GT(sqnr(result_of(outcome.module, x), reference->run({x})[0]), 35);
}

TEST(Loops, WeightsAloneBecomeSmall) {
  const Module module = recurrent();
  const Tensor x = noise({7, 5, 16}, 3), expected = result_of(module, x);
  const Outcome bytes = quantise(module, nullptr, {.weights_only = 8});
  EXPECT_GT(sqnr(result_of(bytes.module, x), expected), 35);
  EXPECT_LT(bytes.bytes_after * 3, bytes.bytes_before);
  const Outcome nibbles = quantise(module, nullptr, {.weights_only = 4, .group = 16});
  EXPECT_GT(sqnr(result_of(nibbles.module, x), expected), 12);
  EXPECT_LT(nibbles.bytes_after, bytes.bytes_after);
}

TEST(Loops, TheBudgetKeepsTheStateInFloats) {
  const Module module = recurrent();
  const Examples examples(module, {{"x", noise({40, 5, 16}, 9)}}, "", 16);
  const Outcome outcome = quantise(module, &examples, {.budget = "150dB", .costs = false, .threads = 1});
  for (const LayerResult& layer : outcome.layers) EXPECT_FALSE(layer.quantised) << layer.name;
}

TEST(Budget, FindsTheLayerOfOutliers) {
  const Module module = hard();
  const Examples examples = examples_for(module, 256);
  const Outcome outcome = quantise(module, &examples, {.method = Method::minmax, .costs = false, .threads = 1});
  EXPECT_FALSE(layer_of(outcome, "hard").quantised);
  EXPECT_NE(layer_of(outcome, "hard").reason.find("the budget"), std::string::npos);
  EXPECT_LT(*layer_of(outcome, "hard").sqnr, *layer_of(outcome, "after").sqnr);
  EXPECT_FALSE(layer_of(outcome, "before").quantised);  // its roundings decide where there are outliers
  for (const char* name : {"after", "last"}) EXPECT_TRUE(layer_of(outcome, name).quantised) << name;
  EXPECT_GE(outcome.final->sqnr, 20);
  EXPECT_LT(outcome.whole->sqnr, 20);
}

TEST(Budget, OfAccuracyNeedsLabels) {
  const Module module = hard();
  const Tensor x = noise({256, 32}, 9), y = result_of(module, x);
  std::vector<int64_t> labels;
  for (size_t row = 0; row < 256; ++row) {
    const auto begin = y.values<float>().begin() + static_cast<long>(4 * row);
    labels.push_back(std::max_element(begin, begin + 4) - begin);
  }
  const Examples examples(module, {{"x", x}, {"label", Tensor::of_i64(labels)}}, "", 32);
  const Outcome outcome = quantise(module, &examples, {.method = Method::minmax, .costs = false, .threads = 1});
  EXPECT_EQ(*outcome.original->accuracy, 1);
  EXPECT_GE(*outcome.final->accuracy, 0.995);
  EXPECT_FALSE(layer_of(outcome, "hard").quantised);
}

TEST(Budget, IsAShareOrDecibels) {
  EXPECT_EQ(*parse_budget("0.5%", true).points, 0.5);
  EXPECT_EQ(*parse_budget("0.5%", false).error, 0.005);
  EXPECT_NEAR(*parse_budget("20dB", true).error, 0.1, 1e-12);
  for (const char* text : {"x", "0.5", "-1%", "nan%", "5 %", "%"})
    EXPECT_THROW(parse_budget(text, true), Error) << text;
}

TEST(Keep, LayersByNameStayAsTheyAre) {
  const Module module = products();
  const Examples examples = examples_for(module);
  const Outcome outcome = quantise(module, &examples, {.keep = {"up*"}, .threads = 1});
  EXPECT_FALSE(layer_of(outcome, "up").quantised);
  EXPECT_TRUE(layer_of(outcome, "down").quantised);
  EXPECT_EQ(message_of([&] { quantise(module, &examples, {.keep = {"sideways"}}); }),
            "sideways: is no layer of the model, which has 2 of them: up, ...");
}

class Files : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("cairn_quantize_" + std::to_string(::getpid()));
};

TEST_F(Files, ARecordGivesTheSameModelWithoutData) {
  const Module module = convolutions();
  const Examples examples = examples_for(module);
  Request request{.options = {.keep = {"last"}, .correct = false, .threads = 1}, .new_record = path("r.txt")};
  std::vector<std::string> notes;
  complete(request, notes);
  const Outcome outcome = quantise(module, &examples, request.options);
  write_files(request, outcome, {});
  Request again{.record = path("r.txt")};
  complete(again, notes);
  const Outcome same = quantise(module, nullptr, again.options);
  const Tensor x = noise({2, 8, 8, 3}, 11);
  EXPECT_GT(sqnr(result_of(same.module, x), result_of(outcome.module, x)), 60);
  EXPECT_EQ(layer_of(same, "last").reason, "without a record");
}

TEST_F(Files, AConfigurationIsWrittenAndFollowed) {
  const Module module = convolutions();
  const Examples examples = examples_for(module);
  Request request{.options = {.keep = {"deep"}, .threads = 1}, .page = path("page.html"), .new_config = path("c.json")};
  write_files(request, quantise(module, &examples, request.options), {"net.onnx", "", "x.npz", "net.om"});
  EXPECT_NE(read_file(path("page.html")).find("net.onnx"), std::string::npos);
  Options options;
  std::vector<std::string> notes;
  read_config(path("c.json"), options, notes);
  EXPECT_FALSE(options.orders.at("deep").quantise);
  EXPECT_EQ(*options.orders.at("first").method, Method::mse);
  EXPECT_EQ(options.calibration_batches, 3);
  EXPECT_TRUE(notes.empty());
}

TEST_F(Files, DamagedOnesAreRefusedInASentence) {
  const auto refusal = [&](const std::string& text, bool config) {
    write_file(path("f"), text);
    Options options;
    std::vector<std::string> notes;
    const std::string message = message_of([&] {
      if (config)
        read_config(path("f"), options, notes);
      else
        read_record(path("f"), options);
    });
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message.substr(message.find("f: ") == std::string::npos ? 0 : message.find("f: ") + 3);
  };
  EXPECT_EQ(refusal("[", true), "is no JSON object");
  EXPECT_EQ(refusal("{\"batch_num\": \"x\"}", true), "has a value of another form than AMCT's");
  EXPECT_EQ(refusal("{\"a\": {\"activation_quant_params\": {\"act_algo\": \"z\"}}}", true),
            "act_algo: 'z' is neither ifmr nor hfmg");
  EXPECT_NE(refusal("record { key: \"a\" value { scale_d: -1 } }", false).find("scale_d is -1"), std::string::npos);
  EXPECT_NE(refusal("record { key: \"a\" value { scale_w: 1 offset_w: 3 } }", false).find("offsets"),
            std::string::npos);
  EXPECT_NE(refusal("record { key: ", false), "no error");
  EXPECT_EQ(refusal("", false), "holds no record");
}

TEST_F(Files, MutantsAreReadOrRefused) {
  const std::string record =
      "record {\n  key: \"conv\"\n  value { scale_d: 0.02 offset_d: -3 scale_w: 0.1 offset_w: 0 shift_bit: 0 }\n}\n";
  const std::string config =
      R"({"version": 1, "batch_num": 2, "conv": {"quant_enable": true, "activation_quant_params": {"num_bits": 8,)"
      R"( "act_algo": "ifmr"}, "weight_quant_params": {"num_bits": 8, "channel_wise": true}}})";
  std::mt19937 engine(4);
  constexpr std::string_view kBytes = "{}[]:,\"\\-.0e9 \n\xff_a";
  size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 2 ? record : config;
    for (int edits = 1 + i % 4; edits > 0 && !text.empty(); --edits) {
      const size_t at = engine() % text.size();
      if (engine() % 3 == 0)
        text.erase(at, 1 + engine() % 9);
      else
        text[at] = kBytes[engine() % kBytes.size()];
    }
    write_file(path("f"), text);
    Options options;
    std::vector<std::string> notes;
    refused += message_of([&] {
                 if (i % 2)
                   read_record(path("f"), options);
                 else
                   read_config(path("f"), options, notes);
               }) != "no error";
  }
  EXPECT_GT(refused, 500U);
}

TEST_F(Files, FoldersOfArraysAreExamples) {
  write_npz(path("a.npz"), {{"x", noise({3, 16}, 1)}});
  write_npz(path("b.npz"), {{"x", noise({4, 16}, 2)}});
  EXPECT_EQ(read_examples(folder_.string()).at("x").dims(), (std::vector<int64_t>{7, 16}));
  write_npz(path("c.npz"), {{"x", noise({4, 15}, 2)}});
  EXPECT_EQ(message_of([&] { read_examples(folder_.string()); }),
            "x: is f32[3, 16] in one file and f32[4, 15] in another");
}

TEST(Data, WhatTheModelDoesNotTakeIsLeftOut) {
  const Examples examples(products(), {{"x", noise({4, 16}, 1)}, {"other", noise({3}, 1)}}, "", 16);
  EXPECT_EQ(examples.count(), 4);
}

TEST(Judge, AConstantPartIsNoSignal) {
  const auto judged = [](float constant) {
    Net net({1, 16});
    net.dense("up", 16, 64, 1).add("relu", {}).dense("down", 64, 8, 2);
    Value* shift = net.builder().constant(Tensor::scalar_f32(constant));
    net.set(net.builder().add("add", {net.value(), shift}));
    const Module module = net.done();
    const Examples examples = examples_for(module);
    return *quantise(module, &examples, {.threads = 1}).final;
  };
  EXPECT_NEAR(judged(1000).sqnr, judged(0).sqnr, 1);
}

TEST(Data, FaultsAreToldInASentence) {
  const Module module = products();
  const auto fault = [&](Arrays arrays, const std::string& labels = "") {
    return message_of([&] { Examples(module, std::move(arrays), labels, 16); });
  };
  EXPECT_EQ(fault({{"x", noise({4, 15}, 1)}}), "x: is f32[4, 15], the model takes f32[?n, 16]");
  EXPECT_EQ(fault({{"a", noise({4, 16}, 1)}, {"b", noise({4, 16}, 1)}}), "x: is not in the data; it has a, b");
  EXPECT_EQ(fault({{"x", noise({4, 16}, 1)}}, "z"), "z: is no array of the data, which has x");
  EXPECT_EQ(fault({{"x", noise({4, 16}, 1)}, {"y", Tensor::of_i64({1, 2})}}), "y: has 2 labels for 4 examples");
  Tensor wrong = noise({4, 16}, 1);
  wrong.mutable_values<float>()[3] = NAN;
  EXPECT_EQ(fault({{"x", wrong}}), "x: holds 1 values that are infinite or no numbers, of 64");
  EXPECT_EQ(message_of([&] { quantise(module, nullptr, {}); }), "up: needs calibration data: its range is not known");
  Net none({1, 4});
  const Module bare = none.add("relu", {}).done();
  EXPECT_EQ(message_of([&] { quantise(bare, nullptr, {.weights_only = 8}); }),
            "no convolution or matrix product has f32 data and constant weights");
}

}  // namespace
}  // namespace cairn::quantize
