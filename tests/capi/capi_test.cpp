// The C interface from outside: runs, views, threads of a host, observers, cancelling, single operators, faults.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cairn/cairn.h"

namespace {

constexpr const char* kModel = R"(module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" ""
  source 1 = "tf" "dense/Relu" "Relu" ""
  func @main(%x: f32[?n, 3]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[3, 2] (1, 2, 3, 4, 5, 6)} : f32[3, 2]
    %m = matmul %x, %w : f32[?n, 2] #0
    %y = relu %m : f32[?n, 2] #1
    return %y
  }
}
)";

struct Free {
  void operator()(CairnModule* module) const { cairn_module_free(module); }
  void operator()(CairnModel* model) const { cairn_model_free(model); }
  void operator()(CairnCancel* cancel) const { cairn_cancel_free(cancel); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

CairnError last_error() {
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  return error;
}

Handle<CairnModule> open(const char* text = kModel) {
  CairnModule* module = nullptr;
  EXPECT_EQ(cairn_module_from_bytes(CAIRN_FORMAT_ANY, "m", text, std::strlen(text), nullptr, &module), CAIRN_OK)
      << last_error().message;
  return Handle<CairnModule>(module);
}

Handle<CairnModel> prepare(const CairnModule* module) {
  CairnModel* model = nullptr;
  EXPECT_EQ(cairn_model_prepare(module, nullptr, &model), CAIRN_OK) << last_error().message;
  return Handle<CairnModel>(model);
}

struct Floats {
  std::vector<float> values;
  std::vector<int64_t> shape, strides;
  CairnTensor tensor() {
    return {values.data(),
            {1, 0},
            static_cast<int32_t>(shape.size()),
            {CAIRN_FLOAT, 32, 1},
            shape.data(),
            strides.empty() ? nullptr : strides.data(),
            0};
  }
};

void* into_floats(void* user, size_t, CairnDType, int32_t ndim, const int64_t* shape) {
  auto& floats = *static_cast<Floats*>(user);
  floats.shape.assign(shape, shape + ndim);
  size_t count = 1;
  for (int64_t dim : floats.shape) count *= static_cast<size_t>(dim);
  floats.values.resize(count);
  return floats.values.data();
}

CairnStatus run(const CairnModel* model, Floats input, Floats& output, const CairnRunOptions* options = nullptr) {
  CairnTensor tensor = input.tensor();
  return cairn_model_run(model, &tensor, 1, into_floats, &output, options);
}

const std::vector<float> kExpected = {22, 28, 0, 0};  // of {1, 2, 3} and {-1, -2, -3}

TEST(CApi, AModelRunsAndTellsItsPorts) {
  auto model = prepare(open().get());
  CairnPort port{};
  port.struct_size = sizeof port;
  ASSERT_EQ(cairn_model_input(model.get(), 0, &port), CAIRN_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.ndim, 2);
  EXPECT_EQ(port.dims[0], -1);
  EXPECT_EQ(port.dims[1], 3);
  EXPECT_EQ(cairn_model_output_count(model.get()), 1u);
  Floats output;
  ASSERT_EQ(run(model.get(), {{1, 2, 3, -1, -2, -3}, {2, 3}, {}}, output), CAIRN_OK) << last_error().message;
  EXPECT_EQ(output.values, kExpected);
  EXPECT_EQ(output.shape, (std::vector<int64_t>{2, 2}));
}

TEST(CApi, AViewWithStridesGivesTheSame) {
  auto model = prepare(open().get());
  Floats output;
  ASSERT_EQ(run(model.get(), {{1, -1, 2, -2, 3, -3}, {2, 3}, {1, 2}}, output), CAIRN_OK) << last_error().message;
  EXPECT_EQ(output.values, kExpected);
}

TEST(CApi, AnEmptyInputNeedsNoMemory) {
  auto model = prepare(open().get());
  Floats input{{}, {0, 3}, {}}, output;
  CairnTensor tensor = input.tensor();
  tensor.byte_offset = 8;
  output.values.reserve(1);
  ASSERT_EQ(cairn_model_run(model.get(), &tensor, 1, into_floats, &output, nullptr), CAIRN_OK) << last_error().message;
  EXPECT_EQ(tensor.data, nullptr);
  EXPECT_EQ(output.shape, (std::vector<int64_t>{0, 2}));
}

TEST(CApi, SeveralThreadsRunOneModel) {
  auto model = prepare(open().get());
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Floats output;
        good += run(model.get(), {{1, 2, 3, -1, -2, -3}, {2, 3}, {}}, output) == CAIRN_OK && output.values == kExpected;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

TEST(CApi, AHostLendsItsThreads) {
  auto model = prepare(open().get());
  static std::atomic<int> calls;
  calls = 0;
  CairnRunOptions options{};
  options.struct_size = sizeof options;
  options.width = 2;
  options.schedule = [](void*, void (*call)(void*), void* data) {
    ++calls;
    call(data);
  };
  Floats input{{}, {64, 3}, {}}, output;
  input.values.assign(192, 1);
  ASSERT_EQ(run(model.get(), input, output, &options), CAIRN_OK) << last_error().message;
  EXPECT_EQ(output.values[127], 12);
  options.width = 0;
  EXPECT_EQ(run(model.get(), input, output, &options), CAIRN_INVALID_ARGUMENT);
}

TEST(CApi, AnObserverSeesStepsWithScriptLines) {
  auto module = open();
  CairnLocation locations[] = {{"dense/MatMul", "train.py:41"}, {"unknown", "x.py:1"}};
  ASSERT_EQ(cairn_module_set_locations(module.get(), locations, 2), CAIRN_OK);
  auto model = prepare(module.get());
  struct Seen {
    std::string nodes;
    float last = 0;
  } seen;
  CairnRunOptions options{};
  options.struct_size = sizeof options;
  options.observe_user = &seen;
  options.observe = [](void* user, const CairnStep* step) {
    auto& seen = *static_cast<Seen*>(user);
    seen.nodes += std::string(step->node) + ";";
    EXPECT_GE(step->end_ns, step->begin_ns);
    if (step->output_count && step->outputs[0].data) seen.last = static_cast<const float*>(step->outputs[0].data)[0];
  };
  Floats output;
  ASSERT_EQ(run(model.get(), {{1, 2, 3}, {1, 3}, {}}, output, &options), CAIRN_OK) << last_error().message;
  EXPECT_NE(seen.nodes.find("dense/"), std::string::npos) << seen.nodes;
  EXPECT_NE(seen.nodes.find("train.py:41"), std::string::npos) << seen.nodes;
  EXPECT_EQ(seen.last, 22);
}

TEST(CApi, ACancelledRunStops) {
  auto model = prepare(open().get());
  CairnCancel* made = nullptr;
  ASSERT_EQ(cairn_cancel_create(&made), CAIRN_OK);
  Handle<CairnCancel> cancel(made);
  CairnRunOptions options{};
  options.struct_size = sizeof options;
  options.cancel = cancel.get();
  Floats output;
  cairn_cancel_set(cancel.get(), 1);
  EXPECT_EQ(run(model.get(), {{1, 2, 3}, {1, 3}, {}}, output, &options), CAIRN_CANCELLED);
  cairn_cancel_set(cancel.get(), 0);
  EXPECT_EQ(run(model.get(), {{1, 2, 3}, {1, 3}, {}}, output, &options), CAIRN_OK);
}

TEST(CApi, ASavedModelOpensAgain) {
  auto module = open();
  std::string path = std::filesystem::temp_directory_path() / "cairn_capi_test.om";
  ASSERT_EQ(cairn_module_save(module.get(), path.c_str()), CAIRN_OK) << last_error().message;
  CairnModule* again = nullptr;
  ASSERT_EQ(cairn_module_open(path.c_str(), nullptr, &again), CAIRN_OK) << last_error().message;
  Handle<CairnModule> opened(again);
  std::filesystem::remove(path);
  char *a = nullptr, *b = nullptr;
  ASSERT_EQ(cairn_module_text(module.get(), &a), CAIRN_OK);
  ASSERT_EQ(cairn_module_text(opened.get(), &b), CAIRN_OK);
  EXPECT_STREQ(a, b);
  cairn_free_text(a);
  cairn_free_text(b);
  Floats output;
  ASSERT_EQ(run(prepare(opened.get()).get(), {{1, 2, 3, -1, -2, -3}, {2, 3}, {}}, output), CAIRN_OK);
  EXPECT_EQ(output.values, kExpected);
}

TEST(CApi, APlanIsDescribed) {
  auto model = prepare(open().get());
  int64_t shape[] = {5, 3};
  CairnTensor tensor{nullptr, {1, 0}, 2, {CAIRN_FLOAT, 32, 1}, shape, nullptr, 0};
  char* text = nullptr;
  ASSERT_EQ(cairn_model_plan(model.get(), &tensor, 1, &text), CAIRN_OK) << last_error().message;
  EXPECT_NE(std::string(text).find("dense/MatMul"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("\"kernel\""), std::string::npos);
  cairn_free_text(text);
}

TEST(CApi, OperatorsAreDescribed) {
  char* text = nullptr;
  ASSERT_EQ(cairn_describe_ops(&text), CAIRN_OK);
  EXPECT_NE(std::string(text).find("\"conv2d\""), std::string::npos);
  cairn_free_text(text);
}

TEST(CApi, PassesAreDescribed) {
  char* text = nullptr;
  ASSERT_EQ(cairn_describe_passes(&text), CAIRN_OK);
  EXPECT_NE(std::string(text).find("\"fold_constants\""), std::string::npos);
  cairn_free_text(text);
}

TEST(CApi, TheEnvironmentLeavesOutPassesThatThereAre) {
  auto module = open();
  ::setenv("CAIRN_DISABLE", "fold_constants,nonsense", 1);
  CairnModel* model = nullptr;
  EXPECT_EQ(cairn_model_prepare(module.get(), nullptr, &model), CAIRN_NOT_FOUND);
  EXPECT_STREQ(last_error().message, "no pass is called nonsense");
  ::setenv("CAIRN_DISABLE", "ALL", 1);
  prepare(module.get());
  ::unsetenv("CAIRN_DISABLE");
}

TEST(CApi, AVariableIsReadAndWrittenBetweenRuns) {
  auto module = open(R"(module @m {
  func @main(%x: f32[2], %total: f32[2]) -> (%y: f32[2], %next: f32[2]) updates [1 = 1] {
    %y = add %x, %total : f32[2]
    return %y, %y
  }
}
)");
  auto model = prepare(module.get());
  ASSERT_EQ(cairn_model_variable_count(model.get()), 1u);
  CairnTensor variable{};
  ASSERT_EQ(cairn_model_variable_acquire(model.get(), 0, &variable), CAIRN_OK) << last_error().message;
  EXPECT_EQ(cairn_model_variable_acquire(model.get(), 0, &variable), CAIRN_INVALID_ARGUMENT);
  static_cast<float*>(variable.data)[0] = 10;
  ASSERT_EQ(cairn_model_variable_release(model.get(), 0, 1), CAIRN_OK) << last_error().message;
  EXPECT_EQ(cairn_model_variable_release(model.get(), 0, 1), CAIRN_INVALID_ARGUMENT);
  Floats output;
  for (float expected : {11.f, 12.f}) {
    ASSERT_EQ(run(model.get(), {{1, 1}, {2}, {}}, output), CAIRN_OK) << last_error().message;
    EXPECT_EQ(output.values[0], expected);
  }
  ASSERT_EQ(cairn_model_variable_acquire(model.get(), 0, &variable), CAIRN_OK);
  EXPECT_EQ(static_cast<float*>(variable.data)[0], 12);
  EXPECT_EQ(cairn_model_variable_release(model.get(), 0, 0), CAIRN_OK);
  EXPECT_EQ(cairn_model_random_state_size(model.get()), 0u);
}

TEST(CApi, FaultsAreToldAndNothingIsThrown) {
  CairnModule* module = nullptr;
  CairnModel* model = nullptr;
  EXPECT_EQ(cairn_module_open("/no/such/model", nullptr, &module), CAIRN_NOT_FOUND);
  EXPECT_STREQ(last_error().where, "/no/such/model");
  EXPECT_EQ(cairn_module_open(nullptr, nullptr, &module), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_module_from_bytes(CAIRN_FORMAT_OM, "m", "abc", 3, nullptr, &module), CAIRN_INVALID_MODEL);
  EXPECT_EQ(cairn_module_from_bytes(CAIRN_FORMAT_ONNX, "m", "\xff\xff", 2, nullptr, &module), CAIRN_INVALID_MODEL);
  EXPECT_EQ(
      cairn_module_from_bytes(CAIRN_FORMAT_IR, "m", kModel, std::strlen(kModel), "{\"outputs\": [\"y\"]}", &module),
      CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_module_from_bytes(CAIRN_FORMAT_GRAPHDEF, "m", "", 0, "{\"outputs\": 3}", &module),
            CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_model_prepare(nullptr, nullptr, &model), CAIRN_INVALID_ARGUMENT);
  auto good = open();
  CairnModelOptions options{};
  EXPECT_EQ(cairn_model_prepare(good.get(), &options, &model), CAIRN_INVALID_ARGUMENT);  // struct_size not set
  options.struct_size = sizeof options;
  options.engines = "warp";
  EXPECT_EQ(cairn_model_prepare(good.get(), &options, &model), CAIRN_INVALID_ARGUMENT);
  auto made = prepare(good.get());
  Floats output;
  EXPECT_EQ(run(made.get(), {{1, 2}, {1, 2}, {}}, output), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(run(made.get(), {{1, 2}, {-1, 3}, {}}, output), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_model_run(made.get(), nullptr, 1, into_floats, &output, nullptr), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_model_run(made.get(), nullptr, 0, into_floats, &output, nullptr), CAIRN_INVALID_ARGUMENT);
  Floats input{{1, 2, 3}, {1, 3}, {}};
  CairnTensor tensor = input.tensor();
  EXPECT_EQ(cairn_model_run(made.get(), &tensor, 1, nullptr, nullptr, nullptr), CAIRN_INVALID_ARGUMENT);
  auto none = [](void*, size_t, CairnDType, int32_t, const int64_t*) -> void* { return nullptr; };
  EXPECT_EQ(cairn_model_run(made.get(), &tensor, 1, none, nullptr, nullptr), CAIRN_OUT_OF_MEMORY);
  tensor.dtype = {CAIRN_INT, 32, 1};
  EXPECT_EQ(cairn_model_run(made.get(), &tensor, 1, into_floats, &output, nullptr), CAIRN_INVALID_ARGUMENT);
  tensor.dtype = {9, 17, 1};
  EXPECT_EQ(cairn_model_run(made.get(), &tensor, 1, into_floats, &output, nullptr), CAIRN_UNSUPPORTED);
  EXPECT_EQ(cairn_model_variable_count(made.get()), 0u);
  EXPECT_EQ(cairn_model_variable_acquire(made.get(), 0, &tensor), CAIRN_NOT_FOUND);
}

TEST(CApi, TextGoesInAndOut) {
  const char* text =
      "module @names { func @main(%x: str[?n], %i: i64[?k]) -> (%y: str[?k]) {\n"
      "  %y = gather %x, %i : str[?k]\n  return %y } }";
  CairnModule* module = nullptr;
  CairnModel* model = nullptr;
  ASSERT_EQ(cairn_module_from_bytes(CAIRN_FORMAT_IR, "names", text, std::strlen(text), nullptr, &module), CAIRN_OK)
      << last_error().message;
  ASSERT_EQ(cairn_model_prepare(module, nullptr, &model), CAIRN_OK) << last_error().message;
  CairnPort port{};
  port.struct_size = sizeof port;
  ASSERT_EQ(cairn_model_output(model, 0, &port), CAIRN_OK);
  EXPECT_EQ(port.dtype.code, CAIRN_TEXT);
  EXPECT_EQ(port.dtype.bits, 8 * sizeof(CairnText));
  CairnText names[] = {{"cat", 3}, {"-", 1}, {"zero\0 inside", 12}, {"-", 1}, {nullptr, 0}, {"-", 1}};
  int64_t places[] = {2, 0, 1}, three[] = {3}, every_second[] = {2};
  CairnTensor inputs[2]{};
  inputs[0] = {names, {1, 0}, 1, port.dtype, three, every_second, 0};
  inputs[1] = {places, {1, 0}, 1, {CAIRN_INT, 64, 1}, three, nullptr, 0};
  std::vector<CairnText> found;
  auto into_texts = [](void* user, size_t, CairnDType, int32_t, const int64_t* shape) -> void* {
    auto& texts = *static_cast<std::vector<CairnText>*>(user);
    texts.resize(static_cast<size_t>(shape[0]));
    return texts.data();
  };
  ASSERT_EQ(cairn_model_run(model, inputs, 2, into_texts, &found, nullptr), CAIRN_OK) << last_error().message;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].size, 0u);
  EXPECT_EQ(std::string(found[1].data, found[1].size), "cat");
  EXPECT_EQ(std::string(found[2].data, found[2].size), std::string("zero\0 inside", 12));
  names[0].data = nullptr;
  EXPECT_EQ(cairn_model_run(model, inputs, 2, into_texts, &found, nullptr), CAIRN_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error().message, "has a text without data");
  inputs[0].dtype.bits = 8;
  EXPECT_EQ(cairn_model_run(model, inputs, 2, into_texts, &found, nullptr), CAIRN_UNSUPPORTED);
  cairn_model_free(model);
  cairn_module_free(module);
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  ::pclose(pipe);
  return text;
}

TEST(Convert, ReportsWhatTheReferenceEngineDoes) {
  const std::string folder = ::testing::TempDir(), source = folder + "special.txt", output = folder + "special.om";
  std::ofstream(source) << R"(module @m {
  source 0 = "tf" "slow" "Dilation2D" ""
  func @main(%x: f32[8, 64, 64, 1]) -> (%y: f32[8, 64, 64, 1]) {
    %k = constant {value = f32[2, 2, 1] (0, 0, 0, 0)} : f32[2, 2, 1]
    %s = dilation2d %x, %k {padding = same} : f32[8, 64, 64, 1] #0
    %y = tanh %s : f32[8, 64, 64, 1]
    return %y
  }
}
)";
  char* text = nullptr;
  ASSERT_EQ(cairn_module_convert(source.c_str(), nullptr, output.c_str(), &text), CAIRN_OK) << last_error().message;
  const auto report = nlohmann::json::parse(text);
  cairn_free_text(text);
  const auto& reference = report["reference"];
  ASSERT_EQ(reference["steps"].size(), 1u) << report.dump(1);
  EXPECT_EQ(reference["steps"][0]["op"], "dilation2d");
  EXPECT_EQ(reference["steps"][0]["node"], "slow");
  EXPECT_EQ(reference["steps"][0]["reason"], "cpu has no kernel of it");
  EXPECT_GT(reference["of_flops"].get<double>(), 0);
  EXPECT_GT(reference["of_seconds"].get<double>(), 0.5);
  ASSERT_EQ(report["notes"].size(), 1u);
  EXPECT_NE(report["notes"][0].get<std::string>().find("dilation2d of f32[8, 64, 64, 1], f32[2, 2, 1] at slow"),
            std::string::npos);
}

TEST(Cluster, RowsTellWhatOperatorsTouchAndCost) {
  char* text = nullptr;
  ASSERT_EQ(cairn_cluster_operators(&text), CAIRN_OK) << last_error().message;
  const auto operators = nlohmann::json::parse(text);
  cairn_free_text(text);
  EXPECT_EQ(operators.at("AssignVariableOp").dump(), R"({"traits":["writes","assigns","free"]})");
  EXPECT_EQ(operators.at("ConcatV2").dump(), R"({"known_input":-1,"traits":[]})");
  EXPECT_EQ(operators.at("QueueEnqueueV2").dump(), R"({"traits":["puts"]})");
  EXPECT_FALSE(operators.contains("Relu"));
}

constexpr const char* kExported[] = {"cairn_version",
                                     "cairn_abi_version",
                                     "cairn_last_error",
                                     "cairn_free_text",
                                     "cairn_module_open",
                                     "cairn_module_from_bytes",
                                     "cairn_module_from_cluster",
                                     "cairn_module_free",
                                     "cairn_cluster_refusals",
                                     "cairn_cluster_operators",
                                     "cairn_module_set_locations",
                                     "cairn_module_convert",
                                     "cairn_module_save",
                                     "cairn_module_text",
                                     "cairn_module_grad",
                                     "cairn_module_quantize",
                                     "cairn_model_prepare",
                                     "cairn_model_free",
                                     "cairn_model_input_count",
                                     "cairn_model_output_count",
                                     "cairn_model_input",
                                     "cairn_model_input_use",
                                     "cairn_model_first_random_state",
                                     "cairn_model_output",
                                     "cairn_model_threads",
                                     "cairn_model_plan",
                                     "cairn_model_run",
                                     "cairn_model_variable_count",
                                     "cairn_model_variable",
                                     "cairn_model_variable_acquire",
                                     "cairn_model_variable_release",
                                     "cairn_model_random_state_size",
                                     "cairn_model_random_state_get",
                                     "cairn_model_random_state_set",
                                     "cairn_aipp_parameters",
                                     "cairn_cancel_create",
                                     "cairn_cancel_set",
                                     "cairn_cancel_free",
                                     "cairn_limit_begin",
                                     "cairn_limit_end",
                                     "cairn_model_memory",
                                     "cairn_model_planning",
                                     "cairn_watching",
                                     "cairn_profile_start",
                                     "cairn_profile_stop",
                                     "cairn_profile_range_begin",
                                     "cairn_profile_range_end",
                                     "cairn_dump_start",
                                     "cairn_dump_stop",
                                     "cairn_set_script_lines",
                                     "cairn_op_find",
                                     "cairn_op_prepare",
                                     "cairn_op_free",
                                     "cairn_op_outputs",
                                     "cairn_op_cost",
                                     "cairn_op_describe",
                                     "cairn_op_run",
                                     "cairn_list_create",
                                     "cairn_list_free",
                                     "cairn_list_size",
                                     "cairn_list_element",
                                     "cairn_describe_ops",
                                     "cairn_describe_passes",
                                     "cairn_op_library_load",
                                     "cairn_op_register",
                                     "cairn_builder_create",
                                     "cairn_trainer_create",
                                     "cairn_trainer_evaluate",
                                     "cairn_trainer_fit",
                                     "cairn_trainer_free",
                                     "cairn_trainer_input",
                                     "cairn_trainer_input_count",
                                     "cairn_trainer_module",
                                     "cairn_trainer_restore",
                                     "cairn_trainer_save",
                                     "cairn_trainer_state",
                                     "cairn_trainer_state_count",
                                     "cairn_trainer_states",
                                     "cairn_trainer_step",
                                     "cairn_builder_free",
                                     "cairn_builder_function",
                                     "cairn_builder_param",
                                     "cairn_builder_result",
                                     "cairn_builder_source",
                                     "cairn_builder_constant",
                                     "cairn_builder_number",
                                     "cairn_builder_add",
                                     "cairn_builder_call",
                                     "cairn_builder_begin_if",
                                     "cairn_builder_begin_else",
                                     "cairn_builder_end_if",
                                     "cairn_builder_begin_while",
                                     "cairn_builder_begin_body",
                                     "cairn_builder_end_while",
                                     "cairn_builder_branch",
                                     "cairn_builder_join",
                                     "cairn_builder_begin_call",
                                     "cairn_builder_begin_backward",
                                     "cairn_builder_end_call",
                                     "cairn_builder_abandon",
                                     "cairn_builder_gradients",
                                     "cairn_builder_gradients_of_kept",
                                     "cairn_builder_type",
                                     "cairn_builder_constant_of",
                                     "cairn_builder_finish",
                                     "cairn_compare_errors",
                                     "cairn_distance",
                                     "cairn_first_faults",
                                     "cairn_job_join",
                                     "cairn_job_leave",
                                     "cairn_job_joined",
                                     "cairn_job_group",
                                     "cairn_job_group_create",
                                     "cairn_job_group_destroy",
                                     "cairn_job_set_fusion",
                                     "cairn_job_set_place",
                                     "cairn_job_set_timeout",
                                     "cairn_job_describe"};

TEST(SharedLibrary, ExportsTheHeaderAndNothingElse) {
  std::set<std::string> expected = {"CAIRN_1"};
  for (const char* name : kExported) expected.insert(name);
  std::set<std::string> found;
  std::string text = output_of("nm -D --defined-only --format=posix " CAIRN_LIBRARY);
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    std::string name = text.substr(at, text.find(' ', at) - at);
    found.insert(name.substr(0, name.find('@')));
  }
  EXPECT_EQ(found, expected);
}

TEST(SharedLibrary, ACProgramRunsAModel) { EXPECT_EQ(output_of(CAIRN_C99), "3 5 7\n"); }

}  // namespace
