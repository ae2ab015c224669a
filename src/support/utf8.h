// Unicode characters as bytes.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

/// One to four bytes of UTF-8; of what is above U+10FFFF, which is no character, the low bits.
inline void append_utf8(std::string& text, uint32_t character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
    return;
  }
  const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(kLead[more] | (character >> (6 * more)));
  for (int i = more; i-- > 0;) text += static_cast<char>(0x80 | ((character >> (6 * i)) & 0x3f));
}

}  // namespace cairn
