// A tile in plain C++, for processors without AVX2: the specification is followed in the run, where TileKernel else makes code.
#pragma once

#include "engines/cpu/tile_jit.h"

namespace cairn {

/// Blocks of a run (TileSpec::block_steps) whose sums are added to each other before their sum is added to the total: a power of 2.
/// Generated code and this do the same.
inline constexpr int kBlocksTogether = 64;

/// Floats, and words of integers.
class PlainTile final : public TileKernel {
 public:
  explicit PlainTile(const TileSpec& spec);

 private:
  const TileSpec spec_;
};

}  // namespace cairn
