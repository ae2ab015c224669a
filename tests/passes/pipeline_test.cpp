// The runner: switches, prints, reports, and the page that lists passes.
#include "passes/pipeline.h"
#include "ir/builder.h"
#include "passes/refusals.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "passes/provenance.h"
#include "passes/refusals.h"
#include "passes/support.h"

namespace cairn::test {
extern bool update_texts;
}

namespace cairn {
namespace {

constexpr const char* kModule =
    "(%x: f32[2]) -> (%y: f32[2]) { %a = neg %x %b = neg %a %c = constant {value = f32[] (2.0)} %d = exp %c %y = mul "
    "%b, %d return %y }";

TEST(Pipeline, ReportsPassesWithTheirRules) {
  Module module = test::parse_short(kModule);
  size_t negations = 0;
  for (const PassRecord& record : optimise(module)) {
    EXPECT_GE(record.milliseconds, 0);
    if (auto found = record.rules.find("negate_twice"); found != record.rules.end()) negations += found->second;
  }
  EXPECT_EQ(negations, 1u);
}

TEST(Pipeline, LeavesOutWhatIsDisabled) {
  Module module = test::parse_short(kModule);
  optimise(module, {.disabled = {"negate_twice", "ConstantFolding"}});
  std::string text = print(module).text;
  EXPECT_NE(text.find("neg"), std::string::npos);
  EXPECT_NE(text.find("exp"), std::string::npos);
}

TEST(Pipeline, PrintsAfterTheNamedPass) {
  Module module = test::parse_short(kModule);
  std::vector<std::string> printed;
  optimise(module, {.print_after = "remove_dead", .print = [&](const std::string& pass, const std::string& text) {
                      printed.push_back(pass);
                      EXPECT_NE(text.find("func @main"), std::string::npos);
                    }});
  ASSERT_FALSE(printed.empty());
  for (const std::string& pass : printed) EXPECT_EQ(pass, "remove_dead");
}

TEST(Pipeline, SaysWhereShapesContradictEachOther) {
  Module module = parse(
      "module @m { source 0 = \"tf\" \"bad/Add\" \"Add\" \"train.py:7\" func @main(%x: f32[2], %z: f32[3]) -> (%y: "
      "f32[?]) { "
      "%a = identity %x : f32[?] %b = identity %z : f32[?] return %a } }");
  Function& main = module.main();
  for (auto& node : main.body.nodes) node->result()->type = Type::tensor(kF32, Shape(std::vector<Dim>{Dim()}));
  Builder builder(main.body);
  builder.sources = {0};
  main.body.results = {builder.add("add", {main.body.nodes[0]->result(), main.body.nodes[1]->result()})};
  for (auto when : {PipelineOptions::Verify::passes, PipelineOptions::Verify::rounds}) {
    try {
      Module copy = clone(module);
      optimise(copy, {.verify = when});
      FAIL() << "no error";
    } catch (const Error& fault) {
      EXPECT_NE(std::string(fault.what()).find("bad/Add (train.py:7): add"), std::string::npos) << fault.what();
    }
  }
}

TEST(Pipeline, IsDescribedInTheReference) {
  const char* path = CAIRN_SOURCE_DIR "/docs/reference/passes.md";
  if (test::update_texts) std::ofstream(path) << describe_passes();
  std::ostringstream found;
  found << std::ifstream(path).rdbuf();
  EXPECT_EQ(found.str(), describe_passes()) << "run test_passes --update";
}

TEST(Pipeline, HandlesFunctionsThatCallEachOtherWithoutEnd) {
  Module module = parse(
      "module @m { func @f(%x: f32[]) -> (%y: f32[]) { %y = call %x {callee = @g} : f32[] return %y } "
      "func @g(%x: f32[]) -> (%y: f32[]) { %y = call %x {callee = @f} : f32[] return %y } "
      "func @main(%x: f32[]) -> (%y: f32[]) { %y = call %x {callee = @f} : f32[] return %y } }");
  optimise(module);
  verify(module);
  EXPECT_NE(print(module).text.find("call"), std::string::npos);
}

TEST(Pipeline, HandlesFunctionsThatDoubleEachTime) {
  std::string text = "module @m { func @f0(%x: f32[]) -> (%y: f32[]) { %y = exp %x return %y } ";
  for (int i = 1; i < 40; ++i)
    text += fmt::format(
        "func @f{}(%x: f32[]) -> (%y: f32[]) {{ %a = call %x {{callee = @f{}}} : f32[] "
        "%y = call %a {{callee = @f{}}} : f32[] return %y }} ",
        i, i - 1, i - 1);
  text += "func @main(%x: f32[]) -> (%y: f32[]) { %y = call %x {callee = @f39} : f32[] return %y } }";
  Module module = parse(text);
  optimise(module, {.verify = PipelineOptions::Verify::never});
  EXPECT_NE(print(module).text.find("call"), std::string::npos);
}

// Claims that do not hold, one for each reason.
TEST(Provenance, IsNotDeceived) {
  Module before = parse(
      "module @m { source 0 = \"tf\" \"a\" \"Exp\" \"\" source 1 = \"tf\" \"b\" \"Neg\" \"\" func @main(%x: f32[2]) -> "
      "(%y: f32[2]) { "
      "%a = exp %x #0 %y = neg %a #1 return %y } }");
  EXPECT_TRUE(check_provenance(before, before).empty());
  for (Removal claim : {Removal::dead, Removal::folded, Removal::shape_only, Removal::fused}) {
    Module after = clone(before);
    after.main().body.nodes[0]->sources.clear();
    EXPECT_EQ(check_provenance(before, after).size(), 1u) << "lost without a reason";
    after.removed[0] = claim;
    EXPECT_EQ(check_provenance(before, after).size(), 1u) << to_string(claim);
  }
  Module after = clone(before);
  after.removed[1] = Removal::identity;
  EXPECT_EQ(check_provenance(before, after).size(), 1u) << "present and removed";
}

TEST(Refusals, AreKeptWithTheirRuleAndACancelledRunIsNone) {
  Module module = parse("module @m { func @main(%x: f32[2]) -> (%y: f32[2]) { %y = neg %x : f32[2] return %y } }");
  const Node& node = *module.main().body.nodes.front();
  note_refusal("some_rule", node, Error(ErrorKind::invalid_model, "add", "f32[2] for f32[3]"));
  EXPECT_EQ(take_refusals(), std::vector<std::string>{"some_rule: neg: add: f32[2] for f32[3]"});
  EXPECT_EQ(take_refusals(), std::vector<std::string>{});
  std::remove(std::getenv("CAIRN_REFUSED_REPLACEMENTS"));  // no refusal of the test's own
  EXPECT_THROW(note_refusal("some_rule", node, Error(ErrorKind::cancelled, "", "enough")), Error);
}

}  // namespace
}  // namespace cairn
