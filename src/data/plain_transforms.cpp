// Transforms of arrays of any meaning.
#include <algorithm>

#include "data/transforms.h"

namespace cairn::data {

namespace {

Apply type_cast(const Options& options) {
  const auto kind = static_cast<Kind>(static_cast<int>(options.one("kind")));
  return each_column([kind](const Array& value, Random&) { return cast(value, kind); });
}

/// Rows of one 1 among 0, of the type of the labels; smoothed: f64. Labels are a scalar, a vector or a column.
Apply one_hot(const Options& options) {
  const auto classes = static_cast<int64_t>(options.one("classes"));
  const double smoothing = options.one("smoothing_rate", 0);
  const bool vectors = options.one("vectors", 1) != 0;
  return each_column([=](const Array& labels, Random&) {
    if (labels.type.kind >= Kind::f16)
      fail(ErrorKind::invalid_argument, "", "only supports input of int type, but got: {}", name_of(labels.type));
    const bool column = labels.shape.size() == 2 && labels.shape[1] == 1;
    if ((labels.shape.size() > 1 && !column) || (!vectors && labels.count() != 1))
      fail(ErrorKind::invalid_argument, "", "only supports scalars or vectors, but got rank {}", labels.shape.size());
    Shape shape = labels.shape;
    if (column || shape == Shape{1}) shape.pop_back();
    shape.push_back(classes);
    const Array numbers = cast(labels, Kind::i64);
    Array made = Array::make(Kind::f64, shape);
    std::fill_n(made.write<double>(), made.count(), smoothing / static_cast<double>(classes));
    for (int64_t i = 0; i < numbers.count(); ++i) {
      const int64_t label = numbers.as<int64_t>()[i];
      if (label >= classes)
        fail(ErrorKind::invalid_argument, "", "num_classes {} is smaller than the category number: the label is {}",
             classes, label);
      if (label < 0) fail(ErrorKind::invalid_argument, "", "the label {} is negative", label);
      made.write<double>()[i * classes + label] += 1 - smoothing;
    }
    return cast(made, smoothing > 0 ? Kind::f64 : labels.type.kind);
  });
}

Apply pad_end(const Options& options) {
  Fill fill{"value", {}, false, options.one("value", 0), ""};
  if (options.has("text")) fill.text = std::string(options.arrays.at("text").view());
  for (double size : options.all("shape")) fill.shape.push_back(static_cast<int64_t>(size));
  return each_column([fill](const Array& value, Random&) {
    if (value.shape.empty()) return value;
    std::vector<Array> values{value};
    fill_up(values, fill);
    return values[0];
  });
}

/// The columns, and constants before and after them, as one array of the first column's type.
Apply concatenate(const Options& options) {
  return [options](Row& columns, Random&) {
    std::vector<Array> parts(columns.begin(), columns.end());
    if (options.has("prepend")) parts.insert(parts.begin(), options.arrays.at("prepend"));
    if (options.has("append")) parts.push_back(options.arrays.at("append"));
    Type type = columns.at(0).type;
    int64_t rows = 0;
    for (Array& part : parts) {
      if (part.shape.empty()) part.shape = {1};
      if (part.shape.size() != 1)
        fail(ErrorKind::unsupported, "", "only 1D input supported, but got rank {}", part.shape.size());
      if (part.type.is_text() != type.is_text())
        fail(ErrorKind::unsupported, "", "input datatype does not match: texts and numbers");
      if (type.is_text())
        type.size = std::max(type.size, part.type.size);
      else
        part = cast(part, type.kind);
      rows += part.shape[0];
    }
    Array made = Array::make(type, {rows});
    std::memset(made.bytes(), 0, made.size());
    std::byte* to = made.bytes();
    for (const Array& part : parts)
      for (int64_t i = 0; i < part.shape[0]; ++i, to += type.size)
        std::memcpy(to, part.data + i * part.type.size, part.type.size);
    columns.assign(1, std::move(made));
  };
}

Apply duplicate(const Options&) {
  return [](Row& columns, Random&) {
    if (columns.size() != 1) fail(ErrorKind::invalid_argument, "", "expects one column, but got {}", columns.size());
    columns.push_back(columns[0]);
    columns[0].own = columns[1].own = false;
  };
}

constexpr TransformRow kPlainTransforms[] = {{"type_cast", type_cast},
                                             {"one_hot", one_hot},
                                             {"pad_end", pad_end},
                                             {"concatenate", concatenate},
                                             {"duplicate", duplicate}};

}  // namespace

std::span<const TransformRow> plain_transforms() { return kPlainTransforms; }

}  // namespace cairn::data
