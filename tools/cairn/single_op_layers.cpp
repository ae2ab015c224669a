// Single operators of the platform that are layers: what formulas of elements do not say.
#include <numeric>

#include "single_op_writer.h"

namespace cairn::cli::single {
namespace {

const Writer::Attributes kWhole = {{"keep_dims", "b: false"}, {"Tidx", "type: DT_INT32"}};

std::string reshaped(Writer& w, const std::string& x, const Ints& dims) {
  return w.node("Reshape", {x, w.constant(dims)}, {{"Tshape", type_value("DT_INT32")}});
}

/// The product of sizes; -1 when one is open.
int64_t product(const Ints& dims, size_t first, size_t last) {
  int64_t all = 1;
  for (size_t i = first; i < last; ++i) all = dims[i] < 0 || all < 0 ? -1 : all * dims[i];
  return all;
}

int64_t axis_of(const Writer& w, const char* name, int64_t fallback) {
  const auto rank = static_cast<int64_t>(w.in(0).dims.size());
  const Ints given = w.ints(name, {fallback});
  const int64_t axis = given.size() != 1 ? rank : given[0] < 0 ? given[0] + rank : given[0];
  if (axis < 0 || axis >= rank) w.refuse("E10030", fmt::format("{} is no axis of its input", name));
  return axis;
}

Ints exchanged(size_t rank, int64_t axis) {
  Ints permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[static_cast<size_t>(axis)], permutation.back());
  return permutation;
}

bool channels_first(const Writer& w) { return lower(w.text("data_format", w.in(0).format.c_str())).starts_with("nc"); }

}  // namespace

/// x as a matrix, split at `axis`, times the weights, which are [num_output, K], or [K, num_output] with `transpose`. The result
/// has sizes of 1 behind it where the description says so.
void full_connection(Writer& w) {
  const Ints &x = w.in(0).dims, &weights = w.in(1).dims;
  const auto axis = static_cast<size_t>(axis_of(w, "axis", 1));
  const bool transpose = w.boolean("transpose");
  const int64_t width = product(x, axis, x.size());
  if (weights.size() < 2) w.refuse("E10027", "its weights are a matrix at least");
  const int64_t outputs = w.integer("num_output", transpose ? weights.back() : weights[0]);
  if (width > 0 && product(weights, 0, weights.size()) != outputs * width)
    w.refuse("E10027", fmt::format("has weights of {} numbers, {} outputs of {} need {}",
                                   product(weights, 0, weights.size()), outputs, width, outputs * width));
  const std::string matrix =
      weights.size() == 2 ? w.in(1).name : reshaped(w, w.in(1).name, transpose ? Ints{-1, outputs} : Ints{outputs, -1});
  std::string y = w.node("MatMul", {reshaped(w, w.in(0).name, {-1, width}), matrix},
                         {{"transpose_a", "b: false"}, {"transpose_b", fmt::format("b: {}", !transpose)}});
  if (w.has(2)) y = w.node("AddV2", {y, reshaped(w, w.in(2).name, {-1})});
  Ints dims(x.begin(), x.begin() + static_cast<int64_t>(axis));
  dims.push_back(outputs);
  if (!w.op.outputs.empty() && w.op.outputs[0].dims.size() > dims.size() && x.size() == 4)
    dims.resize(w.op.outputs[0].dims.size(), 1);
  if (std::count(dims.begin(), dims.end(), -1) > 1) w.refuse("E10027", "has more than one open size");
  w.result(reshaped(w, y, dims));
}

/// y, the batch's mean and variance twice; without is_training those that are given.
void batch_norm(Writer& w) {
  const std::string format = channels_first(w) ? "NCHW" : "NHWC";
  if (w.in(0).dims.size() != 4) w.refuse("E10027", "takes images of four dimensions");
  const Json* flag = w.find("is_training");
  const bool training = flag == nullptr || !flag->is_boolean() || flag->get<bool>();
  std::vector<std::string> inputs;
  for (size_t i = 0; i < (training ? 3 : 5); ++i) inputs.push_back(w.in(i).name);
  for (size_t i = inputs.size(); i < 5; ++i) inputs.push_back(w.op.op + "_none");
  if (training) w.graph.nodes += constant_node(w.op.op + "_none", "DT_FLOAT", {0}, Json::array());
  const std::string y = w.node("FusedBatchNormV3", inputs,
                               {{"U", type_value("DT_FLOAT")},
                                {"epsilon", fmt::format("f: {}", w.real("epsilon", 1e-4))},
                                {"data_format", fmt::format("s: \"{}\"", format)},
                                {"is_training", fmt::format("b: {}", training)}});
  for (size_t i = 0; i < std::min<size_t>(5, w.op.outputs.size()); ++i) w.result(fmt::format("{}:{}", y, i));
}

void group_norm(Writer& w) {
  const Ints& dims = w.in(0).dims;
  const bool first = channels_first(w);
  const int64_t channels = dims.empty() ? 0 : first && dims.size() > 1 ? dims[1] : dims.back();
  const int64_t groups = w.integer("num_groups", 2);
  if (dims.size() < 3 || channels < 1 || groups < 1 || channels % groups != 0)
    w.refuse("E10030", fmt::format("cannot divide {} channels into {} groups", channels, groups));
  Ints split = dims, axes, column(dims.size(), 1);
  const size_t at = first ? 1 : dims.size() - 1;
  split[at] = channels / groups, split.insert(split.begin() + static_cast<int64_t>(at), groups);
  column[at] = channels;
  for (size_t i = 1; i < split.size(); ++i)
    if (i != at) axes.push_back(static_cast<int64_t>(i));
  if (std::count(split.begin(), split.end(), -1) > 1) w.refuse("E10027", "has more than one open size");
  const Writer::Attributes over = {{"keep_dims", "b: true"}, {"Tidx", type_value("DT_INT32")}};
  const std::string x = reshaped(w, w.in(0).name, split), mean = w.node("Mean", {x, w.constant(axes)}, over);
  const std::string variance = w.node("Mean", {w.node("SquaredDifference", {x, mean}), w.constant(axes)}, over);
  const std::string factor = w.node("Rsqrt", {w.node("AddV2", {variance, w.constant(w.real("epsilon", 1e-4))})});
  std::string y = reshaped(w, w.node("Mul", {w.node("Sub", {x, mean}), factor}), dims);
  if (w.has(1)) y = w.node("Mul", {y, reshaped(w, w.in(1).name, column)});
  if (w.has(2)) y = w.node("AddV2", {y, reshaped(w, w.in(2).name, column)});
  w.result(y);
  for (const std::string& each : {mean, variance}) w.result(reshaped(w, each, {-1, groups}));
}

/// Caffe's: sums, of absolute values or squares, or means from `axis` to the end, times a number.
void reduction_layer(Writer& w) {
  const int64_t operation = w.integer("operation", 1), axis = axis_of(w, "axis", 0);
  if (operation < 1 || operation > 4) w.refuse("E10030", "operation is 1 (sum), 2 (absolute), 3 (squares) or 4 (mean)");
  Ints axes;
  for (int64_t i = axis; i < static_cast<int64_t>(w.in(0).dims.size()); ++i) axes.push_back(i);
  std::string x = w.in(0).name;
  if (operation == 2) x = w.node("Abs", {x});
  if (operation == 3) x = w.node("Square", {x});
  const std::string y = w.node(operation == 4 ? "Mean" : "Sum", {x, w.constant(axes)}, kWhole);
  w.result(w.node("Mul", {y, w.constant(w.real("coeff", 1))}));
}

/// Caffe's: products, sums with coefficients, or largest elements.
void eltwise(Writer& w) {
  const int64_t mode = w.integer("mode", 1);
  if (mode < 0 || mode > 2) w.refuse("E10030", "mode is 0 (product), 1 (sum) or 2 (largest)");
  const Json* coefficients = w.find("coeff");
  std::string y;
  for (size_t i = 0; i < w.op.inputs.size(); ++i) {
    std::string x = w.in(i).name;
    if (mode == 1 && coefficients != nullptr && coefficients->is_array() && i < coefficients->size())
      x = w.node("Mul", {x, w.constant((*coefficients)[i].get<double>())});
    y = i == 0 ? x : w.node(mode == 0 ? "Mul" : mode == 1 ? "AddV2" : "Maximum", {y, x});
  }
  w.result(y);
}

/// Flatten (Caffe's, from `axis`) and FlattenV2 (to `end_axis`).
void flatten(Writer& w) {
  const Ints& dims = w.in(0).dims;
  const auto first = static_cast<size_t>(axis_of(w, "axis", 1)), last = static_cast<size_t>(axis_of(w, "end_axis", -1));
  if (last < first) w.refuse("E10030", "end_axis comes before axis");
  Ints made(dims.begin(), dims.begin() + static_cast<int64_t>(first));
  made.push_back(product(dims, first, last + 1));
  made.insert(made.end(), dims.begin() + static_cast<int64_t>(last) + 1, dims.end());
  if (std::count(made.begin(), made.end(), -1) > 1) w.refuse("E10027", "has more than one open size");
  w.result(reshaped(w, w.in(0).name, made));
}

/// Sizes of 1 put in at `axes`.
void unsqueeze(Writer& w) {
  Ints axes = w.ints(w.find("axis") ? "axis" : "axes", {}), made = w.in(0).dims;
  const auto rank = static_cast<int64_t>(made.size() + axes.size());
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  for (int64_t axis : axes) {
    if (axis < 0 || axis > static_cast<int64_t>(made.size())) w.refuse("E10030", "axes are no axes of its result");
    made.insert(made.begin() + axis, 1);
  }
  if (std::count(made.begin(), made.end(), -1) > 1) w.refuse("E10027", "has more than one open size");
  w.result(reshaped(w, w.in(0).name, made));
}

/// ArgMaxWithValue and ArgMinWithValue: the places as int32, then the elements.
void arg_with_value(Writer& w) {
  const bool most = w.op.op.starts_with("ArgMax");
  const int64_t axis = axis_of(w, "dimension", 0);
  std::string places = w.node(most ? "ArgMax" : "ArgMin", {w.in(0).name, w.constant({axis}, "DT_INT32", true)},
                              {{"Tidx", type_value("DT_INT32")}, {"output_type", type_value("DT_INT32")}});
  const bool keep = w.boolean("keep_dims");
  if (keep)
    places = w.node("ExpandDims", {places, w.constant({axis}, "DT_INT32", true)},
                    {{"T", type_value("DT_INT32")}, {"Tdim", type_value("DT_INT32")}});
  w.result(places);
  w.result(w.node(most ? "Max" : "Min", {w.in(0).name, w.constant(Ints{axis})},
                  {{"keep_dims", fmt::format("b: {}", keep)}, {"Tidx", type_value("DT_INT32")}}));
}

/// The elements along an axis in order, and their places.
void sort(Writer& w) {
  const int64_t axis = axis_of(w, "axis", -1);
  const size_t rank = w.in(0).dims.size();
  const int64_t size = w.in(0).dims[static_cast<size_t>(axis)];
  if (size < 0) w.refuse("E10027", "needs a known size along its axis");
  const Ints permutation = exchanged(rank, axis);
  const bool inner = static_cast<size_t>(axis) + 1 == rank, falling = w.boolean("descending");
  std::string x = inner ? w.in(0).name : w.transposed(w.in(0).name, permutation);
  if (!falling) x = w.node("Neg", {x});
  const std::string y = w.node("TopKV2", {x, w.constant({size}, "DT_INT32", true)}, {{"sorted", "b: true"}});
  std::string values = falling ? y : w.node("Neg", {y}), places = y + ":1";
  if (!inner) {
    values = w.transposed(values, permutation);
    places = w.node("Transpose", {places, w.constant(permutation)},
                    {{"T", type_value("DT_INT32")}, {"Tperm", type_value("DT_INT32")}});
  }
  w.result(values), w.result(places);
}

void shuffle_channel(Writer& w) {
  const Ints& dims = w.in(0).dims;
  const int64_t groups = w.integer("group", 1);
  if (dims.size() != 4 || dims[1] < 1 || groups < 1 || dims[1] % groups != 0)
    w.refuse("E10030", fmt::format("group {} does not divide the channels of an image in NCHW", groups));
  const std::string x = reshaped(w, w.in(0).name, {dims[0], groups, dims[1] / groups, dims[2] * dims[3]});
  w.result(reshaped(w, w.transposed(x, {0, 2, 1, 3}), dims));
}

/// Each pixel stride_h * stride_w times, times `scale`.
void upsample(Writer& w) {
  const Ints& dims = w.in(0).dims;
  const int64_t rows = w.integer("stride_h", 2), columns = w.integer("stride_w", 2);
  if (dims.size() != 4 || std::count(dims.begin(), dims.end(), -1) > 0 || rows < 1 || columns < 1)
    w.refuse("E10027", "takes an image of known size and strides above 0");
  const size_t at = channels_first(w) ? 2 : 1;
  Ints before = dims, made = dims;
  before.insert(before.begin() + static_cast<int64_t>(at) + 1, 1);
  before.insert(before.begin() + static_cast<int64_t>(at) + 3, 1);
  Ints times(6, 1);
  times[at + 1] = rows, times[at + 3] = columns;
  made[at] *= rows, made[at + 1] *= columns;
  const std::string y =
      w.node("Tile", {reshaped(w, w.in(0).name, before), w.constant(times)}, {{"Tmultiples", type_value("DT_INT32")}});
  w.result(w.node("Mul", {reshaped(w, y, made), w.constant(w.real("scale", 1))}));
}

/// GLU: one half times the sigmoid of the other; SwiGlu: the swish of one half times the other.
void gated(Writer& w) {
  const int64_t axis = axis_of(w, "dim", -1);
  const std::string halves =
      w.node("Split", {w.constant({axis}, "DT_INT32", true), w.in(0).name}, {{"num_split", "i: 2"}});
  const bool swish = w.op.op == "SwiGlu";
  const std::string curve = w.node("Sigmoid", {swish ? halves : halves + ":1"});
  w.result(w.node("Mul", {swish ? w.node("Mul", {halves, curve}) : halves, swish ? halves + ":1" : curve}));
}

/// Caffe's Deconvolution and Conv2DTransposeD (x, filter, bias), Conv2DBackpropInputD (filter, dy).
void transposed_convolution(Writer& w) {
  const bool gradient = w.op.op.starts_with("Conv2DBackprop");
  const Operand &x = w.in(gradient ? 1 : 0), &kernel = w.in(gradient ? 0 : 1);
  const bool first = lower(w.text("data_format", x.format.c_str())) == "nchw";
  if (x.dims.size() != 4 || kernel.dims.size() != 4)
    w.refuse("E10027", "takes an image and a filter of four dimensions");
  const auto pair = [&](const char* name) {
    const Ints list = w.ints(name, {1, 1});
    if (list.size() == 1) return Ints{list[0], list[0]};
    if (list.size() == 2) return list;
    if (list.size() != 4) w.refuse("E10030", fmt::format("attribute {} has {} numbers, expected 4", name, list.size()));
    return first ? Ints{list[2], list[3]} : Ints{list[1], list[2]};
  };
  const Ints strides = pair("strides"), dilations = pair("dilations"), pads = w.ints("pads", {0, 0, 0, 0});
  if (pads.size() != 4) w.refuse("E10030", fmt::format("attribute pads has {} numbers, expected 4", pads.size()));
  if (w.integer("groups", 1) != 1) w.refuse("E10030", "groups is not 1");
  const Ints order = kernel.format == "nchw" ? Ints{2, 3, 1, 0} : kernel.format == "nhwc" ? Ints{1, 2, 3, 0} : Ints{};
  const Ints sizes = kernel.format == "nchw"   ? Ints{kernel.dims[2], kernel.dims[3], kernel.dims[1]}
                     : kernel.format == "nhwc" ? Ints{kernel.dims[1], kernel.dims[2], kernel.dims[3]}
                                               : Ints{kernel.dims[0], kernel.dims[1], kernel.dims[2]};
  Ints size = w.ints("input_size", {});
  if (size.size() != 4) {
    const size_t row = first ? 2 : 1;
    const auto along = [&](size_t i) {
      return (x.dims[row + i] - 1) * strides[i] + dilations[i] * (sizes[i] - 1) + 1 - pads[2 * i] - pads[2 * i + 1];
    };
    size = first ? Ints{x.dims[0], sizes[2], along(0), along(1)} : Ints{x.dims[0], along(0), along(1), sizes[2]};
  }
  const auto spread = [&](const Ints& p) {
    return list_value(first ? Ints{1, 1, p[0], p[1]} : Ints{1, p[0], p[1], 1});
  };
  const Ints padded = first ? Ints{0, 0, 0, 0, pads[0], pads[1], pads[2], pads[3]}
                            : Ints{0, 0, pads[0], pads[1], pads[2], pads[3], 0, 0};
  const std::string format = first ? "s: \"NCHW\"" : "s: \"NHWC\"";
  std::string y = w.node("Conv2DBackpropInput",
                         {w.constant(size), order.empty() ? kernel.name : w.transposed(kernel.name, order), x.name},
                         {{"strides", spread(strides)},
                          {"dilations", spread(dilations)},
                          {"data_format", format},
                          {"padding", "s: \"EXPLICIT\""},
                          {"explicit_paddings", list_value(padded)}});
  if (!gradient && w.has(2)) y = w.node("BiasAdd", {y, w.in(2).name}, {{"data_format", format}});
  w.result(y);
}

}  // namespace cairn::cli::single
