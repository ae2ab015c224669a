// JPEG files by libjpeg-turbo.
#pragma once

#include "data/images/images.h"

namespace cairn::data {

std::pair<int64_t, int64_t> jpeg_size(std::string_view file);
/// `box` null: all.
Array decode_jpeg(std::string_view file, const Box* box);

}  // namespace cairn::data
