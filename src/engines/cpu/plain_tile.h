// A tile in plain C++, for processors without AVX2: the specification is followed in the run, where TileKernel else makes code.
#pragma once

#include "engines/cpu/tile_jit.h"

namespace cairn {

/// Floats, and words of integers.
class PlainTile final : public TileKernel {
 public:
  explicit PlainTile(const TileSpec& spec);

 private:
  const TileSpec spec_;
};

}  // namespace cairn
