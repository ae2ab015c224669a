// Modules built node by node through the C interface.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cairn/cairn.h"

namespace {

constexpr CairnDType kFloat{CAIRN_FLOAT, 32, 1}, kLong{CAIRN_INT, 64, 1};

std::string last_message() {
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  return std::string(error.where) + ": " + error.message;
}

#define ASSERT_OK(call) ASSERT_EQ(call, CAIRN_OK) << last_message()

CairnType tensor_type(CairnDType dtype, std::vector<int64_t>& dims) {
  return {CAIRN_TYPE_TENSOR, dtype, static_cast<int32_t>(dims.size()), dims.data(), nullptr, nullptr, 0};
}

/// A builder with @main begun.
class Build {
 public:
  Build() {
    EXPECT_EQ(cairn_builder_create("built", &builder_), CAIRN_OK);
    EXPECT_EQ(cairn_builder_function(builder_, "main", nullptr, 0), CAIRN_OK);
  }
  ~Build() { cairn_builder_free(builder_); }
  operator CairnBuilder*() const { return builder_; }

  CairnValue* param(const char* name, CairnDType dtype, std::vector<int64_t> dims) {
    CairnType type = tensor_type(dtype, dims);
    CairnValue* value = nullptr;
    EXPECT_EQ(cairn_builder_param(builder_, name, &type, &value), CAIRN_OK) << last_message();
    return value;
  }
  CairnValue* number(double number, CairnDType dtype) {
    CairnValue* value = nullptr;
    EXPECT_EQ(cairn_builder_number(builder_, number, dtype, &value), CAIRN_OK) << last_message();
    return value;
  }
  CairnValue* add(const char* op, std::vector<CairnValue*> inputs, std::vector<CairnAttribute> attributes = {}) {
    CairnValue* value = nullptr;
    EXPECT_EQ(cairn_builder_add(builder_, op, inputs.data(), inputs.size(), attributes.data(), attributes.size(),
                                nullptr, &value, 1),
              CAIRN_OK)
        << last_message();
    return value;
  }
  CairnModule* finish() {
    CairnModule* module = nullptr;
    EXPECT_EQ(cairn_builder_finish(builder_, &module), CAIRN_OK) << last_message();
    return module;
  }

 private:
  CairnBuilder* builder_ = nullptr;
};

void* into_vector(void* user, size_t, CairnDType, int32_t ndim, const int64_t* shape) {
  size_t count = 1;
  for (int32_t axis = 0; axis < ndim; ++axis) count *= static_cast<size_t>(shape[axis]);
  auto& values = *static_cast<std::vector<float>*>(user);
  values.resize(count);
  return values.data();
}

std::vector<float> run(CairnModule* module, std::vector<float> x, std::vector<int64_t> dims,
                       std::vector<float> second = {}) {
  CairnModel* model = nullptr;
  EXPECT_EQ(cairn_model_prepare(module, nullptr, &model), CAIRN_OK) << last_message();
  const auto rank = static_cast<int32_t>(dims.size());
  const CairnTensor inputs[] = {{x.data(), {1, 0}, rank, kFloat, dims.data(), nullptr, 0},
                                {second.data(), {1, 0}, rank, kFloat, dims.data(), nullptr, 0}};
  std::vector<float> y;
  EXPECT_EQ(cairn_model_run(model, inputs, second.empty() ? 1 : 2, into_vector, &y, nullptr), CAIRN_OK)
      << last_message();
  cairn_model_free(model);
  return y;
}

TEST(CBuilder, NodesWithTypedAttributes) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {-1, 3});
  const int64_t axes[] = {1};
  CairnValue* sum = b.add("reduce_sum", {x}, {{"axes", CAIRN_ATTRIBUTE_INTEGERS, {.integers = {axes, 1}}}});
  CairnValue* y = b.add("mul", {sum, b.number(0.5, kFloat)});
  ASSERT_OK(cairn_builder_result(b, "y", y, nullptr));
  const CairnType* type = nullptr;
  ASSERT_OK(cairn_builder_type(b, y, &type));
  EXPECT_EQ(type->ndim, 1);
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {1, 2, 3, 4, 5, 6}, {2, 3}), (std::vector<float>{3, 7.5}));
  const std::string path = (std::filesystem::temp_directory_path() / "cairn_built.om").string();
  ASSERT_OK(cairn_module_save(module, path.c_str()));
  cairn_module_free(module);
  ASSERT_OK(cairn_module_open(path.c_str(), nullptr, &module));
  EXPECT_EQ(run(module, {1, 2, 3}, {1, 3}), (std::vector<float>{3}));
  cairn_module_free(module);
  std::filesystem::remove(path);
}

// The second derivative of x^3, summed, at 1 and 2.
TEST(CBuilder, GradientsOfGradients) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {2});
  CairnValue* cube = b.add("mul", {b.add("square", {x}), x});
  CairnValue *slope = nullptr, *bend = nullptr;
  ASSERT_OK(cairn_builder_gradients(b, &cube, nullptr, 1, &x, 1, &slope));
  ASSERT_OK(cairn_builder_gradients(b, &slope, nullptr, 1, &x, 1, &bend));
  ASSERT_OK(cairn_builder_result(b, "y", bend, nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {1, 2}, {2}), (std::vector<float>{6, 12}));
  cairn_module_free(module);
}

// The slope of x^3 where the caller has x^2: what it gives in its place is read, x^3 is not.
TEST(CBuilder, GradientsReadWhatIsKept) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {2});
  CairnValue* square = b.add("square", {x});
  CairnValue* cube = b.add("mul", {square, x});
  CairnValue *kept[] = {cube, square}, *params[2], *slope = nullptr;
  ASSERT_OK(cairn_builder_gradients_of_kept(b, &cube, nullptr, 1, &x, 1, kept, 2, &slope, params));
  EXPECT_EQ(params[0], nullptr);
  EXPECT_NE(params[1], nullptr);
  ASSERT_OK(cairn_builder_result(b, "y", slope, nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {1, 2}, {2}, {10, 20}), (std::vector<float>{12, 28}));
  cairn_module_free(module);
}

// x doubled until it is above 100, then negated where x began above 1.
TEST(CBuilder, LoopsAndConditionals) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {});
  CairnValue* limit = b.number(100, kFloat);
  CairnValue* taken[] = {limit};
  CairnValue *inside[2], *value = nullptr;
  ASSERT_OK(cairn_builder_begin_while(b, &x, 1, taken, 1, inside));
  ASSERT_OK(cairn_builder_begin_body(b, b.add("less", {inside[0], inside[1]}), inside));
  CairnValue* next = b.add("add", {inside[0], inside[0]});
  ASSERT_OK(cairn_builder_end_while(b, &next, &value));
  ASSERT_OK(cairn_builder_begin_if(b, b.add("greater", {x, b.number(1, kFloat)}), &value, 1, inside));
  CairnValue* minus = b.add("neg", {inside[0]});
  ASSERT_OK(cairn_builder_begin_else(b, &minus, 1, inside));
  ASSERT_OK(cairn_builder_end_if(b, inside, 1, &value));
  ASSERT_OK(cairn_builder_result(b, "y", value, nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {1}, {}), (std::vector<float>{128}));
  EXPECT_EQ(run(module, {3}, {}), (std::vector<float>{-192}));
  cairn_module_free(module);
}

// f(x) = x below 1, else f(x / 2)
TEST(CBuilder, AFunctionThatCallsItself) {
  Build b;
  std::vector<int64_t> scalar;
  const CairnType type = tensor_type(kFloat, scalar);
  ASSERT_OK(cairn_builder_function(b, "f", &type, 1));
  CairnValue* x = b.param("x", kFloat, {});
  CairnValue *inside = nullptr, *value = nullptr;
  ASSERT_OK(cairn_builder_begin_if(b, b.add("less", {x, b.number(1, kFloat)}), &x, 1, &inside));
  ASSERT_OK(cairn_builder_begin_else(b, &inside, 1, &inside));
  CairnValue* half = b.add("mul", {inside, b.number(0.5, kFloat)});
  ASSERT_OK(cairn_builder_call(b, "f", &half, 1, &value, 1));
  ASSERT_OK(cairn_builder_end_if(b, &value, 1, &value));
  ASSERT_OK(cairn_builder_result(b, "y", value, nullptr));
  EXPECT_EQ(cairn_builder_function(b, "main", nullptr, 0), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "main: is a function already");
}

TEST(CBuilder, FaultsAreTold) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {2, 3});
  CairnValue* n = b.param("n", kLong, {2});
  CairnValue* inputs[] = {x, n};
  CairnValue* made[2];
  EXPECT_EQ(cairn_builder_add(b, "add", inputs, 2, nullptr, 0, nullptr, made, 1), CAIRN_INVALID_MODEL);
  EXPECT_EQ(cairn_builder_add(b, "acme.none", inputs, 2, nullptr, 0, nullptr, made, 1), CAIRN_NOT_FOUND);
  EXPECT_EQ(last_message(),
            ": operator acme.none comes from no library that is loaded; name the library with --op-library, "
            "CAIRN_OP_LIBRARY or cairn.load_op_library");
  EXPECT_EQ(cairn_builder_add(b, "neg", inputs, 1, nullptr, 0, nullptr, made, 2), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "neg: has 1 results, 2 are asked for");
  EXPECT_EQ(cairn_builder_end_if(b, made, 0, made), CAIRN_INVALID_ARGUMENT);
  CairnValue* outside = b.add("neg", {x});
  EXPECT_EQ(cairn_builder_result(b, "y", x, outside), CAIRN_INVALID_ARGUMENT);
  CairnValue* condition = b.param("c", {CAIRN_BOOL, 8, 1}, {});
  ASSERT_OK(cairn_builder_begin_if(b, condition, nullptr, 0, nullptr));
  CairnValue* first = b.add("neg", {x});
  ASSERT_OK(cairn_builder_begin_else(b, &first, 1, nullptr));
  EXPECT_EQ(cairn_builder_end_if(b, &first, 1, made), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), ": is a value of a branch, loop or call that has ended");
  CairnModule* module = nullptr;
  EXPECT_EQ(cairn_builder_finish(b, &module), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "builder: is inside an if or while");
  ASSERT_OK(cairn_builder_end_if(b, &outside, 1, made));
  EXPECT_EQ(cairn_builder_abandon(b), CAIRN_INVALID_ARGUMENT);
}

// What a branch returns may be told after both: x times 3 where x > 1, else 0.
TEST(CBuilder, BranchesAreJoinedLate) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {});
  CairnValue* three = b.number(3, kFloat);
  ASSERT_OK(cairn_builder_begin_if(b, b.add("greater", {x, b.number(1, kFloat)}), nullptr, 0, nullptr));
  CairnValue* product = b.add("mul", {x, three});
  ASSERT_OK(cairn_builder_begin_else(b, nullptr, 0, nullptr));
  CairnValue* zero = b.number(0, kFloat);
  ASSERT_OK(cairn_builder_branch(b, 0));
  product = b.add("mul", {product, b.number(2, kFloat)});
  CairnValue* y = nullptr;
  ASSERT_OK(cairn_builder_join(b, &product, &zero, 1, &y));
  ASSERT_OK(cairn_builder_result(b, "y", y, nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {2}, {}), (std::vector<float>{12}));
  EXPECT_EQ(run(module, {1}, {}), (std::vector<float>{0}));
  cairn_module_free(module);
}

// Inside a loop of three turns, y becomes y + d(y^2 x)/dy. A first attempt at the loop is dropped.
TEST(CBuilder, GradientsInsideLoops) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {});
  CairnValue* carried[] = {b.number(0, kFloat), x};
  CairnValue *inside[2], *results[2];
  ASSERT_OK(cairn_builder_begin_while(b, carried, 2, nullptr, 0, inside));
  b.add("mul", {x, inside[0]});
  ASSERT_OK(cairn_builder_abandon(b));
  ASSERT_OK(cairn_builder_begin_while(b, carried, 2, nullptr, 0, inside));
  ASSERT_OK(cairn_builder_begin_body(b, b.add("less", {inside[0], b.number(3, kFloat)}), inside));
  CairnValue* y = b.add("mul", {b.add("square", {inside[1]}), x});
  CairnValue* slope = nullptr;
  ASSERT_OK(cairn_builder_gradients(b, &y, nullptr, 1, &inside[1], 1, &slope));
  CairnValue* next[] = {b.add("add", {inside[0], b.number(1, kFloat)}), b.add("add", {inside[1], slope})};
  ASSERT_OK(cairn_builder_end_while(b, next, results));
  ASSERT_OK(cairn_builder_result(b, "y", results[1], nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {2}, {}), (std::vector<float>{2 * 5 * 5 * 5}));
  cairn_module_free(module);
}

// A function x * w with a gradient of its own, 10 dy + x y; w comes from outside, and its gradient is zero.
TEST(CBuilder, CallsWithTheirOwnGradient) {
  Build b;
  CairnValue* x = b.param("x", kFloat, {});
  CairnValue* w = b.add("square", {x});
  CairnValue *inside[3], *y = nullptr, *slope = nullptr;
  ASSERT_OK(cairn_builder_begin_call(b, "scaled", &x, 1, inside));
  CairnValue* product = b.add("mul", {inside[0], w});
  ASSERT_OK(cairn_builder_begin_backward(b, &product, 1, inside));
  CairnValue* made = b.add("mul", {inside[2], b.number(10, kFloat)});
  made = b.add("add", {made, b.add("mul", {inside[0], inside[1]})});
  ASSERT_OK(cairn_builder_end_call(b, &made, 1, &y, 1));
  ASSERT_OK(cairn_builder_gradients(b, &y, nullptr, 1, &x, 1, &slope));
  ASSERT_OK(cairn_builder_result(b, "y", b.add("add", {y, slope}), nullptr));
  CairnModule* module = b.finish();
  EXPECT_EQ(run(module, {2}, {}), (std::vector<float>{8 + 10 + 2 * 8}));
  cairn_module_free(module);
}

}  // namespace
