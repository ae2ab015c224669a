// Images in other sizes, cut and flipped.
#include <algorithm>
#include <cmath>

#include <immintrin.h>

#include "data/images/images.h"

namespace cairn::data {

int64_t channels_of(const Array& image) {
  if (image.shape.size() != 2 && image.shape.size() != 3)
    fail(ErrorKind::invalid_argument, "", "the shape of input must be <H,W,C> or <H,W>, but got rank: {}",
         image.shape.size());
  return image.shape.size() == 3 ? image.shape[2] : 1;
}

namespace {

constexpr int kBits = 11;  // of a linear weight of u8

/// What an axis reads for each of its places: `taps` neighbours from `first` on, cut off at the edges, with weights.
struct Axis {
  int taps = 0;
  std::vector<int> first;
  std::vector<float> weights;  // [places, taps]
};

/// By two divisions, as OpenCV: that decides where places fall on a pixel.
double scale_of(int64_t before, int64_t after) {
  return 1.0 / (static_cast<double>(after) / static_cast<double>(before));
}

Axis linear_axis(int64_t before, int64_t after, bool cut_weights) {
  Axis axis{2, {}, {}};
  const double scale = scale_of(before, after);
  for (int64_t i = 0; i < after; ++i) {
    auto place = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    int first = static_cast<int>(std::floor(place));
    place -= static_cast<float>(first);
    if (cut_weights && first < 0) place = 0, first = 0;
    if (cut_weights && first >= before - 1) place = 0, first = static_cast<int>(before - 1);
    axis.first.push_back(first);
    axis.weights.insert(axis.weights.end(), {1 - place, place});
  }
  return axis;
}

/// How OpenCV enlarges by area: linear between the edges of pixels.
Axis enlarging_axis(int64_t before, int64_t after) {
  Axis axis{2, {}, {}};
  const double scale = scale_of(before, after), inverse = static_cast<double>(after) / static_cast<double>(before);
  for (int64_t i = 0; i < after; ++i) {
    int first = static_cast<int>(std::floor(static_cast<double>(i) * scale));
    auto place = static_cast<float>(static_cast<double>(i + 1) - (first + 1) * inverse);
    place = place <= 0 ? 0.f : place - std::floor(place);
    if (first >= before - 1) place = 0, first = static_cast<int>(before - 1);
    axis.first.push_back(first);
    axis.weights.insert(axis.weights.end(), {1 - place, place});
  }
  return axis;
}

Axis cubic_axis(int64_t before, int64_t after, float sharp) {
  Axis axis{4, {}, {}};
  const double scale = scale_of(before, after);
  for (int64_t i = 0; i < after; ++i) {
    auto x = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
    const int first = static_cast<int>(std::floor(x));
    x -= static_cast<float>(first);
    float weights[4];
    weights[0] = ((sharp * (x + 1) - 5 * sharp) * (x + 1) + 8 * sharp) * (x + 1) - 4 * sharp;
    weights[1] = ((sharp + 2) * x - (sharp + 3)) * x * x + 1;
    weights[2] = ((sharp + 2) * (1 - x) - (sharp + 3)) * (1 - x) * (1 - x) + 1;
    weights[3] = 1.f - weights[0] - weights[1] - weights[2];
    axis.first.push_back(first - 1);
    axis.weights.insert(axis.weights.end(), weights, weights + 4);
  }
  return axis;
}

Axis area_axis(int64_t before, int64_t after) {
  const double scale = static_cast<double>(before) / static_cast<double>(after);
  Axis axis{static_cast<int>(std::ceil(scale)) + 1, {}, {}};
  for (int64_t i = 0; i < after; ++i) {
    const double begin = static_cast<double>(i) * scale, end = begin + scale;
    const int first = static_cast<int>(std::floor(begin));
    axis.first.push_back(first);
    for (int k = 0; k < axis.taps; ++k) {
      const double cover = std::min(end, first + k + 1.0) - std::max(begin, static_cast<double>(first + k));
      axis.weights.push_back(static_cast<float>(std::max(cover, 0.0) / scale));
    }
  }
  return axis;
}

/// One line, resized along its width, in integers: sums of u8 times weights of 11 bits.
template <int channels>
void linear_line(const uint8_t* from, const int* first, const int16_t* weights, int64_t begin, int64_t inner,
                 int64_t width, int32_t* to) {
  to += begin * channels;
  for (int64_t x = begin; x < inner; ++x, to += channels) {
    const uint8_t* at = from + first[x] * channels;
    for (int c = 0; c < channels; ++c) to[c] = at[c] * weights[2 * x] + at[c + channels] * weights[2 * x + 1];
  }
  for (int64_t x = inner; x < width; ++x, to += channels)
    for (int c = 0; c < channels; ++c) to[c] = from[first[x] * channels + c] << kBits;
}

/// The first places of a line of three channels, as long as 8 bytes can be read; how many.
[[gnu::target("sse4.1")]] int64_t linear_line_wide(const uint8_t* from, int64_t bytes, const int* first,
                                                   const int16_t* weights, int64_t inner, int32_t* to) {
  const __m128i pairs = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  int64_t x = 0;
  for (; x + 1 < inner && first[x] * 3 + 8 <= bytes; ++x, to += 3) {  // the fourth sum is overwritten by the next place
    int both;
    std::memcpy(&both, weights + 2 * x, 4);
    const __m128i values =
        _mm_shuffle_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + first[x] * 3)), pairs);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_madd_epi16(values, _mm_set1_epi32(both)));
  }
  return x;
}

[[gnu::always_inline]] inline void blend(const int32_t* upper, const int32_t* lower, int32_t upper_weight,
                                         int32_t lower_weight, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<uint8_t>(
        (((upper_weight * (upper[i] >> 4)) >> 16) + ((lower_weight * (lower[i] >> 4)) >> 16) + 2) >> 2);
}
[[gnu::target("avx2")]] void blend_wide(const int32_t* upper, const int32_t* lower, int32_t upper_weight,
                                        int32_t lower_weight, int64_t count, uint8_t* to) {
  blend(upper, lower, upper_weight, lower_weight, count, to);
}
void blend_lines(const int32_t* upper, const int32_t* lower, int32_t upper_weight, int32_t lower_weight, int64_t count,
                 uint8_t* to) {
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide)
    blend_wide(upper, lower, upper_weight, lower_weight, count, to);
  else
    blend(upper, lower, upper_weight, lower_weight, count, to);
}

std::vector<int16_t> short_weights(const Axis& axis) {
  std::vector<int16_t> weights;
  for (float weight : axis.weights) weights.push_back(static_cast<int16_t>(std::nearbyint(weight * (1 << kBits))));
  return weights;
}

template <int channels>
void resize_linear(const Array& image, Array& made, const Axis& across, const Axis& down) {
  const int64_t height = image.shape[0], width = image.shape[1], rows = made.shape[0], columns = made.shape[1];
  const std::vector<int16_t> across_weights = short_weights(across), down_weights = short_weights(down);
  int64_t inner = columns;
  while (inner > 0 && across.first[inner - 1] >= width - 1) --inner;
  static const bool wide = __builtin_cpu_supports("sse4.1");
  std::vector<int32_t> lines(static_cast<size_t>(2 * columns * channels));
  int32_t* line[2] = {lines.data(), lines.data() + columns * channels};
  int64_t held[2] = {-1, -1};
  for (int64_t y = 0; y < rows; ++y) {
    const int64_t wanted[2] = {std::clamp<int64_t>(down.first[y], 0, height - 1),
                               std::clamp<int64_t>(down.first[y] + 1, 0, height - 1)};
    if (held[1] == wanted[0] && held[0] != wanted[0]) std::swap(line[0], line[1]), std::swap(held[0], held[1]);
    for (int k = 0; k < 2; ++k) {
      if (held[k] == wanted[k]) continue;
      held[k] = wanted[k];
      const uint8_t* from = image.as<uint8_t>() + wanted[k] * width * channels;
      const int* first = across.first.data();
      const int64_t left = (height - wanted[k]) * width * channels;
      const int64_t made_wide =
          channels == 3 && wide ? linear_line_wide(from, left, first, across_weights.data(), inner, line[k]) : 0;
      linear_line<channels>(from, first, across_weights.data(), made_wide, inner, columns, line[k]);
    }
    blend_lines(line[0], line[1], down_weights[2 * y], down_weights[2 * y + 1], columns * channels,
                made.write<uint8_t>() + y * columns * channels);
  }
}

/// Cubic of u8: along lines in integers, down columns in floats but for what OpenCV's vectors of 8 leave over.
void resize_cubic(const Array& image, Array& made, const Axis& across, const Axis& down, int64_t channels) {
  const int64_t height = image.shape[0], width = image.shape[1], rows = made.shape[0], columns = made.shape[1];
  const int64_t line = columns * channels;
  const std::vector<int16_t> across_weights = short_weights(across), down_weights = short_weights(down);
  std::vector<int32_t> lines(static_cast<size_t>(height * line));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < columns; ++x)
      for (int k = 0; k < 4; ++k) {
        const uint8_t* from =
            image.as<uint8_t>() + (y * width + std::clamp<int64_t>(across.first[x] + k, 0, width - 1)) * channels;
        for (int64_t c = 0; c < channels; ++c)
          lines[y * line + x * channels + c] += across_weights[4 * x + k] * from[c];
      }
  constexpr float kScale = 1.f / (1 << 2 * kBits);
  for (int64_t y = 0; y < rows; ++y) {
    const int32_t* from[4];
    for (int k = 0; k < 4; ++k) from[k] = lines.data() + std::clamp<int64_t>(down.first[y] + k, 0, height - 1) * line;
    const int16_t* weights = &down_weights[4 * y];
    uint8_t* to = made.write<uint8_t>() + y * line;
    for (int64_t i = 0; i < line / 8 * 8; ++i) {
      float sum = static_cast<float>(from[3][i]) * (weights[3] * kScale);
      for (int k = 2; k >= 0; --k) sum = static_cast<float>(from[k][i]) * (weights[k] * kScale) + sum;
      to[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.f, 255.f));
    }
    for (int64_t i = line / 8 * 8; i < line; ++i) {
      int64_t sum = 1 << (2 * kBits - 1);
      for (int k = 0; k < 4; ++k) sum += int64_t{from[k][i]} * weights[k];
      to[i] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> 2 * kBits, 0, 255));
    }
  }
}

/// Half the size of u8: the mean of four, halves upwards.
void halve(const Array& image, Array& made, int64_t channels) {
  const int64_t line = image.shape[1] * channels;
  uint8_t* to = made.write<uint8_t>();
  for (int64_t y = 0; y < made.shape[0]; ++y)
    for (int64_t x = 0; x < made.shape[1]; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t* at = image.as<uint8_t>() + 2 * y * line + 2 * x * channels + c;
        *to++ = static_cast<uint8_t>((at[0] + at[channels] + at[line] + at[line + channels] + 2) >> 2);
      }
}

/// Any weights, any number type, in floats.
template <class T>
void resize_weighted(const Array& image, Array& made, const Axis& across, const Axis& down, int64_t channels) {
  const int64_t height = image.shape[0], width = image.shape[1], rows = made.shape[0], columns = made.shape[1];
  const int64_t line = columns * channels;
  std::vector<float> lines(static_cast<size_t>(height * line));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < columns; ++x)
      for (int k = 0; k < across.taps; ++k) {
        const float weight = across.weights[x * across.taps + k];
        const T* from = image.as<T>() + (y * width + std::clamp<int64_t>(across.first[x] + k, 0, width - 1)) * channels;
        for (int64_t c = 0; c < channels; ++c)
          lines[y * line + x * channels + c] += weight * static_cast<float>(from[c]);
      }
  std::vector<float> sums(static_cast<size_t>(line));
  for (int64_t y = 0; y < rows; ++y) {
    std::fill(sums.begin(), sums.end(), 0.f);
    for (int k = 0; k < down.taps; ++k) {
      const float weight = down.weights[y * down.taps + k];
      const float* from = lines.data() + std::clamp<int64_t>(down.first[y] + k, 0, height - 1) * line;
      for (int64_t i = 0; i < line; ++i) sums[i] += weight * from[i];
    }
    T* to = made.write<T>() + y * line;
    for (int64_t i = 0; i < line; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        to[i] = static_cast<T>(sums[i]);
      else
        to[i] = static_cast<T>(std::clamp(std::nearbyint(static_cast<double>(sums[i])),
                                          static_cast<double>(std::numeric_limits<T>::min()),
                                          static_cast<double>(std::numeric_limits<T>::max())));
    }
  }
}

void resize_nearest(const Array& image, Array& made, int64_t channels) {
  const size_t pixel = static_cast<size_t>(channels) * image.type.size;
  const double across = scale_of(image.shape[1], made.shape[1]), down = scale_of(image.shape[0], made.shape[0]);
  std::byte* to = made.bytes();
  for (int64_t y = 0; y < made.shape[0]; ++y) {
    const int64_t from =
        std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(y) * down)), image.shape[0] - 1);
    for (int64_t x = 0; x < made.shape[1]; ++x, to += pixel) {
      const int64_t at =
          std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(x) * across)), image.shape[1] - 1);
      std::memcpy(to, image.data + (from * image.shape[1] + at) * static_cast<int64_t>(pixel), pixel);
    }
  }
}

}  // namespace

Array resized(const Array& image, int64_t height, int64_t width, Inter inter) {
  const int64_t channels = channels_of(image);
  if (image.shape[0] == height && image.shape[1] == width) return image;
  if (height < 1 || width < 1 || height * width * channels > int64_t{1} << 32 || image.count() == 0)
    fail(ErrorKind::invalid_argument, "", "cannot resize an image of {} to [{}, {}]", text_of(image.shape), height,
         width);
  Shape shape = image.shape;
  const int64_t rows = shape[0], columns = shape[1];
  shape[0] = height;
  shape[1] = width;
  Array made = Array::make(image.type, shape);
  if (inter == Inter::nearest) {
    resize_nearest(image, made, channels);
    return made;
  }
  const bool bytes = image.type.kind == Kind::u8, cubic = inter == Inter::cubic || inter == Inter::pil_cubic;
  const bool half = rows == 2 * height && columns == 2 * width && !cubic;  // which OpenCV takes by area
  if (half && bytes) {
    halve(image, made, channels);
    return made;
  }
  const bool area = inter == Inter::area || half, reduces = height <= rows && width <= columns;
  const float sharp = inter == Inter::cubic ? -0.75f : -0.5f;
  auto axis = [&](int64_t before, int64_t after, bool is_width) {
    if (cubic) return cubic_axis(before, after, sharp);
    return !area     ? linear_axis(before, after, is_width)
           : reduces ? area_axis(before, after)
                     : enlarging_axis(before, after);
  };
  const Axis across = axis(columns, width, true), down = axis(rows, height, false);
  if (bytes && cubic) {
    resize_cubic(image, made, across, down, channels);
    return made;
  }
  if (bytes && !(area && reduces) && (channels == 1 || channels == 3 || channels == 4)) {
    if (channels == 1)
      resize_linear<1>(image, made, across, down);
    else if (channels == 3)
      resize_linear<3>(image, made, across, down);
    else
      resize_linear<4>(image, made, across, down);
    return made;
  }
  const bool known = with_number(image.type.kind, [&](auto zero) {
    if constexpr (!std::is_same_v<decltype(zero), bool>)
      resize_weighted<decltype(zero)>(image, made, across, down, channels);
  });
  if (!known || image.type.kind == Kind::boolean)
    fail(ErrorKind::unsupported, "", "cannot resize an image of {}", name_of(image.type));
  return made;
}

Array cut(const Array& image, const Box& box) {
  const int64_t channels = channels_of(image);
  if (box.top < 0 || box.left < 0 || box.height < 1 || box.width < 1 || box.top + box.height > image.shape[0] ||
      box.left + box.width > image.shape[1])
    fail(ErrorKind::invalid_argument, "", "the crop box [{}, {}, {}, {}] is out of the image of shape {}", box.top,
         box.left, box.height, box.width, text_of(image.shape));
  Shape shape = image.shape;
  shape[0] = box.height;
  shape[1] = box.width;
  Array made = Array::make(image.type, std::move(shape));
  const int64_t pixel = channels * image.type.size;
  for (int64_t y = 0; y < box.height; ++y)
    std::memcpy(made.bytes() + y * box.width * pixel, image.data + ((box.top + y) * image.shape[1] + box.left) * pixel,
                static_cast<size_t>(box.width * pixel));
  return made;
}

Array flipped(const Array& image, bool horizontally) {
  const int64_t pixel = channels_of(image) * image.type.size, height = image.shape[0], width = image.shape[1],
                line = width * pixel;
  Array made = Array::make(image.type, image.shape);
  for (int64_t y = 0; y < height; ++y) {
    const std::byte* from = image.data + (horizontally ? y : height - 1 - y) * line;
    std::byte* to = made.bytes() + y * line;
    if (!horizontally) {
      std::memcpy(to, from, static_cast<size_t>(line));
    } else if (pixel == 3) {
      for (int64_t x = 0; x < width; ++x) {
        const std::byte* at = from + (width - 1 - x) * 3;
        to[3 * x] = at[0], to[3 * x + 1] = at[1], to[3 * x + 2] = at[2];
      }
    } else {
      for (int64_t x = 0; x < width; ++x)
        std::memcpy(to + x * pixel, from + (width - 1 - x) * pixel, static_cast<size_t>(pixel));
    }
  }
  return made;
}

}  // namespace cairn::data
