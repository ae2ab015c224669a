// Shared by the rows of convolution, pooling and their gradients: the layout of images and the attributes of windows.
#pragma once

#include "frontends/fold.h"
#include "frontends/reshape.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {

/// The index of the channel dim of an image or a volume, by the node's data_format.
inline int64_t channel_axis(OpContext& c, size_t input = 0) {
  const std::string format = c.text("data_format", "NHWC");
  const bool volume = format == "NDHWC" || format == "NCDHW";
  if (!volume && format != "NHWC" && format != "NCHW") c.refuse("data_format {} is not supported", printable(format));
  const size_t rank = volume ? 5 : 4;
  if (c.rank(input) != rank)
    fail(ErrorKind::invalid_model, "", "the image has {} dims, expected {}", c.rank(input), rank);
  return format[1] == 'C' ? 1 : static_cast<int64_t>(rank) - 1;
}

/// An image (or volume) converted to NHWC (NDHWC) from the node's data_format, and per-dim attributes reduced to the spatial
/// dims.
class Image {
 public:
  /// `input` is the node's image.
  explicit Image(OpContext& c, size_t input = 0, size_t dims = 2) : c_(c), rank_(dims + 2) {
    const std::string last = dims == 2 ? "NHWC" : "NDHWC", first = dims == 2 ? "NCHW" : "NCDHW";
    const std::string format = c.text("data_format", last);
    if (format != last && format != first) c.refuse("data_format {} is not supported", printable(format));
    channels_first_ = format == first;
    if (c.rank(input) != rank_)
      fail(ErrorKind::invalid_model, "", "the image has {} dims, expected {}", c.rank(input), rank_);
  }
  bool channels_first() const { return channels_first_; }
  size_t rank() const { return rank_; }
  Dim channels(const std::vector<Dim>& dims) const { return dims[channels_first_ ? 1 : rank_ - 1]; }
  Value* in(Value* x) const { return channels_first_ ? transposed(x, to_last(), c_.b) : x; }
  Value* out(Value* y) const {
    std::vector<int64_t> back{0, static_cast<int64_t>(rank_) - 1};
    for (int64_t i = 1; i + 1 < static_cast<int64_t>(rank_); ++i) back.push_back(i);
    return channels_first_ ? transposed(y, std::move(back), c_.b) : y;
  }
  /// The sizes of an image in the node's layout, reordered to channels last.
  Value* sizes(Value* vector) const {
    if (!channels_first_) return vector;
    return folded(c_.b.add("gather", {vector, c_.b.ints(to_last())}, {{"axis", int64_t{0}}}), c_.b);
  }

  /// The spatial numbers of a list with one for each dim; the other two must be 1.
  std::vector<int64_t> spatial(std::string_view attr) const {
    const std::vector<int64_t> list = c_.integers(attr);
    return spatial(list.empty() ? std::vector<int64_t>(rank_, 1) : list, attr);
  }
  std::vector<int64_t> spatial(const std::vector<int64_t>& list, std::string_view what) const {
    if (list.size() != rank_)
      fail(ErrorKind::invalid_model, "", "{} has {} numbers, expected {}", what, list.size(), rank_);
    if (list[0] != 1 || list[channels_first_ ? 1 : rank_ - 1] != 1)
      c_.refuse("{} over batch or channels is not supported", what);
    const auto from = list.begin() + (channels_first_ ? 2 : 1);
    return {from, from + static_cast<int64_t>(rank_) - 2};
  }

  void set_padding(Attributes& attributes) const {
    std::string padding = c_.text("padding", "");
    if (padding == "VALID" || padding == "SAME") {
      attributes.set("padding", std::string(padding == "SAME" ? "same" : "valid"));
      return;
    }
    if (padding != "EXPLICIT") fail(ErrorKind::invalid_model, "", "padding '{}' is unknown", printable(padding));
    std::vector<int64_t> pads = c_.integers("explicit_paddings");
    if (pads.size() != 2 * rank_)
      fail(ErrorKind::invalid_model, "", "explicit_paddings has {} numbers, expected {}", pads.size(), 2 * rank_);
    const auto from = pads.begin() + (channels_first_ ? 4 : 2);
    attributes.set("padding", std::string("explicit"));
    attributes.set("pads", std::vector<int64_t>(from, from + 2 * static_cast<int64_t>(rank_) - 4));
  }
  Attributes convolution() const {
    Attributes attributes{{"strides", spatial("strides")}, {"dilations", spatial("dilations")}};
    set_padding(attributes);
    return attributes;
  }
  Attributes pooling() const { return pooling(spatial("ksize"), spatial("strides")); }
  /// Of an op whose window and strides are inputs, from this one on.
  Attributes pooling_by_inputs(size_t first) const {
    return pooling(spatial(c_.constant_integers(first, "the window"), "ksize"),
                   spatial(c_.constant_integers(first + 1, "the strides"), "strides"));
  }

 private:
  Attributes pooling(std::vector<int64_t> window, std::vector<int64_t> strides) const {
    Attributes attributes{{"window", std::move(window)}, {"strides", std::move(strides)}};
    set_padding(attributes);
    return attributes;
  }
  std::vector<int64_t> to_last() const {
    std::vector<int64_t> order{0};
    for (int64_t i = 2; i < static_cast<int64_t>(rank_); ++i) order.push_back(i);
    order.push_back(1);
    return order;
  }

  OpContext& c_;
  size_t rank_;
  bool channels_first_ = false;
};

/// A kernel with fewer input channels than the image means groups.
inline void set_groups(Attributes& attributes, const Dim& channels, const Dim& kernel_channels) {
  if (!channels.known() || !kernel_channels.known() || kernel_channels.size == 0) return;
  if (channels.size % kernel_channels.size != 0)
    fail(ErrorKind::invalid_model, "", "kernel has {} input channels, image has {}", kernel_channels.size,
         channels.size);
  attributes.set("groups", channels.size / kernel_channels.size);
}

}  // namespace cairn::tensorflow
