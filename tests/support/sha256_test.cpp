// SHA-256 against the examples of FIPS 180-2, in one piece and in several.
#include "support/sha256.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::string digest(std::initializer_list<std::string_view> pieces) {
  Sha256 hash;
  for (std::string_view piece : pieces) hash.add(piece);
  return hash.digest();
}

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(digest({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest({"abc"}), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest({"abcdbcdecdefdefgefghfghighijhijk", "ijkljklmklmnlmnomnopnopq"}),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, TakesNothingBetweenPieces) { EXPECT_EQ(digest({"a", std::string_view(), "bc"}), digest({"abc"})); }

}  // namespace
}  // namespace cairn
