// What keeps a model from being imported comes in one report; what a graph without a signature gives are all results of the
// nodes that nothing reads.
#include <gtest/gtest.h>

#include "frontends/import.h"
#include "frontends/keras/importer.h"
#include "frontends/script_line.h"
#include "frontends/tensorflow/text_schema.h"
#include "frontends/text_proto.h"
#include "ir/text.h"
#include "models.h"
#include "support/report.h"

namespace cairn {
namespace {

constexpr const char* kInput = R"(
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape { dim { size: 2 } dim { size: 6 } } } } }
  node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
         attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } } } }
  node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
         attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
  node { name: "r" op: "Relu" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";

Module import_text(const std::string& nodes, const ImportOptions& options = {}) {
  const std::string wire = text_to_wire(kInput + nodes, tensorflow::kGraphDefText, "graph");
  const auto model = ModelBytes::from_memory("graph", wire);
  return import_tensorflow(tensorflow::read_graph_def(model, model->bytes()), options);
}

std::vector<std::string> outputs_of(const std::string& nodes, std::vector<std::string>* notes = nullptr,
                                    std::vector<std::string> out_nodes = {}) {
  ImportOptions options;
  options.out_nodes = std::move(out_nodes);
  if (notes != nullptr) options.note = [notes](const std::string& sentence) { notes->push_back(sentence); };
  const Module module = import_text(nodes, options);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < module.main().result_names.size(); ++i)
    outputs.push_back(module.main().result_names[i] + " " + to_string(module.main().body.results[i]->type));
  return outputs;
}

/// "OP: NODES" of each problem, in the order of the report.
std::vector<std::string> problems_of(const std::string& nodes, std::string* fix = nullptr) {
  std::vector<std::string> found;
  try {
    import_text(nodes);
  } catch (const ReportError& error) {
    for (const Problem& problem : error.report().problems()) {
      std::string places;
      for (const auto& place : problem.places) places += " " + place.node;
      found.push_back(problem.subject + ":" + places);
      if (fix != nullptr) *fix = problem.fix;
    }
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(GraphEnds, AllResultsOfANodeThatNothingReadsAreOutputs) {
  EXPECT_EQ(
      outputs_of(
          R"(node { name: "top" op: "TopKV2" input: "x" input: "two" attr { key: "T" value { type: DT_FLOAT } } })"),
      (Texts{"r f32[2, 6]", "top f32[2, 2]", "top:1 i32[2, 2]"}));
  EXPECT_EQ(
      outputs_of(R"(node { name: "s" op: "Split" input: "one" input: "r" attr { key: "num_split" value { i: 3 } } })"),
      (Texts{"s f32[2, 2]", "s:1 f32[2, 2]", "s:2 f32[2, 2]"}));
  EXPECT_EQ(outputs_of(R"(node { name: "u" op: "Unpack" input: "r" attr { key: "num" value { i: 2 } } })"),
            (Texts{"u f32[6]", "u:1 f32[6]"}));
  EXPECT_EQ(outputs_of(R"(node { name: "n" op: "IdentityN" input: "r" input: "x"
                           attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } })"),
            (Texts{"n f32[2, 6]", "n:1 f32[2, 6]"}));
}

TEST(GraphEnds, VectorsThatAreNotComputedAreNoOutputsAndEmptyWhereNamed) {
  const std::string svd = R"(node { name: "d" op: "Svd" input: "r" attr { key: "T" value { type: DT_FLOAT } }
                               attr { key: "compute_uv" value { b: $ } } })";
  auto with = [&](const char* computed) { return std::string(svd).replace(svd.find('$'), 1, computed); };
  EXPECT_EQ(outputs_of(with("false")), Texts{"d f32[2]"});
  EXPECT_EQ(outputs_of(with("false"), nullptr, {"d:0", "d:1", "d:2"}),
            (Texts{"d f32[2]", "d:1 f32[0]", "d:2 f32[0]"}));  // the shape rule of TensorFlow
  EXPECT_EQ(outputs_of(with("true")), (Texts{"d f32[2]", "d:1 f32[2, 2]", "d:2 f32[6, 2]"}));
  EXPECT_EQ(
      outputs_of(R"(node { name: "q" op: "MatMul" input: "r" input: "r" attr { key: "transpose_b" value { b: true } } }
                          node { name: "e" op: "SelfAdjointEigV2" input: "q" attr { key: "compute_v" value { b: false } } })"),
      Texts{"e f32[2]"});
}

TEST(GraphEnds, ResultsBesideOnesThatAreReadAreNoOutputsAndTold) {
  std::vector<std::string> notes;
  EXPECT_EQ(
      outputs_of(R"(node { name: "s" op: "Split" input: "one" input: "r" attr { key: "num_split" value { i: 2 } } }
                          node { name: "y" op: "Neg" input: "s:1" })",
                 &notes),
      Texts{"y f32[2, 3]"});
  EXPECT_EQ(
      notes,
      Texts{"result 0 of 's' (Split) is no output, as another result of that node is read; --out_nodes can name it"});
}

TEST(GraphEnds, ValuesOfALoopBesideOneThatIsReadAreNoOutputsAndTold) {
  const auto node = [](const char* name, const char* op, const std::string& inputs, const char* more = "") {
    return fmt::format("node {{ name: '{}' op: '{}' {} attr {{ key: 'T' value {{ type: {} }} }} {} }}", name, op,
                       inputs, name[0] == 'i' ? "DT_INT32" : "DT_FLOAT", more);
  };
  const char* frame = "attr { key: 'frame_name' value { s: 'f' } }";
  std::string loop =
      node("i_in", "Enter", "input: 'one'", frame) + node("v_in", "Enter", "input: 'r'", frame) +
      node("i", "Merge", "input: 'i_in' input: 'i_next'") + node("v", "Merge", "input: 'v_in' input: 'v_next'") +
      node("i_most", "Enter", "input: 'two'", frame) + node("i_less", "Less", "input: 'i' input: 'i_most'") +
      "node { name: 'go' op: 'LoopCond' input: 'i_less' }" + node("i_turn", "Switch", "input: 'i' input: 'go'") +
      node("v_turn", "Switch", "input: 'v' input: 'go'") + node("i_more", "Add", "input: 'i_turn:1' input: 'i_most'") +
      node("v_more", "Neg", "input: 'v_turn:1'") + node("i_next", "NextIteration", "input: 'i_more'") +
      node("v_next", "NextIteration", "input: 'v_more'") + node("i_out", "Exit", "input: 'i_turn'") +
      node("v_out", "Exit", "input: 'v_turn'");
  EXPECT_EQ(outputs_of(loop), (Texts{"i_out i32[]", "v_out f32[2, 6]"}));
  std::vector<std::string> notes;
  loop += node("y", "Neg", "input: 'v_out'");
  EXPECT_EQ(outputs_of(loop, &notes), Texts{"y f32[2, 6]"});
  EXPECT_EQ(notes, Texts{"'i_out' is no output, as another value of its loop is read; --out_nodes can name it"});
}

TEST(GraphEnds, ANodeAsOutputIsItsFirstResultAndTold) {
  std::vector<std::string> notes;
  const char* nodes = R"(node { name: "u" op: "Unpack" input: "r" attr { key: "num" value { i: 2 } } })";
  EXPECT_EQ(outputs_of(nodes, &notes, {"u"}), Texts{"u f32[6]"});
  EXPECT_EQ(notes, Texts{"u has 2 results, of which u:0 is an output; name the others as u:1"});
  EXPECT_EQ(outputs_of(nodes, nullptr, {"u:1", "u:0"}), (Texts{"u:1 f32[6]", "u f32[6]"}));
}

TEST(GraphEnds, TheShapeOfAnInputThatIsCutOffIsTold) {
  ImportOptions options;
  std::vector<std::string> notes;
  options.note = [&](const std::string& sentence) { notes.push_back(sentence); };
  options.out_nodes = {"r"};
  options.input_shapes = {{"x", Shape::of({2, 6})}, {"z:0", Shape::of({3})}};
  const Module module = import_text(R"(
    node { name: "z" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "AddV2" input: "r" input: "z" })",
                                    options);
  EXPECT_EQ(module.main().body.params.size(), 1u);
  EXPECT_EQ(notes, Texts{"the shape of input 'z:0' has no effect: the outputs do not need that input"});
  options.input_shapes["q"] = Shape::of({3});
  EXPECT_THROW(import_text("", options), Error);
}

TEST(Problems, OperatorsBelowAnUnknownOneAreInTheSameReport) {
  std::string nodes;
  Texts expected;
  for (char c = 'A'; c < 'K'; ++c) {
    nodes += fmt::format("node {{ name: \"n{0}\" op: \"My{0}\" input: \"{1}\" }}\n", c,
                         c == 'A' ? "r" : fmt::format("p{}", char(c - 1)));
    nodes += fmt::format("node {{ name: \"p{0}\" op: \"Neg\" input: \"n{0}\" }}\n", c);
    expected.push_back(fmt::format("My{0}: n{0}", c));
  }
  std::string fix;
  EXPECT_EQ(problems_of(nodes, &fix), expected);
  EXPECT_EQ(fix, "cut above it: --out_nodes=\"r:0\"; or feed the rest: --cut=\"nJ\"");
}

TEST(Problems, ARefusalThatNoTypeOfItsInputChangesIsReportedBelowAnUnknownNode) {
  const std::string pool = R"(node { name: "p" op: "AvgPool" input: "a"
    attr { key: "ksize" value { list { i: 1 i: 2 i: 1 i: 1 } } } attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } }
    attr { key: "padding" value { s: "VALID" } } attr { key: "data_format" value { s: "$" } } })";
  auto with = [&](const std::string& format) {
    return R"(node { name: "a" op: "MyOp" input: "r" } )" + std::string(pool).replace(pool.find('$'), 1, format) +
           R"( node { name: "y" op: "Other" input: "p" })";
  };
  EXPECT_EQ(problems_of(with("NHWC")), (Texts{"MyOp: a", "Other: y"}));
  EXPECT_EQ(problems_of(with("NCHW_VECT_C")), (Texts{"AvgPool: p", "MyOp: a", "Other: y"}));
}

TEST(Problems, WhatNeedsAConstantIsNotAtFaultBelowAnUnknownNode) {
  EXPECT_EQ(problems_of(R"(node { name: "a" op: "MyOp" input: "r" attr { key: "T" value { type: DT_INT32 } } }
                           node { name: "y" op: "Transpose" input: "r" input: "a" })"),
            Texts{"MyOp: a"});
}

TEST(Problems, AProposalThatFailsIsNotMade) {
  // Nothing above the node can be an output, and the node is one itself.
  std::string fix;
  EXPECT_EQ(problems_of(R"(node { name: "y" op: "MyOp" input: "x" } node { name: "z" op: "Neg" input: "y" })", &fix),
            Texts{"MyOp: y"});
  EXPECT_EQ(fix.find("--out_nodes=\"x:0\""), fix.empty() ? 0 : fix.find("--out_nodes=\"x:0\""));
  // What is below the cut needs its rank.
  problems_of(R"(node { name: "y" op: "MyOp" input: "x" }
                 node { name: "z" op: "Transpose" input: "y" input: "one" }
                 node { name: "w" op: "MyOp" input: "z" })",
              &fix);
  EXPECT_EQ(fix.find("--cut"), std::string::npos) << fix;
}

constexpr const char* kBranches = R"(
  node { name: "c" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
  node { name: "if" op: "StatelessIf" input: "c" input: "$"
    attr { key: "Tcond" value { type: DT_BOOL } } attr { key: "Tin" value { list { type: DT_FLOAT } } }
    attr { key: "Tout" value { list { type: DT_FLOAT } } }
    attr { key: "then_branch" value { func { name: "yes" } } } attr { key: "else_branch" value { func { name: "no" } } } }
  node { name: "y" op: "Last" input: "if" }
  library {
    function { signature { name: "yes" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "o" type: DT_FLOAT } }
      node_def { name: "f" op: "First" input: "a" } ret { key: "o" value: "f:out:0" } }
    function { signature { name: "no" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "o" type: DT_FLOAT } }
      node_def { name: "g" op: "Neg" input: "a" } node_def { name: "s" op: "Second" input: "g:y:0" }
      ret { key: "o" value: "s:out:0" } } })";

TEST(Problems, BothBranchesAndWhatIsBelowThemAreLookedAt) {
  const std::string text = kBranches;
  auto with = [&](const char* input) { return std::string(text).replace(text.find('$'), 1, input); };
  EXPECT_EQ(problems_of(with("r")), (Texts{"First: f", "Last: y", "Second: s"}));
  EXPECT_EQ(problems_of(R"(node { name: "u" op: "Above" input: "r" } )" + with("u")),
            (Texts{"Above: u", "First: f", "Last: y", "Second: s"}));
  EXPECT_EQ(problems_of(R"(node { name: "u" op: "IteratorV2" } )" + with("u")),
            (Texts{"First: f", "IteratorV2: u", "Last: y", "Second: s"}));
}

/// A model of ONNX: "Op in,in -> out,out" a node, named as its first result is after "n_".
class OnnxModel {
 public:
  explicit OnnxModel(const std::vector<std::string>& nodes, const std::vector<std::string>& outputs) {
    model_.bytes = ModelBytes::from_memory("graph", std::string(1 << 16, ' '));
    model_.opsets = {{"", 13}};
    for (const std::string& text : nodes) {
      onnx::Node& node = model_.graph.nodes.emplace_back();
      const size_t blank = text.find(' '), arrow = text.find(" -> ");
      node.op = keep(text.substr(0, blank));
      node.inputs = names(text.substr(blank + 1, arrow - blank - 1));
      node.outputs = names(text.substr(arrow + 4));
      node.name = keep(fmt::format("n_{}", node.outputs[0]));
    }
    model_.graph.inputs = {port("x")};
    for (const std::string& output : outputs) model_.graph.outputs.push_back(port(output));
  }
  /// Says what a tensor in the middle is: [2, 4] floats.
  OnnxModel& told(const std::string& tensor) {
    model_.graph.values.push_back(port(tensor));
    return *this;
  }
  const onnx::Model& model() const { return model_; }

 private:
  std::string_view keep(std::string text) { return model_.bytes->keep(std::move(text)); }
  std::vector<std::string_view> names(const std::string& text) {
    std::vector<std::string_view> all;
    for (size_t at = 0; at <= text.size(); at = std::min(text.find(',', at), text.size()) + 1)
      all.push_back(keep(text.substr(at, text.find(',', at) - at)));
    return all;
  }
  onnx::ValueInfo port(const std::string& name) {
    onnx::ValueInfo info;
    info.name = keep(name);
    info.kind = onnx::ValueInfo::Kind::tensor, info.element = onnx::kFloat, info.ranked = true;
    info.dims = {{2, ""}, {4, ""}};
    return info;
  }

  onnx::Model model_;
};

/// "x f32[2, 4] ...": the inputs of a module.
std::string inputs_of(const Module& module) {
  std::string text;
  for (const auto& param : module.main().body.params) text += param->name + " " + to_string(param->type) + " ";
  return text;
}

std::string fix_of(const std::function<void()>& import) {
  try {
    import();
  } catch (const ReportError& error) {
    return error.report().problems().back().fix;
  }
  return "was imported";
}

TEST(OnnxCuts, ATensorOrANodeBecomesAnInput) {
  const OnnxModel model({"Relu x -> r", "Neg r -> s", "Exp s -> y", "Abs x -> z"}, {"y", "z"});
  ImportOptions options;
  for (const char* name : {"s", "n_s", "n_s:0"}) {
    options.replace = {{name, "input"}};
    EXPECT_EQ(inputs_of(import_onnx(model.model(), options)), "x f32[2, 4] s f32[2, 4] ") << name;
  }
  options.out_nodes = {"y"};
  options.input_shapes = {{"s", Shape::of({2, 4})}, {"x", Shape::of({2, 4})}};
  std::vector<std::string> notes;
  options.note = [&](const std::string& sentence) { notes.push_back(sentence); };
  EXPECT_EQ(inputs_of(import_onnx(model.model(), options)), "s f32[2, 4] ");
  EXPECT_EQ(notes, Texts{"the shape of input 'x' has no effect: the outputs do not need that input"});
  options.replace = {{"none", "input"}};
  EXPECT_THROW(import_onnx(model.model(), options), Error);
}

TEST(OnnxCuts, ProposedOnesStartBelowAllThatFailed) {
  const OnnxModel chain(
      {"Relu x -> r", "MyA r -> a", "Neg a -> b", "MyB b -> c", "Exp c -> d", "Abs b -> e", "Add d,e -> y"}, {"y"});
  EXPECT_EQ(fix_of([&] { import_onnx(chain.model()); }),
            "cut above it: --out_nodes=\"r\"; or feed the rest: --cut=\"c;e\"");
  ImportOptions options;
  options.replace = {{"c", "input"}, {"e", "input"}};
  EXPECT_EQ(inputs_of(import_onnx(chain.model(), options)), "c f32[*] e f32[*] ");
  // A node that is an output itself cannot be fed, and where a size is needed that nothing tells a cut does not work.
  EXPECT_EQ(fix_of([] {
              import_onnx(OnnxModel({"Relu x -> r", "MyA r -> y"}, {"y"}).model());
            }),
            "cut above it: --out_nodes=\"r\"");
  OnnxModel flat({"MyA x -> a", "Flatten a -> y"}, {"y"});
  EXPECT_EQ(fix_of([&] { import_onnx(flat.model()); }), "no cut that was tried leaves a model without it");
  EXPECT_EQ(fix_of([&] { import_onnx(flat.told("a").model()); }), "feed the rest: --cut=\"a\"");
}

/// tiny.keras: x -> BatchNormalization -> LSTM; Flatten -> Dense; their sum. `unknown` is a class that becomes another one.
keras::Saved tiny_keras(const std::string& unknown = "") {
  keras::Saved saved = keras::read(test::data("tiny.keras"));
  for (auto& layer : saved.architecture["config"]["layers"])
    if (layer["class_name"] == unknown) layer["class_name"] = "Mine", layer["module"] = nullptr;
  return saved;
}

TEST(KerasCuts, LayersBecomeInputsAndOutputs) {
  const keras::Saved saved = tiny_keras();
  ImportOptions options;
  options.out_nodes = {"LAYER"};
  EXPECT_THROW(keras::import(saved, options), Error);
  std::string lstm, dense;
  for (const auto& layer : saved.architecture["config"]["layers"]) {
    if (layer["class_name"] == "LSTM") lstm = layer["config"]["name"];
    if (layer["class_name"] == "Dense") dense = layer["config"]["name"];
  }
  options.out_nodes = {dense};
  Module module = keras::import(saved, options);
  EXPECT_EQ(module.main().result_names, Texts{dense});
  EXPECT_EQ(inputs_of(module), "x f32[?n, 4, 3] ");
  options.out_nodes = {};
  options.replace = {{lstm, "input"}, {dense, "input"}};
  EXPECT_EQ(inputs_of(keras::import(saved, options)),
            fmt::format("{0} f32[?{0}_0, 2] {1} f32[?{1}_0, 2] ", lstm, dense));
}

TEST(KerasCuts, ThoseThatWereTriedAreProposed) {
  const keras::Saved saved = tiny_keras("LSTM");
  const std::string fix = fix_of([&] { keras::import(saved); });
  EXPECT_NE(fix.find("cut above it: --out_nodes=\""), std::string::npos) << fix;
  const size_t at = fix.find("--cut=\"");
  ASSERT_NE(at, std::string::npos) << fix;
  ImportOptions options;
  options.replace = {{fix.substr(at + 7, fix.size() - at - 8), "input"}};
  EXPECT_EQ(keras::import(saved, options).main().body.params.size(), 2u);
}

TEST(ScriptLines, AreTheInnermostOutsideInstalledPackages) {
  EXPECT_EQ(
      script_line_in(
          "File \"/a/train.py\", line 22, in forward\n    y = self.block(x)\n  File \"/a/net.py\", line 12, in "
          "forward\n    if f(3): return\n  File \"/v/lib/python3.11/site-packages/torch/nn/conv.py\", line 565, in f"),
      "net.py:12");
  EXPECT_EQ(
      script_line_in(
          "/v/site-packages/torch/nn/conv.py(560): _conv_forward\n/a/net.py(12): forward\n/a/train.py(22): main\n"),
      "net.py:12");
  for (const char* none : {"", "\n(", "says (3): nothing", "File \"", "File \"a.py\", line x",
                           "/v/site-packages/a.py(3): f", "a.py(99999999999999999999): f"})
    EXPECT_EQ(script_line_in(none), "") << none;
}

}  // namespace
}  // namespace cairn
