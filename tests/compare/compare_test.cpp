// Trees of dumps against each other: pairing, layouts, the result's text, verdicts, and the commands.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <nlohmann/json.hpp>

#include "compare/comparison.h"
#include "compare/formats/layout.h"
#include "compare/report.h"
#include "folders.h"

namespace cairn::compare {
namespace {

Comparison compared(const TestFolder& folder, const OpMapping& mapping = {}, const CompareOptions& options = {}) {
  return compare_trees(read_tree(folder.path("mine")), read_tree(folder.path("golden")), mapping, {}, options,
                       serial_executor());
}

/// "mine -> golden verdict reason" by row.
std::string pairs(const Comparison& comparison) {
  std::string text;
  for (const Row& row : comparison.rows)
    text += fmt::format("{} -> {} {}{}\n", row.has_tensor ? row.tensor_name() : row.mine, row.golden,
                        to_string(row.verdict), row.reason.empty() ? "" : " (" + row.reason + ")");
  return text;
}

TEST(Pairing, IsByNameWhateverStandsBetweenTheParts) {
  TestFolder folder;
  folder.array("mine/Conv2D.scope_conv1.1.0.100.input.0.npy", ramp(6));
  folder.array("mine/Conv2D.scope_conv1.1.0.100.output.0.npy", ramp(8));
  folder.array("mine/Relu.scope_relu1.2.0.200.output.0.npy", ramp(8, 2));
  folder.array("golden/scope_conv1.0.555.npy", ramp(8));
  folder.array("golden/scope_other.0.556.npy", ramp(8));
  EXPECT_EQ(pairs(compared(folder)),
            "scope_conv1:input:0 -> * none (the input is not in GroundTruth)\n"
            "scope_conv1:output:0 -> scope_conv1 pass\n"
            "scope_relu1:output:0 -> * none (the operator is not in GroundTruth)\n"
            "* -> scope_other none (the operator is not in NPUDump)\n");
}

TEST(Pairing, FollowsTheModelsJsonThroughFusedOperators) {
  TestFolder folder;
  folder.array("mine/Conv2D.conv1relu1.1.0.100.output.0.npy", ramp(8));
  folder.array("mine/MatMul.fc.2.0.200.input.0.npy", ramp(8));
  folder.array("mine/MatMul.fc.2.0.200.output.0.npy", ramp(4));
  folder.array("golden/conv1.0.1.npy", ramp(8, -9));
  folder.array("golden/relu1.1.2.npy", ramp(8));
  folder.array("golden/fc.0.3.npy", ramp(4));
  folder.text("model.json", R"({"graph": [{"op": [
    {"name": "conv1relu1", "type": "Conv2D",
     "attr": [{"key": "_datadump_original_op_names", "value": {"list": {"s": ["conv1", "relu1"]}}}],
     "output_desc": [{"attr": [{"key": "_datadump_origin_name", "value": {"s": "relu1"}},
                               {"key": "_datadump_origin_output_index", "value": {"i": "1"}}]}]},
    {"name": "fc", "type": "MatMul", "input": ["conv1relu1:0", "weights:0", "start:-1"]}]}]})");
  EXPECT_EQ(pairs(compared(folder, read_mapping(folder.path("model.json")))),
            "conv1relu1:output:0 -> conv1,relu1 pass\n"
            "fc:input:0 -> relu1 pass\n"
            "fc:output:0 -> fc pass\n");
}

TEST(Pairing, TakesMapsOfNamesAsJsonAndAsLines) {
  TestFolder folder;
  folder.array("mine/Add.a.1.0.1.output.0.npy", ramp(8));
  folder.array("golden/x_y.0.1.npy", ramp(8));
  folder.text("map.json", R"({"a": ["x/w", "x/y"]})");
  folder.text("map.csv", "# mine,golden\na,x/w,x/y\n");
  for (const char* map : {"map.json", "map.csv"})
    EXPECT_EQ(pairs(compared(folder, read_mapping(folder.path(map)))), "a:output:0 -> x/w,x/y pass\n");
}

TEST(Pairing, PairsStepsByNumberAndRunsByOrder) {
  TestFolder folder;
  for (int step : {0, 2}) {
    folder.array(fmt::format("mine/net/{}/Add.a.1.0.10.output.0.npy", step), ramp(8, 1.0f + step));
    folder.array(fmt::format("mine/net/{}/Add.a.1.0.20.output.0.npy", step), ramp(8, 5.0f + step));
    folder.array(fmt::format("golden/{}/a.0.7.npy", step), ramp(8, 1.0f + step));
    folder.array(fmt::format("golden/{}/a.0.8.npy", step), ramp(8, 5.0f + step));
  }
  folder.array("golden/1/a.0.7.npy", ramp(8));
  Comparison comparison = compared(folder);
  ASSERT_EQ(comparison.rows.size(), 4u);
  for (const Row& row : comparison.rows) EXPECT_EQ(row.metrics.text(Metric::max_absolute), "0.000000");
  EXPECT_EQ(comparison.rows[3].step, 2);
  EXPECT_EQ(to_csv(comparison, {}).substr(0, 17), "Index,Step,OpType");
}

TEST(Pairing, ReadsOurManifestWithSourcesAndScriptLines) {
  TestFolder folder;
  folder.array("mine/conv2d.c1.0.0.5.output.0.npy", ramp(8));
  folder.text("mine/manifest.jsonl",
              "{\"file\": \"conv2d.c1.0.0.5.output.0.npy\", \"op\": \"c1\", \"type\": \"conv2d\", \"kind\": "
              "\"output\", \"index\": 0, "
              "\"sources\": [\"tf:m/Conv2D\", \"tf:m/BiasAdd\"], \"location\": \"train.py:41\"}\n{\"file\": \"cut o");
  folder.array("golden/m_BiasAdd.0.1.npy", ramp(8));
  Comparison comparison = compared(folder);
  EXPECT_EQ(pairs(comparison), "c1:output:0 -> m_BiasAdd pass\n");
  EXPECT_EQ(comparison.rows[0].location, "train.py:41");
}

TEST(Pairing, FindsNamesThatWereTooLong) {
  TestFolder folder;
  folder.array("mine/123456.npy", ramp(8));
  folder.text("mine/mapping.csv", "123456.npy,Add.long_name.1.0.5.output.0.npy\n");
  folder.array("golden/long_name.0.1.npy", ramp(8));
  EXPECT_EQ(pairs(compared(folder)), "long_name:output:0 -> long_name pass\n");
}

TEST(Layouts, OfDevicesBecomeTheReferences) {
  TestFolder folder;
  Tensor plain = Tensor::of(kF32, {2, 3, 4, 5}, ramp(120));
  Tensor last = from_blocks(plain, *find_layout("NCHW"), *find_layout("NHWC"), {2, 4, 5, 3});
  Tensor blocked = to_blocks(plain, *find_layout("NCHW"), *find_layout("NC1HWC0"));
  DumpFile file;
  file.op_name = "scope/conv1";
  file.outputs = {to_dump(blocked)};
  file.outputs[0].format = 3, file.outputs[0].original_dims = {2, 3, 4, 5};
  write_dump(folder.make("mine/Conv2D.scope_conv1.1.0.100"), file);
  for (const Tensor& golden : {plain, last}) {
    write_npy(folder.make("golden/scope_conv1.0.1.npy"), golden);
    Comparison comparison = compared(folder);
    EXPECT_EQ(pairs(comparison), "scope/conv1:output:0 -> scope_conv1 pass\n");
    EXPECT_EQ(comparison.rows[0].metrics.text(Metric::max_absolute), "0.000000");
  }
  folder.array("golden/scope_conv1.0.1.npy", ramp(6), {2, 3});
  EXPECT_EQ(pairs(compared(folder)),
            "scope/conv1:output:0 -> scope_conv1 fail (shapes differ: NC1HWC0 [2,1,4,5,16] against [2,3])\n");
}

TEST(Verdicts, SeeWhatTheMetricsAreBlindTo) {
  TestFolder folder;
  std::vector<float> y = ramp(500, -3, 0.01f), twice = y, shifted = y, spike = y, nan = y;
  for (float& v : twice) v *= 2;
  for (float& v : shifted) v += 2;
  spike[77] += 20, nan[3] = std::nanf("");
  const std::vector<std::pair<const char*, std::vector<float>>> cases = {
      {"twice", twice}, {"shifted", shifted}, {"spike", spike}, {"nan", nan}, {"zero", std::vector<float>(500)},
      {"same", y}};
  for (const auto& [name, x] : cases) {
    folder.array(fmt::format("mine/Add.{}.1.0.1.output.0.npy", name), x);
    folder.array(fmt::format("golden/{}.0.1.npy", name), y);
  }
  std::string text;
  for (const Row& row : compared(folder).rows)
    text += fmt::format("{} {}: {}\n", row.mine, to_string(row.verdict), row.finding);
  EXPECT_EQ(text,
            "nan fail: 1 values are NaN or infinite on one side only, first at 3\n"
            "same pass: \n"
            "shifted fail: off by a constant: x ~ y +2\n"
            "spike fail: few elements differ: worst at 77 (17.77 against -2.23)\n"
            "twice fail: off by a factor: x ~ 2 y\n"
            "zero fail: all values are zero on this side only\n");
}

TEST(Verdicts, NameTheFirstOperatorWhoseInputsAreGood) {
  TestFolder folder;
  auto add = [&](const char* op, int time, float in_error, float out_error) {
    for (bool input : {true, false}) {
      std::vector<float> y = ramp(50), x = y;
      x[7] += input ? in_error : out_error;
      std::string tail = fmt::format(".{}.0.{}.{}.0.npy", time, time, input ? "input" : "output");
      folder.array(fmt::format("mine/Op.{}", op) + tail, x);
      folder.array(fmt::format("golden/Op.{}", op) + tail, y);
    }
  };
  add("good", 1, 0, 0), add("faulty", 2, 0, 400), add("follower", 3, 400, 400);
  EXPECT_EQ(compared(folder).first_suspect()->tensor_name(), "faulty:output:0");
  EXPECT_EQ(advise(compared(folder)).text.substr(0, 32), "problem: faulty:output:0 is the ");
}

TEST(Verdicts, AdviceNamesWhatCosineDoesNotSee) {
  TestFolder folder;
  std::vector<float> y = ramp(50), x = y;
  for (float& value : x) value *= 1.5f;
  folder.array("mine/twice.0.1.npy", x);
  folder.array("golden/twice.0.1.npy", y);
  EXPECT_EQ(
      advise(compared(folder)).text,
      "all compared tensors have a cosine similarity of at least 0.99; twice:output:0 differs all the same: off by "
      "a factor: x ~ 1.5 y");
}

TEST(Result, HasThePlatformsColumns) {
  TestFolder folder;
  folder.array("mine/Add.a.1.0.1.output.0.npy", {1, 2, 3, 5}, {2, 2});
  folder.array("golden/a.0.1.npy", {1, 2, 3, 4}, {2, 2});
  folder.array("golden/b.0.1.npy", {1});
  EXPECT_EQ(
      to_csv(compared(folder), {}),
      "Index,OpType,NPUDump,DataType,Address,GroundTruth,DataType,Address,TensorIndex,Shape,CosineSimilarity,"
      "MaxAbsoluteError,AccumulatedRelativeError,RelativeEuclideanDistance,KullbackLeiblerDivergence,StandardDeviation,"
      "MeanAbsoluteError,RootMeanSquareError,MaxRelativeError,MeanRelativeError,CompareFailReason\n"
      "0,Add,a,float32,NaN,a,float32,NaN,a:output:0,\"[2,2]\",0.993999,1.000000,0.250000,0.182574,0.010239,"
      "\"(2.750;1.479),(2.500;1.118)\",0.250000,0.500000,0.250000,0.062500,\n"
      "1,NaN,*,NaN,NaN,b,NaN,NaN,*,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,the operator is not in NPUDump\n");
  CsvOptions few;
  few.columns = 1, few.overflow = few.sequence = true;
  EXPECT_EQ(to_csv(compared(folder), few).substr(0, 150),
            "Index,OpSequence,OpType,NPUDump,DataType,Address,GroundTruth,DataType,Address,TensorIndex,Shape,OverFlow,"
            "CosineSimilarity,CompareFailReason\n0,1,Add,a,");
  few.only_mapping = true, few.sequence = false;
  EXPECT_EQ(to_csv(compared(folder), few).substr(0, 70),
            std::string("Index,OpType,NPUDump,GroundTruth,TensorIndex,NPUDumpPath,GroundTruthPath").substr(0, 70));
}

TEST(Result, KeepsDataInsideThePagesScript) {
  TestFolder folder;
  write_npz(folder.make("mine/t.npz"), {{"</script><b>", Tensor::of(kF32, {4}, ramp(4))}});
  write_npz(folder.make("golden/t.npz"), {{"</script><b>", Tensor::of(kF32, {4}, ramp(4))}});
  std::string page = to_html(compared(folder), {});
  EXPECT_NE(page.find("\\u003c/script>"), std::string::npos);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
}

/// Runs msaccucmp; its exit status and what it printed.
std::pair<int, std::string> command(const std::string& arguments) {
  std::FILE* pipe = popen((std::string(CAIRN_MSACCUCMP) + " " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  return {WEXITSTATUS(pclose(pipe)), text};
}

class Commands : public testing::Test {
 protected:
  Commands() {
    folder.array("mine/Add.a.1.0.1.output.0.npy", {1, 2, 3, 4, 90});
    folder.array("mine/Mul.b.2.0.2.output.0.npy", ramp(5));
    folder.array("golden/a.0.1.npy", {1, 2, 3, 4, 5});
    folder.array("golden/b.0.1.npy", ramp(5));
  }
  std::string both() const { return fmt::format("-m {} -g {}", folder.path("mine"), folder.path("golden")); }
  TestFolder folder;
};

TEST_F(Commands, ThePlatformsFormWritesItsFiles) {
  auto [status, text] = command(
      fmt::format("compare {} -out {} -alg 0,MaxAbsoluteError -advisor -op a -o 0 -n 2", both(), folder.path("out")));
  EXPECT_EQ(status, 0) << text;
  std::string csv;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("out")))
    if (entry.path().filename().string().starts_with("result_")) csv = read_file(entry.path().string());
  EXPECT_NE(csv.find("Shape,CosineSimilarity,MaxAbsoluteError,CompareFailReason\n0,Add,a,"), std::string::npos) << csv;
  EXPECT_EQ(csv.find("Mul,b"), std::string::npos);
  EXPECT_EQ(
      read_file(folder.path("out/a_output_0_topn.csv")),
      "Index,Position,NPUDump,GroundTruth,AbsoluteError,RelativeError\n4,\"[4]\",90,5,85,17\n0,\"[0]\",1,1,0,0\n");
  EXPECT_EQ(read_file(folder.path("out/advisor_summary.txt")).substr(0, 34), "Detection Type: Global Consistency");
}

TEST_F(Commands, RangesAndSelectionsChooseOperators) {
  for (auto [choice, kept] : {std::pair("-r 2,-1,1", "1,"), {"-s 2", "1,"}, {"-r 1,2,1", "2,"}}) {
    std::filesystem::remove_all(folder.path("out"));
    auto [status, text] = command(fmt::format("compare {} -out {} {}", both(), folder.path("out"), choice));
    EXPECT_EQ(status, 0);
    EXPECT_EQ(text.substr(0, 1), std::string(kept).substr(0, 1)) << choice << text;
  }
  for (const char* nothing : {"-r 3", "-s 7,9"}) {
    auto [status, text] = command(fmt::format("compare {} -out {} {}", both(), folder.path("out"), nothing));
    EXPECT_EQ(status, 1);
    EXPECT_NE(text.find("holds no operator at the places that were chosen; it has 2"), std::string::npos) << text;
  }
}

TEST_F(Commands, BadArgumentsAreOneSentence) {
  for (const char* bad :
       {"compare -m x", "compare --nonsense", "compare -m", "unknown -m x", "compare -m /none -g /none", "convert",
        "overflow -d /none", "file_compare -m a.npy -g b.npy", "compare -m . -g . -r 0,1", "compare -m . -g . -alg 12",
        "compare -m . -g . -q rules.json", "compare -m a -m b"}) {
    auto [status, text] = command(bad);
    EXPECT_EQ(status, 1) << bad;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << bad << text;
    EXPECT_NE(text.find("error:"), std::string::npos) << text;
  }
}

TEST_F(Commands, ConvertWritesArrays) {
  Tensor plain = Tensor::of(kF32, {1, 3, 2, 2}, ramp(12));
  Tensor stored = to_blocks(plain, *find_layout("NCHW"), *find_layout("NC1HWC0"));
  DumpFile file;
  file.outputs = {to_dump(stored)};
  file.outputs[0].format = 3, file.outputs[0].original_dims = {1, 3, 2, 2};
  write_dump(folder.make("d/Conv2D.c.1.1.5"), file);
  EXPECT_EQ(command(fmt::format("convert -d {} -out {} -f NCHW", folder.path("d"), folder.path("c"))).first, 0);
  EXPECT_TRUE(read_npy(folder.path("c/Conv2D.c.1.1.5.output.0.npy")).same_bits(plain));
  EXPECT_EQ(command(fmt::format("convert -d {} -out {} -t bin", folder.path("d"), folder.path("c"))).first, 0);
  EXPECT_EQ(std::filesystem::file_size(folder.path("c/Conv2D.c.1.1.5.output.0.1_1_2_2_16.float32.NC1HWC0.bin")), 256u);
}

TEST_F(Commands, OverflowNamesTheFirstOperator) {
  const Tensor record = Tensor::of_i64({1, 9, 3, 0, 0, 0, 0, 0, 64});
  DumpFile file;
  file.outputs = {to_dump(record)};
  for (int time : {700, 600})
    write_dump(folder.make(fmt::format("o/Opdebug.Node_OpDebug.{}.9.{}", time == 600 ? 3 : 4, time)), file);
  file.op_name = "scope/conv1";
  write_dump(folder.make("o/Conv2D.scope_conv1.3.9.650"), file);
  auto [status, text] = command("overflow -d " + folder.path("o"));
  EXPECT_EQ(status, 0);
  auto json = nlohmann::json::parse(text.substr(text.find('\n')));
  EXPECT_EQ(json[0]["operator"], "scope/conv1");
  EXPECT_EQ(json[0]["record"]["status"], 64);
}

TEST_F(Commands, FilesOfAnyNameAreAPair) {
  folder.array("left.npy", ramp(6)), folder.array("right.npy", ramp(6));
  auto [status, text] =
      command(fmt::format("file_compare -m {} -g {}", folder.path("left.npy"), folder.path("right.npy")));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text.substr(0, 37), "CosineSimilarity            1.000000\n");
}

}  // namespace
}  // namespace cairn::compare
