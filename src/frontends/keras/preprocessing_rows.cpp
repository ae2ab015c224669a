// Keras' layers that prepare numbers and images: statistics, bins, categories, sizes.
#include <algorithm>

#include "frontends/fold.h"
#include "frontends/keras/importer.h"
#include "frontends/reshape.h"

namespace cairn::keras {
namespace {

/// A statistic: numbers of the configuration for all elements or the last dim, or a variable over the axes.
Value* statistic(LayerContext& c, const char* name, const std::vector<int64_t>& axes) {
  if (const Json* given = c.find(name)) {
    Json list = given->is_array() ? *given : Json::array({*given});
    while (list.size() == 1 && list[0].is_array()) list = Json(list[0]);
    std::vector<double> numbers;
    for (const Json& one : list) {
      if (!one.is_number()) c.refuse("{} is no list of numbers", name);
      numbers.push_back(one.get<double>());
    }
    const auto count = static_cast<int64_t>(numbers.size());
    const bool last = axes.size() == 1 && axes[0] + 1 == static_cast<int64_t>(c.rank()) && count == c.last_dim();
    if (count != 1 && !last) c.refuse("{} over other axes than the last is not supported", name);
    return cast_to(c.b.constant(Tensor::of<double>(kF64, {count}, numbers)), kF32, c.b);
  }
  std::vector<int64_t> dims;
  std::vector<NewDim> broadcast(c.rank(), NewDim{1});
  for (int64_t axis : axes) {
    const Dim dim = c.in[0]->type.shape.dims[static_cast<size_t>(axis)];
    if (!dim.known()) c.refuse("dim {} of the input is not known", axis);
    dims.push_back(dim.size), broadcast[static_cast<size_t>(axis)] = {dim.size};
  }
  return reshape_to(c.weight(name, dims), broadcast, c.b);
}

/// (x - mean) / sqrt(variance), or back.
void normalization(LayerContext& c) {
  c.expect_inputs(1);
  const std::vector<int64_t> axes = normal_axes(c.integers("axis"), c.rank());
  if (!std::is_sorted(axes.begin(), axes.end())) c.refuse("axes out of order are not supported");
  Value* x = cast_to(c.in[0], kF32, c.b);
  Value *mean = statistic(c, "mean", axes), *variance = statistic(c, "variance", axes);
  Value* deviation = c.b.add("maximum", {c.b.add("sqrt", {variance}), c.b.scalar_like(x, 1e-7)});
  if (c.boolean("invert", false))
    c.out = {c.b.add("add", {c.b.add("mul", {x, deviation}), mean})};
  else
    c.out = {c.b.add("div", {c.b.add("sub", {x, mean}), deviation})};
}

/// How many boundaries each element has reached.
void discretization(LayerContext& c) {
  c.expect_inputs(1);
  if (c.text("output_mode", "int") != "int")
    c.refuse("output_mode '{}' is not supported", c.text("output_mode", "int"));
  const Json* given = c.find("bin_boundaries");
  if (given == nullptr || !given->is_array() || given->empty()) c.refuse("its boundaries are not told");
  std::vector<float> boundaries;
  for (const Json& one : *given) {
    if (!one.is_number()) c.refuse("bin_boundaries is no list of numbers");
    boundaries.push_back(one.get<float>());
  }
  const auto last = static_cast<int64_t>(c.rank());
  Value* x = expand_dims(cast_to(c.in[0], kF32, c.b), {last}, c.b);
  Value* edges = c.b.constant(Tensor::of<float>(kF32, {static_cast<int64_t>(boundaries.size())}, boundaries));
  Value* reached = cast_to(c.b.add("greater_equal", {x, edges}), kI64, c.b);
  c.out = {c.b.add("reduce_sum", {reached}, {{"axes", std::vector<int64_t>{last}}, {"keep_dims", false}})};
}

/// Categories [n] or [n, k] as rows of [n, tokens]: which there are, or how often.
void category_encoding(LayerContext& c) {
  c.expect_inputs(1);
  const std::string mode = c.text("output_mode", "multi_hot");
  const int64_t tokens = c.integer("num_tokens", -1);
  if (tokens < 1 || tokens > (1 << 24)) fail(ErrorKind::invalid_model, "", "has {} tokens", tokens);
  if (c.rank() != 2 || (mode == "one_hot" && c.last_dim() != 1))
    c.refuse("an input of {} dims under output_mode '{}' is not supported", c.rank(), printable(mode));
  if (mode != "one_hot" && mode != "multi_hot" && mode != "count")
    c.refuse("output_mode '{}' is not supported", printable(mode));
  std::vector<int64_t> numbers(static_cast<size_t>(tokens));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  Value* places = expand_dims(cast_to(c.in[0], kI64, c.b), {2}, c.b);
  Value* hits = cast_to(c.b.add("equal", {places, c.b.ints(numbers)}), kF32, c.b);
  c.out = {c.b.add(mode == "count" ? "reduce_sum" : "reduce_max", {hits},
                   {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}})};
}

void need_images(const LayerContext& c) {
  c.expect_inputs(1);
  if (c.rank() != 4) c.refuse("images of {} dims are not supported, only 4", c.rank());
}

void resizing(LayerContext& c) {
  need_images(c);
  const std::string mode = c.text("interpolation", "bilinear");
  if (mode != "nearest" && mode != "bilinear") c.refuse("interpolation '{}' is not supported", printable(mode));
  for (const char* key : {"crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"})
    if (c.boolean(key, false)) c.refuse("{} is not supported", key);
  const std::vector<int64_t> sizes{c.sizes("height", 1, 1)[0], c.sizes("width", 1, 1)[0]};
  c.out = {c.b.add("resize2d", {cast_to(c.in[0], kF32, c.b), c.b.ints(sizes)},
                   {{"mode", mode}, {"coordinates", std::string("half_pixel")}})};
}

void center_crop(LayerContext& c) {
  need_images(c);
  std::vector<int64_t> begins{0}, ends{kToTheEnd};
  for (const char* key : {"height", "width"}) {
    const Dim dim = c.in[0]->type.shape.dims[begins.size()];
    const int64_t size = c.sizes(key, 1, 1)[0];
    if (!dim.known() || dim.size < size) c.refuse("images whose {} is not known, or less, are not supported", key);
    begins.push_back((dim.size - size) / 2), ends.push_back(begins.back() + size);
  }
  begins.push_back(0), ends.push_back(kToTheEnd);
  c.out = {c.b.add("slice", {cast_to(c.in[0], kF32, c.b), c.b.ints(begins), c.b.ints(ends)})};
}

constexpr auto kNoMasks = Row::Masks::end;

constexpr Row kPreprocessingRows[] = {
    {"CategoryEncoding", category_encoding},
    {"CenterCrop", center_crop, nullptr, kNoMasks, false, 1},
    {"Discretization", discretization},
    {"Normalization", normalization},
    {"Resizing", resizing, nullptr, kNoMasks, false, 1},
};

}  // namespace

std::span<const Row> preprocessing_rows() { return kPreprocessingRows; }

}  // namespace cairn::keras
