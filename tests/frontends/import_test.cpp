// Imported models answer what the framework they came from answered.
#include "frontends/import.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontends/tensorflow/raise.h"
#include "ir/text.h"
#include "models.h"
#include "npy.h"
#include "reference_steps.h"
#include "runtime/model.h"
#include "support/report.h"

namespace cairn {
namespace {

/// "" or what is wrong.
std::string case_problem(const std::string& folder, Module module, double tolerance = 1e-5) {
  auto model = Model::make(std::move(module), {});
  std::vector<Tensor> inputs;
  for (const Port& port : model->inputs()) inputs.push_back(test::read_npy(folder + "/case/in." + port.name + ".npy"));
  std::vector<Tensor> outputs = model->run(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model->outputs()[i].name;
    Tensor expected = test::read_npy(folder + "/case/out." + name + ".npy");
    if (outputs[i].type() != expected.type())
      return fmt::format("{} is {}, expected {}", name, to_string(outputs[i].type()), to_string(expected.type()));
    std::vector<double> got = outputs[i].as_f64(), want = expected.as_f64();
    double largest = 1;
    for (double element : want) largest = std::isfinite(element) ? std::max(largest, std::abs(element)) : largest;
    for (size_t k = 0; k < got.size(); ++k)
      if (!(std::abs(got[k] - want[k]) <= tolerance * largest) && got[k] != want[k] &&
          !(std::isnan(got[k]) && std::isnan(want[k])))
        return fmt::format("{}[{}] is {}, expected {}", name, k, got[k], want[k]);
  }
  return "";
}

void expect_saved_model(const std::string& name) {
  std::string models = test::tensorflow_models();
  if (models.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  test::NoReferenceSteps fast;
  EXPECT_EQ(case_problem(models + "/" + name, import_model(models + "/" + name)), "");
}

TEST(ImportTensorFlow, KerasCnn) { expect_saved_model("keras_cnn"); }
TEST(ImportTensorFlow, BranchLoopAndGather) { expect_saved_model("control"); }
TEST(ImportTensorFlow, KerasLstm) { expect_saved_model("keras_lstm"); }

TEST(ImportTensorFlow, ACheckpointWithItsGraph) {
  std::string models = test::tensorflow_models();
  if (models.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  for (const char* name : {"/tf1_ref", "/tf1_resource"}) {
    ImportOptions options;
    options.out_nodes = {"z"};
    for (const char* file : {"/model.ckpt", "/model.ckpt.meta", "/model.ckpt.index"})
      EXPECT_EQ(case_problem(models + name, import_model(models + name + file, options)), "");
    EXPECT_THROW(import_model(models + name + std::string("/model.ckpt")), Error) << "no outputs are named";
  }
}

TEST(ImportTensorFlow, EveryOpAnswersAsInTensorFlow) {
  std::string root = test::made_by("make_ops");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    std::string folder = entry.path(), problem;
    try {
      ImportOptions options;
      options.out_nodes = {"y"};  // some functions leave nodes behind that nothing reads
      problem = case_problem(folder, import_model(folder + "/graph.pb", options));
    } catch (const Error& error) {
      problem = error.what();
    }
    EXPECT_EQ(problem, "") << entry.path().filename();
  }
}

TEST(ImportTensorFlow, ChainsOfComplexArithmeticComputeOnParts) {
  const std::string root = test::made_by("make_ops");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  ImportOptions options;
  options.out_nodes = {"y"};
  for (const char* batch : {"static", "free"}) {
    const Module module = import_model(root + "/ComplexChain." + batch + "/graph.pb", options);
    const auto& nodes = module.main().body.nodes;
    EXPECT_TRUE(std::ranges::none_of(nodes, [](const auto& node) { return node->is("gather"); })) << batch;
  }
}

TEST(ImportTensorFlow, ControlFlowOfVersionOneBecomesIfAndWhile) {
  std::string root = test::made_by("make_control");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    std::string folder = entry.path();
    for (const std::string& model : {folder, folder + "/graph.pb"}) {
      std::string problem;
      try {
        Module module = import_model(model);
        for (const Source& source : module.sources) EXPECT_EQ(source.name.find('%'), std::string::npos) << source.name;
        problem = case_problem(folder, std::move(module));
      } catch (const Error& error) {
        problem = error.what();
      }
      EXPECT_EQ(problem, "") << model;
    }
  }
}

TEST(ImportTensorFlow, NodesKnowWhereTheyComeFrom) {
  Module module = import_model(test::data("dense"));
  Function& main = module.main();
  ASSERT_EQ(main.body.params.size(), 1u);
  EXPECT_EQ(main.body.params[0]->name, "x");
  EXPECT_EQ(to_string(main.body.params[0]->type), "f32[?n, 3]");
  EXPECT_EQ(main.result_names, std::vector<std::string>{"y"});
  EXPECT_EQ(to_string(main.body.results[0]->type), "f32[?n, 2]");
  const Node* relu = main.body.results[0]->producer;
  ASSERT_TRUE(relu != nullptr && relu->is("relu"));
  EXPECT_EQ(where(module, *relu), "Relu");
}

TEST(ImportTensorFlow, InputShapesByAnyNameOfTheInput) {
  for (const char* name : {"x", "serving_default_x", "serving_default_x:0"}) {
    ImportOptions options;
    options.input_shapes[name] = Shape::of({7, 3});
    EXPECT_EQ(to_string(import_model(test::data("dense"), options).main().body.results[0]->type), "f32[7, 2]");
  }
  ImportOptions options;
  options.input_shapes["x"] = Shape::of({7, 4});
  try {
    import_model(test::data("dense"), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x: shape [7, 4] does not fit the model's [?, 3]");
  }
}

std::string write_graph(const std::string& text) {
  std::string path = testing::TempDir() + "graph.pbtxt";
  std::ofstream(path) << text;
  return path;
}

TEST(ImportTensorFlow, AllProblemsComeInOneReport) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
    node { name: "r" op: "Relu" input: "x" }
    node { name: "one" op: "MyOp" input: "r" }
    node { name: "two" op: "MyOp" input: "x" }
    node { name: "bad" op: "MatMul" input: "x" input: "r" }
    node { name: "sum" op: "Add" input: "one" input: "two" }
    node { name: "out" op: "Add" input: "sum" input: "bad" })");
  try {
    import_model(path);
    FAIL();
  } catch (const ReportError& error) {
    const auto& problems = error.report().problems();
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0].subject, "MatMul");
    EXPECT_EQ(problems[0].places[0].node, "bad");
    EXPECT_EQ(problems[1].subject, "MyOp");
    EXPECT_EQ(problems[1].places.size(), 2u);
    EXPECT_EQ(problems[1].fix, "cut above it: --out_nodes=\"r:0\"; or feed the rest: --cut=\"bad;one;two\"");
  }
}

TEST(ImportTensorFlow, OutNodesCutAboveWhatIsNotSupported) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "r" op: "Relu" input: "x" }
    node { name: "one" op: "MyOp" input: "r" })");
  ImportOptions options;
  options.out_nodes = {"r:0"};
  Module module = import_model(path, options);
  EXPECT_EQ(module.main().result_names[0], "r");
}

TEST(ImportTensorFlow, NodesThatAreNotSupportedCanBeReplaced) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "odd" op: "MyOp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "y" op: "AddV2" input: "odd" input: "x" })");
  auto run = [&](const std::string& how, const std::vector<Tensor>& inputs) {
    ImportOptions options;
    options.replace = {{"odd", how}};
    if (how == "input") options.input_shapes = {{"odd", Shape{2}}};
    return Model::make(import_model(path, options), {})->run(inputs)[0].as_f64();
  };
  const Tensor x = Tensor::of<float>(kF32, {2}, {1, -2}), other = Tensor::of<float>(kF32, {2}, {10, 20});
  EXPECT_EQ(run("identity", {x}), (std::vector<double>{2, -4}));
  EXPECT_EQ(run("zeros", {x}), (std::vector<double>{1, -2}));
  EXPECT_EQ(run("input", {x, other}), (std::vector<double>{11, 18}));
  EXPECT_THROW(run("nothing", {x}), Error);
  ImportOptions options;
  options.replace = {{"none", "zeros"}};
  EXPECT_THROW(import_model(path, options), Error);
}

/// The remedy that the refusal of a graph names.
std::string remedy_of(const std::string& path) {
  try {
    import_model(path);
  } catch (const ReportError& error) {
    return error.report().problems()[0].fix;
  }
  return "was imported";
}

TEST(ImportTensorFlow, ServedExamplesAreFedParsed) {
  std::string path = write_graph(R"(
    node { name: "examples" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "shape" value { shape { dim { size: -1 } } } } }
    node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 0 } } } } } }
    node { name: "keys" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }
                                                string_val: "age" string_val: "size" } } } }
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
           attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 1 } } } }
    node { name: "parse" op: "ParseExampleV2" input: "examples" input: "none" input: "none" input: "keys" input: "none"
           input: "zero" input: "one" attr { key: "num_sparse" value { i: 0 } }
           attr { key: "sparse_types" value { list { } } } attr { key: "ragged_value_types" value { list { } } }
           attr { key: "ragged_split_types" value { list { } } }
           attr { key: "Tdense" value { list { type: DT_FLOAT type: DT_INT64 } } }
           attr { key: "dense_shapes" value { list { shape { dim { size: 3 } } shape { } } } } }
    node { name: "number" op: "Cast" input: "parse:1" attr { key: "SrcT" value { type: DT_INT64 } }
           attr { key: "DstT" value { type: DT_FLOAT } } }
    node { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node { name: "sum" op: "Sum" input: "parse" input: "axis" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "y" op: "AddV2" input: "sum" input: "number" attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_EQ(to_string(import_model(path).main().body.params[0]->type), "str[?n]");
  ImportOptions options;
  options.replace = {{"parse", "input"}};
  Module module = import_model(path, options);
  const auto& params = module.main().body.params;
  ASSERT_EQ(params.size(), 2u) << "the texts are no longer read";
  EXPECT_EQ(params[0]->name, "parse:0");
  EXPECT_EQ(to_string(params[0]->type), "f32[?parse_0_0, 3]");
  EXPECT_EQ(to_string(params[1]->type), "i64[?parse_1_0]");
  auto result =
      Model::make(std::move(module), {})
          ->run({Tensor::of<float>(kF32, {2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::of<int64_t>(kI64, {2}, {10, 20})});
  EXPECT_EQ(result[0].as_f64(), (std::vector<double>{16, 35}));
}

TEST(ImportTensorFlow, ImagesReadFromFilesAreFedAsNumbers) {
  std::string path = write_graph(R"(
    node { name: "names" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "shape" value { shape { } } } }
    node { name: "bytes" op: "ReadFile" input: "names" }
    node { name: "image" op: "DecodeJpeg" input: "bytes" attr { key: "channels" value { i: 3 } } }
    node { name: "y" op: "Cast" input: "image" attr { key: "SrcT" value { type: DT_UINT8 } }
           attr { key: "DstT" value { type: DT_FLOAT } } })");
  EXPECT_EQ(remedy_of(path), "feed the rest: --cut=\"image\"");
  ImportOptions options;
  options.replace = {{"image", "input"}};
  EXPECT_EQ(import_model(path, options).main().body.params[0]->type.dtype, kU8);
}

TEST(ImportTensorFlow, NamesOfClassesAreLeftToTheCaller) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_INT64 } } }
    node { name: "table" op: "HashTableV2" attr { key: "key_dtype" value { type: DT_INT64 } }
           attr { key: "value_dtype" value { type: DT_STRING } } }
    node { name: "d" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "?" } } } }
    node { name: "label" op: "LookupTableFindV2" input: "table" input: "n" input: "d"
           attr { key: "Tin" value { type: DT_INT64 } } attr { key: "Tout" value { type: DT_STRING } } })");
  ImportOptions options;
  try {
    import_model(path);
    FAIL();
  } catch (const ReportError& error) {
    EXPECT_NE(std::string(error.what()).find("--out_nodes"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("--cut"), std::string::npos) << error.what();
  }
  options.out_nodes = {"n"};
  EXPECT_EQ(import_model(path, options).main().result_names[0], "n");
}

TEST(ImportTensorFlow, NodesOfTheFileAreAllAccountedFor) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "y" op: "Relu" input: "x" }
    node { name: "aside" op: "MyOp" input: "x" })");
  ImportOptions options;
  options.out_nodes = {"y"};
  Module module = import_model(path, options);
  ASSERT_EQ(module.sources.size(), 2u);
  EXPECT_EQ(module.sources[1].name, "aside");
  EXPECT_EQ(module.removed.at(1), Removal::dead);
}

TEST(ImportTensorFlow, NamesOfRaisedBranchesStayShort) {
  std::string text = R"(node { name: "m0" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } })";
  for (int i = 1; i <= 40; ++i)
    text += fmt::format(R"(node {{ name: "s{0}" op: "Switch" input: "m{1}" input: "p" }}
      node {{ name: "m{0}" op: "Merge" input: "s{0}" input: "s{0}:1" }})",
                        i, i - 1);
  tensorflow::GraphDef graph = tensorflow::read_graph_def(write_graph(text));
  tensorflow::raise_control_flow(graph);
  size_t branches = 0;
  for (const tensorflow::Node& node : graph.nodes) {
    EXPECT_LE(node.name.size(), 5u) << node.name;
    branches += node.op == "If";
  }
  EXPECT_EQ(branches, 40u);
}

TEST(ImportTensorFlow, ANodeToEndAtThatThereIsNotIsNamed) {
  std::string path = write_graph(R"(
    node { name: "input" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "logits" op: "Relu" input: "input" })");
  ImportOptions options;
  options.out_nodes = {"logit:0"};
  options.input_shapes["input"] = Shape{Dim(2)};
  try {
    import_model(path, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "has no node 'logit' to end at; did you mean logits?");
  }
}

TEST(ImportTensorFlow, ANodeWithoutAResultIsNoOutput) {
  std::string path = write_graph(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "init" op: "NoOp" input: "^x" }
    node { name: "bare" op: "Identity" })");
  for (const char* name : {"init", "bare"}) {
    ImportOptions options;
    options.out_nodes = {name};
    EXPECT_THROW(import_model(path, options), Error) << name;
  }
}

TEST(ImportTensorFlow, ALoopOfVersionOneIsNamed) {
  std::string path = write_graph(R"(
    node { name: "a" op: "Identity" input: "b" }
    node { name: "b" op: "Identity" input: "a" }
    node { name: "out" op: "Relu" input: "a" })");
  try {
    import_model(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is part of a circle through"), std::string::npos) << error.what();
  }
}

/// Whose expected values are NumPy's random numbers.
bool draws_numbers(const std::string& test) {
  return test.starts_with("test_bernoulli") ||
         (test.starts_with("test_training_dropout") && test.find("zero_ratio") == std::string::npos);
}

/// What is not supported may be refused; what is accepted must be right. The number of right ones never falls.
TEST(ImportOnnx, NodeTestsOfOnnxItself) {
  constexpr int kRightAtLeast = 1500;
  std::string root = test::made_by("make_onnx_nodes", ".venv-peers");
  if (root.empty()) GTEST_SKIP() << "the onnx package is not installed";
  int right = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    std::string folder = entry.path(), problem;
    Module module;
    try {
      module = import_model(folder + "/model.onnx");
    } catch (const Error& error) {
      if (std::getenv("CAIRN_TEST_VERBOSE"))
        fmt::print("refused {}: {}\n", entry.path().filename().string(), error.what());
      ++refused;
      continue;
    }
    try {
      problem = case_problem(folder, std::move(module), 1e-3);
    } catch (const Error& error) {
      problem = error.what();
    }
    right += problem.empty();
    if (draws_numbers(entry.path().filename())) continue;
    EXPECT_EQ(problem, "") << entry.path().filename();
  }
  EXPECT_GE(right, kRightAtLeast);
  RecordProperty("right", right);
  RecordProperty("refused", refused);
  fmt::print("{} right, {} refused\n", right, refused);
}

TEST(ImportOnnx, BranchAndSymbolicBatch) {
  Module module = import_model(test::data("branch.onnx"));
  EXPECT_EQ(to_string(module.main().body.params[0]->type), "f32[?n, 3]");
  auto model = Model::make(std::move(module), {});
  // x w + b = [6.5, 8] and its sum is positive: relu
  EXPECT_EQ(model->run({Tensor::of<float>(kF32, {1, 3}, {1, 1, 1})})[0].as_f64(), (std::vector<double>{6.5, 8}));
  EXPECT_EQ(model->run({Tensor::of<float>(kF32, {1, 3}, {-1, -1, -1})})[0].as_f64(), (std::vector<double>{-11, -20}));
}

}  // namespace
}  // namespace cairn
