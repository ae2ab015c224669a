#include "engines/cpu/slides.h"

#include "engines/cpu/groups.h"
#include "ops/shapes.h"

namespace cairn {

bool is_convolution(const Node& node, ConvRole role) {
  switch (role) {
    case ConvRole::forward: return node.is("conv2d") || node.is("conv3d");
    case ConvRole::input_gradient: return node.is("conv2d_input_gradient") || node.is("conv3d_input_gradient");
    case ConvRole::kernel_gradient: return node.is("conv2d_kernel_gradient") || node.is("conv3d_kernel_gradient");
  }
  return false;
}

namespace {

/// One dim of the images, by reference.
struct SlidingDim {
  int64_t &in, &out, &taps, &stride, &dilation, &before, &after;

  bool alone() const { return taps == 1 && stride == 1 && before == 0 && out == in; }  // each window is one element
  bool covered() const { return taps == in && out == 1 && before == 0 && (taps == 1 || dilation == 1); }
  void clear() { in = out = taps = stride = dilation = 1, before = after = 0; }
  void take(SlidingDim& other) {
    in = other.in, out = other.out, taps = other.taps, stride = other.stride, dilation = other.dilation;
    before = other.before, after = other.after;
    other.clear();
  }
};
SlidingDim depth_of(SlideSpec& s) { return {s.d, s.od, s.kd, s.stride_d, s.dilation_d, s.pad_front, s.pad_back}; }
SlidingDim height_of(SlideSpec& s) { return {s.h, s.oh, s.kh, s.stride_h, s.dilation_h, s.pad_top, s.pad_bottom}; }
SlidingDim width_of(SlideSpec& s) { return {s.w, s.ow, s.kw, s.stride_w, s.dilation_w, s.pad_left, s.pad_right}; }

void drop_dims(SlideSpec& s) {
  SlidingDim depth = depth_of(s), height = height_of(s), width = width_of(s);
  if (depth.alone()) {
    s.n *= s.d;
    depth.clear();
  } else if (height.alone() && width.alone()) {
    const int64_t pixels = s.h * s.w;
    height.take(depth);
    width.clear();
    s.w = s.ow = pixels;
  }
  if (s.d == 1 && s.kd == 1 && s.w == 1 && width.alone()) width.take(height);
}

}  // namespace

SlideSpec slide_of(const Node& node, const Value* x, const Value* y, const std::vector<int64_t>& window) {
  SlideSpec spec;
  spec.n = dim(x, 0), spec.channels = last_dim(x);
  const auto read = [&](SlidingDim along, size_t axis) {
    const WindowSpec read = window_spec(node.attr(), window[axis], axis);
    along.in = dim(x, axis + 1), along.out = dim(y, axis + 1), along.taps = window[axis];
    along.stride = read.stride, along.dilation = read.dilation;
    along.before = read.padding_before(along.in, along.out);
    // How far windows may extend beyond the image: explicit padding is limited, "same" has as much as the windows need.
    along.after = read.padding == "explicit" || read.padding == "valid" ? read.after : read.reach();
  };
  const size_t dims = window.size();
  if (dims == 3) read(depth_of(spec), 0);
  read(height_of(spec), dims - 2);
  read(width_of(spec), dims - 1);
  drop_dims(spec);
  return spec;
}

SlideSpec pooling_of(const Node& node) {
  SlideSpec spec = slide_of(node, node.attr().integers("window"));
  const bool mean = node.is("avg_pool2d") || node.is("avg_pool3d");
  spec.work = mean ? WindowWork::mean : WindowWork::maximum;
  spec.count_padding = mean && node.attr().boolean("count_padding");
  return spec;
}

SlideSpec convolution_of(const Node& node, const Value* x, const Value* y, const Value* kernel) {
  std::vector<int64_t> window = kernel->type.shape.sizes();
  window.resize(window.size() - 2);
  SlideSpec s = slide_of(node, x, y, window);
  if (node.attr().integer("groups") != 1) return s;
  for (SlidingDim dim : {width_of(s), height_of(s), depth_of(s)}) {  // from the innermost to the first not covered
    if (!dim.covered()) break;
    s.channels *= dim.in;
    dim.clear();
  }
  drop_dims(s);
  return s;
}

}  // namespace cairn
