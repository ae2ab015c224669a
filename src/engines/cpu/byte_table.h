// Bytes replaced by what a table holds for each, with the byte shuffles of the instruction set.
#pragma once

#include <cstdint>

namespace cairn {

/// to[i] = table[from[i]], with 256 entries; `to` may be `from`.
void look_up(int64_t count, const uint8_t* from, const uint8_t* table, uint8_t* to);

}  // namespace cairn
