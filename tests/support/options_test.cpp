// The platform tools' arguments, as printed in manuals and as people really write them.
#include "support/options.h"
#include "support/shape_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace cairn {
namespace {

using Arguments = std::vector<std::string>;

Report problems_of(const Arguments& arguments, Door door = kAtc) {
  try {
    parse_options(arguments, door);
  } catch (const ReportError& error) {
    return error.report();
  }
  return {};
}

std::string only_code(const Arguments& arguments, Door door = kAtc) {
  Report report = problems_of(arguments, door);
  return report.problems().size() == 1 ? report.problems()[0].code
                                       : fmt::format("{} problems", report.problems().size());
}

TEST(Options, RowsHaveUniqueNamesAndReasonsWhereTheyDoNotAct) {
  std::set<std::string> names;
  for (const OptionDef& def : option_table()) {
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    EXPECT_EQ(def.status == OptionStatus::acts, std::string_view(def.reason).empty()) << def.name;
    EXPECT_EQ(def.type == OptionType::choice, !def.values.empty()) << def.name;
  }
  EXPECT_GE(names.size(), 75u);
}

TEST(Options, AllFormsOfAnOptionAreRead) {
  for (const Arguments& form : {Arguments{"--input_shape=a:1,2"},
                                {"--input_shape", "a:1,2"},
                                {"-input_shape=a:1,2"},
                                {"--input-shape=a:1,2"},
                                {"--input-shape", "a:1,2"},
                                {"\u2014input_shape=a:1,2"}})
    EXPECT_EQ(parse_options(form, kAtc).get("input_shape"), "a:1,2") << form[0];
}

TEST(Options, TheLastOfTwoEqualOptionsCounts) {
  EXPECT_EQ(parse_options({"--output=a", "--output=b"}, kAtc).get("output"), "b");
}

TEST(Options, HomeIsPutInForATilde) {
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(parse_options({"--model", "~/frozen_graph.pb"}, kOmg).get("model"), "/home/someone/frozen_graph.pb");
  EXPECT_EQ(parse_options({"--model=~/a.pb"}, kAtc).get("model"), "/home/someone/a.pb");
}

TEST(Options, CurlyQuotesThatCloseAreLeftOut) {
  ParsedOptions options = parse_options({"--out_nodes", "\u201closs/BiasAdd\u201d"}, kOmg);
  EXPECT_EQ(options.get("out_nodes"), "loss/BiasAdd");
  ASSERT_EQ(options.repairs.size(), 1u);
  options = parse_options({"--input_shape=\u201ca:1,", "2;b:1\u201d", "--framework=3"}, kAtc);
  EXPECT_EQ(options.get("input_shape"), "a:1, 2;b:1");
  EXPECT_EQ(options.get("framework"), "3");
}

TEST(Options, ACurlyQuoteThatNeverClosesIsExplained) {
  Report report = problems_of({"--model=m.pb", "--framework=3", "--input_shape=\u201cinput_ids:1,500"});
  ASSERT_EQ(report.problems().size(), 1u);
  EXPECT_NE(report.problems()[0].message.find("the shell cut the command at ';'"), std::string::npos);
  EXPECT_EQ(report.problems()[0].fix,
            "use straight quotes around the whole value: --input_shape=\"input_ids:1,500;...\"");
}

TEST(Options, AnUnknownOptionNamesTheNearest) {
  Report report = problems_of({"--inputshape=a:1", "--soc_verson", "Ascend310"});
  ASSERT_EQ(report.problems().size(), 2u);
  EXPECT_EQ(report.problems()[0].fix, "nearest: --input_shape");
  EXPECT_EQ(report.problems()[1].fix, "nearest: --soc_version");
}

TEST(Options, AStrayWordIsRefusedAndABlankAfterACommaIsMended) {
  EXPECT_EQ(only_code({"--model=a", "b"}), "E10053");
  ParsedOptions options = parse_options({"--input_shape=a:1,", "2", "--log=info"}, kAtc);
  EXPECT_EQ(options.get("input_shape"), "a:1,2");
  EXPECT_EQ(options.repairs.size(), 1u);
}

TEST(Options, BadValuesHaveThePlatformsCodes) {
  EXPECT_EQ(only_code({"--mode=abc"}), "E10001");
  EXPECT_EQ(only_code({"--framework=7"}), "E10007");
  EXPECT_EQ(only_code({"--log=loud"}), "E10010");
  EXPECT_EQ(only_code({"--save_original_model=1"}), "E10005");
  EXPECT_EQ(only_code({"--enable_small_channel=true"}), "E10006");
  EXPECT_EQ(only_code({"--model"}), "E10004");
  EXPECT_EQ(only_code({"--cluster_config=c.json"}), "E10055");
  EXPECT_EQ(problems_of({"--mode=abc"}).problems()[0].message.substr(0, 60),
            "Value [abc] for parameter [--mode] is invalid. Reason: it mu");
}

TEST(Options, AllProblemsAreReportedTogether) {
  EXPECT_EQ(problems_of({"--mode=9", "--log=x", "--nonsense=1"}).problems().size(), 3u);
}

TEST(Options, AnOptionWithoutEffectSaysSoOnce) {
  ParsedOptions options = parse_options({"--soc_version=Ascend310", "--soc_version=Ascend310P3"}, kAtc);
  ASSERT_EQ(options.notices.size(), 1u);
  EXPECT_EQ(options.notices[0].substr(0, 33), "--soc_version has no effect: ever");
}

TEST(Options, HelpListsEveryOptionWithin100Columns) {
  std::string help = options_help(kAtc, "atc");
  for (const OptionDef& def : option_table())
    EXPECT_EQ(help.find(fmt::format("--{} ", def.name)) != std::string::npos, (def.doors & kAtc) != 0) << def.name;
  for (const std::string& line : split_list(help, '\n')) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Profiles, EmptyBatchSizesAreLeftOutAndTold) {
  for (const char* value : {"1,2,8,", "1,,2,8", ",1,2,8"}) {
    std::vector<std::string> repairs;
    EXPECT_EQ(parse_profiles(ProfileKind::batch, value, repairs), (std::vector<Profile>{{1}, {2}, {8}})) << value;
    ASSERT_EQ(repairs.size(), 1u) << value;
    EXPECT_NE(repairs[0].find(fmt::format("'{}'", value)), std::string::npos) << repairs[0];
  }
  std::vector<std::string> repairs;
  parse_profiles(ProfileKind::batch, "1, 2,8", repairs);
  EXPECT_TRUE(repairs.empty());
}

TEST(InputShape, NamesMayContainColonsAndValuesBlanksBracketsAndRanges) {
  std::vector<std::string> repairs;
  auto shapes = parse_input_shapes("a:0:1,224, 224,3; b:[1,3,100~1080,-1] ;s:", repairs);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].name, "a:0");
  EXPECT_EQ(shapes[0].dims, (std::vector<int64_t>{1, 224, 224, 3}));
  EXPECT_EQ(shapes[1].dims, (std::vector<int64_t>{1, 3, -1, -1}));
  EXPECT_EQ(shapes[1].ranges[2], (SizeRange{100, 1080}));
  EXPECT_EQ(shapes[1].ranges[3], SizeRange{});
  EXPECT_TRUE(shapes[2].dims.empty());
  EXPECT_EQ(repairs.size(), 1u);
}

TEST(InputShape, FaultsHaveThePlatformsCodes) {
  const std::pair<const char*, const char*> cases[] = {{"1,2", "E10002"},
                                                       {"a:1.5", "E10002"},
                                                       {"", "E10002"},
                                                       {"a:0", "E10011"},
                                                       {"a:-2", "E10011"},
                                                       {"a:1,,2", "E10014"},
                                                       {"a:x", "E10014"},
                                                       {"a:1x", "E10014"},
                                                       {"a:4294967296", "E10013"},
                                                       {"a:99999999999999999999", "E10013"}};
  for (auto [value, code] : cases) {
    std::vector<std::string> repairs;
    try {
      parse_input_shapes(value, repairs);
      ADD_FAILURE() << value;
    } catch (const ReportError& error) {
      EXPECT_EQ(error.report().problems()[0].code, code) << value;
    }
  }
}

}  // namespace
}  // namespace cairn
