// Work grows with the text: counted in bytes allocated, not in seconds. And differences from known edits.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "migrate/options.h"
#include "migrate/reports.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they have allocators of their own

namespace {
std::atomic<uint64_t> g_allocated{0};
}

void* operator new(size_t size) {
  g_allocated += size;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cairn::migrate {
namespace {

// Bytes allocated by a migration of `count` pieces between head and tail, with all reports that are text.
uint64_t allocated(const std::string& head, const std::string& piece, const std::string& tail, int count,
                   const std::string& words) {
  std::string text = head;
  for (int i = 0; i < count; ++i) text += piece;
  text += tail;
  Options options;
  set_options(options, words);
  options.jobs = 1;
  std::vector<Input> inputs;
  inputs.push_back({"script.py", text, ""});
  const uint64_t before = g_allocated;
  Result result = migrate(std::move(inputs), options);
  json_report(result), sarif_report(result), csv_report(result), html_report(result, "x"), diff_report(result);
  EXPECT_NE(result.files[0].state, FileState::failed);
  return g_allocated - before;
}

TEST(linear, twice_the_edits_need_twice_the_memory) {
  struct Shape {
    std::string head, piece, tail, options;
  };
  const std::string tf = "import tensorflow as tf\n";
  const Shape shapes[] = {
      {tf, "s = tf.Session()\n", "", "tf=1"},
      {tf, "s = tf.Session(config=c)\nx = tf.nn.dropout(x, rate=0.1)\n", "", "tf=1"},
      {tf + "x = [", "tf.Session(), ", "]\n", "tf=1"},  // one line
      {tf + "def train(mode):\n", "    d = tf.data.Dataset.range(9).batch(4)\n", "", "tf=1"},
      {tf, "o = tf.train.AdamOptimizer(0.1)\no.minimize(x)\n", "", "tf=1 distributed=tf_strategy"},
      {tf + "import horovod.tensorflow as hvd\n", "x = hvd.size() + hvd.alltoall(x)\n", "", "tf=1"},
      {tf, "x = tf.contrib.no_such.name(x)\n", "", "tf=1"},
  };
  for (const Shape& shape : shapes) {
    const double once = static_cast<double>(allocated(shape.head, shape.piece, shape.tail, 1000, shape.options));
    const double twice = static_cast<double>(allocated(shape.head, shape.piece, shape.tail, 2000, shape.options));
    EXPECT_LT(twice, 2.5 * once) << shape.piece;
  }
}

}  // namespace
}  // namespace cairn::migrate
#endif

namespace cairn::migrate {
namespace {

TEST(linear, differences_from_edits_give_both_texts_back) {
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
