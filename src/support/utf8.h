// Encoding and validation of UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

/// Appends the character as one to four bytes of UTF-8; above U+10FFFF (no character) only the low bits are encoded.
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

/// Size in bytes of the character that `text` begins with; 0 when it is not valid UTF-8 (truncated, overlong, a
/// surrogate).
inline size_t utf8_size(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  const int lead = byte(0);
  if (text.empty() || lead < 0x80) return text.empty() ? 0 : 1;
  const size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  const int least = lead == 0xe0   ? 0xa0
                    : lead == 0xf0 ? 0x90
                                   : 0x80,
            most = lead == 0xed   ? 0x9f
                   : lead == 0xf4 ? 0x8f
                                  : 0xbf;
  if (size != 0 && (byte(1) < least || byte(1) > most)) return 0;
  for (size_t i = 2; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return size;
}

}  // namespace cairn
