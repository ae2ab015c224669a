// The commands on a model in text form: what they print, what they write, how they fail.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/files.h"
#include "support/options.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kModel = R"(module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" "train.py:41"
  source 1 = "tf" "dense/Relu" "Relu" "train.py:42"
  func @main(%x: f32[?n, 3]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[3, 2] (1, 2, 3, 4, 5, 6)} : f32[3, 2]
    %m = matmul %x, %w : f32[?n, 2] #0
    %y = relu %m : f32[?n, 2] #1
    return %y
  }
}
)";

struct Done {
  int status = 0;
  std::string out, errors;
};

class Commands : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "cairn.XXXXXX";
    folder_ = ::mkdtemp(name.data());
    write_file(folder_ / "m.cairn", kModel);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs "cairn", "atc", ... with a shell's words in the test's folder.
  Done run(const std::string& command) const {
    std::string line = fmt::format("cd {} && {}/{} >.out 2>.errors", folder_.string(), CAIRN_BIN, command);
    int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / ".out"), read_file(folder_ / ".errors")};
  }
  Json json(const std::string& command) const {
    Done done = run(command);
    EXPECT_EQ(done.status, 0) << done.out << done.errors;
    return Json::parse(done.out, nullptr, false);
  }
  bool exists(const char* name) const { return fs::exists(folder_ / name); }

  fs::path folder_;
};

TEST_F(Commands, AtcConvertsWithItsExactLines) {
  Done done = run("atc --model=m.cairn --framework=3 --output=model --soc_version=Ascend310");
  EXPECT_EQ(done.status, 0);
  EXPECT_TRUE(done.out.starts_with("ATC start working now, please wait for a moment.\n")) << done.out;
  EXPECT_TRUE(done.out.ends_with("ATC run success, welcome to the next use.\n")) << done.out;
  EXPECT_NE(done.out.find("note: --soc_version has no effect"), std::string::npos);
  EXPECT_TRUE(exists("model.om"));
}

TEST_F(Commands, AtcFailsWithItsExactLineAndEveryProblem) {
  Done done = run("atc --model=m.cairn --mode=9 --log=loud --output=model");
  EXPECT_EQ(done.status, 255);
  EXPECT_NE(done.out.find("\nATC run failed, Please check the detail log, Try 'atc --help' for more information\n"
                          "E10010: invalid value for --log:loud, only support debug, info, warning, error, null\n"
                          "E10001: Value [9] for parameter [--mode] is invalid. Reason: "),
            std::string::npos)
      << done.out;
  EXPECT_FALSE(exists("model.om"));
  EXPECT_EQ(run("atc --modl=m.cairn").status, 1);
}

TEST_F(Commands, AtcWritesJsonReportsAndInformation) {
  ASSERT_EQ(run("atc --model=m.cairn --output=model --framework=3").status, 0);
  EXPECT_EQ(run("atc --mode=1 --om=model.om --json=model.json").status, 0);
  Json graph = Json::parse(read_file(folder_ / "model.json"))["graph"][0];
  EXPECT_EQ(graph["op"][0]["type"], "Data");
  EXPECT_EQ(graph["op"].back()["input"][0], "m:0");
  EXPECT_EQ(run("atc --mode=3 --model=m.cairn --framework=3").status, 0);
  EXPECT_EQ(Json::parse(read_file(folder_ / "check_result.json"))["result"], "success");
  Done done = run("atc --mode=6 --om=model.om");
  EXPECT_NE(done.out.find("weight_data_size["), std::string::npos) << done.out;
}

TEST_F(Commands, OutputTypeIsAppliedAndTheSameConversionGivesTheSameBytes) {
  ASSERT_EQ(run("atc --model=m.cairn --output=a --output_type=FP16").status, 0);
  ASSERT_EQ(run("atc --model=m.cairn --output=b --output_type=FP16").status, 0);
  EXPECT_EQ(read_file(folder_ / "a.om"), read_file(folder_ / "b.om"));
  EXPECT_EQ(json("cairn run a.om --json")["outputs"][0]["type"], "f16[3, 2]");
  ASSERT_EQ(run("atc --model=m.cairn --output=c --input_fp16_nodes=x --output_type=y:0:UINT8").status, 0);
  EXPECT_EQ(json("cairn show c.om --json")["inputs"][0]["type"], "f16[?n, 3]");
  EXPECT_EQ(run("atc --model=m.cairn --output=d --output_type=q:0:FP16").status, 255);
}

TEST_F(Commands, OmgSaysItsLine) {
  Done done = run("omg --model m.cairn --framework 3 --output model");
  EXPECT_EQ(done.status, 0);
  EXPECT_NE(done.out.find("OMG generate offline model success\n"), std::string::npos);
}

TEST_F(Commands, ConvertShowCheckAndWhyAgree) {
  Json converted = json("cairn convert m.cairn -o model --json");
  EXPECT_EQ(converted["parameters"], 6);
  Json shown = json("cairn show model.om --batch 4 --json");
  EXPECT_EQ(shown["operators"]["MatMul"], 1);
  EXPECT_GE(shown["flops"], 2 * 4 * 3 * 2);
  EXPECT_EQ(shown["metadata"]["source"]["file"], "m.cairn");
  EXPECT_EQ(shown["metadata"]["source"]["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json("cairn check model.om --json")["checked"].size(), 4u);
  Done why = run("cairn why model.om dense/MatMul");
  EXPECT_NE(why.out.find("dense/MatMul (train.py:41)"), std::string::npos) << why.out << why.errors;
  EXPECT_EQ(run("cairn why model.om no_such_node").status, 1);
}

TEST_F(Commands, WhyTellsWhereClustersOfAReportRun) {
  write_file(folder_ / "report.json", R"({"graphs": [{
      "clusters": [{"name": "CairnCluster_0", "nodes": 9}, {"name": "CairnCluster_1", "nodes": 4},
                   {"name": "CairnCluster_2", "nodes": 5}],
      "host": [{"op": "DecodeJpeg", "reason": "reads files", "count": 2, "nodes": ["a/decode", "b/decode"]}]}],
      "changing_sizes": {"CairnCluster_0": {
          "compilations": 2, "compiled_per_set": "", "new_sizes": "tensorflow: 2 ms on the engine"}},
      "in_doubt": {"CairnCluster_0": "engine: 1 ms on the engine, 2 ms on TensorFlow",
                   "CairnCluster_2": "tensorflow: 2 ms on the engine, 1 ms on TensorFlow"},
      "run_by_tensorflow": []})");
  EXPECT_EQ(run("cairn why report.json").out,
            "CairnCluster_0  9 nodes\n  on engine, sizes open; new sizes on tensorflow: 2 ms on the engine\n"
            "CairnCluster_1  4 nodes\n  on engine\n"
            "CairnCluster_2  5 nodes\n  on tensorflow: 2 ms on the engine, 1 ms on TensorFlow\nDecodeJpeg  2 nodes\n  "
            "on tensorflow: reads files\n");
  EXPECT_EQ(json("cairn why report.json b/dec --json")["report"].size(), 1u);
  EXPECT_EQ(run("cairn why report.json no_such_node").status, 1);
  write_file(folder_ / "other.json", "{}");
  EXPECT_EQ(run("cairn why other.json").status, 1);
}

TEST_F(Commands, RunReadsAndWritesNumPyFiles) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string npy = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  for (float value : {1.f, 2.f, 3.f, -1.f, -2.f, -3.f}) npy.append(reinterpret_cast<const char*>(&value), 4);
  write_file(folder_ / "x.npy", npy);
  Json outputs = json("cairn run m.cairn --input x=x.npy -o results --json")["outputs"];
  EXPECT_EQ(outputs[0]["type"], "f32[2, 2]");
  EXPECT_EQ(outputs[0]["most"], 28);
  std::string written = read_file(folder_ / "results" / "y.npy");
  float first = 0;
  std::memcpy(&first, written.data() + written.size() - 16, 4);
  EXPECT_EQ(first, 22);
  ASSERT_EQ(run("cairn run m.cairn --input x.npy -o out.npz").status, 0);
  EXPECT_EQ(run("cairn run m.cairn --input x=out.npz:y").status, 1);  // two columns for three
}

TEST_F(Commands, MsameRunsRawFiles) {
  ASSERT_EQ(run("atc --model=m.cairn --output=model").status, 0);
  std::string raw;
  for (float value : {1.f, 2.f, 3.f}) raw.append(reinterpret_cast<const char*>(&value), 4);
  write_file(folder_ / "x.bin", raw);
  Done done = run("msame --model model.om --input x.bin --output out --outfmt TXT");
  EXPECT_EQ(done.status, 0) << done.out;
  EXPECT_NE(done.out.find("Inference average time : "), std::string::npos);
  EXPECT_NE(done.out.find("Inference average time without first time: "), std::string::npos);
  EXPECT_NE(done.out.find("Execute sample success"), std::string::npos);
  EXPECT_EQ(read_file(folder_ / "out" / "x_output_0.txt"), "22 28 \n");
  done = run("msame --model model.om --dymBatch 4 --loop 3 --output out");
  EXPECT_NE(done.out.find("Inference average time: "), std::string::npos) << done.out;
  EXPECT_EQ(fs::file_size(folder_ / "out" / "model_output_0.bin"), 32u);
  EXPECT_EQ(run("msame --model model.om --input x.bin,x.bin").status, 1);
}

TEST_F(Commands, BenchGivesTimesStepsAndTheWorkersAnswers) {
  Json bench = json("cairn bench m.cairn --batch 8 --seconds 0.05 --per-op --json");
  EXPECT_LE(bench["least_s"], bench["median_s"]);
  EXPECT_GE(bench["steps"].size(), 1u);
  write_file(folder_ / "orders", "run 0.01 5\nquit\n");
  Done done = run("cairn bench m.cairn --worker < orders");
  EXPECT_TRUE(done.out.starts_with("READY {")) << done.out << done.errors;
  size_t times = done.out.find("\nTIMES {");
  ASSERT_NE(times, std::string::npos) << done.out;
  EXPECT_GE(Json::parse(done.out.substr(times + 7))["t"].size(), 5u);
}

TEST_F(Commands, TablesFitAHundredColumns) {
  for (const char* command : {"show m.cairn", "bench m.cairn --seconds 0.05 --per-op", "run m.cairn", "why m.cairn"}) {
    Done done = run(std::string("cairn ") + command);
    EXPECT_EQ(done.status, 0) << done.errors;
    for (const std::string& line : split_list(done.out, '\n')) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_EQ(done.out.find('\033'), std::string::npos);  // no colour but on a terminal
  }
}

TEST_F(Commands, FaultsAreOneSentenceAndExitOne) {
  write_file(folder_ / "broken.om", std::string("\0\1garbage", 9));
  for (const char* command : {"show broken.om", "run broken.om", "bench missing.om", "convert broken.om -o x",
                              "check broken.om", "run m.cairn --input-shape=z:1,3", "run m.cairn --engines warp"}) {
    Done done = run(std::string("cairn ") + command);
    EXPECT_EQ(done.status, 1) << command;
    EXPECT_EQ(std::count(done.errors.begin(), done.errors.end(), '\n'), 1) << command << ": " << done.errors;
  }
  EXPECT_NE(Json::parse(run("cairn show broken.om --json").out)["error"]["message"], "");
}

TEST_F(Commands, FilesThatAreTakenForModelsByAccidentAreNamed) {
  const std::pair<std::string, const char*> files[] = {
      {"<!DOCTYPE html>\n<html>404</html>\n", "is text, which starts with '<!DOCTYPE html>', and no model"},
      {"import tensorflow as tf\r\nprint(1)\n", "is text, which starts with 'import tensorflow as tf"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n", "git lfs pull fetches it"},
      {std::string("PK\3\4\0\0\0\0 net.pb", 15), "is an archive, but none of Keras; unpack it"},
      {std::string("PK\3\4\0\0\0\0 net/data.pkl", 21), "is a file of PyTorch; export the model as ONNX there"},
      {std::string("\x08\x07\x3a\x7f\x0a\x02", 6), "it is longer than what is left"},
  };
  for (const auto& [content, sentence] : files)
    for (const char* name : {"a.pb", "a.onnx", "a.om", "a.h5"}) {
      write_file(folder_ / name, content);
      const Done done = run(fmt::format("cairn show {}", name));
      EXPECT_EQ(done.status, 1) << name << content;
      EXPECT_NE(done.errors.find(sentence), std::string::npos) << done.errors;
    }
  for (const char* output : {"a.tflite", "a.pb", "a.keras"}) {
    const Done done = run(fmt::format("cairn convert m.cairn -o {}", output));
    EXPECT_EQ(done.status, 1) << output;
    EXPECT_NE(done.errors.find("models are written as .om and .onnx, not as"), std::string::npos) << done.errors;
  }
}

TEST_F(Commands, AModelOfTheOriginalPlatformIsRecognised) {
  std::string bytes(300, '\0');
  bytes.replace(0, 4, "IMOD");
  bytes.replace(84, 4, "bert");
  bytes[256] = 1;  // one partition of 28 bytes: weights
  bytes[260] = 1;
  bytes[268] = 28;
  write_file(folder_ / "foreign.om", bytes);
  Done shown = run("cairn show foreign.om");
  EXPECT_EQ(shown.status, 0) << shown.errors;
  EXPECT_NE(shown.out.find("WEIGHTS_DATA"), std::string::npos) << shown.out;
  Done ran = run("cairn run foreign.om");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.errors.find("of the original platform"), std::string::npos) << ran.errors;
}

TEST_F(Commands, VerifyWithoutTheFrameworkSaysSo) {
  write_file(folder_ / "source.pb", "");
  Done done = run("cairn verify m.cairn --against source.pb --python no-such-python");
  EXPECT_EQ(done.status, 3);
  EXPECT_TRUE(done.out.starts_with("not verified: framework missing")) << done.out;
}

}  // namespace
}  // namespace cairn
