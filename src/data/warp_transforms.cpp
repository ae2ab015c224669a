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

enum class Sampling { nearest, linear, cubic };

struct Warp {
  int64_t height, width;
  Sampling sampling;
  std::vector<double> fill;  // of channel c: fill[c % 4]
};

constexpr int kPlaceBits = 10, kPartBits = 5, kParts = 1 << kPartBits, kWeightBits = 15;

int64_t rounded(double value) { return std::llrint(value); }

/// Where the pixels of row y of the result come from: (x, y) in pixels for `nearest`, else in 1/32 pixel.
using Place = std::array<int64_t, 2>;
using Places = std::function<void(int64_t y, std::span<Place> row)>;

Places places_of(const Matrix& back, Sampling sampling) {
  const int bits = sampling == Sampling::nearest ? kPlaceBits : kPlaceBits - kPartBits;
  return [=](int64_t y, std::span<Place> row) {
    const double scale = 1 << kPlaceBits;
    for (size_t axis = 0; axis < 2; ++axis) {
      const double* m = &back[3 * axis];
      const int64_t begin = rounded((m[1] * static_cast<double>(y) + m[2]) * scale) + (int64_t{1} << bits) / 2;
      for (size_t x = 0; x < row.size(); ++x)
        row[x][axis] = (begin + rounded(m[0] * static_cast<double>(x) * scale)) >> bits;
    }
  };
}

/// Weights of the neighbours -1 to 2 (linear: 0 and 1) of a place between two pixels, in 1/32.
std::array<std::array<double, 4>, kParts> weights_of(Sampling sampling) {
  constexpr double kA = -0.75;
  std::array<std::array<double, 4>, kParts> all{};
  for (int part = 0; part < kParts; ++part) {
    const double x = static_cast<double>(part) / kParts, rest = 1 - x;
    const auto near = [](double t) { return ((kA + 2) * t - (kA + 3)) * t * t + 1; };
    const double before = ((kA * (x + 1) - 5 * kA) * (x + 1) + 8 * kA) * (x + 1) - 4 * kA;
    auto& w = all[static_cast<size_t>(part)];
    w = {0, rest, x, 0};
    if (sampling == Sampling::cubic) w = {before, near(x), near(rest), 1 - before - near(x) - near(rest)};
  }
  return all;
}

/// The products of the weights of two directions; whole: as multiples of 2^-15 whose sum is one (of the middle four, the largest
/// gets what is missing, the smallest gives what is too much).
std::array<double, 16> products_of(const std::array<double, 4>& across, const std::array<double, 4>& down, bool whole) {
  constexpr double kOne = 1 << kWeightBits;
  std::array<double, 16> products{};
  for (size_t i = 0; i < 16; ++i) products[i] = across[i % 4] * down[i / 4];
  if (!whole) return products;
  double left = kOne;
  for (double& each : products) left -= each = std::nearbyint(each * kOne);
  size_t least = 10, most = 10;
  for (size_t i : {10, 11, 14, 15}) {
    if (products[i] < products[least]) least = i;
    if (products[i] > products[most]) most = i;
  }
  products[left > 0 ? most : least] += left;
  for (double& each : products) each /= kOne;
  return products;
}

template <class T>
Array warped(const Array& image, const Warp& warp, const Places& places) {
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
  const auto weights = weights_of(warp.sampling);
  const int first = warp.sampling == Sampling::linear ? 1 : 0, end = 4 - first;
  std::vector<Place> row(static_cast<size_t>(warp.width));
  for (int64_t y = 0; y < warp.height; ++y) {
    places(y, row);
    for (const auto [from_x, from_y] : row) {
      T* made_pixel = std::exchange(to, to + channels);
      if (warp.sampling == Sampling::nearest) {
        for (int64_t c = 0; c < channels; ++c) made_pixel[c] = static_cast<T>(pixel(from_y, from_x, c));
        continue;
      }
      const int64_t left = (from_x >> kPartBits) - 1, top = (from_y >> kPartBits) - 1;
      const auto& across = weights[static_cast<size_t>(from_x & (kParts - 1))];
      const auto& down = weights[static_cast<size_t>(from_y & (kParts - 1))];
      const auto products = products_of(across, down, std::is_integral_v<T> && warp.sampling == Sampling::cubic);
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int i = first; i < end; ++i)
          for (int j = first; j < end; ++j)
            sum += products[static_cast<size_t>(4 * i + j)] * pixel(top + i, left + j, c);
        if constexpr (std::is_integral_v<T>)
          made_pixel[c] = static_cast<T>(std::clamp<double>(std::floor(sum + 0.5), std::numeric_limits<T>::lowest(),
                                                            static_cast<double>(std::numeric_limits<T>::max())));
        else
          made_pixel[c] = static_cast<T>(sum);
      }
    }
  }
  return made;
}

Array warp_image(const Array& image, const Warp& warp, const Places& places) {
  channels_of(image);
  Array made;
  const bool known =
      with_number(image.type.kind, [&](auto zero) { made = warped<decltype(zero)>(image, warp, places); });
  if (!known) fail(ErrorKind::unsupported, "", "expects numbers, found {}", name_of(image.type));
  return made;
}

Sampling sampling_of(const Options& options) {
  const auto number = static_cast<int>(options.one("interpolation", 0));
  return number == 0 ? Sampling::nearest : number == 3 ? Sampling::cubic : Sampling::linear;
}

double drawn(const std::vector<double>& range, Random& random) {
  return range[0] == range[1] ? range[0] : random.uniform(range[0], range[1]);
}

/// One number for the first three channels, or three of them; 0 for a fourth.
std::vector<double> fill_of(const Options& options) {
  std::vector<double> fill = options.has("fill_value") ? options.all("fill_value") : std::vector<double>{0};
  fill.resize(3, fill[0]);
  fill.push_back(0);
  return fill;
}

/// Against the clock by degrees from a range, about the middle or `center` (x, y); expand: so large that all of it is there.
Apply rotate(const Options& options) {
  const bool expand = options.one("expand", 0) != 0;
  const Sampling sampling = sampling_of(options);
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
        return warp_image(image, {height, width, sampling, fill}, places_of(inverse(forward), sampling));
      });
}

/// Turned, moved by shares of the size, scaled and leaned, each by an amount from a range.
Apply affine(const Options& options) {
  const Sampling sampling = sampling_of(options);
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
    return warp_image(image, {image.shape[0], image.shape[1], sampling, fill}, places_of(inverse(forward), sampling));
  });
}

/// Four corners of the image (x, y) go to four others.
Apply perspective(const Options& options) {
  const Sampling sampling = sampling_of(options);
  const std::vector<double> from = options.all("start_points"), to = options.all("end_points");
  if (from.size() != 8 || to.size() != 8)
    fail(ErrorKind::invalid_argument, "", "start_points and end_points are four points of two numbers");
  // The projective map from the end points back: eight linear equations, by Gauss with pivots.
  double a[8][9] = {};
  for (int i = 0; i < 4; ++i) {
    const double x = to[2 * i], y = to[2 * i + 1];
    for (int axis = 0; axis < 2; ++axis) {
      const double goal = from[2 * i + axis];
      const double row[9] = {axis ? 0 : x,   axis ? 0 : y, axis ? 0. : 1, axis ? x : 0, axis ? y : 0,
                             axis ? 1. : 0., -x * goal,    -y * goal,     goal};
      std::copy(row, row + 9, a[2 * i + axis]);
    }
  }
  for (int column = 0; column < 8; ++column) {
    int pivot = column;
    for (int row = column; row < 8; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    if (std::abs(a[pivot][column]) < 1e-12) fail(ErrorKind::invalid_argument, "", "three of the points lie on a line");
    std::swap_ranges(a[pivot], a[pivot] + 9, a[column]);
    for (int row = 0; row < 8; ++row) {
      const double factor = row == column ? 0 : a[row][column] / a[column][column];
      for (int i = column; i < 9; ++i) a[row][i] -= factor * a[column][i];
    }
  }
  std::array<double, 9> back{0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (size_t i = 0; i < 8; ++i) back[i] = a[i][8] / a[i][i];
  const double unit = sampling == Sampling::nearest ? 1 : kParts;
  const Places places = [=](int64_t line, std::span<Place> row) {
    for (size_t column = 0; column < row.size(); ++column) {
      const auto x = static_cast<double>(column), y = static_cast<double>(line);
      const auto sum = [&](size_t i) { return back[i] * x + back[i + 1] * y + back[i + 2]; };
      const double scale = sum(6) == 0 ? 0 : unit / sum(6);
      for (size_t axis = 0; axis < 2; ++axis)
        row[column][axis] = rounded(std::clamp(sum(3 * axis) * scale, -2147483648., 2147483647.));
    }
  };
  return each_column([=, fill = fill_of(options)](const Array& image, Random&) {
    channels_of(image);
    return warp_image(image, {image.shape[0], image.shape[1], sampling, fill}, places);
  });
}

template <class T>
void sharpen(const Array& image, double amount, Array& made) {
  const int64_t channels = channels_of(image), row = image.shape[1] * channels;
  for (int64_t y = 1; y + 1 < image.shape[0]; ++y)
    for (int64_t i = channels; i < row - channels; ++i) {
      const T* at = image.as<T>() + y * row + i;
      const auto value = static_cast<double>(at[0]);
      double sum = 4 * value;
      for (int64_t down : {-row, int64_t{0}, row}) sum += double(at[down - channels]) + at[down] + at[down + channels];
      double smooth = sum / 13;
      if constexpr (std::is_integral_v<T>) {
        smooth = std::nearbyint(smooth);
        made.write<T>()[y * row + i] = to_u8(static_cast<float>(smooth + (value - smooth) * amount));
      } else {
        made.write<T>()[y * row + i] = static_cast<T>(smooth + (value - smooth) * amount);
      }
    }
}

/// Away from the smoothed image, or towards it, as Pillow does it; the border stays.
Apply sharpness(const Options& options) {
  return each_column([range = options.all("factor")](const Array& image, Random& random) {
    channels_of(image);
    const double amount = drawn(range, random);
    Array made = copied(image);
    switch (image.type.kind) {
      case Kind::u8: sharpen<uint8_t>(image, amount, made); break;
      case Kind::f32: sharpen<float>(image, amount, made); break;
      case Kind::f64: sharpen<double>(image, amount, made); break;
      default: fail(ErrorKind::unsupported, "", "expects uint8 or floats, found {}", name_of(image.type));
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

constexpr TransformRow kWarpTransforms[] = {{"rotate", rotate},
                                            {"affine", affine},
                                            {"perspective", perspective},
                                            {"sharpness", sharpness},
                                            {"gaussian_blur", gaussian_blur}};

}  // namespace

std::span<const TransformRow> warp_transforms() { return kWarpTransforms; }

}  // namespace cairn::data
