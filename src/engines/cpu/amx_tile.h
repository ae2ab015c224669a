// Tiles on matrix registers (AMX): the sums of up to 32 pixels by 32 channels in four registers of 16 x 16.
#pragma once

#include <memory>

#include "engines/cpu/tile_code.h"

namespace cairn {

/// For a specification with groups. Its code runs while MatrixRegisters live.
std::unique_ptr<TileCode> make_amx_tile(const TileSpec& spec);

}  // namespace cairn
