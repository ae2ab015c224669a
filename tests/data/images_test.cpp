// Parts of JPEG files, and resized images against their definitions.
#include "data/images/images.h"

#include <gtest/gtest.h>

#include "data/random.h"
#include "support/files.h"

namespace cairn::data {
namespace {

std::string waves() { return read_file(CAIRN_SOURCE_DIR "/tests/python/data/waves.jpg"); }

TEST(Images, APartOfAJpegFileHasThePixelsOfTheWhole) {
  const std::string file = waves();
  const Array whole = decode_image(file);
  ASSERT_EQ(whole.shape, (Shape{72, 96, 3}));
  EXPECT_EQ(image_size(file), (std::pair<int64_t, int64_t>{72, 96}));
  Random random{1};
  for (int i = 0; i < 300; ++i) {
    Box box;
    box.height = 1 + random.below(72), box.width = 1 + random.below(96);
    box.top = random.below(72 - box.height + 1), box.left = random.below(96 - box.width + 1);
    ASSERT_EQ(decode_image(file, box).view(), cut(whole, box).view())
        << box.top << " " << box.left << " " << box.height << " " << box.width;
  }
}

TEST(Images, PngComesBackAsItWas) {
  const Array image = decode_image(waves());
  EXPECT_EQ(decode_image(encode_png(image)).view(), image.view());
}

TEST(Images, LinearResizingOfFloatsInterpolates) {
  Array line = Array::make(Kind::f32, {1, 2, 1});
  line.write<float>()[0] = 0, line.write<float>()[1] = 1;
  const Array made = resized(line, 1, 4, Inter::linear);
  const float expected[] = {0, 0.25, 0.75, 1};
  for (int i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(made.as<float>()[i], expected[i]);
}

TEST(Images, AConstantImageStaysConstant) {
  Random random{2};
  for (Inter inter : {Inter::nearest, Inter::linear, Inter::cubic, Inter::area})
    for (int i = 0; i < 50; ++i) {
      const int64_t height = 1 + random.below(40), width = 1 + random.below(40);
      Array image = Array::make(Kind::u8, {height, width, 3});
      std::memset(image.bytes(), 200, image.size());
      const Array made = resized(image, 1 + random.below(40), 1 + random.below(40), inter);
      for (int64_t k = 0; k < made.count(); ++k) ASSERT_EQ(made.as<uint8_t>()[k], 200) << static_cast<int>(inter);
    }
}

TEST(Images, FilesThatAreNoneAreRefused) {
  EXPECT_THROW(decode_image(""), Error);
  EXPECT_THROW(decode_image("text"), Error);
  EXPECT_THROW(decode_image(waves().substr(0, 900)), Error);
}

}  // namespace
}  // namespace cairn::data
