// Image files: PNG by libpng, BMP here, and which decoder a file needs.
#include <png.h>

#include "data/images/jpeg.h"

namespace cairn::data {

namespace {

bool is_jpeg(std::string_view file) { return file.starts_with("\xff\xd8\xff"); }
bool is_png(std::string_view file) { return file.starts_with("\x89PNG\r\n\x1a\n"); }
bool is_bmp(std::string_view file) { return file.starts_with("BM") && file.size() > 54; }

[[noreturn]] void no_image(std::string_view file) {
  fail(ErrorKind::io, "", "image decode failed, {} bytes that begin with '{}' are neither JPEG, PNG nor BMP",
       file.size(), printable(file.substr(0, 4)));
}

/// libpng's simple interface.
struct Png {
  explicit Png(std::string_view file) {
    image.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image, file.data(), file.size())) damaged();
    if (int64_t{image.height} * image.width > int64_t{1} << 28) {
      png_image_free(&image);
      fail(ErrorKind::unsupported, "", "image decode failed, {} x {} pixels are too many", image.height, image.width);
    }
  }
  ~Png() { png_image_free(&image); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  [[noreturn]] void damaged() {
    const std::string why = image.message;
    png_image_free(&image);
    fail(ErrorKind::io, "", "image decode failed, the PNG data are damaged: {}", why);
  }
  png_image image{};
};

struct PlainPng {  // libpng's full interface, for pixels as they are stored: the simple one would apply alpha and gamma
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view left;
  std::string why;
  Array made;  // here, not in the function: what longjmp leaves keeps its value
  std::vector<png_bytep> lines;
  ~PlainPng() { png_destroy_read_struct(&png, &info, nullptr); }
};

Array decode_png(std::string_view file) {
  PlainPng state;
  state.left = file;
  state.png = png_create_read_struct(
      PNG_LIBPNG_VER_STRING, &state,
      [](png_structp png, png_const_charp message) {
        static_cast<PlainPng*>(png_get_error_ptr(png))->why = message;
        png_longjmp(png, 1);
      },
      [](png_structp, png_const_charp) {});
  state.info = png_create_info_struct(state.png);
  png_set_read_fn(state.png, &state, [](png_structp png, png_bytep to, size_t size) {
    auto& state = *static_cast<PlainPng*>(png_get_io_ptr(png));
    if (state.left.size() < size) png_error(png, "the file ends early");
    std::memcpy(to, state.left.data(), size);
    state.left.remove_prefix(size);
  });
  if (setjmp(png_jmpbuf(state.png)))
    fail(ErrorKind::io, "", "image decode failed, the PNG data are damaged: {}", state.why);
  png_read_info(state.png, state.info);
  const int64_t height = png_get_image_height(state.png, state.info),
                width = png_get_image_width(state.png, state.info);
  png_set_expand(state.png);
  png_set_strip_16(state.png);
  png_set_strip_alpha(state.png);
  png_set_gray_to_rgb(state.png);
  png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  state.made = Array::make(Kind::u8, {height, width, 3});
  for (int64_t y = 0; y < height; ++y) state.lines.push_back(state.made.write<uint8_t>() + y * width * 3);
  if (png_get_rowbytes(state.png, state.info) != static_cast<size_t>(3 * width))
    png_error(state.png, "not three channels");
  png_read_image(state.png, state.lines.data());
  png_read_end(state.png, nullptr);
  return std::move(state.made);
}

int32_t little32(std::string_view file, size_t place) {
  int32_t value = 0;
  std::memcpy(&value, file.data() + place, 4);
  return value;
}

Array decode_bmp(std::string_view file) {
  const int64_t start = static_cast<uint32_t>(little32(file, 10)), width = little32(file, 18);
  int64_t height = little32(file, 22);
  const int64_t bits = static_cast<uint16_t>(little32(file, 28)), packed = little32(file, 30);
  const bool upwards = height > 0;
  height = upwards ? height : -height;
  if ((bits != 24 && bits != 32) || packed)
    fail(ErrorKind::unsupported, "", "image decode failed, a BMP file of {} bits a pixel, packed by {}", bits, packed);
  const int64_t stride = (width * bits / 8 + 3) / 4 * 4;
  if (width < 1 || height < 1 || width > 1 << 20 || height > 1 << 20 || start + stride * height > std::ssize(file))
    fail(ErrorKind::io, "", "image decode failed, the BMP data are damaged: {} x {} pixels in {} bytes", height, width,
         file.size());
  Array made = Array::make(Kind::u8, {height, width, 3});
  for (int64_t y = 0; y < height; ++y) {
    const auto* from = reinterpret_cast<const uint8_t*>(file.data()) + start + stride * (upwards ? height - 1 - y : y);
    uint8_t* to = made.write<uint8_t>() + y * width * 3;
    for (int64_t x = 0; x < width; ++x, from += bits / 8)
      for (int c = 0; c < 3; ++c) *to++ = from[2 - c];
  }
  return made;
}

}  // namespace

std::pair<int64_t, int64_t> image_size(std::string_view file) {
  if (is_jpeg(file)) return jpeg_size(file);
  if (is_png(file)) {
    const Png png(file);
    return {png.image.height, png.image.width};
  }
  if (!is_bmp(file)) no_image(file);
  return {std::abs(int64_t{little32(file, 22)}), little32(file, 18)};
}

Array decode_image(std::string_view file) {
  if (is_jpeg(file)) return decode_jpeg(file, nullptr);
  if (is_bmp(file)) return decode_bmp(file);
  if (!is_png(file)) no_image(file);
  {
    const Png checked(file);  // its size
  }
  return decode_png(file);
}

Array decode_image(std::string_view file, const Box& box) {
  return is_jpeg(file) ? decode_jpeg(file, &box) : cut(decode_image(file), box);
}

std::string encode_png(const Array& image) {
  const int64_t channels = channels_of(image);
  if (image.type.kind != Kind::u8 || image.count() == 0 || (channels != 1 && channels != 3 && channels != 4))
    fail(ErrorKind::invalid_argument, "", "a PNG file holds uint8 of 1, 3 or 4 channels, found {} {}",
         name_of(image.type), text_of(image.shape));
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<uint32_t>(image.shape[0]);
  png.width = static_cast<uint32_t>(image.shape[1]);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string made(size, '\0');
  if (!png_image_write_to_memory(&png, made.data(), &size, 0, image.data, 0, nullptr))
    fail(ErrorKind::io, "", "a picture cannot be made: {}", png.message);
  made.resize(size);
  return made;
}

}  // namespace cairn::data
