// Frozen graphs load in stock TensorFlow and answer as the SavedModel did.
#include "frontends/tensorflow/freeze.h"

#include <gtest/gtest.h>

#include "models.h"

namespace cairn::tensorflow {
namespace {

/// Freezes the model and lets TensorFlow run the result on the model's own case.
void expect_same_in_tensorflow(const std::string& name) {
  std::string models = test::tensorflow_models();
  if (models.empty()) GTEST_SKIP() << "stock TensorFlow is not installed";
  std::string folder = models + "/" + name;
  FrozenGraph frozen = freeze(read_saved_model(folder));
  std::string path = folder + "/frozen.pb";
  write_graph_def(frozen.graph, path);
  std::string command = fmt::format("{} {}/tests/frontends/check_frozen.py {} {}", test::tensorflow_python(),
                                    CAIRN_SOURCE_DIR, folder, path);
  for (const TensorInfo& info : frozen.signature.inputs) command += fmt::format(" in:{}={}", info.key, info.tensor);
  for (const TensorInfo& info : frozen.signature.outputs) command += fmt::format(" out:{}={}", info.key, info.tensor);
  EXPECT_EQ(std::system((command + " 2> " + path + ".log").c_str()), 0) << test::read_file(path + ".log");
}

TEST(Freeze, KerasModelGivesTheSameInTensorFlow) { expect_same_in_tensorflow("keras_cnn"); }
TEST(Freeze, VariablesReachBranchesAndLoopsAsValues) { expect_same_in_tensorflow("control"); }
TEST(Freeze, LstmKeepsItsLoopFunctional) { expect_same_in_tensorflow("keras_lstm"); }
TEST(Freeze, ReferenceVariablesInPartsAreJoined) { expect_same_in_tensorflow("tf1_ref"); }
TEST(Freeze, ResourceVariablesOfTf1AreJoined) { expect_same_in_tensorflow("tf1_resource"); }

TEST(Freeze, KeepsTheNamesOfTheSignature) {
  FrozenGraph frozen = freeze(read_saved_model(test::data("dense")));
  ASSERT_EQ(frozen.signature.outputs.size(), 1u);
  EXPECT_EQ(frozen.signature.outputs[0].tensor, "StatefulPartitionedCall:0");
  bool found = false;
  for (const Node& node : frozen.graph.nodes) found |= node.name == "StatefulPartitionedCall" && node.op == "Identity";
  EXPECT_TRUE(found);
  EXPECT_TRUE(frozen.graph.functions.empty());
}

TEST(Freeze, OutNodesCutTheGraph) {
  SavedModel model = read_saved_model(test::data("dense"));
  FreezeOptions options;
  options.out_nodes = {"serving_default_x:0"};
  FrozenGraph frozen = freeze(model, options);
  EXPECT_EQ(frozen.graph.nodes.size(), 1u);
  ASSERT_EQ(frozen.signature.inputs.size(), 1u);
  EXPECT_EQ(frozen.signature.inputs[0].key, "serving_default_x");
}

TEST(Freeze, UnknownSignatureListsWhatThereIs) {
  FreezeOptions options;
  options.signature = "predict";
  try {
    freeze(read_saved_model(test::data("dense")), options);
    FAIL() << "froze a signature that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "has no signature 'predict'; it has 'serving_default'");
  }
}

}  // namespace
}  // namespace cairn::tensorflow
