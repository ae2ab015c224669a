// Pickles made to harm whoever reads them.
#include "data/pickle.h"

#include <gtest/gtest.h>

namespace cairn::data {
namespace {

std::string refusal(const std::string& bytes) {
  try {
    Pickle(bytes, "batch");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(HostilePickle, DeepNestingEndsWithoutRecursion) {
  const size_t deep = 1'000'000;
  EXPECT_EQ(refusal("\x80\x02" + std::string(deep, ']') + std::string(deep - 1, 'a') + "."), "");
}

TEST(HostilePickle, AListInItselfIsHarmless) { EXPECT_EQ(refusal(std::string("]q\0h\0a.", 7)), ""); }

TEST(HostilePickle, TextsDoNotMultiply) {
  std::string bytes("c_codecs\nencode\nq\0T\xa0\x86\x01\0", 23);  // of 100,000 bytes
  bytes += std::string(100'000, 'x') + std::string("q\1\x85q\2", 5);
  for (int i = 0; i < 1000; ++i) bytes += std::string("h\0h\2R0", 6);
  EXPECT_NE(refusal(bytes + ".").find("more texts than the file holds"), std::string::npos) << refusal(bytes + ".");
}

TEST(HostilePickle, WhatIsNotThereIsRefused) {
  for (const char* bytes : {"", "X\xff\xff\xff\xff", ".", "a.", "h\1.", "e.", "R.", "]]R.", "Nb.", "\x85.", "(.", "c1"})
    EXPECT_NE(refusal(bytes).find("Invalid file"), std::string::npos) << bytes << refusal(bytes);
}

}  // namespace
}  // namespace cairn::data
