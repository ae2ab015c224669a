// Transforms of where pixels are: decoding, sizes, parts, borders, flips, layouts.
#include <algorithm>
#include <cmath>

#include "data/images/images.h"
#include "data/transforms.h"

namespace cairn::data {

namespace {

std::pair<int64_t, int64_t> size_option(const Options& options) {
  const std::vector<double>& size = options.all("size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 1 << 24 || size[1] > 1 << 24)
    fail(ErrorKind::invalid_argument, "", "size is a height and a width of at least 1");
  return {static_cast<int64_t>(size[0]), static_cast<int64_t>(size[1])};
}

Inter inter_option(const Options& options) {
  const double number = options.one("interpolation", 2);
  if (!(number >= 0 && number <= 5))
    fail(ErrorKind::invalid_argument, "", "interpolation is a number from 0 to 5, found {}", number);
  return static_cast<Inter>(static_cast<int>(number));
}

std::string_view file_of(const Array& value) {
  if (value.shape.size() != 1 || value.type.kind != Kind::u8) {
    if (value.type.kind == Kind::bytes && value.count() == 1) return value.view();
    fail(ErrorKind::invalid_argument, "", "invalid input shape, only support 1D input, got rank: {}",
         value.shape.size());
  }
  return value.view();
}

Apply decode(const Options& options) {
  const bool rgb = options.one("rgb", 1) != 0;
  return each_column([rgb](const Array& value, Random&) {
    Array image = decode_image(file_of(value));
    if (!rgb)
      for (int64_t i = 0; i < image.count(); i += 3)
        std::swap(image.write<uint8_t>()[i], image.write<uint8_t>()[i + 2]);
    return image;
  });
}

Apply resize(const Options& options) {
  const auto [height, width] = size_option(options);
  const bool shorter = options.one("shorter", 0) != 0;
  const Inter inter = inter_option(options);
  return each_column([=](const Array& image, Random&) {
    channels_of(image);
    if (!shorter) return resized(image, height, width, inter);
    const int64_t rows = image.shape[0], columns = image.shape[1];
    return rows < columns ? resized(image, height, height * columns / std::max<int64_t>(rows, 1), inter)
                          : resized(image, width * rows / std::max<int64_t>(columns, 1), width, inter);
  });
}

/// The places that a border of `before` and `after` reads; -1 for the fill value. Border modes are constant, edge, reflect,
/// symmetric.
std::vector<int64_t> border_places(int64_t size, int64_t before, int64_t after, int mode) {
  std::vector<int64_t> places;
  for (int64_t i = -before; i < size + after; ++i) {
    int64_t at = i;
    if (mode == 0 || size == 0) {
      at = i < 0 || i >= size ? -1 : i;
    } else if (mode == 1) {
      at = std::clamp<int64_t>(i, 0, size - 1);
    } else {
      const int64_t shift = mode == 2 ? 0 : 1, period = mode == 2 ? std::max<int64_t>(2 * size - 2, 1) : 2 * size;
      at = ((i % period) + period) % period;
      if (at >= size) at = period - shift - at;
    }
    places.push_back(at);
  }
  return places;
}

struct Border {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  int mode = 0;
  std::vector<double> fill{0};
};

Array bordered(const Array& image, const Border& border) {
  const int64_t channels = channels_of(image);
  const std::vector<int64_t> rows = border_places(image.shape[0], border.top, border.bottom, border.mode);
  const std::vector<int64_t> columns = border_places(image.shape[1], border.left, border.right, border.mode);
  Shape shape = image.shape;
  shape[0] = std::ssize(rows);
  shape[1] = std::ssize(columns);
  Array made = Array::make(image.type, shape);
  const bool known = with_number(image.type.kind, [&](auto zero) {
    using T = decltype(zero);
    T* to = made.write<T>();
    for (int64_t row : rows)
      for (int64_t column : columns)
        for (int64_t c = 0; c < channels; ++c)
          *to++ = row < 0 || column < 0 ? static_cast<T>(border.fill[c % border.fill.size()])
                                        : image.as<T>()[(row * image.shape[1] + column) * channels + c];
  });
  if (!known) fail(ErrorKind::unsupported, "", "expects numbers, found {}", name_of(image.type));
  return made;
}

Border border_option(const Options& options) {
  Border border;
  if (options.has("padding")) {
    const std::vector<double>& sides = options.all("padding");
    if (sides.size() != 4 || *std::min_element(sides.begin(), sides.end()) < 0)
      fail(ErrorKind::invalid_argument, "", "padding is left, top, right and bottom, each at least 0");
    border.left = static_cast<int64_t>(sides[0]), border.top = static_cast<int64_t>(sides[1]);
    border.right = static_cast<int64_t>(sides[2]), border.bottom = static_cast<int64_t>(sides[3]);
  }
  border.mode = static_cast<int>(options.one("padding_mode", 0));
  if (options.has("fill_value")) border.fill = options.all("fill_value");
  return border;
}

bool is_any(const Border& border) { return border.left || border.top || border.right || border.bottom; }

Apply pad(const Options& options) {
  return each_column(
      [border = border_option(options)](const Array& image, Random&) { return bordered(image, border); });
}

Apply crop(const Options& options) {
  const auto [height, width] = size_option(options);
  const std::vector<double>& place = options.all("coordinates");
  const Box box{static_cast<int64_t>(place.at(0)), static_cast<int64_t>(place.at(1)), height, width};
  return each_column([box](const Array& image, Random&) { return cut(image, box); });
}

Apply center_crop(const Options& options) {
  const auto [height, width] = size_option(options);
  return each_column([height = height, width = width](const Array& image, Random&) {
    channels_of(image);
    Border border;
    const int64_t down = std::max<int64_t>(height - image.shape[0], 0),
                  across = std::max<int64_t>(width - image.shape[1], 0);
    border.bottom = down / 2, border.top = down - down / 2, border.right = across / 2,
    border.left = across - across / 2;
    const Array whole = is_any(border) ? bordered(image, border) : image;
    return cut(whole, {(whole.shape[0] - height) / 2, (whole.shape[1] - width) / 2, height, width});
  });
}

Apply random_crop(const Options& options) {
  const auto [height, width] = size_option(options);
  const Border sides = border_option(options);
  const bool if_needed = options.one("pad_if_needed", 0) != 0;
  return each_column([=, height = height, width = width](const Array& image, Random& random) {
    channels_of(image);
    Array whole = is_any(sides) ? bordered(image, sides) : image;
    Border more = sides;
    more.top = more.bottom = if_needed ? std::max<int64_t>(height - whole.shape[0], 0) : 0;
    more.left = more.right = if_needed ? std::max<int64_t>(width - whole.shape[1], 0) : 0;
    if (is_any(more)) whole = bordered(whole, more);
    if (whole.shape[0] < height || whole.shape[1] < width)
      fail(ErrorKind::invalid_argument, "",
           "invalid crop size, crop size [{}, {}] is bigger than the image dimensions [{}, {}]", height, width,
           whole.shape[0], whole.shape[1]);
    const int64_t top = random.below(whole.shape[0] - height + 1), left = random.below(whole.shape[1] - width + 1);
    return cut(whole, {top, left, height, width});
  });
}

/// A part of random area and shape; after `attempts` the largest in the middle of an allowed shape.
struct RandomBox {
  double scale[2], ratio[2];
  int attempts;

  explicit RandomBox(const Options& options) {
    for (int i = 0; i < 2; ++i) scale[i] = options.all("scale").at(i), ratio[i] = options.all("ratio").at(i);
    attempts = static_cast<int>(options.one("max_attempts", 10));
  }
  Box draw(int64_t height, int64_t width, Random& random) const {
    for (int i = 0; i < attempts; ++i) {
      const double area = random.uniform(scale[0], scale[1]) * static_cast<double>(height * width);
      const double shape = std::exp(random.uniform(std::log(ratio[0]), std::log(ratio[1])));
      const auto across = static_cast<int64_t>(std::nearbyint(std::sqrt(area * shape)));
      const auto down = static_cast<int64_t>(std::nearbyint(std::sqrt(area / shape)));
      if (across < 1 || across > width || down < 1 || down > height) continue;
      const int64_t top = random.below(height - down + 1), left = random.below(width - across + 1);
      return {top, left, down, across};
    }
    int64_t across = width, down = height;
    const double have = static_cast<double>(width) / static_cast<double>(height);
    if (have < ratio[0])
      down = static_cast<int64_t>(std::nearbyint(static_cast<double>(width) / ratio[0]));
    else if (have > ratio[1])
      across = static_cast<int64_t>(std::nearbyint(static_cast<double>(height) * ratio[1]));
    down = std::clamp<int64_t>(down, 1, height), across = std::clamp<int64_t>(across, 1, width);
    return {(height - down) / 2, (width - across) / 2, down, across};
  }
};

Apply random_resized_crop(const Options& options) {
  const auto [height, width] = size_option(options);
  return each_column([height = height, width = width, box = RandomBox(options), inter = inter_option(options)](
                         const Array& image, Random& random) {
    channels_of(image);
    return resized(cut(image, box.draw(image.shape[0], image.shape[1], random)), height, width, inter);
  });
}

/// The same of a file, of which the part alone is decoded.
Apply random_crop_decode_resize(const Options& options) {
  const auto [height, width] = size_option(options);
  return each_column([height = height, width = width, box = RandomBox(options), inter = inter_option(options)](
                         const Array& value, Random& random) {
    const std::string_view file = file_of(value);
    const auto [rows, columns] = image_size(file);
    return resized(decode_image(file, box.draw(rows, columns, random)), height, width, inter);
  });
}

Apply horizontal_flip(const Options& options) {
  return each_column([prob = options.one("prob", 1)](const Array& image, Random& random) {
    return prob >= 1 || random.uniform() < prob ? flipped(image, true) : (channels_of(image), image);
  });
}
Apply vertical_flip(const Options& options) {
  return each_column([prob = options.one("prob", 1)](const Array& image, Random& random) {
    return prob >= 1 || random.uniform() < prob ? flipped(image, false) : (channels_of(image), image);
  });
}

Apply hwc2chw(const Options&) {
  return each_column([](const Array& image, Random&) {
    if (image.shape.size() == 2) return image;
    const int64_t channels = channels_of(image), pixels = channels ? image.count() / channels : 0;
    Array made = Array::make(image.type, {channels, image.shape[0], image.shape[1]});
    with_number(image.type.kind, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < pixels; ++i) made.write<T>()[c * pixels + i] = image.as<T>()[i * channels + c];
    });
    return made;
  });
}
Apply chw2hwc(const Options&) {
  return each_column([](const Array& image, Random&) {
    if (image.shape.size() != 3)
      fail(ErrorKind::invalid_argument, "", "expects <C,H,W>, but got rank: {}", image.shape.size());
    const int64_t channels = image.shape[0], pixels = channels ? image.count() / channels : 0;
    Array made = Array::make(image.type, {image.shape[1], image.shape[2], channels});
    with_number(image.type.kind, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < pixels; ++i) made.write<T>()[i * channels + c] = image.as<T>()[c * pixels + i];
    });
    return made;
  });
}

constexpr TransformRow kImageTransforms[] = {
    {"decode", decode},
    {"resize", resize},
    {"pad", pad},
    {"crop", crop},
    {"center_crop", center_crop},
    {"random_crop", random_crop},
    {"random_resized_crop", random_resized_crop},
    {"random_crop_decode_resize", random_crop_decode_resize},
    {"horizontal_flip", horizontal_flip},
    {"vertical_flip", vertical_flip},
    {"hwc2chw", hwc2chw},
    {"chw2hwc", chw2hwc},
};

}  // namespace

std::span<const TransformRow> image_transforms() { return kImageTransforms; }

}  // namespace cairn::data
