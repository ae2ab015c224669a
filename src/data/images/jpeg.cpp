// JPEG files by libjpeg-turbo: whole or in part, with the pixels of a whole decode either way.
#include "data/images/jpeg.h"

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

namespace cairn::data {

namespace {

/// libjpeg's faults leave by longjmp, so nothing between must have a destructor.
struct Faults {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* faults = reinterpret_cast<Faults*>(info->err);
  info->err->format_message(info, faults->message);
  std::longjmp(faults->jump, 1);
}

/// Data that end early would give grey pixels; other warnings are of no harm.
void warned(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER)) leave(info);
}

class Jpeg {
 public:
  explicit Jpeg(std::string_view file) {
    info_.err = jpeg_std_error(&faults_.manager);
    faults_.manager.error_exit = leave;
    faults_.manager.emit_message = warned;
    faults_.message[0] = 0;
    guarded([&] {
      jpeg_create_decompress(&info_);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_read_header(&info_, TRUE);
    });
    if (int64_t{info_.image_height} * info_.image_width > int64_t{1} << 28)
      fail(ErrorKind::unsupported, "", "image decode failed, {} x {} pixels are too many", info_.image_height,
           info_.image_width);
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }

  Array decode(const Box& box) {
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four ? JCS_CMYK : JCS_RGB;
    // Chroma is interpolated from its neighbours: two pixels to each side make the edges of the part exact.
    JDIMENSION left = static_cast<JDIMENSION>(std::max<int64_t>(box.left - 2, 0));
    JDIMENSION width = static_cast<JDIMENSION>(std::min(box.left + box.width + 2, this->width())) - left;
    const auto top = static_cast<JDIMENSION>(box.top);
    guarded([&] {
      jpeg_start_decompress(&info_);
      if (width < info_.output_width) jpeg_crop_scanline(&info_, &left, &width);
      if (top > 0) jpeg_skip_scanlines(&info_, top);
    });
    const int64_t channels = info_.output_components, inner = box.left - left;
    Array lines = Array::make(Kind::u8, {int64_t{info_.output_width} * channels});
    Array made = Array::make(Kind::u8, {box.height, box.width, 3});
    auto* line = lines.write<uint8_t>();
    for (int64_t y = 0; y < box.height; ++y) {
      uint8_t* to = made.write<uint8_t>() + y * box.width * 3;
      JSAMPROW target = !four && info_.output_width == box.width ? to : line;
      guarded([&] { jpeg_read_scanlines(&info_, &target, 1); });
      if (target == to) continue;
      const uint8_t* from = line + inner * channels;
      if (!four)
        std::memcpy(to, from, static_cast<size_t>(box.width) * 3);
      else
        for (int64_t x = 0; x < box.width; ++x)  // Adobe's, which are inverted
          for (int c = 0; c < 3; ++c)
            to[3 * x + c] = static_cast<uint8_t>((from[4 * x + c] * from[4 * x + 3] + 127) / 255);
    }
    return made;
  }

 private:
  template <class F>
  void guarded(F&& call) {
    if (!try_call(call)) fail(ErrorKind::io, "", "image decode failed, the JPEG data are damaged: {}", faults_.message);
  }
  template <class F>
  bool try_call(F& call) {
    if (setjmp(faults_.jump)) return false;
    call();
    return true;
  }

  /// Freed where the constructor throws as well.
  struct Info : jpeg_decompress_struct {
    Info() : jpeg_decompress_struct() {}
    ~Info() { jpeg_destroy_decompress(this); }
    Info(const Info&) = delete;
    Info& operator=(const Info&) = delete;
  };
  Faults faults_;
  Info info_;
};

}  // namespace

std::pair<int64_t, int64_t> jpeg_size(std::string_view file) {
  const Jpeg jpeg(file);
  return {jpeg.height(), jpeg.width()};
}

Array decode_jpeg(std::string_view file, const Box* box) {
  Jpeg jpeg(file);
  if (!box) return jpeg.decode({0, 0, jpeg.height(), jpeg.width()});
  if (box->top < 0 || box->left < 0 || box->height < 1 || box->width < 1 || box->top + box->height > jpeg.height() ||
      box->left + box->width > jpeg.width())
    fail(ErrorKind::invalid_argument, "", "the crop box [{}, {}, {}, {}] is out of the image of shape [{}, {}, 3]",
         box->top, box->left, box->height, box->width, jpeg.height(), jpeg.width());
  return jpeg.decode(*box);
}

}  // namespace cairn::data
