// What an Error says is one clean line, whatever a file put into it.
#include "support/error.h"

#include <gtest/gtest.h>

#include "support/report.h"

namespace cairn {
namespace {

TEST(Errors, AreOneCleanLine) {
  const Error error(ErrorKind::invalid_model, "a\nb.pb", "node 'x\x1b[31m\x7f' of \xff type \xc3\xa9");
  EXPECT_EQ(error.where(), "a\\x0ab.pb");
  EXPECT_STREQ(error.what(), "a\\x0ab.pb: node 'x\\x1b[31m\\x7f' of \\xff type \xc3\xa9");
}

TEST(Errors, ShowTheLinesOfWhatAProgramSaid) {
  EXPECT_STREQ(Error(ErrorKind::io, "a", "said:\none\ntwo", Error::AsItIs{}).what(), "a: said:\none\ntwo");
}

TEST(Errors, KeepWholeCharactersOnly) {
  EXPECT_EQ(clean("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(clean("\xe2\x82"), "\\xe2\\x82");                    // cut off
  EXPECT_EQ(clean("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(clean("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(clean("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

}  // namespace
}  // namespace cairn
