// Reference kernels where the oracles are undefined or differ: saturation, errors at run time, NaN order, known vectors.
#include <gtest/gtest.h>

#include <cstring>

#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

Tensor tensor(const std::string& literal) { return std::get<Tensor>(parse_attribute(literal, AttrKind::tensor)); }

// The first result as text, or the error. Inputs are tensor literals.
std::string run(const char* op, const std::vector<std::string>& inputs, Attributes attributes = {}) {
  std::vector<HostValue> values;
  for (const std::string& input : inputs) values.push_back({tensor(input), nullptr});
  try {
    auto results = run_reference(op_named(op), attributes, values);
    return results.empty() ? "" : to_string(Attribute(results[0].tensor));
  } catch (const Error& fault) {
    return fault.what();
  }
}
using Ints = std::vector<int64_t>;

TEST(Kernels, CastsSaturateWhereOthersAreUndefined) {
  EXPECT_EQ(run("cast", {"f32[5] (nan, inf, -inf, 1e+10, -1.9)"}, {{"dtype", kI32}}),
            "i32[5] (0, 2147483647, -2147483648, 2147483647, -1)");
  EXPECT_EQ(run("cast", {"f32[3] (-1.0, 256.0, 255.5)"}, {{"dtype", kU8}}), "u8[3] (0, 255, 255)");
  EXPECT_EQ(run("cast", {"f64[2] (1e+19, -1e+19)"}, {{"dtype", kI64}}),
            "i64[2] (9223372036854775807, -9223372036854775808)");
  EXPECT_EQ(run("cast", {"f32[2] (nan, -0.0)"}, {{"dtype", kBool}}), "bool[2] (true, false)");
  EXPECT_EQ(run("cast", {"i64[1] (4294967299)"}, {{"dtype", kI8}}), "i8[1] (3)");
}

TEST(Kernels, ADefaultForEachKeyIsForAllOfThem) {
  EXPECT_EQ(run("find_key", {"i64[1] (4)", "i64[1] (7)", "i64[2, 3] (4, 5, 4, 5, 5, 4)", "i64[3] (1, 2, 3)"}),
            "find_key: the default has 3 elements for 6 keys");
}

TEST(Kernels, IntegerEdgesAreDefined) {
  EXPECT_EQ(run("truncate_div", {"i32[2] (-2147483648, 7)", "i32[2] (-1, -2)"}), "i32[2] (-2147483648, -3)");
  EXPECT_EQ(run("floor_div", {"i32[2] (-7, 7)", "i32[] (2)"}), "i32[2] (-4, 3)");
  EXPECT_EQ(run("mod", {"i32[3] (-7, 7, -2147483648)", "i32[3] (3, -3, -1)"}), "i32[3] (2, -2, 0)");
  EXPECT_EQ(run("floor_div", {"i32[2] (1, 2)", "i32[2] (1, 0)"}), "floor_div: integer division by zero");
  EXPECT_EQ(run("pow", {"i64[2] (2, 1)", "i64[] (-1)"}), "pow: integers cannot be raised to negative powers, found -1");
  EXPECT_EQ(run("abs", {"i8[1] (-128)"}), "i8[1] (-128)");
  EXPECT_EQ(run("mul", {"i16[1] (-32768)", "i16[1] (-1)"}), "i16[1] (-32768)");
  EXPECT_EQ(run("clip", {"i8[3] (-5, 0, 5)"}, {{"low", -1.5}, {"high", 1e9}}), "i8[3] (-1, 0, 5)");
}

// Sizes above and below the kernel's tiles, dims of one element, types of each width.
TEST(Kernels, TransposesMoveEachElement) {
  const Ints dims = {3, 37, 1, 5, 70};
  for (const Ints& axes : {Ints{4, 3, 2, 1, 0}, Ints{1, 3, 4, 2, 0}, Ints{0, 2, 1, 4, 3}, Ints{-2, 0, 1, 2, -1}}) {
    for (DType type : {kU8, kI16, kI32, kI64}) {
      Tensor x = Tensor::uninitialized(type, dims);
      auto* bytes = static_cast<uint8_t*>(x.mutable_data());
      for (size_t i = 0; i < x.bytes(); ++i) bytes[i] = static_cast<uint8_t>(i * 131 + i / 256 * 7);
      const Tensor y = run_reference(op_named("transpose"), {{"permutation", axes}}, {{x, nullptr}})[0].tensor;
      Ints at(5, 0), from(5, 0);
      for (int64_t n = 0; n < y.count(); ++n) {
        for (size_t d = 5, rest = static_cast<size_t>(n); d-- > 0; rest /= static_cast<size_t>(y.dims()[d]))
          at[d] = static_cast<int64_t>(rest % static_cast<size_t>(y.dims()[d]));
        for (size_t d = 0; d < 5; ++d) from[static_cast<size_t>((axes[d] + 5) % 5)] = at[d];
        int64_t place = 0;
        for (size_t d = 0; d < 5; ++d) place = place * dims[d] + from[d];
        const auto size = type.size(), to = static_cast<size_t>(n) * size, source = static_cast<size_t>(place) * size;
        ASSERT_EQ(std::memcmp(static_cast<const char*>(y.data()) + to, bytes + source, size), 0) << n;
      }
    }
  }
}

TEST(Kernels, NaNFollowsTheSummaries) {
  EXPECT_EQ(run("maximum", {"f32[2] (nan, 1.0)", "f32[2] (1.0, nan)"}), "f32[2] (nan, nan)");
  EXPECT_EQ(run("relu", {"f32[2] (nan, -1.0)"}), "f32[2] (nan, 0.0)");
  EXPECT_EQ(run("reduce_max", {"f32[3] (1.0, nan, 2.0)"}, {{"axes", Ints{0}}}), "f32[] (nan)");
  EXPECT_EQ(run("top_k", {"f32[3] (1.0, nan, 2.0)", "i64[] (2)"}), "f32[2] (nan, 2.0)");
  EXPECT_EQ(run("arg_max", {"f32[3] (nan, nan, nan)"}, {{"axis", int64_t{0}}}), "i64[] (0)");
  EXPECT_EQ(run("unique", {"f32[3] (nan, nan, 1.0)"}), "f32[3] (nan, nan, 1.0)");
  EXPECT_EQ(run("max_pool2d", {"f32[1, 1, 2, 1] (nan, 1.0)"}, {{"window", Ints{1, 2}}}), "f32[1, 1, 1, 1] (nan)");
}

TEST(Kernels, OperandsFoundAtRunTimeAreChecked) {
  EXPECT_EQ(run("gather", {"f32[2] (5.0, 6.0)", "i64[1] (2)"}), "gather: index 2 is out of range for 2 elements");
  EXPECT_EQ(run("gather", {"f32[2] (5.0, 6.0)", "i64[1] (-1)"}), "f32[1] (6.0)");
  for (const char* op : {"gather", "gather_nd"})
    EXPECT_EQ(run(op, {"f32[2] (5.0, 6.0)", "i64[1] (-1)"}, {{"from_start", true}}),
              std::string(op) + ": index -1 is out of range for 2 elements");
  EXPECT_EQ(run("scatter_nd", {"i64[1, 1] (-1)", "f32[1] (1.0)", "i64[1] (3)"}, {{"from_start", true}}),
            "scatter_nd: index -1 is out of range for 3 elements");
  EXPECT_EQ(run("scatter_update", {"f32[2] (5.0, 6.0)", "i64[1, 1] (-1)", "f32[1] (1.0)"}, {{"from_start", true}}),
            "scatter_update: index -1 is out of range for 2 elements");
  EXPECT_EQ(run("scatter_nd", {"i64[1, 1] (3)", "f32[1] (1.0)", "i64[1] (3)"}),
            "scatter_nd: index 3 is out of range for 3 elements");
  EXPECT_EQ(run("reshape", {"f32[2] (1.0, 2.0)", "i64[1] (3)"}), "reshape: f32[2] cannot have shape [3]");
  EXPECT_EQ(run("broadcast_to", {"f32[] (1.0)", "i64[2] (1099511627776, 1099511627776)"}),
            "dims [1099511627776, 1099511627776] are not a tensor's");
  EXPECT_EQ(run("top_k", {"f32[1] (1.0)", "i64[] (-1)"}), "top_k: k must not be negative, found -1");
  EXPECT_EQ(run("assert", {"bool[2] (true, false)"}, {{"message", std::string("n must be even")}}),
            "assert: n must be even");
  EXPECT_EQ(run("assert", {"bool[] (false)", "f32[2, 2] (0.1, 2.0, 33333334.0, 4.0)", "i64[] (-7)"},
                {{"message", std::string("failed:")},
                 {"texts", std::vector<std::string>{"", "x"}},
                 {"places", std::vector<int64_t>{1, 3}}}),
            "assert: failed: [] [[0.1 2][33333334...]...] [x] [-7]");
  EXPECT_EQ(run("assert", {"bool[2] (true, true)"}, {{"message", std::string("n must be even")}}), "");
}

TEST(Kernels, AResultOfOtherDimsThanDeclaredIsAnError) {
  const OpDef& op = op_named("reshape");
  std::vector<HostValue> inputs = {{tensor("f32[2] (1.0, 2.0)"), nullptr}, {tensor("i64[2] (1, 2)"), nullptr}};
  std::vector<HostValue> results = {{Tensor::zeros(kF32, {2, 1}), nullptr}};
  KernelContext context(op, {}, inputs, results);
  EXPECT_THROW(op.reference(context), Error);
}

TEST(Kernels, PoolingAllInPaddingGivesTheLeast) {
  Attributes attributes = {{"window", Ints{1, 2}},
                           {"dilations", Ints{1, 3}},
                           {"padding", std::string("explicit")},
                           {"pads", Ints{0, 0, 2, 2}}};
  EXPECT_EQ(run("max_pool2d", {"f32[1, 1, 1, 1] (7.0)"}, attributes), "f32[1, 1, 2, 1] (-inf, -inf)");
}

// The published vectors of Philox 4x32-10, taken through the mantissa bits of random_uniform.
TEST(Kernels, PhiloxGivesItsPublishedWords) {
  const uint64_t all = UINT64_MAX;
  struct {
    std::vector<uint64_t> state;
    std::vector<uint32_t> words;
  } const vectors[] = {{{0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                       {{all, all, all}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}};
  for (const auto& [state, words] : vectors) {
    std::vector<HostValue> inputs = {{Tensor::of(kU64, {3}, state), nullptr}, {tensor("i64[1] (4)"), nullptr}};
    auto results = run_reference(op_named("random_uniform"), {}, inputs);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(results[1].tensor.values<float>()[i], static_cast<float>(words[i] & 0x7fffff) * 0x1p-23f);
    EXPECT_EQ(results[0].tensor.values<uint64_t>()[1], state[1] + 1);
    EXPECT_EQ(results[0].tensor.values<uint64_t>()[2], state[1] == all ? state[2] + 1 : state[2]);
  }
  EXPECT_EQ(run("random_uniform", {"i64[1] (1)", "i64[1] (4)"}), "random_uniform: the random state is not u64[3]");
}

}  // namespace
}  // namespace cairn
