// test_passes [--update]: with --update the expected texts of tests/passes/*.test are written anew; review reads the diff.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "passes/refusals.h"

namespace cairn::test {
bool update_texts = false;
}

namespace {

// No test may leave a replacement that an op refused.
class NoRefusals final : public testing::EmptyTestEventListener {
 public:
  NoRefusals() : path_(testing::TempDir() + "cairn_refused_" + std::to_string(getpid())) {
    setenv("CAIRN_REFUSED_REPLACEMENTS", path_.c_str(), 1);
  }

 private:
  void OnTestEnd(const testing::TestInfo&) override {
    cairn::take_refusals();  // of rules applied without the pipeline
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) ADD_FAILURE() << "refused replacement: " << line;
    std::remove(path_.c_str());
  }
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--update") cairn::test::update_texts = true;
  testing::UnitTest::GetInstance()->listeners().Append(new NoRefusals);
  return RUN_ALL_TESTS();
}
