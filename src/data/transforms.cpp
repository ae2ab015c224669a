#include "data/transforms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cairn::data {

namespace {

class TableFunction : public Function {
 public:
  TableFunction(std::string name, Apply apply) : name_(std::move(name)), apply_(std::move(apply)) {}
  std::string name() const override { return name_; }
  void apply(Row& columns, Random& random) const override { apply_(columns, random); }

 private:
  std::string name_;
  Apply apply_;
};

class Mixed : public Function {
 public:
  explicit Mixed(Mixture mixture) : mixture_(std::move(mixture)) {}
  std::string name() const override { return "mixed"; }
  void apply(Row& columns, Random& random) const override {
    if (mixture_.probability < 1 && random.uniform() >= mixture_.probability) return;
    std::vector<size_t> order(mixture_.functions.size());
    std::iota(order.begin(), order.end(), 0);
    if (mixture_.shuffled) random.shuffle(order);
    if (mixture_.count >= 0 && mixture_.count < std::ssize(order)) order.resize(static_cast<size_t>(mixture_.count));
    for (size_t place : order) {
      if (mixture_.chances[place] < 1 && random.uniform() >= mixture_.chances[place]) continue;
      try {
        mixture_.functions[place]->apply(columns, random);
      } catch (const Error& error) {
        fail(error.kind(), "", "{}: {}", mixture_.functions[place]->name(), error.message());
      }
    }
  }

 private:
  Mixture mixture_;
};

/// (x - mean) / std, of HWC, as f32: HWC, or CHW in the same pass.
class Normalize : public Function {
 public:
  Normalize(std::vector<double> mean, std::vector<double> std, bool hwc, bool to_chw)
      : mean_(mean.begin(), mean.end()), std_(std.begin(), std.end()), hwc_(hwc), to_chw_(to_chw) {
    if (mean.empty() || mean.size() != std.size())
      fail(ErrorKind::invalid_argument, "", "normalize expects as many means as deviations, found {} and {}",
           mean.size(), std.size());
    for (double each : std)
      if (!(each > 0)) fail(ErrorKind::invalid_argument, "", "normalize expects deviations above 0, found {}", each);
    for (size_t c = 0; c < mean_.size(); ++c)
      for (int value = 0; value < 256; ++value) table_.push_back((static_cast<float>(value) - mean_[c]) / std_[c]);
  }
  std::string name() const override { return "normalize"; }
  FunctionPtr fused(const Function& next) const override {
    if (next.name() != "hwc2chw" || !hwc_ || to_chw_) return nullptr;
    return std::make_shared<Normalize>(std::vector<double>(mean_.begin(), mean_.end()),
                                       std::vector<double>(std_.begin(), std_.end()), true, true);
  }
  void apply(Row& columns, Random&) const override {
    for (Array& column : columns) column = normal(column);
  }

 private:
  Array normal(const Array& image) const {
    const bool flat = image.shape.size() == 2;
    if (!flat && image.shape.size() != 3)
      fail(ErrorKind::invalid_argument, "", "the shape of input must be <H,W,C> or <H,W>, but got rank: {}",
           image.shape.size());
    const int64_t channels = flat ? 1 : image.shape[hwc_ ? 2 : 0];
    const int64_t pixels = channels ? image.count() / channels : 0;
    if (std::ssize(mean_) != 1 && std::ssize(mean_) != channels)
      fail(ErrorKind::invalid_argument, "",
           "number of channels does not match the size of mean and std vectors, got channels: {}, size of mean: {}",
           channels, mean_.size());
    Shape shape = image.shape;
    if (to_chw_)
      shape = flat ? Shape{1, image.shape[0], image.shape[1]} : Shape{channels, image.shape[0], image.shape[1]};
    Array made = Array::make(Kind::f32, std::move(shape));
    float* to = made.write<float>();
    const int64_t step = hwc_ ? channels : 1, out_step = to_chw_ || !hwc_ ? 1 : channels;
    const bool known = with_number(image.type.kind, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, uint8_t>) {
        if (to_chw_ && channels == 3 && mean_.size() == 3) return planes(image.as<uint8_t>(), pixels, to);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const size_t at = mean_.size() == 1 ? 0 : static_cast<size_t>(c);
        const T* from = image.as<T>() + (hwc_ ? c : c * pixels);
        float* out = to + (out_step == 1 ? c * pixels : c);
        if constexpr (std::is_same_v<T, uint8_t>) {
          const float* table = table_.data() + 256 * at;
          for (int64_t i = 0; i < pixels; ++i) out[i * out_step] = table[from[i * step]];
        } else {
          const float mean = mean_[at], deviation = std_[at];
          for (int64_t i = 0; i < pixels; ++i)
            out[i * out_step] = (static_cast<float>(from[i * step]) - mean) / deviation;
        }
      }
    });
    if (!known) fail(ErrorKind::unsupported, "", "expects numbers, found {}", name_of(image.type));
    return made;
  }

  /// Three channels of u8 in one pass.
  void planes(const uint8_t* from, int64_t pixels, float* to) const {
    const float *red = table_.data(), *green = red + 256, *blue = green + 256;
    for (int64_t i = 0; i < pixels; ++i, from += 3) {
      to[i] = red[from[0]];
      to[i + pixels] = green[from[1]];
      to[i + 2 * pixels] = blue[from[2]];
    }
  }

  std::vector<float> mean_, std_, table_;  // the table: of each u8, by channel
  bool hwc_, to_chw_;
};

std::vector<std::span<const TransformRow>> families() {
  return {image_transforms(), colour_transforms(), plain_transforms(),
          text_transforms(),  level_transforms(),  warp_transforms()};
}

}  // namespace

double Options::one(const std::string& name, double otherwise) const {
  auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : one(name);
}

double Options::one(const std::string& name) const {
  const std::vector<double>& values = all(name);
  if (values.size() != 1)
    fail(ErrorKind::invalid_argument, "", "option '{}' is one number, found {}", name, values.size());
  return values[0];
}

const std::vector<double>& Options::all(const std::string& name) const {
  auto found = numbers.find(name);
  if (found == numbers.end()) fail(ErrorKind::invalid_argument, "", "option '{}' is missing", name);
  return found->second;
}

FunctionPtr transform(const std::string& name, const Options& options) {
  if (name == "normalize")
    return std::make_shared<Normalize>(options.all("mean"), options.all("std"), options.one("is_hwc", 1) != 0, false);
  for (auto rows : families())
    for (const TransformRow& row : rows)
      if (name == row.name) return std::make_shared<TableFunction>(name, row.make(options));
  fail(ErrorKind::invalid_argument, "", "there is no transform '{}', there are {}", name,
       fmt::join(transform_names(), ", "));
}

FunctionPtr mixed(Mixture mixture) {
  if (mixture.chances.size() != mixture.functions.size())
    fail(ErrorKind::invalid_argument, "", "{} transforms have {} chances", mixture.functions.size(),
         mixture.chances.size());
  return std::make_shared<Mixed>(std::move(mixture));
}

std::vector<std::string> transform_names() {
  std::vector<std::string> names{"normalize"};
  for (auto rows : families())
    for (const TransformRow& row : rows) names.push_back(row.name);
  std::sort(names.begin(), names.end());
  return names;
}

Apply each_column(Change change) {
  return [change = std::move(change)](Row& columns, Random& random) {
    for (Array& column : columns) column = change(column, random);
  };
}

Array copied(const Array& array) {
  Array made = Array::make(array.type, array.shape);
  std::memcpy(made.bytes(), array.data, array.size());
  return made;
}

Array cast(const Array& from, Kind kind) {
  if (from.type.kind == kind) return from;
  if (from.type.kind == Kind::f16) {
    Array floats = Array::make(Kind::f32, from.shape);
    std::transform(from.as<_Float16>(), from.as<_Float16>() + from.count(), floats.write<float>(),
                   [](_Float16 x) { return static_cast<float>(x); });
    return cast(floats, kind);
  }
  Array made = Array::make(kind, from.shape);
  bool known = false;
  with_number(from.type.kind, [&](auto in) {
    auto convert = [&](auto out) {
      using From = decltype(in);
      using To = decltype(out);
      const From* source = from.as<From>();
      std::transform(source, source + from.count(), made.write<To>(), [](From x) {
        if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>) {
          if (!(x > -9.3e18 && x < 9.3e18)) return To{};  // no such integer
          return static_cast<To>(static_cast<int64_t>(x));
        } else {
          return static_cast<To>(x);
        }
      });
    };
    if (kind == Kind::f16) {
      known = true;
      std::transform(from.as<decltype(in)>(), from.as<decltype(in)>() + from.count(), made.write<_Float16>(),
                     [](auto x) { return static_cast<_Float16>(static_cast<float>(x)); });
    } else {
      known = with_number(kind, convert);
    }
  });
  if (!known) fail(ErrorKind::unsupported, "", "cannot make {} of {}", name_of(made.type), name_of(from.type));
  return made;
}

uint8_t to_u8(double value) { return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0)); }

}  // namespace cairn::data
