// Transforms of the values of pixels.
#include <algorithm>
#include <cmath>

#include "data/images/images.h"
#include "data/transforms.h"

namespace cairn::data {

namespace {

Apply rescale(const Options& options) {
  const auto factor = static_cast<float>(options.one("rescale")), shift = static_cast<float>(options.one("shift"));
  return each_column([=](const Array& value, Random&) {
    Array made = Array::make(Kind::f32, value.shape);
    const bool known = with_number(value.type.kind, [&](auto zero) {
      using T = decltype(zero);
      std::transform(value.as<T>(), value.as<T>() + value.count(), made.write<float>(),
                     [=](T x) { return static_cast<float>(static_cast<double>(x) * factor + shift); });
    });
    if (!known) fail(ErrorKind::unsupported, "", "expects numbers, found {}", name_of(value.type));
    return made;
  });
}

/// Normalize, and a channel of zeros after the others.
Apply normalize_pad(const Options& options) {
  const FunctionPtr normal = transform("normalize", options);
  const bool half = options.one("half", 0) != 0, hwc = options.one("is_hwc", 1) != 0;
  return each_column([=](const Array& value, Random& random) {
    if (value.shape.size() != 3)
      fail(ErrorKind::invalid_argument, "", "expects 3 dimensions, but got rank: {}", value.shape.size());
    Row row{value};
    normal->apply(row, random);
    Shape shape = row[0].shape;
    ++shape[hwc ? 2 : 0];
    Array made = Array::make(Kind::f32, shape);
    if (!hwc) {
      std::memcpy(made.bytes(), row[0].data, row[0].size());
      std::memset(made.bytes() + row[0].size(), 0, made.size() - row[0].size());
    } else {
      const int64_t channels = value.shape[2], pixels = channels ? value.count() / channels : 0;
      for (int64_t i = 0; i < pixels; ++i) {
        std::memcpy(made.write<float>() + i * (channels + 1), row[0].as<float>() + i * channels,
                    4 * static_cast<size_t>(channels));
        made.write<float>()[i * (channels + 1) + channels] = 0;
      }
    }
    return half ? cast(made, Kind::f16) : made;
  });
}

/// CHW, 255 as 1.
Apply to_tensor(const Options& options) {
  const auto kind = static_cast<Kind>(static_cast<int>(options.one("kind", static_cast<double>(Kind::f32))));
  return each_column([kind](const Array& image, Random&) {
    const int64_t channels = channels_of(image), pixels = channels ? image.count() / channels : 0;
    const Array floats = cast(image, Kind::f32);
    Array made = Array::make(Kind::f32, {channels, image.shape[0], image.shape[1]});
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < pixels; ++i)
        made.write<float>()[c * pixels + i] = floats.as<float>()[i * channels + c] * (1 / 255.f);
    return cast(made, kind);
  });
}

/// As OpenCV's RGB2GRAY of u8: weights of 15 bits.
int gray_of(const uint8_t* rgb) { return (rgb[0] * 9798 + rgb[1] * 19235 + rgb[2] * 3735 + (1 << 14)) >> 15; }

void check_rgb(const Array& image) {
  if (channels_of(image) != 3 || image.type.kind != Kind::u8)
    fail(ErrorKind::invalid_argument, "", "expects an RGB image of uint8, found {} {}", name_of(image.type),
         text_of(image.shape));
}

Apply grayscale(const Options& options) {
  const auto channels = static_cast<int64_t>(options.one("channels", 1));
  return each_column([channels, prob = options.one("prob", 1)](const Array& image, Random& random) {
    check_rgb(image);
    if (prob < 1 && random.uniform() >= prob) return image;
    Shape shape{image.shape[0], image.shape[1]};
    if (channels > 1) shape.push_back(channels);
    Array made = Array::make(Kind::u8, shape);
    uint8_t* to = made.write<uint8_t>();
    for (int64_t i = 0; i < image.count(); i += 3) {
      for (int64_t c = 0; c < channels; ++c) *to++ = static_cast<uint8_t>(gray_of(image.as<uint8_t>() + i));
    }
    return made;
  });
}

// A value as u8, rounded and cut, or as f32.
template <class T>
T stored(float value) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return to_u8(value);
  else
    return value;
}

// The shade of gray of a pixel, on the scale of its type.
template <class T>
double shade_of(const T* rgb) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return gray_of(rgb);
  else
    return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

void brightness(Array& image, float amount) {
  const bool known = with_number(image.type.kind, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < image.count(); ++i) {
      const float value = static_cast<float>(image.as<T>()[i]) * amount;
      if constexpr (std::is_floating_point_v<T>)
        image.write<T>()[i] = static_cast<T>(value);
      else
        image.write<T>()[i] = static_cast<T>(std::clamp<double>(std::nearbyint(value), std::numeric_limits<T>::lowest(),
                                                                static_cast<double>(std::numeric_limits<T>::max())));
    }
  });
  if (!known) fail(ErrorKind::invalid_argument, "", "expects numbers, found {}", name_of(image.type));
}

/// f of all values of an RGB image, as u8 or f32.
template <class F>
void with_colours(Array& image, F&& f) {
  if (image.type.kind == Kind::f32 && channels_of(image) == 3)
    return f(std::span(image.write<float>(), static_cast<size_t>(image.count())));
  check_rgb(image);
  f(std::span(image.write<uint8_t>(), image.size()));
}

/// amount * value + (1 - amount) * other, as OpenCV sums two images.
template <class T>
T blended(T value, double amount, double other) {
  return stored<T>(static_cast<float>(value * amount + other * (1 - amount)));
}

void contrast(Array& image, float amount) {
  with_colours(image, [&](auto values) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); i += 3) sum += shade_of(&values[i]);
    double middle = sum / std::max(1.0, static_cast<double>(values.size() / 3));
    if (image.type.kind == Kind::u8) middle = std::floor(middle + 0.5);
    for (auto& value : values) value = blended(value, amount, middle);
  });
}

void saturation(Array& image, float amount) {
  with_colours(image, [amount](auto values) {
    for (size_t i = 0; i < values.size(); i += 3) {
      const double gray = shade_of(&values[i]);
      for (size_t c = 0; c < 3; ++c) values[i + c] = blended(values[i + c], amount, gray);
    }
  });
}

/// OpenCV's RGB2HSV_FULL of u8, the hue turned within a byte, and back.
void hue(Array& made, float amount) {
  check_rgb(made);
  const std::span<uint8_t> image(made.write<uint8_t>(), made.size());
  const auto turn = static_cast<int>(amount * 255);
  for (size_t i = 0; i < image.size(); i += 3) {
    const int red = image[i], green = image[i + 1], blue = image[i + 2];
    const int high = std::max({red, green, blue}), spread = high - std::min({red, green, blue});
    auto divided = [](double by) { return static_cast<int>(std::nearbyint(by)); };
    int angle = high == red ? green - blue : high == green ? blue - red + 2 * spread : red - green + 4 * spread;
    angle = (angle * (spread ? divided((256 << 12) / (6.0 * spread)) : 0) + (1 << 11)) >> 12;
    const int full = (spread * (high ? divided((255 << 12) / static_cast<double>(high)) : 0) + (1 << 11)) >> 12;
    angle += angle < 0 ? 256 : 0;
    const float at = static_cast<float>((std::min(angle, 255) + turn) & 255) * (6.f / 255),
                s = static_cast<float>(full) * (1 / 255.f), v = static_cast<float>(high) * (1 / 255.f),
                rest = at - std::floor(at);
    const float parts[] = {v, v * (1 - s), v * (1 - s * rest), v * (1 - s * (1 - rest))};
    constexpr int kSectors[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
    for (int c = 0; c < 3; ++c)
      image[i + c] = static_cast<uint8_t>(parts[kSectors[static_cast<int>(at) % 6][c]] * 255.f);  // cut, not rounded
  }
}

/// Each change by a random amount of its range, in random order.
Apply random_color_adjust(const Options& options) {
  struct Step {
    void (*change)(Array&, float);
    double low, high, idle;  // idle: the amount that changes nothing
  };
  std::vector<Step> steps;
  const std::pair<const char*, Step> all[] = {{"brightness", {brightness, 0, 0, 1}},
                                              {"contrast", {contrast, 0, 0, 1}},
                                              {"saturation", {saturation, 0, 0, 1}},
                                              {"hue", {hue, 0, 0, 0}}};
  for (auto [name, step] : all) {
    const std::vector<double>& range = options.all(name);
    step.low = range.at(0), step.high = range.at(1);
    steps.push_back(step);
  }
  return each_column([steps](const Array& image, Random& random) {
    std::vector<Step> order = steps;
    random.shuffle(order);
    Array made = copied(image);
    for (const Step& step : order)
      if (const double amount = random.uniform(step.low, step.high); amount != step.idle)
        step.change(made, static_cast<float>(amount));
    return made;
  });
}

Apply adjust_hue(const Options& options) {
  return each_column([amount = static_cast<float>(options.one("factor"))](const Array& image, Random&) {
    Array made = copied(image);
    hue(made, amount);  // by 0 as well, which rounds
    return made;
  });
}

constexpr TransformRow kColourTransforms[] = {
    {"rescale", rescale},
    {"normalize_pad", normalize_pad},
    {"to_tensor", to_tensor},
    {"grayscale", grayscale},
    {"random_color_adjust", random_color_adjust},
    {"adjust_hue", adjust_hue},
};

}  // namespace

std::span<const TransformRow> colour_transforms() { return kColourTransforms; }

}  // namespace cairn::data
