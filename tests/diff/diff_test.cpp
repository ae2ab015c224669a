// Faults planted in three networks are found, with the operator and the pass; clean networks raise no alarm.
#include <gtest/gtest.h>

#include "diff/nets.h"
#include "passes/pipeline.h"

namespace cairn::diff {
namespace {

struct Net {
  const char* name;
  const char* text;
  const char* inner;  // an operator in the middle, whose result is a step's
  const char* sum;    // one of two inputs
  const char* dense;  // with weights
};
constexpr Net kNets[] = {{"convolutions", kConvolutions, "relu1", "sum", "dense"},
                         {"perceptron", kPerceptron, "act", "sum", "dense3"},
                         {"attention", kAttention, "norm", "sum", "out"}};

Subject subject_of(const Net& net) {
  Subject subject;
  subject.load = [&net] { return network(net.text); };
  subject.threads = 1;
  return subject;
}

std::vector<Tensor> inputs_of(const Net& net, uint64_t seed = 7, float size = 1) {
  return {made(network(net.text).main().body.params[0]->type, seed, size)};
}

/// What the reference engine makes of the graph as it is.
Golden golden_for(const Net& net, const std::vector<Tensor>& inputs) {
  Subject plain = subject_of(net);
  plain.engines = {"reference"};
  plain.disabled = {"ALL"};
  return golden_of(trace_run(*plain.model(), inputs), "reference");
}

Result diff(const Net& net, const Subject& subject, const std::vector<Tensor>& inputs) {
  return find_difference(subject, golden_for(net, inputs), inputs);
}

void lower(Module& module, DType low) {
  optimise(module);
  PrecisionOptions options;
  options.mode = PrecisionMode::force_low;
  options.low = low;
  set_precision(module, options);
}

class Nets : public testing::TestWithParam<Net> {};
INSTANTIATE_TEST_SUITE_P(All, Nets, testing::ValuesIn(kNets), [](const auto& info) { return info.param.name; });

TEST_P(Nets, CleanRunsRaiseNoAlarm) {
  for (uint64_t seed : {1, 2, 3, 4, 5})
    for (float size : {0.01f, 1.0f, 30.0f}) {
      auto inputs = inputs_of(GetParam(), seed, size);
      Result result = diff(GetParam(), subject_of(GetParam()), inputs);
      EXPECT_TRUE(result.equal) << seed << " " << size;
      EXPECT_GE(result.rows.size(), 4u);
      for (const Row& row : result.rows)
        EXPECT_FALSE(row.off) << row.key.node << " " << row.error << " " << row.allowed;
    }
}

TEST_P(Nets, CleanRunsInNarrowTypesRaiseNoAlarm) {
  for (DType low : {kF16, kBF16})
    for (uint64_t seed : {1, 2, 3, 4, 5}) {
      Subject subject = subject_of(GetParam());
      subject.before_passes = [low](Module& module) { lower(module, low); };
      Result result = diff(GetParam(), subject, inputs_of(GetParam(), seed));
      EXPECT_TRUE(result.equal) << to_string(low) << " " << seed;
      for (const Row& row : result.outputs) EXPECT_GT(row.error, 0) << "the narrow type was not used";
    }
}

struct Fault {
  const char* name;
  KernelFault::Change change;
  const char* finding;  // part of what is said
};
constexpr Fault kFaults[] = {{"scale", scale_by_two, "off by a factor: x ~ 2 y"},
                             {"bias", add_a_tenth, "off by a constant: x ~ y +0.1"},
                             {"one element", one_element, "few elements differ"},
                             {"NaN", one_nan, "1 values are NaN or infinite on one side only, first at 1"},
                             {"transposed", transposed, ""}};

TEST_P(Nets, AKernelThatGoesWrongIsNamed) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Subject subject = subject_of(GetParam());
    auto planted = std::make_shared<KernelFault>(network(GetParam().text).sources, GetParam().inner, fault.change);
    subject.fault = planted;
    Result result = diff(GetParam(), subject, inputs_of(GetParam()));
    ASSERT_GT(planted->hits, 0u);
    EXPECT_FALSE(result.equal);
    ASSERT_EQ(result.culprits.size(), 1u);
    const Culprit& culprit = result.culprits[0];
    EXPECT_EQ(culprit.row.key.node, GetParam().inner);
    EXPECT_TRUE(culprit.confirmed);
    EXPECT_TRUE(culprit.kernel);
    EXPECT_EQ(culprit.pass, "");
    EXPECT_FALSE(culprit.row.location.empty());
    EXPECT_NE(culprit.row.finding.find(fault.finding), std::string::npos) << culprit.row.finding;
  }
}

/// A pass that does something wrong to the graph, by its name.
struct WrongPass {
  const char* name;
  std::string (*node)(const Net&);
  void (*change)(Module& module, const Net&);
};

void give_other_weights(Module& module, const Net& net) {
  for (const auto& node : module.main().body.nodes) {
    bool mine = std::any_of(node->sources.begin(), node->sources.end(),
                            [&](SourceId id) { return module.sources[id].name == net.dense; });
    if (!mine || !node->is("matmul")) continue;
    Node& constant = *node->inputs[1]->producer;
    Tensor stale = Tensor::zeros(kF32, constant_of(node->inputs[1])->dims());
    auto old = constant_of(node->inputs[1])->values<float>();
    for (size_t i = 0; i < old.size(); ++i) stale.mutable_values<float>()[i] = 0.9f * old[i] + 0.01f;
    constant.attributes.set("value", Attribute(stale));
  }
}

const WrongPass kWrongPasses[] = {
    {"wrong_epsilon", [](const Net&) { return std::string("norm"); },
     [](Module& module, const Net&) { named(module, "norm")->attributes.set("epsilon", Attribute(0.3)); }},
    {"wrong_fusion", [](const Net& net) { return std::string(net.sum); },
     [](Module& module, const Net& net) {
       Node& sum = *named(module, net.sum);
       sum.inputs[1] = sum.inputs[0];
     }},
    {"stale_weights", [](const Net& net) { return std::string(net.dense); }, give_other_weights},
};

TEST_P(Nets, AWrongPassIsNamed) {
  for (const WrongPass& wrong : kWrongPasses) {
    SCOPED_TRACE(wrong.name);
    Subject subject = subject_of(GetParam());
    subject.further_passes = {"harmless", wrong.name, "harmless_too"};
    subject.behind_passes = [&](Module& module, const std::vector<std::string>& disabled) {
      if (std::find(disabled.begin(), disabled.end(), wrong.name) == disabled.end()) wrong.change(module, GetParam());
    };
    Result result = diff(GetParam(), subject, inputs_of(GetParam()));
    EXPECT_FALSE(result.equal);
    ASSERT_EQ(result.culprits.size(), 1u);
    const Culprit& culprit = result.culprits[0];
    EXPECT_TRUE(culprit.confirmed);
    EXPECT_FALSE(culprit.kernel);
    EXPECT_EQ(culprit.pass, wrong.name);
    EXPECT_TRUE(culprit.pass_alone);
    std::string all = fmt::format("{}", fmt::join(culprit.sources, " "));
    EXPECT_NE(all.find(wrong.node(GetParam())), std::string::npos) << all;
    EXPECT_LE(result.runs, 20u);  // of several hundred passes and rules
  }
}

TEST_P(Nets, AnOverflowOfHalvesIsNamed) {
  Subject subject = subject_of(GetParam());
  subject.before_passes = [](Module& module) { lower(module, kF16); };
  Result result = diff(GetParam(), subject, inputs_of(GetParam(), 7, 3e5f));
  EXPECT_FALSE(result.equal);
  ASSERT_EQ(result.culprits.size(), 1u);
  EXPECT_NE(result.culprits[0].row.finding.find("NaN or infinite"), std::string::npos);
  const Source first = network(GetParam().text).sources[0];
  std::string all = fmt::format("{}", fmt::join(result.culprits[0].sources, " "));
  EXPECT_NE(all.find(first.name), std::string::npos) << all;
}

TEST_P(Nets, TheOperatorAloneShowsTheFault) {
  Subject subject = subject_of(GetParam());
  subject.fault = std::make_shared<KernelFault>(network(GetParam().text).sources, GetParam().inner, scale_by_two);
  Result result = diff(GetParam(), subject, inputs_of(GetParam()));
  ASSERT_EQ(result.culprits.size(), 1u);
  Culprit& culprit = result.culprits[0];
  verify(culprit.program);
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : culprit.inputs) inputs.push_back(tensor);
  ASSERT_FALSE(culprit.expected.empty());
  // Right values in: the engine without the fault makes what was expected.
  auto made_now = Model::make(clone(culprit.program), {.threads = 1, .optimise = false})->run(inputs);
  for (const auto& [name, expected] : culprit.expected) {
    auto found = made_now[std::stoul(name.substr(1))].values<float>();
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected.values<float>()[i], 1e-3);
  }
}

TEST(Difference, TwoFaultsAreFoundOneAfterTheOther) {
  const Net& net = kNets[0];
  Subject subject = subject_of(net);
  subject.further_passes = {"wrong_epsilon"};
  subject.fault = std::make_shared<KernelFault>(network(net.text).sources, "relu1", scale_by_two);
  subject.behind_passes = [&](Module& module, const auto&) { kWrongPasses[0].change(module, net); };
  auto inputs = inputs_of(net);
  Result result = find_difference(subject, golden_for(net, inputs), inputs, {.most_culprits = 4});
  ASSERT_EQ(result.culprits.size(), 2u);
  EXPECT_EQ(result.culprits[0].row.key.node, "relu1");
  EXPECT_EQ(result.culprits[1].row.key.node, "norm");
}

constexpr const char* kSwapped = R"(module @swapped {
  source 0 = "tf" "act" "Relu" "net.py:1"
  source 1 = "tf" "perm" "Transpose" "net.py:2"
  source 2 = "tf" "dense" "MatMul" "net.py:3"
  func @main(%x: f32[2, 6, 6, 4], %w: f32[144, 10]) -> (%y: f32[2, 10]) {
    %a = relu %x #0
    %p = transpose %a {permutation = [0, 2, 1, 3]} #1
    %s = constant {value = i64[2] (2, 144)}
    %f = reshape %p, %s
    %y = matmul %f, %w #2
    return %y
  }
}
)";

/// Its input lies there in the dims before the reshape; what was swapped has no counterpart.
TEST(Difference, AnOperatorThatReadsAViewCanBeTakenOut) {
  std::string plain = kSwapped;
  const std::string swap = "transpose %a {permutation = [0, 2, 1, 3]} #1";
  plain.replace(plain.find(swap), swap.size(), "identity %a #0");
  const Net swapped{"swapped", kSwapped, "", "", "dense"}, right{"right", plain.c_str(), "", "", "dense"};
  auto inputs = inputs_of(swapped);
  Result result = find_difference(subject_of(swapped), golden_for(right, inputs), inputs);
  EXPECT_FALSE(result.equal);
  ASSERT_EQ(result.culprits.size(), 1u);
  const Culprit& culprit = result.culprits[0];
  EXPECT_EQ(culprit.row.key.node, "dense");
  EXPECT_EQ(culprit.unpaired, std::vector<std::string>{"perm (Transpose)"});
  ASSERT_EQ(culprit.inputs.size(), 1u);
  EXPECT_EQ(culprit.inputs[0].second.dims(), (std::vector<int64_t>{2, 144}));
}

TEST(Difference, AGoldenWithoutTheOutputsIsRefused) {
  Golden empty{"nobody", {}, {}};
  EXPECT_THROW(find_difference(subject_of(kNets[0]), empty, inputs_of(kNets[0])), Error);
}

}  // namespace
}  // namespace cairn::diff
