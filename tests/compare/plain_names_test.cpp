// Arrays whose files have names of their own: folders, archives and single files, and what makes a comparison fail.
#include <gtest/gtest.h>

#include "compare/comparison.h"
#include "folders.h"

namespace cairn::compare {
namespace {

Tensor pair_of(float a, float b) { return Tensor::of(kF32, {2}, std::vector<float>{a, b}); }

/// "x pass" or "x fail (reason)" by row.
std::string rows(const std::string& mine, const std::string& golden) {
  std::string text;
  for (const Row& row : compare_trees(read_tree(mine), read_tree(golden), {}, {}, {}, serial_executor()).rows)
    text += fmt::format("{} {}{}\n", row.mine == "*" ? row.golden : row.mine, to_string(row.verdict),
                        row.reason.empty() ? "" : " (" + row.reason + ")");
  return text;
}

TEST(PlainNames, OfAFolderAreItsPaths) {
  TestFolder folder;
  for (const char* side : {"mine", "golden"}) {
    folder.array(std::string(side) + "/logits.npy", ramp(4));
    folder.array(std::string(side) + "/layer1.output.npy", ramp(5));
    folder.array(std::string(side) + "/deep/er/logits.npy", ramp(6));
  }
  folder.array("golden/a.b.npy", ramp(3)), folder.array("golden/a_b.npy", ramp(3, 7));
  folder.array("mine/a.b.npy", ramp(3)), folder.array("mine/a_b.npy", ramp(3, 7));
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")),
            "a.b pass\na_b pass\ndeep/er/logits pass\nlayer1.output pass\nlogits pass\n");
}

TEST(PlainNames, WithoutCounterpartFail) {
  TestFolder folder;
  folder.array("mine/x.npy", ramp(4)), folder.array("golden/x.npy", ramp(4));
  folder.array("mine/mine_only.npy", ramp(4)), folder.array("golden/golden_only.npy", ramp(4));
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")),
            fmt::format("mine_only fail (is not in {})\nx pass\ngolden_only fail (is not in {})\n",
                        folder.path("golden"), folder.path("mine")));
}

TEST(PlainNames, OfArchivesAreThoseOfTheirMembers) {
  TestFolder folder;
  write_npz(folder.make("a.npz"), {{"x", pair_of(1, 2)}, {"y:1", pair_of(3, 4)}});
  write_npz(folder.make("b.npz"), {{"y:1", pair_of(3, 4)}, {"z", pair_of(1, 2)}});
  EXPECT_EQ(rows(folder.path("a.npz"), folder.path("b.npz")),
            fmt::format("x fail (is not in {})\ny pass\nz fail (is not in {})\n", folder.path("b.npz"),
                        folder.path("a.npz")));
  // Archives of one folder keep their members apart.
  for (const char* side : {"mine", "golden"})
    for (const char* name : {"first", "second"})
      write_npz(folder.make(fmt::format("{}/{}.npz", side, name)), {{"x", pair_of(name[0] == 'f' ? 1.0f : 5.0f, 2)}});
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")), "first/x pass\nsecond/x pass\n");
}

TEST(PlainNames, WithOtherShapesOrTypesFail) {
  TestFolder folder;
  folder.array("mine/count.npy", ramp(6)), folder.array("golden/count.npy", ramp(4));
  folder.array("mine/dims.npy", ramp(6), {2, 3}), folder.array("golden/dims.npy", ramp(6), {3, 2});
  write_npy(folder.make("mine/kind.npy"), Tensor::of(kI32, {2}, std::vector<int32_t>{1, 2}));
  folder.array("golden/kind.npy", {1, 2});
  write_npy(folder.make("mine/wide.npy"), Tensor::of(kF64, {2}, std::vector<double>{1, 2}));
  folder.array("golden/wide.npy", {1, 2});
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")),
            "count fail (shapes differ: [6] against [4])\ndims fail (shapes differ: [2,3] against [3,2])\n"
            "kind fail (types differ: int32 against float32)\nwide pass\n");
}

TEST(Dumps, WithOtherDimsOfOneRankFailToo) {
  TestFolder folder;
  folder.array("mine/Relu.r.2.0.200.output.0.npy", ramp(6), {2, 3}), folder.array("golden/r.0.1.npy", ramp(6), {3, 2});
  folder.array("mine/Relu.s.3.0.300.output.0.npy", ramp(6), {6}), folder.array("golden/s.0.2.npy", ramp(6), {3, 2});
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")), "r fail (shapes differ: [2,3] against [3,2])\ns pass\n");
}

TEST(Dumps, HoldResultsByTheirNumberNotByTheirPlaceInAFile) {
  TestFolder folder;
  folder.array("mine/Split.sp.1.0.100.output.0.npy", ramp(4, 1));
  folder.array("mine/Split.sp.2.0.200.output.2.npy", ramp(4, 9));
  folder.array("mine/slice.sp:slice.3.0.300.output.0.npy", ramp(4, 50));
  folder.text(
      "mine/manifest.jsonl",
      R"({"file":"Split.sp.1.0.100.output.0.npy","op":"sp","type":"Split","kind":"output","index":0,"sources":["tf:sp"]}
{"file":"Split.sp.2.0.200.output.2.npy","op":"sp","type":"Split","kind":"output","index":2,"sources":["tf:sp"]}
{"file":"slice.sp:slice.3.0.300.output.0.npy","op":"sp:slice","type":"slice","kind":"output","index":0,"sources":["tf:sp"]}
)");
  for (int i = 0; i < 3; ++i) folder.array(fmt::format("golden/sp.{}.1.npy", i), ramp(4, 1 + 4.0f * float(i)));
  EXPECT_EQ(rows(folder.path("mine"), folder.path("golden")),
            "sp pass\nsp pass\nsp:slice none (the operator is not in GroundTruth)\n");
}

}  // namespace
}  // namespace cairn::compare
