// Shared by the rows of convolution, pooling and their gradients: the layout of images and the attributes of windows.
#pragma once

#include "frontends/fold.h"
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

/// An image converted to NHWC from the node's data_format, and per-dim attributes reduced to height and width.
class Image {
 public:
  /// `input` is the node's image.
  explicit Image(OpContext& c, size_t input = 0) : c_(c), format_(c.text("data_format", "NHWC")) {
    if (format_ != "NHWC" && format_ != "NCHW") c.refuse("data_format {} is not supported", printable(format_));
    if (c.rank(input) != 4) fail(ErrorKind::invalid_model, "", "the image has {} dims, expected 4", c.rank(input));
  }
  bool channels_first() const { return format_ == "NCHW"; }
  Value* in(Value* x) const { return channels_first() ? transposed(x, {0, 2, 3, 1}) : x; }
  Value* out(Value* y) const { return channels_first() ? transposed(y, {0, 3, 1, 2}) : y; }
  /// The four sizes of an image in the node's layout, reordered to NHWC.
  Value* sizes(Value* vector) const {
    if (!channels_first()) return vector;
    return folded(c_.b.add("gather", {vector, c_.b.ints({0, 2, 3, 1})}, {{"axis", int64_t{0}}}), c_.b);
  }

  /// Height and width from a list of four; the other two must be 1.
  std::vector<int64_t> spatial(std::string_view attr) const {
    const std::vector<int64_t> list = c_.integers(attr);
    return spatial(list.empty() ? std::vector<int64_t>{1, 1, 1, 1} : list, attr);
  }
  std::vector<int64_t> spatial(const std::vector<int64_t>& list, std::string_view what) const {
    if (list.size() != 4) fail(ErrorKind::invalid_model, "", "{} has {} numbers, expected 4", what, list.size());
    size_t height = channels_first() ? 2 : 1;
    if (list[0] != 1 || list[channels_first() ? 1 : 3] != 1)
      c_.refuse("{} over batch or channels is not supported", what);
    return {list[height], list[height + 1]};
  }

  void set_padding(Attributes& attributes) const {
    std::string padding = c_.text("padding", "");
    if (padding == "VALID" || padding == "SAME") {
      attributes.set("padding", std::string(padding == "SAME" ? "same" : "valid"));
      return;
    }
    if (padding != "EXPLICIT") fail(ErrorKind::invalid_model, "", "padding '{}' is unknown", printable(padding));
    std::vector<int64_t> pads = c_.integers("explicit_paddings");
    if (pads.size() != 8)
      fail(ErrorKind::invalid_model, "", "explicit_paddings has {} numbers, expected 8", pads.size());
    size_t height = channels_first() ? 4 : 2;
    attributes.set("padding", std::string("explicit"));
    attributes.set("pads", std::vector<int64_t>(pads.begin() + static_cast<int64_t>(height),
                                                pads.begin() + static_cast<int64_t>(height) + 4));
  }

 private:
  Value* transposed(Value* x, std::vector<int64_t> permutation) const {
    return c_.b.add("transpose", {x}, {{"permutation", std::move(permutation)}});
  }

  OpContext& c_;
  std::string format_;
};

}  // namespace cairn::tensorflow
