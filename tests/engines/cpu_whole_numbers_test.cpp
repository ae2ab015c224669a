// Element-wise steps of whole numbers: equal to the reference where vectors compute by other means, and over short rows.
#include "engines/cpu_reference.h"

namespace cairn {
namespace {

constexpr const char* kDivisions[] = {"truncate_div", "truncate_mod", "floor_div", "mod"};

Tensor numbers_of(DType dtype, const std::vector<int64_t>& values) {
  const Dims dims{std::ssize(values)};
  if (dtype == kI64) return Tensor::of<int64_t>(kI64, dims, values);
  return Tensor::of<int32_t>(kI32, dims, std::vector<int32_t>(values.begin(), values.end()));
}

TEST(CpuWholeNumbers, divided_by_one_number_equal_the_reference_up_to_the_largest) {
  for (const DType dtype : {kI32, kI64}) {
    const bool wide = dtype == kI64;
    const int64_t most = wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
    std::vector<int64_t> values;
    for (int64_t at : {int64_t{0}, int64_t{1} << 12, int64_t{1} << 30, int64_t{1} << 51, int64_t{1} << 52, most - 20})
      for (int64_t i = -20; i <= 20 && at <= most - 20; ++i) values.insert(values.end(), {at + i, -at - i});
    values.push_back(-most - 1);
    for (const size_t count : {values.size(), size_t{82}})  // the first ones are exact as f64
      for (int64_t divisor : {int64_t{1}, int64_t{-1}, int64_t{3}, int64_t{-7}, int64_t{4096}, int64_t{1048573}, most})
        for (const char* op : kDivisions) {
          const std::string type = fmt::format("{}[{}]", wide ? "i64" : "i32", count), one = wide ? "i64[1]" : "i32[1]";
          const std::string text =
              fmt::format("module @m {{ func @main(%x: {0}, %y: {1}) -> (%r: {0}) {{ %r = {2} %x, %y return %r }} }}",
                          type, one, op);
          const std::vector<Tensor> inputs{
              numbers_of(dtype, {values.begin(), values.begin() + static_cast<int64_t>(count)}),
              numbers_of(dtype, {divisor})};
          const Tensor wanted = Model::make(parse(text), {.threads = 1, .engines = {"reference"}})->run(inputs)[0];
          const Tensor found = Model::make(parse(text), {.threads = 1})->run(inputs)[0];
          EXPECT_TRUE(found.same_bits(wanted)) << text << divisor;
        }
  }
}

TEST(CpuWholeNumbers, rows_of_few_elements_equal_the_reference) {
  std::mt19937_64 random(5);
  for (const char* type : {"i64", "i32", "u8", "i16", "f64"})
    for (const auto& [a, b, to] : {std::tuple{"40, 1, 8", "1, 30, 8", "40, 30, 8"},
                                   {"50, 30, 1", "50, 1, 5", "50, 30, 5"},
                                   {"7, 1, 3, 1, 31", "1, 11, 1, 5, 31", "7, 11, 3, 5, 31"},
                                   {"900, 2", "", "900, 2"}})
      for (const char* body : {"%r = add %x, %y", "%e = less %x, %y\n%r = select %e, %x, %y"})
        expect_reference_result(
            fmt::format(
                "module @m {{ func @main(%x: {0}[{1}], %y: {0}[{2}]) -> (%r: {0}[{3}]) {{\n{4}\nreturn %r }} }}", type,
                a, b, to, body),
            random, [](const std::string&) {});
}

TEST(CpuWholeNumbers, casts_and_bools_equal_the_reference) {
  std::mt19937_64 random(5);
  for (const char* from : {"bool", "u8", "i32", "i64"})
    for (const char* to : {"bool", "u8", "i32", "i64", "f32", "f64"})
      expect_reference_result(
          fmt::format("module @m {{ func @main(%x: {0}[1003]) -> (%r: {1}[1003]) {{ %r = cast %x {{dtype = "
                      "{1}}} return %r }} }}",
                      from, to),
          random, [](const std::string&) {});
  for (const char* op : {"and", "or", "xor", "equal"})
    expect_reference_result(
        fmt::format("module @m {{ func @main(%x: bool[1003], %y: bool[1003]) -> (%r: bool[1003]) {{ %r = {} "
                    "%x, %y return %r }} }}",
                    op),
        random, [](const std::string&) {});
}

}  // namespace
}  // namespace cairn
