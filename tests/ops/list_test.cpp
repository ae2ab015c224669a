// Lists are values: a changed list is another one, and what was kept from a buffer stays when the buffer changes.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/cases.h"

namespace cairn {
namespace {

HostValue value(const std::string& literal) {
  return {std::get<Tensor>(parse_attribute(literal, AttrKind::tensor)), nullptr};
}
HostValue apply(const char* op, const std::vector<HostValue>& inputs, Attributes attributes = {}) {
  return run_reference(op_named(op), attributes, inputs)[0];
}
std::string text(const HostValue& result) { return to_string(Attribute(result.tensor)); }
std::string error_of(const char* op, const std::vector<HostValue>& inputs) {
  try {
    apply(op, inputs);
  } catch (const Error& fault) {
    return fault.what();
  }
  return "no error";
}
HostValue make(int64_t size, const char* element) {
  return apply("list_make", {{Tensor::scalar_i64(size), nullptr}}, {{"element", parse_type(element)}});
}

TEST(Lists, AreValues) {
  HostValue empty = make(0, "f32[2]"), one = apply("list_push", {empty, value("f32[2] (1.0, 2.0)")});
  HostValue two = apply("list_push", {one, value("f32[2] (3.0, 4.0)")});
  HostValue changed = apply("list_set", {two, value("i64[] (0)"), value("f32[2] (9.0, 9.0)")});
  EXPECT_EQ(text(apply("list_size", {one})), "i64[] (1)");
  EXPECT_EQ(text(apply("list_stack", {two})), "f32[2, 2] (1.0, 2.0, 3.0, 4.0)");
  EXPECT_EQ(text(apply("list_stack", {changed})), "f32[2, 2] (9.0, 9.0, 3.0, 4.0)");
  EXPECT_EQ(text(apply("list_get", {two, value("i64[] (1)")})), "f32[2] (3.0, 4.0)");
}

TEST(Lists, AddToAnElementThatIsSet) {
  const Attributes add{{"add", true}};
  const std::vector<HostValue> once{make(2, "f32[2]"), value("i64[] (1)"), value("f32[2] (1.0, 2.0)")};
  HostValue list = apply("list_set", once, add);
  HostValue twice = apply("list_set", {list, value("i64[] (1)"), value("f32[2] (0.5, 0.5)")}, add);
  EXPECT_EQ(text(apply("list_stack", {list})), "f32[2, 2] (0.0, 0.0, 1.0, 2.0)");
  EXPECT_EQ(text(apply("list_stack", {twice})), "f32[2, 2] (0.0, 0.0, 1.5, 2.5)");
}

TEST(Lists, AreAddedElementByElement) {
  HostValue list = apply("list_set", {make(3, "f32[2]"), value("i64[] (0)"), value("f32[2] (1.0, 2.0)")});
  HostValue other = apply("list_set", {list, value("i64[] (2)"), value("f32[2] (5.0, 6.0)")});
  EXPECT_EQ(text(apply("list_stack", {apply("list_add", {list, other})})), "f32[3, 2] (2.0, 4.0, 0.0, 0.0, 5.0, 6.0)");
  EXPECT_EQ(text(apply("list_stack", {apply("list_zeros", {other})})), "f32[3, 2] (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)");
  EXPECT_EQ(error_of("list_get", {apply("list_zeros", {make(2, "f32[?]")}), value("i64[] (0)")}),
            "list_get: element 0 was never set");
  EXPECT_EQ(error_of("list_add", {list, make(2, "f32[2]")}), "list_add: lists of 3 and 2 elements cannot be added");
}

TEST(Lists, AreMadeShorterAndLonger) {
  HostValue list = apply("list_unstack", {value("f32[3, 1] (1.0, 2.0, 3.0)")});
  EXPECT_EQ(text(apply("list_stack", {apply("list_resize", {list, value("i64[] (2)")})})), "f32[2, 1] (1.0, 2.0)");
  HostValue longer = apply("list_resize", {apply("list_resize", {list, value("i64[] (1)")}), value("i64[] (3)")});
  EXPECT_EQ(text(apply("list_stack", {longer})), "f32[3, 1] (1.0, 0.0, 0.0)");
  EXPECT_EQ(text(apply("list_stack", {apply("list_unset", {list, value("i64[] (1)")})})), "f32[3, 1] (1.0, 0.0, 3.0)");
  EXPECT_EQ(text(apply("list_size", {apply("list_unset", {list, value("i64[] (7)")})})), "i64[] (3)");
}

TEST(Lists, OfPartsOfDifferentLengthsAreJoinedAndTakenApart) {
  HostValue x = value("f32[3, 2] (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)");
  HostValue parts = apply("list_split", {x, value("i64[3] (2, 0, 1)")});
  EXPECT_EQ(text(apply("list_lengths", {parts})), "i64[3] (2, 0, 1)");
  EXPECT_EQ(text(apply("list_get", {parts, value("i64[] (2)")})), "f32[1, 2] (5.0, 6.0)");
  EXPECT_EQ(text(apply("list_concat", {parts})), text(x));
  EXPECT_EQ(error_of("list_split", {x, value("i64[2] (2, 2)")}),
            "list_split: a part of 2 rows is asked for, 1 are left");
  EXPECT_EQ(error_of("list_split", {x, value("i64[1] (2)")}), "list_split: the parts have 2 rows, x has 3");
}

TEST(Lists, GiveZerosLikeAnotherForUnsetElements) {
  HostValue list = make(1, "f32[?]");
  const Attributes grow{{"grow", true}};
  for (const char* index : {"i64[] (0)", "i64[] (5)"})
    EXPECT_EQ(text(apply("list_get", {list, value(index), value("f32[2] (1.0, 2.0)")}, grow)), "f32[2] (0.0, 0.0)");
}

TEST(Lists, ThatWereCopiedStayAsTheyWereWhenTheCopyChanges) {
  HostValue list = make(0, "i64[]");
  std::vector<HostValue> before;
  for (int64_t i = 0; i < 100; ++i) {  // over several chunks
    before.push_back(list);
    list = apply("list_push", {list, {Tensor::scalar_i64(i / 2), nullptr}});
  }
  for (size_t i = 100; i-- > 0;) {
    list = run_reference(op_named("list_pop"), {}, std::vector<HostValue>{list})[0];
    list = apply("list_push", {list, value("i64[] (-1)")});
    list = run_reference(op_named("list_pop"), {}, std::vector<HostValue>{list})[0];
    EXPECT_EQ(text(apply("list_size", {list})), fmt::format("i64[] ({})", i));
    EXPECT_EQ(text(apply("list_size", {before[i]})), fmt::format("i64[] ({})", i));
    if (i == 0) break;
    const HostValue last{Tensor::scalar_i64(static_cast<int64_t>(i) - 1), nullptr};
    EXPECT_EQ(text(apply("list_get", {before[i], last})), fmt::format("i64[] ({})", (i - 1) / 2));
    EXPECT_EQ(text(apply("list_get", {list, last})), fmt::format("i64[] ({})", (i - 1) / 2));
  }
}

TEST(Lists, KeepCopiesOfBorrowedBuffers) {
  float buffer[2] = {1, 2};
  HostValue list = apply("list_push", {make(0, "f32[2]"), {Tensor::view(kF32, {2}, buffer, nullptr), nullptr}});
  buffer[0] = 7;
  EXPECT_EQ(text(apply("list_get", {list, value("i64[] (0)")})), "f32[2] (1.0, 2.0)");
}

TEST(Lists, UnsetElementsAreZerosOfTheDeclaredDims) {
  EXPECT_EQ(text(apply("list_get", {make(2, "f32[2]"), value("i64[] (1)")})), "f32[2] (0.0, 0.0)");
  EXPECT_EQ(error_of("list_get", {make(2, "f32[?]"), value("i64[] (1)")}), "list_get: element 1 was never set");
  HostValue list = apply("list_set", {make(2, "f32[?]"), value("i64[] (1)"), value("f32[2] (1.0, 2.0)")});
  EXPECT_EQ(text(apply("list_stack", {list})), "f32[2, 2] (0.0, 0.0, 1.0, 2.0)");
  EXPECT_EQ(text(apply("list_stack", {make(0, "i64[3]")})), "i64[0, 3] ()");
}

TEST(Lists, ComeApartAndTogether) {
  HostValue parts = apply("list_unstack", {value("i64[2, 2] (1, 2, 3, 4)")});
  EXPECT_EQ(text(apply("list_get", {parts, value("i64[] (1)")})), "i64[2] (3, 4)");
  EXPECT_EQ(text(apply("list_concat", {parts})), "i64[4] (1, 2, 3, 4)");
  EXPECT_EQ(text(apply("list_stack", {apply("list_unstack", {value("str[2] (\"a\", \"b\")")})})),
            "str[2] (\"a\", \"b\")");
}

TEST(Lists, RefuseInWords) {
  HostValue list = make(2, "f32[2]");
  EXPECT_EQ(error_of("list_get", {list, value("i64[] (2)")}), "list_get: index 2 is out of range for 2 elements");
  EXPECT_EQ(error_of("list_get", {list, value("i64[] (-1)")}), "list_get: index -1 is out of range for 2 elements");
  EXPECT_EQ(error_of("list_push", {list, value("f32[3] (1.0, 2.0, 3.0)")}),
            "list_push: an element is f32[2], found f32[3]");
  EXPECT_EQ(error_of("list_size", {HostValue()}), "list_size: the list is undefined");
  HostValue ragged =
      apply("list_push", {apply("list_push", {make(0, "f32[?]"), value("f32[1] (1.0)")}), value("f32[2] (1.0, 2.0)")});
  EXPECT_EQ(error_of("list_stack", {ragged}), "list_stack: elements differ: f32[1] and f32[2]");
  EXPECT_EQ(text(apply("list_concat", {ragged})), "f32[3] (1.0, 1.0, 2.0)");
}

}  // namespace
}  // namespace cairn
