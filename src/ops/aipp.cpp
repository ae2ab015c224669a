// Dynamic image preprocessing (AIPP): the image bytes and the steps to apply to them are both operands of the run.
#include "ops/aipp.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/families.h"
#include "ops/kernels.h"
#include "ops/rows.h"

namespace cairn {

namespace {

int64_t bytes_of(int64_t format, int64_t height, int64_t width) {
  if (format == kYuv420) return height * width * 3 / 2;
  if (format == kYuv422 || format == kYuyv) return height * width * 2;
  return height * width * aipp_channels(format);
}

void infer_aipp(InferContext& context) {
  constexpr int64_t kHeader = AippHeader::kBytes, kImage = AippImage::kBytes;
  for (size_t i : {0, 1}) {
    if (context.dtype(i) != kU8) context.fail("input {} must be u8, found {}", i, to_string(context.dtype(i)));
    ranked(context, i, 1);
  }
  for (const char* name : {"height", "width", "channels"})
    if (const int64_t size = context.attr.integer(name); size < 1 || size > 4096) context.fail("{} is {}", name, size);
  Dim images;
  if (context.shape(1).ranked && context.shape(1).dims[0].known()) {
    const int64_t size = context.shape(1).dims[0].size;
    if (size < kHeader + kImage || (size - kHeader) % kImage != 0)
      context.fail("parameters have {} bytes, expected {} and {} for each image", size, kHeader, kImage);
    images = (size - kHeader) / kImage;
  }
  context.result(
      kF32, {images, context.attr.integer("height"), context.attr.integer("width"), context.attr.integer("channels")});
}

/// Checks the parameters of one image and computes its pixels.
class Preprocessing {
 public:
  Preprocessing(KernelContext& context, const AippHeader& header, const AippImage& image)
      : context_(context), header_(header), image_(image), height_(context.attr.integer("height")),
        width_(context.attr.integer("width")), channels_(context.attr.integer("channels")),
        source_height_(header.height), source_width_(header.width) {
    if (source_height_ == 0) source_height_ = height_;
    if (source_width_ == 0) source_width_ = width_;
    check();
    set_order();
  }

  int64_t source_bytes() const { return bytes_of(header_.format, source_height_, source_width_); }

  void run(const uint8_t* source, float* to) const {
    for (int64_t y = 0; y < height_; ++y)
      for (int64_t x = 0; x < width_; ++x, to += channels_) {
        const int64_t row = y - pads_[0], column = x - pads_[2];
        if (row < 0 || row >= rows_ || column < 0 || column >= columns_)
          std::fill_n(to, channels_, 0.f);
        else
          pixel(source, top_ + row, left_ + column, to);
      }
  }

 private:
  using Pixel = std::array<float, 4>;

  void check() {
    constexpr int64_t kKnown[] = {kYuv420, kXrgb, kRgb, kYuv400, kArgb, kYuyv, kYuv422, kAyuv};
    const int64_t format = header_.format;
    if (std::find(std::begin(kKnown), std::end(kKnown), format) == std::end(kKnown))
      context_.fail("image format {} is not supported; formats of 8 bits a channel are", format);
    if (image_.resize || image_.rotate) context_.fail("images are not resized or rotated; do it before");
    if (image_.pad != 0 && image_.pad != 1)
      context_.fail("padding of kind {} is not supported, only zeros", image_.pad);
    if (source_width_ < 2 || source_width_ > 4096 || source_height_ < 1 || source_height_ > 4096)
      context_.fail("the source image is {} high and {} wide, expected 1..4096 and 2..4096", source_height_,
                    source_width_);
    const bool halves = format == kYuv420 || format == kYuyv || format == kYuv422;
    if (halves && (source_width_ % 2 || (format == kYuv420 && source_height_ % 2)))
      context_.fail("{} x {} pixels cannot share their colours two by two", source_height_, source_width_);
    rows_ = source_height_, columns_ = source_width_;
    if (image_.crop) check_crop();
    if (image_.pad) pads_ = {image_.pad_top, image_.pad_bottom, image_.pad_left, image_.pad_right};
    for (int64_t border : pads_)
      if (border < 0 || border > 4096) context_.fail("padding is {}", border);
    if (rows_ + pads_[0] + pads_[1] != height_ || columns_ + pads_[2] + pads_[3] != width_)
      context_.fail("it makes images of {} x {}, the model takes {} x {}", rows_ + pads_[0] + pads_[1],
                    columns_ + pads_[2] + pads_[3], height_, width_);
    const int64_t have = aipp_channels(format);
    if (channels_ != have && !(channels_ == 3 && have == 4) && !(channels_ == 1 && have >= 3 && header_.convert))
      context_.fail("images have {} channels, the model takes {}", have, channels_);
    if (header_.convert && have == 1) context_.fail("colours of images of one channel cannot be converted");
  }

  void check_crop() {
    top_ = image_.crop_top, left_ = image_.crop_left;
    rows_ = image_.crop_height == 0 ? height_ : image_.crop_height;
    columns_ = image_.crop_width == 0 ? width_ : image_.crop_width;
    if (top_ < 0 || left_ < 0 || rows_ < 1 || columns_ < 1 || top_ + rows_ > source_height_ ||
        left_ + columns_ > source_width_)
      context_.fail("the crop window of {} x {} at {}, {} leaves the source image of {} x {}", rows_, columns_, top_,
                    left_, source_height_, source_width_);
  }

  /// Sets the channel order: alpha moves from the front to the end; red and blue (or U and V) are swapped.
  void set_order() {
    const int64_t have = aipp_channels(header_.format);
    if (header_.swap_alpha && have == 4) std::rotate(order_.begin(), order_.begin() + 1, order_.end());
    if (header_.swap_rb && have >= 3) {
      const bool yuv = aipp_is_yuv(header_.format);
      size_t first = yuv ? 1 : 0;
      if (have == 4 && !header_.swap_alpha) ++first;
      std::swap(order_[first], order_[yuv ? first + 1 : first + 2]);
    }
  }

  /// Reads the channels of a pixel; in subsampled formats several pixels share the same chroma bytes.
  Pixel read(const uint8_t* source, int64_t y, int64_t x) const {
    const int64_t width = source_width_, height = source_height_;
    auto at = [&](int64_t place) { return static_cast<float>(source[place]); };
    if (header_.format == kYuv420 || header_.format == kYuv422) {
      const int64_t row = header_.format == kYuv420 ? y / 2 : y, colours = (height + row) * width + x / 2 * 2;
      return {at(y * width + x), at(colours), at(colours + 1), 0};
    }
    if (header_.format == kYuyv) {
      const int64_t pair = (y * width + x / 2 * 2) * 2;
      return {at((y * width + x) * 2), at(pair + 1), at(pair + 3), 0};
    }
    Pixel pixel{};
    const int64_t have = aipp_channels(header_.format);
    for (int64_t i = 0; i < have; ++i) pixel[static_cast<size_t>(i)] = at((y * width + x) * have + i);
    return pixel;
  }

  /// ((M * (pixel - input bias)) >> 8) + output bias, clamped to 0..255; only YUV input has the input bias, only RGB
  /// input the output bias.
  Pixel converted(const Pixel& from) const {
    const bool yuv = aipp_is_yuv(header_.format);
    Pixel to{};
    for (size_t row = 0; row < 3; ++row) {
      int64_t sum = 0;
      for (size_t column = 0; column < 3; ++column)
        sum += header_.matrix[3 * row + column] *
               (static_cast<int64_t>(from[column]) - (yuv ? header_.input_bias[column] : 0));
      const int64_t value = (sum >> 8) + (yuv ? 0 : header_.output_bias[row]);
      to[row] = static_cast<float>(std::clamp<int64_t>(value, 0, 255));
    }
    return to;
  }

  void pixel(const uint8_t* source, int64_t y, int64_t x, float* to) const {
    const Pixel bytes = read(source, y, x);
    Pixel ordered;
    for (size_t i = 0; i < 4; ++i) ordered[i] = bytes[order_[i]];
    if (header_.convert) {
      if (aipp_channels(header_.format) == 4 && !header_.swap_alpha)
        std::rotate(ordered.begin(), ordered.begin() + 1, ordered.end());
      ordered = converted(ordered);
    }
    for (int64_t i = 0; i < channels_; ++i) {
      const auto c = static_cast<size_t>(i);
      to[i] = (ordered[c] - static_cast<float>(image_.mean[c]) - half_to_float(image_.least[c])) *
              half_to_float(image_.factor[c]);
    }
  }

  KernelContext& context_;
  const AippHeader& header_;
  const AippImage& image_;
  int64_t height_, width_, channels_, source_height_, source_width_;
  int64_t top_ = 0, left_ = 0, rows_ = 0, columns_ = 0;
  std::array<int64_t, 4> pads_{};  // top, bottom, left, right
  std::array<size_t, 4> order_{0, 1, 2, 3};
};

void aipp(KernelContext& context) {
  allocate_results(context);
  const Tensor &source = context.input(0), &parameters = context.input(1);
  const auto* block = data<uint8_t>(parameters);
  AippHeader header;
  std::memcpy(&header, block, sizeof header);
  const int64_t images = context.output(0).dims()[0];
  if (header.images != images)
    context.fail("the parameters are for {} images, their size for {}", header.images, images);
  const int64_t elements = context.output(0).count() / std::max<int64_t>(images, 1);
  int64_t used = 0;
  for (int64_t i = 0; i < images; ++i) {
    AippImage image;
    std::memcpy(&image, block + sizeof header + static_cast<size_t>(i) * sizeof image, sizeof image);
    const Preprocessing preprocessing(context, header, image);
    if (used + preprocessing.source_bytes() > source.count())
      context.fail("{} images of {} bytes are told, {} bytes are given", images, preprocessing.source_bytes(),
                   source.count());
    preprocessing.run(data<uint8_t>(source) + used, data<float>(context.output(0)) + i * elements);
    used += preprocessing.source_bytes();
  }
}

std::vector<OpDef> make_aipp_rows() {
  return {
      {.name = "aipp",
       .summary =
           "images from bytes, as a block of parameters says: crop, channel swap, colour conversion, (x - mean - "
           "least) * factor, zeros around; 64 bytes of the block are for all images, 96 for each",
       .inputs = {{"bytes", Accepts::integers}, {"parameters", Accepts::integers}},
       .attributes = {{"height", AttrKind::integer}, {"width", AttrKind::integer}, {"channels", AttrKind::integer}},
       .infer = infer_aipp,
       .reference = aipp,
       .oracle =
           untested("takes no random bytes: tests/python/test_atc_aipp.py compares it with static preprocessing")},
  };
}

}  // namespace

std::span<const OpDef> aipp_ops() {
  static const std::vector<OpDef> rows = make_aipp_rows();
  return rows;
}

}  // namespace cairn
