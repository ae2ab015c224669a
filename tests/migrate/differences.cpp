// Differences between texts whose edits are known.
#include <gtest/gtest.h>

#include <random>

#include "migrate/edits.h"

namespace cairn::migrate {
namespace {

TEST(differences, lines_from_edits_give_both_texts_back) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    std::string before;
    for (size_t i = random() % 60; i > 0; --i) before += "ab\n"[random() % 3];
    std::vector<Edit> edits;
    for (uint32_t at = 0; at <= before.size();) {
      uint32_t end = std::min<uint32_t>(before.size(), at + random() % 4);
      if (random() % 3 == 0) {
        std::string text;
        for (size_t i = random() % 5; i > 0; --i) text += "xb\n"[random() % 3];
        edits.push_back({at, end, text});
      }
      at = end + 1 + random() % 6;
    }
    const std::string after = apply_edits(before, edits);
    std::string old_lines, new_lines;
    uint32_t old_line = 0, new_line = 0;
    for (const DiffLine& line : diff_lines(before, after, edits)) {
      if (line.kind != '+') {
        old_lines += line.text;
        EXPECT_EQ(line.old_line, ++old_line);
      }
      if (line.kind != '-') {
        new_lines += line.text;
        EXPECT_EQ(line.new_line, ++new_line);
      }
    }
    EXPECT_EQ(old_lines, before);
    EXPECT_EQ(new_lines, after);
  }
}

}  // namespace
}  // namespace cairn::migrate
