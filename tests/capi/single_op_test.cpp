// Single operators at the C interface: prepared once by types, run on the caller's memory whatever its layout.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cairn/cairn.h"

namespace {

std::string last_message() {
  CairnError error{};
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  return std::string(error.where) + ": " + error.message;
}

template <class T>
constexpr CairnDType kType = {};
template <>
constexpr CairnDType kType<float> = {CAIRN_FLOAT, 32, 1};
template <>
constexpr CairnDType kType<double> = {CAIRN_FLOAT, 64, 1};
template <>
constexpr CairnDType kType<int32_t> = {CAIRN_INT, 32, 1};
template <>
constexpr CairnDType kType<int64_t> = {CAIRN_INT, 64, 1};
template <>
constexpr CairnDType kType<uint64_t> = {CAIRN_UINT, 64, 1};

/// A tensor with memory of its own.
template <class T>
struct Array {
  std::vector<int64_t> dims;
  std::vector<T> values;
  std::vector<int64_t> strides = {};

  CairnTensor tensor() {
    return {values.data(),
            {1, 0},
            static_cast<int32_t>(dims.size()),
            kType<T>,
            dims.data(),
            strides.empty() ? nullptr : strides.data(),
            0};
  }
};
template <class T>
Array<T> filled(std::vector<int64_t> dims, T first = 0) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return {std::move(dims), std::move(values)};
}

const CairnOperator* find(const char* name) {
  const CairnOperator* found = nullptr;
  EXPECT_EQ(cairn_op_find(name, &found), CAIRN_OK) << last_message();
  return found;
}

/// A prepared operator.
class Op {
 public:
  Op(const char* name, std::vector<CairnTensor> inputs, std::vector<CairnAttribute> attributes = {},
     std::vector<CairnTensor> outputs = {}) {
    EXPECT_EQ(cairn_op_prepare(find(name), attributes.data(), attributes.size(), inputs.data(), inputs.size(),
                               outputs.data(), outputs.size(), nullptr, &op_),
              CAIRN_OK)
        << last_message();
  }
  ~Op() { cairn_op_free(op_); }
  Op(const Op&) = delete;
  const CairnOp* get() const { return op_; }
  CairnStatus run(std::vector<CairnTensor> inputs, std::vector<CairnTensor> outputs,
                  const CairnRunOptions* options = nullptr) const {
    return cairn_op_run(op_, inputs.data(), inputs.size(), outputs.data(), outputs.size(), nullptr, nullptr, options);
  }
  std::string text() const {
    char* description = nullptr;
    EXPECT_EQ(cairn_op_describe(op_, &description), CAIRN_OK);
    std::string copy = description;
    cairn_free_text(description);
    return copy;
  }

 private:
  const CairnOp* op_ = nullptr;
};

CairnAttribute integers(const char* name, const std::vector<int64_t>& values) {
  CairnAttribute made{name, CAIRN_ATTRIBUTE_INTEGERS, {}};
  made.value.integers = {values.data(), values.size()};
  return made;
}
CairnAttribute integer(const char* name, int64_t value) {
  CairnAttribute made{name, CAIRN_ATTRIBUTE_INTEGER, {}};
  made.value.integer = value;
  return made;
}
CairnAttribute text(const char* name, const char* value) {
  CairnAttribute made{name, CAIRN_ATTRIBUTE_TEXT, {}};
  made.value.text = {value, std::strlen(value)};
  return made;
}

TEST(SingleOp, IsPreparedByTypesAndRunOnOtherData) {
  auto x = filled<float>({2, 3}), y = filled<float>({2, 3}, 10), sum = filled<float>({2, 3});
  Op op("add", {x.tensor(), y.tensor()});
  size_t count = 0;
  const CairnTensor* outputs = cairn_op_outputs(op.get(), &count);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(outputs[0].ndim, 2);
  EXPECT_EQ(outputs[0].shape[1], 3);
  ASSERT_EQ(op.run({x.tensor(), y.tensor()}, {sum.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(sum.values, (std::vector<float>{10, 12, 14, 16, 18, 20}));
  ASSERT_EQ(op.run({y.tensor(), y.tensor()}, {sum.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(sum.values[5], 30);
  EXPECT_EQ(Op("add", {y.tensor(), x.tensor()}).get(), op.get());
  auto other = filled<float>({3, 3});
  EXPECT_NE(Op("add", {other.tensor(), other.tensor()}).get(), op.get());
}

TEST(SingleOp, AttributesAreTyped) {
  auto x = filled<float>({2, 2}, 1), rows = filled<float>({2});
  const std::vector<int64_t> first{0}, second{1};
  Op op("reduce_sum", {x.tensor()}, {integers("axes", second)});
  ASSERT_EQ(op.run({x.tensor()}, {rows.tensor()}), CAIRN_OK);
  EXPECT_EQ(rows.values, (std::vector<float>{3, 7}));
  Op columns("reduce_sum", {x.tensor()}, {integers("axes", first)});
  ASSERT_EQ(columns.run({x.tensor()}, {rows.tensor()}), CAIRN_OK);
  EXPECT_EQ(rows.values, (std::vector<float>{4, 6}));
  const CairnOp* none = nullptr;
  CairnTensor input = x.tensor();
  CairnAttribute wrong = text("axes", "x"), unknown = integer("nothing", 1),
                 twice[] = {integers("axes", first), integers("axes", first)};
  EXPECT_EQ(cairn_op_prepare(find("reduce_sum"), &wrong, 1, &input, 1, nullptr, 0, nullptr, &none),
            CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_op_prepare(find("reduce_sum"), &unknown, 1, &input, 1, nullptr, 0, nullptr, &none),
            CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_op_prepare(find("reduce_sum"), twice, 2, &input, 1, nullptr, 0, nullptr, &none),
            CAIRN_INVALID_ARGUMENT);
  const CairnOperator* found = nullptr;
  EXPECT_EQ(cairn_op_find("no_such", &found), CAIRN_NOT_FOUND);
  EXPECT_EQ(cairn_op_find("while", &found), CAIRN_UNSUPPORTED);
}

// Inputs after the first that are data: their elements are no part of what is prepared.
TEST(SingleOp, TwoGradientsOfOneShapeShareOnePreparedOperator) {
  auto dims = Array<int64_t>{{4}, {1, 5, 5, 2}}, kernel_dims = Array<int64_t>{{4}, {3, 3, 2, 4}};
  auto kernel = filled<float>({3, 3, 2, 4}), image = filled<float>({1, 5, 5, 2});
  auto dy = filled<float>({1, 5, 5, 4}), other = filled<float>({1, 5, 5, 4}, 7);
  const std::vector<int64_t> ones{1, 1}, pads{1, 1, 1, 1};
  const auto same = [](const char* name, std::vector<CairnTensor> a, std::vector<CairnTensor> b,
                       std::vector<CairnAttribute> attributes = {}) {
    Op one(name, std::move(a), attributes), two(name, std::move(b), attributes);
    EXPECT_EQ(one.get(), two.get()) << name;
  };
  const std::vector<CairnAttribute> same_padding{text("padding", "same")};
  same("conv2d_input_gradient", {dy.tensor(), kernel.tensor(), dims.tensor()},
       {other.tensor(), kernel.tensor(), dims.tensor()}, same_padding);
  same("conv2d_kernel_gradient", {image.tensor(), dy.tensor(), kernel_dims.tensor()},
       {image.tensor(), other.tensor(), kernel_dims.tensor()}, same_padding);
  auto indices = Array<int64_t>{{2, 1}, {1, 3}}, other_indices = Array<int64_t>{{2, 1}, {0, 2}};
  auto updates = filled<float>({2, 3}), other_updates = filled<float>({2, 3}, 5);
  auto shape = Array<int64_t>{{2}, {5, 3}};
  same("scatter_nd", {indices.tensor(), updates.tensor(), shape.tensor()},
       {other_indices.tensor(), other_updates.tensor(), shape.tensor()});
  auto segments = Array<int64_t>{{2}, {0, 1}}, other_segments = Array<int64_t>{{2}, {1, 1}},
       count = Array<int64_t>{{}, {2}};
  same("segment_reduce", {updates.tensor(), segments.tensor(), count.tensor()},
       {other_updates.tensor(), other_segments.tensor(), count.tensor()});
  auto boxes = filled<float>({1, 3, 1, 4}), other_boxes = filled<float>({1, 3, 1, 4}, 2);
  auto scores = filled<float>({1, 3, 2}), other_scores = filled<float>({1, 3, 2}, 1);
  Array<int32_t> two{{}, {2}}, four{{}, {4}};
  Array<float> half{{}, {0.5f}}, third{{}, {0.3f}};
  same("combined_non_max_suppression",
       {boxes.tensor(), scores.tensor(), two.tensor(), four.tensor(), half.tensor(), half.tensor()},
       {other_boxes.tensor(), other_scores.tensor(), two.tensor(), four.tensor(), third.tensor(), half.tensor()});
  auto more_dims = Array<int64_t>{{4}, {2, 5, 5, 2}};
  auto more_dy = filled<float>({2, 5, 5, 4});
  Op few("conv2d_input_gradient", {dy.tensor(), kernel.tensor(), dims.tensor()}, same_padding);
  Op many("conv2d_input_gradient", {more_dy.tensor(), kernel.tensor(), more_dims.tensor()}, same_padding);
  EXPECT_NE(few.get(), many.get()) << "the image's shape is part of the operator";
}

TEST(SingleOp, ViewsAreReadWithoutACopy) {
  auto x = filled<float>({3, 2}), y = filled<float>({2, 3}, 100), sum = filled<float>({2, 3});
  Array<float> view{{2, 3}, x.values, {1, 2}};
  Op op("add", {view.tensor(), y.tensor()});
  EXPECT_NE(op.text().find("\"strided\""), std::string::npos) << op.text();
  ASSERT_EQ(op.run({view.tensor(), y.tensor()}, {sum.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(sum.values, (std::vector<float>{100, 103, 106, 104, 107, 110}));
  Array<float> backwards{{6}, {}, {-1}};
  auto line = filled<float>({6}), result = filled<float>({6});
  CairnTensor reversed = line.tensor();
  int64_t minus = -1;
  reversed.strides = &minus;
  reversed.byte_offset = 5 * sizeof(float);
  Op negative("neg", {reversed});
  ASSERT_EQ(negative.run({reversed}, {result.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(result.values, (std::vector<float>{-5, -4, -3, -2, -1, 0}));
  // What was prepared for one layout takes others, by copies.
  ASSERT_EQ(negative.run({line.tensor()}, {result.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(result.values[5], -5);
}

TEST(SingleOp, AProductReadsATransposedViewWhereItLies) {
  auto a = filled<float>({2, 3}), b = filled<float>({4, 3}), product = filled<float>({2, 4});
  Array<float> view{{3, 4}, b.values, {1, 3}};
  Op op("matmul", {a.tensor(), view.tensor()});
  EXPECT_EQ(op.text().find("\"copied\""), std::string::npos) << op.text();
  ASSERT_EQ(op.run({a.tensor(), view.tensor()}, {product.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(product.values, (std::vector<float>{5, 14, 23, 32, 14, 50, 86, 122}));
  Array<float> plain{{3, 4}, filled<float>({12}).values};
  ASSERT_EQ(op.run({a.tensor(), plain.tensor()}, {product.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(product.values[0], 4 + 2 * 8);
}

TEST(SingleOp, ResultsGoWhereTheCallerWants) {
  auto x = filled<float>({2, 2}, 1), wide = filled<float>({2, 4});
  std::fill(wide.values.begin(), wide.values.end(), 0.f);
  CairnTensor columns = wide.tensor();
  int64_t dims[] = {2, 2}, strides[] = {4, 2};
  columns.shape = dims;
  columns.strides = strides;
  Op op("square", {x.tensor()}, {}, {columns});
  ASSERT_EQ(op.run({x.tensor()}, {columns}), CAIRN_OK) << last_message();
  EXPECT_EQ(wide.values, (std::vector<float>{1, 0, 4, 0, 9, 0, 16, 0}));
  Op sum("add", {x.tensor(), x.tensor()});
  ASSERT_EQ(sum.run({x.tensor(), x.tensor()}, {x.tensor()}), CAIRN_OK) << last_message();  // in place of both
  EXPECT_EQ(x.values, (std::vector<float>{2, 4, 6, 8}));
  auto matrix = filled<float>({2, 2}, 1);
  Op square("matmul", {matrix.tensor(), matrix.tensor()});
  ASSERT_EQ(square.run({matrix.tensor(), matrix.tensor()}, {matrix.tensor()}), CAIRN_OK) << last_message();
  EXPECT_EQ(matrix.values, (std::vector<float>{7, 10, 15, 22})) << "read before it is written over";
  auto line = filled<float>({6});  // an output that lies across its input
  CairnTensor from = line.tensor(), to = line.tensor();
  int64_t five = 5;
  from.shape = to.shape = &five;
  to.byte_offset = sizeof(float);
  ASSERT_EQ(Op("neg", {from}).run({from}, {to}), CAIRN_OK) << last_message();
  EXPECT_EQ(line.values, (std::vector<float>{0, 0, -1, -2, -3, -4}));
}

TEST(SingleOp, ARandomStateIsTheCallers) {
  Array<uint64_t> state{{3}, {1, 0, 0}};
  Array<int64_t> shape{{1}, {4}};
  auto first = filled<float>({4}), second = filled<float>({4}), both = filled<float>({8});
  Op op("random_uniform", {state.tensor(), shape.tensor()});
  ASSERT_EQ(op.run({state.tensor(), shape.tensor()}, {state.tensor(), first.tensor()}), CAIRN_OK) << last_message();
  ASSERT_EQ(op.run({state.tensor(), shape.tensor()}, {state.tensor(), second.tensor()}), CAIRN_OK);
  Array<uint64_t> fresh{{3}, {1, 0, 0}};
  Array<int64_t> eight{{1}, {8}};
  ASSERT_EQ(Op("random_uniform", {fresh.tensor(), eight.tensor()})
                .run({fresh.tensor(), eight.tensor()}, {fresh.tensor(), both.tensor()}),
            CAIRN_OK);
  first.values.insert(first.values.end(), second.values.begin(), second.values.end());
  EXPECT_EQ(first.values, both.values);
  EXPECT_EQ(state.values, fresh.values);
  EXPECT_EQ(op.run({state.tensor(), eight.tensor()}, {state.tensor(), first.tensor()}), CAIRN_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("other values"), std::string::npos) << last_message();
}

TEST(SingleOp, ListsGoInAndOut) {
  auto a = filled<float>({2}), b = filled<float>({2}, 5), stacked = filled<float>({2, 2});
  CairnTensor elements[] = {a.tensor(), b.tensor()};
  CairnList* list = nullptr;
  ASSERT_EQ(cairn_list_create(elements, 2, &list), CAIRN_OK) << last_message();
  const CairnTensor given{list, {1, 0}, 0, {CAIRN_LIST, 0, 1}, nullptr, nullptr, 0};
  Array<int64_t> index{{}, {1}};
  auto third = filled<float>({2}, 8);
  Op set("list_set", {given, index.tensor(), third.tensor()});
  CairnTensor changed{nullptr, {1, 0}, 0, {CAIRN_LIST, 0, 1}, nullptr, nullptr, 0};
  std::vector<CairnTensor> inputs = {given, index.tensor(), third.tensor()};
  ASSERT_EQ(cairn_op_run(set.get(), inputs.data(), 3, &changed, 1, nullptr, nullptr, nullptr), CAIRN_OK)
      << last_message();
  auto* made = static_cast<CairnList*>(changed.data);
  ASSERT_EQ(cairn_list_size(made), 2u);
  CairnTensor element{};
  ASSERT_EQ(cairn_list_element(made, 1, &element), CAIRN_OK) << last_message();
  EXPECT_EQ(static_cast<const float*>(element.data)[1], 9);
  ASSERT_EQ(cairn_list_element(list, 1, &element), CAIRN_OK);
  EXPECT_EQ(static_cast<const float*>(element.data)[1], 6) << "the list that was given stays";
  EXPECT_EQ(cairn_list_element(list, 2, &element), CAIRN_INVALID_ARGUMENT);
  cairn_list_free(made);
  cairn_list_free(list);
}

TEST(SingleOp, ResultsOfUnknownSizeAreAllocated) {
  Array<int32_t> x{{5}, {3, 0, 4, 0, 5}};
  Op op("non_zero", {x.tensor()});
  size_t count = 0;
  EXPECT_EQ(cairn_op_outputs(op.get(), &count)[0].ndim, -1);
  struct Found {
    std::vector<int64_t> dims, values;
  } found;
  const auto allocate = [](void* user, size_t, CairnDType, int32_t ndim, const int64_t* shape) -> void* {
    auto& to = *static_cast<Found*>(user);
    to.dims.assign(shape, shape + ndim);
    to.values.resize(static_cast<size_t>(std::max<int64_t>(1, shape[0] * shape[1])));
    return to.values.data();
  };
  CairnTensor input = x.tensor();
  ASSERT_EQ(cairn_op_run(op.get(), &input, 1, nullptr, 0, allocate, &found, nullptr), CAIRN_OK) << last_message();
  EXPECT_EQ(found.dims, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(found.values, (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(cairn_op_run(op.get(), &input, 1, nullptr, 0, nullptr, nullptr, nullptr), CAIRN_INVALID_ARGUMENT);
}

TEST(SingleOp, WrongTensorsAreRefused) {
  auto x = filled<float>({4}), other = filled<float>({5}), y = filled<float>({4});
  auto wide = filled<double>({4});
  Op op("exp", {x.tensor()});
  EXPECT_EQ(op.run({other.tensor()}, {y.tensor()}), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "exp: input 0 is f32[5], the operator was prepared for f32[4]");
  EXPECT_EQ(op.run({x.tensor()}, {other.tensor()}), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "exp: output 0 is f32[5], the result is f32[4]");
  EXPECT_EQ(op.run({x.tensor()}, {wide.tensor()}), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(op.run({x.tensor()}, {}), CAIRN_INVALID_ARGUMENT);
  EXPECT_EQ(op.run({x.tensor(), x.tensor()}, {y.tensor()}), CAIRN_INVALID_ARGUMENT);
  CairnTensor nowhere = x.tensor();
  nowhere.data = nullptr;
  EXPECT_EQ(op.run({nowhere}, {y.tensor()}), CAIRN_INVALID_ARGUMENT);
}

TEST(SingleOp, IsWatchedAndCancelled) {
  auto x = filled<float>({4}), y = filled<float>({4});
  Op op("exp", {x.tensor()});
  std::string kernel;
  CairnRunOptions options{};
  options.struct_size = sizeof options;
  options.width = 1;
  options.observe = [](void* user, const CairnStep* step) { *static_cast<std::string*>(user) = step->kernel; };
  options.observe_user = &kernel;
  ASSERT_EQ(op.run({x.tensor()}, {y.tensor()}, &options), CAIRN_OK) << last_message();
  EXPECT_NE(kernel, "");
  CairnCancel* cancel = nullptr;
  cairn_cancel_create(&cancel);
  cairn_cancel_set(cancel, 1);
  options.cancel = cancel;
  EXPECT_EQ(op.run({x.tensor()}, {y.tensor()}, &options), CAIRN_CANCELLED);
  cairn_cancel_free(cancel);
}

TEST(SingleOp, IsRunByAHostsThreads) {
  auto x = filled<float>({512, 512}), y = filled<float>({512, 512}), expected = filled<float>({512, 512});
  for (float& value : x.values) value /= 1e5f;
  CairnTensor input = x.tensor(), output = y.tensor();
  CairnModelOptions lent{};
  lent.struct_size = sizeof lent;
  lent.threads = 3;
  lent.lent_threads = 1;
  const CairnOp* op = nullptr;
  ASSERT_EQ(cairn_op_prepare(find("exp"), nullptr, 0, &input, 1, nullptr, 0, &lent, &op), CAIRN_OK) << last_message();
  struct Host {
    std::vector<std::thread> threads;
  } host;
  CairnRunOptions options{};
  options.struct_size = sizeof options;
  options.width = 3;
  options.host = &host;
  options.schedule = [](void* to, void (*call)(void*), void* data) {
    static_cast<Host*>(to)->threads.emplace_back([=] { call(data); });
  };
  ASSERT_EQ(cairn_op_run(op, &input, 1, &output, 1, nullptr, nullptr, &options), CAIRN_OK) << last_message();
  EXPECT_FALSE(host.threads.empty());
  for (std::thread& thread : host.threads) thread.join();
  ASSERT_EQ(Op("exp", {x.tensor()}).run({x.tensor()}, {expected.tensor()}), CAIRN_OK);
  EXPECT_EQ(y.values, expected.values);
  cairn_op_free(op);
}

TEST(SingleOp, IsRunByManyThreads) {
  auto x = filled<float>({64, 32}), w = filled<float>({32, 16});
  Op op("matmul", {x.tensor(), w.tensor()});
  auto expected = filled<float>({64, 16});
  ASSERT_EQ(op.run({x.tensor(), w.tensor()}, {expected.tensor()}), CAIRN_OK);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto y = filled<float>({64, 16});
        Op own("matmul", {x.tensor(), w.tensor()});
        if (own.run({x.tensor(), w.tensor()}, {y.tensor()}) != CAIRN_OK || y.values != expected.values) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
