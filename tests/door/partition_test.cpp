// How a graph is cut into clusters: by names and edges, without TensorFlow.
#include "partition.h"

#include <gtest/gtest.h>

namespace cairn_tf {
namespace {

Node node(const std::string& name, std::vector<Input> inputs, const std::string& host = "") {
  Node made;
  made.name = made.op = name;
  made.inputs = std::move(inputs);
  made.host = host;
  made.work = host.empty() ? kHeavy : 0;
  return made;
}

using Clusters = std::vector<std::vector<int>>;

TEST(Partition, OneClusterWhereNothingStaysBehind) {
  EXPECT_EQ(partition({node("a", {}), node("b", {{0}}), node("c", {{1}})}).clusters, (Clusters{{0, 1, 2}}));
}

TEST(Partition, AHostNodeInBetweenCutsInTwo) {
  auto parts = partition({node("a", {}), node("h", {{0}}, "text"), node("b", {{1}}), node("c", {{0}})});
  EXPECT_EQ(parts.clusters, (Clusters{{0, 3}, {2}}));
  EXPECT_EQ(parts.host[1], "text");
}

TEST(Partition, ControlEdgesCountAsWell) {
  auto parts = partition({node("a", {}), node("h", {{0, -1, true}}, "print"), node("b", {{1, -1, true}})});
  EXPECT_EQ(parts.clusters, (Clusters{{0}, {2}}));
}

TEST(Partition, ConstantsJoinNobody) {
  Node constant = node("k", {});
  constant.constant = true;
  EXPECT_EQ(partition({constant, node("a", {{0}}), node("b", {{0}, {1}})}).clusters, (Clusters{{1, 2}}));
}

TEST(Partition, WhatHasTooLittleWorkStays) {
  Node small = node("small", {});
  small.work = kLeastWork - 1;
  auto parts = partition({small});
  EXPECT_TRUE(parts.clusters.empty());
  EXPECT_EQ(parts.host[0], "too little work for a cluster of its own");
}

TEST(Partition, AnEarlyReadJoinsItsOnlyUser) {
  Node read = node("read", {});
  read.reads = true;
  read.work = 0;
  std::vector<Node> nodes{read, node("a", {}), node("h", {{1}}, "text"), node("b", {{0}, {2}})};
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{1}, {0, 3}}));
}

TEST(Partition, AReadDoesNotMovePastAWrite) {
  Node read = node("read", {});
  read.reads = true;
  Node write = node("write", {});
  write.writes = true;
  std::vector<Node> nodes{read, write, node("h", {{1}}, "text"), node("b", {{0}, {2}})};
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{0, 1}, {3}}));
}

TEST(Partition, AReferenceForAHostNodeIsMadeThere) {
  auto parts = partition({node("assign", {}), node("h", {{0, 0, false, true}}, "text"), node("b", {{1}})});
  EXPECT_EQ(parts.clusters, (Clusters{{2}}));
  EXPECT_EQ(parts.host[0], "hands a reference of a variable to h");
}

TEST(Partition, AReferenceAcrossAHostNodeLeavesBothEndsThere) {
  std::vector<Node> nodes{node("assign", {}), node("h", {{0}}, "text"), node("add", {{0, 0, false, true}, {1}})};
  EXPECT_TRUE(partition(nodes).clusters.empty());
}

TEST(Partition, AListNeitherLeavesNorEntersACluster) {
  std::vector<Node> nodes{node("make", {}), node("push", {{0, 0, false, false, true}}),
                          node("h", {{1, 0, false, false, true}}, "text"), node("b", {{0}})};
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{3}}));
}

/// A conditional: 0 the value, 1 its condition, 2 Switch, 3 and 4 the branches, 5 Merge, 6 its user.
std::vector<Node> conditional(const std::string& host = "") {
  std::vector<Node> nodes{
      node("x", {}),         node("less", {{0}}),       node("Switch", {{0}, {1}}), node("no", {{2, 0}}, host),
      node("yes", {{2, 1}}), node("Merge", {{3}, {4}}), node("after", {{5}})};
  find_units(nodes);
  return nodes;
}

TEST(Partition, AConditionalGoesIntoAClusterWithItsNeighbours) {
  EXPECT_EQ(partition(conditional()).clusters, (Clusters{{0, 1, 2, 3, 4, 5, 6}}));
}

TEST(Partition, AConditionalWithAHostNodeStaysWhole) {
  auto parts = partition(conditional("text"));
  EXPECT_EQ(parts.clusters, (Clusters{{0, 1}, {6}}));
  EXPECT_EQ(parts.host[4], "stands in TF1 control flow with no: text");
}

TEST(Partition, WhatIsFetchedFromABranchLeavesItsConditionalToTheHost) {
  std::vector<Node> nodes = conditional();
  nodes.push_back(node("_Retval", {{4}}, "an end of the graph"));
  find_units(nodes);
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{0, 1}, {6}}));
}

TEST(Partition, AConditionalFedByAHostNodeInsideWaitsForIt) {
  // The branch reads a second value, which the host makes of x.
  std::vector<Node> nodes{node("x", {}),
                          node("p", {{0}}),
                          node("h", {{0}}, "text"),
                          node("Switch", {{0}, {1}}),
                          node("Switch", {{2}, {1}}),
                          node("mul", {{3, 1}, {4, 1}}),
                          node("Merge", {{3, 0}, {5}})};
  find_units(nodes);
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{0}, {1, 3, 4, 5, 6}}));
}

/// Two conditionals of one predicate behind each other, whose Switches are one: 0 the value, 1 the predicate, 2 Switch, 3 a pivot,
/// 4 to 6 the first, 7 in between, 8 to 10 the second.
std::vector<Node> pair_of_conditionals(const std::string& first, const std::string& between) {
  return {node("x", {}),
          node("p", {{0}}),
          node("Switch", {{0}, {1}}),
          node("Identity", {{2, 1}}),
          node("no", {{2, 0}}, first),
          node("yes", {{2, 1}, {3, -1, true}}),
          node("Merge", {{4}, {5}}),
          node("mul", {{6}}, between),
          node("no", {{7}, {2, 0}}),
          node("yes", {{2, 1}, {3, -1, true}}),
          node("Merge", {{8}, {9}})};
}

TEST(Partition, AConditionalWithAHostNodeKeepsNoOtherOfItsPredicateThere) {
  std::vector<Node> nodes = pair_of_conditionals("text", "");
  EXPECT_EQ(part_conditionals(nodes), (std::vector<int>{2, 3}));
  EXPECT_EQ(nodes[12].inputs[0].node, 11);  // the pivot's copy is one of the Switch's
  auto parts = partition(nodes);
  for (int node : {4, 5, 6}) EXPECT_NE(parts.host[static_cast<size_t>(node)], "") << node;
  for (int node : {8, 9, 10}) EXPECT_EQ(parts.host[static_cast<size_t>(node)], "") << node;
}

TEST(Partition, ConditionalsOfOnePredicateMayHaveAHostNodeInBetween) {
  std::vector<Node> nodes = pair_of_conditionals("", "text");
  EXPECT_EQ(part_conditionals(nodes).size(), 2u);
  auto parts = partition(nodes);
  ASSERT_EQ(parts.clusters.size(), 2u);
  EXPECT_EQ(parts.clusters[1].size(), 5u);  // the second conditional, with a Switch and a pivot
}

TEST(Partition, ConditionalsThatNoHostNodePartsKeepTheirSwitch) {
  std::vector<Node> nodes = pair_of_conditionals("", "");
  EXPECT_TRUE(part_conditionals(nodes).empty());
  EXPECT_EQ(partition(nodes).clusters.size(), 1u);
}

std::vector<Node> loop(const std::string& host = "") {
  std::vector<Node> nodes{node("Enter", {}),
                          node("Merge", {{0}, {4}}),
                          node("LoopCond", {{1}}),
                          node("Switch", {{1}, {2}}),
                          node("NextIteration", {{3, 1}}, host),
                          node("Exit", {{3, 0}}),
                          node("after", {{5}})};
  nodes[0].frame = "while";
  find_units(nodes);
  return nodes;
}

TEST(Partition, ALoopOfNextIterationIsOneUnit) {
  EXPECT_EQ(partition(loop()).clusters, (Clusters{{0, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(partition(loop("text")).clusters, (Clusters{{6}}));
}

TEST(Partition, WhatALoopNeedsIsNotInOneClusterWithWhatItGives) {
  // "w" enters the loop as an invariant that only the second round sees at the exit; "print" keeps the loop on the host.
  std::vector<Node> nodes{
      node("Enter", {}),          node("Merge", {{0}, {5}}),    node("LoopCond", {{1}}),     node("Switch", {{1}, {2}}),
      node("Add", {{3, 1}, {8}}), node("NextIteration", {{4}}), node("Exit", {{3, 0}}),      node("w", {}),
      node("Enter", {{7}}),       node("after", {{6}, {7}}),    node("print", {{4}}, "text")};
  nodes[0].frame = nodes[8].frame = "while";
  find_units(nodes);
  EXPECT_EQ(partition(nodes).clusters, (Clusters{{7}, {9}}));
}

TEST(Partition, AHundredThousandNodesTakeOneSweep) {
  std::vector<Node> nodes{node("a", {})};
  for (int i = 1; i < 100000; ++i) nodes.push_back(node("n", {{i - 1}}, i % 1000 ? "" : "text"));
  EXPECT_EQ(partition(nodes).clusters.size(), 100u);
}

}  // namespace
}  // namespace cairn_tf
