// Updates of variables give what TensorFlow's kernels give, through references and through resources.
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/import.h"
#include "frontends/tensorflow/cluster.h"
#include "models.h"
#include "npy.h"
#include "runtime/model.h"
#include "support/report.h"

namespace cairn {
namespace {

Tensor array(const std::string& folder, const std::string& kind, const std::string& name) {
  return test::read_npy(folder + "/case/" + kind + "." + name + ".npy");
}

ImportOptions shapes_of(const tensorflow::GraphDef& graph, const std::string& folder) {
  ImportOptions options;
  for (const auto& node : graph.nodes)
    if (node.op == "_Arg")
      options.input_shapes[std::string(node.name)] = Shape::of(array(folder, "in", std::string(node.name)).dims());
  return options;
}

/// "" or what is wrong after two runs.
std::string update_problem(const std::string& folder, const std::string& form) {
  const tensorflow::GraphDef graph = tensorflow::read_graph_def(folder + "/" + form + ".pb");
  auto model = Model::make(import_cluster(graph, shapes_of(graph, folder)), {});
  for (size_t i = 0; i < model->state().size(); ++i) model->set_state(i, array(folder, "in", model->state()[i].name));
  std::vector<Tensor> inputs;
  for (const Port& port : model->inputs()) inputs.push_back(array(folder, "in", port.name));
  for (int run = 0; run < 2; ++run) model->run(inputs);
  for (size_t i = 0; i < model->state().size(); ++i) {
    const std::string& name = model->state()[i].name;
    const std::vector<double> got = model->state_value(i).as_f64(), want = array(folder, "out", name).as_f64();
    for (size_t k = 0; k < want.size(); ++k)
      if (!(std::abs(got[k] - want[k]) <= 2e-6 * std::max(1.0, std::abs(want[k]))))
        return fmt::format("{}[{}] is {}, expected {}", name, k, got[k], want[k]);
  }
  return model->state().empty() ? "nothing is updated" : "";
}

TEST(ImportTensorFlow, EveryUpdateLeavesWhatTensorFlowLeaves) {
  const std::string root = test::made_by("make_updates");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  int tested = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    for (const char* form : {"resource", "ref"}) {
      const std::string folder = entry.path();
      if (!std::filesystem::exists(folder + "/" + form + ".pb")) continue;
      std::string problem;
      try {
        problem = update_problem(folder, form);
      } catch (const Error& error) {
        problem = error.what();
      }
      EXPECT_EQ(problem, "") << entry.path().filename() << " " << form;
      ++tested;
    }
  }
  EXPECT_GT(tested, 80);
}

// What an optimiser does to elements stays in few fused steps of the cpu engine.
TEST(ImportTensorFlow, UpdatesAreFused) {
  const std::string root = test::made_by("make_updates");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  const std::map<std::string, size_t> most_steps = {{"ApplyAdam", 4}, {"ApplyMomentum", 2}, {"ApplyRMSProp", 5}};
  for (const auto& [name, most] : most_steps) {
    const std::string folder = root + "/" + name;
    const tensorflow::GraphDef graph = tensorflow::read_graph_def(folder + "/resource.pb");
    auto model = Model::make(import_cluster(graph, shapes_of(graph, folder)), {.threads = 1, .bind_state = true});
    std::vector<Dims> dims;
    for (const Port& port : model->inputs()) dims.push_back(array(folder, "in", port.name).dims());
    size_t steps = 0;
    for (const PlannedStep& step : model->plan(dims)->steps) {
      EXPECT_TRUE(step.kernel.starts_with("cpu/elementwise")) << name << " " << step.kernel;
      steps += step.group.last().result()->type.shape.rank() > 0;
    }
    EXPECT_LE(steps, most) << name;
  }
}

TEST(ImportTensorFlow, ConstantsOfAClusterAreInputsOfTheirTypes) {
  const std::string root = test::made_by("make_updates");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  const std::string folder = std::filesystem::directory_iterator(root)->path();
  const tensorflow::GraphDef graph = tensorflow::read_graph_def(folder + "/resource.pb");
  auto refusal = [&](const std::string& name, const Tensor& value) -> std::string {
    ImportOptions options = shapes_of(graph, folder);
    options.constants[name] = value;
    try {
      import_cluster(graph, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("nobody", Tensor::scalar_f32(1)), "nobody: is constant, and is no input");
  for (const auto& node : graph.nodes)
    if (node.op == "_Arg") {
      const std::string name(node.name);
      EXPECT_EQ(refusal(name, array(folder, "in", name)), "");
      EXPECT_NE(refusal(name, Tensor::zeros(kBool, {})).find(name + ": is "), std::string::npos);
    }
}

/// "" or what is wrong with three draws from one stream.
std::string random_problem(const std::string& folder) {
  ImportOptions options;
  options.out_nodes = {"y"};
  auto model = Model::make(import_model(folder + "/graph.pb", options), {});
  for (int run = 0; run < 3; ++run) {
    const Tensor drawn = model->run(std::vector<Tensor>{})[0], expected = array(folder, "out", fmt::format("y{}", run));
    if (drawn.type() != expected.type()) return fmt::format("run {} gives {}", run, to_string(drawn.type()));
    const std::vector<double> got = drawn.as_f64(), want = expected.as_f64();
    // Uniform numbers and integers are equal; normal ones differ by the last bit of a logarithm or a sine.
    const bool normal = folder.find("Normal") != std::string::npos || folder.find("Truncated") != std::string::npos;
    for (size_t i = 0; i < got.size(); ++i)
      if (!(std::abs(got[i] - want[i]) <= (normal ? 0x1p-23 * std::abs(want[i]) : 0)))
        return fmt::format("run {} draws {} at {}, expected {}", run, got[i], i, want[i]);
  }
  return "";
}

TEST(ImportTensorFlow, RandomNumbersAreThoseOfTensorFlow) {
  const std::string root = test::made_by("make_random");
  if (root.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    std::string problem;
    try {
      problem = random_problem(entry.path());
    } catch (const Error& error) {
      problem = error.what();
    }
    EXPECT_EQ(problem, "") << entry.path().filename();
  }
}

}  // namespace
}  // namespace cairn
