// Caffe's layers that move elements: joining, cutting, reordering, reshaping.
#include <algorithm>
#include <numeric>

#include "frontends/caffe/importer.h"

namespace cairn::caffe {
namespace {

/// The axis by its present name or by its old one.
size_t axis_or(const LayerContext& c, const Message& params, std::string_view old) {
  return c.axis(params, params.has("axis") ? "axis" : old, 1);
}

void identity(LayerContext& c) {
  c.expect(1);
  c.out.assign(std::max<size_t>(c.tops(), 1), c.in[0]);
}

void concat(LayerContext& c) {
  c.expect(1, SIZE_MAX);
  const size_t axis = axis_or(c, c.params("concat_param"), "concat_dim");
  c.out = {c.in.size() == 1 ? c.in[0] : c.b.add("concat", c.in, {{"axis", static_cast<int64_t>(axis)}})};
}

/// x[.., begin : end, ..] along one axis.
Value* part(LayerContext& c, Value* x, size_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> from(x->type.shape.rank(), 0), to(x->type.shape.rank(), kToTheEnd);
  from[axis] = begin, to[axis] = end;
  return c.b.add("slice", {x, c.b.ints(from), c.b.ints(to)});
}

void slice(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("slice_param");
  const size_t axis = axis_or(c, params, "slice_dim");
  std::vector<int64_t> points = params.integers("slice_point");
  const int64_t size = c.size(axis), tops = static_cast<int64_t>(std::max<size_t>(c.tops(), 1));
  if (points.empty()) {
    if (size % tops != 0) c.invalid("{} elements do not divide into {} tops", size, tops);
    for (int64_t i = 1; i < tops; ++i) points.push_back(size / tops * i);
  }
  if (static_cast<int64_t>(points.size()) + 1 != tops)
    c.invalid("has {} slice points for {} tops", points.size(), tops);
  points.insert(points.begin(), 0);
  points.push_back(size);
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    if (points[i] >= points[i + 1]) c.invalid("slice point {} is not between {} and {}", i, points[i], size);
    c.out.push_back(part(c, c.in[0], axis, points[i], points[i + 1]));
  }
}

NewDim same(size_t axis) { return {-1, static_cast<int>(axis)}; }

void flatten(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("flatten_param");
  const size_t first = c.axis(params, "axis", 1), last = c.axis(params, "end_axis", -1);
  if (first > last) c.invalid("axis {} is behind end_axis {}", first, last);
  std::vector<NewDim> dims;
  for (size_t i = 0; i < first; ++i) dims.push_back(same(i));
  dims.push_back({});
  for (size_t i = last + 1; i < c.rank(); ++i) dims.push_back(same(i));
  c.out = {c.reshape(c.in[0], dims)};
}

/// The dims from `axis` on, `num_axes` many, are replaced: 0 keeps the dim that stands there.
void reshape(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("reshape_param");
  const auto rank = static_cast<int64_t>(c.rank());
  int64_t first = params.integer("axis", 0);
  if (first < 0) first += rank + 1;
  const int64_t count = params.integer("num_axes", -1);
  if (first < 0 || first > rank || count < -1 || count > rank - first)
    c.invalid("axis {} with num_axes {} does not fit {} dims", params.integer("axis", 0), count, rank);
  std::vector<NewDim> dims;
  for (int64_t i = 0; i < first; ++i) dims.push_back(same(static_cast<size_t>(i)));
  int64_t at = first;
  for (int64_t size : params.message("shape").integers("dim")) {
    if (size < -1 || (size == 0 && at >= rank)) c.invalid("cannot have a dim of {}", size);
    dims.push_back(size == 0 ? same(static_cast<size_t>(at)) : NewDim{size});
    ++at;
  }
  for (int64_t i = count < 0 ? rank : first + count; i < rank; ++i) dims.push_back(same(static_cast<size_t>(i)));
  c.out = {c.reshape(c.in[0], dims)};
}

/// Axes that `order` does not name stand behind, in their order.
void permute(LayerContext& c) {
  c.expect(1);
  std::vector<int64_t> order = c.params("permute_param").integers("order");
  normal_axes(order, c.rank());  // each once, in range
  for (int64_t i = 0; i < static_cast<int64_t>(c.rank()); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
  c.out = {transposed(c.in[0], order, c.b)};
}

void tile(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("tile_param");
  std::vector<int64_t> times(c.rank(), 1);
  int64_t& tiles = times[c.axis(params, "axis", 1)];
  tiles = params.integer("tiles", 0);
  if (tiles < 1) c.invalid("tiles must be at least 1, found {}", tiles);
  c.out = {c.b.add("tile", {c.in[0], c.b.ints(times)})};
}

/// The first bottom cut to the sizes of the second, from `axis` on.
void crop(LayerContext& c) {
  c.expect(2);
  const Message params = c.params("crop_param");
  const size_t axis = c.axis(params, "axis", 2), rank = c.rank();
  const std::vector<int64_t> offsets = params.integers("offset");
  if (c.rank(1) != rank) c.invalid("bottoms have {} and {} dims", rank, c.rank(1));
  if (offsets.size() > 1 && offsets.size() != rank - axis)
    c.invalid("has {} offsets, expected 1 or {}", offsets.size(), rank - axis);
  Value* y = c.in[0];
  for (size_t i = axis; i < rank; ++i) {
    const int64_t offset = offsets.empty() ? 0 : offsets[offsets.size() == 1 ? 0 : i - axis];
    if (offset < 0 || offset > c.size(i) - c.size(i, 1))
      c.invalid("dim {} has {} elements, from {} on {} are wanted", i, c.size(i), offset, c.size(i, 1));
    if (c.size(i) != c.size(i, 1)) y = part(c, y, i, offset, offset + c.size(i, 1));
  }
  c.out = {y};
}

void reverse(LayerContext& c) {
  c.expect(1);
  std::vector<int64_t> axes = c.params("reverse_param").integers("axis");
  if (axes.empty()) axes = {0};
  c.out = {c.b.add("reverse", {c.in[0]}, {{"axes", normal_axes(axes, c.rank())}})};
}

/// Channels [group, each] become [each, group].
void shuffle_channel(LayerContext& c) {
  c.expect(1);
  const int64_t groups = c.params("shuffle_channel_param").integer("group", 1), channels = c.size(1);
  if (groups < 1 || channels % groups != 0) c.invalid("{} channels do not divide into {} groups", channels, groups);
  std::vector<NewDim> split{same(0), {groups}, {channels / groups}}, whole{same(0), {channels}};
  std::vector<int64_t> order{0, 2, 1};
  for (size_t i = 2; i < c.rank(); ++i) {
    split.push_back(same(i)), whole.push_back(same(i + 1));
    order.push_back(static_cast<int64_t>(i) + 1);
  }
  c.out = {reshape_to(transposed(reshape_to(c.in[0], split, c.b), order, c.b), whole, c.b)};
}

/// Blocks of stride x stride pixels become channels, those of one place in the block together; or the other way.
void reorg(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("reorg_param");
  const int64_t stride = params.integer("stride", 2);
  const int64_t channels = c.size(1), height = c.size(2), width = c.size(3);
  constexpr int64_t kMost = 1 << 15;
  if (stride < 1 || stride > kMost) c.invalid("stride must be 1 to {}, found {}", kMost, stride);
  if (params.flag("reverse", false)) {
    if (channels % (stride * stride) != 0) c.invalid("{} channels do not divide by {}", channels, stride * stride);
    const int64_t each = channels / stride / stride;
    Value* y = reshape_to(c.in[0], {same(0), {stride}, {stride}, {each}, {height}, {width}}, c.b);
    y = transposed(y, {0, 3, 4, 1, 5, 2}, c.b);
    c.out = {reshape_to(y, {same(0), {each}, {height * stride}, {width * stride}}, c.b)};
    return;
  }
  if (height % stride != 0 || width % stride != 0) c.invalid("{} x {} does not divide by {}", height, width, stride);
  Value* y = reshape_to(c.in[0], {same(0), {channels}, {height / stride}, {stride}, {width / stride}, {stride}}, c.b);
  y = transposed(y, {0, 3, 5, 1, 2, 4}, c.b);
  c.out = {reshape_to(y, {same(0), {channels * stride * stride}, {height / stride}, {width / stride}}, c.b)};
}

/// Rows of the table by number.
void embed(LayerContext& c) {
  c.expect(1);
  const Message params = c.params("embed_param");
  const int64_t rows = params.integer("input_dim", 0), width = params.integer("num_output", 0);
  if (rows < 1 || width < 1) c.invalid("input_dim and num_output must be above 0, found {} and {}", rows, width);
  Value* y = c.b.add("gather", {c.blob(0, {rows, width}), c.b.add("cast", {c.in[0]}, {{"dtype", kI64}})});
  c.out = {params.flag("bias_term", true) ? c.b.add("add", {y, c.blob(1, {width})}) : y};
}

constexpr Row kArrayRows[] = {
    {"Concat", concat},    {"Crop", crop},
    {"Dropout", identity}, {"Embed", embed},
    {"Flatten", flatten},  {"Permute", permute},
    {"Reorg", reorg},      {"Reshape", reshape},
    {"Reverse", reverse},  {"ShuffleChannel", shuffle_channel},
    {"Slice", slice},      {"Split", identity},
    {"Tile", tile},
};

}  // namespace

std::span<const Row> array_rows() { return kArrayRows; }

}  // namespace cairn::caffe
