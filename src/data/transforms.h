// The transforms that map runs without calling back: one table, by name.
#pragma once

#include "data/operations.h"

namespace cairn::data {

/// What a transform was given: numbers by name, and arrays by name.
struct Options {
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, Array> arrays;

  double one(const std::string& name, double otherwise) const;
  double one(const std::string& name) const;
  const std::vector<double>& all(const std::string& name) const;
  bool has(const std::string& name) const { return numbers.contains(name) || arrays.contains(name); }
};

/// Throws Error invalid_argument for an unknown name or option.
FunctionPtr transform(const std::string& name, const Options& options);
std::vector<std::string> transform_names();

/// Several functions in turn, with a probability in all and one for each; shuffled: in random order, `count` of them (-1: all).
struct Mixture {
  std::vector<FunctionPtr> functions;
  std::vector<double> chances;
  bool shuffled = false;
  int64_t count = -1;
  double probability = 1;
};
FunctionPtr mixed(Mixture mixture);

using Apply = std::function<void(Row& columns, Random& random)>;
using Change = std::function<Array(const Array& value, Random& random)>;  // of each column by itself

struct TransformRow {
  const char* name;
  Apply (*make)(const Options& options);
};
/// The rows of the table, by family.
std::span<const TransformRow> image_transforms();
std::span<const TransformRow> colour_transforms();
std::span<const TransformRow> plain_transforms();
std::span<const TransformRow> text_transforms();
std::span<const TransformRow> level_transforms();
std::span<const TransformRow> warp_transforms();

Apply each_column(Change change);
/// An array of our own with the same content.
Array copied(const Array& array);
/// The array as another kind; to integers by truncation.
Array cast(const Array& array, Kind kind);
/// f of each element as float, rounded to even and cut to u8 where that is the kind.
uint8_t to_u8(double value);

}  // namespace cairn::data
