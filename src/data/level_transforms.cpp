// Transforms that give each value of u8 another by a table: fixed ones, and ones made of an image's own values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/images/images.h"
#include "data/transforms.h"

namespace cairn::data {

namespace {

using Levels = std::array<uint8_t, 256>;

void check_u8(const Array& image) {
  channels_of(image);
  if (image.type.kind != Kind::u8)
    fail(ErrorKind::invalid_argument, "", "expects uint8, found {}", name_of(image.type));
}

template <class F>
Levels levels_of(F&& f) {
  Levels levels;
  for (int value = 0; value < 256; ++value) levels[static_cast<size_t>(value)] = f(value);
  return levels;
}

/// Each channel by its own table; one table: all by it.
Array levelled(const Array& image, std::span<const Levels> tables) {
  Array made = Array::make(Kind::u8, image.shape);
  const uint8_t* from = image.as<uint8_t>();
  uint8_t* to = made.write<uint8_t>();
  for (int64_t i = 0; i < image.count(); ++i) to[i] = tables[static_cast<size_t>(i) % tables.size()][from[i]];
  return made;
}

Apply by_levels(std::function<Levels(Random&)> draw) {
  return each_column([draw = std::move(draw)](const Array& image, Random& random) {
    check_u8(image);
    const Levels levels = draw(random);
    return levelled(image, {&levels, 1});
  });
}

/// 255 - x of the values from `low` to `high`.
Array turned_round(const Array& image, double low, double high) {
  Array made = Array::make(image.type, image.shape);
  const bool known = with_number(image.type.kind, [&](auto zero) {
    using T = decltype(zero);
    std::transform(image.as<T>(), image.as<T>() + image.count(), made.write<T>(), [=](T x) {
      const auto value = static_cast<double>(x);
      return value >= low && value <= high ? static_cast<T>(255 - x) : x;
    });
  });
  if (!known) fail(ErrorKind::invalid_argument, "", "expects numbers, found {}", name_of(image.type));
  return made;
}

/// The highest bits, so many as are drawn from a range.
Apply posterize(const Options& options) {
  const auto low = static_cast<int64_t>(options.all("bits").at(0)),
             high = static_cast<int64_t>(options.all("bits").at(1));
  return by_levels([=](Random& random) {
    const auto bits = low + random.below(high - low + 1);
    return levels_of([=](int value) { return static_cast<uint8_t>(value & (256 - (1 << (8 - bits)))); });
  });
}

/// Values within bounds turned round, 255 - x; random: the bounds are drawn from the range.
Apply solarize(const Options& options) {
  const auto low = static_cast<int64_t>(options.all("threshold").at(0)),
             high = static_cast<int64_t>(options.all("threshold").at(1));
  const bool drawn = options.one("random", 0) != 0;
  return each_column([=](const Array& image, Random& random) {
    channels_of(image);
    double from = static_cast<double>(low), to = static_cast<double>(high);
    if (drawn) {
      from = static_cast<double>(low + random.below(high - low + 1));
      to = static_cast<double>(low + random.below(high - low + 1));
      if (from > to) std::swap(from, to);
    }
    return turned_round(image, from, to);
  });
}

Apply invert(const Options&) {
  return each_column([](const Array& image, Random&) {
    return turned_round(image, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity());
  });
}

/// gain * x ** gamma of u8 as values from 0 to 1; (gain * x) ** gamma of floats, as f32.
Apply adjust_gamma(const Options& options) {
  const auto gamma = options.one("gamma"), gain = options.one("gain", 1);
  return each_column([=](const Array& image, Random&) {
    if (image.type.kind == Kind::u8) {
      const Levels levels = levels_of([=](int value) {
        return static_cast<uint8_t>(std::clamp(255.999 * gain * std::pow(value / 255.0, gamma), 0.0, 255.0));
      });
      return levelled(image, {&levels, 1});
    }
    if (image.type.kind < Kind::f16)
      fail(ErrorKind::unsupported, "", "expects uint8 or floats, found {}", name_of(image.type));
    const Array from = cast(image, Kind::f64);
    Array made = Array::make(Kind::f64, image.shape);
    std::transform(from.as<double>(), from.as<double>() + from.count(), made.write<double>(),
                   [=](double value) { return std::clamp(std::pow(gain * value, gamma), 0.0, 1.0); });
    return cast(made, image.type.kind == Kind::f64 ? Kind::f32 : image.type.kind);
  });
}

std::vector<std::array<int64_t, 256>> histograms(const Array& image) {
  std::vector<std::array<int64_t, 256>> counts(static_cast<size_t>(channels_of(image)));
  for (auto& each : counts) each.fill(0);
  for (int64_t i = 0; i < image.count(); ++i) ++counts[static_cast<size_t>(i) % counts.size()][image.as<uint8_t>()[i]];
  return counts;
}

Apply by_histogram(std::function<Levels(std::array<int64_t, 256>)> table) {
  return each_column([table = std::move(table)](const Array& image, Random&) {
    check_u8(image);
    if (image.count() == 0) return image;
    std::vector<Levels> tables;
    for (const auto& counts : histograms(image)) tables.push_back(table(counts));
    return levelled(image, tables);
  });
}

/// Spread from 0 to 255, as Pillow does it: `cutoff` percent of the darkest and of the lightest pixels do not count.
Apply auto_contrast(const Options& options) {
  const double cutoff = options.one("cutoff", 0);
  const std::vector<double> ignored =
      options.numbers.contains("ignore") ? options.all("ignore") : std::vector<double>();
  return by_histogram([=](std::array<int64_t, 256> counts) {
    for (double each : ignored) counts.at(static_cast<size_t>(each)) = 0;
    const auto off = static_cast<int64_t>(
        static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0})) * cutoff / 100);
    auto cut = [&](auto begin, auto end) {
      for (int64_t rest = off; begin != end && rest > 0; ++begin) {
        const int64_t gone = std::min(rest, *begin);
        *begin -= gone, rest -= gone;
      }
    };
    cut(counts.begin(), counts.end());
    cut(counts.rbegin(), counts.rend());
    auto used = [](int64_t count) { return count > 0; };
    const auto low = std::find_if(counts.begin(), counts.end(), used) - counts.begin();
    const auto high = 255 - (std::find_if(counts.rbegin(), counts.rend(), used) - counts.rbegin());
    if (low >= high) return levels_of([](int value) { return static_cast<uint8_t>(value); });
    const float scale = 255.f / static_cast<float>(high - low), offset = -static_cast<float>(low) * scale;
    return levels_of([=](int value) {
      return static_cast<uint8_t>(std::clamp(static_cast<float>(value) * scale + offset, 0.f, 255.f));
    });
  });
}

/// A flat histogram.
Apply equalize(const Options&) {
  return by_histogram([](const std::array<int64_t, 256>& counts) {
    const int64_t first = *std::find_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
    const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0}) - first;
    Levels levels;
    int64_t above = -first;
    for (size_t value = 0; value < 256; ++value) {
      above += counts[value];
      levels[value] = all > 0 ? to_u8(static_cast<double>(above) * (255.0 / static_cast<double>(all)))
                              : static_cast<uint8_t>(value);
    }
    return levels;
  });
}

/// Square holes at random places; with `channels_first` of CHW.
Apply cut_out(const Options& options) {
  const auto length = static_cast<int64_t>(options.one("length")),
             patches = static_cast<int64_t>(options.one("num_patches", 1));
  const bool hwc = options.one("is_hwc", 1) != 0;
  return each_column([=](const Array& image, Random& random) {
    channels_of(image);
    const bool first = !hwc && image.shape.size() == 3;
    const int64_t height = image.shape[first ? 1 : 0], width = image.shape[first ? 2 : 1];
    const int64_t planes = first ? image.shape[0] : 1,
                  pixel = image.type.size * (first || image.shape.size() == 2 ? 1 : image.shape[2]);
    Array made = copied(image);
    for (int64_t patch = 0; patch < patches && height > 0 && width > 0; ++patch) {
      const int64_t top = random.below(height) - length / 2, left = random.below(width) - length / 2;
      const int64_t begin = std::clamp<int64_t>(left, 0, width), end = std::clamp<int64_t>(left + length, begin, width);
      for (int64_t plane = 0; plane < planes; ++plane)
        for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + length, height); ++y)
          std::memset(made.bytes() + ((plane * height + y) * width + begin) * pixel, 0,
                      static_cast<size_t>((end - begin) * pixel));
    }
    return made;
  });
}

/// AlexNet's noise of colours.
Apply lighting(const Options& options) {
  return each_column([alpha = options.one("alpha", 0.05)](const Array& image, Random& random) {
    check_u8(image);
    if (channels_of(image) != 3)
      fail(ErrorKind::invalid_argument, "", "expects an RGB image, found {}", text_of(image.shape));
    constexpr double kValues[] = {55.46, 4.794, 1.148};
    constexpr double kVectors[3][3] = {
        {-0.5675, 0.7192, 0.4009}, {-0.5808, -0.0045, -0.8140}, {-0.5836, -0.6948, 0.4203}};
    double drawn[3], shift[3] = {};
    for (double& each : drawn) each = random.normal() * alpha;
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 3; ++k) shift[c] += kVectors[c][k] * kValues[k] * drawn[k];
    std::array<Levels, 3> tables;
    for (size_t c = 0; c < 3; ++c) tables[c] = levels_of([&](int value) { return to_u8(value + shift[c]); });
    return levelled(image, tables);
  });
}

constexpr TransformRow kLevelTransforms[] = {
    {"posterize", posterize},         {"solarize", solarize}, {"invert", invert},   {"adjust_gamma", adjust_gamma},
    {"auto_contrast", auto_contrast}, {"equalize", equalize}, {"cut_out", cut_out}, {"lighting", lighting}};

}  // namespace

std::span<const TransformRow> level_transforms() { return kLevelTransforms; }

}  // namespace cairn::data
