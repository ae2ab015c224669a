// Placement of buffers in an arena.
#include "plan/memory.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

std::vector<Buffer> random_buffers(unsigned seed, size_t count, size_t steps) {
  std::mt19937 random(seed);
  std::vector<Buffer> buffers(count);
  for (Buffer& buffer : buffers) {
    buffer.bytes = random() % 5000;
    buffer.first = random() % steps;
    buffer.last = std::min(steps, buffer.first + random() % 6);
  }
  return buffers;
}

std::vector<Buffer*> pointers(std::vector<Buffer>& buffers) {
  std::vector<Buffer*> list;
  for (Buffer& buffer : buffers) list.push_back(&buffer);
  return list;
}

TEST(Placement, BuffersAliveTogetherNeverOverlap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    auto buffers = random_buffers(seed, 40, 30);
    Placement placement = place(pointers(buffers), true);
    EXPECT_GE(placement.bytes, placement.live_bytes);
    for (const Buffer& a : buffers) {
      EXPECT_EQ(a.offset % 64, 0u);
      EXPECT_LE(a.offset + a.bytes, placement.bytes);
      for (const Buffer& b : buffers) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << seed;
      }
    }
  }
}

TEST(Placement, AChainNeedsTwoNeighboursOnly) {
  std::vector<Buffer> buffers(10);
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].bytes = 64 * (i + 1);
    buffers[i].first = i;
    buffers[i].last = i + 1;
  }
  Placement placement = place(pointers(buffers), true);
  EXPECT_EQ(placement.live_bytes, 64u * 19);
  EXPECT_EQ(placement.bytes, placement.live_bytes);
  EXPECT_EQ(place(pointers(buffers), false).bytes, 64u * 55);
}

}  // namespace
}  // namespace cairn
