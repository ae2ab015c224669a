// Caffe's files: what their generations say, what is wrong where, what a net's inputs and outputs are.
#include <gtest/gtest.h>

#include "frontends/import.h"
#include "ir/text.h"
#include "models.h"
#include "support/report.h"

namespace cairn {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kData = "input: 'data' input_shape { dim: 2 dim: 4 dim: 6 dim: 6 }\n";

Module import_text(const std::string& text, const ImportOptions& options = {}) {
  const std::string path = testing::TempDir() + "/caffe_test.prototxt";
  std::ofstream(path) << text;
  return import_model(path, options);
}

/// "relu f32[2, 4, 6, 6]" of each result.
Texts outputs_of(const std::string& text, const ImportOptions& options = {}) {
  const Module module = import_text(text, options);
  Texts outputs;
  for (size_t i = 0; i < module.main().result_names.size(); ++i)
    outputs.push_back(module.main().result_names[i] + " " + to_string(module.main().body.results[i]->type));
  return outputs;
}

std::string error_of(const std::string& text, const ImportOptions& options = {}) {
  try {
    import_text(text, options);
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(what.find("prototxt: ") + 10);
  }
  return "";
}

std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& more = "") {
  return fmt::format("layer {{ name: '{2}' type: '{0}' bottom: '{1}' top: '{2}' {3} }}\n", type, bottom, top, more);
}

TEST(Caffe, FaultsOfTheTextNameLineAndColumn) {
  EXPECT_EQ(error_of("name: 'n'\nlayer { name: 'a' type: }"), "line 2, column 25: expected a string, found '}'");
  EXPECT_EQ(error_of("layer { relu_param { slope: 1 } }"), "line 1, column 22: ReLUParameter has no field 'slope'");
  EXPECT_EQ(error_of("layer { pooling_param { pool: MEAN } }"), "line 1, column 31: field pool has no value 'MEAN'");
  EXPECT_EQ(error_of("layer {"), "line 1, column 8: the text ends inside LayerParameter");
  EXPECT_EQ(error_of("blob: 1"), "line 1, column 1: NetParameter has no field 'blob'");
}

TEST(Caffe, FaultsOfTheNetNameTheLayer) {
  EXPECT_EQ(error_of(kData + layer("ReLU", "dta", "y")), "line 2: layer 'y' reads 'dta', which nothing above it makes");
  EXPECT_EQ(error_of("input: 'x' input_dim: 1 input_dim: 2 " + layer("ReLU", "x", "y")),
            "has 2 numbers input_dim, expected four for each of 1 inputs");
  EXPECT_EQ(error_of(kData), "has no layer of the test phase");
  EXPECT_EQ(error_of(kData + layer("ReLU", "data", "y", "include { phase: TEST } exclude { phase: TRAIN }")),
            "line 2: a layer has rules to include it and rules to exclude it");
}

TEST(Caffe, OneReportHasAllLayersThatAreRefused) {
  try {
    import_text(kData + layer("Foo", "data", "a", "foo_param { x: [1, 2] y { z: 'w' } }") + layer("ReLU", "a", "b") +
                layer("Foo", "b", "c") + layer("ReLU", "data", "d", "relu_parm { }") +
                layer("Convolution", "data", "e", "convolution_param { num_output: 2 kernel_size: 1 }"));
    FAIL();
  } catch (const ReportError& error) {
    Texts found;
    for (const Problem& problem : error.report().problems())
      found.push_back(fmt::format("{}: {} {} {}", problem.subject, problem.places[0].node, problem.places[0].location,
                                  problem.message));
    EXPECT_EQ(
        found,
        (Texts{"Convolution: e caffe_test.prototxt:6 the layer needs weights: give the caffemodel file with --weight",
               "Foo: a caffe_test.prototxt:2 not supported",
               "ReLU: d caffe_test.prototxt:5 the layer has no field 'relu_parm'"}));
    EXPECT_EQ(error.report().problems()[1].places.size(), 2U);
  }
}

TEST(Caffe, OutputsAreTheTopsThatNoLayerReads) {
  const std::string net = kData + layer("ReLU", "data", "data") +
                          layer("Pooling", "data", "p", "pooling_param { kernel_size: 2 stride: 2 }") +
                          layer("TanH", "data", "t") + layer("Sigmoid", "p", "p");
  EXPECT_EQ(outputs_of(net), (Texts{"t f32[2, 4, 6, 6]", "p f32[2, 4, 3, 3]"}));
  ImportOptions options;
  options.out_nodes = {"data:0"};
  EXPECT_EQ(outputs_of(net, options), (Texts{"data f32[2, 4, 6, 6]"}));
  options.out_nodes = {"p", "t"};
  options.replace = {{"data", "input"}};
  options.input_shapes = {{"data", Shape::of({1, 4, 8, 8})}};
  EXPECT_EQ(outputs_of(net, options), (Texts{"p f32[1, 4, 4, 4]", "t f32[1, 4, 8, 8]"}));
  options = {};
  options.out_nodes = {"q"};
  EXPECT_EQ(error_of(net, options), "has no layer or top 'q'");
}

TEST(Caffe, WhatSilenceReadsIsNoOutput) {
  const std::string net = kData + layer("ReLU", "data", "a") + layer("TanH", "data", "b") +
                          "layer { name: 'accuracy' type: 'Accuracy' bottom: 'a' top: 'accuracy' }\n"
                          "layer { name: 's' type: 'Silence' bottom: 'b' bottom: 'accuracy' }\n";
  EXPECT_EQ(outputs_of(net), (Texts{"a f32[2, 4, 6, 6]"}));
}

TEST(Caffe, SizesOfInputsAreWhatTheFileSaysOrWhatIsAskedFor) {
  const std::string net = layer("Input", "none", "x", "input_param { shape { dim: 10 dim: 3 } }");
  const std::string text = net.substr(0, net.find("bottom")) + net.substr(net.find("top: ")) + layer("ReLU", "x", "y");
  EXPECT_EQ(outputs_of(text), (Texts{"y f32[10, 3]"}));
  ImportOptions options;
  options.input_shapes = {{"x", Shape::of({1, 3})}};
  EXPECT_EQ(outputs_of(text, options), (Texts{"y f32[1, 3]"}));
  options.input_shapes = {{"x", Shape::of({1, 3, 4})}};
  EXPECT_NE(error_of(text, options), "");
  EXPECT_EQ(outputs_of("input: 'x' input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4 " + layer("ReLU", "x", "y")),
            (Texts{"y f32[1, 2, 3, 4]"}));
}

TEST(Caffe, TrainingNetsAreTakenInTheirTestPhase) {
  const std::string net =
      "layer { name: 'mnist' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN } data_param { batch_size: "
      "64 } }\n"
      "layer { name: 'mnist' type: 'Data' top: 'data' top: 'label' include { phase: TEST } transform_param { "
      "crop_size: 28 "
      "scale: 0.0039 } data_param { source: 'x' batch_size: 100 backend: LMDB } }\n" +
      layer("Dropout", "data", "d") + "layer { name: 'a' type: 'Accuracy' bottom: 'd' bottom: 'label' top: 'a' }\n" +
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'd' bottom: 'label' top: 'loss' }\n" +
      layer("ReLU", "d", "r", "include { phase: TEST stage: 'deploy' }") +
      layer("ReLU", "d", "s", "include { not_stage: 'deploy' max_level: 0 }");
  EXPECT_EQ(outputs_of(net), (Texts{"loss f32[100, ?n, 28, 28]", "s f32[100, ?n, 28, 28]"}));
  EXPECT_EQ(outputs_of("state { phase: TEST stage: 'deploy' } " + net),
            (Texts{"loss f32[100, ?n, 28, 28]", "r f32[100, ?n, 28, 28]"}));
}

TEST(Caffe, OldGenerationsSayTheSame) {
  const std::string now =
      kData + layer("Pooling", "data", "pool", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }") +
      layer("LRN", "pool", "norm", "lrn_param { local_size: 3 alpha: 0.1 }") +
      layer("Concat", "norm", "c", "bottom: 'norm'");
  const std::string second =
      "input: 'data' input_dim: 2 input_dim: 4 input_dim: 6 input_dim: 6\n"
      "layers { name: 'pool' type: POOLING bottom: 'data' top: 'pool' pooling_param { pool: AVE kernel_size: 3 stride: "
      "2 pad: 1 } }\n"
      "layers { name: 'norm' type: LRN bottom: 'pool' top: 'norm' lrn_param { local_size: 3 alpha: 0.1 } blobs_lr: 1 "
      "}\n"
      "layers { name: 'c' type: CONCAT bottom: 'norm' bottom: 'norm' top: 'c' }\n";
  const std::string first =
      "input: 'data' input_dim: 2 input_dim: 4 input_dim: 6 input_dim: 6\n"
      "layers { layer { name: 'padding' type: 'padding' pad: 1 } bottom: 'data' top: 'padded' }\n"
      "layers { layer { name: 'pool' type: 'pool' pool: AVE kernelsize: 3 stride: 2 } bottom: 'padded' top: 'pool' }\n"
      "layers { layer { name: 'norm' type: 'lrn' local_size: 3 alpha: 0.1 } bottom: 'pool' top: 'norm' }\n"
      "layers { layer { name: 'c' type: 'concat' concat_dim: 1 } bottom: 'norm' bottom: 'norm' top: 'c' }\n";
  const auto body = [](const std::string& text) {
    const std::string printed = print(import_text(text)).text;
    std::string lines;
    for (size_t at = 0; at < printed.size();) {
      const size_t end = printed.find('\n', at);
      const std::string line = printed.substr(at, end - at);
      if (!line.starts_with("  source")) lines += line.substr(0, line.find("//")) + "\n";
      at = end + 1;
    }
    return lines;
  };
  EXPECT_EQ(body(second), body(now));
  EXPECT_EQ(body(first), body(now));
}

TEST(Caffe, WeightsOfAnotherSizeAreRefused) {
  ImportOptions options;
  options.weights = test::data("caffe/tiny.caffemodel");
  const std::string net = kData + layer("InnerProduct", "data", "fc", "inner_product_param { num_output: 3 }");
  EXPECT_NE(error_of(net, options).find("weights 0 have the dims [3, 32], expected [3, 144]"), std::string::npos);
  options.weights = test::data("caffe/tiny.prototxt");
  EXPECT_NE(error_of(net, options), "");
}

}  // namespace
}  // namespace cairn
