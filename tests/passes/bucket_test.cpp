// Buckets of all_reduce nodes: by number, by bytes, by split indices and by parts of all bytes.
#include <gtest/gtest.h>

#include "comm/job.h"
#include "ir/text.h"
#include "passes/passes.h"
#include "passes/support.h"

namespace cairn {
namespace {

/// The buckets that a function gets, in their order, as names of the nodes in them: "d c, b a".
std::string buckets(const std::string& function) {
  const Module before = test::parse_short(function);
  Module module = clone(before);
  bucket_collectives(module.main().body, module);
  verify(module);
  EXPECT_EQ(test::random_check(before, module), "");
  std::string text;
  for (const auto& node : module.main().body.nodes) {
    std::vector<std::string> names;
    if (node->is("all_reduce_bucket"))
      names = std::get<std::vector<std::string>>(node->attr().get("names"));
    else if (node->is("all_reduce"))
      names = {node->attr().text("name")};
    else if (node->is("barrier"))
      names = {"barrier"};
    if (!names.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", fmt::join(names, " "));
  }
  return text;
}

/// Gradients of four layers as a backward pass makes them, that of the last first; exchanged in the order of layers.
std::string backward(const std::array<const char*, 4>& attributes = {"", "", "", ""}) {
  std::string text = "(%x: f32[8]) -> (%w: f32[8], %v: f32[8], %u: f32[8], %t: f32[8]) { ";
  text += "%d = neg %x %c = exp %d %b = neg %c %a = exp %b ";
  for (size_t i = 0; i < 4; ++i)
    text += fmt::format("%{} = all_reduce %{} {{name = \"{}\"{}}} ", "wvut"[i], "abcd"[i], "abcd"[i], attributes[i]);
  return text + "return %w, %v, %u, %t }";
}

class Buckets : public testing::Test {
 protected:
  void TearDown() override { comm::set_fusion("world", "{}"); }
};

TEST_F(Buckets, HoldUpToSoManyBytesInTheOrderInWhichGradientsAreReady) {
  EXPECT_EQ(buckets(backward()), "d c b a");
  comm::set_fusion("world", R"({"bytes": 64})");
  EXPECT_EQ(buckets(backward()), "d c, b a");
  comm::set_fusion("world", R"({"bytes": 100})");
  EXPECT_EQ(buckets(backward()), "d c b, a");
  comm::set_fusion("world", R"({"bytes": 1})");
  EXPECT_EQ(buckets(backward()), "d, c, b, a");
}

TEST_F(Buckets, AreCutBehindTheGivenGradients) {
  comm::set_fusion("world", R"({"indices": [0, 2]})");
  EXPECT_EQ(buckets(backward()), "d, c b, a");
}

TEST_F(Buckets, AreCutByPartsOfAllBytes) {
  comm::set_fusion("world", R"({"percents": [70, 30]})");
  EXPECT_EQ(buckets(backward()), "d c b, a");
}

TEST_F(Buckets, AreNotMadeWhereTheStrategySaysSo) {
  comm::set_fusion("world", R"({"none": true})");
  EXPECT_EQ(buckets(backward()), "d, c, b, a");
}

TEST_F(Buckets, HoldNodesOfOneNumberHoweverLarge) {
  comm::set_fusion("world", R"({"bytes": 1})");
  EXPECT_EQ(buckets(backward({", fusion = 2, fusion_id = 2", ", fusion = 2, fusion_id = 3",
                              ", fusion = 2, fusion_id = 2", ", fusion = 2, fusion_id = 3"})),
            "d b, c a");
}

TEST_F(Buckets, LeaveOutNodesThatAreNeverPutTogether) {
  EXPECT_EQ(buckets(backward({"", ", fusion = 0", "", ""})), "b, d c a");
}

TEST_F(Buckets, HoldOneReductionAndOneTypeAlone) {
  EXPECT_EQ(buckets(backward({"", ", reduction = max", "", ", reduction = max"})), "d b, c a");
}

TEST_F(Buckets, AreMadeOfNodesThatDoNotDependOnEachOther) {
  EXPECT_EQ(buckets("(%x: f32[8]) -> (%z: f32[8], %y: f32[8]) { %a = all_reduce %x {name = \"first\"} %b = neg %a "
                    "%z = all_reduce %b {name = \"second\"} %y = all_reduce %x {name = \"beside\"} return %z, %y }"),
            "first beside, second");
}

TEST_F(Buckets, KeepTheOrderOfOtherEffects) {
  EXPECT_EQ(
      buckets(
          "(%x: f32[8]) -> (%y: f32[8], %z: f32[8]) { %y = all_reduce %x {name = \"a\"} barrier {group = \"world\"} "
          "%z = all_reduce %x {name = \"b\"} barrier {group = \"world\"} return %y, %z }"),
      "barrier, a b, barrier");
}

}  // namespace
}  // namespace cairn
