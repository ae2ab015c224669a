// From a recording on disk to what is read out of it: marks, times, files; and files that are damaged.
#include <gtest/gtest.h>

#include <random>

#include "profile/export.h"
#include "reseal.h"
#include "support/error.h"
#include "support/files.h"
#include "written.h"

namespace cairn::profile {
namespace {

/// Two training iterations: forward, backward, update.
void fill_training(Written& file) {
  file.plan({step("dense/MatMul", "MatMul"), step("gradients/dense/MatMul_grad/MatMul", "MatMul"),
             step("GradientDescent/update", "ApplyGradientDescent")});
  for (uint32_t run = 0; run < 2; ++run) {
    int64_t at = 1000 * (run + 1);
    file.records({op(at, at + 100, 0, run), op(at + 110, at + 300, 1, run), op(at + 300, at + 360, 2, run),
                  whole_run(at - 10, at + 370, run), host_step(40 + run, run)});
  }
}

TEST(Analysis, MarksOfTrainingHoldTheIdentityOnEveryRow) {
  Written file;
  fill_training(file);
  Analysis analysis = analyse(file.read());
  ASSERT_EQ(analysis.iterations.size(), 2u);
  const Iteration &first = analysis.iterations[0], &second = analysis.iterations[1];
  EXPECT_TRUE(second.trains);
  EXPECT_EQ(second.fp_start, 2000);
  EXPECT_EQ(second.bp_end, 2300);
  EXPECT_EQ(second.end, 2360);
  EXPECT_EQ(second.refresh(), 60);
  EXPECT_EQ(second.data_aug, 640);
  EXPECT_EQ(second.period, *second.data_aug + second.fp_to_bp() + second.refresh());
  EXPECT_EQ(first.period, first.fp_to_bp() + first.refresh());
  EXPECT_EQ(second.ops, 350);
  EXPECT_EQ(second.gaps, 10);
  EXPECT_EQ(second.ops + second.gaps, second.busy());
  EXPECT_EQ(second.host_step, 41);
}

TEST(Analysis, StepsInsideAStepAreTakenOffItsTime) {
  Written file;
  file.plan({step("loop", "While", "control"), step("loop/body", "Add")});
  file.records({op(100, 140, 1, 0), op(150, 190, 1, 0), op(90, 200, 0, 0), whole_run(80, 210, 0)});
  Recording recording = file.read();
  Analysis analysis = analyse(recording);
  ASSERT_EQ(recording.ops[0].step, 0u);  // outer first
  EXPECT_EQ(analysis.ops[0].self, 30);
  EXPECT_EQ(analysis.iterations[0].ops, 110);
  EXPECT_EQ(analysis.iterations[0].gaps, 0);
}

TEST(Analysis, AdviceNamesTheSlowEngineAndTheHost) {
  Written file;
  file.plan({step("a", "Gather", "fallback")});
  for (uint32_t run = 0; run < 4; ++run)
    file.records({op(1000 * run, 1000 * run + 500, 0, run), whole_run(1000 * run, 1000 * run + 500, run)});
  Recording recording = file.read();
  auto advice = advise(recording, analyse(recording), {});
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_NE(advice[0].evidence.find("50.0 % of the mean period"), std::string::npos) << advice[0].evidence;
  EXPECT_NE(advice[1].evidence.find("100.0 % of the steps' time; most in a (Gather)"), std::string::npos);
}

TEST(Analysis, AdviceNamesTheStepsFarBelowTheirRoofline) {
  Written file;
  Json slow = step("slow", "Conv2D"), fast = step("fast", "MatMul"), small = step("small", "Relu");
  slow["flops"] = 1000, fast["flops"] = 9000, small["flops"] = 1;
  file.plan({slow, fast, small});
  file.records({op(0, 1000, 0, 0), op(1000, 2000, 1, 0), op(2000, 2010, 2, 0), whole_run(0, 2010, 0)});
  Recording recording = file.read();
  Machine machine;
  machine.flops = 10e9, machine.bandwidth = 1e12;
  auto advice = advise(recording, analyse(recording), machine);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].text,
            "One step runs far below what the machine can do; at the roofline 44.8 % of the steps' time would go.");
  EXPECT_EQ(advice[0].evidence.find("slow (Conv2D, train.py:4): 49.8 % of the steps' time at 10.0 % of the roofline"),
            0u);
  EXPECT_EQ(advice[0].evidence.find("small"), std::string::npos);
}

TEST(Analysis, ATransposedConvolutionIsNoBackwardPass) {
  for (const char* type : {"Conv2DBackpropInput", "Conv3DBackpropInputV2", "StopGradient"}) {
    Written file;
    file.plan({step("up/conv2d_transpose", type), step("out", "Relu")});
    file.records({op(0, 100, 0, 0), op(100, 200, 1, 0), whole_run(0, 200, 0)});
    EXPECT_FALSE(analyse(file.read()).iterations[0].trains) << type;
  }
  for (const char* type : {"Conv2DBackpropFilter", "FusedBatchNormGradV3", "MaxPoolGrad"}) {
    Written file;
    file.plan({step("up/conv", type)});
    file.records({op(0, 100, 0, 0), whole_run(0, 100, 0)});
    EXPECT_TRUE(analyse(file.read()).iterations[0].trains) << type;
  }
}

TEST(Analysis, WhatFitsACacheIsHeldAgainstTheCache) {
  Machine machine{1e9, 1e9, {{1000, 8e9}, {4000, 4e9}}};
  auto share = [&](double bytes) {
    StepInfo step;
    step.flops = 1, step.bytes = bytes;
    return *roofline_share(step, {.count = 2, .total = 2000}, machine);  // a microsecond each
  };
  EXPECT_DOUBLE_EQ(share(800), 0.1);
  EXPECT_DOUBLE_EQ(share(4000), 1);
  EXPECT_DOUBLE_EQ(share(5000), 5);
  machine.bandwidth = 1e10;  // measured while other programs disturbed the caches
  EXPECT_DOUBLE_EQ(share(800), 0.08);
}

TEST(Export, WritesEveryFileWithItsColumns) {
  Written file;
  fill_training(file);
  file.read();
  export_recording(file.path());
  auto content = [&](const std::string& name) {
    return read_file(file.path() + "/mindstudio_profiler_output/" + name + "_20240131120000123.csv");
  };
  EXPECT_TRUE(
      content("step_trace")
          .starts_with(
              "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),FP to BP Time(us),"
              "Iteration Refresh(us),Data Aug Bound(us),Model ID,"));
  EXPECT_NE(
      content("step_trace").find("\n0,2,1002.000,1002.300,1002.360,1.000,0.300,0.060,0.640,1,0.360,0.350,0.010,41,1\n"),
      std::string::npos)
      << content("step_trace");
  EXPECT_NE(content("op_summary")
                .find("0,net,1,1,0,2,gradients/dense/MatMul_grad/MatMul,MatMul,static,AI_VECTOR_CORE,1002.110,"
                      "0.190,0.010,N/A,N/A,N/A,\"2,3\",f32,ND,,f32,ND,N/A,N/A,"),
            std::string::npos)
      << content("op_summary");
  EXPECT_NE(content("op_statistic").find("0,net,MatMul,AI_VECTOR_CORE,4,0.580,0.100,0.145,0.190,82.857\n"),
            std::string::npos)
      << content("op_statistic");
  EXPECT_EQ(content("operator_memory").substr(content("operator_memory").find('\n') + 1),
            "0,dense/MatMul,0.062,1001.000,0.100,0.062,0.125,0.000,0.125\n"
            "0,dense/MatMul,0.062,1002.000,0.100,0.062,0.125,0.000,0.125\n");
  for (const char* name : {"task_time", "fusion_op", "api_statistic", "static_op_mem", "memory_record"})
    EXPECT_NE(content(name).find('\n'), std::string::npos) << name;
  std::string base = file.path() + "/mindstudio_profiler_output/";
  EXPECT_GE(Json::parse(read_file(base + "msprof_20240131120000123.json"))["traceEvents"].size(), 13u);
  EXPECT_GE(Json::parse(read_file(base + "step_trace_20240131120000123.json"))["traceEvents"].size(), 8u);
  EXPECT_NE(read_file(file.path() + "/index.html").find("gradients/dense/MatMul_grad/MatMul (train.py:4)"),
            std::string::npos);
}

TEST(Reader, AFileThatWasCutOffIsReadAsFarAsItGoes) {
  Written file;
  fill_training(file);
  file.bytes().resize(file.bytes().size() - 20);
  Recording recording = file.read(false);
  EXPECT_EQ(recording.runs.size(), 1u);
  EXPECT_NE(recording.remark.find("cut off"), std::string::npos);
}

TEST(Reader, WhatIsNoRecordingIsSaid) {
  Written file;
  file.bytes() = "no recording at all";
  EXPECT_THROW(file.read_file(), Error);
  EXPECT_THROW(find_recordings("/nowhere"), Error);
}

TEST(Reader, RecordsOfUnknownStepsAreLeftOutAndSaid) {
  Written file;
  file.plan({step("a", "A")});
  file.records({op(1, 2, 7, 0), op(9, 2, 0, 0), op(1, 2, 0, 0), whole_run(0, 3, 0)});
  Recording recording = file.read();
  EXPECT_EQ(recording.ops.size(), 1u);
  EXPECT_NE(recording.remark.find("2 records"), std::string::npos) << recording.remark;
}

TEST(Reader, PackedRecordsComeBackAsTheyWere) {
  std::mt19937_64 random(3);
  auto number = [&] { return random() >> random() % 64; };  // of all lengths
  std::vector<Record> all;
  RecordPacker packer;
  for (int i = 0; i < 5000; ++i) {
    Record record = all.empty() || random() % 4 == 0 ? Record{} : all.back();
    if (record.plan == 0 || random() % 3 == 0)
      record.plan = static_cast<uint32_t>(number()), record.run = static_cast<uint32_t>(number()),
      record.thread = static_cast<uint16_t>(number());
    record.step = random() % 3 ? record.step + static_cast<uint32_t>(random() % 2) : static_cast<uint32_t>(number());
    record.begin_ns = static_cast<int64_t>(number()), record.end_ns = static_cast<int64_t>(number());
    record.kind = static_cast<RecordKind>(1 + random() % 5);
    all.push_back(record);
    packer.add(record);
  }
  RecordUnpacker unpacker(packer.bytes());
  for (const Record& record : all) {
    ASSERT_FALSE(unpacker.done());
    const Record* found = unpacker.next();
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(std::memcmp(found, &record, sizeof record), 0);
  }
  EXPECT_TRUE(unpacker.done());
}

/// Chunks whose checksum is right and whose content is not: what an attacker would write.
TEST(Reader, MutantsAreReadOrRefusedNeverMore) {
  std::mt19937 random(7);
  int read = 0, refused = 0;
  for (int i = 0; i < 150; ++i) {
    Written file;
    fill_training(file);
    std::string& bytes = file.bytes();
    size_t from = i % 2 ? file.records_at() : 0;
    for (int k = 0; k < 3; ++k) bytes[from + random() % (bytes.size() - from)] = static_cast<char>(random());
    reseal(bytes);
    try {
      file.read_file();
      export_recording(file.path(), {.database = i % 10 == 0});
      ++read;
    } catch (const Error& fault) {
      EXPECT_FALSE(std::string(fault.what()).empty());
      ++refused;
    }
  }
  EXPECT_GT(read, 2);
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace cairn::profile
