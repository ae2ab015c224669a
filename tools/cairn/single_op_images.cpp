// Single operators on images: convolutions and pooling, with the platform's pads and layouts.
#include "single_op_writer.h"

namespace cairn::cli::single {
namespace {

/// Spatial numbers of an attribute in the order of an image's dimensions, as numbers of height and width.
struct Planes {
  bool channels_first;
  explicit Planes(const Writer& w)
      : channels_first(w.text("data_format", w.in(0).format == "nchw" ? "NCHW" : "NHWC") == "NCHW") {}
  std::pair<int64_t, int64_t> pair(const Writer& w, const char* name) const {
    const Ints list = w.ints(name, {1, 1});
    if (list.size() == 1) return {list[0], list[0]};
    if (list.size() == 2) return {list[0], list[1]};
    if (list.size() != 4) w.refuse("E10030", fmt::format("attribute {} has {} numbers, expected 4", name, list.size()));
    return channels_first ? std::pair(list[2], list[3]) : std::pair(list[1], list[2]);
  }
  std::string list(std::pair<int64_t, int64_t> pair) const {
    return list_value(channels_first ? Ints{1, 1, pair.first, pair.second} : Ints{1, pair.first, pair.second, 1});
  }
  std::string pads(const Ints& p) const {
    return list_value(channels_first ? Ints{0, 0, 0, 0, p[0], p[1], p[2], p[3]}
                                     : Ints{0, 0, p[0], p[1], p[2], p[3], 0, 0});
  }
  std::string name() const { return fmt::format("s: \"{}\"", channels_first ? "NCHW" : "NHWC"); }
  size_t row() const { return channels_first ? 2 : 1; }
};

/// Top, bottom, left, right.
Ints pads_of(const Writer& w, const char* name) {
  Ints pads = w.ints(name, {0, 0, 0, 0});
  if (pads.size() == 1) pads.assign(4, pads[0]);
  if (pads.size() != 4) w.refuse("E10030", fmt::format("attribute {} has {} numbers, expected 4", name, pads.size()));
  return pads;
}

struct Window {
  std::pair<int64_t, int64_t> size, stride;
  Ints pads;
  bool average, whole, ceiling;
};

void pooled(Writer& w, Window window) {
  const Planes planes(w);
  const size_t row = planes.row();
  const Ints& dims = w.in(0).dims;
  if (dims.size() != 4) w.refuse("E10027", fmt::format("its image has {} dimensions, expected 4", dims.size()));
  if (window.whole) {
    w.result(w.node(window.average ? "Mean" : "Max",
                    {w.in(0).name, w.constant({static_cast<int64_t>(row), static_cast<int64_t>(row) + 1})},
                    {{"keep_dims", "b: true"}, {"Tidx", type_value("DT_INT32")}}));
    return;
  }
  // With the size rounded up, the last window may reach beyond the image: as much more padding.
  for (size_t axis : {0, 1}) {
    const int64_t size = axis == 0 ? window.size.first : window.size.second;
    const int64_t stride = axis == 0 ? window.stride.first : window.stride.second;
    if (size < 1 || stride < 1) w.refuse("E10030", "has a window or stride below 1");
    if (dims[row + axis] < 0) continue;
    const int64_t rest = (dims[row + axis] + window.pads[2 * axis] + window.pads[2 * axis + 1] - size) % stride;
    if (!window.ceiling || rest <= 0) continue;
    if (window.average) w.refuse("E10030", "averages windows that reach beyond the image (ceil_mode)");
    window.pads[2 * axis + 1] += stride - rest;
  }
  const bool padded = std::any_of(window.pads.begin(), window.pads.end(), [](int64_t pad) { return pad != 0; });
  std::string x = w.in(0).name;
  if (padded && window.average) {  // padding counts, as zeros
    Json pads = Json::array();
    for (size_t axis = 0; axis < 4; ++axis)
      pads.push_back(axis == row       ? Json{window.pads[0], window.pads[1]}
                     : axis == row + 1 ? Json{window.pads[2], window.pads[3]}
                                       : Json{0, 0});
    w.graph.nodes += constant_node("pads", "DT_INT32", {4, 2}, pads);
    x = w.node("Pad", {x, "pads"}, {{"Tpaddings", type_value("DT_INT32")}});
  }
  const bool explicitly = padded && !window.average;
  Writer::Attributes attributes = {{"ksize", planes.list(window.size)},
                                   {"strides", planes.list(window.stride)},
                                   {"data_format", planes.name()},
                                   {"padding", explicitly ? "s: \"EXPLICIT\"" : "s: \"VALID\""}};
  if (explicitly) attributes.emplace_back("explicit_paddings", planes.pads(window.pads));
  w.result(w.node(window.average ? "AvgPool" : "MaxPool", {x}, attributes));
}

}  // namespace

void convolution(Writer& w) {
  const Planes planes(w);
  const bool depthwise = w.op.op.starts_with("Depthwise");
  std::string filter = w.in(1).name;
  if (w.in(1).format == "nchw") filter = w.transposed(filter, {2, 3, 1, 0});
  if (w.in(1).format == "nhwc") filter = w.transposed(filter, {1, 2, 3, 0});
  Writer::Attributes attributes = {{"strides", planes.list(planes.pair(w, "strides"))},
                                   {"dilations", planes.list(planes.pair(w, "dilations"))},
                                   {"data_format", planes.name()}};
  const std::string padding = w.text("padding", "EXPLICIT");
  attributes.emplace_back("padding", fmt::format("s: \"{}\"", padding));
  if (padding == "EXPLICIT") attributes.emplace_back("explicit_paddings", planes.pads(pads_of(w, "pads")));
  std::string y = w.node(depthwise ? "DepthwiseConv2dNative" : "Conv2D", {w.in(0).name, filter}, attributes);
  if (w.has(2)) y = w.node("BiasAdd", {y, w.in(2).name}, {{"data_format", planes.name()}});
  w.result(y);
}

void pooling(Writer& w) {
  const Ints size = w.ints("window", {1, 1}), stride = w.ints("stride", {1, 1});
  if (size.size() != 2 || stride.size() != 2) w.refuse("E10030", "window and stride have two numbers each");
  pooled(w, {{size[0], size[1]},
             {stride[0], stride[1]},
             pads_of(w, "pad"),
             w.integer("mode", 0) == 1,
             w.boolean("global_pooling"),
             w.integer("ceil_mode", 0) == 0});
}

void pool_calculated(Writer& w) {
  const Planes planes(w);
  const bool average = w.op.op.starts_with("Avg");
  const std::string mode = w.text("padding_mode", "CALCULATED");
  const auto size = planes.pair(w, "ksize"), stride = planes.pair(w, "strides");
  if (mode != "CALCULATED" && !w.boolean("global_pooling")) {
    w.result(w.node(average ? "AvgPool" : "MaxPool", {w.in(0).name},
                    {{"ksize", planes.list(size)},
                     {"strides", planes.list(stride)},
                     {"data_format", planes.name()},
                     {"padding", fmt::format("s: \"{}\"", mode)}}));
    return;
  }
  const Ints pads = pads_of(w, "pads");
  const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
  const Json* exclusive = w.find("exclusive");
  if (average && padded && (exclusive == nullptr || *exclusive != false)) {  // padding does not count
    w.result(w.node("AvgPool", {w.in(0).name},
                    {{"ksize", planes.list(size)},
                     {"strides", planes.list(stride)},
                     {"data_format", planes.name()},
                     {"padding", "s: \"EXPLICIT\""},
                     {"explicit_paddings", planes.pads(pads)}}));
    return;
  }
  pooled(w, {size, stride, pads, average, w.boolean("global_pooling"), w.boolean("ceil_mode")});
}

}  // namespace cairn::cli::single
