// The parameter block of dynamic image preprocessing (AIPP): 64 bytes for all images, then 96 bytes for each image,
// little-endian, as the platform's runtime passes it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cairn {

/// Image formats, with the numbers that AIPP configurations and blocks use.
enum AippFormat : int64_t {
  kYuv420 = 1,
  kXrgb = 2,
  kRgb = 3,
  kYuv400 = 4,
  kArgb = 7,
  kYuyv = 8,
  kYuv422 = 9,
  kAyuv = 10
};

constexpr bool aipp_is_yuv(int64_t format) {
  return format == kYuv420 || format == kYuyv || format == kYuv422 || format == kAyuv;
}
constexpr int64_t aipp_channels(int64_t format) {
  if (format == kYuv400) return 1;
  return format == kXrgb || format == kArgb || format == kAyuv ? 4 : 3;
}

struct AippHeader {
  static constexpr size_t kBytes = 64;
  uint8_t format;
  int8_t convert, swap_rb, swap_alpha, images;
  int8_t reserved1[3];
  int32_t width, height;
  int16_t matrix[9];
  int16_t reserved2[3];
  uint8_t output_bias[3], input_bias[3];
  uint8_t reserved3[18];
};
static_assert(sizeof(AippHeader) == AippHeader::kBytes);

struct AippImage {
  static constexpr size_t kBytes = 96;
  int8_t crop, resize, pad, rotate;
  int8_t reserved1[4];
  int32_t crop_left, crop_top, crop_width, crop_height;
  int32_t resize_sizes[4];
  int32_t pad_top, pad_bottom, pad_left, pad_right;
  int16_t mean[4];
  uint16_t least[4], factor[4];  // 16-bit floats
  int8_t reserved2[16];
};
static_assert(sizeof(AippImage) == AippImage::kBytes);

}  // namespace cairn
