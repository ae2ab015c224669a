// Names of a GraphDef become edges once, and edits keep them.
#include "frontends/tensorflow/graph.h"

#include <gtest/gtest.h>

#include "frontends/tensorflow/functions.h"
#include "frontends/tensorflow/text_schema.h"
#include "frontends/text_proto.h"

namespace cairn::tensorflow {
namespace {

GraphDef graph_of(const std::string& text) {
  const auto model = ModelBytes::from_memory("graph", text_to_wire(text, kGraphDefText, "graph"));
  return read_graph_def(model, model->bytes());
}

std::string fault_of(const std::string& text) {
  try {
    graph_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// "name: inputs" of each node.
std::vector<std::string> edges_of(const std::vector<Node>& nodes) {
  std::vector<std::string> lines;
  for (const Node& node : nodes) {
    lines.push_back(fmt::format("{}:", node.name));
    for (Edge input : node.inputs) lines.back() += " " + tensor_name(nodes, input);
  }
  return lines;
}

using Lines = std::vector<std::string>;

/// f(x, y) = (split(x)[1] + y, x).
constexpr const char* kFunction = R"(function {
  signature { name: "f" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "y" type: DT_FLOAT }
              output_arg { name: "sum" type: DT_FLOAT } output_arg { name: "same" type: DT_FLOAT } }
  node_def { name: "add" op: "AddV2" input: "parts:output:1" input: "y" input: "^note" }
  node_def { name: "axis" op: "Const" }
  node_def { name: "parts" op: "Split" input: "axis:output:0" input: "x" attr { key: "num_split" value { i: 2 } } }
  node_def { name: "note" op: "NoOp" }
  ret { key: "sum" value: "add:z:0" }
  ret { key: "same" value: "x" } })";

TEST(GraphEdges, InputsAreFoundInAnyOrder) {
  const GraphDef graph = graph_of(R"(node { name: "b" op: "AddV2" input: "a:1" input: "a" input: "^c" }
    node { name: "a" op: "Split" } node { name: "c" op: "NoOp" input: "^a" })");
  EXPECT_EQ(edges_of(graph.nodes), (Lines{"b: a:1 a:0 c:-1", "a:", "c: a:-1"}));
}

TEST(GraphEdges, FaultsNameTheNode) {
  EXPECT_EQ(fault_of(R"(node { name: "a" op: "Neg" input: "b:1" })"), "a: input 'b:1' does not exist");
  EXPECT_EQ(fault_of(R"(node { name: "a" op: "Neg" input: "^b" })"), "a: input '^b' does not exist");
  EXPECT_EQ(fault_of(R"(node { name: "a" op: "Neg" } node { name: "a" op: "Abs" })"), "graph: two nodes are named 'a'");
  EXPECT_EQ(fault_of(R"(node { name: "a" op: "Neg" input: "a:x" })"),
            "a: 'a:x' is no tensor name, expected node:number");
}

TEST(GraphEdges, ResultsInABodyHaveFlatNumbersAndAreWrittenByName) {
  GraphDef graph = graph_of(fmt::format("library {{ {} }}", kFunction));
  for (int round = 0; round < 2; ++round) {
    FunctionDef& function = graph.functions.at(0);
    function.check();
    EXPECT_EQ(edges_of(function.nodes),
              (Lines{"add: parts:1 y:0 note:-1", "axis:", "parts: axis:0 x:0", "note:", "x:", "y:"}));
    EXPECT_EQ(tensor_name(function.nodes, function.outputs[0].edge), "add:0");
    EXPECT_EQ(function.outputs[1].edge, function.inputs[0].edge);
    EXPECT_EQ(function.nodes[0].result, "z");
    function.raw = {};
    const auto written = ModelBytes::from_memory("written", encode(graph));
    graph = read_graph_def(written, written->bytes());
  }
}

TEST(GraphEdges, AFaultOfABodyIsToldWhereItIsCalled) {
  const std::string library = R"(library { function { signature { name: "f" output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "a" op: "Neg" input: "b:y:0" } ret { key: "y" value: "a:y:0" } } })";
  GraphDef graph = graph_of(R"(node { name: "x" op: "Const" } node { name: "call" op: "f" })" + library);
  std::vector<uint32_t> roots{1};
  try {
    inline_calls(graph, roots);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "a: input 'b:y:0' does not exist");
  }
}

TEST(GraphEdges, CallsInsideCallsAreInlined) {
  GraphDef graph = graph_of(fmt::format(R"(node {{ name: "sum" op: "Identity" input: "call" }}
    node {{ name: "two" op: "Const" }} node {{ name: "add" op: "Const" }}
    node {{ name: "call" op: "g" input: "add" input: "two" input: "^two" }}
    library {{ {} function {{
      signature {{ name: "g" input_arg {{ name: "a" type: DT_FLOAT }} input_arg {{ name: "b" type: DT_FLOAT }}
                  output_arg {{ name: "c" type: DT_FLOAT }} }}
      node_def {{ name: "inner" op: "f" input: "b" input: "a" input: "^a" }}
      ret {{ key: "c" value: "inner:sum:0" }} control_ret {{ key: "d" value: "inner" }} }} }})",
                                        kFunction));
  std::vector<uint32_t> roots{0};
  inline_calls(graph, roots);
  prune(graph, roots);
  EXPECT_EQ(graph.nodes[roots[0]].name, "sum");
  std::vector<std::string> lines = edges_of(graph.nodes);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"add:", "axis:", "call: inner:0 two:-1 inner:-1", "inner/add: parts:1 add:0 note:-1",
                          "inner: inner/add:0 two:0 add:-1", "note:", "parts: axis:0 two:0", "sum: call:0", "two:"}));
}

TEST(GraphEdges, NodesThatGoTakeTheirControlEdgesAlong) {
  GraphDef graph = graph_of(R"(node { name: "a" op: "Const" } node { name: "b" op: "Neg" input: "c" input: "^a" }
    node { name: "c" op: "Const" })");
  const std::vector<uint32_t> places = keep_nodes(graph.nodes, {false, true, true});
  EXPECT_EQ(places, (std::vector<uint32_t>{kGone, 0, 1}));
  EXPECT_EQ(edges_of(graph.nodes), (Lines{"b: c:0", "c:"}));
  EXPECT_THROW(keep_nodes(graph.nodes, {true, false}), Error);
}

TEST(GraphEdges, UsersAreTheReadersOfEachInput) {
  const GraphDef graph = graph_of(R"(node { name: "a" op: "Split" } node { name: "b" op: "Mul" input: "a:1" input: "a" }
    node { name: "c" op: "NoOp" input: "^a" })");
  const Users users(graph.nodes);
  const auto of_a = users.of(0);
  EXPECT_EQ(std::vector<Edge>(of_a.begin(), of_a.end()), (std::vector<Edge>{{1, 1}, {1, 0}, {2, Edge::kControl}}));
  EXPECT_TRUE(users.of(2).empty());
}

}  // namespace
}  // namespace cairn::tensorflow
