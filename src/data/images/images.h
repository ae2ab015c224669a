// Images: u8 HWC arrays, or HW, from files and in other sizes.
#pragma once

#include "data/array.h"

namespace cairn::data {

struct Box {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// Height and width, from the header alone. Throws Error.
std::pair<int64_t, int64_t> image_size(std::string_view file);
/// RGB of a JPEG, PNG or BMP file. Throws Error.
Array decode_image(std::string_view file);
/// The same pixels of a part; of a JPEG file only that part is decoded.
Array decode_image(std::string_view file, const Box& box);
/// Of u8, 1, 3 or 4 channels.
std::string encode_png(const Array& image);

/// As MindSpore numbers them; pil_cubic is cubic with Pillow's coefficient.
enum class Inter { nearest = 0, antialias = 1, linear = 2, cubic = 3, area = 4, pil_cubic = 5 };

/// As OpenCV defines it: linear of u8 in integers of 11 bits, nearest by the floor, cubic with -0.75, area by cover.
Array resized(const Array& image, int64_t height, int64_t width, Inter inter);

/// Rows `top`, ... of an HW or HWC array. Throws Error where they are not all there.
Array cut(const Array& image, const Box& box);
Array flipped(const Array& image, bool horizontally);
/// Checks that it is HW or HWC; its channels.
int64_t channels_of(const Array& image);

}  // namespace cairn::data
