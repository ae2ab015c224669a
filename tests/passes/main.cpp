// test_passes [--update]: with --update the expected texts of tests/passes/*.test are written anew; review reads the diff.
#include <gtest/gtest.h>

#include <string_view>

namespace cairn::test {
bool update_texts = false;
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--update") cairn::test::update_texts = true;
  return RUN_ALL_TESTS();
}
