// Image files: their sizes, their pixels, and a part of them.
#include "data/images/images.h"

#include "answers.h"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file = fuzz::text_of(data, size);
  fuzz::expect_answer([&] {
    const auto [height, width] = data::image_size(file);
    if (height * width > 1 << 22) return;  // pixels, which take time alone
    const data::Array image = data::decode_image(file);
    if (image.shape[0] != height || image.shape[1] != width) abort();
    const data::Box box{height / 3, width / 3, std::max<int64_t>(height / 3, 1), std::max<int64_t>(width / 3, 1)};
    if (data::decode_image(file, box).view() != data::cut(image, box).view()) abort();
  });
  return 0;
}
