// Transforms that turn and lean images, by OpenCV's definition of warpAffine: places in 1/32 pixel, weights of 15 bits; and filters.
#include <algorithm>
#include <cmath>

#include "data/images/images.h"
#include "data/transforms.h"

namespace cairn::data {

namespace {

/// Where a pixel comes from: x = m[0] x' + m[1] y' + m[2], y = m[3] x' + m[4] y' + m[5].
using Matrix = std::array<double, 6>;

Matrix inverse(const Matrix& m) {
  const double scale = 1 / (m[0] * m[4] - m[1] * m[3]);
  const double a = m[4] * scale, b = -m[1] * scale, c = -m[3] * scale, d = m[0] * scale;
  return {a, b, -a * m[2] - b * m[5], c, d, -c * m[2] - d * m[5]};
}

struct Warp {
  Matrix back;
  int64_t height, width;
  bool nearest;
  std::vector<double> fill;  // of each channel, or of all
};

constexpr int kPlaceBits = 10, kPartBits = 5, kWeightBits = 15;

int64_t rounded(double value) { return std::llrint(value); }

template <class T>
Array warped(const Array& image, const Warp& warp) {
  const int64_t channels = channels_of(image), height = image.shape[0], width = image.shape[1];
  Shape shape = image.shape;
  shape[0] = warp.height, shape[1] = warp.width;
  Array made = Array::make(image.type, shape);
  T* to = made.write<T>();
  auto pixel = [&](int64_t y, int64_t x, int64_t c) {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? static_cast<double>(image.as<T>()[(y * width + x) * channels + c])
                  : warp.fill[static_cast<size_t>(c) % warp.fill.size()];
  };
  const double scale = 1 << kPlaceBits;
  const int64_t half = warp.nearest ? (1 << kPlaceBits) / 2 : (1 << kPlaceBits) / (1 << kPartBits) / 2;
  for (int64_t y = 0; y < warp.height; ++y) {
    const int64_t x_row = rounded((warp.back[1] * static_cast<double>(y) + warp.back[2]) * scale) + half;
    const int64_t y_row = rounded((warp.back[4] * static_cast<double>(y) + warp.back[5]) * scale) + half;
    for (int64_t x = 0; x < warp.width; ++x, to += channels) {
      const int64_t from_x = x_row + rounded(warp.back[0] * static_cast<double>(x) * scale);
      const int64_t from_y = y_row + rounded(warp.back[3] * static_cast<double>(x) * scale);
      if (warp.nearest) {
        for (int64_t c = 0; c < channels; ++c)
          to[c] = static_cast<T>(pixel(from_y >> kPlaceBits, from_x >> kPlaceBits, c));
        continue;
      }
      const int64_t fine_x = from_x >> (kPlaceBits - kPartBits), fine_y = from_y >> (kPlaceBits - kPartBits);
      const int64_t left = fine_x >> kPartBits, top = fine_y >> kPartBits;
      const double across = static_cast<double>(fine_x & 31) / 32, down = static_cast<double>(fine_y & 31) / 32;
      const double weights[] = {(1 - across) * (1 - down), across * (1 - down), (1 - across) * down, across * down};
      for (int64_t c = 0; c < channels; ++c) {
        const double values[] = {pixel(top, left, c), pixel(top, left + 1, c), pixel(top + 1, left, c),
                                 pixel(top + 1, left + 1, c)};
        double sum = 0;
        for (int i = 0; i < 4; ++i) sum += values[i] * weights[i];
        if constexpr (std::is_integral_v<T>)
          to[c] = static_cast<T>(static_cast<int64_t>(std::floor(sum + 0.5)));
        else
          to[c] = static_cast<T>(sum);
      }
    }
  }
  return made;
}

Array warp_image(const Array& image, const Warp& warp) {
  channels_of(image);
  if (image.type.kind == Kind::u8) return warped<uint8_t>(image, warp);
  if (image.type.kind == Kind::f32) return warped<float>(image, warp);
  fail(ErrorKind::unsupported, "", "expects uint8 or float32, found {}", name_of(image.type));
}

double drawn(const std::vector<double>& range, Random& random) {
  return range[0] == range[1] ? range[0] : random.uniform(range[0], range[1]);
}

std::vector<double> fill_of(const Options& options) {
  return options.numbers.contains("fill_value") ? options.all("fill_value") : std::vector<double>{0};
}

/// Against the clock by degrees from a range, about the middle or `center` (x, y); expand: so large that all of it is there.
Apply rotate(const Options& options) {
  const bool expand = options.one("expand", 0) != 0, nearest = options.one("nearest", 1) != 0;
  const std::vector<double> center = options.numbers.contains("center") ? options.all("center") : std::vector<double>();
  return each_column(
      [=, degrees = options.all("degrees"), fill = fill_of(options)](const Array& image, Random& random) {
        channels_of(image);
        const double angle = drawn(degrees, random) * M_PI / 180, cosine = std::cos(angle), sine = std::sin(angle);
        const double x = center.empty() ? static_cast<double>(image.shape[1] - 1) / 2 : center[0];
        const double y = center.empty() ? static_cast<double>(image.shape[0] - 1) / 2 : center[1];
        Matrix forward{cosine, sine, (1 - cosine) * x - sine * y, -sine, cosine, sine * x + (1 - cosine) * y};
        int64_t height = image.shape[0], width = image.shape[1];
        if (expand) {
          const auto high = static_cast<double>(height), wide = static_cast<double>(width);
          const double across = high * std::abs(sine) + wide * std::abs(cosine),
                       down = high * std::abs(cosine) + wide * std::abs(sine);
          width = rounded(across), height = rounded(down);
          forward[2] += (across - wide) / 2, forward[5] += (down - high) / 2;
        }
        return warp_image(image, {inverse(forward), height, width, nearest, fill});
      });
}

/// Turned, moved by shares of the size, scaled and leaned, each by an amount from a range.
Apply affine(const Options& options) {
  const bool nearest = options.one("nearest", 1) != 0;
  return each_column([=, degrees = options.all("degrees"), moves = options.all("translate"),
                      scales = options.all("scale"), shear = options.all("shear"),
                      fill = fill_of(options)](const Array& image, Random& random) {
    channels_of(image);
    const double turn = drawn(degrees, random) * M_PI / 180;
    const double across = drawn({moves[0], moves[1]}, random) * static_cast<double>(image.shape[1]);
    const double down = drawn({moves[2], moves[3]}, random) * static_cast<double>(image.shape[0]);
    const double scale = drawn(scales, random);
    const double lean_x = drawn({shear[0], shear[1]}, random) * M_PI / 180,
                 lean_y = drawn({shear[2], shear[3]}, random) * M_PI / 180;
    const double a = std::cos(turn - lean_y) / std::cos(lean_y), c = std::sin(turn - lean_y) / std::cos(lean_y);
    const double b = -a * std::tan(lean_x) - std::sin(turn), d = -c * std::tan(lean_x) + std::cos(turn);
    const double x = static_cast<double>(image.shape[1] - 1) / 2, y = static_cast<double>(image.shape[0] - 1) / 2;
    Matrix forward{a * scale, b * scale, 0, c * scale, d * scale, 0};
    forward[2] = x + across - forward[0] * x - forward[1] * y;
    forward[5] = y + down - forward[3] * x - forward[4] * y;
    return warp_image(image, {inverse(forward), image.shape[0], image.shape[1], nearest, fill});
  });
}

/// Away from the smoothed image, or towards it, as Pillow does it; the border stays.
Apply sharpness(const Options& options) {
  return each_column([range = options.all("factor")](const Array& image, Random& random) {
    const int64_t channels = channels_of(image), height = image.shape[0], width = image.shape[1],
                  row = width * channels;
    if (image.type.kind != Kind::u8) fail(ErrorKind::unsupported, "", "expects uint8, found {}", name_of(image.type));
    const double amount = drawn(range, random);
    Array made = Array::make(Kind::u8, image.shape);
    std::memcpy(made.bytes(), image.data, image.size());
    for (int64_t y = 1; y + 1 < height; ++y)
      for (int64_t i = channels; i < row - channels; ++i) {
        const uint8_t* at = image.as<uint8_t>() + y * row + i;
        int sum = 4 * at[0];
        for (int64_t down : {-row, int64_t{0}, row}) sum += at[down - channels] + at[down] + at[down + channels];
        const double smooth = std::nearbyint(sum / 13.0);
        made.write<uint8_t>()[y * row + i] = to_u8(static_cast<float>(smooth + (at[0] - smooth) * amount));
      }
    return made;
  });
}

std::vector<double> bell(int64_t window, double sigma) {
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = 0; i < window; ++i) {
    const auto from = static_cast<double>(i - window / 2);
    weights.push_back(std::exp(-from * from / (2 * sigma * sigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Along one axis, beyond the ends reflected.
void blur(std::vector<float>& values, int64_t lines, int64_t length, int64_t step, const std::vector<double>& weights) {
  const auto window = std::ssize(weights);
  std::vector<float> line(static_cast<size_t>(length));
  for (int64_t n = 0; n < lines; ++n) {
    float* at = values.data() + n / step * step * length + n % step;
    for (int64_t i = 0; i < length; ++i) line[static_cast<size_t>(i)] = at[i * step];
    for (int64_t i = 0; i < length; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < window; ++k) {
        int64_t from = i + k - window / 2;
        while (from < 0 || from >= length) from = length == 1 ? 0 : from < 0 ? -from : 2 * (length - 1) - from;
        sum += weights[static_cast<size_t>(k)] * line[static_cast<size_t>(from)];
      }
      at[i * step] = static_cast<float>(sum);
    }
  }
}

/// A blur over a window (height, width).
Apply gaussian_blur(const Options& options) {
  return each_column([window = options.all("window"), sigma = options.all("sigma")](const Array& image, Random&) {
    const int64_t channels = channels_of(image), height = image.shape[0], width = image.shape[1];
    const Array floats = cast(image, Kind::f32);
    std::vector<float> values(floats.as<float>(), floats.as<float>() + floats.count());
    blur(values, width * channels, height, width * channels, bell(static_cast<int64_t>(window[0]), sigma[0]));
    blur(values, height * channels, width, channels, bell(static_cast<int64_t>(window[1]), sigma[1]));
    if (image.type.kind != Kind::u8) {
      Array made = Array::make(Kind::f32, image.shape);
      std::copy(values.begin(), values.end(), made.write<float>());
      return cast(made, image.type.kind);
    }
    Array made = Array::make(Kind::u8, image.shape);
    std::transform(values.begin(), values.end(), made.write<uint8_t>(), to_u8);
    return made;
  });
}

constexpr TransformRow kWarpTransforms[] = {
    {"rotate", rotate}, {"affine", affine}, {"sharpness", sharpness}, {"gaussian_blur", gaussian_blur}};

}  // namespace

std::span<const TransformRow> warp_transforms() { return kWarpTransforms; }

}  // namespace cairn::data
