// Shape rules on symbols and unknown dims, and what they refuse.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/text.h"

namespace cairn {
namespace {

// Result types of `op`, or the refusal. Inputs read "f32[?n, 3]"; a tensor literal "i64[2] (1, 2)" is a constant.
std::string infer(const char* op, const std::vector<std::string>& inputs, Attributes attributes = {}) {
  Block block;
  Builder builder(block);
  std::vector<Value*> values;
  for (const std::string& input : inputs)
    values.push_back(input.find('(') == std::string::npos
                         ? block.add_param(parse_type(input), "x")
                         : builder.constant(std::get<Tensor>(parse_attribute(input, AttrKind::tensor))));
  try {
    std::string text;
    for (const Type& type : infer_types(op_named(op), values, attributes))
      text += (text.empty() ? "" : "; ") + to_string(type);
    return text;
  } catch (const Error& fault) {
    EXPECT_EQ(fault.kind(), ErrorKind::invalid_model);
    return fault.what();
  }
}
using Ints = std::vector<int64_t>;

TEST(Shapes, BroadcastingKeepsWhatIsSure) {
  EXPECT_EQ(infer("add", {"f32[?n, 3]", "f32[3]"}), "f32[?n, 3]");
  EXPECT_EQ(infer("add", {"f32[?n, 1]", "f32[?n, ?m]"}), "f32[?n, ?m]");
  EXPECT_EQ(infer("add", {"f32[?n]", "f32[?m]"}), "f32[?]");
  EXPECT_EQ(infer("add", {"f32[?n]", "f32[7]"}), "f32[7]");
  EXPECT_EQ(infer("add", {"f32[?]", "f32[?]"}), "f32[?]");
  EXPECT_EQ(infer("add", {"f32[*]", "f32[3]"}), "f32[*]");
  EXPECT_EQ(infer("less", {"i64[2, 1]", "i64[0]"}), "bool[2, 0]");
  EXPECT_EQ(infer("add", {"f32[2, 3]", "f32[2]"}), "add: shapes [2, 3] and [2] do not broadcast");
  EXPECT_EQ(infer("add", {"f32[2]", "i32[2]"}), "add: inputs must have one element type, found f32 and i32");
  EXPECT_EQ(infer("exp", {"i32[2]"}), "exp: input x must be floats, found i32[2]");
  EXPECT_EQ(infer("add", {"c64[2]", "c64[2]"}), "add: c64 elements are not supported");
}

TEST(Shapes, ContractionsCarryTheBatch) {
  EXPECT_EQ(infer("matmul", {"f32[?n, 3]", "f32[3, 4]"}), "f32[?n, 4]");
  EXPECT_EQ(infer("matmul", {"f32[?b, 1, ?n, 3]", "f32[5, 3, ?m]"}), "f32[?b, 5, ?n, ?m]");
  EXPECT_EQ(infer("matmul", {"f32[3, ?n]", "f32[?, 3]"}, {{"transpose_a", true}, {"transpose_b", true}}), "f32[?n, ?]");
  EXPECT_EQ(infer("matmul", {"f32[2, 3]", "f32[4, 5]"}),
            "matmul: inner dims must agree, found 3 and 4 in f32[2, 3] and f32[4, 5]");
  EXPECT_EQ(infer("matmul", {"f32[3]", "f32[3, 5]"}), "matmul: input 0 must have at least 2 dims, found f32[3]");
  EXPECT_EQ(infer("conv2d", {"f32[?n, ?h, 9, 3]", "f32[3, 3, 3, 8]"}, {{"padding", std::string("same")}}),
            "f32[?n, ?h, 9, 8]");
  EXPECT_EQ(infer("conv2d", {"f32[?n, ?h, 9, 3]", "f32[3, 3, 3, 8]"}), "f32[?n, ?, 7, 8]");
  EXPECT_EQ(infer("conv2d", {"f32[?n, ?h, 9, 3]", "f32[3, 3, 3, 8]"},
                  {{"padding", std::string("explicit")}, {"pads", Ints{1, 1, 0, 0}}}),
            "f32[?n, ?h, 7, 8]");
  EXPECT_EQ(infer("conv2d", {"f32[1, 9, 9, 3]", "f32[3, 3, 64, 8]"}),
            "conv2d: kernel has 64 input channels, input has 3");
  EXPECT_EQ(infer("conv2d", {"f32[1, 2, 9, 3]", "f32[5, 3, 3, 8]"}),
            "conv2d: window of 5 does not fit 2 elements with padding 0 and 0");
  EXPECT_EQ(infer("conv2d", {"f32[1, 9, 9, 3]", "f32[3, 3, 3, 8]"}, {{"strides", Ints{0, 1}}}),
            "conv2d: stride must be at least 1, found 0");
  EXPECT_EQ(infer("conv2d", {"f32[1, 9, 9, 3]", "f32[3, 3, 3, 8]"}, {{"strides", Ints{2}}}),
            "conv2d: strides must have 2 values, found 1");
}

TEST(Shapes, CountsOfWhatIsReceivedDoNotOverflow) {
  const auto received = [](const std::string& count, const std::string& place) {
    const std::string one = "i64[1] (1)", none = "i64[1] (0)";
    return infer("all_to_all_v", {"f32[4]", one, none, "i64[1] (" + count + ")", "i64[1] (" + place + ")"});
  };
  EXPECT_EQ(received("3", "4"), "f32[7]");
  EXPECT_NE(received("4611686018427387904", "9223372036854775807").find("cannot be received"), std::string::npos);
  EXPECT_NE(received("-1", "0").find("cannot be received"), std::string::npos);
}

TEST(Shapes, ReshapeFindsTheSymbolBehindMinusOne) {
  EXPECT_EQ(infer("reshape", {"f32[?n, 8, 8, 16]", "i64[2] (-1, 1024)"}), "f32[?n, 1024]");
  EXPECT_EQ(infer("reshape", {"f32[?n, 8]", "i64[2] (-1, 4)"}), "f32[?, 4]");
  EXPECT_EQ(infer("reshape", {"f32[?n, 8]", "i64[3]"}), "f32[?, ?, ?]");
  EXPECT_EQ(infer("reshape", {"f32[?n, 8]", "i64[?]"}), "f32[*]");
  EXPECT_EQ(infer("reshape", {"f32[6]", "i64[2] (4, -1)"}), "reshape: f32[6] cannot have shape [4, ?]");
  EXPECT_EQ(infer("reshape", {"f32[4, 0, 6]", "i64[3] (0, -1, 3)"}), "f32[0, 8, 3]");
  EXPECT_EQ(infer("reshape", {"f32[4, 0]", "i64[3] (0, -1, 3)"}),
            "reshape: -1 in shape [0, ?, 3] is ambiguous: the other sizes hold no elements");
  EXPECT_EQ(infer("reshape", {"f32[6]", "i64[2] (-1, -1)"}), "reshape: shape has more than one -1");
  EXPECT_EQ(infer("reshape", {"f32[?]", "i64[3] (1099511627776, 1099511627776, 2)"}),
            "reshape: shape [1099511627776, 1099511627776, 2] is too large");
}

TEST(Shapes, SlicesKeepWholeAxes) {
  EXPECT_EQ(infer("slice", {"f32[?n, 8]", "i64[2] (0, 2)", "i64[2] (9223372036854775807, -1)"}), "f32[?n, 5]");
  EXPECT_EQ(infer("slice", {"f32[?n, 8]", "i64[2] (0, 2)", "i64[2] (5, 4)"}), "f32[?, 2]");
  EXPECT_EQ(infer("slice", {"f32[?n]", "i64[1] (-1)", "i64[1] (-9223372036854775808)"}, {{"steps", Ints{-1}}}),
            "f32[?n]");
  EXPECT_EQ(infer("slice", {"f32[5]", "i64[1] (0)", "i64[1] (5)"}, {{"steps", Ints{0}}}), "slice: a step is 0");
  EXPECT_EQ(infer("slice", {"f32[5]", "i64[2] (0, 0)", "i64[1] (5)"}),
            "slice: bounds and dims must agree, found 2 and 1");
}

TEST(Shapes, MovementRules) {
  EXPECT_EQ(infer("concat", {"f32[?n, 2]", "f32[?, 3]"}, {{"axis", int64_t{1}}}), "f32[?n, 5]");
  EXPECT_EQ(infer("concat", {"f32[?n, 2]", "f32[0, 2]"}, {{"axis", int64_t{0}}}), "f32[?n, 2]");
  EXPECT_EQ(infer("concat", {"f32[1, 2]", "f32[1, 3]"}, {{"axis", int64_t{0}}}),
            "concat: sizes outside the axis must agree, found 2 and 3");
  EXPECT_EQ(infer("transpose", {"f32[?n, 2, ?c]"}, {{"permutation", Ints{2, 0, 1}}}), "f32[?c, ?n, 2]");
  EXPECT_EQ(infer("transpose", {"f32[2, 3]"}, {{"permutation", Ints{0, 0}}}), "transpose: axis 0 is named twice");
  EXPECT_EQ(infer("pad", {"f32[?n, 4]", "i64[2, 2] (0, 0, 1, 2)"}), "f32[?n, 7]");
  EXPECT_EQ(infer("pad", {"f32[4]", "i64[1, 2] (-1, 0)"}), "pad: pads must not be negative, found -1 and 0");
  EXPECT_EQ(infer("tile", {"f32[?n, 4]", "i64[2] (1, 3)"}), "f32[?n, 12]");
  EXPECT_EQ(infer("gather", {"f32[?n, 4]", "i64[?k, 2]"}, {{"axis", int64_t{1}}}), "f32[?n, ?k, 2]");
  EXPECT_EQ(infer("gather_nd", {"f32[?n, 4, 5]", "i64[?k, 2]"}), "f32[?k, 5]");
  EXPECT_EQ(infer("one_hot", {"i64[?n]", "i64[] (3)", "f32[]", "f32[]"}), "f32[?n, 3]");
  EXPECT_EQ(infer("broadcast_to", {"f32[3]", "i64[1] (4)"}), "broadcast_to: f32[3] does not broadcast to [4]");
  EXPECT_EQ(infer("reduce_sum", {"f32[?n, 3, ?m]"}, {{"axes", Ints{1}}, {"keep_dims", true}}), "f32[?n, 1, ?m]");
  EXPECT_EQ(infer("reduce_sum", {"f32[2]"}, {{"axes", Ints{1}}}), "reduce_sum: axis 1 is out of range for 1 dims");
  EXPECT_EQ(infer("top_k", {"f32[?n, 8]", "i64[] (3)"}), "f32[?n, 3]; i64[?n, 3]");
  EXPECT_EQ(infer("top_k", {"f32[2]", "i64[] (3)"}), "top_k: k is 3, there are 2 elements");
  EXPECT_EQ(infer("non_zero", {"f32[2, ?n]"}), "i64[?, 2]");
  EXPECT_EQ(infer("shape_of", {"f32[2, ?n]"}), "i64[2]");
  EXPECT_EQ(infer("iota", {"i64[] (0)", "i64[] (5)", "i64[] (0)"}, {{"dtype", kI64}}), "iota: step is 0");
  EXPECT_EQ(infer("list_push", {"list<f32[2]>", "f32[3]"}), "list_push: an element is f32[2], found f32[3]");
  EXPECT_EQ(infer("batch_norm", {"f32[?, ?, ?, ?]", "f32[8]", "f32[8]", "f32[8]", "f32[8]"}, {{"epsilon", 0.1}}),
            "f32[?, ?, ?, 8]");
}

TEST(Shapes, ControlFlowJoinsItsRegions) {
  auto error_of = [](const std::string& body) -> std::string {
    try {
      parse("module @m {\n func @main(%p: bool[], %x: f32[?n]) -> (%y: f32[*]) {\n" + body + "\n return %y\n }\n}");
    } catch (const Error& fault) {
      return fault.message();
    }
    return "no error";
  };
  const std::string keep = "region(%a: f32[?n]) { yield %a }\n",
                    scalar = "region(%b: f32[?n]) { %z = constant {value = f32[2] (1.0, 2.0)} : f32[2]\n yield %z }\n";
  EXPECT_EQ(error_of("%y = if %p, %x : f32[?]\n" + keep + scalar), "no error");
  EXPECT_EQ(error_of("%y = if %p, %x : f32[?]\n" + keep + "region(%b: i32[?n]) { yield %b }\n"),
            "if: the else region takes i32[?n] as value 0, found f32[?n]");
  EXPECT_EQ(error_of("%y = if %p, %x : f32[?]\n" + keep +
                     "region() { %c = constant {value = f32[0] ()} : f32[0]\n yield %c }\n"),
            "if: the else region takes 1 values, found 0");
  EXPECT_EQ(error_of("%y = while %x {carried = 2} : f32[?]\n" + keep + keep),
            "while: 2 values are carried, there are 1");
  EXPECT_EQ(error_of("%y = while %x {carried = 1} : f32[?]\n" + keep + keep),
            "while: condition must be bool[], found f32[?n]");
}

}  // namespace
}  // namespace cairn
