// A corpus of command lines: every option in every form that people type, right and wrong. What becomes of a line is known
// from how it is made.
#include <gtest/gtest.h>

#include "support/nearest.h"
#include "support/option_words.h"
#include "support/shape_options.h"

namespace cairn {
namespace {

using Words = std::vector<std::string>;

std::string shown(const Words& words) { return fmt::format("{}", fmt::join(words, "|")); }

std::string good_value(const OptionDef& def) {
  const std::string_view name = def.name;
  if (name == "soc_version") return "Ascend310P3";
  if (name == "input_shape") return "a:1,2";
  if (def.form) return def.form->example;
  switch (def.type) {
    case OptionType::choice: return std::string(def.values.back());
    case OptionType::true_false: return "true";
    case OptionType::zero_one: return "1";
    case OptionType::integer: return "3";
    case OptionType::path: return "folder/file.x";
    default: return "first";
  }
}

class Corpus : public testing::Test {
 protected:
  /// The line is taken with this value; `mended` tells whether a sentence must say so.
  void taken(const Words& words, const OptionDef& def, const std::string& value, bool mended) {
    ++lines;
    try {
      const ParsedOptions options = parse_options(words, door_of(def));
      EXPECT_EQ(options.get(def.name), value) << shown(words);
      EXPECT_EQ(!options.repairs.empty(), mended) << shown(words);
      EXPECT_EQ(!options.notices.empty(), def.status == OptionStatus::noted) << shown(words);
    } catch (const ReportError& error) {
      ADD_FAILURE() << shown(words) << ": " << error.what();
    }
  }

  void refused(const Words& words, const OptionDef& def, const std::string& code, const std::string& hint) {
    ++lines;
    std::string found;
    try {
      parse_options(words, door_of(def));
    } catch (const ReportError& error) {
      for (const Problem& problem : error.report().problems()) {
        const std::string said = fmt::format("{}{} ({})", problem.fix, problem.message, problem.fix);
        if (problem.code == code && said.find(hint) != std::string::npos) return;
        found += fmt::format("{} {} ({}); ", problem.code, problem.message, problem.fix);
      }
    }
    ADD_FAILURE() << shown(words) << ": expected " << code << " with '" << hint << "', found " << found;
  }

  static Door door_of(const OptionDef& def) { return (def.doors & kAtc) != 0 ? kAtc : kOmg; }

  /// Every option that takes a value and is not refused.
  template <class Use>
  void each(Use use) {
    for (const OptionDef& def : option_table())
      if (def.type != OptionType::flag && def.status != OptionStatus::refused)
        use(def, std::string(def.name), good_value(def));
  }

  size_t lines = 0;
};

TEST_F(Corpus, EveryOptionInEveryFormThatIsMended) {
  each([&](const OptionDef& def, const std::string& name, const std::string& value) {
    const std::string whole = fmt::format("--{}={}", name, value);
    taken({whole}, def, value, false);
    taken({"--" + name, value}, def, value, false);
    taken({fmt::format("-{}={}", name, value)}, def, value, false);
    taken({"--" + name, "=" + value}, def, value, false);
    std::string dashed = name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    taken({fmt::format("--{}={}", dashed, value)}, def, value, dashed != name);
    for (const char* dashes :
         {"\u2013", "\u2014", "\u2013\u2013", "-\u2013", "\u2014\u2014", "\u2212\u2212", "\uff0d\uff0d", "---"})
      taken({fmt::format("{}{}={}", dashes, name, value)}, def, value, true);
    for (const auto& [open, close] : {std::pair("\u201c", "\u201d"),
                                      {"\u201d", "\u201d"},
                                      {"\u2018", "\u2019"},
                                      {"\u300c", "\u300d"},
                                      {"\"", "\""},
                                      {"'", "'"},
                                      {"", "\u201d"},
                                      {"", "\""}})
      taken({fmt::format("--{}={}{}{}", name, open, value, close)}, def, value, true);
    taken({"--" + name, "=", value}, def, value, true);
    taken({fmt::format("--{}=", name), value}, def, value, true);
    taken({fmt::format("--{}\uff1d{}", name, value)}, def, value, true);
    taken({"--", whole.substr(2)}, def, value, true);
    taken({"\u2014", whole.substr(2)}, def, value, true);
    taken({whole + "\r"}, def, value, true);
    taken({whole, " "}, def, value, true);
    taken({whole, "\r"}, def, value, true);
    taken({whole + "\u200b"}, def, value, true);
    taken({"\ufeff" + whole}, def, value, true);
    taken({whole, whole}, def, value, true);
    if (name != "mode") taken({"--mode=0\u00a0" + whole}, def, value, true);
    if (name != "mode") taken({"--mode=0\u3000" + whole}, def, value, true);
  });
  EXPECT_GE(lines, 2000u);
}

TEST_F(Corpus, EveryOptionWithEveryMistakeHasTheHintThatFits) {
  each([&](const OptionDef& def, const std::string& name, const std::string& value) {
    const std::string whole = fmt::format("--{}={}", name, value), other = name == "mode" ? "--log=info" : "--mode=0";
    refused({whole + other}, def, "E10053", "write a blank in front of " + other);
    refused({fmt::format("--{}=\"{}\"{}", name, value, other)}, def, "E10053", "write a blank in front of " + other);
    refused({fmt::format("--{}={} {}", name, value, other)}, def, "E10053", "write a blank in front of " + other);
    refused({fmt::format("--{}={}", name, other)}, def, "E10053", "has no value of its own");
    refused({"--" + name}, def, "E10004", "has no value");
    refused({"--" + name, other}, def, "E10004", "has no value");
    refused({fmt::format("{}={}", name, value)}, def, "E10053", "two dashes are missing in front: " + whole);
    refused({fmt::format("--{}:{}", name, value)}, def, "E10053", fmt::format("write '=' in place of ':': {}", whole));
    refused({fmt::format("--{}=\u201c{}", name, value), other}, def, "E10053", "use straight quotes");
    refused({whole, " #note", "on", "it"}, def, "E10053", "a comment cannot stand behind the backslash");
    refused({whole, "^"}, def, "E10053", "'^' continues lines in other shells");
    refused({whole, "`"}, def, "E10053", "'`' continues lines in other shells");
    refused({whole, "\\"}, def, "E10053", "a backslash continues a line only as its very last character");
    refused({whole, "2>&1"}, def, "E10053", "'2>&1' is the shell's");
    refused({whole, "&&", "echo"}, def, "E10053", "'&&' is the shell's");
    refused({whole, other, "word"}, def, "E10053", "needs quotes around the whole value");
    refused({fmt::format("--{}=${{NAME}}", name)}, def, "E10001", "single quotes keep variables as they are");
    std::string upper = name;
    upper[0] = static_cast<char>(std::toupper(upper[0]));
    refused({fmt::format("--{}={}", upper, value)}, def, "E10053", "options are in small letters: --" + name);
    if (const size_t under = name.find('_'); under != std::string::npos) {
      const std::string left = name.substr(0, under), right = name.substr(under + 1);
      const bool both = find_option(left, door_of(def)) != nullptr;
      refused({"--" + left, fmt::format("{}={}", right, value)}, def, "E10053",
              both ? "there is a blank in the name: --" + name : fmt::format("write --{} in one word", name));
    }
    std::string wrong = name;
    wrong.erase(name.size() / 2, 1);
    if (name.size() >= 6 && !find_option(wrong, door_of(def)))
      refused({fmt::format("--{}={}", wrong, value)}, def, "E10053", "nearest: --");
  });
  EXPECT_GE(lines, 1000u);
}

TEST_F(Corpus, AValueThatIsNoneNamesTheOneThatWasMeant) {
  each([&](const OptionDef& def, const std::string& name, const std::string& value) {
    auto fix = [&](const std::string& meant) { return fmt::format("--{}={}", name, meant); };
    if (def.type == OptionType::true_false) {
      for (const char* yes : {"True", "TRUE", "1", "yes", "on"}) refused({fix(yes)}, def, "E10005", fix("true"));
      for (const char* no : {"False", "0", "no", "off"}) refused({fix(no)}, def, "E10005", fix("false"));
      refused({fix("perhaps")}, def, "E10005", "it must be true or false");
    } else if (def.type == OptionType::zero_one) {
      for (const char* yes : {"true", "True", "on", "yes"}) refused({fix(yes)}, def, "E10006", fix("1"));
      for (const char* no : {"false", "False", "off"}) refused({fix(no)}, def, "E10006", fix("0"));
      refused({fix("2")}, def, "E10006", "it must be 1 or 0");
    } else if (def.type == OptionType::integer) {
      for (const char* text : {"x", "1.5", "0x10", "1,2"}) refused({fix(text)}, def, "E10001", "it must be a number");
      if (def.form) refused({fix("-7")}, def, "E10001", fmt::format("it must be {}", def.form->words));
    } else if (def.form) {
      for (const char* text : {"%&", "-1;2"})
        refused({fix(text)}, def, "E10001", fmt::format("it must be {}", def.form->words));
    } else if (def.type == OptionType::choice) {
      const std::string code = name == "log" ? "E10010" : name == "framework" ? "E10007" : "E10001";
      refused({fix("nonsense-value")}, def, code, name == "log" ? "only support" : "it must be");
      refused({fix(value + ",")}, def, code, fix(value));
      std::string other = value;
      for (char& c : other) c = static_cast<char>(std::isupper(c) != 0 ? std::tolower(c) : std::toupper(c));
      if (other != value) refused({fix(other)}, def, code, fix(value));
    }
  });
  for (const auto& [word, number] :
       {std::pair("tensorflow", "3"), {"TensorFlow", "3"}, {"tf", "3"}, {"onnx", "5"}, {"ONNX", "5"}, {"caffe", "0"}})
    refused({fmt::format("--framework={}", word)}, *find_option("framework", kAtc), "E10007",
            fmt::format("--framework={}", number));
  const OptionDef& chip = *find_option("soc_version", kAtc);
  for (const char* name : {"Ascend310", "Ascend310P3", "Ascend310B4", "Ascend710", "Ascend910A", "Ascend910B2C",
                           "Ascend910_9391", "Ascend910ProB", "kirin9030", "KirinX90", "OPTG", "Hi3519DV500"})
    taken({fmt::format("--soc_version={}", name)}, chip, name, false);
  for (const char* name :
       {"Ascend", "310", "gpu", "A100", "Ascend3100", "Ascend999", "x86_64", "Ascend 310", "Ascend310/910"})
    refused({fmt::format("--soc_version={}", name)}, chip, "E10001", "it must be the name of a chip");
  for (const char* name : {"Ascend3100", "ascend3100", "ascend999"})  // no name is near
    EXPECT_TRUE(chip_fault(name).ends_with("or Ascend910B1")) << chip_fault(name);
  refused({"--log=warn"}, *find_option("log", kAtc), "E10010", "--log=warning");
  for (const char* line : {"--is_input_adjust_hw_layout=false,false", "--is_output_adjust_hw_layout=false",
                           "--distributed_cluster_build=0", "--enable_graph_parallel=0"})
    EXPECT_NO_THROW(parse_options({line}, kAtc)) << line;  // asks for what is done anyway
  refused({"--is_input_adjust_hw_layout=false,true"}, *find_option("is_input_adjust_hw_layout", kAtc), "E10055", "");
  refused({"m.pb"}, *find_option("model", kAtc), "E10053", "every value stands behind an option: --model=m.pb");
  taken({"--model==m.pb"}, *find_option("model", kAtc), "m.pb", true);
  refused({"--soc_version=ascend310p3"}, chip, "E10001", "did you mean Ascend310P3?");
  EXPECT_GE(lines, 150u);
}

TEST_F(Corpus, AValueOfTheOptionsOtherVersionNamesThatOption) {
  refused({"--precision_mode=fp16"}, *find_option("precision_mode", kAtc), "E10001", "--precision_mode_v2=fp16");
  refused({"--precision_mode_v2=force_fp16"}, *find_option("precision_mode_v2", kAtc), "E10001",
          "--precision_mode=force_fp16");
}

TEST_F(Corpus, AValueFarFromAllHasNoHint) {
  refused({"--framework=3.0"}, *find_option("framework", kAtc), "E10007", "5(Onnx) ()");
  refused({"--input_format=NC1HWC0"}, *find_option("input_format", kAtc), "E10001", "NDHWC ()");
}

TEST_F(Corpus, OptionsThatAreRefusedSayWhyInEveryForm) {
  for (const OptionDef& def : option_table()) {
    if (def.status != OptionStatus::refused) continue;
    const std::string value = good_value(def), name = def.name;
    for (const Words& words :
         {Words{fmt::format("--{}={}", name, value)}, {"--" + name, value}, {fmt::format("\u2014{}={}", name, value)}})
      refused(words, def, "E10055", def.reason);
  }
}

TEST(NearestOptions, SwappedLettersAndTheCaseOfLettersAreSeen) {
  for (const auto& [wrong, right] : {std::pair("modle", "model"),
                                     {"ouptut", "output"},
                                     {"framwork", "framework"},
                                     {"input_shap", "input_shape"},
                                     {"inptu_shape", "input_shape"},
                                     {"outnodes", "out_nodes"},
                                     {"out-node-s", "out_nodes"},
                                     {"soc_versoin", "soc_version"},
                                     {"percision_mode", "precision_mode"},
                                     {"ouput_type", "output_type"},
                                     {"insert_op_config", "insert_op_conf"}})
    EXPECT_EQ(nearest_option(wrong, kAtc), std::string_view(right)) << wrong;
}

TEST(NearestOptions, AreThoseThatBeginWithTheWordOrEndInIt) {
  for (const auto& [word, name] : {std::pair("soc", "soc_version"),
                                   {"out", "output"},
                                   {"batch_size", "dynamic_batch_size"},
                                   {"mixlist", "modify_mixlist"}})
    EXPECT_EQ(nearest_option(word, kAtc), std::string_view(name)) << word;
  EXPECT_EQ(nearest_option("rate", kAtc), std::nullopt);
}

TEST(UnknownOptions, WordsOfOtherConvertersAndShortNamesHaveTheirOwnHints) {
  for (const auto& [word, hint] : {std::pair("aipp_conf", "here it is --insert_op_conf=FILE"),
                                   {"fp16", "here it is --precision_mode=force_fp16"},
                                   {"verbose", "here it is --log=info"},
                                   {"m", "options have no short names; --help lists all"}})
    EXPECT_EQ(hint_for_unknown(word, "", kAtc), hint);
  EXPECT_EQ(hint_for_unknown("fp16", "", kOmg), "--help lists all options");  // which has no such option
}

TEST(NearestNames, ThoseWithoutACommonLetterAreNotMeant) {
  const std::string_view names[] = {"w", "b1"};
  EXPECT_EQ(did_you_mean("y", names), "");
  EXPECT_EQ(did_you_mean("W", names), "; did you mean w?");
  EXPECT_EQ(did_you_mean("b2", names), "; did you mean b1?");
}

TEST(Paths, WhatHangsBehindAPathIsLeftOut) {
  const ParsedOptions options = parse_options({"--model=m.pb,", "--output=out;"}, kAtc);
  EXPECT_EQ(options.get("model") + options.get("output"), "m.pbout");
  EXPECT_EQ(options.repairs.size(), 2u);
}

TEST(RepeatedOptions, TheSentenceTellsWhichCounts) {
  const ParsedOptions options = parse_options({"--output=a", "--out_nodes=y", "--output=b", "--output_nodes=z"}, kAtc);
  EXPECT_EQ(options.repairs,
            (Words{"--output is given again: b counts, a does not", "--output_nodes is read as --out_nodes",
                   "--out_nodes is given again: z counts, y does not"}));
}

TEST(EmptyValues, AreToldAndLeftOut) {
  const ParsedOptions options = parse_options({"--precision_mode=", "--out_nodes=\"\""}, kAtc);
  EXPECT_FALSE(options.has("precision_mode") || options.has("out_nodes"));
  EXPECT_EQ(options.repairs.size(), 3u);
}

TEST(ShapeRanges, MistakesHaveTheHintThatFits) {
  for (const auto& [value, hint] : {std::pair("a:[1-8,4]", "write a range with '~': 1~8"),
                                    {"a:[1..8,4]", "write a range with '~': 1~8"},
                                    {"a:[~8,4]", "write both ends, as in 1~8"},
                                    {"a:[1~2~3]", "a range is two sizes with '~' between"},
                                    {"a:[None,4]", "write -1 for a size that is open"},
                                    {"a:[4~1]", "a range is two sizes"}}) {
    try {
      parse_shape_ranges(value);
      ADD_FAILURE() << value;
    } catch (const ReportError& error) {
      EXPECT_TRUE(error.report().problems()[0].fix.starts_with(hint)) << value << error.report().problems()[0].fix;
    }
  }
}

TEST(ShapeValues, MistakesHaveTheHintThatFits) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a:1-8,4", "write a range with '~': 1~8"},
      {"a:1..8,4", "write a range with '~': 1~8"},
      {"a:1~2~3,4", "a range is two sizes with '~' between"},
      {"a:1~,4", "write both ends, as in 1~8, or -1 for any size"},
      {"a:~8,4", "write both ends, as in 1~8, or -1 for any size"},
      {"a:1,2 b:3,4", "--input_shape=\"a:1,2;b:3,4\""},
      {"a:1,2,b:3", "--input_shape=\"a:1,2;b:3\""},
      {"a:1,2b:3", "--input_shape=\"a:1,2;b:3\""},
      {"a:[1,2] b:[3]", "b:[3]"},
      {"a=1,2", "\"a:1,2\""},
      {"a:1;224;3", "separate the sizes by ','"},
      {"a:1x224x224", "separate the sizes by ','"},
      {"a:1 224 224", "separate the sizes by ','"},
      {"a:1*3", "separate the sizes by ','"},
      {"a:None,3", "write -1 for a size that is open"},
      {"a:?,3", "write -1 for a size that is open"},
      {"a:batch,3", "write -1 for a size that is open"},
      {"a:unk__12,3", "write -1 for a size that is open"},
      {"a:1,2,", "a comma too many"},
      {"a:1,,2", "a comma too many"},
      {"1,2", "separate the sizes by ',' and inputs by ';'"},
  };
  for (const auto& [value, hint] : kCases) {
    std::vector<std::string> repairs;
    try {
      parse_input_shapes(value, repairs);
      ADD_FAILURE() << value;
    } catch (const ReportError& error) {
      EXPECT_NE(error.report().problems()[0].fix.find(hint), std::string::npos)
          << value << ": " << error.report().problems()[0].fix;
    }
  }
  std::vector<std::string> repairs;
  EXPECT_EQ(parse_input_shapes("a:0:1,2;b:(3,4);c:[5]", repairs).size(), 3u);
}

}  // namespace
}  // namespace cairn
