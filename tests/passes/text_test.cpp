// Text in, text out: each tests/passes/*.test names passes, a function before and after them; what both compute is compared
// as well, and where source nodes went.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autodiff/prune.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "passes/provenance.h"
#include "passes/rules.h"
#include "passes/support.h"

namespace cairn::test {
extern bool update_texts;
}

namespace cairn {
namespace {

struct Case {
  std::string title, passes, in, out;
};

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// "# title", "passes: a, b", "in:" and "out:" sections in this order.
Case parse_case(const std::string& text) {
  size_t passes = text.find("\npasses:"), in = text.find("\nin:\n"), out = text.find("\nout:\n");
  if (text.compare(0, 2, "# ") != 0 || passes == text.npos || in == text.npos || out == text.npos)
    throw std::runtime_error("a test has a title, passes:, in: and out:");
  return {text.substr(2, passes - 2), text.substr(passes + 9, in - passes - 9), text.substr(in + 5, out - in - 4),
          text.substr(out + 6)};
}

void run_pass(Module& module, const std::string& name) {
  if (name == "optimise") {
    optimise(module);
    return;
  }
  if (name == "inline_calls")
    inline_calls(module);
  else if (name == "lift_state")
    lift_state(module);
  else if (name == "infer_types")
    infer_block(module.main().body, &module);
  else if (name == "take_constant_branches")
    take_constant_branches(module.main().body, module);
  else if (name == "simplify_captures")
    simplify_captures(module.main().body, module);
  else if (name == "hoist_invariants")
    hoist_invariants(module.main().body);
  else if (name == "merge_equal_nodes")
    merge_equal_nodes(module.main().body, module);
  else if (name == "sink_transposes")
    sink_transposes(module.main().body, module);
  else if (name == "sink_reshapes")
    sink_reshapes(module.main().body, module);
  else if (name == "pad_unique")
    pad_unique(module.main().body, module);
  else if (name == "fuse_gathers")
    fuse_gathers(module.main().body, module);
  else if (name == "fold_constants")
    fold_constants(module.main().body, &module);
  else if (name == "remove_dead")
    remove_dead(module.main().body, &module);
  else if (name == "drop_unused_results")
    prune(module.main().body, module);
  else if (name == "simplify")
    simplify(module.main().body, &module, {});
  else
    FAIL() << "no pass " << name;
}

std::vector<std::filesystem::path> test_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE_DIR "/tests/passes"))
    if (entry.path().extension() == ".test") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Text : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Text, ComesOutAsWritten) {
  std::string text = read(GetParam());
  Case test = parse_case(text);
  Module before = test::parse_short(test.in);
  Module after = clone(before);
  std::istringstream names(test.passes);
  for (std::string name; std::getline(names, name, ',');) {
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    run_pass(after, name);
    verify(after);
  }
  SourceGraph(before).explain(after);
  std::string found = after.functions.size() == 1 && before.sources.empty() ? print(after.main()) : print(after).text;
  if (test::update_texts && found != test.out) {
    std::ofstream(GetParam()) << text.substr(0, text.find("\nout:\n") + 6) << found;
    GTEST_SKIP() << "expected text written anew";
  }
  EXPECT_EQ(found, test.out) << test.title;
  EXPECT_EQ(test::random_check(before, after), "");
  for (const std::string& fault : check_provenance(before, after)) ADD_FAILURE() << fault;
}

INSTANTIATE_TEST_SUITE_P(Passes, Text, testing::ValuesIn(test_files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace cairn
